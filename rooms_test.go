package lwsbt

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lwsbt/lwsbt"

// rooms says what each room's product code may import: other rooms, and
// libraries. Bytes flow one way, from a log line to a report; a room that is not
// here, or an import that is not, is a change of the design.
var rooms = map[string]struct{ rooms, libraries string }{
	".":           {},
	"codec":       {},
	"dump":        {rooms: "codec", libraries: "github.com/klauspost/compress"},
	"symbol":      {rooms: "codec", libraries: "github.com/ianlancetaylor/demangle golang.org/x/arch"},
	"image":       {rooms: "codec symbol", libraries: "github.com/klauspost/compress github.com/therootcompany/xz"},
	"stats":       {rooms: "codec", libraries: "github.com/olekukonko/tablewriter github.com/klauspost/compress"},
	"gen":         {rooms: "codec internal/bitstring", libraries: "github.com/google/gofuzz"},
	"gen/gentest": {rooms: "codec gen", libraries: "pgregory.net/rapid github.com/google/gofuzz"},

	"conformance":         {rooms: ". codec conformance/vectors internal/bitstring internal/naive"},
	"conformance/vectors": {},
	"conformance/mutant":  {rooms: "codec conformance internal/bitstring"},
	"conformance/interop": {rooms: "codec gen conformance"},
	"conformance/render": {rooms: "conformance conformance/interop internal/bitstring internal/naive",
		libraries: "github.com/olekukonko/tablewriter"},

	"corpus": {},
	"fuzz":   {rooms: "codec dump gen gen/gentest conformance corpus"},
	"ref-c":  {},

	"internal/bitstring": {},
	"internal/naive":     {rooms: "internal/bitstring"},
	"internal/cmdtest":   {},
	"internal/cli":       {libraries: "github.com/spf13/cobra github.com/spf13/pflag github.com/mattn/go-isatty golang.org/x/term"},

	"cmd/btconform": {rooms: ". codec gen conformance conformance/interop conformance/mutant conformance/render", libraries: "github.com/spf13/pflag github.com/olekukonko/tablewriter"},
	"cmd/btstats":   {rooms: "codec dump gen stats", libraries: "github.com/spf13/pflag github.com/mattn/go-isatty"},
	"cmd/btdecode":  {rooms: "codec dump symbol", libraries: "github.com/spf13/pflag github.com/google/pprof github.com/mattn/go-isatty"},
}

func TestRoomsImportOneWay(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")) {
			return errOrSkip(err)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		room := filepath.ToSlash(filepath.Dir(path))
		seen[room] = true
		may, known := rooms[room]
		if !known {
			t.Errorf("%s: %s is not a room of the design", path, room)
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
			if !allowed(name, strings.Fields(may.rooms), strings.Fields(may.libraries)) {
				t.Errorf("%s imports %s, which %s may not", path, name, room)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"codec", "dump", "symbol", "stats", "gen", "conformance"} {
		if !seen[room] {
			t.Errorf("no Go file in %s", room)
		}
	}
}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

func allowed(name string, rooms, libraries []string) bool {
	if name == module {
		return slices.Contains(rooms, ".")
	}
	if room, ok := strings.CutPrefix(name, module+"/"); ok {
		return slices.Contains(rooms, room)
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(libraries, func(l string) bool { return name == l || strings.HasPrefix(name, l+"/") })
}
