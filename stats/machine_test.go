package stats_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/stats"
)

// stacksAt returns n stacks of 6 frames in the MiB that begins at base.
func stacksAt(base uint64, n int) (all []codec.Stack) {
	x := uint64(1)
	for range n {
		s := codec.Stack{Size: x >> 50}
		for range 6 {
			x = x*6364136223846793005 + 1442695040888963407
			s.PCs = append(s.PCs, base+x>>44)
		}
		all = append(all, s)
	}
	return all
}

func TestInference(t *testing.T) {
	const pie, kernel, high32, low = 0x55d412345000, 0xffffffff81234000, 0xf7e28000, 0x08001000
	for _, c := range []struct {
		name     string
		base     uint64
		by       []codec.Machine // encoders of one dump
		decoded  bool            // ~b# in place of blobs
		machine  codec.Machine
		sure     bool
		evidence string
	}{
		{"wrap64, position-independent", pie, []codec.Machine{codec.MachineWrap64}, false, codec.MachineWrap64, true, "all repeat their low bits: wrap64"},
		{"zero64, position-independent", pie, []codec.Machine{codec.MachineZero64}, false, codec.MachineZero64, true, "all are 0 above their low 32 bits: zero64"},
		{"exact64, position-independent", pie, []codec.Machine{codec.MachineExact64}, false, codec.MachineExact64, true, "keep their upper bits: exact64"},
		{"wrap64, kernel", kernel, []codec.Machine{codec.MachineWrap64}, false, codec.MachineWrap64, true, "wrap64"},
		{"exact64, kernel", kernel, []codec.Machine{codec.MachineExact64}, false, codec.MachineExact64, true, "exact64"},
		{"two machines in one dump", pie, []codec.Machine{codec.MachineWrap64, codec.MachineWrap64, codec.MachineExact64}, false, codec.MachineWrap64, false, "several machines?"},
		{"wrap32, high", high32, []codec.Machine{codec.MachineWrap32}, false, codec.MachineWrap32, true, "is 1: wrap32"},
		{"zero32, high", high32, []codec.Machine{codec.MachineZero32}, false, codec.MachineZero32, true, "0 of"},
		{"32 bits, low", low, []codec.Machine{codec.MachineWrap32}, false, codec.MachineExact32, false, "no address in 300 records has more than 31 bits"},
		{"64 bits, low", low, []codec.Machine{codec.MachineWrap64}, false, codec.MachineExact32, false, "or a 64-bit program at low addresses"},
		{"decoded lines, wide", pie, []codec.Machine{codec.MachineExact64}, true, codec.MachineExact64, false, "none of them in a blob"},
		{"decoded lines, high", high32, []codec.Machine{codec.MachineExact64}, true, codec.MachineExact32, true, "32-bit words"},
	} {
		var infer stats.Inference
		for i, s := range stacksAt(c.base, 300) {
			blob, err := codec.Encoder{Machine: c.by[i%len(c.by)]}.AppendBlob(nil, &s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.decoded {
				infer.Add(&s, nil)
				continue
			}
			var got codec.Stack
			if err := (codec.Decoder{}).Decode(&got, nil, blob); err != nil {
				t.Fatal(err)
			}
			infer.Add(&got, blob)
		}
		m, sure := infer.Machine()
		all := strings.Join(infer.Evidence(), "; ")
		if m != c.machine || sure != c.sure || !strings.Contains(all, c.evidence) {
			t.Errorf("%s: got %v, sure %v, %q\nwant %v, sure %v, %q", c.name, m, sure, all, c.machine, c.sure, c.evidence)
		}
	}
	var none stats.Inference
	if m, sure := none.Machine(); sure || m != codec.MachineExact32 || !slices.Equal(none.Evidence(), []string{"no record"}) {
		t.Errorf("nothing: got %v, sure %v, %q", m, sure, none.Evidence())
	}
}
