package profile

import (
	"fmt"

	"github.com/google/pprof/profile"
)

// AddPprof adds a profile of pprof as a dump: its values in use, if it has these, else
// its default sample type.
func (p *Profile) AddPprof(prof *profile.Profile, name string) (*Dump, error) {
	bytes, count := -1, -1
	for i, t := range prof.SampleType {
		switch {
		case t.Unit == "bytes" && (bytes < 0 || t.Type == "inuse_space" || t.Type == prof.DefaultSampleType && prof.SampleType[bytes].Type != "inuse_space"):
			bytes = i
		case t.Unit == "count" && (count < 0 || t.Type == "inuse_objects"):
			count = i
		}
	}
	if bytes < 0 {
		return nil, fmt.Errorf("%s: no samples in bytes: not a heap profile", name)
	}
	d := p.Begin(Dump{Name: name, File: name, Number: int64(len(p.Dumps) + 1), Boot: 1})
	modules := map[*profile.Mapping]*Module{}
	tag := uint32(len(p.Dumps)) << 2
	var path []LocationID
	for _, s := range prof.Sample {
		v := Value{Count: 1}
		if s.Value[bytes] < 0 || count >= 0 && s.Value[count] < 0 {
			return nil, fmt.Errorf("%s: a sample is negative: a difference of profiles, expected one", name)
		}
		v.Bytes = uint64(s.Value[bytes])
		if count >= 0 {
			v.Count = uint64(s.Value[count])
		}
		if v.IsZero() {
			continue
		}
		path = path[:0]
		for _, l := range s.Location {
			id, fresh := p.Location(l.ID, tag) // numbers, since addresses may be missing
			path = append(path, id)
			if !fresh {
				continue
			}
			at := &Location{Addr: l.Address, Call: l.Address, ObjAddr: l.Address}
			if l.Mapping != nil {
				m := modules[l.Mapping]
				if m == nil {
					m = &Module{Path: l.Mapping.File, BuildID: l.Mapping.BuildID, Start: l.Mapping.Start, Limit: l.Mapping.Limit, Offset: l.Mapping.Offset}
					modules[l.Mapping] = m
				}
				at.Module = m
			}
			for i, ln := range l.Line {
				f := Frame{Line: int(ln.Line), Inlined: i+1 < len(l.Line)}
				if ln.Function != nil {
					f.Func, f.Linkage, f.File = ln.Function.Name, ln.Function.SystemName, ln.Function.Filename
				}
				at.Frames = append(at.Frames, f)
			}
			p.Describe(id, at)
		}
		id, _ := p.Path(path)
		p.Add(id, v)
	}
	p.End()
	return d, nil
}
