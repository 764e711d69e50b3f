package gen

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// Scattered stacks have addresses everywhere in the model's code, and do not repeat.
func TestScatter(t *testing.T) {
	for _, m := range Models() {
		p, again := m.Program(1), m.Program(1)
		stacks := map[string]bool{}
		sites := map[uint64]bool{}
		inRegion := [2]int{}
		const count, depth = 500, 12
		for range count {
			var s, same codec.Stack
			p.Scatter(&s, depth)
			again.Scatter(&same, depth)
			key := fmt.Sprint(s.PCs)
			if key != fmt.Sprint(same.PCs) || len(s.PCs) != depth || s.Size == 0 {
				t.Fatalf("%s: %x of %d bytes, then %x", m.Name, s.PCs, s.Size, same.PCs)
			}
			stacks[key] = true
			for _, pc := range s.PCs {
				if m.Word == 32 && pc>>32 != 0 || pc&m.low != m.low {
					t.Fatalf("%s: %#x is no return address", m.Name, pc)
				}
				if m.window { // restore the top bits of the code, which the window bits replaced
					pc = pc&(1<<30-1) | m.app.lo>>30<<30
				}
				sites[pc] = true
				in := -1
				for i, r := range []region{m.app, m.lib} {
					if pc >= r.lo && pc < r.hi+uint64(r.text) {
						in = i
					}
				}
				if in < 0 {
					t.Fatalf("%s: %#x is in no module", m.Name, pc)
				}
				inRegion[in]++
			}
		}
		if len(stacks) != count || len(sites) < count*depth/2 {
			t.Errorf("%s: %d stacks and %d addresses, want %d and far more", m.Name, len(stacks), len(sites), count)
		}
		if lib := m.lib.text > 0; (inRegion[1] > count*depth/3) != lib {
			t.Errorf("%s: %v addresses in the program and its library", m.Name, inRegion)
		}
	}
}
