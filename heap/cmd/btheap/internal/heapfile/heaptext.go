package heapfile

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// The text of gperftools (docs/heapprofile.html), of Go (runtime/pprof, debug=1), and of jemalloc (prof_data.c, 3.6 to 5.3).
// google/pprof reads the first two. jemalloc has its path on a line before the sum over all threads ("t*"), and Go has
// the names of addresses on the lines below a path.
var (
	jemallocPath = regexp.MustCompile(`^@(?: 0x[0-9a-fA-F]+)*$`)
	jemallocSum  = regexp.MustCompile(`^\s+t\*: (\d+: \d+ \[\d+: \d+\])$`)
	goName       = regexp.MustCompile(`^#\t0x([0-9a-fA-F]+)\t(.+?)\+0x[0-9a-f]+\t+(.*):(\d+)$`)
)

var mapped = []byte("MAPPED_LIBRARIES:")

func isHeapText(head []byte) bool {
	return bytes.HasPrefix(head, []byte("heap profile: ")) || bytes.HasPrefix(head, []byte("heap_v2/"))
}

// readHeapText reads a file. Addresses have the names of the file, else those of the mapped files, if these are unchanged.
func readHeapText(r io.Reader) (*profile.Profile, error) {
	data, err := readWhole(r)
	if err != nil {
		return nil, err
	}
	text, maps, _ := bytes.Cut(data, mapped)
	if bytes.HasPrefix(text, []byte("heap_v2/")) {
		text = fromJemalloc(text)
	}
	p, err := profile.ParseData(slices.Concat(text, mapped, maps))
	if err == nil {
		err = checkFrames(p, len(data))
	}
	if err != nil {
		return nil, err
	}
	if goNames(p, text) {
		return p, nil
	}
	return p, nameMapped(p, maps)
}

// fromJemalloc returns the text as gperftools writes it.
func fromJemalloc(text []byte) []byte {
	var out, path []byte
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		switch m := jemallocSum.FindSubmatch(line); {
		case out == nil:
			out = fmt.Appendf(out, "heap profile: 0: 0 [0: 0] @ %s\n", line)
		case jemallocPath.Match(line):
			path = line
		case m != nil && path != nil:
			out, path = fmt.Appendf(out, "%s %s\n", m[1], path), nil
		}
	}
	return out
}

// goNames names the addresses that Go names, and reports whether there are any. Go prints inlined functions on several
// lines, innermost first, and leaves out the functions of its runtime at both ends of a path.
func goNames(p *profile.Profile, text []byte) bool {
	at := map[uint64]*profile.Location{}
	for _, l := range p.Location {
		at[l.Address] = l
	}
	functions, named := map[profile.Function]*profile.Function{}, map[*profile.Location]bool{}
	path := map[*profile.Location]bool{} // those that this path names
	for line := range bytes.Lines(text) {
		m := goName.FindSubmatch(bytes.TrimRight(line, "\r\n"))
		if m == nil {
			for l := range path {
				named[l] = true
			}
			clear(path)
			continue
		}
		address, _ := strconv.ParseUint(string(m[1]), 16, 64)
		number, _ := strconv.ParseInt(string(m[4]), 10, 64)
		if l := at[address]; l != nil && !named[l] {
			path[l] = true
			l.Line = append(l.Line, profile.Line{Function: function(p, functions, string(m[2]), string(m[3])), Line: number})
		}
	}
	for _, s := range p.Sample {
		has := func(l *profile.Location) bool { return len(l.Line) > 0 }
		if from := slices.IndexFunc(s.Location, has); from >= 0 {
			s.Location = s.Location[from:]
			for !has(s.Location[len(s.Location)-1]) {
				s.Location = s.Location[:len(s.Location)-1]
			}
		}
	}
	return len(p.Function) > 0
}

// nameMapped names the addresses by the files of a memory map.
func nameMapped(p *profile.Profile, maps []byte) error {
	list, err := symbol.ReadMaps(bytes.NewReader(bytes.TrimLeft(maps, "\r\n")), string(mapped))
	if err != nil {
		return nil // addresses without names are still call paths
	}
	process, err := symbol.NewProcess(symbol.Config{DebugDirs: symbol.DebugDirs()})
	if err != nil {
		return err
	}
	defer process.Close()
	process.Map(list)
	functions := map[profile.Function]*profile.Function{}
	for _, l := range p.Location {
		for _, f := range process.Resolve(nil, &codec.Stack{PCs: []uint64{l.Address + 1}}, nil)[0].Frames() {
			l.Line = append(l.Line, profile.Line{Function: function(p, functions, f.Name, f.File), Line: int64(f.Line)})
		}
	}
	return nil
}

// function returns the function of p with a name and a file.
func function(p *profile.Profile, known map[profile.Function]*profile.Function, name, file string) *profile.Function {
	key := profile.Function{Name: name, SystemName: name, Filename: file}
	f := known[key]
	if f == nil {
		f = &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, SystemName: name, Filename: file}
		known[key] = f
		p.Function = append(p.Function, f)
	}
	return f
}
