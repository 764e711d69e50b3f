package symbol

import (
	"strings"
	"testing"
)

// Firmware has code at low addresses, where GNU ld leaves the debug information of functions that it removes.
func TestRemovedFunctions(t *testing.T) {
	path := buildC(t, strings.Fields("gcc -g -O2 -nostdlib -static -ffunction-sections -Wl,--gc-sections,-e,begin,-Ttext=0"), "removed.c")
	p := process(t, path)
	for _, name := range []string{"kept", "begin"} {
		at := symbolAddr(t, p.Files()[0], name)
		a := p.Locate(at + 3)
		if at == 0 || at > 0x100 || len(a.Frames()) != 1 || a.Frames()[0].Func != name {
			t.Errorf("%s at %#x: %+v", name, at, a.Frames())
		}
	}
}
