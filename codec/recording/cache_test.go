package recording

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// A record is cached when its line occurs for the second time, so that lines that never repeat cost
// no memory. After many of these, lines are looked for again within cachePause lines.
func TestCacheWhereItHelps(t *testing.T) {
	var log, blob []byte
	add := func(size uint64) {
		blob, _ = codec.Encoder{}.AppendBlob(blob[:0], &codec.Stack{PCs: []uint64{0x401000}, Size: size}, nil)
		log = append(codec.AppendLine(log, blob), '\n')
	}
	const apart = 60_000
	for i := range apart {
		add(uint64(i))
	}
	for range apart {
		add(7)
	}
	n := 0
	var cached [2]int
	for it := range Items(log) {
		if it.Kind == KindText {
			continue
		}
		if want := uint64(n); it.Err != nil || n < apart && it.Stack.Size != want || n >= apart && it.Stack.Size != 7 || len(it.Stack.PCs) != 1 {
			t.Fatalf("record %d: %+v", n, it)
		}
		if it.Memo != nil {
			cached[n/apart]++
		}
		n++
	}
	if n != 2*apart || cached[0] != 0 || cached[1] < apart-1-cachePause {
		t.Errorf("%d records, of which %v were in the cache", n, cached)
	}
}

// A Memo is that of the same text, until another record takes its place in the cache.
func TestMemo(t *testing.T) {
	var log, blob []byte
	for i := range uint64(50_000) {
		blob, _ = codec.Encoder{}.AppendBlob(blob[:0], &codec.Stack{PCs: []uint64{0x401000}, Size: i * i % 5000}, nil)
		log = append(codec.AppendLine(log, blob), '\n')
	}
	kept := 0
	for it := range Items(log) {
		if it.Memo == nil {
			continue
		}
		if size, ok := (*it.Memo).(uint64); ok {
			if kept++; size != it.Stack.Size {
				t.Fatalf("%v: the memo of size %d is %d", it.Place, it.Stack.Size, size)
			}
		}
		*it.Memo = it.Stack.Size
	}
	if kept == 0 {
		t.Error("no memo was kept")
	}
}

// Records, line ends and text between them cost no allocation, whether they are in the cache
// or their lines are too long for it.
func TestNoAllocation(t *testing.T) {
	var log, blob []byte
	long := strings.Repeat(" ", maxCachedLine)
	for i := range uint64(20_000) {
		blob, _ = codec.Encoder{}.AppendBlob(blob[:0], &codec.Stack{PCs: []uint64{0x401000, 0x402000 + i%50}, Size: i % 50}, nil)
		log = codec.AppendLine(append(log, "[1.2] N: "...), blob)
		if i%2 == 1 {
			log = append(log, long...)
		}
		log = append(log, " x\n~b#size: 7520, 0x406651 0x406852\n"...)
	}
	var s Scanner
	read := func() (n int) {
		s.Begin("log")
		for rest := log; len(rest) > 0; {
			it, took := s.Next(rest, false)
			if rest = rest[took:]; it.Stack != nil && it.Err == nil {
				n++
			}
		}
		return n
	}
	for range 20 { // the cache grows to its size
		read()
	}
	n := 0
	if allocs := testing.AllocsPerRun(3, func() { n = read() }); n != 40_000 || allocs != 0 {
		t.Errorf("%v allocations for %d records", allocs, n)
	}
}
