package tasks

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/decompress"
)

// unpack decompresses a file of testdata to a temporary file.
func unpack(t testing.TB, name string) (path string, data []byte) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name+".xz"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(decompress.NewReader("xz", bytes.NewReader(packed))); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, data
}

// find returns the tasks in RAM.
func find(t testing.TB, program string, base uint64, ram []byte) (*List, error) {
	var m core.Image
	defer m.Close()
	path := filepath.Join(t.TempDir(), "ram")
	if err := os.WriteFile(path, ram, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.AddRAM(base, path); err != nil {
		t.Fatal(err)
	}
	if err := m.AddELF(program, 0); err != nil {
		t.Fatal(err)
	}
	if m.Machine != elf.EM_ARM {
		t.Fatal(m.Machine)
	}
	return Find(&m, program, 0)
}

// TestDamage overwrites words of RAM, also with addresses in RAM: Find ends, names no task twice, and says what is missing.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name  string
		base  uint64
		tasks int
	}{{"nuttx-nsh", 0x60000000, 4}, {"rtthread", 0x20000000, 7}} {
		program, _ := unpack(t, c.name+".elf")
		_, ram := unpack(t, strings.TrimSuffix(c.name, "-nsh")+".bin")
		list, err := find(t, program, c.base, ram)
		if err != nil || len(list.Tasks) != c.tasks || len(list.Notes) > 0 {
			t.Fatalf("%s: %v, %v", c.name, list, err)
		}
		r := rand.New(rand.NewSource(1))
		for range 100 {
			bad := bytes.Clone(ram)
			for at := 0; at+4 <= len(bad) && at < 1<<15; at += 4 {
				if r.Intn(200) == 0 {
					v := uint32(r.Int63())
					if r.Intn(2) == 0 {
						v = uint32(c.base) + uint32(r.Intn(len(bad)))&^3
					}
					bad[at], bad[at+1], bad[at+2], bad[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
				}
			}
			list, err := find(t, program, c.base, bad)
			if err != nil {
				continue
			}
			seen := map[uint64]bool{}
			for i := range list.Tasks {
				if h := list.Tasks[i].Handle; seen[h] {
					t.Errorf("task %#x twice", h)
				} else {
					seen[h] = true
				}
			}
		}
		if list, err := find(t, program, c.base, ram[:0x100]); err == nil && len(list.Notes) == 0 {
			t.Errorf("%s: nothing is missing in 256 bytes: %v", c.name, list)
		}
	}
}

// TestSplit names the file of split debug information that has the structs.
func TestSplit(t *testing.T) {
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	src, program := filepath.Join(dir, "rtos.c"), filepath.Join(dir, "rtos")
	const text = "struct tskTaskControlBlock { int a; } *pxCurrentTCB; struct xLIST { int n; } pxReadyTasksLists[2]; int main(void) { return 0; }"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"-g": "", "-gdwarf-4 -gsplit-dwarf": ".dwo", "-gdwarf-5 -gsplit-dwarf": ".dwo", "-g0": "no struct tskTaskControlBlock"} {
		cmd := exec.Command("gcc", append(strings.Fields(flag), "-o", program, src)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var m core.Image
		if err := m.AddELF(program, 0); err != nil {
			t.Fatal(err)
		}
		_, err := Find(&m, program, 0)
		m.Close()
		if got := fmt.Sprint(err); !strings.Contains(got, want) || want == "" && strings.Contains(got, "not listed") {
			t.Errorf("%s: %s; want %q", flag, got, want)
		}
	}
}
