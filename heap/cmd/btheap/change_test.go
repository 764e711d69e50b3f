package main

import (
	"math"
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

func TestDelta(t *testing.T) {
	if d := subtract(math.MaxUint64, 0); !d.over(1<<63) || d.over(math.MaxUint64) || d != (delta{magnitude: math.MaxUint64}) {
		t.Errorf("growth by 2^64-1: %+v", d)
	}
	ordered := []delta{{true, 9}, {true, 1}, {}, {false, 1}, {false, 9}}
	for i := range ordered {
		for j := range ordered {
			if got := ordered[i].compare(ordered[j]); got != min(1, max(-1, i-j)) {
				t.Errorf("%v with %v: %d", ordered[i], ordered[j], got)
			}
		}
	}
	if (delta{true, 0}).compare(delta{}) != 0 {
		t.Error("-0 is not 0")
	}
}

// The row that grew most is first, the row that shrank most is last, and rows that stay are left out.
func TestChanges(t *testing.T) {
	var b profile.Builder
	dump := func(bytes ...uint64) *profile.Dump {
		for i, n := range bytes {
			b.Add(b.Path([]symbol.Addr{{PC: uint64(i + 1)}}), profile.Value{Bytes: n, Count: min(n, 1)})
		}
		return b.End(profile.DumpInfo{})
	}
	p, err := profile.New(dump(10, 30, 5, 0), dump(12, 0, 5, 7))
	if err != nil {
		t.Fatal(err)
	}
	var got []delta
	for _, c := range changes(p, profile.Bytes) {
		got = append(got, c.delta(profile.Bytes))
	}
	if len(got) != 3 || got[0] != (delta{false, 7}) || got[1] != (delta{false, 2}) || got[2] != (delta{true, 30}) {
		t.Errorf("%v", got)
	}
}

// Beyond its limit, a stack has only the call sites that it shares with no other, and the last one says so.
func TestStackLimit(t *testing.T) {
	var b profile.Builder
	for i := range 2 {
		b.Add(b.Path([]symbol.Addr{{PC: uint64(i + 1)}, {PC: 9}, {PC: 10}}), profile.Value{Bytes: 1, Count: 1})
	}
	p, err := profile.New(b.End(profile.DumpInfo{}))
	if err != nil {
		t.Fatal(err)
	}
	row := p.Top(profile.Bytes, 1)[0]
	l := stackLimit{sites: maxStackSites - 1}
	if s := l.stack(row); len(s) != 3 || l.cut != 0 {
		t.Errorf("just within: %v, %d cut", s, l.cut)
	}
	if s := l.stack(row); len(s) != 2 || s[0].Func != "0x1" || s[1] != outerLeftOut || l.cut != 1 {
		t.Errorf("just beyond: %v, %d cut", s, l.cut)
	}
}
