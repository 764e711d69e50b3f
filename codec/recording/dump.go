package recording

import (
	"iter"
	"math"
	"math/bits"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Dump is a dump of a log, from its ~h#begin on, and the sums of what [Dump.Add] has taken. A
// Dump without Begin has values outside of dumps: a program that groups these makes it itself.
// (BT-HEAD-4, BT-DUMP-1)
type Dump struct {
	Boot  *Boot         // in which it begins
	At    Place         // of its ~h#begin; of Headless, of its first line
	Begin *codec.Header // nil if it has none
	End   *codec.Header // with the dump's number, nil if it has none
	// Sum is the sum of the entries of the dump, before a difference is applied to its base, and
	// as they are written. Its Names are nil if there are no entries.
	Sum callpath.Dump
	// Records is the number of ~m# and ~b# records, readable or not, and RecordBytes the sum of
	// their sizes.
	Records, RecordBytes uint64
	// Foreign is the number of lines in the dump with values that have the number of another dump,
	// whose begin was lost. They do not count. (BT-DUMP-2)
	Foreign int64
	// Headless is the dump of these lines, if its end closed this dump. It has no Begin.
	Headless *Dump
	// NoBase reports whether the dump is a difference from a dump that is missing or not complete.
	// (BT-DUMP-3)
	NoBase bool

	other   *Dump // of the last foreign lines
	number  uint8 // of other, mod 64
	base    *Dump // nil if it is missing, and once the dump is settled
	whole   bool  // the dump is closed and complete
	settled *settled
}

// settled are the final values of a dump.
type settled struct {
	names *callpath.Names
	paths *callpath.Sums
	own   int
}

// newDump returns the dump of a ~h#begin. (BT-DUMP-3)
func newDump(b *Boot, begin *codec.Header, at Place) *Dump {
	d := &Dump{Boot: b, At: at, Begin: begin}
	d.Sum.Sample, _ = begin.Uint("sample")
	_, diff := d.Difference()
	number, of := begin.Uint("base")
	for i := len(b.dumps) - 1; diff && of && d.base == nil && i >= 0; i-- {
		if uint64(b.dumps[i].Begin.Number) == number {
			d.base = b.dumps[i]
		}
	}
	d.NoBase = diff && (d.base == nil || !d.base.whole)
	return d
}

// Difference returns the number of the dump from which this one is a difference, 0 if its begin has
// no base; ok is false if it is none. (BT-DUMP-1)
func (d *Dump) Difference() (number uint32, ok bool) {
	if d.Begin == nil {
		return 0, false
	}
	kind, _ := d.Begin.Get("k")
	n, _ := d.Begin.Uint("base")
	return uint32(n), kind == "diff"
}

// Base returns the dump from which this one is a difference, nil if it is none or the base is
// missing. It is nil after Settle, so that a dump does not keep all those before it.
func (d *Dump) Base() *Dump { return d.base }

// Add takes an item of the dump: p is its place. Items that have no values change nothing.
// (BT-HEAD-4, BT-DUMP-2)
func (d *Dump) Add(it *Item, p *Placed) {
	switch {
	case it.Kind == KindText:
	case it.Counts():
		d.Records = addUp(d.Records, 1)
		if it.Err == nil || it.Cut != nil && it.Kind == KindDecoded { // its text ends before an address that it cannot hold
			d.RecordBytes = addUp(d.RecordBytes, it.Stack.Size)
		}
	case it.Kind != KindPaths:
	case p.Ours || d.Begin == nil:
		d.line(p)
	case p.Values:
		d.Foreign++
		if d.other == nil || d.number != it.PathLine.Dump {
			d.other, d.number = &Dump{Boot: p.Boot, At: it.Place}, it.PathLine.Dump
		}
		d.other.line(p)
	}
}

// line adds the entries of a line, before which other lines may be missing.
func (d *Dump) line(p *Placed) {
	d.Sum.Lines++
	d.Sum.Gaps += p.Lost
	for i := range p.Entries {
		if e := &p.Entries[i]; !e.Definition {
			d.Sum.Add(d.ID(p.Boot, e.ID), &e.Entry)
		}
	}
}

// ID converts an ID in the Names of b to one in the Names of the dump. They differ if the names of
// the boot were replaced after the first lines of the dump.
func (d *Dump) ID(b *Boot, id callpath.ID) callpath.ID {
	if d.Sum.Names == nil {
		d.Sum.Names = b.Names
	}
	if d.Sum.Names == b.Names {
		return id
	}
	p := b.Names.Path(id, nil)
	return d.Sum.Names.Add(&p)
}

// close closes the dump by an end, or by what comes in its place if end is nil.
func (d *Dump) close(end *codec.Header) {
	switch {
	case end == nil:
	case end.Number == d.Begin.Number:
		d.End = cloneHeader(end)
	case d.other != nil && end.Number%64 == uint32(d.number):
		d.Headless = d.other
		d.Headless.End = cloneHeader(end)
	}
	d.other = nil
	d.whole = d.Complete()
}

// Missing is what the headers of a dump have and the log does not. (BT-HEAD-4, BT-DUMP-4)
type Missing struct {
	Lines         uint64 // of call paths
	Blocks, Bytes Lack
}

// Any reports whether anything is known to be missing, or to be too much.
func (m Missing) Any() bool { return m.Lines != 0 || m.Blocks.Any() || m.Bytes.Any() }

// Lack is a number that a header has, n or b, and what was read of it. The difference of the two
// does not fit 64 bits. (BT-DUMP-4)
type Lack struct {
	Announced, Read uint64
	Known           bool // a header has the number
}

// Any reports whether the two differ.
func (l Lack) Any() bool { return l.Known && l.Announced != l.Read }

// String returns what is missing in decimal, negative if more was read than announced, or "-" if
// nothing is known.
func (l Lack) String() string {
	switch {
	case !l.Known:
		return "-"
	case l.Announced < l.Read:
		return "-" + strconv.FormatUint(l.Read-l.Announced, 10)
	}
	return strconv.FormatUint(l.Announced-l.Read, 10)
}

// Missing returns what is missing.
func (d *Dump) Missing() (m Missing) {
	m.Lines = d.Lines()
	m.Blocks = d.lack("n", addUp(d.Sum.Live, d.Records))
	m.Bytes = d.lack("b", addUp(d.Sum.Bytes, d.RecordBytes))
	return m
}

// Lines returns the number of missing lines of call paths. (BT-DUMP-4)
func (d *Dump) Lines() uint64 {
	if d.Begin == nil || d.End == nil {
		return d.Sum.Lost(0, false)
	}
	first, from := d.Begin.Uint("l")
	last, to := d.End.Uint("l")
	return d.Sum.Lost(last-min(first, last), from && to)
}

// Announced returns the value of a key of the end, or else of the begin. (BT-HEAD-4)
func (d *Dump) Announced(key string) (v uint64, ok bool) {
	for _, h := range []*codec.Header{d.End, d.Begin} {
		if h == nil {
			continue
		}
		if v, ok = h.Uint(key); ok {
			return v, true
		}
	}
	return 0, false
}

// lack returns a number of the headers and what was read of it.
func (d *Dump) lack(key string, read uint64) Lack {
	v, ok := d.Announced(key)
	return Lack{Announced: v, Read: read, Known: ok}
}

// Complete reports whether nothing is known to be missing: the dump has its end and all that the
// headers announce, and its base, if it has one, is complete. (BT-DUMP-4)
func (d *Dump) Complete() bool {
	return d.Begin != nil && d.End != nil && !d.NoBase && !d.Missing().Any()
}

// Paths returns the values of the dump by call path, those of its base included, and the Names of
// their IDs, nil if there are no paths. The first own paths are the dump's own, the others those of
// its base. Names count that are known by now. A path without live blocks and bytes is one that the
// difference has removed. (BT-DUMP-2, BT-DUMP-3)
func (d *Dump) Paths() (paths *callpath.Sums, names *callpath.Names, own int) {
	v := d.values(false)
	return v.paths, v.names, v.own
}

// Settle returns what Paths returns, for the last time: names that become known later no longer
// change the values.
func (d *Dump) Settle() (paths *callpath.Sums, names *callpath.Names, own int) {
	v := d.values(true)
	d.settled, d.base = &v, nil
	return v.paths, v.names, v.own
}

// values computes the values from those of the base that was settled last, or has no base. With
// settle, they are the final ones of the dump.
func (d *Dump) values(settle bool) (v settled) {
	var chain []*Dump
	for x := d; x != nil; x = x.base {
		if x.settled != nil {
			v = *x.settled
			break
		}
		chain = append(chain, x)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		v = chain[i].apply(&v, settle && i == 0)
	}
	return v
}

// apply applies the dump to the values of its base.
func (d *Dump) apply(base *settled, settle bool) settled {
	v := settled{names: d.Sum.Names}
	if settle {
		v.paths = d.Sum.Settle()
	} else {
		v.paths = d.Sum.Paths()
	}
	v.own = v.paths.Len()
	if _, diff := d.Difference(); !diff || base.names == nil || v.names != nil && v.names != base.names {
		return v
	}
	v.names = base.names
	v.paths = v.names.Apply(v.paths, base.paths)
	return v
}

func addUp(sum, v uint64) uint64 {
	n, carry := bits.Add64(sum, v, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return n
}

// Dumps returns the dumps of the items of a log, the last one also if it is not closed. All names of
// the log count.
func Dumps(items iter.Seq[*Item]) (dumps []*Dump) {
	var l Log
	for it := range items {
		p := l.Add(it)
		if p.Closed != nil {
			dumps = append(dumps, p.Closed)
		}
		if p.Dump != nil {
			p.Dump.Add(it, &p)
		}
	}
	if d := l.End(); d != nil {
		dumps = append(dumps, d)
	}
	return dumps
}
