package capture

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// From a signal handler on, the walk crosses the interrupted frame or ends: what it
// finds is on the stack, in order, with the handler's own frames in any case.
func TestSignalHandler(t *testing.T) {
	full := cmdtest.Full()
	for _, b := range backends {
		if b.report || b.table {
			continue
		}
		for _, name := range b.machines {
			m := machineOf(name)
			if m.bare || !full && m.qemu != "" {
				continue
			}
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(b.name+" "+name+level, func(t *testing.T) {
					if b.name == "unwind" && name == "ppc" {
						t.Skip("under qemu-ppc, libgcc's unwinder aborts at a signal frame: glibc's backtrace does as well")
					}
					if tool := m.missing(false); tool != "" {
						t.Skipf("%s is not installed", tool)
					}
					exe := filepath.Join(t.TempDir(), "signal")
					args := slices.Concat(m.gcc[1:], b.flags, f("-std=gnu99 -static -I../../include program/signal.c ../../src/capture_functions.c"),
						[]string{level, "../../src/capture_" + b.name + ".c", "-DBACKEND=lwsbt_capture_" + b.name, "-o", exe})
					if out, err := exec.Command(m.gcc[0], args...).CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					command := []string{exe}
					if m.qemu != "" {
						command = []string{m.qemu, exe}
					}
					out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
					if err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					symbols, err := readSymbols(exe)
					if err != nil {
						t.Fatal(err)
					}
					if err := checkSignal(strings.Fields(string(out)), symbols); err != nil {
						t.Errorf("%v in\n%s", err, out)
					}
				})
			}
		}
	}
}

// checkSignal reports what of the addresses captured, up to main, was not on the stack.
// The return to the kernel, between handler and f3, is in no function, or in one of
// the C library.
func checkSignal(addresses []string, symbols *symbolTable) error {
	own := []string{"h2", "h1", "handler"}
	rest := []string{"f3", "f2", "f1", "main"}
	var names []string
	for _, a := range addresses {
		pc, err := strconv.ParseUint(a, 16, 64)
		if err != nil {
			return err
		}
		name := symbols.name(pc)
		if name == "" || strings.Contains(name, "restore") || strings.Contains(name, "sigreturn") {
			name = "return"
		}
		if names = append(names, name); name == "main" {
			break
		}
	}
	if len(names) < len(own) || !slices.Equal(names[:len(own)], own) {
		return fmt.Errorf("%v: want %v first", names, own)
	}
	left := append([]string{"return"}, rest...)
	for _, name := range names[len(own):] {
		i := slices.Index(left, name)
		if i < 0 {
			return fmt.Errorf("%v: %s is a false frame", names, name)
		}
		left = left[i+1:]
	}
	return nil
}
