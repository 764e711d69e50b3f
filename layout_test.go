package lwsbt

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lwsbt/lwsbt"

// public lists the packages that promise compatibility from the first release on: what they
// export changes only with a new major version. All other packages promise none.
var public = []string{"codec", "codec/callpath", "codec/recording", "conformance", "conformance/btv", "conformance/vectors", "symbol", "heap/heaplog", "heap/leak", "heap/profile", "heap/profile/growth", "heap/profile/replay"}

// layout lists the packages of the three modules (this one, heap/ and fleet/) and what each may
// import, tests apart: other packages of ours, and libraries, "*" for any. Bytes flow one
// way, from a log line to a report. A package or an import that is not listed changes the design.
var layout = map[string]struct{ packages, libraries string }{
	".":                         {},
	"codec":                     {packages: "internal/crc16"},
	"codec/callpath":            {packages: "codec internal/crc16"},
	"internal/crc16":            {},
	"codec/recording":           {packages: "codec codec/callpath"},
	"codec/recording/reconcile": {packages: "codec codec/recording"},
	"symbol":                    {packages: "codec symbol/arch symbol/internal/dwarf internal/elffile internal/printable symbol/sysroot", libraries: "github.com/ianlancetaylor/demangle github.com/klauspost/compress github.com/therootcompany/xz"},
	"symbol/arch":               {},

	"symbol/internal/dwarf": {},

	"heap/core/unwind": {packages: "internal/elffile symbol/arch heap/core/crash", libraries: "golang.org/x/arch"},

	"heap/core":                     {packages: "codec codec/callpath symbol symbol/arch internal/decompress internal/elffile heap/core/crash"},
	"heap/core/crash":               {packages: "internal/crc16"},
	"heap/core/internal/debuginfo":  {},
	"heap/core/tasks":               {packages: "heap/core heap/core/crash heap/core/internal/debuginfo"},
	"heap/core/alloc":               {packages: "heap/core"},
	"heap/core/graph":               {packages: "heap/core"},
	"heap/leak":                     {},
	"heap/core/types":               {packages: "heap/core/internal/debuginfo symbol"},
	"heap/heaplog":                  {packages: "codec codec/callpath codec/recording codec/recording/reconcile symbol heap/profile heap/profile/replay heap/profile/growth heap/heaplog/internal/forms heap/heaplog/internal/process internal/input internal/printable"},
	"internal/input":                {packages: "internal/decompress", libraries: "golang.org/x/text"},
	"heap/heaplog/internal/forms":   {packages: "codec codec/recording"},
	"heap/heaplog/internal/process": {packages: "codec codec/callpath codec/recording symbol internal/input internal/printable"},
	"heap/internal/worldtest":       {},
	"heap/internal/heapmap":         {packages: "codec heap/profile heap/profile/replay"},
	"heap/report":                   {packages: "heap/leak heap/profile heap/profile/growth heap/internal/heapmap internal/printable heap/internal/leaktext"},
	"stats":                         {packages: "codec internal/cli internal/printable"},
	"heap/profile":                  {packages: "symbol internal/printable"},
	"heap/profile/growth":           {packages: "heap/leak heap/profile internal/printable"},
	"heap/profile/replay":           {packages: "heap/profile"},
	"heap/profile/export":           {packages: "heap/profile symbol internal/printable", libraries: "github.com/google/pprof"},
	"gen":                           {packages: "codec codec/callpath", libraries: "github.com/google/gofuzz"},
	"gen/gentest":                   {packages: "codec codec/callpath gen", libraries: "pgregory.net/rapid github.com/google/gofuzz"},

	"conformance":                   {packages: ". codec codec/callpath codec/recording conformance/btv conformance/internal/words conformance/vectors internal/bitstring"},
	"conformance/btv":               {packages: "codec codec/callpath conformance/internal/words internal/bitstring"},
	"conformance/internal/words":    {packages: "codec codec/callpath"},
	"conformance/vectors":           {},
	"conformance/fuzz":              {packages: "codec codec/callpath codec/recording conformance conformance/internal/words internal/bitstring", libraries: "github.com/google/gofuzz"},
	"cmd/btconform/internal/render": {packages: "codec codec/callpath conformance internal/bitstring internal/cli"},

	"corpus": {},
	"device": {},

	"heap/examples/largest": {packages: "heap/heaplog heap/profile"},

	"device/tools/amalgamate": {},
	"device/tools/functions":  {},

	"fuzz":         {packages: "codec codec/callpath codec/recording gen gen/gentest conformance conformance/fuzz corpus"},
	"ref-c/mend":   {},
	"ref-c/stacks": {packages: "gen"},

	"internal/bitstring":     {},
	"internal/decompress":    {libraries: "github.com/klauspost/compress github.com/therootcompany/xz"},
	"internal/elffile":       {},
	"symbol/sysroot":         {},
	"internal/printable":     {},
	"heap/internal/leaktext": {packages: "heap/leak heap/profile heap/profile/growth internal/printable"},
	"internal/figures":       {},
	"internal/cmdtest":       {packages: "codec codec/callpath", libraries: "github.com/spf13/cobra"},
	"internal/cli/logflags":  {packages: "codec symbol internal/cli", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/internal/logflags": {packages: "codec/recording symbol heap/profile heap/heaplog internal/cli internal/cli/logflags", libraries: "github.com/spf13/cobra github.com/spf13/pflag go.bug.st/serial"},
	"internal/newfile":       {},
	"internal/cli":           {packages: "internal/newfile internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/mattn/go-isatty golang.org/x/term github.com/olekukonko/tablewriter"},

	"cmd/btconform":     {packages: "codec conformance conformance/fuzz cmd/btconform/internal/render internal/cli", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btcore":   {packages: "device/tools/functions codec symbol heap/core heap/core/alloc heap/core/crash heap/core/graph heap/core/tasks heap/core/types heap/core/unwind internal/cli symbol/sysroot", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btheap":   {packages: "codec codec/recording heap/heaplog heap/leak heap/profile heap/profile/replay heap/profile/growth heap/profile/export heap/internal/heapmap heap/report heap/internal/leaktext internal/cli heap/internal/logflags internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/record":       {packages: "device codec codec/callpath heap/core/unwind internal/newfile internal/printable", libraries: "github.com/klauspost/compress golang.org/x/sys"},
	"cmd/btstats":       {packages: "codec codec/recording codec/recording/reconcile stats internal/cli internal/cli/logflags internal/input", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btrecord": {packages: "internal/cli internal/newfile heap/record", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btdecode": {packages: "codec codec/callpath codec/recording symbol heap/profile heap/heaplog internal/cli heap/internal/logflags internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/fatih/color"},

	"fleet/cmd/btfleet":        {packages: "fleet/clickhouse fleet/ingest fleet/page fleet/query fleet/server fleet/simulate fleet/store fleet/symbols heap/profile internal/cli internal/input", libraries: "*"},
	"fleet/ingest":             {packages: "codec codec/recording symbol heap/heaplog heap/leak heap/profile heap/profile/growth fleet/store internal/decompress"},
	"fleet/page":               {packages: "symbol heap/profile heap/profile/export heap/report internal/cli internal/printable fleet/query fleet/store", libraries: "github.com/hashicorp/golang-lru golang.org/x/sync"},
	"fleet/clickhouse":         {packages: "fleet/store", libraries: "*"},
	"fleet/query":              {packages: "heap/leak heap/profile heap/profile/growth fleet/clickhouse fleet/store", libraries: "*"},
	"fleet/server":             {packages: "fleet/ingest fleet/store internal/decompress", libraries: "*"},
	"fleet/simulate":           {packages: "fleet/store"},
	"fleet/store":              {libraries: "*"},
	"fleet/symbols":            {packages: "codec/callpath symbol heap/heaplog fleet/store"},
	"fleet/internal/fleettest": {packages: "codec/callpath internal/cmdtest", libraries: "*"},
}

// support lists the packages that only tests import, and the programs that only they run. They are
// test code, without the name of it.
var support = strings.Fields("corpus fleet/internal/fleettest fuzz gen gen/gentest heap/internal/worldtest " +
	"internal/cmdtest internal/figures ref-c/stacks")

// No package of a command imports one that only tests have.
func TestSupportIsOfTests(t *testing.T) {
	for _, dir := range support {
		if _, known := layout[dir]; !known {
			t.Errorf("%s is not a package of the layout", dir)
		}
	}
	for dir, may := range layout {
		for _, p := range strings.Fields(may.packages) {
			if slices.Contains(support, p) && !slices.Contains(support, dir) {
				t.Errorf("%s may import %s, which is of tests", dir, p)
			}
		}
	}
}

// Files of C do not include each other in a circle: a header declares what files below it need.
func TestNoCircleOfIncludes(t *testing.T) {
	includes := map[string][]string{}
	quoted := regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")) {
			return errOrSkip(err)
		}
		if ext := filepath.Ext(file); ext != ".c" && ext != ".h" {
			return nil
		}
		text, err := os.ReadFile(file)
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			for _, from := range []string{filepath.Dir(file), "device/include", "device/src"} {
				name := filepath.Join(from, m[1])
				if _, err := os.Stat(name); err == nil {
					includes[file] = append(includes[file], name)
					break
				}
			}
		}
		return err
	})
	if err != nil || len(includes) < 100 {
		t.Fatalf("%d files, %v", len(includes), err)
	}
	done := map[string]bool{}
	var visit func(file string, above []string)
	visit = func(file string, above []string) {
		if slices.Contains(above, file) {
			t.Errorf("a circle: %s", strings.Join(append(above, file), " includes "))
			return
		}
		if done[file] {
			return
		}
		for _, name := range includes[file] {
			visit(name, append(above[:len(above):len(above)], file))
		}
		done[file] = true
	}
	for file := range includes {
		visit(file, nil)
	}
}

var (
	notCode    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"`)
	prototype  = regexp.MustCompile(`(?m)^[a-z][^;{}()=]*\b(\w+)\([^;{}]*\)(?: __attribute__\(\([^;]*\)\))?;`)
	definition = regexp.MustCompile(`(?m)^[A-Za-z][^;{}()=#]*\b(\w+)\([^;{}]*\)\s*\{`)
)

// Of two files of C, one at most calls the other: a function that a header declares, or one of a header.
func TestFilesOfCCallOneWay(t *testing.T) {
	for _, dir := range []string{"device/src", "heap/record/preload"} {
		files, _ := filepath.Glob(dir + "/*.[ch]")
		headers, _ := filepath.Glob("device/include/lwsbt/*.h")
		code, declared, defined := map[string]string{}, map[string]bool{}, map[string]string{}
		for _, file := range append(headers, files...) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code[file] = notCode.ReplaceAllString(string(text), "")
			for _, m := range prototype.FindAllStringSubmatch(code[file], -1) {
				declared[m[1]] = declared[m[1]] || filepath.Ext(file) == ".h"
			}
			code[file] = prototype.ReplaceAllString(code[file], "")
		}
		for _, file := range files {
			for _, m := range definition.FindAllStringSubmatch(code[file], -1) {
				if filepath.Ext(file) == ".h" || declared[m[1]] && !strings.HasPrefix(m[0], "static") {
					defined[m[1]] = file
				}
			}
		}
		calls := map[[2]string]string{}
		for _, file := range files {
			for _, m := range regexp.MustCompile(`\b(\w+)\(`).FindAllStringSubmatch(code[file], -1) {
				if in := defined[m[1]]; in != "" && in != file && filepath.Ext(in) == filepath.Ext(file) {
					calls[[2]string{file, in}] = m[1]
				}
			}
		}
		if len(calls) < 20 {
			t.Fatalf("%s: %d files call others", dir, len(calls))
		}
		for pair, name := range calls {
			if back := calls[[2]string{pair[1], pair[0]}]; back != "" && pair[0] < pair[1] {
				t.Errorf("%s calls %s of %s, which calls %s", pair[0], name, pair[1], back)
			}
		}
	}
}

// The format, its tests included, imports nothing of the heap tools, and these nothing of the
// fleet: each module builds and tests without those above it.
func TestModulesStandAlone(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")) {
			return errOrSkip(err)
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		for _, spec := range parsed.Imports {
			if of, needs := moduleOf(filepath.ToSlash(file)), moduleOf(strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")); needs > of {
				t.Errorf("%s imports %s, of a module above it", file, spec.Path.Value)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Errorf("%d files, %v", files, err)
	}
}

// moduleOf returns the module of a path in the repository: 0 for the format, 1 for heap/, and 2
// for fleet/.
func moduleOf(path string) int {
	first, _, _ := strings.Cut(path, "/")
	return map[string]int{"heap": 1, "fleet": 2}[first]
}

func TestImportsFollowTheLayout(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")) {
			return errOrSkip(err)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		seen[dir] = true
		may, known := layout[dir]
		if !known {
			t.Errorf("%s: %s is not a package of the layout", file, dir)
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !allowed(name, strings.Fields(may.packages), strings.Fields(may.libraries)) {
				t.Errorf("%s imports %s, which %s may not", file, name, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layout {
		if !seen[dir] {
			t.Errorf("no Go file in %s", dir)
		}
	}
}

// The modules do not replace each other, so that "go install MODULE/cmd/NAME@latest" works.
// Each requires the version that its workspace replaces, until that is tagged.
func TestModules(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	required := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + `(/heap)? (v\S+)`)
	replaced := regexp.MustCompile(`(?m)^(?:replace)?\s+` + regexp.QuoteMeta(module) + `(/heap)? (v\S+) =>`)
	for dir, want := range map[string]int{".": 0, "heap": 1, "fleet": 2} {
		text := read(filepath.Join(dir, "go.mod"))
		if strings.Contains(text, "replace") {
			t.Errorf("%s/go.mod has a replace directive", dir)
		}
		versions := required.FindAllStringSubmatch(text, -1)
		if len(versions) != want {
			t.Errorf("%s/go.mod requires %d other modules of ours, want %d", dir, len(versions), want)
		}
		work := replaced.FindAllStringSubmatch(read(filepath.Join(map[string]string{"fleet": "fleet"}[dir], "go.work")), -1)
		for _, v := range versions {
			if !slices.ContainsFunc(work, func(r []string) bool { return slices.Equal(r[1:], v[1:]) }) {
				t.Errorf("%s/go.mod requires %s%s %s, which its go.work does not replace", dir, module, v[1], v[2])
			}
		}
	}
}

// What a public package exports has no type of a package that is not public.
func TestPublicPackages(t *testing.T) {
	for _, dir := range public {
		if _, known := layout[dir]; !known {
			t.Errorf("%s is not a package of the layout", dir)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for name, from := range exposed(parsed) {
				if !slices.Contains(public, from) {
					t.Errorf("%s exports a declaration with %s of %s, which is not public", file, name, from)
				}
			}
		}
	}
}

// exposed returns the names of our other packages in exported declarations of a file, with the
// directories of these packages.
func exposed(file *ast.File) map[string]string {
	imports := map[string]string{} // directory by name
	for _, spec := range file.Imports {
		if dir, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ok {
			name := path.Base(dir)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = dir
		}
	}
	ast.FileExports(file) // drops what is not exported, and bodies of functions
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.ValueSpec: // its values may be anything
			n.Values = nil
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				found[x.Name+"."+n.Sel.Name] = imports[x.Name]
			}
		}
		return true
	})
	return found
}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

func allowed(name string, packages, libraries []string) bool {
	if name == module {
		return slices.Contains(packages, ".")
	}
	if dir, ok := strings.CutPrefix(name, module+"/"); ok {
		return slices.Contains(packages, dir)
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(libraries, func(l string) bool { return l == "*" || name == l || strings.HasPrefix(name, l+"/") })
}

// declarations is the most exported functions, methods, types, constants and variables of a public package: what a
// stranger has to read.
const declarations = 90

func TestFewDeclarations(t *testing.T) {
	for _, dir := range public {
		names := 0
		for _, f := range parseDir(t, dir) {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
						names++
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						switch s := s.(type) {
						case *ast.TypeSpec:
							if s.Name.IsExported() {
								names++
							}
						case *ast.ValueSpec:
							for _, n := range s.Names {
								if n.IsExported() {
									names++
								}
							}
						}
					}
				}
			}
		}
		if names == 0 || names > declarations {
			t.Errorf("%s exports %d names, want 1 to %d", dir, names, declarations)
		}
	}
}

// receiver returns the name of the type of a method.
func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if p, ok := x.(*ast.IndexExpr); ok {
		x = p.X
	}
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	return id.Name
}

// parseDir parses the files of a package, but for its tests.
func parseDir(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
