package main

import (
	"os"
	"path/filepath"
	"strings"
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

// The page leaves out allocators where call paths begin, as the other reports do.
func TestPageFolds(t *testing.T) {
	log := logFile(t, "out.dhat", `{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":false,"tu":"instrs","Mtu":"Minstr",
		"cmd":"./prog","pid":1,"tg":50,"te":90,"pps":[{"tb":64,"tbk":1,"tl":9,"mb":64,"mbk":1,"gb":64,"gbk":1,"eb":64,"ebk":1,"fs":[1,2]}],
		"ftbl":["[root]","0x4848899: malloc (vg_replace_malloc.c:381)","0x109166: main (prog.c:7)"]}`)
	for flag, want := range map[string]bool{"-q": false, "--no-fold": true} {
		page, errs, code := command("", "html", flag, log)
		if got := strings.Contains(page, `"malloc"`); code != 0 || got != want || !strings.Contains(page, `"main"`) {
			t.Errorf("html %s: exit code %d, malloc in the page: %v, want %v: %s", flag, code, got, want, errs)
		}
	}
}
