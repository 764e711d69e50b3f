package symbol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// executable is executable mappings of the given ranges.
func executable(ranges ...uint64) *space {
	var list []Mapping
	for i := 0; i < len(ranges); i += 2 {
		list = append(list, Mapping{Start: ranges[i], End: ranges[i+1], Exec: true, Module: &Module{Name: fmt.Sprint("m", i/2)}})
	}
	return newSpace(list)
}

// newSpace is a memory map of mappings.
func newSpace(list []Mapping) *space {
	var tl timeline
	tl.set(list)
	return &tl.space
}

// exact is addresses as they were read.
func exact(pcs []uint64) (list []Addr) {
	for _, pc := range pcs {
		list = append(list, Addr{PC: pc})
	}
	return list
}

// lossy encodes a stack as machine m does, and decodes it again.
func lossy(t testing.TB, m codec.Machine, pcs []uint64) (*codec.Stack, []byte) {
	t.Helper()
	blob, err := codec.Encoder{Machine: m}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: 48}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var s codec.Stack
	if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
		t.Fatal(err)
	}
	return &s, blob
}

// aliases is n executable mappings with the same low 31 bits, from start on.
func aliases(start uint64, n int) *space {
	var ranges []uint64
	for i := range uint64(n) {
		ranges = append(ranges, start+i<<31, start+i<<31+0x1000)
	}
	return executable(ranges...)
}

func TestRecover(t *testing.T) {
	const (
		app  = 0x5610_d13a_7000
		libc = 0x7f6d_9771_2000
		twin = 0x7f2c_5140_0000 // shares low 31 bits with what is in app
	)
	for _, c := range []struct {
		name    string
		space   *space
		pcs     []uint64
		several uint32 // frames that stay lost because several addresses fit
		lost    uint32
	}{
		{"one module each", executable(app, app+0x195000, libc, libc+0x156000),
			[]uint64{libc + 0x24a, app + 0x26930, app + 0x13be, libc + 0x305}, 0, 0},
		{"addresses below 2^31 are not lossy", executable(0x631000, 0x19f5000, libc, libc+0x1000),
			[]uint64{libc + 0xf79, 0x19dbc8c, 0x777247}, 0, 0},
		{"same low bits, told apart by the count of bits", executable(app, app+0x1000, app&low31Mask|1<<40, app&low31Mask|1<<40+0x1000),
			[]uint64{app + 0x123}, 0, 0},
		{"same low bits, nothing to tell them apart", executable(app, app+0x1000, app+1<<31, app+1<<31+0x1000),
			[]uint64{app + 0x123}, 1, 1},
		{"told apart by a neighbour close by", executable(app, app+0x1000, app+1<<31, app+1<<31+0x800),
			[]uint64{libc, app + 0x123, app + 0xabc}, 0, 1},
		{"told apart by a neighbour far off", executable(app, app+0x1000, app-1<<45, app-1<<45+0x1000, libc, libc+0x1000),
			[]uint64{app + 0x200, libc + 0x10, libc + 0x18}, 0, 0},
		{"in no mapping", executable(app, app+0x1000), []uint64{libc + 0x24a, app + 0x30}, 0, 1},
		{"over the end of the 31-bit window", executable(0x7f00_7fff_f000, 0x7f00_8000_1000), []uint64{0x7f00_8000_0010, 0x7f00_7fff_f010}, 0, 0},
		{"more mappings with the same low bits than are weighed", aliases(app, 100), []uint64{app + 0x10}, 1, 1},
		{"the mapping is not executable", newSpace([]Mapping{{Start: app, End: app + 0x1000}}), []uint64{app + 8}, 0, 1},
	} {
		for _, m := range []codec.Machine{codec.MachineWrap64, codec.MachineZero64} {
			s, blob := lossy(t, m, c.pcs)
			raw := slices.Clone(s.PCs)
			var r recoverer
			got := exact(s.PCs)
			several, lost := r.recover(got, s.Marks.Lossy, blob, c.space), uint32(0)
			for i, a := range got {
				switch {
				case a.State == Lost && a.PC != raw[i]:
					t.Errorf("%s, %v: lost frame %d became %#x", c.name, m, i, a.PC)
				case a.State == Lost:
					lost |= 1 << i
				case a.PC != c.pcs[i]:
					t.Errorf("%s, %v: frame %d is %#x, want %#x", c.name, m, i, a.PC, c.pcs[i])
				}
			}
			if several != c.several || lost != c.lost {
				t.Errorf("%s, %v: lost %b, several %b, want %b, %b", c.name, m, lost, several, c.lost, c.several)
			}
		}
	}
}

// For any map, inferred and exact addresses are correct.
func TestRecoveryInventsNothing(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 2026))
	var inferred, lost, intact int
	for range 20_000 {
		var ranges []uint64
		n := 1 + rng.IntN(12)
		for range n {
			// Modules crowd in a few windows, so that low bits often collide.
			start := uint64(1+rng.IntN(3))<<(44+rng.IntN(3)) | uint64(rng.IntN(4))<<31 | uint64(rng.IntN(8))<<20
			ranges = append(ranges, start, start+uint64(1+rng.IntN(64))<<14)
		}
		ranges = append(ranges, 0x400000, 0x480000)
		space := executable(ranges...)
		mappings := space.list
		var pcs []uint64
		for range 1 + rng.IntN(12) {
			m := mappings[rng.IntN(len(mappings))]
			pcs = append(pcs, m.Start+rng.Uint64N(m.End-m.Start))
		}
		s, blob := lossy(t, []codec.Machine{codec.MachineWrap64, codec.MachineZero64}[rng.IntN(2)], pcs)
		var r recoverer
		got := exact(s.PCs)
		r.recover(got, s.Marks.Lossy, blob, space)
		for i, a := range got {
			switch a.State {
			case Lost:
				lost++
				continue
			case Inferred:
				inferred++
			default:
				intact++
			}
			if a.PC != pcs[i] {
				t.Fatalf("frame %d of %#x is %#x, and not marked as lost\n%+v", i, pcs, a.PC, mappings)
			}
		}
	}
	t.Logf("%d inferred, %d lost, %d exact", inferred, lost, intact)
	if inferred < 10_000 || lost < 100 || intact < 1_000 {
		t.Error("one of the three hardly ever happened")
	}
}
