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
	queue   []Item          // that are not returned yet
	out     []Item          // of the current line
	held    *recording.Item // a record that may not count, nil if there is none
	behind  int             // the bytes of text behind it
	dump    uint32          // number of the next dump
	open    bool
	endless string // what prints the open dump, if it has no last line: it ends where something else begins
	ended   bool   // the open dump has its last line, with the totals n and size, but may go on
	others  int    // lines that are no record since
	n, size int64
	atEnd   func() // called before the open dump ends, nil if nothing is to be done
	skipped int64
	sums    int64             // blocks that sum has written
	tasks   map[string]uint64 // numbers of tasks that have names only
}

// key is a key of a header. A negative value is not known.
type key struct {
	name  string
	value int64
}

// header writes a header with the keys whose values are known. text has keys with names, in pairs.
func (t *trace) header(h codec.Header, keys []key, text ...string) {
	for i := 0; i+1 < len(text); i += 2 {
		if text[i+1] != "" {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: text[i], Value: text[i+1]})
		}
	}
	for _, k := range keys {
		if k.value >= 0 {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: k.name, Value: strconv.FormatInt(k.value, 10)})
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

// maxOthers is the number of other lines that may stand between those of a dump.
const maxOthers = 4

// other takes a line that is no record.
func (t *trace) other() {
	if t.others++; t.others == maxOthers+1 {
		t.closeEnded()
	}
}

// boot begins a boot.
func (t *trace) boot() {
	t.release()
	t.closeEndless()
	t.closeEnded()
	if t.open || t.dump > 0 { // otherwise the log has its own boots and dumps
		t.header(codec.Header{Verb: codec.VerbBoot}, nil)
	}
	t.dump, t.open, t.tasks = 0, false, nil
}

// begin opens a dump. If another one is open, its end was lost. why says that the dump has only
// some of the blocks, "" if it has all.
func (t *trace) begin(why string) {
	t.release()
	t.closeEndless()
	if t.closeEnded(); t.open {
		t.dump++
	}
	t.atEnd = nil
	t.header(codec.Header{Verb: codec.VerbBegin, Number: t.dump, HasNumber: true}, []key{{"u", 1}, {ForeignKey, 1}}, "why", why)
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
	t.release()
	if end := t.atEnd; end != nil {
		t.atEnd = nil
		end()
	}
	if t.open {
		t.header(codec.Header{Verb: codec.VerbEnd, Number: t.dump, HasNumber: true}, []key{{"n", n}, {"b", b}})
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

// maxHoles is the number of free blocks of a heap from which on they are not listed, and holesPerLine
// the number that fits into a line.
const (
	maxHoles     = 4096
	holesPerLine = 100
)

// addFree adds a free block to a heap, of which the allocator lists all blocks.
func (h *heap) addFree(address uint64, size int64) {
	h.free += size
	h.largest = max(h.largest, size)
	switch {
	case size <= 0 || h.many:
	case len(h.holes) == maxHoles:
		h.holes, h.many = nil, true
	default:
		h.holes = append(h.holes, codec.Range{Start: address, Length: uint64(size)})
	}
}

// ForeignKey is the key of the ~h#begin and ~h#heap lines that the Reader writes. Those of the log itself lack it.
const ForeignKey = "foreign"

// heap writes what an allocator says of a heap.
func (t *trace) heap(h heap) {
	for list := range slices.Chunk(h.holes, holesPerLine) {
		t.header(codec.Header{Verb: codec.VerbFree}, nil, "name", h.name, "heap", codec.FormatRanges(list))
	}
	if h.free >= 0 {
		t.header(codec.Header{Verb: codec.VerbHeap}, []key{{"size", h.size}, {"free", h.free}, {"largest", h.largest}, {"min", h.least}, {ForeignKey, 1}}, "name", h.name)
	}
}

// thread names a thread.
func (t *trace) thread(number uint64, name string) {
	if number>>32 == 0 {
		t.header(codec.Header{Verb: codec.VerbThread, Number: uint32(number), HasNumber: true}, nil, "name", name)
	}
}

// maxTasks limits the tasks of a boot that have numbers.
const maxTasks = 1 << 12

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
	t.thread(n, name)
	return n
}

// maxFrames is the most frames that a record with user fields takes. (BT-EVT-2)
const maxFrames = codec.MaxDepth - 1

// block is an allocation of a trace.
type block struct {
	size int64
	pcs  []uint64 // innermost first
	user codec.User
}

// stack returns the stack of a block, with its 31 innermost frames, nil if it cannot be one.
func (t *trace) stack(b *block) *codec.Stack {
	if b.size < 0 {
		t.skipped++
		return nil
	}
	return &codec.Stack{Size: uint64(b.size), PCs: slices.Clone(b.pcs[:min(len(b.pcs), maxFrames)])}
}

// record makes a block a record. Outside of a dump it opens one.
func (t *trace) record(b *block) *recording.Item {
	if !t.open {
		t.begin("")
	}
	s := t.stack(b)
	if s == nil {
		return nil
	}
	user := b.user
	it := &recording.Item{Kind: recording.KindDecoded, Stack: s, User: &user}
	t.add(it)
	return it
}

// minSums is the number of blocks of sums that any log may have. A log may have one more for each of
// its bytes, so that the time for a log is in proportion to its length.
const minSums = 4096

// sum writes n blocks whose sizes add up to bytes, where a trace does not tell the size of each.
func (t *trace) sum(b *block, n, bytes int64) {
	if n < 1 || bytes < 0 {
		t.skipped++
		return
	}
	if n > minSums+t.place.Offset-t.sums {
		n = 1
		t.skipped++
	}
	t.sums += n
	for i := range n {
		b.size = bytes/n + min(1, max(0, bytes%n-i))
		t.record(b)
	}
}

// event makes a block an event. (BT-EVT-5)
func (t *trace) event(kind uint64, b *block) {
	b.user.Set(codec.TagEvent, kind)
	if s := t.stack(b); s != nil {
		user := b.user
		t.add(&recording.Item{Kind: recording.KindEvent, Stack: s, User: &user})
	}
}

// hold keeps the record of a block until release or drop is called. A record that is held already
// counts.
func (t *trace) hold(b *block) {
	t.release()
	t.held, t.behind = t.record(b), 0
}

// maxHeld is the number of bytes behind a held record from which on the record counts.
const maxHeld = 16 << 10

// release makes the held record count.
func (t *trace) release() { t.held = nil }

// drop forgets the held record.
func (t *trace) drop() {
	if t.held != nil {
		*t.held = recording.Item{Place: t.held.Place}
	}
	t.held = nil
}
