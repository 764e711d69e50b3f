package heaplog

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// sequence finds in one pass where the dumps and boots in a log begin. Boots begin at ~h#
// lines, at a {{{reset}}} in a log without headers above it, at boot banners, and where the
// number of a ~h#begin line is lower than the one before. Dumps begin at boots, at ~h# lines and
// at lines that match split; in a log with none of these, they begin where records repeat the
// beginning of the previous dump. A sequence keeps a few hashes, and no records. (BT-HEAD-4,
// BT-REC-1, BT-REC-3)
type sequence struct {
	split *regexp.Regexp // of lines that begin a dump, or nil
	dump  *dump          // the latest one, nil before the first
	count int            // number of dumps so far

	groups  map[int]groupEnd // known from an earlier pass, by boot: what the dumps end with
	found   map[int]groupEnd // that this pass has found
	unclear []string         // why boots may have several dumps that are added up

	log      int // number of logs before this one
	boot     int
	bootLine codec.Header // the latest ~h#boot line of this log, empty if there is none
	inBoot
	next      *dump  // the dump that begins with the next record
	afterBoot bool   // next exists because of a boot
	line      []byte // a line of text whose end is not yet read

	seed       maphash.Seed // for hash
	repetition              // of the beginning of the dump
}

// inBoot is the state of a sequence within a boot.
type inBoot struct {
	dumps      int          // number of dumps
	pathsFirst bool         // the first dump begins with a line of call paths
	unmarked   int64        // number of dumps that no ~h#begin line begins
	heap       profile.Heap // that the allocator reported last
	events     bool         // there were events
	marked     bool         // there were ~h#begin lines
	number     uint32       // of the last ~h#begin line
	open       bool         // between ~h#begin and ~h#end
	last       int64        // line of the last record
	runs       runs
	beginning  beginning // of the latest dump
}

// bootNumber returns the number of the boot, from 1: that of text before the first boot, too.
func (q *sequence) bootNumber() int { return max(q.boot, 1) }

// maxTextLine is the number of bytes of a line of text that are examined.
const maxTextLine = 4096

// newLog starts the log with number log, from 0. Its records belong to another boot.
func (q *sequence) newLog(log int) {
	q.line = q.line[:0]
	q.log = log
	q.afterBoot = false
	q.newBoot(Place{})
	q.afterBoot = false
	q.bootLine = codec.Header{}
}

func (q *sequence) newBoot(at Place) {
	if q.next != nil && q.afterBoot && !q.events {
		return // a banner of several lines, or one with a reset
	}
	q.endBoot()
	q.boot++
	q.next, q.afterBoot = newDump(at), true
}

// header processes a ~h# line.
func (q *sequence) header(it *Item) {
	h := it.Header
	switch h.Verb {
	case codec.VerbBoot:
		q.newBoot(it.Place)
		q.bootLine = *h
		q.bootLine.Keys = slices.Clone(h.Keys)
	case codec.VerbHeap:
		q.heapMark(h)
	case codec.VerbBegin:
		q.boot = q.bootNumber()
		if q.marked && int32(h.Number-q.number) < 0 { // numbers increase and wrap around: the device restarted
			q.boot++
			q.unmarked = 0
		}
		q.marked, q.open, q.number = true, true, h.Number
		d := newDump(it.Place)
		d.beginMark(h)
		q.begin(d) // here, because a dump may have no records
	case codec.VerbEnd:
		if d := q.dump; d != nil && d.endedBy(h, q.open) {
			d.endMark(h)
		}
		q.open = false
		q.next, q.afterBoot = newDump(Place{}), false
	}
}

// emptied reports whether the latest dump is one of call paths that is whole and has none:
// the program had freed everything.
func (q *sequence) emptied() bool {
	d := q.dump
	return d != nil && d.isPaths && d.ended && d.Announced.HasRecords && d.Announced.Records == 0
}

// heapMark processes a ~h#heap line. In a dump, it belongs to that dump.
func (q *sequence) heapMark(h *codec.Header) {
	number := func(key string) uint64 { n, _ := h.Uint(key); return n }
	q.heap = profile.Heap{Known: true, Size: number("size"), Free: number("free"), Largest: number("largest"), Min: number("min")}
	if q.open && q.dump != nil {
		q.dump.Heap = q.heap
	}
}

// paths processes a line of call paths and finds the dump that it belongs to. A line
// without values belongs to none. The dump of a line whose number is another than that of
// the open dump has lost its begin mark. (BT-PLINE-1)
func (q *sequence) paths(it *Item, values bool) {
	if !values {
		return
	}
	digit := int64(it.Paths.Dump)
	last := int64(-1)
	if d := q.dump; d != nil && d.Boot == q.boot {
		if last = d.Number; q.next == nil && (d.isPaths || d.marked) && last&63 == digit {
			return
		}
	}
	d := newDump(it.Place)
	d.isPaths = true
	// Outside of dumps, lines have the number of the dump before, or 0. (BT-DUMP-2)
	d.headless = q.marked && (q.open || digit != max(last, 0)&63)
	q.open = false
	q.begin(d)
	if d.Number = last&^63 | digit; last < 0 {
		d.Number = digit
	} else if d.Number < last {
		d.Number += 64
	}
}

// begin makes d the current dump.
func (q *sequence) begin(d *dump) {
	if !d.marked {
		q.unmarked++
		d.Number = q.unmarked
	}
	q.next = nil
	d.log, d.Boot, d.Heap, d.space = q.log, q.boot, q.heap, q.space()
	d.Build, _ = q.bootLine.Get("build")
	d.Device, _ = q.bootLine.Get("dev")
	d.Firmware, _ = q.bootLine.Get("fw")
	q.count++
	if q.dumps++; q.dumps == 1 {
		q.pathsFirst = d.isPaths
	}
	q.dump, d.ordinal = d, q.count
	d.Name = fmt.Sprintf("dump %d", d.ordinal)
	q.beginning = beginning{}
	q.repetition = repetition{held: q.held[:0]}
}

// space returns the address ranges of the heap, as the ~h#boot line has them.
func (q *sequence) space() []codec.Range {
	heap, _ := q.bootLine.Get("heap")
	space, _ := codec.ParseRanges(heap)
	return space
}

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
		q.next, q.afterBoot = newDump(Place{}), false
	case isBanner(q.line):
		q.newBoot(Place{})
	}
	q.line = q.line[:0]
}

// record processes a record with a stack. While a repetition holds records, the record belongs
// to the current dump if the log ends, or if the repetition turns out to be none; otherwise to
// the dump that begins with the first of them.
func (q *sequence) record(it *Item) {
	if q.dump == nil && q.next == nil {
		q.next = newDump(Place{})
	}
	between := it.Line - q.last - 1
	if q.last == 0 {
		between = runGap
	}
	q.last = it.Line
	q.runs.count(between)
	if d := q.next; d != nil {
		if d.Line == 0 {
			d.beginAt(it.Place)
		}
		q.begin(d)
		q.beginning.add(q.hash(it.Text))
		return
	}
	if q.marked || q.split != nil {
		return
	}
	if between > 0 && q.endRun() {
		q.begin(newDump(it.Place))
		q.runs.add(it.Text)
		return
	}
	q.runs.add(it.Text)
	q.compare(it, between)
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
	single := q.single()
	q.endRun()
	runs := q.runs
	q.inBoot = inBoot{}
	same, end := runs.commonEnd()
	switch {
	case !single:
	case same > 1 && same == runs.ended:
		if q.found == nil {
			q.found = map[int]groupEnd{}
		}
		q.found[q.boot] = end
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d groups of records end with the same ones", same, same))
	case same > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d of %d groups of records end with the same ones", same, same, runs.ended))
	case runs.long > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: there are %d groups of records, with other text between them", runs.long, runs.long))
	}
}

// single reports whether the boot has one dump so far, which nothing marks.
func (q *sequence) single() bool {
	return q.dumps == 1 && !q.pathsFirst && !q.marked && q.split == nil
}

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
