package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/table"
	heap "github.com/lwsbt/lwsbt/profile"
)

// heapMap is the state of btheap map.
type heapMap struct {
	*session
	rows  int
	space string

	builder  *heap.Builder
	declared regions // heap= of the boot, or --space
	inferred regions // of the blocks of the boot so far
	heap     heap.Heap
	now      *moment             // the open dump
	gap      uint64              // the smallest between two blocks in this boot
	seen     map[uint64]struct{} // addresses of blocks of an implicit dump
	moments  []*moment
	shown    *mapped // of the dump that is reported on
	of       *moment
}

// moment is a dump, or what was live at the end of a recording with events.
type moment struct {
	number   int // of the dump, from 1
	boot     int
	time     time.Duration
	timed    bool
	diff     bool // only what changed is in the log
	implicit bool // it has no ~h#begin
	blocks   []placed
	heap     heap.Heap
	m        mapped // without lists
	holes    int
	known    bool // the blocks have addresses
}

func mapCommand() *cobra.Command {
	m := &heapMap{session: &session{}}
	s := m.session
	c := s.command(&cobra.Command{
		Use: "map [flags] [FILE...]", Short: "where in the heap blocks and holes are",
		Long: `map shows where blocks lie in the heap: what is used and free, the largest hole
in each dump, holes by size, and the call paths whose blocks keep holes apart.
It needs dumps (~h#begin) or events with addresses, or at least what the
allocator says (~h#heap). The heap is heap= of ~h#boot, or --space; else it is
the blocks that are at most 1 MiB apart. Memory of no block in the log is free.`,
		Example: "btheap map -e app.elf device.log\nbtheap map --space 20001000+8000 --dump 3 -e app.elf device.log",
	}, heap.ByLine, func(args []string) ([]string, error) {
		if m.rows < 0 {
			return nil, fmt.Errorf("-n %d, expected a number of call paths", m.rows)
		}
		if m.space != "" {
			ranges, ok := codec.ParseRanges(m.space)
			if !ok {
				return nil, fmt.Errorf("--space %q, expected START+LENGTH,... in hexadecimal, such as 20001000+8000", m.space)
			}
			m.declared = declared(ranges)
		}
		return args, nil
	}, m.read, m.write)
	s.addAll(c, compareFrames, []string{"json", "output"})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVarP(&m.rows, "rows", "n", 5, "list `N` call paths that keep holes apart, 0 for all")
	f.StringVar(&m.space, "space", "", "the heap is at `RANGES`, START+LENGTH,... in hexadecimal")
	cli.AddFlags(c, "Map", f)
	return c
}

// read reads the blocks of all dumps.
func (m *heapMap) read() error {
	if from, to := m.Selected(); from != to {
		return cli.BadArgsf("--dump %s, expected one dump", m.Dump)
	}
	if err := m.open(heaplog.NamesFirst()); err != nil {
		return err
	}
	m.builder, m.gap = heap.NewBuilder(m.maxPaths), math.MaxUint64
	events, boot := false, 1
	for it, err := range m.reader.Items() {
		if err != nil {
			if err := m.out.Add(err); err != nil {
				return err
			}
			continue
		}
		switch {
		case it.Kind == heaplog.Mark:
			if it.Header.Verb == codec.VerbBoot && (len(m.moments) > 0 || m.now != nil) {
				boot++
			}
			m.mark(it.Header, boot)
		case it.Kind == heaplog.Event, it.Kind == heaplog.PathEvents:
			events = true
		default:
			for b := range blocksOf(it, m.builder) {
				m.block(b, boot)
			}
		}
	}
	m.end()
	m.outcome = m.out.End()
	if m.outcome != nil && cli.Code(m.outcome) != cli.Short {
		return m.outcome
	}
	if events && !slices.ContainsFunc(m.moments, func(x *moment) bool { return x.known }) {
		if err := m.readEvents(); err != nil {
			return err
		}
	}
	return m.choose()
}

// mark takes a header line.
func (m *heapMap) mark(h *codec.Header, boot int) {
	switch h.Verb {
	case codec.VerbBoot:
		m.end()
		m.inferred, m.heap, m.gap = nil, heap.Heap{}, math.MaxUint64
		if m.space == "" {
			m.declared = nil
			text, _ := h.Get("heap")
			if ranges, ok := codec.ParseRanges(text); ok {
				m.declared = declared(ranges)
			}
		}
	case codec.VerbBegin:
		m.end()
		m.now = &moment{number: len(m.moments) + 1, boot: boot}
		if us, ok := h.Uint("t"); ok && us < 1<<53 {
			m.now.time, m.now.timed = time.Duration(us)*time.Microsecond, true
		}
		kind, _ := h.Get("k")
		m.now.diff = kind == "diff"
	case codec.VerbEnd:
		m.end()
	case codec.VerbHeap:
		number := func(key string) uint64 { v, _ := h.Uint(key); return v }
		m.heap = heap.Heap{Known: true, Size: number("size"), Free: number("free"), Largest: number("largest"), Min: number("min")}
		if m.now == nil && len(m.moments) > 0 && m.moments[len(m.moments)-1].boot == boot && !m.moments[len(m.moments)-1].heap.Known {
			m.moments[len(m.moments)-1].heap = m.heap
		}
	}
}

// block adds a block. Without ~h#begin, a dump begins where an address is repeated.
func (m *heapMap) block(b placed, boot int) {
	if _, again := m.seen[b.addr]; m.now == nil || m.now.implicit && again {
		m.end()
		m.now = &moment{number: len(m.moments) + 1, boot: boot, implicit: true}
	}
	if m.now.implicit {
		if m.seen == nil {
			m.seen = map[uint64]struct{}{}
		}
		m.seen[b.addr] = struct{}{}
	}
	m.now.known = true
	m.now.blocks = append(m.now.blocks, b)
}

// end ends the open dump. Of all but the one to report on, only sums are kept.
func (m *heapMap) end() {
	x := m.now
	m.seen = nil
	if m.now = nil; x == nil {
		return
	}
	x.heap = m.heap
	m.heap = heap.Heap{}
	m.add(x)
}

func (m *heapMap) add(x *moment) {
	m.moments = append(m.moments, x)
	if x.diff || !x.known {
		x.known = false
		return
	}
	space := m.declared
	if space == nil {
		m.inferred = m.inferred.grow(x.blocks)
		space = slices.Clone(m.inferred)
	}
	sortBlocks(x.blocks)
	m.gap = smallestGap(m.gap, x.blocks)
	full := mapBlocks(space, x.blocks, leastHole(m.gap))
	x.m = *full
	x.holes = len(full.holes)
	x.m.holes, x.m.groups, x.m.blocks, x.m.regions, x.blocks = nil, nil, nil, nil, nil
	if from, _ := m.Selected(); from <= 0 && (full.count > 0 || m.shown == nil) || from == x.number {
		m.shown, m.of = full, x
	}
}

// readEvents maps what is live after the last event.
func (m *heapMap) readEvents() error {
	live := map[uint64]placed{}
	boot, at := 0, time.Duration(0)
	for e, err := range m.reader.Events() {
		if err != nil {
			if err := m.out.Add(err); err != nil {
				return fmt.Errorf("%w (the events are read twice)", err)
			}
			continue
		}
		if e.Boot != boot {
			boot = e.Boot
			clear(live)
		}
		if e.Numbered {
			return cli.Usagef("the events have no addresses, expected dumps or events with addresses")
		}
		at = e.Time
		switch e.Kind {
		case heap.Freed:
			delete(live, e.Addr)
		case heap.Moved:
			delete(live, e.Old)
			fallthrough
		case heap.Allocated:
			live[e.Addr] = placed{e.Addr, e.Bytes, copyPath(m.builder, e.Path)}
		}
	}
	x := &moment{number: len(m.moments) + 1, boot: boot, time: at, timed: true, known: true}
	for _, b := range live {
		x.blocks = append(x.blocks, b)
	}
	m.add(x)
	return nil
}

// copyPath returns a path of another Builder in b.
func copyPath(b *heap.Builder, p heap.Path) heap.Path { return b.Path(p.Append(nil)) }

// choose checks that there is something to report on.
func (m *heapMap) choose() error {
	if m.shown == nil && !slices.ContainsFunc(m.moments, func(x *moment) bool { return x.heap.Known }) {
		if from, _ := m.Selected(); from > len(m.moments) {
			return cli.Usagef("--dump %d: the log has %d", from, len(m.moments))
		}
		return cli.Usagef("no dump has addresses of blocks, nor ~h#heap")
	}
	return nil
}

// write writes the map.
func (m *heapMap) write(w io.Writer) error {
	if m.json {
		return m.writeJSON(w)
	}
	if m.shown != nil {
		m.writeMap(w)
		fmt.Fprintln(w)
	}
	m.writeMoments(w)
	if m.shown != nil {
		m.writeSizes(w)
		return m.writePins(w)
	}
	return nil
}

// share writes a part of 1.
func share(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + " %" }

// source returns where the ranges of the heap come from: flag, log or blocks.
func (m *heapMap) source() string {
	switch {
	case m.space != "":
		return "flag"
	case m.declared == nil:
		return "blocks"
	}
	return "log"
}

// writeMap writes the sums of a dump and the picture of its heap.
func (m *heapMap) writeMap(w io.Writer) {
	x := m.shown
	name := fmt.Sprintf("dump %d", m.of.number)
	if m.of.timed {
		name += ", " + duration(m.of.time.Hours())
	}
	how := map[string]string{"flag": "--space", "log": "as the log says", "blocks": "inferred from the blocks"}[m.source()]
	fmt.Fprintf(w, "%s: %s bytes of heap (%s)\n%s bytes used by %s; %s free in %s, the largest of %s: fragmentation %s\ngaps below %d bytes are not counted as holes\n",
		name, cli.Number(x.size), how, cli.Number(x.used), cli.Count(x.count, "block"), cli.Number(x.free), cli.Count(len(x.holes), "hole"),
		cli.Number(x.largest), share(fragmentation(x.free, x.largest)), x.least)
	if x.outside > 0 {
		fmt.Fprintf(w, "%s outside of the heap\n", cli.Count(x.outside, "block"))
	}
	if x.overlap > 0 {
		fmt.Fprintf(w, "%s overlap: the log has lost what freed them, or is wrong\n", cli.Count(x.overlap, "block"))
	}
	fmt.Fprintln(w)
	const most, columns = 6, 64
	for i, r := range x.regions {
		if i == most {
			writeMore(w, len(x.regions)-most, "more range")
			break
		}
		lines := 4
		if len(x.regions) > 2 {
			lines = 1
		}
		cells := []rune(x.picture(r, lines*columns))
		for k := range lines {
			at := r.Start + r.Length/uint64(lines)*uint64(k)
			fmt.Fprintf(w, "  0x%08x %s\n", at, string(cells[k*columns:(k+1)*columns]))
		}
	}
}

// writeMoments writes the dumps as a table: by the blocks, and as the allocator says.
func (m *heapMap) writeMoments(w io.Writer) {
	blocks := slices.ContainsFunc(m.moments, func(x *moment) bool { return x.known })
	said := slices.ContainsFunc(m.moments, func(x *moment) bool { return x.heap.Known })
	tb := table.Table{Head: []string{"Dump", "Boot"}, Right: slices.Repeat([]bool{true}, 11)}
	if blocks {
		tb.Head = append(tb.Head, "Used", "Blocks", "Free", "Holes", "Largest", "Frag.")
	}
	if said {
		tb.Head = append(tb.Head, "Allocator", "Largest", "Frag.")
	}
	for _, x := range m.moments {
		row := []string{strconv.Itoa(x.number), strconv.Itoa(x.boot)}
		switch {
		case x.known:
			row = append(row, cli.Number(x.m.used), cli.Number(x.m.count), cli.Number(x.m.free), cli.Number(x.holes), cli.Number(x.m.largest),
				share(fragmentation(x.m.free, x.m.largest)))
		case blocks:
			row = append(row, "", "", "", "", "", "")
		}
		switch h := x.heap; {
		case h.Known:
			row = append(row, cli.Number(h.Free), cli.Number(h.Largest), share(fragmentation(h.Free, h.Largest)))
		case said:
			row = append(row, "", "", "")
		}
		tb.Rows = append(tb.Rows, row)
	}
	tb.Write(w)
}

// writeSizes writes the histogram.
func (m *heapMap) writeSizes(w io.Writer) {
	fmt.Fprintln(w)
	tb := table.Table{Head: []string{"Size", "Holes", "Bytes", "Blocks", "Bytes"}, Right: []bool{true, true, true, true, true}}
	for i, x := range m.shown.histogram() {
		if x.holes+x.blocks > 0 {
			low := uint64(1) << i
			tb.Rows = append(tb.Rows, []string{fmt.Sprintf("%s to %s", cli.Number(low), cli.Number(low+(low-1))), cli.Number(x.holes), cli.Number(x.holeBytes),
				cli.Number(x.blocks), cli.Number(x.blockBytes)})
		}
	}
	tb.Write(w)
}

// pinned returns the call paths that keep holes apart and that the flags do not leave out.
func (m *heapMap) pinned() (*heap.Profile, []pin, error) {
	pins := m.shown.pins()
	for _, p := range pins {
		m.builder.Add(p.path, heap.Value{Bytes: p.bytes, Count: uint64(p.blocks)})
	}
	p, err := heap.New(m.builder.End(heap.Dump{}))
	if err != nil {
		return nil, nil, err
	}
	p = p.View(m.view)
	m.session.shown = p
	return p, slices.DeleteFunc(pins, func(x pin) bool { _, shown := p.Stack(x.path); return !shown }), nil
}

// writePins writes the call paths that keep holes apart.
func (m *heapMap) writePins(w io.Writer) error {
	p, pins, err := m.pinned()
	if err != nil {
		return err
	}
	if len(pins) == 0 {
		fmt.Fprintln(w, "\nno block lies between two holes that are larger than what is between them")
		return nil
	}
	fmt.Fprintln(w, "\nblocks that keep holes apart, which are larger than what lies between them:")
	for i, x := range pins {
		if m.rows > 0 && i == m.rows {
			fmt.Fprintln(w)
			writeMore(w, len(pins)-i, "more call path")
			break
		}
		fmt.Fprintf(w, "\n%s bytes kept apart by %s of %s bytes, the most at %#x\n", cli.Number(x.kept), cli.Count(x.blocks, "block"), cli.Number(x.bytes), x.at)
		sites, _ := p.Stack(x.path)
		stack(w, sites)
	}
	return nil
}
