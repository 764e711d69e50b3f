package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// heapMap is the state of btheap map.
type heapMap struct {
	*session
	mapper  heapmap.Mapper
	pick    int // number of the moment to report on, 0 for the last with a block
	moments []*moment
	heap    *heapmap.Map // of the moment of, nil if no moment has one
	of      *moment
	heaps   []growth.HeapSeries // that have a table of their own
}

// moment is a dump, or the live blocks at a moment of a recording with events.
type moment struct {
	dump *profile.Dump
	live bool // it is not a dump of the log
	sums heapmap.Moment
}

// name returns the name of a moment.
func (x *moment) name() string {
	switch {
	case x.live:
		return x.dump.Name
	case x.dump.Timed:
		return fmt.Sprintf("dump %d, %s", x.sums.Number, printable.Duration(x.dump.Time.Hours()))
	}
	return fmt.Sprintf("dump %d", x.sums.Number)
}

// eachMoment calls add with each dump and its map, nil if its blocks have no addresses. If no dump
// has a map, it adds n moments of the events, if there are any. fail is called with the errors of a
// pass, and returns the errors that end the pass.
func eachMoment(r *heaplog.Reader, m *heapmap.Mapper, n int, fail func(error) error, add func(*moment, *heapmap.Map)) error {
	dumps, known := 0, false
	take := func(d heaplog.DumpBlocks, live bool) {
		x := m.Map(d.Dump, d.Blocks, d.Space, d.Holes)
		known = known || x != nil
		add(&moment{d.Dump, live, heapmap.NewMoment(d.Dump, x)}, x)
	}
	err := each(r.DumpBlocks(), fail, func(d heaplog.DumpBlocks) {
		if d.Line == 0 && r.Replay() != nil { // what is live after the last event
			return
		}
		dumps++
		take(d, false)
	})
	if err != nil || known || r.Replay() == nil {
		return err
	}
	err = each(r.Moments(n), fail, func(d heaplog.DumpBlocks) {
		d.Index += dumps
		take(d, true)
	})
	if err != nil {
		return fmt.Errorf("%w (the events are read twice)", err)
	}
	return nil
}

func mapCommand() *cobra.Command {
	m := &heapMap{session: &session{rows: 5}}
	space, size := "", cli.Size(0)
	c := &cobra.Command{
		Use: "map [flags] [FILE...]", Short: "where in the heap blocks and holes are",
		Long: `map shows where blocks lie in the heap: what is used and free, the largest hole
in each dump, holes by size, and the call paths whose blocks keep holes apart.
It needs dumps or events with addresses of blocks, or at least what the
allocator reports, such as ~h#heap lines. Of events, it shows 20 moments. The
heap is that of --space, or of heap= in ~h#boot; without both, it is inferred
from the blocks, and --heap says how much follows the lowest one. Free are the
free blocks that the log lists; if it lists none, what belongs to no block.`,
		Example: "btheap map -e app.elf device.log\nbtheap map --space 20001000+8000 --dump 3 -e app.elf device.log",
		RunE: func(c *cobra.Command, files []string) error {
			if space != "" {
				ranges, ok := codec.ParseRanges(space)
				if !ok {
					return cli.BadArgsf("--space %q, expected START+LENGTH,... in hexadecimal, such as 20001000+8000", space)
				}
				m.mapper.Regions = ranges
			}
			m.mapper.Size = uint64(size)
			return m.run(c, files, m.write)
		},
	}
	f := c.Flags()
	f.VarP(&m.rows, "rows", "n", "list `N` call paths that keep holes apart, 0 for all")
	f.StringVar(&space, "space", "", "the heap is at `RANGES`, START+LENGTH,... in hexadecimal")
	f.Var(&size, "heap", "`SIZE` of the heap, such as 256K, which begins with the lowest block")
	m.addAll(c, "Map", compareFrames, []string{"json"}, "heap-line")
	return c
}

// mapSteps is the number of listed moments of a recording with events.
const mapSteps = 20

// write reads the blocks of all dumps, or of events, and writes the map.
func (m *heapMap) write(w io.Writer) error {
	from, to := m.Selected()
	if from != to {
		return cli.BadArgsf("--dump %s, expected one dump", m.Dump)
	}
	m.pick = max(0, from)
	m.ReadAll() // the picture needs the blocks of the boot, and the table the other dumps
	if err := m.open(); err != nil {
		return err
	}
	if err := eachMoment(m.reader, &m.mapper, mapSteps, m.out.Add, m.add); err != nil {
		return err
	}
	if err := m.end(); err != nil {
		return err
	}
	m.heaps = slices.DeleteFunc(slices.Clone(m.reader.Heaps()), func(s growth.HeapSeries) bool { return s.Reports[0].OnlyUsed() })
	switch {
	case m.pick > len(m.moments):
		return cli.Usagef("--dump %d: the log has %d", m.pick, len(m.moments))
	case m.heap == nil && len(m.heaps) == 0:
		return cli.Usagef("the log has neither block addresses nor reports of the allocator, such as ~h#heap lines")
	}
	if size := m.mapper.Size; size > 0 && m.heap != nil {
		if n := len(m.heap.Regions); n > 1 {
			return cli.Usagef("--heap %s: the blocks are in %d ranges, expected one; --space names them", cli.Number(size), n)
		} else if m.heap.Size > size {
			return cli.Usagef("--heap %s: the blocks are in %s bytes, expected the size of the whole heap, such as 48K", cli.Number(size), cli.Number(m.heap.Size))
		}
	}
	if m.json {
		return m.writeJSON(w)
	}
	if m.inDumps() {
		m.heaps = nil // the table of the dumps has them
	}
	if m.heap != nil {
		m.writeMap(w)
	}
	m.writeMoments(w)
	m.writeHeaps(w)
	if m.heap == nil {
		return nil
	}
	m.writeSizes(w)
	return m.writePins(w)
}

// inDumps reports whether there is one heap, and the dumps have its reports.
func (m *heapMap) inDumps() bool {
	return len(m.heaps) == 1 && slices.ContainsFunc(m.moments, func(x *moment) bool { return x.sums.Allocator != nil })
}

// add adds a moment. It keeps only the map to report on.
func (m *heapMap) add(x *moment, full *heapmap.Map) {
	m.moments = append(m.moments, x)
	whole := x.dump.Part() == "" || m.of == nil || m.of.dump.Part() != "" // or no other is
	if full != nil && (m.pick == x.sums.Number || m.pick == 0 && whole && (full.Count > 0 || m.heap == nil)) {
		m.heap, m.of = full, x
	}
}

// share formats a fraction as a percentage.
func share(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + " %" }

// shareOf is share of a fraction that may not be known.
func shareOf(part *float64) string {
	if part == nil {
		return ""
	}
	return share(*part)
}

// bytesOf formats a number of bytes that may not be known.
func bytesOf(a profile.Amount) string {
	if !a.Known {
		return ""
	}
	return cli.Number(a.Bytes)
}

// writeMap writes the sums of a dump and the picture of its heap.
func (m *heapMap) writeMap(w io.Writer) {
	x := m.heap
	how := map[heapmap.Source]string{heapmap.Given: "as the flags say", heapmap.Log: "as the log says", heapmap.Blocks: "inferred from the blocks"}[x.Source]
	note := "the holes are the free blocks that the log lists"
	if !x.Listed {
		note = fmt.Sprintf("gaps below %d bytes are not counted as holes", x.LeastHole)
	}
	fmt.Fprintf(w, "%s: %s bytes of heap (%s)\n%s bytes used by %s\n%s free in %s, the largest of %s: fragmentation %s\n%s\n",
		m.of.name(), cli.Number(x.Size), how, cli.Number(x.Used), cli.Count(x.Count, "block"), cli.Number(x.Free), cli.Count(x.Holes, "hole"),
		cli.Number(x.Largest), share(x.Fragmentation), note)
	m.writeLost(w)
	if x.Outside > 0 {
		fmt.Fprintf(w, "%s outside of the heap\n", cli.Count(x.Outside, "block"))
	}
	if x.Overlap > 0 {
		fmt.Fprintf(w, "%s overlap: the log lacks the lines that freed them, or is wrong\n", cli.Count(x.Overlap, "block"))
	}
	fmt.Fprintln(w)
	const most, columns = 6, 64
	for i, r := range x.Regions {
		if i == most {
			writeMore(w, "", len(x.Regions)-most, "more range")
			break
		}
		lines := 4
		if len(x.Regions) > 2 {
			lines = 1
		}
		cells := picture(x.Cells(r, lines*columns))
		for k := range lines {
			at := r.Start + r.Length/uint64(lines)*uint64(k)
			fmt.Fprintf(w, "  0x%08x %s\n", at, string(cells[k*columns:(k+1)*columns]))
		}
	}
	fmt.Fprintln(w)
}

// writeLost writes what the dump lacks: where it lacks blocks, the heap is not free.
func (m *heapMap) writeLost(w io.Writer) {
	d := m.of.dump
	missing, known := d.Missing()
	if !known || missing == 0 || m.heap.Listed {
		return
	}
	lost := d.Announced.Records - uint64(d.Records)
	if m.heap.Lost > 0 {
		fmt.Fprintf(w, "%s of these are of the dump before: this one lacks %s\n", cli.Number(uint64(m.heap.Lost)), cli.Count(lost, "block"))
		lost -= uint64(m.heap.Lost)
	}
	if lost > 0 {
		fmt.Fprintf(w, "%s missing in the log: they look like holes\n", cli.Count(lost, "more block"))
	}
}

// picture draws cells of which a fraction is used, 0 to 1.
func picture(cells []float64) []rune {
	shades := []rune("·░▒▓█")
	out := make([]rune, len(cells))
	for i, part := range cells {
		level := 0
		if part > 0 {
			level = min(len(shades)-1, 1+int(part*float64(len(shades)-1)-1e-9))
		}
		out[i] = shades[level]
	}
	return out
}

// writeMoments writes a table of the dumps, with values from the blocks and from the
// allocator's reports.
func (m *heapMap) writeMoments(w io.Writer) {
	blocks := slices.ContainsFunc(m.moments, func(x *moment) bool { return x.sums.Blocks != nil })
	reported := len(m.heaps) == 0 && slices.ContainsFunc(m.moments, func(x *moment) bool { return x.sums.Allocator != nil })
	if !blocks && !reported {
		return
	}
	live := m.moments[len(m.moments)-1].live
	tb := cli.Table{Head: []string{"Dump", "Boot"}, Right: slices.Repeat([]bool{true}, 10)}
	if blocks {
		tb.Head = append(tb.Head, "Used", "Blocks", "Free", "Holes", "Largest", "Frag.")
	}
	if reported {
		tb.Head = append(tb.Head, "Allocator", "Largest")
	}
	if live {
		tb.Head[0] = "Time (s)"
	}
	for _, x := range m.moments {
		row := []string{strconv.Itoa(x.sums.Number), strconv.Itoa(x.dump.Boot)}
		if x.live {
			row[0] = seconds(x.dump.Time.Seconds())
		} else if live {
			row[0] = fmt.Sprintf("dump %d", x.sums.Number)
		}
		if b := x.sums.Blocks; b != nil {
			row = append(row, cli.Number(b.Used), cli.Number(b.Count), cli.Number(b.Free), cli.Number(b.Holes), cli.Number(b.Largest), share(b.Fragmentation))
		} else if blocks {
			row = append(row, "", "", "", "", "", "")
		}
		if a := x.sums.Allocator; reported && a != nil {
			row = append(row, bytesOf(a.Free), bytesOf(a.Largest))
		} else if reported {
			row = append(row, "", "")
		}
		tb.Rows = append(tb.Rows, row)
	}
	tb.Write(w)
	m.writeTrends(w)
}

// writeHeaps writes a table of the reports on each heap, if there are several heaps, or if no dump
// has a report.
func (m *heapMap) writeHeaps(w io.Writer) {
	for i := range m.heaps {
		s := &m.heaps[i]
		name := "heap"
		if s.Name != "" {
			name += " " + s.Name
		}
		fmt.Fprintf(w, "\n%s: %s\n\n", name, cli.Count(s.Total, "report"))
		tb := cli.Table{Head: []string{"Report", "Boot", "Time (s)", "Free", "Largest", "Frag.", "Least"}, Right: slices.Repeat([]bool{true}, 7)}
		var free, largest []profile.Value
		for k, r := range s.Reports {
			free, largest = append(free, profile.Value{Bytes: r.Free.Bytes}), append(largest, profile.Value{Bytes: r.Largest.Bytes})
			if n := len(s.Reports); n > mapSteps && k*(mapSteps-1)/(n-1) == (k-1)*(mapSteps-1)/(n-1) && k > 0 {
				continue
			}
			time := ""
			if at, ok := r.Uptime(); ok {
				time = seconds(at.Seconds())
			}
			tb.Rows = append(tb.Rows, []string{cli.Number(r.Number), strconv.Itoa(r.Boot), time, bytesOf(r.Free), bytesOf(r.Largest), shareOf(heapmap.OfHeap(r.Heap).Fragmentation), bytesOf(r.Min)})
		}
		tb.Write(w)
		if len(free) > 2 {
			fmt.Fprintf(w, "\nfree %s  largest free block %s\n", sparkline(free, nil, profile.Bytes, 24), sparkline(largest, nil, profile.Bytes, 24))
		}
	}
}

// writeTrends draws the free memory and the largest hole over the moments.
func (m *heapMap) writeTrends(w io.Writer) {
	var free, largest []profile.Value
	for _, x := range m.moments {
		if b, a := x.sums.Blocks, x.sums.Allocator; b != nil {
			free, largest = append(free, profile.Value{Bytes: b.Free}), append(largest, profile.Value{Bytes: b.Largest})
		} else if a != nil && len(m.heaps) == 0 {
			free, largest = append(free, profile.Value{Bytes: a.Free.Bytes}), append(largest, profile.Value{Bytes: a.Largest.Bytes})
		}
	}
	if len(free) > 2 {
		fmt.Fprintf(w, "\nfree %s  largest hole %s\n", sparkline(free, nil, profile.Bytes, 24), sparkline(largest, nil, profile.Bytes, 24))
	}
}

// writeSizes writes the histogram.
func (m *heapMap) writeSizes(w io.Writer) {
	fmt.Fprintln(w)
	tb := cli.Table{Head: []string{"Size", "Holes", "Bytes", "Blocks", "Bytes"}, Right: []bool{true, true, true, true, true}}
	for _, x := range m.heap.Sizes() {
		tb.Rows = append(tb.Rows, []string{fmt.Sprintf("%s to %s", cli.Number(x.Min), cli.Number(x.Max)), cli.Number(x.Holes), cli.Number(x.HoleBytes),
			cli.Number(x.Blocks), cli.Number(x.BlockBytes)})
	}
	tb.Write(w)
}

// pinned returns the call paths that keep holes apart and that the flags do not leave out: the
// first -n, and the number of others.
func (m *heapMap) pinned() ([]heapmap.Pin, int, error) {
	p, err := m.profile(m.of.dump)
	if err != nil {
		return nil, 0, err
	}
	list, left := heapmap.Name(m.heap.Pins(), p, int(m.rows))
	return list, left, nil
}

// writePins writes the call paths that keep holes apart.
func (m *heapMap) writePins(w io.Writer) error {
	pins, left, err := m.pinned()
	if err != nil {
		return err
	}
	if len(pins) == 0 {
		fmt.Fprintln(w, "\nno block lies between two holes that are larger than what is between them")
		return nil
	}
	fmt.Fprintln(w, "\nblocks that keep holes apart (no hole is smaller than what is between them):")
	for _, x := range pins {
		fmt.Fprintf(w, "\n%s bytes kept apart by %s of %s bytes, the most at %#x\n", cli.Number(x.Kept), cli.Count(x.Count, "block"), cli.Number(x.Bytes), x.Address)
		m.stack(w, x.Stack)
	}
	writeMore(w, "\n", left, "more call path")
	return nil
}
