// Package heapfile reads the files of other heap profilers: pprof (protobuf, and the text of
// gperftools and jemalloc), heaptrack, valgrind's DHAT, and the kernel's page_owner. It
// converts each file to one or more pprof profiles with named call paths.
package heapfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/internal/decompress"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Profile is a profile of a file.
type Profile struct {
	*profile.Profile
	Name string // the file, and for one of several profiles its moment: "x.zst: peak"
}

// format is a kind of file.
type format struct {
	name string
	// begins reports whether a file whose decompressed data begins with head may have the
	// format.
	begins func(head []byte) bool
	// read reads a file. Its profiles' Names are moments, "" for a file with one profile.
	read func(io.Reader) ([]Profile, error)
	// certain reports whether head proves the format. If not, a file that cannot be read
	// may be a log.
	certain func(head []byte) bool
}

func always([]byte) bool { return true }

var formats = []format{
	{"profile of pprof", isPprof, readPprof, isCertainlyPprof},
	{"heap profile of gperftools or jemalloc", isHeapText, readHeapText, always},
	{"heaptrack", isHeaptrack, readHeaptrack, always},
	{"DHAT", isDHAT, readDHAT, always},
	{"page_owner", isPageOwner, readPageOwner, always},
}

// Limits of a file, decompressed.
const (
	maxFile  = 4 << 30   // bytes, of a format that is read line by line
	maxWhole = 128 << 20 // bytes, of a format that is read at once
	maxLine  = 1 << 20   // bytes
	maxParts = 1 << 27   // entries, or frames of all samples
	headSize = 512
)

// errTooLarge is the error for a file that exceeds a limit.
var errTooLarge = errors.New("too large")

// limited is a reader that fails beyond a number of bytes.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// readWhole reads a file of a format that is read at once.
func readWhole(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	if len(data) > maxWhole {
		return nil, fmt.Errorf("over %d MB, decompressed: %w", maxWhole>>20, errTooLarge)
	}
	return data, err
}

// readLines calls line with each line of a file. An error names the line.
func readLines(r io.Reader, line func(text []byte) error) error {
	lines := bufio.NewScanner(&limited{r, maxFile})
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := line(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

// Read reads a file. It returns nil if the file has none of the formats, or is not a regular
// file. Names in the profiles are safe to print.
func Read(path string) ([]Profile, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil // reading it as a log returns the error
	}
	defer f.Close()
	var magic [6]byte
	n, _ := f.ReadAt(magic[:], 0)
	in := decompress.NewReader(decompress.FormatOf(magic[:n]), f)
	defer in.Close()
	buffered := bufio.NewReaderSize(in, 64<<10)
	peeked, _ := buffered.Peek(headSize)
	head := bytes.Clone(peeked)
	for i := range formats {
		k := &formats[i]
		if !k.begins(head) {
			continue
		}
		list, err := k.read(buffered)
		switch {
		case err != nil && k.certain(head):
			return nil, fmt.Errorf("%s: %s: %w", path, k.name, decompress.Reason(err))
		case err != nil:
			return nil, nil
		}
		for i := range list {
			p := &list[i]
			if p.Name = strings.TrimSuffix(filepath.ToSlash(path)+": "+p.Name, ": "); len(list) == 1 {
				p.Name = path
			}
			clean(p.Profile)
		}
		return list, nil
	}
	return nil, nil
}

// clean makes the names of a profile, which are untrusted, safe to print.
func clean(p *profile.Profile) {
	for _, f := range p.Function {
		f.Name, f.SystemName, f.Filename = printable.Text(f.Name), printable.Text(f.SystemName), printable.Text(f.Filename)
	}
	for _, m := range p.Mapping {
		m.File, m.BuildID = printable.Text(m.File), printable.Text(m.BuildID)
	}
}

// builder makes a profile of live memory.
type builder struct {
	profile   *profile.Profile
	functions map[profile.Function]*profile.Function
	mappings  map[string]*profile.Mapping
}

func newBuilder() *builder {
	return &builder{functions: map[profile.Function]*profile.Function{}, mappings: map[string]*profile.Mapping{}, profile: &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 1, DefaultSampleType: "inuse_space",
	}}
}

// location adds a location: its functions, innermost inlined first.
func (b *builder) location(address uint64, module string, lines ...profile.Line) *profile.Location {
	l := &profile.Location{ID: uint64(len(b.profile.Location) + 1), Address: address, Line: lines}
	if module != "" {
		m := b.mappings[module]
		if m == nil {
			m = &profile.Mapping{ID: uint64(len(b.profile.Mapping) + 1), File: module, HasFunctions: true}
			b.mappings[module] = m
			b.profile.Mapping = append(b.profile.Mapping, m)
		}
		l.Mapping = m
	}
	b.profile.Location = append(b.profile.Location, l)
	return l
}

// line returns a line of a function.
func (b *builder) line(name, file string, number int64) profile.Line {
	key := profile.Function{Name: name, SystemName: name, Filename: file}
	f := b.functions[key]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.profile.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[key] = f
		b.profile.Function = append(b.profile.Function, f)
	}
	return profile.Line{Function: f, Line: number}
}

// with returns the profile with other samples.
func (b *builder) with(samples []*profile.Sample) *profile.Profile {
	p := b.profile
	return &profile.Profile{SampleType: p.SampleType, PeriodType: p.PeriodType, Period: p.Period, DefaultSampleType: p.DefaultSampleType,
		Mapping: p.Mapping, Location: p.Location, Function: p.Function, Sample: samples}
}
