package fuzz

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every target of this package adds its seeds by calling seed, which fails if there are
// none.
func TestTargetsHaveSeeds(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			targets++
			seeded := false
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "seed" {
						seeded = true
					}
				}
				return true
			})
			if !seeded {
				t.Errorf("%s: %s has no seeds", name, fn.Name.Name)
			}
		}
	}
	if targets < 9 {
		t.Errorf("%d targets, want at least 9", targets)
	}
}

// No program imports a package that is only for tests: the corpus, the test generators, the
// test helpers, and the libraries that they use. But btconform fuzz makes up requests with gofuzz.
func TestTestCodeStaysInTests(t *testing.T) {
	forTests := []string{
		"github.com/lwsbt/lwsbt/corpus", "github.com/lwsbt/lwsbt/gen/gentest",
		"github.com/lwsbt/lwsbt/internal/cmdtest", "github.com/lwsbt/lwsbt/fleet/internal/fleettest",
		"pgregory.net/rapid", "github.com/google/gofuzz",
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || strings.HasSuffix(d.Name(), "test")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return nil // not a Go file of this module, such as the input of a test
		}
		files++
		for _, i := range file.Imports {
			for _, lib := range forTests {
				if strings.Trim(i.Path.Value, `"`) == lib && !(lib == "github.com/google/gofuzz" && strings.Contains(filepath.ToSlash(path), "conformance/fuzz/")) {
					t.Errorf("%s imports %s, which is for tests", path, lib)
				}
			}
		}
		return nil
	})
	if err != nil || files < 30 {
		t.Errorf("%d files examined (%v)", files, err)
	}
}
