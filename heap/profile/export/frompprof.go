package export

import (
	"fmt"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// FromPprof adds a pprof profile to a Builder without an open dump, and returns it as a
// dump with the given name. It uses the values in use, if there are any, else the default
// sample type.
func FromPprof(b *profile.Builder, prof *pprof.Profile, name string) (*profile.Dump, error) {
	if b == nil || prof == nil {
		return nil, fmt.Errorf("%s: no Builder or no profile", name)
	}
	bytes, count := pprofTypes(prof)
	if bytes < 0 {
		return nil, fmt.Errorf("%s: no samples in bytes: not a heap profile", name)
	}
	for _, s := range prof.Sample {
		if len(s.Value) != len(prof.SampleType) {
			return nil, fmt.Errorf("%s: a sample has %d values, expected %d", name, len(s.Value), len(prof.SampleType))
		}
		if s.Value[bytes] < 0 || count >= 0 && s.Value[count] < 0 {
			return nil, fmt.Errorf("%s: a sample is negative: a difference of profiles, expected one", name)
		}
	}
	r := &pprofReader{addrs: map[*pprof.Location]symbol.Addr{}, modules: map[*pprof.Mapping]*symbol.Module{}}
	for _, s := range prof.Sample {
		v := profile.Value{Bytes: uint64(s.Value[bytes]), Count: 1}
		if count >= 0 {
			v.Count = uint64(s.Value[count])
		}
		if !v.IsZero() {
			b.Add(b.Path(r.stackOf(s.Location)), v)
		}
	}
	return b.End(profile.DumpInfo{Name: name, File: name, Number: 1, Boot: 1}), nil
}

// pprofTypes returns the indexes of the sample types in bytes and in counts, -1 for a
// missing type.
func pprofTypes(prof *pprof.Profile) (bytes, count int) {
	bytes, count = -1, -1
	for i, t := range prof.SampleType {
		switch {
		case t.Unit == "bytes" && (bytes < 0 || t.Type == "inuse_space" || t.Type == prof.DefaultSampleType && prof.SampleType[bytes].Type != "inuse_space"):
			bytes = i
		case t.Unit == "count" && (count < 0 || t.Type == "inuse_objects"):
			count = i
		}
	}
	return bytes, count
}

// pprofReader reads the call paths of one profile. It distinguishes locations as the profile
// does, since addresses may be missing or belong to another program.
type pprofReader struct {
	addrs   map[*pprof.Location]symbol.Addr
	modules map[*pprof.Mapping]*symbol.Module
	stack   []symbol.Addr
}

func (r *pprofReader) stackOf(locations []*pprof.Location) []symbol.Addr {
	r.stack = r.stack[:0]
	for _, l := range locations {
		if l == nil {
			continue
		}
		a, known := r.addrs[l]
		if !known {
			a = r.addr(l)
			r.addrs[l] = a
		}
		r.stack = append(r.stack, a)
	}
	return r.stack
}

func (r *pprofReader) addr(l *pprof.Location) symbol.Addr {
	at := &symbol.Location{Call: l.Address}
	if m := l.Mapping; m != nil {
		at.Own = l.Address
		if r.modules[m] == nil {
			r.modules[m] = &symbol.Module{Name: m.File, BuildID: m.BuildID, Start: m.Start, End: m.Limit, Offset: m.Offset}
		}
		at.Module = r.modules[m]
		if m.Start != 0 && l.Address >= m.Start && l.Address < m.Limit {
			at.Own += m.Offset - m.Start
		}
	}
	for i, ln := range l.Line {
		f := symbol.Frame{Line: int(ln.Line), Inlined: i+1 < len(l.Line)}
		if ln.Function != nil {
			f.Name, f.Func, f.File = ln.Function.Name, ln.Function.SystemName, ln.Function.Filename
		}
		at.Frames = append(at.Frames, f)
	}
	return symbol.Addr{PC: l.Address, Location: at}
}
