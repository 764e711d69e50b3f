package heaplog

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"regexp"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
)

// dumpStart is the beginning of a dump, with the content of its marks.
type dumpStart struct {
	Place
	log       int // number of logs before the log of the dump
	boot      int // from 1
	number    int64
	time      time.Duration // since the boot, if timed
	timed     bool
	marked    bool // begins with a ~h#begin line
	ended     bool // has a ~h#end line
	why       string
	announced profile.Announced
	split     bool // begins at a line that matches sequence.split

	info     bootInfo
	heap     profile.Heap
	kind     string // value of k=, "" if there is none
	diff     bool   // has only what changed since the dump with the number base
	base     int64
	sample   uint64
	paths    bool         // began with a line of call paths
	headless bool         // its begin mark was lost
	lines    [2]lineCount // of call paths since the boot, at its begin and its end mark
	folded   uint64
}

// bootInfo has the keys of a boot header about the device and its program.
type bootInfo struct {
	build, device, firmware string
	space                   []codec.Range // of the heap
}

// lineCount is a number of lines, if a mark has it.
type lineCount struct {
	n     uint64
	known bool
}

// boundary says which dump a record belongs to.
type boundary uint8

const (
	sameDump boundary = iota // the current dump, as do the records that were pending
	newDump                  // a new dump, the last of sequence.dumps; pending records belong to it
	pending                  // known only after later records
)

// sequence finds in one pass where the dumps and boots in a log begin. Boots begin at ~h#
// lines, at a {{{reset}}} in a log without headers above it, at boot banners, and where the
// number of a ~h#begin line is lower than the one before. Dumps begin at boots, at ~h# lines and
// at lines that match split; in a log with none of these, they begin where records repeat the
// beginning of the previous dump. A sequence keeps a few hashes, and no records. (BT-HEAD-4,
// BT-REC-1, BT-REC-3)
type sequence struct {
	split *regexp.Regexp // of lines that begin a dump, or nil
	// dumps holds the starts of dumps, the current dump last. The user of a sequence may
	// remove earlier ones.
	dumps    []*dumpStart
	count    int  // number of dumps so far, including removed ones
	explicit bool // a mark or split gives the start of the first dump of this boot

	groups  map[int]groupEnd // known from an earlier pass, by boot: what the dumps end with
	found   map[int]groupEnd // that this pass has found
	unclear []string         // why boots may have several dumps that are added up
	inBoot  int              // number of dumps of this boot

	log       int
	boot      int
	info      bootInfo
	heap      profile.Heap // that the allocator reported last in this boot
	numbers   int64        // dumps of this boot so far
	next      *dumpStart   // the dump that begins with the next record
	afterBoot bool         // next exists because of a boot
	events    bool         // there were events since the boot
	marked    bool         // this boot has ~h#begin lines
	number    uint32       // of the last ~h#begin line
	open      bool         // between ~h#begin and ~h#end
	remap     bool         // a ~h#map was read: the next {{{reset}}} belongs to it
	headers   bool         // this log has ~h# lines: no {{{reset}}} begins a boot
	line      []byte       // a line of text whose end is not yet read
	last      int64        // line of the last record

	runs runs         // of this boot
	seed maphash.Seed // for hash

	beginning  beginning // of the current dump
	repetition           // of it
}

// bootNumber returns the number of the boot, from 1: that of text before the first boot, too.
func (q *sequence) bootNumber() int { return max(q.boot, 1) }

// maxTextLine is the number of bytes of a line of text that are examined.
const maxTextLine = 4096

// newLog starts the log with number log, from 0. Its records belong to another boot.
func (q *sequence) newLog(log int) {
	q.line = q.line[:0]
	q.log = log
	q.headers = false
	q.afterBoot = false
	q.newBoot(Place{})
	q.afterBoot = false
	q.info = bootInfo{}
}

func (q *sequence) newBoot(at Place) {
	if q.next != nil && q.afterBoot && !q.events {
		return // a banner of several lines, or one with a reset
	}
	q.endBoot()
	q.boot++
	q.events = false
	q.numbers, q.marked, q.open, q.remap = 0, false, false, false
	q.beginning = beginning{}
	q.last = 0
	q.heap = profile.Heap{}
	q.next, q.afterBoot = &dumpStart{Place: at, boot: q.boot}, true
}

// header processes a ~h# line.
func (q *sequence) header(it *Item) {
	h := it.Header
	q.headers = true
	switch h.Verb {
	case codec.VerbBoot:
		q.newBoot(it.Place)
		q.info.build, _ = h.Get("build")
		q.info.device, _ = h.Get("dev")
		q.info.firmware, _ = h.Get("fw")
		space, _ := h.Get("heap")
		q.info.space, _ = codec.ParseRanges(space)
	case codec.VerbHeap:
		q.heapMark(h)
	case codec.VerbMap:
		q.remap = true
	case codec.VerbBegin:
		q.boot = q.bootNumber()
		if q.marked && int32(h.Number-q.number) < 0 { // numbers increase and wrap around: the device restarted
			q.boot++
			q.numbers = 0
		}
		q.marked, q.open, q.number = true, true, h.Number
		d := &dumpStart{Place: it.Place, boot: q.boot, number: int64(h.Number), marked: true}
		us, timed := h.Uint("t")
		d.time, d.timed = microseconds(us), timed
		d.why, _ = h.Get("why")
		announce(&d.announced, h)
		d.callPaths(h)
		q.begin(d) // here, because a dump may have no records
	case codec.VerbEnd:
		if n := len(q.dumps); n > 0 && q.dumps[n-1].endedBy(h, q.open) {
			d := q.dumps[n-1]
			d.ended, d.number = true, int64(h.Number)
			announce(&d.announced, h)
			d.lines[1].n, d.lines[1].known = h.Uint("l")
			d.folded, _ = h.Uint("cut") // BT-DUMP-6
		}
		q.open = false
		q.next, q.afterBoot = &dumpStart{boot: q.boot}, false
	}
}

// endedBy reports whether an end mark closes the dump. open means that the last begin or end
// mark was a begin mark.
func (d *dumpStart) endedBy(h *codec.Header, open bool) bool {
	if d.headless {
		return !d.ended && d.number&63 == int64(h.Number)&63
	}
	return open && d.number == int64(h.Number)
}

// emptied reports whether the latest dump is one of call paths that is whole and has none:
// the program had freed everything.
func (q *sequence) emptied() bool {
	n := len(q.dumps)
	if n == 0 {
		return false
	}
	d := q.dumps[n-1]
	return d.kind != "" && d.ended && d.announced.HasRecords && d.announced.Records == 0
}

// callPaths reads the keys of a begin mark that are about call paths. (BT-DUMP-1)
func (d *dumpStart) callPaths(h *codec.Header) {
	d.kind, d.paths = h.Get("k")
	d.diff = d.kind == "diff"
	base, _ := h.Uint("base")
	d.base = int64(base)
	d.sample, _ = h.Uint("sample")
	d.lines[0].n, d.lines[0].known = h.Uint("l")
}

// heapMark processes a ~h#heap line. In a dump, it belongs to that dump.
func (q *sequence) heapMark(h *codec.Header) {
	number := func(key string) uint64 { n, _ := h.Uint(key); return n }
	q.heap = profile.Heap{Known: true, Size: number("size"), Free: number("free"), Largest: number("largest"), Min: number("min")}
	if n := len(q.dumps); q.open && n > 0 {
		q.dumps[n-1].heap = q.heap
	}
}

// paths processes a line of call paths and returns the dump that it belongs to. A line
// without values belongs to none. The dump of a line whose number is another than that of
// the open dump has lost its begin mark. (BT-PLINE-1)
func (q *sequence) paths(it *Item, values bool) boundary {
	q.endLine()
	q.boot = q.bootNumber()
	if !values {
		return sameDump
	}
	digit := int64(it.Paths.Dump)
	last := int64(-1)
	if n := len(q.dumps); n > 0 && q.dumps[n-1].boot == q.boot {
		d := q.dumps[n-1]
		if last = d.number; q.next == nil && (d.paths || d.marked) && last&63 == digit {
			return sameDump
		}
	}
	d := &dumpStart{Place: it.Place, boot: q.boot, paths: true}
	// Outside of dumps, lines have the number of the dump before, or 0. (BT-DUMP-2)
	d.headless = q.marked && (q.open || digit != max(last, 0)&63)
	q.open = false
	q.begin(d)
	if d.number = last&^63 | digit; last < 0 {
		d.number = digit
	} else if d.number < last {
		d.number += 64
	}
	return newDump
}

// microseconds converts a time of the log to a duration, limited to the longest duration.
func microseconds(us uint64) time.Duration {
	return time.Duration(min(us, uint64(1<<63-1)/uint64(time.Microsecond))) * time.Microsecond
}

func announce(a *profile.Announced, h *codec.Header) {
	if n, ok := h.Uint("n"); ok {
		a.Records, a.HasRecords = n, true
	}
	if n, ok := h.Uint("b"); ok {
		a.Bytes, a.HasBytes = n, true
	}
}

// begin makes d the current dump.
func (q *sequence) begin(d *dumpStart) {
	if !d.marked {
		q.numbers++
		d.number = q.numbers
	}
	q.next = nil
	d.log, d.info, d.heap = q.log, q.info, q.heap
	q.count++
	if q.inBoot++; q.inBoot == 1 {
		q.explicit = d.marked || d.split || d.paths
	}
	q.dumps = append(q.dumps, d)
	q.beginning = beginning{}
	q.held, q.matched, q.missed, q.at = q.held[:0], 0, 0, 0
}

var resetElement = []byte("{{{reset}}}")

// text processes text between records. Most text is a line end, or the text before a
// record.
func (q *sequence) text(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end == 0 && len(q.line) == 0 {
			p = p[1:]
			continue
		}
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if space := maxTextLine - len(q.line); space > 0 {
			q.line = append(q.line, part[:min(len(part), space)]...)
		}
		if end < 0 {
			return
		}
		q.endLine()
		p = p[end+1:]
	}
}

// endLine examines a line of text. For a line with a record, endLine runs before the record
// and sees the text before it.
func (q *sequence) endLine() {
	switch {
	case len(q.line) == 0:
	case q.split != nil && q.split.Match(q.line):
		q.next, q.afterBoot = &dumpStart{boot: q.bootNumber(), split: true}, false
	case isBanner(q.line):
		q.newBoot(Place{})
	case bytes.Contains(q.line, resetElement):
		if !q.remap && !q.headers { // BT-REC-4
			q.newBoot(Place{})
		}
		q.remap = false
	}
	q.line = q.line[:0]
}

// record processes a record with a stack and returns the dump that it belongs to. Pending
// records belong to the current dump if sameDump follows or the log ends, and to the new
// dump if newDump follows.
func (q *sequence) record(it *Item) boundary {
	q.endLine()
	q.boot = q.bootNumber()
	if q.count == 0 && q.next == nil {
		q.next = &dumpStart{boot: q.boot}
	}
	between := it.Line - q.last - 1
	if q.last == 0 {
		between = runGap
	}
	q.last = it.Line
	if d := q.next; d != nil {
		if d.Line == 0 {
			d.Place = it.Place
		}
		q.begin(d)
		q.runs.count(between)
		q.beginning.add(q.hash(it.Text))
		return newDump
	}
	q.runs.count(between)
	if q.marked || q.split != nil {
		return sameDump
	}
	if between > 0 && q.endRun() {
		q.begin(&dumpStart{Place: it.Place, boot: q.boot})
		q.runs.add(it.Text)
		return newDump
	}
	q.runs.add(it.Text)
	return q.compare(it, between)
}

func (q *sequence) hash(text []byte) uint64 {
	if q.seed == (maphash.Seed{}) {
		q.seed = maphash.MakeSeed()
	}
	return maphash.Bytes(q.seed, text)
}

// endRun ends a group of records. It reports whether a dump ends with it, as an earlier pass found.
func (q *sequence) endRun() bool {
	known, ok := q.groups[q.boot]
	return q.runs.end(known, ok)
}

// endBoot examines whether a boot in which no dump boundary was found may hold several
// dumps. If each of its groups of records ends with the same records, each is a dump, which
// another pass can tell from the others.
func (q *sequence) endBoot() {
	defer func() { q.inBoot, q.runs = 0, runs{} }()
	if !q.single() {
		return
	}
	q.endRun()
	same, end := q.runs.commonEnd()
	switch {
	case same > 1 && same == q.runs.ended:
		if q.found == nil {
			q.found = map[int]groupEnd{}
		}
		q.found[q.boot] = end
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d groups of records end with the same ones", same, same))
	case same > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d of %d groups of records end with the same ones", same, same, q.runs.ended))
	case q.runs.long > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: there are %d groups of records, with other text between them", q.runs.long, q.runs.long))
	}
}

// single reports whether the boot has one dump so far, which nothing marks.
func (q *sequence) single() bool { return q.inBoot == 1 && !q.explicit && !q.marked && q.split == nil }

// undecided returns why the log may hold several dumps although they are added up as one, or
// "", as far as the log was read.
func (q *sequence) undecided() string {
	if len(q.unclear) > 0 {
		return "looks like " + q.unclear[0]
	}
	if same, _ := q.runs.commonEnd(); q.single() && (same > 1 || q.runs.long > 2) { // a second group may still turn out to be a dump
		return fmt.Sprintf("looks like %d dumps so far, but they are added up as one", max(same, q.runs.long))
	}
	return ""
}
