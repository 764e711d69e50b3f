package page

import (
	"cmp"
	"fmt"
	"math"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// dumpOf returns the heap of a build as a dump. Its values are means per device.
func dumpOf(b *profile.Builder, holders []query.Holder, name string) *profile.Dump {
	known := map[string]symbol.Addr{}
	for _, h := range holders {
		v := profile.Value{Bytes: uint64(math.Round(h.Mean)), Count: uint64(math.Round(h.Blocks))}
		if !v.IsZero() {
			b.Add(b.Path(addresses(known, h.Stack)), v)
		}
	}
	return b.End(profile.DumpInfo{Name: name, File: name, Number: 1, Boot: 1})
}

// addresses returns the addresses of a stack, innermost first. Inlined functions share the address of the function that
// contains them.
func addresses(known map[string]symbol.Addr, frames []query.Frame) (list []symbol.Addr) {
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n].Address == frames[0].Address && frames[n] != frames[n-1] {
			n++
		}
		key := fmt.Sprint(frames[:n])
		a, ok := known[key]
		if !ok {
			fmt.Sscanf(frames[0].Address, "0x%x", &a.PC)
			a.Location = &symbol.Location{Call: a.PC}
			for i, f := range frames[:n] {
				a.Location.Frames = append(a.Location.Frames, symbol.Frame{Name: cmp.Or(f.Function, f.Address), File: f.File, Line: int(f.Line), Inlined: i+1 < n})
			}
			known[key] = a
		}
		list, frames = append(list, a), frames[n:]
	}
	return list
}
