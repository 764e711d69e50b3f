package cmdtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BadFiles runs a command on unreadable files: missing files, directories, text, damaged
// files. args returns its arguments for a file. The command must exit with code 2 or 3, or
// 125 to 127 if it runs other programs, print nothing to standard output, and print one line
// with the error that names the file once.
func BadFiles(t *testing.T, run Command, args func(file string) []string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := []string{"", filepath.Join(dir, "missing"), dir,
		write("text", "hello, world\n", 0o644),
		write("none", "", 0o644),
		write("short.elf", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 9), 0o644),
		write("short.gz", "\x1f\x8b\x08\x00\x00", 0o644),
		write("short.zst", "\x28\xb5\x2f\xfd\x24", 0o644),
		write("short.xz", "\xfd7zXZ\x00\x00", 0o644),
	}
	list = append(list, filepath.Join(list[3], "below"))
	locked := write("locked", "hello", 0)
	if f, err := os.Open(locked); err == nil {
		f.Close() // by root
	} else {
		list = append(list, locked)
	}
	for _, file := range list {
		var out, errs bytes.Buffer
		argv := args(file)
		code := run(argv, strings.NewReader(""), &out, &errs)
		message, hint, _ := strings.Cut(errs.String(), "\n")
		if hint != "" && !strings.HasPrefix(hint, "Try '") || out.Len() > 0 || code != 2 && code != 3 && (code < 125 || code > 127) {
			t.Errorf("%q: exit code %d, want 2 or 3 and one line; printed %q, %q", argv, code, out.String(), errs.String())
		}
		named := strings.Count(message, file) - strings.Count(message, "="+file) // of an example of a flag
		if file == "" {
			named = 1
		}
		if named != 1 {
			t.Errorf("%q: the message names the file %d times, want once: %s", argv, named, message)
		}
		for _, bad := range []string{": :", "  ", ": EOF", "unexpected EOF", "exec: ", "stat ", "open /", "read /", " xz: xz"} {
			if strings.Contains(message, bad) || strings.HasSuffix(message, ": ") {
				t.Errorf("%q: the message has %q: %s", argv, bad, message)
			}
		}
	}
}
