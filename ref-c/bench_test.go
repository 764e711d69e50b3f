package refc

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// benchStacks returns stacks of exactly depth frames: of random addresses in the code of a
// program, or of a program that allocates at the same places repeatedly. The library reads and
// writes bit by bit, so its speed depends on how well the processor predicts the next bit.
func benchStacks(b *testing.B, kind string, depth int) []codec.Stack {
	model, ok := gen.ModelByName("x86_64-pie")
	if !ok {
		b.Fatal("no such model")
	}
	p := model.Program(1)
	var stacks []codec.Stack
	for len(stacks) < 1000 {
		var s codec.Stack
		if kind == "random" {
			p.Scatter(&s, depth)
		} else {
			p.Next(&s)
		}
		if len(s.PCs) >= depth {
			stacks = append(stacks, codec.Stack{PCs: s.PCs[:depth], Size: s.Size})
		}
	}
	return stacks
}

// speed is the least time of several rounds, in ns per stack.
type speed struct{ encode, decode float64 }

func (s *speed) least(encode, decode float64) {
	if s.encode == 0 {
		*s = speed{encode, decode}
	}
	s.encode, s.decode = min(s.encode, encode), min(s.decode, decode)
}

// BenchmarkLws measures the real library and the codec on the same stacks, in turns.
func BenchmarkLws(b *testing.B) {
	prog := btref(b)
	for _, kind := range []string{"random", "program"} {
		for _, depth := range []int{4, 12, 16} {
			b.Run(fmt.Sprintf("%s/frames=%d", kind, depth), func(b *testing.B) {
				stacks := benchStacks(b, kind, depth)
				var input strings.Builder
				for i, s := range stacks {
					fmt.Fprintf(&input, "%d\t%x\t%s\n", i, s.Size, strings.Trim(fmt.Sprintf("%x", s.PCs), "[]"))
				}
				var lws, ours speed
				for b.Loop() {
					lws.least(benchLibrary(b, prog, input.String()))
					ours.least(benchCodec(b, stacks))
				}
				b.ReportMetric(lws.decode, "lws-decode-ns")
				b.ReportMetric(ours.decode, "codec-decode-ns")
				b.ReportMetric(lws.encode, "lws-encode-ns")
				b.ReportMetric(ours.encode, "codec-encode-ns")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// benchLibrary runs btref bench, for 2 ms or more.
func benchLibrary(b *testing.B, prog, stacks string) (encode, decode float64) {
	c := exec.Command(prog, "bench", "--seconds", "0.002")
	c.Stdin = strings.NewReader(stacks)
	out, err := c.Output()
	var depth, n int
	if err == nil {
		_, err = fmt.Sscanf(string(out), "depth=%d stacks=%d encode_ns=%g decode_ns=%g", &depth, &n, &encode, &decode)
	}
	if err != nil || n != 1000 {
		b.Fatalf("%v: %s", err, out)
	}
	return encode, decode
}

// benchCodec measures the codec with reused buffers.
func benchCodec(b *testing.B, stacks []codec.Stack) (encode, decode float64) {
	blobs := make([][]byte, len(stacks))
	encode = perStack(func(i int) {
		blobs[i], _ = codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(blobs[i][:0], &stacks[i], nil)
	})
	var s codec.Stack
	var failed error
	decode = perStack(func(i int) {
		if err := (codec.Decoder{}).Decode(&s, nil, blobs[i]); err != nil {
			failed = err
		}
	})
	if failed != nil {
		b.Fatal(failed)
	}
	return encode, decode
}

// perStack returns the time of step in ns, the least of some rounds over all stacks.
func perStack(step func(i int)) (least float64) {
	for round := range 10 {
		start := time.Now()
		for i := range 1000 {
			step(i)
		}
		if ns := float64(time.Since(start)) / 1000; round < 2 || ns < least { // the first warms up
			least = ns
		}
	}
	return least
}
