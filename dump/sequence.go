package dump

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"regexp"

	"github.com/lwsbt/lwsbt/codec"
)

// Start is why a dump begins where it does.
type Start uint8

const (
	StartLog      Start = iota // the first records of a log
	StartMarked                // a ~h#begin line
	StartBoot                  // a ~h#boot line, a boot banner, or {{{reset}}}
	StartSplit                 // a line that matches Sequence.Split
	StartRepeated              // the records begin as those of the dump before did
	StartUnmarked              // records outside the dumps that ~h# lines open
)

var startNames = [...]string{"log", "~h#begin", "boot", "--split", "repeated beginning", "outside ~h#begin and ~h#end"}

// String returns the rule by which a dump begins.
func (s Start) String() string { return startNames[s] }

// Dump is one dump of a log, a snapshot of what is allocated.
type Dump struct {
	Place            // of its mark, or its first record
	Start  Start     //
	Log    int       // how many logs came before the one it is in
	Boot   int       // from 1
	Number int64     // by its mark, else counted in its boot, from 1
	Time   uint64    // microseconds since the boot, if Timed
	Timed  bool      //
	Begin  *Announce // what its ~h#begin says to expect, nil without one
	End    *Announce // what its ~h#end says, nil without one
}

// Announce holds the totals of a dump that a ~h# line gives.
type Announce struct {
	Records, Bytes       uint64
	HasRecords, HasBytes bool
}

// Verdict says which dump a record belongs to.
type Verdict uint8

const (
	Same  Verdict = iota // the record is of the current dump, as are those that were held
	Split                // it begins the dump that Sequence.Dumps ends with now, or those held did
	Hold                 // not known until later records: keep it
)

// Sequence finds in one pass where in a log dumps and boots begin: by ~h# lines, by
// {{{reset}}} and boot banners, by lines that match Split, and where there is none of
// these, by records that begin as those of the dump before did. Where the numbers of
// ~h#begin lines go back, a boot begins, too.
//
// Feed it all text and records in order. It keeps a few hashes, no records.
// (BT-HEAD-4, BT-REC-1, BT-REC-3)
type Sequence struct {
	// Split, if not nil, matches lines that begin a dump; it may match a line with
	// records in, which begin it then.
	Split *regexp.Regexp
	// Dumps is the dumps so far. The last is the current one.
	Dumps []Dump
	// Runs is how many times 8 or more records stood together after 5 or more lines
	// of other text, since marks were last seen.
	Runs int

	log     int
	boot    int
	numbers int64          // dumps of this boot so far
	next    *Dump          // begins with the next record
	marked  bool           // this boot has ~h#begin lines
	number  uint32         // of the last of these
	open    bool           // between ~h#begin and ~h#end
	remap   bool           // a ~h#map was seen: the next {{{reset}}} is its
	line    []byte         // of text, not ended yet
	last    int64          // line of the last record
	run     int            // records that stand together
	gap     int64          // lines before the run
	ends    map[uint64]int // how often runs ended with the same records, by their hash
	recent  [runRecords][]byte
	recents int // records of the run in recent, and more
	seed    maphash.Seed
	first   beginning // of the dump before
	current beginning // of this one
	held    []uint64
	heldAt  Place // of the first that is held
	matched int
	missed  int
	at      int // in first.hashes
}

// beginning is the first distinct records of a dump, by their hashes.
type beginning struct {
	hashes []uint64
	broken bool // by other text before there were enough for that to be an end
	done   bool
}

const (
	// beginningMost is how many distinct records are compared, and beginningFew how
	// many must be there to tell anything.
	beginningMost, beginningFew = 8, 3
	runRecords                  = 8
	runGap                      = 5
	maxTextLine                 = 4096
)

// NewLog begins another log: its records are of another boot.
func (q *Sequence) NewLog() {
	q.line = q.line[:0]
	q.log++
	q.newBoot(Place{}, StartLog)
}

func (q *Sequence) newBoot(at Place, why Start) {
	if q.next != nil && q.next.Start == StartBoot && why == StartBoot {
		return // a banner of several lines, or one with a reset
	}
	q.boot++
	q.numbers, q.marked, q.open, q.remap = 0, false, false, false
	q.first, q.current = beginning{}, beginning{}
	q.last, q.run = 0, 0
	q.next = &Dump{Place: at, Start: why, Boot: q.boot}
}

// Boot returns the number of the current boot, from 1.
func (q *Sequence) Boot() int { return max(q.boot, 1) }

// Header takes a ~h# line.
func (q *Sequence) Header(r *Record) {
	h := &r.Header
	switch h.Verb {
	case codec.VerbBoot:
		q.newBoot(r.Place, StartBoot)
	case codec.VerbMap:
		q.remap = true
	case codec.VerbBegin:
		if q.boot == 0 {
			q.boot = 1
		}
		if q.marked && int32(h.Number-q.number) < 0 { // numbers go up, and wrap: it restarted
			q.boot++
			q.numbers = 0
		}
		q.marked, q.open, q.number = true, true, h.Number
		d := Dump{Place: r.Place, Start: StartMarked, Boot: q.boot, Number: int64(h.Number)}
		d.Time, d.Timed = h.Uint("t")
		d.Begin = announced(h)
		q.begin(d) // at once: a dump without records is one, too
	case codec.VerbEnd:
		if n := len(q.Dumps); q.open && n > 0 && q.Dumps[n-1].Number == int64(h.Number) {
			q.Dumps[n-1].End = announced(h)
		}
		q.open = false
		q.next = &Dump{Start: StartUnmarked, Boot: q.boot}
	}
}

func announced(h *codec.Header) *Announce {
	a := &Announce{}
	a.Records, a.HasRecords = h.Uint("n")
	a.Bytes, a.HasBytes = h.Uint("b")
	return a
}

// begin makes d the current dump.
func (q *Sequence) begin(d Dump) {
	if d.Start != StartMarked {
		q.numbers++
		d.Number = q.numbers
	}
	q.next = nil
	d.Log = q.log
	q.Dumps = append(q.Dumps, d)
	q.first, q.current = q.current, beginning{}
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

// Marks reports whether text between records may say that a dump or a boot begins:
// other text need not be given to Text. It may be called by several goroutines.
func (q *Sequence) Marks(text []byte) bool {
	if isBanner(text) {
		return true
	}
	for q.Split != nil && len(text) > 0 {
		line, rest, _ := bytes.Cut(text, newline)
		if len(line) > 0 && q.Split.Match(line[:min(len(line), maxTextLine)]) {
			return true
		}
		text = rest
	}
	return false
}

var resetElement = []byte("{{{reset}}}")

// Text takes text between records. Most text has nothing to look for.
func (q *Sequence) Text(p []byte) {
	if len(p) == 1 && len(q.line) == 0 && p[0] == '\n' {
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		if room := maxTextLine - len(q.line); room > 0 {
			q.line = append(q.line, part[:min(len(part), room)]...)
		}
		if end >= 0 {
			q.endLine()
			q.line = q.line[:0]
		}
	}
}

// endLine looks at a line of text, without its records. With one behind it, it is
// looked at before that record, as far as it stands in front of it.
func (q *Sequence) endLine() {
	switch {
	case len(q.line) == 0:
	case q.Split != nil && q.Split.Match(q.line):
		q.next = &Dump{Start: StartSplit, Boot: max(q.boot, 1)}
	case isBanner(q.line):
		q.newBoot(Place{}, StartBoot)
	case bytes.Contains(q.line, resetElement):
		if !q.remap {
			q.newBoot(Place{}, StartBoot)
		}
		q.remap = false
	}
}

// Record takes a record with a stack, and reports which dump it belongs to. Records on
// Hold belong to the current dump when Same follows, and to the new one when Split
// does; at the end of the log, they belong to the current one.
func (q *Sequence) Record(r *Record) Verdict {
	if len(q.line) > 0 { // in front of the record, in its line
		q.endLine()
		q.line = q.line[:0]
	}
	if q.boot == 0 {
		q.boot = 1
	}
	if len(q.Dumps) == 0 && q.next == nil {
		q.next = &Dump{Start: StartLog, Boot: q.boot}
	}
	between := r.Line - q.last - 1
	if q.last == 0 {
		between = runGap
	}
	q.last = r.Line
	if q.next != nil {
		d := *q.next
		if d.Line == 0 {
			d.Place = r.Place
		}
		q.begin(d)
		q.countRun(between)
		q.current.add(q.hash(r.Text))
		return Split
	}
	q.countRun(between)
	if q.marked || q.Split != nil {
		return Same
	}
	if between > 0 {
		q.endRun()
	}
	at := q.recents % runRecords
	q.recent[at] = append(q.recent[at][:0], r.Text...)
	q.recents++
	return q.compare(r, between)
}

// maxEnds is how many ends of runs are remembered.
const maxEnds = 4096

// endRun counts how often 8 records stood last, in that order, before other text: a
// list that is printed newest first ends as it did before.
func (q *Sequence) endRun() {
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

func (q *Sequence) hash(text []byte) uint64 {
	if q.seed == (maphash.Seed{}) {
		q.seed = maphash.MakeSeed()
	}
	return maphash.Bytes(q.seed, text)
}

// countRun counts records that stand together.
func (q *Sequence) countRun(between int64) {
	if between >= runGap {
		q.run, q.gap = 0, between
	}
	if q.run++; q.run == runRecords && q.gap >= runGap {
		q.Runs++
	}
}

// gap ends the beginning where other text follows, if it has enough records by then.
func (b *beginning) gap() {
	switch n := len(b.hashes); {
	case n == 0 || b.broken:
	case n >= beginningFew:
		b.done = true
	default:
		b.broken = true // records stand alone in this log
	}
}

// add takes the next record of a dump.
func (b *beginning) add(h uint64) {
	if b.done {
		return
	}
	for _, known := range b.hashes {
		if known == h {
			return
		}
	}
	b.hashes = append(b.hashes, h)
	b.done = len(b.hashes) == beginningMost
}

// place is where in the beginning a record stands, from index from on; -1 if it
// does not.
func (b *beginning) place(h uint64, from int) int {
	for i := from; i < len(b.hashes); i++ {
		if b.hashes[i] == h {
			return i
		}
	}
	return -1
}

// compare looks whether records begin again as those of the dump did. Some may be
// missing, which were freed since, and some new: a quarter of them.
func (q *Sequence) compare(r *Record, between int64) Verdict {
	if between == 0 && q.current.done && len(q.held) == 0 {
		return Same // dumps begin after other text
	}
	h := q.hash(r.Text)
	ref := &q.current // a dump is compared with the one before: the current one
	if between > 0 && len(q.held) == 0 {
		ref.gap()
	}
	n := len(ref.hashes)
	if len(q.held) == 0 {
		at := -1
		if ref.done && between > 0 {
			at = ref.place(h, 0)
		}
		if at < 0 || at > n/4 {
			ref.add(h)
			return Same
		}
		q.held, q.matched, q.missed, q.at, q.heldAt = append(q.held, h), 1, at, at+1, r.Place
		return q.decide(n)
	}
	known := h == q.held[len(q.held)-1] // the same again says nothing
	q.held = append(q.held, h)
	if at := ref.place(h, q.at); at >= 0 {
		q.matched, q.missed, q.at = q.matched+1, q.missed+at-q.at, at+1
	} else if !known {
		q.missed++
	}
	return q.decide(n)
}

// decide ends the comparison once it is clear how it goes.
func (q *Sequence) decide(n int) Verdict {
	switch {
	case q.missed > n/4 || len(q.held) > 4*beginningMost:
		q.held = q.held[:0]
		return Same
	case q.matched < n-n/4 || q.matched < beginningFew:
		return Hold
	}
	held := append([]uint64(nil), q.held...)
	q.begin(Dump{Place: q.heldAt, Start: StartRepeated, Boot: q.boot})
	for _, h := range held {
		q.current.add(h)
	}
	return Split
}

// Undecided returns what else the log may be, if only one dump was found and it may be
// several; "" otherwise. Call it at the end of the log.
func (q *Sequence) Undecided() string {
	if len(q.Dumps) != 1 || q.Dumps[0].Start == StartMarked || q.Dumps[0].Start == StartSplit {
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
	case q.Runs > 1:
		why = fmt.Sprintf("%d dumps, but they are added up as one: there are %d groups of records, with other text between them", q.Runs, q.Runs)
	default:
		return ""
	}
	return "looks like " + why + "; --split REGEX says at which line a dump begins"
}
