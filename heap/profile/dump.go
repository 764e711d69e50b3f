package profile

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Dump holds the allocations that were live at one moment, by call path. A Dump that a
// [Builder] has returned does not change.
type Dump struct {
	DumpInfo
	Records int64 // number of records added
	Total   Value
	Ended   bool // no more records will be added

	in    *paths
	addrs int           // number of addresses of in that the call paths use
	live  *table[Value] // by number of the path
	more  *table[more]  // of the paths that have more than a Value
}

// DumpInfo describes a dump.
type DumpInfo struct {
	Name   string        // the name in reports: "dump 3", or the name of a file
	File   string        // the log in which it begins
	Line   int64         // line in File where it begins, from 1; 0 if not known
	Index  int           // among the dumps of all inputs, from 0
	Boot   int           // boot of the device, from 1
	Number int64         // number of the dump in the log, or else counted from 1
	Time   time.Duration // since the boot, if Timed
	Timed  bool
	Stamps []Stamp // times of the lines at the dump, of one or several clocks
	Why    string  // what caused the dump, as its ~h#begin says: "exit", "interval"; "" if not known

	Announced Announced
	Loss      Loss
	Cut       bool // the end is missing: the log has a begin mark and no end mark, or reading failed

	Build, Device, Firmware string // of the boot, as the log names them; "" if it does not
	BootHeader              string // text of the ~h#boot with which the boot begins, "" if there is none
	Foreign                 bool   // a heap trace of another system
	Fresh                   bool   // it has blocks, all with addresses, and no earlier dump of the boot has a block at one of these
	Naming                  int    // how often the load bases had been inferred anew when it began: the names of others differ
	Heaps                   []Heap // latest report of the allocator on each heap, in this dump or before it

	// Written is the sum of the records in the log, to which Announced refers. It differs
	// from Total if the dump is sampled, or has only the changes since another dump.
	Written Value
	// Sample is the mean number of bytes from one sampled byte to the next, 0 if the dump
	// is not sampled. The values of a sampled dump are estimates: see [Allocation].
	Sample uint64
	// Paths reports whether the log has sums of call paths, and not each block: of a path that it has, no
	// block is missing.
	Paths bool
	// Offsets reports whether the call paths are those of code whose address the log does not tell: its ~h#boot
	// is lost.
	Offsets bool
	// Diff reports whether the log has only the changes since the dump with the number
	// Base. The values of the Dump are those of Base with the changes applied.
	Diff bool
	Base int64
}

// Announced holds the numbers that the marks of a dump in the log announce.
type Announced struct {
	Records, Bytes       uint64
	HasRecords, HasBytes bool
}

// Loss counts the records of a dump that are incomplete.
type Loss struct {
	Unreadable int64 // records that could not be read, or do not fit what the headers of the dump announce
	Restored   int64 // damaged records that count as the equal ones of the boot
	Cut        int64 // call paths that lack their outer frames
	NoSize     int64 // records cut before the size, which count 0 bytes
	OtherPaths int64 // records of call paths beyond the limit, added up as one path
	Saturated  bool  // a sum overflowed and is 2^64-1

	Lines   int64 // lines of call paths that were lost
	NoOuter int64 // records of call paths that lack their outer frames, or whose name is not known
	Folded  int64 // live blocks counted for their outer frames only, because the device had no space for the whole call path
	NoBase  bool  // the base of a differential dump is missing or incomplete
	Partial bool  // the dump may have only the call paths that changed: its base is missing, or a cut header does not say that it has one
}

// Complete reports whether no part of the dump is known to be missing: the dump has ended,
// it has an end mark if it has a begin mark, it has the announced number of records, and the
// base of a differential dump is complete.
func (d *Dump) Complete() bool { return d.Incomplete() == "" }

// Incomplete returns what is missing of a dump that is not complete, such as "26 of 27
// records", or "" if it is complete.
func (d *Dump) Incomplete() string {
	switch {
	case d == nil:
		return "no dump"
	case d.Announced.HasRecords && d.have() < d.Announced.Records:
		return fmt.Sprintf("%s of %s records", printable.Number(d.have()), printable.Number(d.Announced.Records))
	case d.Cut && d.Foreign:
		return "no last line"
	case d.Cut:
		return "no end mark (~h#end)"
	case !d.Ended:
		return "not ended"
	case d.Loss.NoBase:
		return fmt.Sprintf("its base, dump number %d, is missing or incomplete", d.Base)
	}
	return ""
}

// have returns the number of records, or of blocks, that Announced.Records announces.
func (d *Dump) have() uint64 {
	if d.Sample > 0 || d.Diff || !d.Written.IsZero() {
		return d.Written.Count
	}
	return d.Total.Count
}

// Missing returns the fraction of the blocks that is missing, from 0 to 1. known is false if the
// log does not say how many blocks the dump had. A dump that has only changes announces the blocks
// of these; the fraction is one of all its blocks.
func (d *Dump) Missing() (fraction float64, known bool) {
	if d == nil || !d.Announced.HasRecords {
		return 0, false
	}
	have, n := d.have(), d.Announced.Records
	switch {
	case n <= have:
		return 0, true
	case d.Diff:
		return float64(n-have) / (float64(n-have) + float64(d.Total.Count)), true
	}
	return float64(n-have) / float64(n), true
}

// subsets are the first words of why where a dump has only some of the blocks, as NuttX and Zephyr
// write on request.
var subsets = map[string]bool{"leak": true, "task": true, "biggest": true, "mempool": true, "orphan": true, "sequence": true}

// Part returns which of the blocks the dump has, where a system has dumped some of them on request:
// "leak", "task main". It returns "" if the dump has all.
func (d *Dump) Part() string {
	if first, _, _ := strings.Cut(d.Why, " "); subsets[first] {
		return d.Why
	}
	return ""
}

// MissingBlocks returns the number of blocks that the log lacks, of those that the dump announces.
func (d *Dump) MissingBlocks() uint64 {
	if have := d.have(); d.Announced.HasRecords && have < d.Announced.Records {
		return d.Announced.Records - have
	}
	return 0
}

// Allocation is the sum of the live allocations of one call path.
type Allocation struct {
	Path
	Value
	Ever Value  // allocations since the boot, including freed ones; zero if not recorded
	Peak uint64 // the most bytes that were live, or an upper bound; 0 if not recorded
	// BytesErr and CountErr are the standard errors of Value, 0 if the dump is not sampled. For
	// about two of three call paths, the true value is within one standard error.
	BytesErr, CountErr float64
}

// Allocations returns the allocations of the dump by call path, in the order in which the
// Builder first met the paths. No value is zero.
func (d *Dump) Allocations() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		if d == nil {
			return
		}
		ids, values := d.live.whole()
		moreIDs, moreValues := d.more.whole()
		at := 0
		for i, id := range ids {
			for at < len(moreIDs) && moreIDs[at] < id {
				at++
			}
			m := more{}
			if at < len(moreIDs) && moreIDs[at] == id {
				m = moreValues[at]
			}
			if !yield(m.allocation(Path{d.in, id}, values[i])) {
				return
			}
		}
	}
}

// all yields Allocations and then Freed.
func (d *Dump) all() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		for _, list := range []iter.Seq[Allocation]{d.Allocations(), d.Freed()} {
			for a := range list {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// Len returns the number of call paths with live allocations.
func (d *Dump) Len() int {
	if d == nil {
		return 0
	}
	return d.live.len()
}

// Value returns the live allocations of a call path in the dump.
func (d *Dump) Value(p Path) Value {
	if d == nil || p.in != d.in {
		return Value{}
	}
	return d.live.at(p.id)
}

// Sum returns the sum of several dumps as one dump, named after the first and the last. The
// sum of one dump is that dump itself.
func Sum(dumps ...*Dump) *Dump {
	dumps = slices.DeleteFunc(slices.Clone(dumps), func(d *Dump) bool { return d == nil })
	switch len(dumps) {
	case 0:
		return &Dump{Ended: true}
	case 1:
		return dumps[0]
	}
	first, last := dumps[0], dumps[len(dumps)-1]
	info := DumpInfo{Name: first.Name + " to " + last.Name, File: first.File, Line: first.Line, Boot: first.Boot,
		Build: first.Build, Device: first.Device, Firmware: first.Firmware}
	records := int64(0)
	b := builderOn(dumps)
	for _, d := range dumps {
		b.addDump(d)
		records += d.Records
		info.Written.Add(d.Written)
		info.Sample = max(info.Sample, d.Sample)
		info.same(d)
		info.Loss.add(&d.Loss)
		info.Cut = info.Cut || d.Cut
	}
	sum := b.End(info)
	sum.Records = records
	sum.Loss.OtherPaths = info.Loss.OtherPaths
	sum.Loss.Saturated = sum.Loss.Saturated || info.Loss.Saturated
	return sum
}

// NewDump returns an ended dump with the values of call paths.
func NewDump(info DumpInfo, values iter.Seq2[Path, Value]) *Dump {
	var in *paths
	same := true
	for p := range values {
		if in == nil {
			in = p.in
		}
		same = same && in != nil && p.in == in
	}
	b := NewBuilder(0)
	if same && in != nil { // the paths of one Builder are not copied
		b.paths = in
	}
	for p, v := range values {
		b.Add(p, v)
	}
	return b.End(info)
}

// addDump adds the allocations of a dump.
func (b *Builder) addDump(d *Dump) {
	for a := range d.all() {
		b.AddAllocation(a)
	}
}

// add adds the losses of another dump.
func (l *Loss) add(o *Loss) {
	l.Unreadable += o.Unreadable
	l.Restored += o.Restored
	l.Cut += o.Cut
	l.NoSize += o.NoSize
	l.OtherPaths += o.OtherPaths
	l.Saturated = l.Saturated || o.Saturated
	l.Lines += o.Lines
	l.NoOuter += o.NoOuter
	l.Folded += o.Folded
	l.NoBase = l.NoBase || o.NoBase
	l.Partial = l.Partial || o.Partial
}

// same clears Build, Device and Firmware of d where they differ from those of o.
func (d *DumpInfo) same(o *Dump) {
	for _, s := range []struct {
		mine  *string
		other string
	}{{&d.Build, o.Build}, {&d.Device, o.Device}, {&d.Firmware, o.Firmware}} {
		if *s.mine != s.other {
			*s.mine = ""
		}
	}
}

// common returns the call paths that all dumps share, or nil if the dumps have several
// Builders.
func common(dumps []*Dump) (in *paths, ok bool) {
	for _, d := range dumps {
		if d.Len() == 0 || d.in == in {
			continue
		}
		if in != nil {
			return nil, false
		}
		in = d.in
	}
	return in, true
}

// builderOn returns a Builder to which the dumps can be added. If the dumps share a
// Builder, builderOn copies no path, and the caller must add no other paths.
func builderOn(dumps []*Dump) *Builder {
	b := NewBuilder(0)
	if in, ok := common(dumps); ok && in != nil {
		b.paths = in
	}
	return b
}

// Clock is a source of the times of dumps.
type Clock struct {
	// Wraps are the times after which the clock may begin again at 0 although the device runs on.
	Wraps []time.Duration
	// Wall is set for the time of day or the date, which a reboot does not set back to 0.
	Wall bool
}

// Stamp is a time that a line of the log has, at the dump or shortly before it.
type Stamp struct {
	*Clock
	At time.Duration
}
