package forms

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// trace makes the records and headers.
type trace struct {
	place   recording.Place // of the current line
	out     []Item          // of the current line
	waiting block           // of which the callers follow, or whether it was freed
	waits   int64           // the number of blocks of which waiting is the sum, 0 if there are none
	dump    uint32          // number of the next dump
	open    bool
	endless string // what prints the open dump, if it has no last line: it ends where something else begins
	ended   bool   // the open dump has its last line, with the totals n and size, but may go on
	others  int    // lines that are no record since
	n, size int64
	walk    heap              // the heap whose blocks are listed: what was free so far
	Skipped int64             // lines that look like an allocation but could not be read
	sums    int64             // blocks that sum has written
	tasks   map[string]uint64 // numbers of tasks that have names only
}

// header writes a header without a number, if that is negative. keys are names and values in pairs: texts, or numbers,
// which are not known if they are negative.
func (t *trace) header(verb string, number int64, keys ...any) {
	h := codec.Header{Verb: verb, Number: uint32(max(number, 0)), HasNumber: number >= 0}
	for i := 0; i < len(keys); i += 2 {
		text, _ := keys[i+1].(string)
		if v, ok := keys[i+1].(int64); ok && v >= 0 {
			text = strconv.FormatInt(v, 10)
		}
		if text != "" {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: keys[i].(string), Value: text})
		}
	}
	if text, err := codec.AppendHeader(nil, &h); err == nil {
		t.add(&recording.Item{Kind: recording.KindHeader, Text: text, Header: &h})
	}
}

// add adds an item of the current line.
func (t *trace) add(it *recording.Item) {
	it.Place = t.place
	t.out = append(t.out, Item{Item: &recording.Item{Place: t.place, Text: []byte(" ")}}, Item{Item: it}) // between the text and the record
}

// boot begins a boot.
func (t *trace) boot() {
	t.emit()
	t.closeEndless()
	if t.closeEnded(); t.open || t.dump > 0 { // otherwise the log has its own boots and dumps
		t.header(codec.VerbBoot, -1)
	}
	t.dump, t.open, t.tasks = 0, false, nil
}

// begin opens a dump. If another one is open, its end was lost. why says that the dump has only
// some of the blocks, "" if it has all.
func (t *trace) begin(why string) {
	t.emit()
	t.closeEndless()
	if t.closeEnded(); t.open {
		t.dump++
	}
	t.header(codec.VerbBegin, int64(t.dump), "why", why, "u", int64(1), ForeignKey, int64(1))
	t.open = true
}

// beginEndless opens a dump that has no last line, unless one of this kind is open.
func (t *trace) beginEndless(kind, why string) (opened bool) {
	if t.open && t.endless == kind {
		return false
	}
	t.begin(why)
	t.endless = kind
	return true
}

// closeEndless closes the open dump if it has no last line.
func (t *trace) closeEndless() {
	if t.endless != "" {
		t.close(-1, -1)
	}
}

// closeEnded closes the open dump if it has its last line.
func (t *trace) closeEnded() {
	if t.ended {
		t.close(t.n, t.size)
	}
}

// close closes the open dump. n and b are the blocks and bytes that the trace says it has.
func (t *trace) close(n, b int64) {
	if t.emit(); t.endless == espWalk {
		t.walked()
	}
	if t.open {
		t.header(codec.VerbEnd, int64(t.dump), "n", n, "b", b)
		t.dump, t.open, t.endless, t.ended = t.dump+1, false, "", false
	}
}

// heap is what an allocator says of a heap, in bytes; a negative value is not known.
type heap struct {
	name                       string
	size, free, largest, least int64

	holes []codec.Range // the free blocks, if the allocator lists them, and not too many
	many  bool
}

const (
	// maxHoles is the number of free blocks of a heap from which on they are not listed, and holesPerLine
	// the number that fits into a line.
	maxHoles     = 4096
	holesPerLine = 100
	// ForeignKey is the key of the ~h#begin and ~h#heap lines that the Reader writes. Those of the log itself lack it.
	ForeignKey = "foreign"
	// maxTasks limits the tasks of a boot that have numbers, and maxSeen the heaps or tasks of a dump.
	maxTasks = 1 << 12
	maxSeen  = 256
	// maxFrames is the most frames that a record with user fields takes. (BT-EVT-2)
	maxFrames = codec.MaxDepth - 1
	// minSums is the number of blocks of sums that any log may have. A log may have one more for each of
	// its bytes, so that the time for a log is in proportion to its length.
	minSums = 4096
)

// addFree adds a free block to a heap, of which the allocator lists all blocks.
func (h *heap) addFree(address uint64, size int64) {
	h.free += size
	h.largest = max(h.largest, size)
	if h.many = h.many || len(h.holes) == maxHoles; h.many {
		h.holes = nil
	} else if size > 0 {
		h.holes = append(h.holes, codec.Range{Start: address, Length: uint64(size)})
	}
}

// walked ends the heap whose blocks are listed: what was free is what the heap has.
func (t *trace) walked() {
	if h := t.walk; h.size != 0 {
		for list := range slices.Chunk(h.holes, holesPerLine) {
			t.header("free", -1, "name", h.name, "heap", codec.FormatRanges(list))
		}
		t.header(codec.VerbHeap, -1, "name", h.name, "size", h.size, "free", h.free, "largest", h.largest, "min", h.least, ForeignKey, int64(1))
	}
	t.walk = heap{}
}

// numberOf returns the number of a task that has only a name, and names it.
func (t *trace) numberOf(name string) uint64 {
	n, known := t.tasks[name]
	if known || len(t.tasks) >= maxTasks {
		return n
	}
	if t.tasks == nil {
		t.tasks = map[string]uint64{}
	}
	n = uint64(len(t.tasks) + 1)
	t.tasks[strings.Clone(name)] = n
	t.header("thread", int64(n), "name", name)
	return n
}

// block is an allocation of a trace, or a sum of some.
type block struct {
	size int64
	pcs  []uint64 // innermost first
	user codec.User
}

// item makes a block an item.
func (t *trace) item(kind recording.Kind, b *block) {
	if b.size < 0 {
		t.Skipped++
		return
	}
	user := b.user
	t.add(&recording.Item{Kind: kind, User: &user, Stack: &codec.Stack{Size: uint64(b.size), PCs: slices.Clone(b.pcs[:min(len(b.pcs), maxFrames)])}})
}

// record makes a block a record. Outside of a dump it opens one.
func (t *trace) record(b *block) {
	if t.emit(); !t.open {
		t.begin("")
	}
	t.item(recording.KindDecoded, b)
}

// sum writes n blocks whose sizes add up to bytes, where a trace does not tell the size of each.
func (t *trace) sum(b block, n, bytes int64) {
	if n < 1 || bytes < 0 {
		t.Skipped++
		return
	}
	if n > minSums+t.place.Offset-t.sums {
		n = 1
		t.Skipped++
	}
	t.sums += n
	for i := range n {
		b.size = bytes/n + min(1, max(0, bytes%n-i))
		t.record(&b)
	}
}

// wait keeps n blocks until emit writes them: lines that follow say more.
func (t *trace) wait(b block, n int64) {
	t.emit()
	t.waiting, t.waits = b, n
}

// emit writes the blocks that wait.
func (t *trace) emit() {
	if n := t.waits; n != 0 {
		t.waits = 0
		t.sum(t.waiting, n, t.waiting.size)
	}
}
