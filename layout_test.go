package lwsbt

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lwsbt/lwsbt"

// layout lists the packages of this module and what each may import, tests apart:
// other packages of the module, and libraries. Bytes flow one way, from a log line
// to a report. A package or an import that is not listed changes the design.
var layout = map[string]struct{ packages, libraries string }{
	".":               {},
	"codec":           {},
	"codec/callpath":  {packages: "codec"},
	"codec/recording": {packages: "codec codec/callpath"},
	"symbol":          {packages: "codec internal/arch symbol/internal/dwarf internal/elfnote internal/printable internal/sysroot", libraries: "github.com/ianlancetaylor/demangle"},
	"internal/arch":   {},

	"symbol/internal/dwarf": {},

	"heap/core/unwind":       {packages: "internal/arch", libraries: "golang.org/x/arch"},
	"heap/core/unwind/truth": {packages: "heap/core/unwind"},

	"heap/core":                 {packages: "codec codec/callpath symbol internal/arch internal/decompress"},
	"heap/core/alloc":           {packages: "heap/core"},
	"heap/log":                  {packages: "codec codec/callpath symbol heap/profile heap/log/internal/foreign heap/log/internal/input heap/log/internal/process internal/printable"},
	"heap/log/internal/input":   {packages: "internal/decompress", libraries: "golang.org/x/text"},
	"heap/log/internal/foreign": {packages: "codec"},
	"heap/log/internal/process": {packages: "symbol internal/printable"},
	"heap/internal/heapmap":     {packages: "codec heap/profile"},
	"heap/report":               {packages: "heap/profile heap/internal/heapmap internal/printable heap/internal/leaktext"},
	"stats":                     {packages: "codec codec/callpath internal/cli internal/printable", libraries: "github.com/klauspost/compress"},
	"heap/profile":              {packages: "symbol internal/printable", libraries: "github.com/google/pprof"},
	"gen":                       {packages: "codec codec/callpath internal/bitstring", libraries: "github.com/google/gofuzz"},
	"gen/gentest":               {packages: "codec codec/callpath gen", libraries: "pgregory.net/rapid github.com/google/gofuzz"},

	"conformance":         {packages: ". codec codec/callpath codec/recording conformance/vectors internal/bitstring"},
	"conformance/vectors": {},
	"internal/naive":      {packages: "internal/bitstring"}, // tests import it
	"conformance/mutant":  {packages: "codec conformance internal/bitstring"},
	"conformance/interop": {packages: "codec gen conformance"},
	"conformance/render":  {packages: "codec conformance conformance/interop internal/bitstring internal/cli"},

	"corpus": {},
	"device": {},

	"heap/examples/largest": {packages: "heap/log heap/profile"},

	"device/test/capture":    {packages: "device/tools/functions"},
	"device/tools/functable": {packages: "device/tools/functions"},
	"device/tools/functions": {},

	"fuzz":  {packages: "codec codec/callpath heap/log gen gen/gentest conformance corpus"},
	"ref-c": {}, "ref-c/stacks": {packages: "gen"},

	"internal/bitstring":     {},
	"heap/internal/heapfile": {packages: "codec symbol internal/printable internal/decompress", libraries: "github.com/google/pprof"},
	"internal/decompress":    {libraries: "github.com/klauspost/compress github.com/therootcompany/xz"},
	"internal/elfnote":       {},
	"internal/sysroot":       {},
	"internal/printable":     {},
	"heap/internal/leaktext": {packages: "heap/profile internal/printable"},
	"internal/cmdtest":       {libraries: "github.com/spf13/cobra"},
	"internal/cli/logflags":  {packages: "codec symbol heap/profile heap/log internal/cli", libraries: "github.com/spf13/cobra github.com/spf13/pflag go.bug.st/serial"},
	"internal/cli":           {packages: "internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/mattn/go-isatty golang.org/x/term github.com/olekukonko/tablewriter"},

	"cmd/btconform":     {packages: "codec conformance conformance/interop conformance/mutant conformance/render internal/cli", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btcore":   {packages: "codec symbol heap/core heap/core/alloc heap/core/unwind internal/cli internal/sysroot", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btheap":   {packages: "codec heap/log heap/profile heap/internal/heapmap heap/report heap/internal/heapfile heap/internal/leaktext internal/cli internal/cli/logflags internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/google/pprof github.com/charmbracelet/bubbletea github.com/charmbracelet/x/ansi"},
	"heap/record":       {packages: "codec codec/callpath internal/printable internal/elfnote", libraries: "github.com/klauspost/compress golang.org/x/sys"},
	"cmd/btstats":       {packages: "codec gen heap/log stats symbol internal/cli internal/cli/logflags", libraries: "github.com/spf13/cobra github.com/spf13/pflag"},
	"heap/cmd/btrecord": {packages: "device internal/cli heap/record", libraries: "github.com/spf13/cobra github.com/spf13/pflag golang.org/x/sys"},
	"heap/cmd/btdecode": {packages: "codec codec/callpath symbol heap/profile heap/log internal/cli internal/cli/logflags internal/printable", libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/fatih/color"},
}

func TestImportsFollowTheLayout(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")) {
			return errOrSkip(err)
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != "." && err == nil {
			return fs.SkipDir // a module of its own
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		seen[dir] = true
		may, known := layout[dir]
		if !known {
			t.Errorf("%s: %s is not a package of the layout", path, dir)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !allowed(name, strings.Fields(may.packages), strings.Fields(may.libraries)) {
				t.Errorf("%s imports %s, which %s may not", path, name, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"codec", "heap/log", "symbol", "stats", "gen", "conformance"} {
		if !seen[dir] {
			t.Errorf("no Go file in %s", dir)
		}
	}
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
	return slices.ContainsFunc(libraries, func(l string) bool { return name == l || strings.HasPrefix(name, l+"/") })
}
