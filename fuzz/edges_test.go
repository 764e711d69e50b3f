package fuzz

import (
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// edges are addresses at which the result of an encoder's computation may change: where a
// value needs one more bit, where a difference no longer fits a signed word or the arithmetic
// of the search, and where two differences are equal.
var edges = []uint64{0, 1, 1<<31 - 1, 1 << 32, 1<<61 - 1, 1 << 61, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 1}

// Stacks of four edges are encoded as by testee.py; without LWSBT_FULL, every 7th. The edges follow a frame 0,
// which search lws cannot use as a base.
func TestEdgesAreWrittenAlike(t *testing.T) {
	n, step := len(edges), 7
	if cmdtest.Full() {
		step = 1
	}
	s := codec.Stack{PCs: make([]uint64, 5), Size: 1}
	for _, s.PCs[0] = range []uint64{0, 1 << 40} {
		var list []conformance.Request
		for i := 0; i < n*n*n*n; i += step {
			for f, k := 1, i; f < 5; f, k = f+1, k/n {
				s.PCs[f] = edges[k%n]
			}
			list = appendEncode(list, &s, codec.MachineExact64)
			if i%49 == 0 { // a sample: the choice does not depend on the bits that the machine loses
				list = appendEncode(list, &s, codec.MachineWrap64)
				list = appendEncode(list, &s, codec.MachineZero64)
			}
		}
		compareAll(t, list)
	}
}

// The codec chooses between literal and delta as testee.py does, for every
// difference between their numbers of significant bits.
func TestDeltaOrLiteralAlike(t *testing.T) {
	var list []conformance.Request
	for literal := 1; literal <= 64; literal++ {
		for delta := 1; delta < literal; delta++ {
			v, d := uint64(1)<<(literal-1), uint64(1)<<(delta-1)
			for _, pcs := range [][]uint64{{0, v - d, v}, {0, v, v, v - d}, {v - d, v}, {1 << 63, v + d, v}} {
				list = appendEncode(list, &codec.Stack{PCs: pcs}, codec.MachineExact64)
			}
		}
	}
	compareAll(t, list)
}

// The codec chooses the same base as testee.py if the nearest frame is near the limit of
// eight frames back: before the limit, at it, or beyond it.
func TestFarthestBaseIsFoundAlike(t *testing.T) {
	var list []conformance.Request
	for depth := 2; depth <= codec.MaxDepth; depth++ {
		for near := range depth - 1 {
			for _, apart := range []uint64{1 << 20, 1 << 59} { // within the arithmetic of rank, and beyond it
				s := codec.Stack{PCs: make([]uint64, depth), Size: 1}
				for f := range s.PCs {
					s.PCs[f] = uint64(f%16) * apart
				}
				s.PCs[depth-1] = s.PCs[near] + 5
				for _, m := range []codec.Machine{codec.MachineExact64, codec.MachineWrap64} {
					list = appendEncode(list, &s, m)
				}
			}
		}
	}
	compareAll(t, list)
}
