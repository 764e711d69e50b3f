package codec_test

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// benchStacks returns stacks of exactly depth frames: either of a program that
// allocates at the same places repeatedly, or of random addresses in its code, which no
// branch predictor can learn.
func benchStacks(b *testing.B, kind string, depth int) []codec.Stack {
	b.Helper()
	m, ok := gen.ModelByName("x86_64-pie")
	if !ok {
		b.Fatal("no such model")
	}
	p := m.Program(1)
	stacks := make([]codec.Stack, 0, 1000)
	for len(stacks) < cap(stacks) {
		var s codec.Stack
		if kind == "random" {
			p.Scatter(&s, depth)
		} else {
			p.Next(&s)
		}
		if len(s.PCs) >= depth {
			stacks = append(stacks, codec.Stack{PCs: s.PCs[:depth:depth], Size: s.Size})
		}
	}
	return stacks
}

// bench measures step on the blobs of stacks of each kind and depth, in bytes of blob.
func bench(b *testing.B, step func(b *testing.B, stacks []codec.Stack, blobs [][]byte) func(i int)) {
	for _, kind := range []string{"random", "program"} {
		for _, depth := range []int{4, 12, 16} {
			b.Run(fmt.Sprintf("%s/frames=%d", kind, depth), func(b *testing.B) {
				benchStep(b, benchStacks(b, kind, depth), step)
			})
		}
	}
}

func benchStep(b *testing.B, stacks []codec.Stack, step func(b *testing.B, stacks []codec.Stack, blobs [][]byte) func(i int)) {
	var blobs [][]byte
	total := 0
	for i := range stacks {
		blob, err := codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(nil, &stacks[i], nil)
		if err != nil {
			b.Fatal(err)
		}
		blobs = append(blobs, blob)
		total += len(blob)
	}
	do := step(b, stacks, blobs)
	b.SetBytes(int64(total / len(blobs)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		do(i)
		if i++; i == len(blobs) {
			i = 0
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	bench(b, func(b *testing.B, _ []codec.Stack, blobs [][]byte) func(int) {
		var s codec.Stack
		return func(i int) {
			if err := (codec.Decoder{}).Decode(&s, nil, blobs[i]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchEncode(b *testing.B, how codec.Search) {
	bench(b, func(b *testing.B, stacks []codec.Stack, _ [][]byte) func(int) {
		var dst []byte
		return func(i int) {
			var err error
			if dst, err = (codec.Encoder{Machine: codec.MachineWrap64, Search: how}).AppendBlob(dst[:0], &stacks[i], nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncodeLws(b *testing.B)  { benchEncode(b, codec.SearchLws) }
func BenchmarkEncodeBest(b *testing.B) { benchEncode(b, codec.SearchBest) }

func BenchmarkParseLine(b *testing.B) {
	bench(b, func(b *testing.B, _ []codec.Stack, blobs [][]byte) func(int) {
		var lines [][]byte
		for _, blob := range blobs {
			lines = append(lines, codec.AppendLine(nil, blob))
		}
		var dst []byte
		return func(i int) {
			var err error
			if dst, err = (codec.Decoder{}).ParseLine(dst[:0], lines[i]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendLine(b *testing.B) {
	bench(b, func(_ *testing.B, _ []codec.Stack, blobs [][]byte) func(int) {
		var dst []byte
		return func(i int) { dst = codec.AppendLine(dst[:0], blobs[i]) }
	})
}

func BenchmarkAppendDecoded(b *testing.B) {
	bench(b, func(_ *testing.B, stacks []codec.Stack, _ [][]byte) func(int) {
		var dst []byte
		return func(i int) { dst = codec.AppendDecoded(dst[:0], &stacks[i]) }
	})
}
