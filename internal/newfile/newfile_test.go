package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestCreate(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": precious, "dangling": filepath.Join(other, "nothing"), "dangling.2": precious} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"link", "dangling"} {
		if _, err := d.Create(name); !errors.Is(err, fs.ErrExist) || !strings.Contains(fmt.Sprint(err), filepath.Join(dir, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, name, err := d.CreateFree(func(n int) string {
		if n > 1 {
			return fmt.Sprint("dangling.", n)
		}
		return "dangling"
	})
	if err != nil || name != "dangling.3" {
		t.Fatalf("%q, %v, expected the third name", name, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := d.Create("../" + filepath.Base(other) + "/x"); err == nil {
		t.Error("a file outside of the directory")
	}
	if text, err := os.ReadFile(precious); string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	if list, _ := os.ReadDir(other); len(list) != 1 {
		t.Errorf("%d files where the links lead to", len(list))
	}
}

// A directory that is exchanged after it was opened is not written to.
func TestExchangedDirectory(t *testing.T) {
	parent := t.TempDir()
	dir, moved, other := filepath.Join(parent, "dir"), filepath.Join(parent, "moved"), filepath.Join(parent, "other")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	d, name, info, err := Target(filepath.Join(dir, "file"))
	if err != nil || name != "file" || info != nil {
		t.Fatalf("%q, %v, %v", name, info, err)
	}
	defer d.Close()
	if err := errors.Join(os.Rename(dir, moved), os.Symlink(other, dir)); err != nil {
		t.Skip(err)
	}
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Stat(filepath.Join(moved, "file")); err != nil {
		t.Error(err)
	}
}

func TestTargetOfAnothersLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "to"), nil, 0o600), os.Symlink("to", link)); err != nil {
		t.Skip(err)
	}
	d, name, info, err := Target(link)
	if err != nil || name != "to" || info == nil {
		t.Fatalf("%q, %v, %v", name, info, err)
	}
	d.Close()
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Skip(err)
	}
	if _, _, _, err := Target(link); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a link of another user: %v", err)
	}
}

// makesFiles are the other places that make files: in directories of their own, or as tools for this repository.
var makesFiles = map[string]string{
	"fleet/server":         "its spool",
	"fleet/store":          "its store",
	"fleet/query":          "its store",
	"fleet/symbols":        "a directory for nobody else, by os.MkdirTemp",
	"heap/record/rules.go": "the user's cache, a directory for nobody else",
	"internal/cmdtest":     "tests", "internal/figures": "tests", "fleet/internal/fleettest": "tests",
	"device/tools/amalgamate": "a tool", "ref-c/mend": "a tool",
}

// What a command writes at a path that its user gives, this package creates.
func TestNothingElseCreatesFiles(t *testing.T) {
	creates := regexp.MustCompile(`os\.(Create|WriteFile)\(|os\.O_CREATE`)
	root, files := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".git")):
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if at := creates.FindIndex(text); at != nil && name != "internal/newfile/newfile.go" && makesFiles[name]+makesFiles[pathpkg.Dir(name)] == "" {
			t.Errorf("%s creates a file by itself: %s", path, text[at[0]:at[1]])
		}
		return err
	})
	if err != nil || files < 300 {
		t.Errorf("%d files, %v", files, err)
	}
}
