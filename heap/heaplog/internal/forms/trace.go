package forms

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// trace writes the records and headers.
type trace struct {
	out  []byte
	from int    // the position in out of what is not read yet
	held []byte // the text of a record that may not count, nil if there is none
	at   int    // the position of held in out
	// lastPart is the position in out of the end of the last line that said something of a heap.
	lastPart int
	parts    bool   // that report is not written yet
	dump     uint32 // number of the next dump
	open     bool
	endless  string // what prints the open dump, if it has no last line: it ends where something else begins
	ended    bool   // the open dump has its last line, with the totals n and size, but may go on
	n, size  int64
	atEnd    func() // called before the open dump ends, nil if nothing is to be done
	skipped  int64
	read     int64 // bytes of the log
	sums     int64 // blocks that sum has written
	blob     []byte
	tasks    map[string]uint64 // numbers of tasks that have names only
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
	if out, err := codec.AppendHeader(append(t.out, ' '), &h); err == nil {
		t.out = out
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
	t.header(codec.Header{Verb: codec.VerbBegin, Number: t.dump, HasNumber: true}, []key{{"u", 1}}, "why", why)
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

func (t *trace) heap(h heap) { t.heapAt(h, -1, "") }

// ForeignKey is the key of the ~h#heap lines that the Reader writes. Those of the log itself lack it. Its
// value is 1, or where in the program the line is printed, as its words say.
const ForeignKey = "foreign"

// heapAt is heap with a time in microseconds, -1 if it is not known, and the point of the program that
// prints it, "" if it is not known.
func (t *trace) heapAt(h heap, time int64, point string) {
	plain := int64(1)
	if point != "" {
		plain = -1
	}
	for list := range slices.Chunk(h.holes, holesPerLine) {
		t.header(codec.Header{Verb: codec.VerbFree}, nil, "name", h.name, "heap", codec.FormatRanges(list))
	}
	if h.free >= 0 {
		t.header(codec.Header{Verb: codec.VerbHeap}, []key{{"t", time}, {"size", h.size}, {"free", h.free}, {"largest", h.largest}, {"min", h.least}, {ForeignKey, plain}}, "name", h.name, ForeignKey, point)
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

// encode returns the blob of a block, with its 31 innermost frames, nil if it cannot be written.
func (t *trace) encode(b *block) []byte {
	if b.size < 0 {
		t.skipped++
		return nil
	}
	s := codec.Stack{Size: uint64(b.size), PCs: b.pcs[:min(len(b.pcs), maxFrames)]}
	blob, err := codec.Encoder{}.AppendBlob(t.blob[:0], &s, &b.user)
	if err != nil {
		t.skipped++
		return nil
	}
	t.blob = blob
	return blob
}

// record writes a block as a ~m# record. Outside of a dump it opens one.
func (t *trace) record(b *block) {
	if !t.open {
		t.begin("")
	}
	if blob := t.encode(b); blob != nil {
		t.out = codec.AppendLine(append(t.out, ' '), blob)
	}
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
	if n > minSums+t.read-t.sums {
		n = 1
		t.skipped++
	}
	t.sums += n
	for i := range n {
		b.size = bytes/n + min(1, max(0, bytes%n-i))
		t.record(b)
	}
}

// event writes a block as a ~e# record. (BT-EVT-5)
func (t *trace) event(kind uint64, b *block) {
	b.user.Set(codec.TagEvent, kind)
	if blob := t.encode(b); blob != nil {
		t.out = codec.AppendEventLine(append(t.out, ' '), blob)
	}
}

// hold keeps the record of a block until release or drop is called. A record that is held already
// counts.
func (t *trace) hold(b *block) {
	t.release()
	if !t.open {
		t.begin("")
	}
	t.at = len(t.out)
	t.record(b)
	t.held = slices.Clone(t.out[t.at:])
	t.out = t.out[:t.at]
}

// release writes the held record, if there is one, to the end of its line.
func (t *trace) release() {
	if t.held != nil {
		t.out = slices.Insert(t.out, t.at, t.held...)
		if t.lastPart > t.at {
			t.lastPart += len(t.held)
		}
		t.held = nil
	}
}

// moveBack moves the text from position n of out on to the end of the last line that said something
// of a heap.
func (t *trace) moveBack(n int) {
	text := slices.Clone(t.out[n:])
	t.out = slices.Insert(t.out[:n], t.lastPart, text...)
	if t.held != nil && t.at >= t.lastPart {
		t.at += len(text)
	}
}

// drop forgets the held record.
func (t *trace) drop() { t.held = nil }

// maxHeld is the number of bytes behind a held record from which on the record counts, and behind a
// part of a report from which on the report has all its parts.
const maxHeld = 16 << 10

// ready returns the text that can be passed on: up to a held record, or up to where a report of a
// heap belongs that may have more parts.
func (t *trace) ready() []byte {
	if t.held != nil && len(t.out)-t.at > maxHeld {
		t.release()
	}
	end := len(t.out)
	if t.held != nil {
		end = t.at
	}
	if t.parts {
		end = min(end, t.lastPart)
	}
	return t.out[t.from:end]
}

// maxTaken is the number of bytes that were read from which on out is moved to its beginning.
const maxTaken = 64 << 10

// taken removes the first n bytes of ready.
func (t *trace) taken(n int) {
	if t.from += n; t.from == len(t.out) || t.from >= maxTaken {
		t.out, t.at, t.lastPart, t.from = append(t.out[:0], t.out[t.from:]...), t.at-t.from, t.lastPart-t.from, 0
	}
}
