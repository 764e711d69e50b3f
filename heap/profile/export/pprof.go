package export

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// pprofBuilder makes a profile of pprof.
type pprofBuilder struct {
	p         *profile.Profile
	prof      *pprof.Profile
	notes     []string
	locations map[symbol.Addr]*pprof.Location
	modules   map[symbol.Module]*pprof.Mapping
	functions map[pprof.Function]*pprof.Function
}

// newPprof converts the last dump.
func newPprof(p *profile.Profile) *pprofBuilder {
	x := &pprofBuilder{p: p, locations: map[symbol.Addr]*pprof.Location{}, modules: map[symbol.Module]*pprof.Mapping{}, functions: map[pprof.Function]*pprof.Function{}}
	x.prof = &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &pprof.ValueType{Type: "space", Unit: "bytes"}, Period: 1, DefaultSampleType: "inuse_space",
	}
	d := last(p)
	labels := x.describe(d)
	ever, clamped := false, false
	for a, addrs := range p.Stacks() {
		s := &pprof.Sample{Label: labels, Location: make([]*pprof.Location, len(addrs)), Value: make([]int64, 4)}
		for i := range addrs {
			s.Location[i] = x.location(&addrs[i])
		}
		for i, v := range []uint64{a.Ever.Count, a.Ever.Bytes, a.Count, a.Bytes} {
			s.Value[i] = int64(min(v, math.MaxInt64))
			clamped = clamped || v > math.MaxInt64
		}
		x.prof.Sample = append(x.prof.Sample, s)
		ever = ever || !a.Ever.IsZero()
	}
	if clamped {
		x.notes = append(x.notes, "pprof: sums over 2^63-1 are written as 2^63-1, the most the format holds")
	}
	if !ever { // the dump has no allocations since the boot
		x.prof.SampleType = x.prof.SampleType[2:]
		for _, s := range x.prof.Sample {
			s.Value = s.Value[2:]
		}
	}
	// readers take the first mapping for the program, which is the lowest in a process
	slices.SortStableFunc(x.prof.Mapping, func(a, b *pprof.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	for i, m := range x.prof.Mapping {
		m.ID = uint64(i + 1)
	}
	return x
}

// describe adds the properties of a dump, its name and how it was sampled, and returns the labels
// of its samples.
func (x *pprofBuilder) describe(d *profile.Dump) map[string][]string {
	if d.Name != "" {
		x.prof.Comments = []string{d.Name}
	}
	if d.Sample > 0 {
		bytes, count := d.TotalStdErr()
		x.prof.Period = int64(min(d.Sample, math.MaxInt64))
		x.prof.Comments = append(x.prof.Comments, fmt.Sprintf("sampled; standard errors of the totals: %.0f bytes, %.0f objects", bytes, count))
	}
	labels := map[string][]string{}
	for key, value := range map[string]string{"build": d.Build, "device": d.Device, "firmware": d.Firmware} {
		if value != "" {
			labels[key] = []string{value}
		}
	}
	return labels
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
