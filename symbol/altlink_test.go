package symbol

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file names the one that it shares debug information with. What is neither
// beside it nor in a directory of debug files is not opened: a FIFO in its
// place would be named in the error.
func TestSharedDebugFileStaysBelow(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"in/sub", "debug", "out"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	decoy := makeELF()
	for _, name := range []string{"in/sub/shared", "debug/shared", "out/shared"} {
		if err := os.WriteFile(filepath.Join(top, name), decoy, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What is opened has no build-id, and the error of that names it.
	const opened, refused = "build-id none, expected 0102", "neither beside the file that names it nor in a directory of debug files"
	for link, want := range map[string]string{
		"sub/shared":                              opened,
		"sub/../sub/shared":                       opened,
		filepath.Join(top, "in/sub/shared"):       opened,
		filepath.Join(top, "debug/shared"):        opened,
		"../debug/shared":                         opened,
		"../out/shared":                           refused,
		"sub/../../out/shared":                    refused,
		"../../../../../../etc/passwd":            refused,
		filepath.Join(top, "out/shared"):          refused,
		filepath.Join(top, "debug/../out/shared"): refused,
		"/etc/passwd":                             refused,
	} {
		image := makeELF(
			testSection{name: ".debug_info", kind: elf.SHT_PROGBITS, data: bytes.Repeat([]byte{1}, 16)},
			testSection{name: ".debug_abbrev", kind: elf.SHT_PROGBITS, data: []byte{0}},
			testSection{name: ".gnu_debugaltlink", kind: elf.SHT_PROGBITS, data: append([]byte(link), 0, 1, 2)},
		)
		path := filepath.Join(top, "in", "prog")
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, []string{filepath.Join(top, "debug")})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.Why(), want) {
			t.Errorf("%s: %q, want one with %q", link, f.Why(), want)
		}
		f.Close()
	}
}
