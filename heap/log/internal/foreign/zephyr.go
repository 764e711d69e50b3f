package foreign

import (
	"bytes"
	"regexp"

	"github.com/lwsbt/lwsbt/codec"
)

// The texts of Zephyr, from its sources: the shell command "heaptrace dump" of
// lib/heap/heaptrace_shell.c (main, 2026), and sys_heap_print_info of lib/heap/heap_info.c
// (2.7 to 4.2).
var zephyrSigns = []string{"heaptrace dump ", "[heaptrace] ptr=", "Heap at 0x"}

var (
	zephyrBlock = regexp.MustCompile(`\[heaptrace\] ptr=(0x[0-9a-fA-F]+) size=(\d+) heap=\S* alloc_tid=(0x[0-9a-fA-F]+) .*alloc_ms=(\d+)`)
	zephyrSum   = regexp.MustCompile(`\[heaptrace\] .*outstanding_blocks=(\d+) outstanding_bytes=(\d+)`)
	zephyrRow   = regexp.MustCompile(`^\s*\d+\s+\d+\s+\d+\s+\d+\s+(\d+)\s*$`)
	zephyrHeap  = regexp.MustCompile(`0x[0-9a-fA-F]+`)
	zephyrInfo  = regexp.MustCompile(`(\d+) free bytes, (\d+) allocated bytes, overhead = (\d+) bytes`)
)

// zephyr reads the dumps of Zephyr. The call stack of a block is on the line after it.
type zephyr struct {
	*trace
	last    block
	held    bool   // last is not written yet
	name    string // of the heap information so far: its address
	largest int64  // its largest free block, in bytes; -1 if it is not known
}

func newZephyr(t *trace) lineReader { return &zephyr{trace: t} }

func (z *zephyr) line(text []byte) {
	switch {
	case bytes.Contains(text, []byte("[heaptrace]   backtrace:")):
		if z.held {
			_, stack, _ := bytes.Cut(text, []byte("backtrace:"))
			z.last.pcs = hexes(z.last.pcs[:0], stack, " ")
		}
		z.flush()
	case bytes.Contains(text, []byte("[heaptrace] ptr=")):
		z.flush()
		z.block(text)
	case bytes.Contains(text, []byte("outstanding_blocks=")) && !bytes.Contains(text, []byte("heap_id=")):
		z.flush()
		if m := zephyrSum.FindSubmatch(text); m != nil {
			z.close(number(m[1]), number(m[2]))
		}
	case bytes.Contains(text, []byte("heaptrace dump ")) && bytes.Contains(text, []byte("begin ==")):
		z.flush()
		z.close(-1, -1)
		z.begin()
	case bytes.Contains(text, []byte("Heap at 0x")):
		z.name, z.largest = zephyrHeap.FindString(string(text)), -1
	case bytes.Contains(text, []byte("free bytes, ")):
		if m := zephyrInfo.FindSubmatch(text); m != nil {
			free := number(m[1])
			z.heap(heap{z.name, free + number(m[2]) + number(m[3]), free, z.largest, -1})
		}
	default:
		if m := zephyrRow.FindSubmatch(text); m != nil {
			z.largest = max(z.largest, number(m[1]))
		}
	}
}

func (z *zephyr) block(text []byte) {
	m := zephyrBlock.FindSubmatch(text)
	if m == nil {
		z.skipped++
		return
	}
	b := &z.last
	b.size, b.pcs = number(m[2]), b.pcs[:0]
	b.user.Reset()
	b.user.Set(codec.TagAddress, address(m[1]))
	b.user.Set(codec.TagTime, 1000*uint64(number(m[4])))
	b.user.Set(codec.TagThread, address(m[3]))
	z.held = true
}

func (z *zephyr) flush() {
	if z.held {
		z.record(&z.last)
	}
	z.held = false
}

func (z *zephyr) end() { z.flush() }
