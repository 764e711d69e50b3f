package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/logflags"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// Kinds of records that --convert writes.
const (
	toPaths   = "paths"
	toRecords = "records"
)

// converter writes the dumps of a log with records of the other kind. It keeps headers, lines of the
// memory map, and events, and drops all other text. What it does for call paths and for records only
// is in convertpaths.go and convertrecords.go.
type converter struct {
	w       io.Writer
	machine codec.Machine
	search  codec.Search
	counts  conversion
	line    []byte // the begun line of text
	buf     []byte
	blob    []byte
	err     error

	unmarked bool // the log has no begin marks

	code   map[int]map[uint64]struct{} // the code addresses of each boot; nil if records are written
	boot   int                         // of the output, 0 before the first
	ranges callpath.Ranges
	lines  uint64 // of call paths in this boot

	begin   *codec.Header // of the open dump, nil if there is none
	bare    bool          // the open dump has no begin mark in the log
	entries []callpath.Entry
	index   map[string]int // in entries
	value   profile.Value  // of the blocks that the dump has in the output
	skip    bool           // the open dump cannot be converted
}

// conversion counts the losses of a conversion.
type conversion struct {
	lost, thumb, fields, deep, outer, unplaced, means, diffs, sampled, totals, unreadable int64
}

// convert writes the log with --convert.
func (o *options) convert(out io.Writer, r *heaplog.Reader, outcome *logflags.Outcome) error {
	if err := o.findDumps(r); err != nil {
		return err
	}
	c := &converter{w: out, machine: codec.MachineExact64, search: o.search, unmarked: true}
	if m, given := o.CodecMachine(); given {
		c.machine = m
	}
	if o.convertTo == toPaths {
		if err := c.survey(r); err != nil {
			return err
		}
		if err := o.single(c, r); err != nil {
			return err
		}
	}
	for it, err := range r.Items() {
		if err != nil {
			err = outcome.Add(err)
		} else {
			c.item(it)
			err = c.err
		}
		if err != nil {
			return err
		}
	}
	c.endLine(c.boot)
	c.end(nil)
	if err := o.single(c, r); err != nil {
		return err
	}
	if !o.Quiet {
		for _, text := range c.counts.notes() {
			outcome.Note(text)
		}
	}
	return c.err
}

// findDumps makes a pass over the dumps, so that later passes over items can distinguish dumps
// with the same end.
func (o *options) findDumps(r *heaplog.Reader) error {
	for _, err := range r.Dumps() {
		if err != nil {
			continue // a later pass reports it
		}
	}
	if text := r.Summary().Undecided; text != "" && o.Dump == "" {
		return fmt.Errorf("%s; %s, or --dump all converts their sum", text, logflags.SplitHint)
	}
	return nil
}

// single returns an error if the log has several dumps without begin marks, since the output
// would add them up.
func (o *options) single(c *converter, r *heaplog.Reader) error {
	if n := r.Summary().Dumps; n > 1 && c.unmarked && o.Dump == "" {
		return fmt.Errorf("the log has %d dumps and no ~h#begin lines, expected one dump: --dump N selects it", n)
	}
	return nil
}

// survey collects the addresses of each boot.
func (c *converter) survey(r *heaplog.Reader) error {
	c.code = map[int]map[uint64]struct{}{}
	for it, err := range r.Items() {
		if err != nil {
			continue // the second pass reports it
		}
		if it.Kind == recording.KindHeader && it.Header.Verb == codec.VerbBegin {
			c.unmarked = false
		}
		if it.Kind == recording.KindPaths {
			return fmt.Errorf("%v: the log already has ~p# lines", it.Place)
		}
		if it.Kind == recording.KindEvent {
			continue
		}
		for _, a := range it.Allocs {
			for _, addr := range a.Stack {
				if c.code[it.Boot] == nil {
					c.code[it.Boot] = map[uint64]struct{}{}
				}
				c.code[it.Boot][pcOf(addr)] = struct{}{}
			}
		}
	}
	return nil
}

// pcOf returns the known part of an address.
func pcOf(a symbol.Addr) uint64 {
	if a.State == symbol.Lost {
		return a.PC & (1<<31 - 1)
	}
	return a.PC
}

func (c *converter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
}

// header writes a header.
func (c *converter) header(h *codec.Header) {
	b, err := codec.AppendHeader(c.buf[:0], h)
	if err != nil {
		c.err = err
		return
	}
	c.buf = append(b, '\n')
	c.write(c.buf)
}

// without returns a copy of a header without these keys.
func without(h *codec.Header, keys ...string) *codec.Header {
	out := *h
	out.Keys = slices.DeleteFunc(slices.Clone(h.Keys), func(k codec.HeaderKey) bool { return slices.Contains(keys, k.Key) })
	return &out
}

func add(h *codec.Header, key string, value uint64) {
	h.Keys = append(h.Keys, codec.HeaderKey{Key: key, Value: fmt.Sprint(value)})
}

// text copies the lines of the memory map. A line may be in several items.
func (c *converter) text(it *heaplog.Item) {
	for part := range bytes.Lines(it.Text) {
		if len(c.line) < maxMarkup {
			c.line = append(c.line, part...)
		}
		if part[len(part)-1] == '\n' {
			c.endLine(it.Boot)
		}
	}
}

// maxMarkup is the length from which on the rest of a line of text is dropped, in bytes.
const maxMarkup = 1 << 16

// endLine writes the line of text, or the part of it before a record.
func (c *converter) endLine(boot int) {
	if i := bytes.Index(c.line, []byte("{{{")); i >= 0 {
		c.inBoot(boot) // before its map, which a ~h#boot line would end
		c.write(append(bytes.TrimRight(c.line[i:], "\r\n"), '\n'))
	}
	c.line = c.line[:0]
}

// item converts or copies an item.
func (c *converter) item(it *heaplog.Item) {
	if it.Kind == recording.KindText {
		c.text(it)
		return
	}
	c.endLine(it.Boot)
	switch it.Kind {
	case recording.KindHeader:
		c.mark(it)
	case recording.KindEvent, recording.KindPathEvents:
		c.inBoot(it.Boot)
		c.write(append(slices.Clone(it.Text), '\n'))
	case recording.KindUnreadable:
		c.counts.unreadable++
	case recording.KindPaths:
		for i := 0; i < len(it.Allocs) && !c.skip; i++ {
			c.alloc(&it.Allocs[i])
		}
	case recording.KindBlob, recording.KindDecoded, recording.KindBareBlob:
		if c.code != nil {
			c.record(it)
			break
		}
		c.value.Add(it.Allocs[0].Value)
		c.write(append(slices.Clone(it.Text), '\n'))
	}
}

// startBoot begins a boot of the output. h is its ~h#boot line, nil if the log has none. With
// call paths, the line has the ranges of the code, inferred from its addresses.
func (c *converter) startBoot(n int, h *codec.Header) {
	c.end(nil)
	c.boot, c.lines = n, 0
	if c.code != nil {
		list, shift := callpath.InferRanges(slices.Collect(maps.Keys(c.code[n])))
		c.ranges = callpath.Ranges{Shift: uint8(shift)}
		for _, x := range list {
			c.ranges.Add(x, "")
		}
		if h != nil {
			h = without(h, "code", "shift")
		}
		if len(list) > 0 {
			if h == nil {
				h = &codec.Header{Verb: codec.VerbBoot}
			}
			h.Keys = append(h.Keys, codec.HeaderKey{Key: "code", Value: codec.FormatRanges(list)})
			add(h, "shift", uint64(shift))
		}
	}
	if h != nil {
		c.header(h)
	}
}

// mark copies a header. The marks of dumps become those of the other kind.
func (c *converter) mark(it *heaplog.Item) {
	switch h := it.Header; h.Verb {
	case codec.VerbBoot:
		c.startBoot(it.Boot, h)
	case codec.VerbBegin:
		c.unmarked = false
		c.end(nil)
		c.open(it.Boot, without(h))
		if c.code == nil {
			c.openRecords(h)
		}
	case codec.VerbEnd:
		c.end(h)
	default:
		c.header(h)
	}
}

// inBoot begins a boot for which the log has no ~h#boot line.
func (c *converter) inBoot(n int) {
	if n != c.boot {
		c.startBoot(n, nil)
	}
}

// open begins a dump.
func (c *converter) open(boot int, h *codec.Header) {
	c.inBoot(boot)
	c.begin, c.bare, c.entries, c.index, c.value, c.skip = h, false, nil, map[string]int{}, profile.Value{}, false
}

// notes returns notes on the losses of the conversion.
func (n *conversion) notes() (list []string) {
	for _, x := range []struct {
		n    int64
		text string
		noun string
	}{
		{n.unreadable, "left out, since they cannot be read", "record"},
		{n.lost, "written with the low 31 bits that are known", "address"},
		{n.thumb, "written without bit 0, which says Thumb code", "address"},
		{n.fields, "with a time, thread or sequence number, which call paths do not hold", "user field"},
		{n.diffs, "left out, since they are the difference to another dump", "dump"},
		{n.sampled, "left out, since they are sampled", "dump"},
		{n.means, "written with the mean size of their entry", "block"},
		{n.deep, "written with the innermost 31 frames", "call path"},
		{n.outer, "written without outer frames, which the log does not have", "call path"},
		{n.unplaced, "written as code offsets, since the log does not say where the code is: give -e", "frame"},
		{n.totals, "written without what was allocated since the boot, and without peaks", "call path"},
	} {
		if x.n > 0 {
			list = append(list, fmt.Sprintf("%s %s", printable.Count(x.n, x.noun), x.text))
		}
	}
	return list
}
