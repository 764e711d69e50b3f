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

// dumpStart is where a dump begins, and what its marks say.
type dumpStart struct {
	Place
	log       int // how many logs came before the one it is in
	boot      int // from 1
	number    int64
	time      time.Duration // since the boot, if timed
	timed     bool
	marked    bool // it begins with a ~h#begin line
	ended     bool // and has a ~h#end line
	announced profile.Announced
	split     bool // it begins at a line that matches sequence.split
}

// boundary says which dump a record belongs to.
type boundary uint8

const (
	sameDump boundary = iota // the current dump, as do the records that were pending
	newDump                  // the dump that sequence.dumps ends with now, or the pending ones did
	pending                  // not known until later records
)

// sequence finds in one pass where in a log dumps and boots begin: by ~h# lines, by
// {{{reset}}} where no header stands above it, boot banners, by lines that match split, and where there is none of these,
// by records that begin as those of the dump before did. Where the numbers of ~h#begin lines
// go back, a boot begins, too. It keeps a few hashes, no records. (BT-HEAD-4,
// BT-REC-1, BT-REC-3)
type sequence struct {
	split *regexp.Regexp // of lines that begin a dump, or nil
	// dumps is where dumps begin, the current one last. The user of a sequence may drop
	// the first ones.
	dumps []*dumpStart
	count int  // of dumps so far, also of those that were dropped
	told  bool // a mark or split says where the first one begins

	log       int
	boot      int
	numbers   int64      // dumps of this boot so far
	next      *dumpStart // begins with the next record
	afterBoot bool       // next is there because of a boot
	events    bool       // there were events since the boot
	marked    bool       // this boot has ~h#begin lines
	number    uint32     // of the last of these
	open      bool       // between ~h#begin and ~h#end
	remap     bool       // a ~h#map was seen: the next {{{reset}}} is its own
	headers   bool       // this log has ~h# lines: no {{{reset}}} begins a boot
	line      []byte     // of text, not ended yet
	last      int64      // line of the last record

	run     int            // records without runGap lines of other text between them
	gap     int64          // lines in front of the run
	runs    int            // runs of runRecords and more
	ends    map[uint64]int // how often runs ended with the same records, by their hash
	recent  [runRecords][]byte
	recents int // records of the run in recent, and more
	seed    maphash.Seed

	beginning beginning // of the current dump
	held      []uint64  // hashes of pending records
	heldAt    Place     // of the first of them
	matched   int       // of held: also in beginning
	missed    int       // records of either that are not in the other
	at        int       // in beginning.hashes
}

const (
	// beginningMost is how many distinct records are compared, and beginningFew how many
	// are needed to tell anything.
	beginningMost, beginningFew = 8, 3
	runRecords                  = 8
	runGap                      = 5
	maxTextLine                 = 4096
	maxEnds                     = 4096 // of sequence.ends
)

// newLog begins another log, with its number from 0: its records are of another boot.
func (q *sequence) newLog(log int) {
	q.line = q.line[:0]
	q.log = log
	q.headers = false
	q.afterBoot = false
	q.newBoot(Place{})
	q.afterBoot = false
}

func (q *sequence) newBoot(at Place) {
	if q.next != nil && q.afterBoot && !q.events {
		return // a banner of several lines, or one with a reset
	}
	q.boot++
	q.events = false
	q.numbers, q.marked, q.open, q.remap = 0, false, false, false
	q.beginning = beginning{}
	q.last, q.run = 0, 0
	q.next, q.afterBoot = &dumpStart{Place: at, boot: q.boot}, true
}

// header takes a ~h# line.
func (q *sequence) header(it *Item) {
	h := it.Header
	q.headers = true
	switch h.Verb {
	case codec.VerbBoot:
		q.newBoot(it.Place)
	case codec.VerbMap:
		q.remap = true
	case codec.VerbBegin:
		q.boot = max(q.boot, 1)
		if q.marked && int32(h.Number-q.number) < 0 { // numbers go up, and wrap: it restarted
			q.boot++
			q.numbers = 0
		}
		q.marked, q.open, q.number = true, true, h.Number
		d := &dumpStart{Place: it.Place, boot: q.boot, number: int64(h.Number), marked: true}
		us, timed := h.Uint("t")
		d.time, d.timed = microseconds(us), timed
		announce(&d.announced, h)
		q.begin(d) // at once: a dump without records is one, too
	case codec.VerbEnd:
		if n := len(q.dumps); q.open && n > 0 && q.dumps[n-1].number == int64(h.Number) {
			q.dumps[n-1].ended = true
			announce(&q.dumps[n-1].announced, h)
		}
		q.open = false
		q.next, q.afterBoot = &dumpStart{boot: q.boot}, false
	}
}

// microseconds returns a time of the log as a duration, at most the longest one.
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
	d.log = q.log
	if q.count++; q.count == 1 {
		q.told = d.marked || d.split
	}
	q.dumps = append(q.dumps, d)
	q.beginning = beginning{}
	q.held, q.matched, q.missed, q.at = q.held[:0], 0, 0, 0
}

// banners are texts by which devices say that they start.
var banners = [...]string{
	"*** Booting ",              // Zephyr, Zephyr's MCUboot
	"rst:0x",                    // ESP32's boot ROM
	"Linux version ",            //
	"Booting Linux on physical", //
	"NuttShell (NSH)",           // NuttX
	"U-Boot 2",                  // U-Boot 2024.01
	"OpenWrt SDK boot",          //
}

// bannerStart has the bytes that banners begin with.
var bannerStart = func() (t [256]bool) {
	for _, b := range banners {
		t[b[0]] = true
	}
	return t
}()

// isBanner reports whether a line says that a device starts.
func isBanner(line []byte) bool {
	for i, c := range line {
		if !bannerStart[c] {
			continue
		}
		for _, b := range banners {
			if c == b[0] && len(line)-i >= len(b) && string(line[i:i+len(b)]) == b {
				return true
			}
		}
	}
	return false
}

var resetElement = []byte("{{{reset}}}")

// text takes text between records. Most text is one line end, or the text in front of a record.
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

// endLine looks at a line of text, without its records. A line with a record is looked at
// before that record, as far as it is in front of it.
func (q *sequence) endLine() {
	switch {
	case len(q.line) == 0:
	case q.split != nil && q.split.Match(q.line):
		q.next, q.afterBoot = &dumpStart{boot: max(q.boot, 1), split: true}, false
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

// record takes a record with a stack, and returns which dump it belongs to. Pending records
// belong to the current dump if sameDump follows, and to the new one if newDump does; at the
// end of the log, they belong to the current one.
func (q *sequence) record(it *Item) boundary {
	q.endLine()
	q.boot = max(q.boot, 1)
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
		q.countRun(between)
		q.beginning.add(q.hash(it.Text))
		return newDump
	}
	q.countRun(between)
	if q.marked || q.split != nil {
		return sameDump
	}
	if between > 0 {
		q.endRun()
	}
	at := q.recents % runRecords
	q.recent[at] = append(q.recent[at][:0], it.Text...)
	q.recents++
	return q.compare(it, between)
}

// endRun counts how often the same 8 records were the last before other text, in the same
// order: a list that is printed newest first ends as it did before.
func (q *sequence) endRun() {
	if q.recents >= runRecords && len(q.ends) < maxEnds {
		var h maphash.Hash
		q.hash(nil) // makes the seed
		h.SetSeed(q.seed)
		for i := range runRecords {
			h.Write(q.recent[(q.recents+i)%runRecords])
			h.WriteByte('\n')
		}
		if q.ends == nil {
			q.ends = map[uint64]int{}
		}
		q.ends[h.Sum64()]++
	}
	q.recents = 0
}

func (q *sequence) hash(text []byte) uint64 {
	if q.seed == (maphash.Seed{}) {
		q.seed = maphash.MakeSeed()
	}
	return maphash.Bytes(q.seed, text)
}

// countRun counts records that are close together.
func (q *sequence) countRun(between int64) {
	if between >= runGap {
		q.run, q.gap = 0, between
	}
	if q.run++; q.run == runRecords && q.gap >= runGap {
		q.runs++
	}
}

// undecided returns what else the log may be, if only one dump was found and it may be
// several; else "". Call it at the end of the log.
func (q *sequence) undecided() string {
	if q.count != 1 || q.told {
		return ""
	}
	q.endRun()
	same := 0
	for _, n := range q.ends {
		same = max(same, n)
	}
	why := ""
	switch {
	case same > 1:
		why = fmt.Sprintf("%d dumps, but they are added up as one: %d groups of records end with the same ones", same, same)
	case q.runs > 1:
		why = fmt.Sprintf("%d dumps, but they are added up as one: there are %d groups of records, with other text between them", q.runs, q.runs)
	default:
		return ""
	}
	return "looks like " + why + "; --split REGEX says at which line a dump begins"
}
