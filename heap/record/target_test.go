//go:build linux

package record

import (
	"os"
	"path/filepath"
	"testing"
)

// What is read of programs are any bytes: their ELF headers, and the first line of a
// script.
func FuzzRead(f *testing.F) {
	f.Add([]byte("#! \n"))
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(exe[:4096])
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		scriptInterpreter(path)
		(&Target{Path: path}).read()
		(&Target{}).checkLibrary(path)
	})
}
