package main

import (
	"bufio"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// benchLog writes a log of some 64 MB for a benchmark and returns its path and length.
//
//	repeated    the allocations of a program, which come from the same stacks again and again
//	different   stacks of 12 frames from 20,000 call sites, of which none is like another
//	scattered   the same, but of any address of 4 MB of code: 4 million call sites
func benchLog(b *testing.B, kind string) (path string, size int64) {
	b.Helper()
	model, ok := gen.ModelByName("x86_64-pie")
	if !ok {
		b.Fatal("no model")
	}
	p := model.Program(1)
	rng := rand.New(rand.NewPCG(1, 2))
	sites := 20_000
	if kind == "scattered" {
		sites = 4_000_000
	}
	var pool, s codec.Stack
	next := func() { p.Next(&s) }
	if kind != "repeated" {
		base := uint64(0x55d412000000)
		for i := range sites {
			pool.PCs = append(pool.PCs, base+uint64(i)*(4<<20)/uint64(sites))
		}
		next = func() {
			s.PCs = s.PCs[:0]
			for range 12 {
				s.PCs = append(s.PCs, pool.PCs[rng.IntN(sites)])
			}
			s.Size = rng.Uint64N(5000)
		}
	}
	path = filepath.Join(b.TempDir(), kind+".log")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var blob, line []byte
	for size < 64<<20 {
		next()
		if blob, err = (codec.Encoder{}).AppendBlob(blob[:0], &s, nil); err != nil {
			b.Fatal(err)
		}
		line = append(codec.AppendLine(line[:0], blob), '\n')
		w.Write(line)
		size += int64(len(line))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path, size
}

// BenchmarkTop is btheap top on logs without symbols. MB/cpu-s is of processor time.
func BenchmarkTop(b *testing.B) {
	for _, kind := range []string{"repeated", "different", "scattered"} {
		path, size := benchLog(b, kind)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(size)
			before := cmdtest.ProcessorTime()
			for b.Loop() {
				if code := run([]string{"top", "-q", path}, nil, io.Discard, os.Stderr); code != 0 {
					b.Fatal("exit code", code)
				}
			}
			if cpu := cmdtest.ProcessorTime() - before; cpu > 0 {
				b.ReportMetric(float64(size)*float64(b.N)/1e6/cpu.Seconds(), "MB/cpu-s")
			}
		})
	}
}
