package heaplog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// pathsByOffset are the entries of a dump.
type pathsByOffset map[uint64]callpath.Entry

// randomEntry returns an entry of a path of one frame, which holds nothing in one of three cases.
func randomEntry(rng *rand.Rand, x uint64, flags callpath.Flags) callpath.Entry {
	e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: x}}}}
	if rng.IntN(3) > 0 {
		e.Live, e.Bytes = 1+rng.Uint64N(9), 1+rng.Uint64N(99)
	}
	if flags != 0 {
		e.Allocs, e.AllocBytes, e.Peak = e.Live+rng.Uint64N(5), e.Bytes+rng.Uint64N(50), e.Bytes+rng.Uint64N(9)
	}
	return e
}

// randomDifferences returns a log of dumps, most of which are differences from one of the 20 before, and
// what each has. With two ranges, two code offsets are one address from 0x8000800 on.
func randomDifferences(t *testing.T, rng *rand.Rand, dumps int, flags callpath.Flags, twoRanges bool) (text []byte, wants []pathsByOffset) {
	code, end := "8000000+1000", uint64(0x1000)
	if twoRanges {
		code, end = "8000000+1000,8000800+1000", 0x1400
	}
	text = fmt.Appendf(nil, "~h#boot code=%s shift=0\n", code)
	w := callpath.Writer{Flags: flags}
	for d := range dumps {
		want, keys := pathsByOffset{}, " k=paths"
		if d > 0 && rng.IntN(10) > 0 {
			base := max(0, d-1-rng.IntN(1+rng.IntN(20)))
			keys = fmt.Sprintf(" k=diff base=%d", base)
			for x, e := range wants[base] {
				if e.Live > 0 {
					want[x] = e
				}
			}
		}
		text = fmt.Appendf(text, "~h#begin %d%s\n", d, keys)
		w.Dump = uint32(d)
		for _, i := range rng.Perm(int(end/0x40) - 1)[:rng.IntN(1+rng.IntN(40))] {
			x := uint64(i+1) * 0x40
			e := randomEntry(rng, x, flags)
			want[x] = e
			var err error
			if text, err = w.Append(text, &e); err != nil {
				t.Fatal(err)
			}
		}
		text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
		wants = append(wants, want)
	}
	return text, wants
}

// Differences have the values of their bases, whichever of the last dumps these are: with call paths that
// were removed and come again, that have values since the boot, and of which two have the same addresses.
func TestDifferencesOfAnyBase(t *testing.T) {
	for seed := range uint64(60) {
		flags := []callpath.Flags{0, callpath.Ever | callpath.Peak}[seed%2]
		text, wants := randomDifferences(t, rand.New(rand.NewPCG(seed, 1)), 80, flags, seed/2%2 == 1)
		r := open(t, bytes.NewReader(text))
		defer r.Close()
		var dumps []*profile.Dump
		for got, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			if want, list := allocationsOf(wants[len(dumps)]), dumpAllocations(got); !slices.Equal(want, list) {
				t.Fatalf("seed %d, dump %d:\n%v, want\n%v", seed, len(dumps), list, want)
			}
			dumps = append(dumps, got)
		}
		if len(dumps) != len(wants) {
			t.Fatalf("%d dumps, want %d", len(dumps), len(wants))
		}
		checkRows(t, seed, dumps, wants)
		var some []*profile.Dump
		var wantSome []pathsByOffset
		for d := int(seed % 3); d < len(dumps); d += 1 + int(seed/3%4) {
			some, wantSome = append(some, dumps[d]), append(wantSome, wants[d])
		}
		checkRows(t, seed, some, wantSome)
	}
}

// checkRows checks the sums of the rows of a profile of dumps, their order, and that leaks are found as in
// dumps of which none is a difference.
func checkRows(t *testing.T, seed uint64, dumps []*profile.Dump, wants []pathsByOffset) {
	t.Helper()
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]profile.Value, len(wants)) // sums, of what changes from one dump to another
	met := 0                                  // the first dump of the row before
	for row := range p.Rows() {
		first := -1
		for d, v := range row.Points() {
			if v.IsZero() {
				continue
			}
			if rows[d].Add(v); first < 0 {
				first = d
			}
			if row.At(d) != v {
				t.Fatalf("seed %d, dump %d: a row has %v, at this dump %v", seed, d, v, row.At(d))
			}
		}
		if first < met {
			t.Fatalf("seed %d: a row that dump %d has first is after one that dump %d has first", seed, first, met)
		}
		met = first
	}
	var b profile.Builder
	var whole []*profile.Dump
	for _, d := range dumps {
		for a := range d.Allocations() {
			b.AddAllocation(a)
		}
		whole = append(whole, b.End(d.DumpInfo))
	}
	q, err := profile.New(whole...)
	if err != nil {
		t.Fatal(err)
	}
	got, want := growth.Judge(p, growth.Options{}), growth.Judge(q, growth.Options{})
	if got.Varied != want.Varied || len(got.Rows) != len(want.Rows) {
		t.Fatalf("seed %d: %d paths vary, %d rows, want %d, %d", seed, got.Varied, len(got.Rows), want.Varied, len(want.Rows))
	}
	for i := range got.Rows {
		if !reflect.DeepEqual(got.Rows[i].Judgement, want.Rows[i].Judgement) {
			t.Fatalf("seed %d, row %d: %+v, want %+v", seed, i, got.Rows[i].Judgement, want.Rows[i].Judgement)
		}
	}
	for d, want := range wants {
		var total profile.Value
		for _, e := range want {
			total.Add(profile.Value{Bytes: e.Bytes, Count: e.Live})
		}
		if dumps[d].Total != total || rows[d] != total {
			t.Fatalf("seed %d, dump %d: total %v, of the rows %v, want %v", seed, d, dumps[d].Total, rows[d], total)
		}
	}
}

// allocationsOf returns the values by address.
func allocationsOf(want pathsByOffset) (list []string) {
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
