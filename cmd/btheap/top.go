package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/table"
	heap "github.com/lwsbt/lwsbt/profile"
)

func topCommand() *cobra.Command {
	s := &session{}
	var o heap.TopOptions
	stacks := false
	c := s.command(&cobra.Command{
		Use: "top [flags] [FILE...]", Short: "the call sites that hold the most",
		Long: `top lists the call sites that hold the most memory. Flat is what a call site
allocated itself (its frame is the innermost shown); cumulative also includes
what the functions allocated that it called. With --stacks, top lists whole call
stacks.`,
		Example: "btheap top -e app.elf device.log\nbtheap top --by module --cum --maps app.maps device.log",
	}, heap.ByLine, func(args []string) ([]string, error) {
		if o.N < 0 {
			return nil, fmt.Errorf("-n %d, expected a number of call sites", o.N)
		}
		s.noPaths = !stacks
		return args, nil
	}, func(w io.Writer) error {
		d, err := s.one()
		if err != nil {
			return err
		}
		o.Weight = s.w
		if stacks {
			return s.writeStacks(w, d, o.N)
		}
		return s.writeTop(w, d, o)
	})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVarP(&o.N, "rows", "n", 20, "list `N` call sites, 0 for all")
	f.BoolVar(&o.Cum, "cum", false, "order by the cumulative sum")
	f.BoolVar(&stacks, "stacks", false, "list whole call stacks")
	cli.AddFlags(c, "Top", f)
	c.MarkFlagsMutuallyExclusive("cum", "stacks")
	return c
}

// writeStacks writes the call stacks of a dump that hold the most: all if n is 0.
func (s *session) writeStacks(w io.Writer, d *heap.Dump, n int) error {
	t := s.names.Table([]*heap.Dump{d})
	total := t.Total[0]
	fmt.Fprintf(w, "%s: %s bytes in %s, %s\n\n", title(d), cli.Number(total.Bytes), cli.Count(total.Count, "allocation"),
		cli.Count(t.Rows(), "call stack"))
	shown := t.Heaviest(s.w, n)
	tb := table.Table{Head: []string{"Bytes", "%", "Count", "Call stack, innermost frame first"}, Right: []bool{true, true, true}, Width: s.width()}
	tb.Each = func(yield func([]string) bool) {
		for _, row := range shown {
			v := t.Row(row).Value(0)
			names := t.Stack(row)
			if len(names) == 0 {
				names = []heap.Site{{Func: "(no frames)"}}
			}
			cells := []string{cli.Number(v.Bytes), percent(s.w.Of(v), s.w.Of(total)), cli.Number(v.Count)}
			for _, site := range names {
				if !yield(append(cells[:3:3], site.String())) {
					return
				}
				clear(cells)
			}
		}
	}
	if err := tb.Write(w); err != nil {
		return err
	}
	if more := t.Rows() - len(shown); more > 0 {
		fmt.Fprintf(w, "%s: -n 0 lists all\n", cli.Count(more, "more call stack"))
	}
	return nil
}

// writeTop writes the call sites of a dump.
func (s *session) writeTop(w io.Writer, d *heap.Dump, o heap.TopOptions) error {
	var t *heap.TopReport
	if s.sites != nil {
		t = s.sites.Top(o)
	} else {
		t = s.names.Top(d, o)
	}
	fmt.Fprintf(w, "%s: %s bytes in %s, %s, %s\n\n", title(d), cli.Number(t.Total.Bytes), cli.Count(t.Total.Count, "allocation"),
		cli.Count(t.Stacks, "call path"), cli.Count(t.Sites, "call site"))
	tb := table.Table{Head: []string{"Flat bytes", "%", "Count", "Cum bytes", "%", "Count", "Call site"},
		Right: []bool{true, true, true, true, true, true}, Width: s.width()}
	tb.Each = func(yield func([]string) bool) {
		for _, a := range t.Rows {
			if !yield([]string{
				cli.Number(a.Flat.Bytes), percent(s.w.Of(a.Flat), s.w.Of(t.Total)), cli.Number(a.Flat.Count),
				cli.Number(a.Cum.Bytes), percent(s.w.Of(a.Cum), s.w.Of(t.Total)), cli.Number(a.Cum.Count), a.Site.String()}) {
				return
			}
		}
	}
	if err := tb.Write(w); err != nil {
		return err
	}
	if more := t.Sites - len(t.Rows); more > 0 {
		fmt.Fprintf(w, "%s: -n 0 lists all\n", cli.Count(more, "more call site"))
	}
	return nil
}

func percent(part, all uint64) string {
	return strconv.FormatFloat(heap.Share(part, all), 'f', 1, 64)
}

func treeCommand() *cobra.Command {
	s := &session{}
	var o heap.TreeOptions
	depth, least := 0, 0.0
	c := s.command(&cobra.Command{
		Use: "tree [flags] [FILE...]", Short: "the call tree, with the memory of each call",
		Long:    "tree prints all call paths as a tree that begins at the outermost function, such\nas main, or with --callers at the allocation.",
		Example: "btheap tree -e app.elf device.log\nbtheap tree --callers --depth 3 -e app.elf device.log",
	}, heap.ByFunction, nil, func(w io.Writer) error {
		if depth < 0 || least < 0 || least > 100 {
			return cli.BadArgsf("--depth %d, --min %g: expected a depth from 0 and a percentage", depth, least)
		}
		d, err := s.one()
		if err != nil {
			return err
		}
		o.Weight = s.w
		root := s.names.Tree(d, o)
		fmt.Fprintf(w, "%s: %s bytes in %s\n\n", title(d), cli.Number(root.Total.Bytes), cli.Count(root.Total.Count, "allocation"))
		tb := table.Table{Head: []string{"Bytes", "%", "Count", "Call path"}, Right: []bool{true, true, true}, Width: s.width()}
		r := treeRows{s, root, depth, least}
		tb.Each = func(yield func([]string) bool) { r.below(root, 0, yield) }
		return tb.Write(w)
	})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&depth, "depth", 0, "show `N` levels of calls, 0 for all")
	f.Float64Var(&least, "min", 0.5, "add up calls that hold less than `PERCENT` of the total")
	f.BoolVar(&o.Inverted, "callers", false, "begin at the allocation, and go outward")
	cli.AddFlags(c, "Tree", f)
	return c
}

// treeRows makes the rows of a tree.
type treeRows struct {
	*session
	root  *heap.Node
	depth int
	least float64 // percent
}

// below yields the rows of a node's children and all below them.
func (r *treeRows) below(n *heap.Node, indent int, yield func([]string) bool) bool {
	total := r.w.Of(r.root.Total)
	row := func(v heap.Value, name string) bool {
		return yield([]string{cli.Number(v.Bytes), percent(r.w.Of(v), total), cli.Number(v.Count), strings.Repeat("  ", indent) + name})
	}
	list, others, rest := n.Children(func(v heap.Value) bool { return heap.Share(r.w.Of(v), total) >= r.least })
	for _, c := range list {
		name := c.Site.String()
		whole := r.depth == 0 || indent+1 < r.depth
		if !whole {
			if n := c.Below(); n > 0 {
				name += fmt.Sprintf(" (+%s)", cli.Count(n, "call site"))
			}
		}
		if !row(c.Total, name) || whole && !r.below(c, indent+1, yield) {
			return false
		}
	}
	return others == 0 || row(rest, fmt.Sprintf("(%s below %g %%)", cli.Count(others, "call site"), r.least))
}

func peekCommand() *cobra.Command {
	s := &session{}
	var match *regexp.Regexp
	return s.command(&cobra.Command{
		Use: "peek [flags] FUNC [FILE...]", Short: "the callers and callees of a function",
		Long:    "peek lists the callers and callees of each function that matches the regular\nexpression FUNC, as pprof's peek does.",
		Example: "btheap peek '^xmalloc$' -e app.elf device.log",
	}, heap.ByFunction, func(args []string) (files []string, err error) {
		if len(args) == 0 {
			return nil, fmt.Errorf("expected a regular expression for the function")
		}
		if match, err = regexp.Compile(args[0]); err != nil {
			return nil, fmt.Errorf("FUNC: %w", err)
		}
		return args[1:], nil
	}, func(w io.Writer) error {
		d, err := s.one()
		if err != nil {
			return err
		}
		list, total, err := s.names.Peek(d, match, s.w)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("no function matches %s", match)
		}
		for i, p := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			tb := table.Table{Head: []string{"Flat bytes", "Cum bytes", "%", "Count", "Call site"}, Right: []bool{true, true, true, true}, Width: s.width()}
			row := func(flat string, r *heap.Row, name string) {
				tb.Rows = append(tb.Rows, []string{flat, cli.Number(r.Cum.Bytes), percent(s.w.Of(r.Cum), s.w.Of(total)), cli.Number(r.Cum.Count), name})
			}
			for j := range p.Callers {
				row("", &p.Callers[j], "  called by "+p.Callers[j].Site.String())
			}
			row(cli.Number(p.Flat.Bytes), &p.Row, p.Site.String())
			for j := range p.Callees {
				row("", &p.Callees[j], "  calls "+p.Callees[j].Site.String())
			}
			if err := tb.Write(w); err != nil {
				return err
			}
		}
		return nil
	})
}

func dumpsCommand() *cobra.Command {
	s := &session{listed: true, unused: []unused{
		{"dumps lists no call sites", []string{"exe", "maps", "sysroot", "debug-dir", "adjust", "by", "hide", "show", "ignore", "focus",
			"basenames", "full-names", "max-paths", "weight"}},
		{"a moment is no dump of the log", []string{"at"}},
	}}
	return s.command(&cobra.Command{
		Use: "dumps [flags] [FILE...]", Short: "the dumps and boots in the logs",
		Long:    "dumps lists the dumps of the logs. The first column, from 1, is the number for\n--dump; Number is the one that the device gave the dump in ~h#begin.",
		Example: "btheap dumps device.log\nbtheap dumps --split '^== heap ==' device.log",
	}, heap.ByLine, nil, func(w io.Writer) error {
		list, err := s.selected(true)
		if err != nil {
			return err
		}
		tb := table.Table{Head: []string{"Dump", "Boot", "Number", "Time (s)", "Records", "Bytes", "Begins"}, Right: []bool{true, true, true, true, true, true}, Width: s.width()}
		numbers := make(map[*heap.Dump]int, len(s.prof.Dumps)) // for --dump, from 1
		for i, d := range s.prof.Dumps {
			numbers[d] = i + 1
		}
		for _, d := range list {
			time, where, records := "", d.File, cli.Number(d.Records)
			if d.Timed {
				time = strconv.FormatFloat(float64(d.Time)/1e6, 'f', 3, 64)
			}
			if d.Line > 0 {
				where = fmt.Sprintf("%s:%d", d.File, d.Line)
			}
			if d.HasAnnouncedRecords {
				records += " of " + cli.Number(d.AnnouncedRecords)
			}
			tb.Rows = append(tb.Rows, []string{strconv.Itoa(numbers[d]), strconv.Itoa(d.Boot), strconv.FormatInt(d.Number, 10), time, records, cli.Number(d.Total.Bytes), where})
		}
		return tb.Write(w)
	})
}
