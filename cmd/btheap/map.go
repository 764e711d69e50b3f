package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/table"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
)

// heapMap is the state of btheap map.
type heapMap struct {
	*session
	layouts
	rows  cli.Natural
	space string
}

func mapCommand() *cobra.Command {
	m := &heapMap{session: &session{unit: profile.ByLine}, rows: 5}
	s := m.session
	c := s.command(&cobra.Command{
		Use: "map [flags] [FILE...]", Short: "where in the heap blocks and holes are",
		Long: `map shows where blocks lie in the heap: what is used and free, the largest hole
in each dump, holes by size, and the call paths whose blocks keep holes apart.
It needs dumps (~h#begin) or events with addresses, or at least what the
allocator says (~h#heap); of events, it shows 20 moments. The heap is heap= of ~h#boot, or --space; else it is
the blocks that are at most 1 MiB apart. Memory of no block in the log is free.`,
		Example: "btheap map -e app.elf device.log\nbtheap map --space 20001000+8000 --dump 3 -e app.elf device.log",
	})
	s.args = func(args []string) ([]string, error) {
		if m.space != "" {
			ranges, ok := codec.ParseRanges(m.space)
			if !ok {
				return nil, fmt.Errorf("--space %q, expected START+LENGTH,... in hexadecimal, such as 20001000+8000", m.space)
			}
			m.declared = declared(ranges)
		}
		return args, nil
	}
	s.load, s.report = m.read, m.write
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VarP(&m.rows, "rows", "n", "list `N` call paths that keep holes apart, 0 for all")
	f.StringVar(&m.space, "space", "", "the heap is at `RANGES`, START+LENGTH,... in hexadecimal")
	cli.AddFlags(c, "Map", f)
	s.addAll(c, compareFrames, []string{"json", "output"})
	return c
}

// mapSteps is the number of listed moments of a recording with events.
const mapSteps = 20

// read reads the blocks of all dumps, or of events.
func (m *heapMap) read() error {
	from, to := m.Selected()
	if from != to {
		return cli.BadArgsf("--dump %s, expected one dump", m.Dump)
	}
	m.ReadAll() // the picture needs the blocks of the boot, and the table the other dumps
	if err := m.open(); err != nil {
		return err
	}
	m.pick = max(0, from)
	if err := m.layouts.read(m.reader, mapSteps, m.out.Add); err != nil {
		return err
	}
	m.outcome = m.out.End()
	if m.outcome != nil && cli.Code(m.outcome) != cli.Short {
		return m.outcome
	}
	return m.choose()
}

// choose checks that there is a moment to report on.
func (m *heapMap) choose() error {
	switch {
	case m.pick > len(m.moments):
		return cli.Usagef("--dump %d: the log has %d", m.pick, len(m.moments))
	case m.layouts.shown == nil && !slices.ContainsFunc(m.moments, func(x *moment) bool { return x.dump.Heap.Known }):
		return cli.Usagef("the log has neither block addresses nor ~h#heap lines")
	}
	return nil
}

// write writes the map.
func (m *heapMap) write(w io.Writer) error {
	if m.json {
		return m.writeJSON(w)
	}
	if m.layouts.shown != nil {
		m.writeMap(w)
		fmt.Fprintln(w)
	}
	m.writeMoments(w)
	if m.layouts.shown != nil {
		m.writeSizes(w)
		return m.writePins(w)
	}
	return nil
}

// share formats a fraction as a percentage.
func share(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + " %" }

// writeMap writes the sums of a dump and the picture of its heap.
func (m *heapMap) writeMap(w io.Writer) {
	x := m.layouts.shown
	how := map[string]string{"flag": "--space", "log": "as the log says", "blocks": "inferred from the blocks"}[m.source()]
	fmt.Fprintf(w, "%s: %s bytes of heap (%s)\n%s bytes used by %s; %s free in %s, the largest of %s: fragmentation %s\ngaps below %d bytes are not counted as holes\n",
		m.of.name(), cli.Number(x.Size), how, cli.Number(x.Used), cli.Count(x.Count, "block"), cli.Number(x.Free), cli.Count(x.Holes, "hole"),
		cli.Number(x.Largest), share(x.Fragmentation), x.least)
	if x.Outside > 0 {
		fmt.Fprintf(w, "%s outside of the heap\n", cli.Count(x.Outside, "block"))
	}
	if x.Overlap > 0 {
		fmt.Fprintf(w, "%s overlap: the log lacks the lines that freed them, or is wrong\n", cli.Count(x.Overlap, "block"))
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

// writeMoments writes a table of the dumps, with values from the blocks and from the
// allocator's reports.
func (m *heapMap) writeMoments(w io.Writer) {
	blocks := slices.ContainsFunc(m.moments, func(x *moment) bool { return x.known })
	reported := slices.ContainsFunc(m.moments, func(x *moment) bool { return x.dump.Heap.Known })
	live := len(m.moments) > 0 && m.moments[len(m.moments)-1].live
	tb := table.Table{Head: []string{"Dump", "Boot"}, Right: slices.Repeat([]bool{true}, 11)}
	if blocks {
		tb.Head = append(tb.Head, "Used", "Blocks", "Free", "Holes", "Largest", "Frag.")
	}
	if reported {
		tb.Head = append(tb.Head, "Allocator", "Largest", "Frag.")
	}
	if live {
		tb.Head[0] = "Time (s)"
	}
	for _, x := range m.moments {
		row := []string{strconv.Itoa(x.number()), strconv.Itoa(x.dump.Boot)}
		if x.live {
			row[0] = seconds(x.dump.Time.Seconds())
		} else if live {
			row[0] = fmt.Sprintf("dump %d", x.number())
		}
		sums := x.sums()
		if b := sums.Blocks; b != nil {
			row = append(row, cli.Number(b.Used), cli.Number(b.Count), cli.Number(b.Free), cli.Number(b.Holes), cli.Number(b.Largest), share(b.Fragmentation))
		} else if blocks {
			row = append(row, "", "", "", "", "", "")
		}
		if a := sums.Allocator; a != nil {
			row = append(row, cli.Number(a.Free), cli.Number(a.Largest), share(a.Fragmentation))
		} else if reported {
			row = append(row, "", "", "")
		}
		tb.Rows = append(tb.Rows, row)
	}
	tb.Write(w)
	m.writeTrends(w)
}

// writeTrends draws the free memory and the largest hole over the moments.
func (m *heapMap) writeTrends(w io.Writer) {
	var free, largest []*profile.Value
	for _, x := range m.moments {
		switch {
		case x.known:
			free, largest = append(free, &profile.Value{Bytes: x.space.Free}), append(largest, &profile.Value{Bytes: x.space.Largest})
		case x.dump.Heap.Known:
			free, largest = append(free, &profile.Value{Bytes: x.dump.Heap.Free}), append(largest, &profile.Value{Bytes: x.dump.Heap.Largest})
		}
	}
	if len(free) > 2 {
		fmt.Fprintf(w, "\nfree %s  largest hole %s\n", sparkline(free, profile.Bytes, 24), sparkline(largest, profile.Bytes, 24))
	}
}

// writeSizes writes the histogram.
func (m *heapMap) writeSizes(w io.Writer) {
	fmt.Fprintln(w)
	tb := table.Table{Head: []string{"Size", "Holes", "Bytes", "Blocks", "Bytes"}, Right: []bool{true, true, true, true, true}}
	for _, x := range m.layouts.shown.sizes() {
		tb.Rows = append(tb.Rows, []string{fmt.Sprintf("%s to %s", cli.Number(x.Min), cli.Number(x.Max)), cli.Number(x.Holes), cli.Number(x.HoleBytes),
			cli.Number(x.Blocks), cli.Number(x.BlockBytes)})
	}
	tb.Write(w)
}

// pinned returns the call paths that keep holes apart and that the flags do not leave out: the
// first -n, and the number of others.
func (m *heapMap) pinned() ([]report.Pin, int, error) {
	pins := m.layouts.shown.pins()
	p, err := m.profile([]*profile.Dump{m.of.dump})
	if err != nil {
		return nil, 0, err
	}
	list, left := namedPins(p, pins, int(m.rows))
	return list, left, nil
}

// namedPins returns the first n shown call paths, all if n is 0, and the number of others.
func namedPins(p *profile.Profile, pins []pin, n int) (list []report.Pin, left int) {
	list = []report.Pin{}
	for _, x := range pins {
		sites, shown := p.Stack(x.path)
		switch {
		case !shown:
		case n > 0 && len(list) == n:
			left++
		default:
			list = append(list, report.Pin{Stack: sites, Kept: x.kept, Count: x.blocks, Bytes: x.bytes, Address: x.at})
		}
	}
	return list, left
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
	fmt.Fprintln(w, "\nblocks that keep holes apart, which are larger than what lies between them:")
	for _, x := range pins {
		fmt.Fprintf(w, "\n%s bytes kept apart by %s of %s bytes, the most at %#x\n", cli.Number(x.Kept), cli.Count(x.Count, "block"), cli.Number(x.Bytes), x.Address)
		stack(w, x.Stack)
	}
	if left > 0 {
		fmt.Fprintln(w)
		writeMore(w, left, "more call path")
	}
	return nil
}
