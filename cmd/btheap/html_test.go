package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A source file is found by the end of its name, and only under the directory.
func TestSourceUnder(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src/lib"), 0o777); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret.c")
	for name, text := range map[string]string{filepath.Join(dir, "src/a.c"): "a", filepath.Join(dir, "src/lib/a.c"): "lib", outside: "secret"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "src/link.c")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{
		"src/a.c": "a", "/build/project/src/a.c": "a", "./src/../src/a.c": "a", "../../src/lib/a.c": "lib", `C:\work\src\lib\a.c`: "lib",
		"/build/src/lib/b.c": "", "src": "", "": "", "/": "", "..": "", outside: "", "src/link.c": "",
	} {
		text, found := sourceUnder(root, name)
		if string(text) != want || found != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, text, found, want)
		}
	}
}
