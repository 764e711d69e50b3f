package stats_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/stats"
)

// BenchmarkReport measures the worst case: all call paths are distinct.
func BenchmarkReport(b *testing.B) {
	const paths = 50_000
	c := stats.NewCollector(64)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range paths {
		s := codec.Stack{Size: rnd.Uint64N(5000)}
		for range 10 {
			s.PCs = append(s.PCs, 0x400000+rnd.Uint64N(1<<22))
		}
		c.Add(&s, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Report(options(codec.MachineExact32))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/paths, "ns/path")
}

// BenchmarkAdd measures the usual case: a known call path.
func BenchmarkAdd(b *testing.B) {
	c := stats.NewCollector(64)
	s := codec.Stack{Size: 7520, PCs: []uint64{0x406651, 0x406852, 0x406c1b, 0x406294, 0x406300, 0x409999, 0x401234, 0x402222}}
	blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &s, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Add(&s, blob)
	}
}
