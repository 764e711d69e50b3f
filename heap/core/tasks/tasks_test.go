package tasks

import (
	"bytes"
	"debug/elf"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
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
