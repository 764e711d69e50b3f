//go:build linux

package record

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkRound measures the recorder's time per event: of a program with 50,000 live blocks,
// where a quarter of the allocations have a stack that is not among the last ones.
func BenchmarkRound(b *testing.B) {
	for _, events := range []bool{false, true} {
		b.Run(fmt.Sprint("events=", events), func(b *testing.B) {
			var rec recording
			r, err := New(Config{Slots: 1, Words: 1 << 20, Events: events}, rec.create)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			p := produce(r.memory, 0, testPID, 1, r.memory.now())
			p.image(testPID, 1, 0, "/bin/bench")
			p.module(moduleBase, moduleBase, moduleEnd, "/no/such/file")
			random := rand.New(rand.NewPCG(1, 2))
			var live []uint64
			var stacks [][]uint64
			for range 2000 {
				stacks = append(stacks, stackOf(random))
			}
			top := uint64(1 << 30)
			var took time.Duration
			n := 0
			for b.Loop() {
				for range 40_000 {
					n++
					if len(live) > 50_000 || len(live) > 25_000 && random.IntN(2) == 0 {
						i := random.IntN(len(live))
						p.freed(live[i])
						live[i] = live[len(live)-1]
						live = live[:len(live)-1]
						continue
					}
					top += 16 * (1 + random.Uint64N(8))
					live = append(live, top)
					stack := stacks[random.IntN(8)]
					if random.IntN(4) == 0 {
						stack = stacks[random.IntN(len(stacks))]
					}
					p.allocated(top, random.Uint64N(1000), stack)
				}
				start := time.Now()
				r.round()
				took += time.Since(start)
			}
			b.ReportMetric(float64(took)/float64(n), "ns/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}
