package fuzz

import (
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// edges are addresses at which an encoder's reckoning could tip: where a value gets
// a bit more, where differences no longer fit a signed word or the search's own
// arithmetic, and where they tie.
var edges = []uint64{0, 1, 1<<31 - 1, 1 << 32, 1<<61 - 1, 1 << 61, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 1}

// Every stack of four edges, behind a frame 0 that search lws cannot use, is
// written as the naive codec writes it.
func TestEdgesAreWrittenAsNaively(t *testing.T) {
	n := len(edges)
	s := codec.Stack{PCs: make([]uint64, 5), Size: 1}
	for _, s.PCs[0] = range []uint64{0, 1 << 40} {
		for i := range n * n * n * n {
			for f, k := 1, i; f < 5; f, k = f+1, k/n {
				s.PCs[f] = edges[k%n]
			}
			compareEncode(t, &s, codec.MachineExact64)
			if i%7 == 0 { // what is chosen does not depend on the machine's losses
				compareEncode(t, &s, codec.MachineWrap64)
				compareEncode(t, &s, codec.MachineZero64)
			}
		}
	}
}

// Whatever a delta has less in significant bits than the literal, it is chosen or
// not as the naive codec does.
func TestDeltaOrLiteralAsNaively(t *testing.T) {
	for literal := 1; literal <= 64; literal++ {
		for delta := 1; delta < literal; delta++ {
			v, d := uint64(1)<<(literal-1), uint64(1)<<(delta-1)
			for _, pcs := range [][]uint64{{0, v - d, v}, {0, v, v, v - d}, {v - d, v}, {1 << 63, v + d, v}} {
				compareEncode(t, &codec.Stack{PCs: pcs}, codec.MachineExact64)
			}
		}
	}
}

// So is what is chosen around the eighth base, the farthest that a frame can have:
// the nearest of all frames stands before it, at it or behind it.
func TestFarthestBaseIsFoundAsNaively(t *testing.T) {
	for depth := 2; depth <= codec.MaxDepth; depth++ {
		for near := range depth - 1 {
			for _, apart := range []uint64{1 << 20, 1 << 59} { // within the search's own arithmetic, and not
				s := codec.Stack{PCs: make([]uint64, depth), Size: 1}
				for f := range s.PCs {
					s.PCs[f] = uint64(f%16) * apart
				}
				s.PCs[depth-1] = s.PCs[near] + 5
				for _, m := range []codec.Machine{codec.MachineExact64, codec.MachineWrap64} {
					compareEncode(t, &s, m)
				}
			}
		}
	}
}
