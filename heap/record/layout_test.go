//go:build linux

package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestLayout compiles ring.h and compares its places and constants with those here.
func TestLayout(t *testing.T) {
	cmdtest.Need(t, "gcc")
	var h header
	var s slot
	want := map[string]uint64{
		"RING_VERSION": ringVersion, "RING_SLOT": ringSlot, "RING_OWN": ringOwn, "RING_RECORD_MAX": ringRecordMax,
		"RING_SLACK": ringSlack, "RING_DEPTH": ringDepth, "RING_PLACES": ringPlaces,
		"RING_COUNT": clockCount, "RING_CYCLES": clockCycles,
		"RING_ALLOCS": modeAllocs, "RING_FREES": modeFrees, "RING_LOSSY": modeLossy,
		"RING_FREE": slotFree, "RING_TAKEN": slotTaken, "RING_LEFT": slotLeft, "RING_FILLING": slotFilling,
		"RING_ALLOCATED": kindAllocated, "RING_FREED": kindFreed, "RING_MOVE_BEGINS": kindMoveBegins, "RING_MOVE_ENDS": kindMoveEnds,
		"RING_MOVE_FAILED": kindMoveFailed, "RING_MOVE_FREED": kindMoveFreed, "RING_MODULE": kindModule,
		"RING_UNLOADED": kindUnloaded, "RING_IMAGE": kindImage, "RING_FORK": kindFork,
		"RING_FRAMES": flagFrames, "RING_END_OUTERMOST": endOutermost,
		"sizeof(struct ring_header)": uint64(unsafe.Sizeof(h)), "sizeof(struct ring_slot)": uint64(unsafe.Sizeof(s)),
	}
	for name, at := range map[string]uintptr{
		"magic": unsafe.Offsetof(h.magic), "version": unsafe.Offsetof(h.version), "slots": unsafe.Offsetof(h.slots), "words": unsafe.Offsetof(h.words),
		"slot_at": unsafe.Offsetof(h.slotAt), "area_at": unsafe.Offsetof(h.areaAt), "area": unsafe.Offsetof(h.area), "clock": unsafe.Offsetof(h.clock),
		"children": unsafe.Offsetof(h.children), "sample": unsafe.Offsetof(h.sample), "recorder": unsafe.Offsetof(h.recorder), "mode": unsafe.Offsetof(h.mode),
		"root": unsafe.Offsetof(h.root), "top": unsafe.Offsetof(h.top), "slotless": unsafe.Offsetof(h.slotless), "asleep": unsafe.Offsetof(h.asleep),
		"beat": unsafe.Offsetof(h.beat), "count": unsafe.Offsetof(h.count),
	} {
		want["offsetof(struct ring_header, "+name+")"] = uint64(at)
	}
	for name, at := range map[string]uintptr{
		"state": unsafe.Offsetof(s.state), "pid": unsafe.Offsetof(s.pid), "tid": unsafe.Offsetof(s.tid),
		"image": unsafe.Offsetof(s.image), "name": unsafe.Offsetof(s.name), "head": unsafe.Offsetof(s.head), "lost": unsafe.Offsetof(s.lost),
		"tail": unsafe.Offsetof(s.tail), "waiting": unsafe.Offsetof(s.waiting), "room": unsafe.Offsetof(s.room),
	} {
		want["offsetof(struct ring_slot, "+name+")"] = uint64(at)
	}
	source := "#include <stddef.h>\n#include <stdio.h>\n#include \"ring.h\"\nint main(void)\n{\n\tputs(RING_MAGIC);\n"
	for expression := range want {
		source += fmt.Sprintf("\tprintf(\"%%s\\t%%llu\\n\", %q, (unsigned long long)(%s));\n", expression, expression)
	}
	program := filepath.Join(t.TempDir(), "layout")
	if err := os.WriteFile(program+".c", []byte(source+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	preload := "preload"
	if out, err := exec.Command("gcc", "-I"+preload, "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	magic, lines, _ := strings.Cut(string(out), "\n")
	if magic != ringMagic {
		t.Errorf("magic %q, want %q", ringMagic, magic)
	}
	n := 0
	for line := range strings.Lines(lines) {
		expression, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if fmt.Sprint(want[expression]) != value {
			t.Errorf("%s is %d here, and %s in ring.h", expression, want[expression], value)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d values, want %d", n, len(want))
	}
}
