package main

import (
	"bufio"
	"cmp"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/symbol"
)

// pprofSink writes a heap profile as pprof reads it: live objects and bytes, a
// location an address, at the call.
type pprofSink struct {
	*stacks
	w       *bufio.Writer
	process *symbol.Process

	prof      *profile.Profile
	mappings  map[mappingKey]*profile.Mapping
	locations map[locationKey]*profile.Location
	functions map[functionKey]*profile.Function
}

type mappingKey struct {
	start uint64
	file  string
}

type locationKey struct {
	spot *symbol.Location
}

type functionKey struct{ name, linkage, file string }

func (p *pprofSink) close() error {
	p.prof = &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		DefaultSampleType: "inuse_space",
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1,
	}
	p.mappings = map[mappingKey]*profile.Mapping{}
	p.locations = map[locationKey]*profile.Location{}
	p.functions = map[functionKey]*profile.Function{}
	for _, st := range p.list {
		s := &profile.Sample{Value: []int64{st.count, st.bytes}}
		for _, at := range st.places {
			if l := p.location(at); l != nil {
				s.Location = append(s.Location, l)
			}
		}
		p.prof.Sample = append(p.prof.Sample, s)
	}
	// Readers take the first mapping for the program: the lowest, in a process.
	slices.SortStableFunc(p.prof.Mapping, func(a, b *profile.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	for i, m := range p.prof.Mapping {
		m.ID = uint64(i + 1)
	}
	if err := p.prof.CheckValid(); err != nil {
		return err
	}
	return p.prof.Write(p.w)
}

// location is an address's location, nil if all of it is hidden.
func (p *pprofSink) location(at symbol.FrameAddr) *profile.Location {
	key := locationKey{at.Location}
	if l, ok := p.locations[key]; ok {
		return l
	}
	l := &profile.Location{Address: at.LookupPC, Mapping: p.mapping(at.Location)}
	for _, f := range at.Frames {
		if p.hide(f.Name) {
			continue
		}
		fn := f.Name
		if fn == "" {
			fn = address(at)
		}
		l.Line = append(l.Line, profile.Line{Function: p.function(fn, f), Line: int64(f.Line)})
	}
	if len(at.Frames) > 0 && len(l.Line) == 0 {
		p.locations[key] = nil
		return nil
	}
	l.ID = uint64(len(p.prof.Location) + 1)
	p.locations[key] = l
	p.prof.Location = append(p.prof.Location, l)
	return l
}

func (p *pprofSink) function(name string, f symbol.Frame) *profile.Function {
	key := functionKey{name, f.Func, f.File}
	fn := p.functions[key]
	if fn == nil {
		fn = &profile.Function{ID: uint64(len(p.prof.Function) + 1), Name: name, SystemName: f.Func, Filename: p.file(f.File)}
		p.functions[key] = fn
		p.prof.Function = append(p.prof.Function, fn)
	}
	return fn
}

// mapping is the mapping an address is in: one of the map's, or the whole file
// where there is no map.
func (p *pprofSink) mapping(s *symbol.Location) *profile.Mapping {
	if s.Module == "" {
		return nil
	}
	m := profile.Mapping{File: s.Module, BuildID: s.BuildID}
	switch {
	case s.Mapping != nil:
		m.Start, m.Limit, m.Offset = s.Mapping.Start, s.Mapping.End, s.Mapping.Offset
	case s.File != nil:
		low, high := s.File.Span()
		m.Start, m.Limit = low+s.PC-s.ObjAddr, high+s.PC-s.ObjAddr
	}
	key := mappingKey{m.Start, m.File}
	known := p.mappings[key]
	if known == nil {
		m.ID = uint64(len(p.prof.Mapping) + 1)
		known = &m
		p.mappings[key] = known
		p.prof.Mapping = append(p.prof.Mapping, known)
	}
	if len(s.Frames) > 0 {
		known.HasFunctions = true
		known.HasFilenames = known.HasFilenames || s.Frames[0].File != ""
		known.HasLineNumbers = known.HasLineNumbers || s.Frames[0].Line > 0
		known.HasInlineFrames = known.HasInlineFrames || len(s.Frames) > 1
	}
	return known
}
