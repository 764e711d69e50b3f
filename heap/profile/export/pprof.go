package export

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// newPprofBuilder begins the profile of the last dump, without its samples.
func newPprofBuilder(p *profile.Profile) *pprofBuilder {
	x := &pprofBuilder{p: p, labels: map[string][]string{}, locations: map[symbol.Addr]*pprof.Location{}, modules: map[symbol.Module]*pprof.Mapping{},
		functions: map[pprof.Function]*pprof.Function{}}
	x.prof = &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &pprof.ValueType{Type: "space", Unit: "bytes"}, Period: 1, DefaultSampleType: "inuse_space",
	}
	d, _ := last(p)
	x.describe(d)
	for _, list := range []iter.Seq[profile.Allocation]{d.Allocations(), d.Freed()} {
		for a := range list {
			x.ever = x.ever || !a.Ever.IsZero()
		}
	}
	if x.ever {
		x.prof.SampleType = append([]*pprof.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}}, x.prof.SampleType...)
	}
	return x
}

// samples yields the samples, whose slices are valid until the next, and adds their locations to
// the profile.
func (x *pprofBuilder) samples() iter.Seq[pprof.Sample] {
	return func(yield func(pprof.Sample) bool) {
		s := pprof.Sample{Label: x.labels}
		for a, addrs := range x.p.Stacks() {
			s.Location, s.Value = s.Location[:0], s.Value[:0]
			for i := range addrs {
				s.Location = append(s.Location, x.location(&addrs[i]))
			}
			values := []uint64{a.Ever.Count, a.Ever.Bytes, a.Count, a.Bytes}
			if !x.ever {
				values = values[2:]
			}
			for _, v := range values {
				n, over := clamp(v)
				x.clamped = x.clamped || over
				s.Value = append(s.Value, n)
			}
			if !yield(s) {
				return
			}
		}
	}
}

// end completes the profile after its samples.
func (x *pprofBuilder) end() (prof *pprof.Profile, notes []string) {
	// readers take the first mapping for the program, which is the lowest in a process
	slices.SortStableFunc(x.prof.Mapping, func(a, b *pprof.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	for i, m := range x.prof.Mapping {
		m.ID = uint64(i + 1)
	}
	if x.clamped {
		notes = append(notes, "pprof: sums over 2^63-1 are written as 2^63-1, the most the format holds")
	}
	return x.prof, notes
}

// writePprof writes the samples as they are made: the format repeats the locations of a call path
// in each sample. Package pprof then writes the rest, with the last sample.
func writePprof(w *bufio.Writer, p *profile.Profile, _ Options) ([]string, error) {
	x := newPprofBuilder(p)
	e := pprofEncoder{}
	types := e.strings(x)
	z := gzip.NewWriter(w)
	if _, err := z.Write(types); err != nil {
		return nil, err
	}
	var last pprof.Sample
	for s := range x.samples() {
		if last.Value != nil {
			if _, err := z.Write(e.sample(&last)); err != nil {
				return nil, err
			}
		}
		last.Location, last.Value, last.Label = append(last.Location[:0], s.Location...), append(last.Value[:0], s.Value...), s.Label
	}
	if last.Value != nil {
		x.prof.Sample = []*pprof.Sample{&last}
	}
	prof, notes := x.end()
	var rest bytes.Buffer
	if err := prof.WriteUncompressed(&rest); err != nil {
		return notes, err
	}
	after, ok := bytes.CutPrefix(rest.Bytes(), types)
	if !ok {
		return notes, errors.New("pprof: the profile does not begin with its sample types")
	}
	if _, err := z.Write(after); err != nil {
		return notes, err
	}
	return notes, z.Close()
}

// pprofEncoder encodes samples as package pprof does.
type pprofEncoder struct {
	labels              [][2]int64 // numbers of the keys and values of each sample's labels
	message, body, list []byte
}

// strings numbers the strings of the labels, and returns the sample types, which are field 1 of a
// profile. The table of strings begins with "", the sample types, and the labels of the first
// sample.
func (e *pprofEncoder) strings(x *pprofBuilder) (types []byte) {
	numbers := map[string]int64{"": 0}
	number := func(s string) int64 {
		n, known := numbers[s]
		if !known {
			n = int64(len(numbers))
			numbers[s] = n
		}
		return n
	}
	for _, t := range x.prof.SampleType {
		types = appendBytes(types, 1, appendNumbers(nil, number(t.Type), number(t.Unit)))
	}
	for _, key := range slices.Sorted(maps.Keys(x.labels)) {
		for _, value := range x.labels[key] {
			e.labels = append(e.labels, [2]int64{number(key), number(value)})
		}
	}
	return types
}

// sample returns a sample as field 2 of a profile: its location_id (1), value (2) and label (3).
// The result is valid until the next call.
func (e *pprofEncoder) sample(s *pprof.Sample) []byte {
	e.body = e.body[:0]
	e.addList(1, len(s.Location), func(i int) uint64 { return s.Location[i].ID })
	e.addList(2, len(s.Value), func(i int) uint64 { return uint64(s.Value[i]) })
	for _, l := range e.labels {
		e.list = appendNumbers(e.list[:0], l[0], l[1])
		e.body = appendBytes(e.body, 3, e.list)
	}
	e.message = appendBytes(e.message[:0], 2, e.body)
	return e.message
}

// addList adds n numbers as a field: packed if there are more than two.
func (e *pprofEncoder) addList(field byte, n int, at func(int) uint64) {
	e.list = e.list[:0]
	for i := range n {
		if n <= 2 {
			e.list = append(e.list, field<<3)
		}
		e.list = binary.AppendUvarint(e.list, at(i))
	}
	if n > 2 {
		e.body = appendBytes(e.body, field, e.list)
	} else {
		e.body = append(e.body, e.list...)
	}
}

// appendNumbers appends fields 1 and 2, unless they are 0.
func appendNumbers(dst []byte, numbers ...int64) []byte {
	for i, n := range numbers {
		if n != 0 {
			dst = binary.AppendUvarint(append(dst, byte(i+1)<<3), uint64(n))
		}
	}
	return dst
}

// appendBytes appends a field of bytes.
func appendBytes(dst []byte, field byte, value []byte) []byte {
	dst = binary.AppendUvarint(append(dst, field<<3|2), uint64(len(value)))
	return append(dst, value...)
}

// describe adds the properties of a dump: its name, how it was sampled, and labels.
func (x *pprofBuilder) describe(d *profile.Dump) {
	if d.Name != "" {
		x.prof.Comments = []string{d.Name}
	}
	if d.Sample > 0 {
		bytes, count := d.TotalStdErr()
		x.prof.Period, _ = clamp(d.Sample)
		x.prof.Comments = append(x.prof.Comments, fmt.Sprintf("sampled; standard errors of the totals: %.0f bytes, %.0f objects", bytes, count))
	}
	for key, value := range map[string]string{"build": d.Build, "device": d.Device, "firmware": d.Firmware} {
		if value != "" {
			x.labels[key] = []string{value}
		}
	}
}

type pprofBuilder struct {
	p         *profile.Profile
	ever      bool // the dump has allocations since the boot
	clamped   bool // a sum does not fit
	prof      *pprof.Profile
	labels    map[string][]string // of each sample
	locations map[symbol.Addr]*pprof.Location
	modules   map[symbol.Module]*pprof.Mapping
	functions map[pprof.Function]*pprof.Function
}

// location returns the location of an address.
func (x *pprofBuilder) location(a *symbol.Addr) *pprof.Location {
	l := x.locations[*a]
	if l != nil {
		return l
	}
	l = &pprof.Location{ID: uint64(len(x.prof.Location) + 1), Address: callOf(a)}
	x.locations[*a] = l
	x.prof.Location = append(x.prof.Location, l)
	if a.Location != nil && a.Location.Module != nil {
		l.Mapping = x.mapping(a.Location)
	}
	if len(a.Frames()) > 0 {
		for _, f := range x.p.Frames(*a) {
			l.Line = append(l.Line, pprof.Line{Function: x.function(f), Line: int64(f.Line)})
		}
	}
	return l
}

// mapping returns the mapping that a location is in.
func (x *pprofBuilder) mapping(l *symbol.Location) *pprof.Mapping {
	key := symbol.Module{Name: l.Module.Name, BuildID: l.Module.BuildID, Start: l.Module.Start}
	m := x.modules[key]
	if m == nil {
		m = &pprof.Mapping{Start: l.Module.Start, Limit: l.Module.End, Offset: l.Module.Offset, File: l.Module.Name, BuildID: l.Module.BuildID}
		x.modules[key] = m
		x.prof.Mapping = append(x.prof.Mapping, m)
	}
	if len(l.Frames) > 0 {
		m.HasFunctions = true
		m.HasFilenames = m.HasFilenames || l.Frames[0].File != ""
		m.HasLineNumbers = m.HasLineNumbers || l.Frames[0].Line > 0
		m.HasInlineFrames = m.HasInlineFrames || len(l.Frames) > 1
	}
	return m
}

// function returns the function of a frame.
func (x *pprofBuilder) function(f symbol.Frame) *pprof.Function {
	key := pprof.Function{Name: f.Name, SystemName: f.Func, Filename: f.File}
	known := x.functions[key]
	if known == nil {
		known = &pprof.Function{ID: uint64(len(x.functions) + 1), Name: f.Name, SystemName: f.Func, Filename: f.File}
		x.functions[key] = known
		x.prof.Function = append(x.prof.Function, known)
	}
	return known
}

// callOf returns the address in memory of the call before return address a, or a itself if
// nothing is known of it.
func callOf(a *symbol.Addr) uint64 {
	if l := a.Location; l != nil && (l.Module != nil || len(l.Frames) > 0) {
		return l.Call
	}
	return a.PC
}
