package heaplog

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// places finds to which boot and dump each item of a pass belongs. Boots and dumps begin and end
// by their headers, as a [recording.Log] has them. Where there is no header, a boot begins also at
// a {{{reset}}} and at the banner of a boot. Boots are counted as well where the number of a ~h#begin
// is lower than the one before, which changes nothing else. Records outside of dumps belong to dumps that Split or a guess begins. (BT-REC-1,
// BT-REC-3, BT-HEAD-4)
type places struct {
	split  *regexp.Regexp   // of lines that begin a dump, or nil
	groups map[int]groupEnd // by boot: what the dumps end with, if an earlier pass has found it

	log    recording.Log
	input  int      // index of the log
	boots  int      // that have begun
	latest struct { // the latest ~h#boot
		text string
		boot int // that it begins
	}
	count int            // dumps that have begun
	dump  *start         // the latest dump, nil before the first
	heaps []profile.Heap // latest report on each, in this boot
	text  textLines
	tail  tail
	inBoot

	found   map[int]groupEnd // by boot: what the dumps end with, as this pass has found it
	unclear []string         // why boots may have several dumps that are added up
}

// inBoot is the state of a boot.
type inBoot struct {
	fresh bool // nothing but text and reports of the allocator has come since the boot began
	// reported is set if the allocator has reported since the boot began.
	reported bool
	breaks   bool            // the next record outside of dumps begins one
	at       recording.Place // where that dump begins, if a header tells it

	dumps      int    // number of dumps
	unmarked   int64  // number of dumps without ~h#begin
	pathsFirst bool   // the first dump begins with a line of call paths
	marked     bool   // there was a ~h#begin
	number     uint32 // of the last one
	time       uint64 // of the last one, if timed
	timed      bool
	diffs      bool   // there were differences
	open       bool   // a dump with ~h#begin is open
	guess      *guess // nil without records outside of dumps, with Split, and once there was a ~h#begin
}

// start is a dump that has begun.
type start struct {
	*recording.Dump
	recording.Place
	ordinal  int   // number of the dump among those of the pass, from 1
	input    int   // index of the log in which it begins
	boot     int   // number of the boot, from 1
	number   int64 // without ~h#begin
	headless bool  // its ~h#begin was lost
	kindLost bool  // it may be a difference, although no header says so
	isPaths  bool  // it begins with a line of call paths
	header   *codec.Header
	bootText string // the ~h#boot of this boot, "" if it has none
	heaps    []profile.Heap
}

// placed is an item with its place, or an end of a log. It has all that a fold needs, and is valid
// until the next one.
type placed struct {
	item *Item // nil at an end

	recording.Placed
	boot      int                 // number of the boot, from 1
	bootText  string              // the ~h#boot of this boot, "" if it has none
	header    *codec.Header       // the latest ~h#boot of this log, nil if there is none
	input     int                 // index of the log
	count     int                 // dumps that have begun
	dump      *start              // the latest one, nil before the first
	grouping                      // of a record outside of dumps
	heap      *profile.Heap       // of a ~h#heap line
	before    tail                // the text before the item
	heaps     []growth.HeapSeries // that lines of text have reported, at the end and where the pass waits
	callPaths *callPaths          // of the latest boot with lines of call paths, nil if there is none
	memory    memory              // of this log
	naming    int                 // how often the load bases have changed

	// last is set at the end of all logs, and err if something is wrong: the rest of one log cannot
	// be read, or the logs have no record.
	last bool
	err  error
}

// memory returns the name of the heap of a block, "" if it is not known.
type memory func(address uint64) string

// ended reports whether the dump has its end.
func (s *start) ended() bool { return s.End != nil }

// marked reports whether the dump begins with a ~h#begin.
func (s *start) marked() bool { return s.Begin != nil }

// timed reports whether the header of the dump has its time.
func (s *start) timed() bool {
	if s.Begin == nil {
		return false
	}
	_, timed := s.Begin.Uint("t")
	return timed
}

// dumpNumber returns the number of the dump in its headers, or else counted from 1.
func (s *start) dumpNumber() int64 {
	switch {
	case s.Begin != nil:
		return int64(s.Begin.Number)
	case s.End != nil:
		return int64(s.End.Number)
	}
	return s.number
}

// bootNumber returns the number of the boot, from 1: that of text before the first boot, too.
func (q *places) bootNumber() int { return max(q.boots, 1) }

// fill completes the place of an item, of which at has what the Log says.
func (q *places) fill(at *placed, g grouping) {
	at.boot, at.bootText, at.input, at.count, at.dump = q.bootNumber(), q.bootText(), q.input, q.count, q.dump
	at.grouping, at.heap, at.header, at.callPaths, at.before = g, nil, nil, nil, q.tail
	if at.Boot != nil {
		at.header = at.Boot.Header
	}
}

// other places an item that begins and ends nothing.
func (q *places) other(it *recording.Item, at *placed) {
	q.fresh = q.fresh && it.Kind == recording.KindUnreadable
	at.Placed = q.log.Add(it)
	q.fill(at, stays)
}

// newLog begins the log with an index. Its records belong to another boot.
func (q *places) newLog(input int) {
	q.text, q.tail = textLines{}, tail{changes: q.tail.changes + 1}
	q.fresh = false
	q.log = recording.Log{}
	q.newBoot(recording.Place{})
	q.input = input
}

// newBoot begins a boot. Its first record begins a dump.
func (q *places) newBoot(at recording.Place) {
	if q.fresh {
		return // a banner of several lines, or one with a header or a reset
	}
	q.endBoot()
	q.boots++
	q.fresh, q.breaks, q.at = true, true, at
	q.heaps, q.reported = nil, false
}

// bootText returns the text of the ~h#boot of this boot, "" if it has none.
func (q *places) bootText() string {
	if q.latest.boot != q.bootNumber() {
		return ""
	}
	return q.latest.text
}

// restart begins a boot that no header tells. A report of the allocator after the banner before is of
// another boot.
func (q *places) restart() {
	q.fresh = q.fresh && !q.reported
	q.newBoot(recording.Place{})
	q.log.Restart()
}

// header takes a ~h# line. sameELF is that of the Log.
func (q *places) header(it *recording.Item, at *placed, sameELF bool) {
	h := it.Header
	q.log.SameELF = sameELF
	if h.Verb == codec.VerbBegin {
		q.boots = q.bootNumber()
		q.numbered(h)
	}
	at.Placed = q.log.Add(it)
	p := &at.Placed
	q.open = p.Dump != nil
	var heap *profile.Heap
	switch h.Verb {
	case codec.VerbBoot:
		q.newBoot(it.Place)
		q.latest.text, q.latest.boot = string(it.Text), q.boots
	case codec.VerbHeap:
		heap = heapOf(h)
		q.heaps = withHeap(q.heaps, *heap)
		q.boots, q.reported = q.bootNumber(), true
	case codec.VerbBegin:
		q.marked, q.guess = true, nil
		q.text = textLines{}
		_, diff := p.Dump.Difference()
		q.diffs = q.diffs || diff
		q.begin(start{Dump: p.Dump, Place: it.Place, kindLost: q.diffs && !hasKind(h)}) // here, because a dump may have no records
	case codec.VerbEnd:
		q.end(h, p)
	}
	q.fill(at, stays)
	at.heap = heap
}

// numbered takes the number of a ~h#begin. Numbers increase and wrap around, unless the device
// restarted: then its time begins again, too. A lower number without a time, where the others have
// one, is that of a cut header.
func (q *places) numbered(h *codec.Header) {
	t, timed := h.Uint("t")
	lower := q.marked && int32(h.Number-q.number) < 0
	switch {
	case lower && q.timed && (!timed || t >= q.time):
		return
	case lower:
		q.boots++
		q.unmarked = 0
	}
	q.number = h.Number
	if timed || !q.marked {
		q.time, q.timed = t, timed
	}
}

// end takes a ~h#end line.
func (q *places) end(h *codec.Header, p *recording.Placed) {
	switch d := q.dump; {
	case p.Closed != nil && p.Closed.Headless != nil:
		lost := p.Closed.Headless
		q.begin(start{Dump: lost, Place: lost.At, number: int64(h.Number), headless: true, isPaths: true, kindLost: q.diffs})
	case p.Closed == nil && d != nil && !d.marked() && !d.ended() && (d.headless && d.number&63 == int64(h.Number)&63 || !d.isPaths && q.marked):
		end := *h
		end.Keys = slices.Clone(h.Keys)
		d.End = &end
	}
	q.fresh, q.breaks, q.at = false, true, recording.Place{}
}

// heapOf returns the values of a ~h#heap line.
func heapOf(h *codec.Header) *profile.Heap {
	amount := func(key string) profile.Amount {
		n, known := h.Uint(key)
		return profile.Amount{Bytes: n, Known: known}
	}
	name, _ := h.Get("name")
	_, foreign := h.Get(forms.ForeignKey)
	r := &profile.Heap{Name: name, Size: amount("size"), Free: amount("free"), Largest: amount("largest"), Min: amount("min"), Foreign: foreign}
	r.Largest.Known = r.Largest.Known && (r.Largest.Bytes > 0 || r.Free.Known && r.Free.Bytes == 0) // what is free has a largest block
	return r
}

// emptied reports whether the latest dump is whole and has no blocks: the program had freed everything.
// In a dump of records that is known only of other systems, which need not be linked.
func (q *places) emptied(foreign bool) bool {
	d := q.dump
	if d == nil || !d.ended() {
		return false
	}
	n, ok := d.Announced("n")
	return (foreign || d.isPaths || hasKind(d.Begin)) && ok && n == 0
}

// hasKind reports whether a ~h#begin is that of a dump of call paths. (BT-DUMP-1)
func hasKind(begin *codec.Header) bool {
	if begin == nil {
		return false
	}
	_, ok := begin.Get("k")
	return ok
}

// pathLine takes a line of call paths. Outside of dumps, a line with values belongs to the dump
// before if it has its number, and else begins a dump; if it has a number that no dump before has,
// the ~h#begin was lost. (BT-DUMP-2)
func (q *places) pathLine(it *recording.Item, at *placed) {
	q.boots = q.bootNumber()
	at.Placed = q.log.Add(it)
	defer q.fill(at, stays)
	p := &at.Placed
	if q.open || !p.Values {
		return
	}
	digit, last := int64(it.PathLine.Dump), int64(-1)
	if d := q.dump; d != nil && d.boot == q.boots {
		last = d.dumpNumber()
		if !q.breaks && (d.isPaths || d.marked()) && last&63 == digit {
			return
		}
	}
	d := start{Dump: &recording.Dump{Boot: p.Boot}, Place: it.Place, isPaths: true, headless: q.marked && digit != max(last, 0)&63}
	d.kindLost = q.diffs && d.headless
	if d.number = last&^63 | digit; last < 0 {
		d.number = digit
	} else if d.number < last {
		d.number += 64
	}
	q.begin(d)
}

// begin makes d the current dump.
func (q *places) begin(d start) {
	q.fresh, q.breaks = false, false
	if d.Dump == nil {
		d.Dump = &recording.Dump{Boot: q.log.Boot()}
	}
	if !d.marked() {
		if q.unmarked++; !d.isPaths {
			d.number = q.unmarked
		}
	}
	q.count++
	if q.dumps++; q.dumps == 1 {
		q.pathsFirst = d.isPaths || hasKind(d.Begin)
	}
	d.input, d.boot, d.heaps, d.ordinal = q.input, q.boots, q.heaps, q.count
	d.header, d.bootText = q.log.Boot().Header, q.bootText()
	q.dump = &d
}

// prose takes text between records.
func (q *places) prose(text []byte) {
	if !q.open && (len(text) > 1 || len(text) == 1 && text[0] != '\n' || len(q.text.line) > 0) { // only headers end a dump that has a ~h#begin (BT-HEAD-4)
		q.text.add(text, q.line)
	}
	q.tail.add(text)
}

// beforeRecord examines the text before a record in its line.
func (q *places) beforeRecord() {
	q.line(q.text.line)
	q.text.line = q.text.line[:0]
}

// line examines a line of text.
func (q *places) line(line []byte) {
	switch {
	case len(line) == 0:
	case q.split != nil && q.split.Match(line):
		q.fresh, q.breaks, q.at = false, true, recording.Place{}
	case forms.IsBanner(line):
		q.restart()
	}
}

// record takes a record with a stack that is no event.
func (q *places) record(it *recording.Item, at *placed) {
	q.boots = q.bootNumber()
	at.Placed = q.log.Add(it)
	if q.open {
		q.fill(at, stays)
		return
	}
	if q.guess == nil && !q.marked && q.split == nil {
		known, ok := q.groups[q.boots]
		q.guess = newGuess(known, ok)
	}
	to, from := stays, it.Place
	switch {
	case q.breaks || q.dump == nil:
		if q.at.Line > 0 {
			from = q.at
		}
		if to = begins; q.guess != nil {
			q.guess.begin(it)
		}
	case q.guess != nil:
		to, from = q.guess.record(it)
	}
	if to == begins || to == beginsPending {
		q.begin(start{Place: from})
	}
	q.fill(at, to)
}

// endBoot examines whether a boot in which no dump boundary was found may hold several
// dumps. If each of its groups of records ends with the same records, each is a dump, which
// another pass can tell from the others.
func (q *places) endBoot() {
	single, g := q.single(), q.guess
	q.inBoot = inBoot{}
	if g == nil {
		return
	}
	g.runs.end(g.known, g.isKnown)
	same, end := g.runs.commonEnd()
	switch {
	case !single:
	case same > 1 && same == g.runs.ended:
		if q.found == nil {
			q.found = map[int]groupEnd{}
		}
		q.found[q.boots] = end
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d groups of records end with the same ones", same, same))
	case same > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: %d of %d groups of records end with the same ones", same, same, g.runs.ended))
	case g.runs.long > 1:
		q.unclear = append(q.unclear, fmt.Sprintf("%d dumps, but they are added up as one: there are %d groups of records, with other text between them", g.runs.long, g.runs.long))
	}
}

// single reports whether the boot has one dump so far, which nothing marks.
func (q *places) single() bool { return q.dumps == 1 && !q.pathsFirst && !q.marked && q.split == nil }

// undecided returns why the log may hold several dumps although they are added up as one, or
// "", as far as the log was read.
func (q *places) undecided() string {
	if len(q.unclear) > 0 {
		return "looks like " + q.unclear[0]
	}
	if q.guess == nil || !q.single() {
		return ""
	}
	if same, _ := q.guess.runs.commonEnd(); same > 1 || q.guess.runs.long > 2 { // a second group may still turn out to be a dump
		return fmt.Sprintf("looks like %d dumps so far, but they are added up as one", max(same, q.guess.runs.long))
	}
	return ""
}
