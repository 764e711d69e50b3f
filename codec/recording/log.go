package recording

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Log follows the boots and dumps of a log. [Log.Add] takes its items in order and returns where
// each belongs. It keeps the names of call paths, and no values: see [Dump.Add]. The zero Log is
// at the beginning of a log. (BT-REC-1, BT-HEAD-4)
type Log struct {
	// SameELF reports whether the code offsets of a boot whose ~h#boot has no key code are those
	// of the same ELF file as those of the boot before, so that its names may count, too.
	// (BT-NAME-3)
	SameELF bool

	boot *Boot
	dump *Dump // the open one, nil outside of dumps

	entries []Entry // of the line, as Placed has them
	frames  []callpath.Frame
	blocks  []callpath.Block
	outer   []callpath.ID // the outer parts of the entry, by number of frames
}

// Boot is a boot of a log, or the text before the first one.
type Boot struct {
	Number int           // ~h#boot headers so far, this one included
	Header *codec.Header // the ~h#boot, nil before the first one
	Names  *callpath.Names
	Lines  callpath.Sequence // of ~p# lines
	Events callpath.Sequence // of ~v# lines

	next  uint64  // block of the next line of events
	dumps []*Dump // the last ones that have begun, at most maxBases
}

// maxBases is the number of dumps that are kept, since a later dump may be a difference from one
// of them. (BT-DUMP-3)
const maxBases = 64

// Entry is an entry of a line of call paths. Its Frames are nil: they are those of ID in the
// Names of the boot, and Depth is how many the entry has.
type Entry struct {
	callpath.Entry
	ID    callpath.ID
	Depth int
}

// Placed says where an item belongs, and what is missing before it.
type Placed struct {
	Boot *Boot
	// Dump is the dump that is open behind the item, nil if none is.
	Dump *Dump
	// Closed is the dump that the item closes, nil if it closes none. The item does not belong to it.
	Closed *Dump
	// Entries are those of a KindPaths item, and Frames all frames that stand in it, both valid
	// until the next call of Add. Values reports whether an entry is no definition, and Ours
	// whether the line has the number of the open dump. (BT-DUMP-2)
	Entries      []Entry
	Frames       []callpath.Frame
	Values, Ours bool
	// Lost is the number of ~p# or ~v# lines that are missing before this one. LostAllocs is the
	// number of allocations in the missing ~v# lines, and LostEvents the number of events that the
	// ~h#lost or the ~v# line says are missing. (BT-DUMP-4, BT-VLINE-5, BT-REC-6)
	Lost                   int64
	LostAllocs, LostEvents uint64
}

// Add takes the next item of the log.
func (l *Log) Add(it *Item) Placed {
	l.init()
	p := Placed{}
	switch it.Kind {
	case KindText, KindIdle:
	case KindHeader:
		p.Closed = l.header(it.Header, it.Place)
		if it.Header.Verb == "lost" {
			p.LostEvents, _ = it.Header.Uint("n")
		}
	case KindPaths:
		l.paths(it.PathLine, &p)
	case KindPathEvents:
		l.events(it.EventLine, &p)
	}
	p.Boot, p.Dump = l.boot, l.dump
	return p
}

// Boot returns the boot of the next item, unless that is a ~h#boot.
func (l *Log) Boot() *Boot {
	l.init()
	return l.boot
}

func (l *Log) init() {
	if l.boot == nil {
		l.boot = &Boot{Names: &callpath.Names{}}
	}
}

// End ends the log. It returns the open dump, nil if there is none.
func (l *Log) End() *Dump { return l.close(nil) }

// Restart begins a boot without a ~h#boot. Such a boot forgets no names. It returns the dump
// that it closes, nil if there is none. (BT-NAME-2)
func (l *Log) Restart() (closed *Dump) {
	l.init()
	closed = l.close(nil)
	l.boot = &Boot{Number: l.boot.Number, Header: l.boot.Header, Names: l.boot.Names}
	return closed
}

// SetNames replaces the names of this boot: by those that an earlier reading has learned, or by
// none, where those of the boot before do not count. Entries so far keep theirs.
func (l *Log) SetNames(n *callpath.Names) {
	l.init()
	l.boot.Names = n
}

// header takes a header. It returns the dump that it closes.
func (l *Log) header(h *codec.Header, at Place) (closed *Dump) {
	switch h.Verb {
	case codec.VerbBoot:
		closed = l.close(nil)
		l.begin(cloneHeader(h))
	case codec.VerbBegin:
		closed = l.close(nil)
		l.dump = newDump(l.boot, cloneHeader(h), at)
		l.boot.dumps = append(l.boot.dumps, l.dump)
		l.boot.dumps = l.boot.dumps[max(0, len(l.boot.dumps)-maxBases):]
	case codec.VerbEnd:
		closed = l.close(h)
	}
	return closed
}

// begin begins the boot of a ~h#boot. (BT-NAME-3)
func (l *Log) begin(h *codec.Header) {
	before := l.boot
	names := &callpath.Names{}
	if _, coded := h.Get("code"); before.Header != nil && (coded || l.SameELF) && callpath.KeepsNames(before.Header, h) {
		names = before.Names
	}
	l.boot = &Boot{Number: before.Number + 1, Header: h, Names: names,
		Lines: callpath.Sequence{Known: true}, Events: callpath.Sequence{Known: true}}
}

// close closes the open dump by its end, or by what comes in its place if end is nil.
func (l *Log) close(end *codec.Header) (d *Dump) {
	d, l.dump = l.dump, nil
	if d != nil {
		d.close(end)
	}
	return d
}

// paths takes a line of call paths. (BT-DUMP-2)
func (l *Log) paths(line *callpath.Line, p *Placed) {
	p.Lost = l.boot.Lines.Line(uint64(line.Seq), 1<<12)
	p.Values = l.read(line)
	p.Entries, p.Frames = l.entries, l.frames
	p.Ours = l.dump != nil && uint32(line.Dump) == l.dump.Begin.Number%64
}

// read reads the entries of a line and tells their names. values reports whether one of the
// entries is no definition. (BT-NAME-2)
func (l *Log) read(line *callpath.Line) (values bool) {
	names := l.boot.Names
	l.entries, l.frames, l.blocks = l.entries[:0], l.frames[:0], l.blocks[:0]
	for e := (callpath.Entry{}); line.Next(&e); {
		kept := line.Kept()
		if kept == 0 {
			l.outer = append(l.outer[:0], names.Add(&callpath.Path{Base: e.Base, Outer: e.Outer}))
		}
		l.outer = l.outer[:kept+1]
		for _, f := range e.Frames[kept:] {
			l.outer = append(l.outer, names.Extend(l.outer[len(l.outer)-1], f))
			l.frames = append(l.frames, f)
		}
		own := Entry{e, l.outer[len(l.outer)-1], len(e.Frames)}
		l.blocks = append(l.blocks, e.Blocks...)
		own.Frames, own.Blocks = nil, l.blocks[len(l.blocks)-len(e.Blocks):]
		l.entries = append(l.entries, own)
		values = values || !e.Definition
	}
	line.Rewind()
	return values
}

// events takes a line of events. (BT-VLINE-5)
func (l *Log) events(line *callpath.Events, p *Placed) {
	b := l.boot
	p.Lost = b.Events.Line(uint64(line.Seq), 1<<18)
	if line.EventsHead.Next > b.next && b.Events.Read > 1 {
		p.LostAllocs = line.EventsHead.Next - b.next
	}
	p.LostEvents, b.next = line.Lost, line.After
}

func cloneHeader(h *codec.Header) *codec.Header {
	c := *h
	c.Keys = slices.Clone(h.Keys)
	return &c
}
