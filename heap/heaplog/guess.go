package heaplog

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
)

// grouping says to which dump a record outside of dumps belongs.
type grouping uint8

const (
	stays         grouping = iota // to the current dump, and so do the pending records
	pends                         // it is a pending record: the records after it decide
	begins                        // it begins a dump; the pending records belong to the current one
	beginsPending                 // the first pending record begins a dump
)

// guess finds where dumps begin in a boot that has no ~h#begin: where records repeat the beginning
// of the dump before, or behind a group of records that ends as dumps do, if an earlier pass found
// such an end. It keeps a few hashes, and no records. (BT-REC-3)
type guess struct {
	known      groupEnd // what the dumps end with, if isKnown
	isKnown    bool
	last       int64 // line of the last record
	runs       runs
	seed       maphash.Seed
	beginning  beginning // of the current dump
	repetition           // of the beginning
}

func newGuess(known groupEnd, isKnown bool) *guess {
	return &guess{known: known, isKnown: isKnown, seed: maphash.MakeSeed()}
}

// between returns the number of lines between the record before and this one.
func (g *guess) between(line int64) int64 {
	n := line - g.last - 1
	if g.last == 0 {
		n = runGap
	}
	g.last = line
	g.runs.count(n)
	return n
}

// begin takes a record that is known to begin a dump.
func (g *guess) begin(it *recording.Item) {
	g.between(it.Line)
	g.restart()
	g.beginning.add(g.hash(it.Text))
}

// restart begins a dump.
func (g *guess) restart() { g.beginning, g.repetition = beginning{}, repetition{held: g.held[:0]} }

// record takes any other record. If it returns beginsPending, at is the place of the first pending
// record.
func (g *guess) record(it *recording.Item) (to grouping, at recording.Place) {
	between := g.between(it.Line)
	if between > 0 && g.runs.end(g.known, g.isKnown) {
		g.restart()
		g.runs.add(it.Text)
		return begins, it.Place
	}
	g.runs.add(it.Text)
	return g.compare(it, between)
}

func (g *guess) hash(text []byte) uint64 { return maphash.Bytes(g.seed, text) }

const (
	// beginningMost is the number of distinct records compared, beginningFew the minimum
	// for a decision.
	beginningMost, beginningFew = 8, 3
)

// repetition holds pending records, which may repeat the beginning of the current dump.
type repetition struct {
	held    []uint64        // hashes of the pending records
	heldAt  recording.Place // of the first one
	matched int             // number of pending records that are in beginning
	missed  int             // number of records that are in only one of beginning and held
	at      int             // index in beginning.hashes
}

// beginning holds the hashes of the first distinct records of a dump.
type beginning struct {
	hashes []uint64
	broken bool // other text interrupted it before it had enough records
	done   bool
}

// endsAtText ends the beginning where other text follows, if the beginning has enough
// records.
func (b *beginning) endsAtText() {
	switch n := len(b.hashes); {
	case n == 0 || b.broken:
	case n >= beginningFew:
		b.done = true
	default:
		b.broken = true // each record of this log is on its own between other text
	}
}

// add takes the next record of a dump.
func (b *beginning) add(h uint64) {
	if !b.done && !slices.Contains(b.hashes, h) {
		b.hashes = append(b.hashes, h)
		b.done = len(b.hashes) == beginningMost
	}
}

// place returns the index of a record in the beginning, searching from index from on, or
// -1.
func (b *beginning) place(h uint64, from int) int {
	for i := from; i < len(b.hashes); i++ {
		if b.hashes[i] == h {
			return i
		}
	}
	return -1
}

// compare checks whether a record and those after it repeat the beginning of the dump. A
// quarter of the records may differ: some were freed since, and some are new.
func (g *guess) compare(it *recording.Item, between int64) (grouping, recording.Place) {
	ref := &g.beginning
	if between == 0 && ref.done && len(g.held) == 0 {
		return stays, it.Place // dumps begin after other text
	}
	h := g.hash(it.Text)
	if between > 0 && len(g.held) == 0 {
		ref.endsAtText()
	}
	if len(g.held) == 0 {
		at := -1
		if ref.done && between > 0 {
			at = ref.place(h, 0)
		}
		if at < 0 || at > len(ref.hashes)/4 {
			ref.add(h)
			return stays, it.Place
		}
		g.held, g.matched, g.missed, g.at, g.heldAt = append(g.held, h), 1, at, at+1, it.Place
		return g.decide()
	}
	known := h == g.held[len(g.held)-1] // a repeated record is no evidence
	g.held = append(g.held, h)
	if at := ref.place(h, g.at); at >= 0 {
		g.matched, g.missed, g.at = g.matched+1, g.missed+at-g.at, at+1
	} else if !known {
		g.missed++
	}
	return g.decide()
}

// decide ends the comparison, if there are enough records.
func (g *guess) decide() (grouping, recording.Place) {
	n := len(g.beginning.hashes)
	switch {
	case g.missed > n/4 || len(g.held) > 4*beginningMost:
		g.held = g.held[:0]
		return stays, g.heldAt
	case g.matched >= n-n/4 && g.matched >= beginningFew:
		at, held := g.heldAt, slices.Clone(g.held)
		g.restart()
		for _, h := range held {
			g.beginning.add(h)
		}
		return beginsPending, at
	}
	return pends, g.heldAt
}

// textLines puts together the lines of text between records.
type textLines struct{ line []byte }

// maxTextLine is the number of bytes of a line of text that are examined.
const maxTextLine = 4096

// add appends text, and calls each for every line that ends in it. Most text is a line end, or the
// text before a record.
func (l *textLines) add(text []byte, each func(line []byte)) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end == 0 && len(l.line) == 0 {
			text = text[1:]
			continue
		}
		part := text
		if end >= 0 {
			part = text[:end]
		}
		if space := maxTextLine - len(l.line); space > 0 {
			l.line = append(l.line, part[:min(len(part), space)]...)
		}
		if end < 0 {
			return
		}
		each(l.line)
		l.line = l.line[:0]
		text = text[end+1:]
	}
}
