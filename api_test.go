package lwsbt_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update", false, "write api/v0.2.0.txt anew")

// public are the packages whose API is compared.
var public = []string{"codec", "codec/callpath", "conformance", "conformance/mutant", "device", "gen", "heaplog", "image", "image/unwind", "profile", "profile/heapmap", "report", "stats", "symbol", "symbol/arch"}

// TestAPI compares the exported declarations with those of the last version, in api/, one
// in a line. What is added, changed or removed is written there by go test -run API -update,
// and belongs in CHANGELOG.md, as every other change that a user notices.
func TestAPI(t *testing.T) {
	const file = "api/v0.2.0.txt"
	var lines []string
	for _, dir := range public {
		lines = append(lines, exported(t, dir)...)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if *updateAPI {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, l := range want {
		if !slices.Contains(lines, l) {
			t.Errorf("removed or changed: %s", l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("not in %s: %s", file, l)
		}
	}
	if len(lines) < 300 {
		t.Errorf("only %d declarations", len(lines))
	}
}

// exported returns the exported declarations of the package in a directory: functions,
// methods, constants, variables, types, and the fields and methods of types.
func exported(t *testing.T, dir string) (lines []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	add := func(format string, args ...any) {
		lines = append(lines, "pkg "+dir+", "+strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
	}
	text := func(n any) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, files, n); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, dir+"/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				d.Body, d.Doc = nil, nil
				if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
					add("%s", text(d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						for _, l := range members(s, text) {
							add("%s", l)
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							if n.IsExported() {
								add("%s %s", d.Tok, n.Name)
							}
						}
					}
				}
			}
		}
	}
	return lines
}

// receiver returns the name of the type of a receiver.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// members returns the lines of a type: itself, and each field or method.
func members(s *ast.TypeSpec, text func(any) string) (lines []string) {
	switch x := s.Type.(type) {
	case *ast.StructType:
		lines = append(lines, "type "+s.Name.Name+" struct")
		for _, f := range x.Fields.List {
			for _, n := range f.Names {
				lines = append(lines, fmt.Sprintf("type %s struct, %s %s", s.Name.Name, n.Name, text(f.Type)))
			}
			if len(f.Names) == 0 {
				lines = append(lines, fmt.Sprintf("type %s struct, embedded %s", s.Name.Name, text(f.Type)))
			}
		}
	case *ast.InterfaceType:
		lines = append(lines, "type "+s.Name.Name+" interface")
		for _, m := range x.Methods.List {
			for _, n := range m.Names {
				lines = append(lines, fmt.Sprintf("type %s interface, %s%s", s.Name.Name, n.Name, strings.TrimPrefix(text(m.Type), "func")))
			}
		}
	default:
		alias := ""
		if s.Assign.IsValid() {
			alias = "= "
		}
		lines = append(lines, fmt.Sprintf("type %s %s%s", s.Name.Name, alias, text(s.Type)))
	}
	return lines
}
