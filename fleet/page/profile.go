package page

import (
	"fmt"
	"math"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/fleet/query"
)

// pprofOf returns the heap of a build as a pprof profile with the values inuse_objects and
// inuse_space, which are means per device. t is the time of the profile.
func pprofOf(holders []query.Holder, t time.Time) *pprof.Profile {
	p := &pprof.Profile{
		SampleType:        []*pprof.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		DefaultSampleType: "inuse_space",
		PeriodType:        &pprof.ValueType{Type: "space", Unit: "bytes"}, Period: 1,
		TimeNanos: t.UnixNano(),
	}
	b := builder{p: p, functions: map[string]*pprof.Function{}, locations: map[string]*pprof.Location{}}
	for _, h := range holders {
		p.Sample = append(p.Sample, &pprof.Sample{
			Location: b.stack(h.Stack),
			Value:    []int64{int64(math.Round(h.Blocks)), int64(math.Round(h.Mean))},
		})
	}
	return p
}

// builder creates the functions and locations of a pprof.
type builder struct {
	p         *pprof.Profile
	functions map[string]*pprof.Function
	locations map[string]*pprof.Location
}

// stack returns the locations of a call path, innermost first. Inlined functions share the
// address and the location of the function that contains them.
func (b *builder) stack(frames []query.Frame) (list []*pprof.Location) {
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n].Address == frames[0].Address && frames[n] != frames[n-1] {
			n++
		}
		list = append(list, b.location(frames[:n]))
		frames = frames[n:]
	}
	return list
}

func (b *builder) location(frames []query.Frame) *pprof.Location {
	key := fmt.Sprint(frames)
	if l := b.locations[key]; l != nil {
		return l
	}
	l := &pprof.Location{ID: uint64(len(b.p.Location) + 1)}
	fmt.Sscanf(frames[0].Address, "0x%x", &l.Address)
	for _, f := range frames {
		name := f.Function
		if name == "" {
			name = f.Address
		}
		l.Line = append(l.Line, pprof.Line{Function: b.function(name, f.File), Line: int64(f.Line)})
	}
	b.locations[key] = l
	b.p.Location = append(b.p.Location, l)
	return l
}

func (b *builder) function(name, file string) *pprof.Function {
	key := name + "\x00" + file
	f := b.functions[key]
	if f == nil {
		f = &pprof.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[key] = f
		b.p.Function = append(b.p.Function, f)
	}
	return f
}
