package callpath_test

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// The code ranges of a log that does not say where its code is: pages that hold all addresses.
func ExampleInferRanges() {
	list, shift := callpath.InferRanges([]uint64{0x8000285, 0x8001a3d, 0x20000011}) // Thumb
	fmt.Println(codec.FormatRanges(list), shift)
	// Output: 8000000+2000,20000000+1000 1
}

func TestInferRanges(t *testing.T) {
	for _, c := range []struct {
		addresses []uint64
		ranges    string
		shift     int
	}{
		{nil, "", 0},
		{[]uint64{0x1000, 0x1004}, "1000+1000", 2},
		{[]uint64{0x1002, 0x1fff004}, "1000+1000,1fff000+1000", 1},
		{[]uint64{0x1fff, 0x2000}, "1000+2000", 0},
		{[]uint64{0xfffffffffffffff0}, "fffffffffffff000+1000", 2},
		{[]uint64{0xfffffffffffffff0, 0}, "0+1000,fffffffffffff000+1000", 2},
	} {
		list, shift := callpath.InferRanges(c.addresses)
		if got := codec.FormatRanges(list); got != c.ranges || shift != c.shift {
			t.Errorf("%#x: %s, shift %d, want %s, %d", c.addresses, got, shift, c.ranges, c.shift)
		}
		r := callpath.Ranges{Shift: uint8(shift)}
		for _, x := range list {
			r.Add(x, "")
		}
		for _, a := range c.addresses {
			if f := r.Frame(a &^ (1<<shift - 1)); f.Escaped {
				t.Errorf("%#x: no code offset", a)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	path := func(base callpath.Base, frames ...uint64) *callpath.Path {
		p := &callpath.Path{Base: base}
		for _, x := range frames {
			p.Frames = append(p.Frames, callpath.Frame{Value: x})
		}
		return p
	}
	escaped := &callpath.Path{Frames: []callpath.Frame{{Value: 1, Escaped: true}}}
	order := []*callpath.Path{path(callpath.Whole), path(callpath.Whole, 1), escaped, path(callpath.Whole, 2), path(callpath.Whole, 2, 1), path(callpath.Cut)}
	for i, a := range order {
		for j, b := range order {
			if got, want := callpath.Compare(a, b), cmpInt(i, j); got != want {
				t.Errorf("%v, %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

func cmpInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
