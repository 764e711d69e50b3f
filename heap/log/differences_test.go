package heaplog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Differences have the values of their bases, whichever of the last dumps these are: with call paths that
// were removed and come again, that have values since the boot, and of which two have the same addresses.
func TestDifferencesOfAnyBase(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		flags := []callpath.Flags{0, callpath.Ever | callpath.Peak}[seed%2]
		code := []string{"8000000+1000", "8000000+1000,8000800+1000"}[seed/2%2] // then two offsets are one address from 0x8000800 on
		text := fmt.Appendf(nil, "~h#boot code=%s shift=0\n", code)
		w := callpath.Writer{Flags: flags}
		const dumps = 80
		type values map[uint64]callpath.Entry // by code offset
		wants := make([]values, dumps)
		for d := range dumps {
			wants[d] = values{}
			keys := " k=paths"
			if d > 0 && rng.IntN(10) > 0 {
				base := max(0, d-1-rng.IntN(1+rng.IntN(20)))
				keys = fmt.Sprintf(" k=diff base=%d", base)
				for x, e := range wants[base] {
					if e.Live > 0 {
						wants[d][x] = e
					}
				}
			}
			text = fmt.Appendf(text, "~h#begin %d%s\n", d, keys)
			w.Dump = uint32(d)
			changed := map[uint64]bool{}
			for range rng.IntN(1 + rng.IntN(40)) {
				x := rng.Uint64N(0x1400) &^ 0x3f
				if code == "8000000+1000" {
					x %= 0x1000
				}
				if x == 0 || changed[x] {
					continue
				}
				changed[x] = true
				e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: x}}}}
				if rng.IntN(3) > 0 {
					e.Live, e.Bytes = 1+rng.Uint64N(9), 1+rng.Uint64N(99)
				}
				if flags != 0 {
					e.Allocs, e.AllocBytes, e.Peak = e.Live+rng.Uint64N(5), e.Bytes+rng.Uint64N(50), e.Bytes+rng.Uint64N(9)
				}
				wants[d][x] = e
				var err error
				if text, err = w.Append(text, &e); err != nil {
					t.Fatal(err)
				}
			}
			text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
		}
		r := open(t, bytes.NewReader(text))
		defer r.Close()
		d := 0
		for got, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			if want, list := allocationsOf(wants[d]), dumpAllocations(got); !slices.Equal(want, list) {
				t.Fatalf("seed %d, dump %d:\n%v, want\n%v", seed, d, list, want)
			}
			var total profile.Value
			for _, e := range wants[d] {
				total.Add(profile.Value{Bytes: e.Bytes, Count: e.Live})
			}
			if got.Total != total {
				t.Fatalf("seed %d, dump %d: total %v, want %v", seed, d, got.Total, total)
			}
			d++
		}
		if d != dumps {
			t.Fatalf("%d dumps, want %d", d, dumps)
		}
	}
}

// allocationsOf returns the values by address.
func allocationsOf(want map[uint64]callpath.Entry) (list []string) {
	type sum struct{ live, bytes, allocs, allocBytes, peak uint64 }
	sums := map[uint64]sum{}
	for x, e := range want {
		if x >= 0x1000 {
			x -= 0x800 // the second range
		}
		s := sums[x]
		sums[x] = sum{s.live + e.Live, s.bytes + e.Bytes, s.allocs + e.Allocs, s.allocBytes + e.AllocBytes, s.peak + e.Peak}
	}
	for x, s := range sums {
		if s != (sum{}) {
			list = append(list, fmt.Sprintf("%x: %d", 0x8000000+x, s))
		}
	}
	slices.Sort(list)
	return list
}

func dumpAllocations(d *profile.Dump) (list []string) {
	add := func(a profile.Allocation) {
		at := a.Append(nil)
		list = append(list, fmt.Sprintf("%x: {%d %d %d %d %d}", at[0].PC, a.Count, a.Bytes, a.Ever.Count, a.Ever.Bytes, a.Peak))
	}
	for a := range d.Allocations() {
		add(a)
	}
	for a := range d.Freed() {
		add(a)
	}
	slices.Sort(list)
	return list
}
