package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
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
		Long: `top lists the call sites that hold the most: flat, by the innermost frame that
is shown, and cumulative, by any frame. With --stacks it lists whole call
stacks, identical ones as one.`,
		Example: "btheap top -e app.elf device.log\nbtheap top --by module --cum --maps app.maps device.log",
	}, heap.ByLine, nil, func(w io.Writer) error {
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
	f.IntVarP(&o.N, "rows", "n", 20, "how many call sites, 0 for all: `N`")
	f.BoolVar(&o.Cum, "cum", false, "order by the cumulative sum")
	f.BoolVar(&stacks, "stacks", false, "list call stacks")
	cli.AddFlags(c, "Top", f)
	c.MarkFlagsMutuallyExclusive("cum", "stacks")
	return c
}

// writeStacks writes the call stacks of a dump that hold the most: all if n is 0.
func (s *session) writeStacks(w io.Writer, d *heap.Dump, n int) error {
	t := s.names.Table([]*heap.Dump{d})
	slices.SortStableFunc(t.Rows, func(a, b heap.TableRow) int {
		x, y := a.Values[0], b.Values[0]
		return cmp.Or(cmp.Compare(s.w.Of(y), s.w.Of(x)), cmp.Compare((1-s.w).Of(y), (1-s.w).Of(x)))
	})
	total := t.Total[0]
	fmt.Fprintf(w, "%s: %s bytes in %s, %s\n\n", title(d), cli.Number(total.Bytes), cli.Count(total.Count, "allocation"),
		cli.Count(len(t.Rows), "call stack"))
	tb := table.Table{Head: []string{"Bytes", "%", "Count", "Call stack, innermost frame first"}, Right: []bool{true, true, true}, Width: s.width()}
	shown := t.Rows
	if n > 0 {
		shown = shown[:min(n, len(shown))]
	}
	for i := range shown {
		v := shown[i].Values[0]
		cells := []string{cli.Number(v.Bytes), percent(s.w.Of(v), s.w.Of(total)), cli.Number(v.Count)}
		names := t.Names(&shown[i])
		if len(names) == 0 {
			names = []heap.Site{{Func: "(no frames)"}}
		}
		for _, site := range names {
			tb.Rows = append(tb.Rows, append(slices.Clone(cells), site.String()))
			clear(cells)
		}
	}
	if err := tb.Write(w); err != nil {
		return err
	}
	if more := len(t.Rows) - len(shown); more > 0 {
		fmt.Fprintf(w, "%s more: -n 0 lists all\n", cli.Count(more, "call stack"))
	}
	return nil
}

// writeTop writes the call sites of a dump.
func (s *session) writeTop(w io.Writer, d *heap.Dump, o heap.TopOptions) error {
	t := s.names.Top(d, o)
	fmt.Fprintf(w, "%s: %s bytes in %s, %s, %s\n\n", title(d), cli.Number(t.Total.Bytes), cli.Count(t.Total.Count, "allocation"),
		cli.Count(t.Stacks, "call path"), cli.Count(t.Sites, "call site"))
	tb := table.Table{Head: []string{"Flat bytes", "%", "Count", "Cum bytes", "%", "Count", "Call site"},
		Right: []bool{true, true, true, true, true, true}, Width: s.width()}
	for _, a := range t.Rows {
		tb.Rows = append(tb.Rows, []string{
			cli.Number(a.Flat.Bytes), percent(s.w.Of(a.Flat), s.w.Of(t.Total)), cli.Number(a.Flat.Count),
			cli.Number(a.Cum.Bytes), percent(s.w.Of(a.Cum), s.w.Of(t.Total)), cli.Number(a.Cum.Count), a.Site.String()})
	}
	if err := tb.Write(w); err != nil {
		return err
	}
	if more := t.Sites - len(t.Rows); more > 0 {
		fmt.Fprintf(w, "%s more: -n 0 lists all\n", cli.Count(more, "call site"))
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
		Use: "tree [flags] [FILE...]", Short: "who calls whom, and what that holds",
		Long:    "tree prints the call paths merged from main inward, or with --callers from the\nallocation outward.",
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
		s.treeRows(&tb, root, root, 0, depth, least)
		return tb.Write(w)
	})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&depth, "depth", 0, "collapse what is below `N` calls, 0 for nothing")
	f.Float64Var(&least, "min", 0.5, "collapse what holds less than `PERCENT`")
	f.BoolVar(&o.Inverted, "callers", false, "from the allocation outward")
	cli.AddFlags(c, "Tree", f)
	return c
}

// treeRows adds the rows of a node's children. A chain of calls without a branch
// stays at one indentation.
func (s *session) treeRows(tb *table.Table, root, n *heap.Node, indent, depth int, least float64) {
	var rest heap.Value
	hidden := 0
	for _, c := range n.Children {
		if heap.Share(s.w.Of(c.Total), s.w.Of(root.Total)) < least {
			hidden++
			rest.Add(c.Total)
			continue
		}
		name := strings.Repeat("  ", indent) + c.Site.String()
		if depth > 0 && indent+1 >= depth && len(c.Children) > 0 {
			name += fmt.Sprintf(" (+%s)", cli.Count(nodes(c)-1, "call site"))
		}
		tb.Rows = append(tb.Rows, []string{cli.Number(c.Total.Bytes), percent(s.w.Of(c.Total), s.w.Of(root.Total)), cli.Number(c.Total.Count), name})
		if depth == 0 || indent+1 < depth {
			s.treeRows(tb, root, c, indent+1, depth, least)
		}
	}
	if hidden > 0 {
		tb.Rows = append(tb.Rows, []string{cli.Number(rest.Bytes), percent(s.w.Of(rest), s.w.Of(root.Total)), cli.Number(rest.Count),
			strings.Repeat("  ", indent) + fmt.Sprintf("(%s below %g %%)", cli.Count(hidden, "call site"), least)})
	}
}

// nodes counts a node and all below it.
func nodes(n *heap.Node) int {
	sum := 1
	for _, c := range n.Children {
		sum += nodes(c)
	}
	return sum
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
		list, total := s.names.Peek(d, match, s.w)
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
	s := &session{}
	return s.command(&cobra.Command{
		Use: "dumps [flags] [FILE...]", Short: "the dumps and boots that the logs hold",
		Long:    "dumps lists the dumps that the logs hold, as --dump numbers them.",
		Example: "btheap dumps device.log\nbtheap dumps --split '^== heap ==' device.log",
	}, heap.ByLine, nil, func(w io.Writer) error {
		list, err := s.selected(true)
		if err != nil {
			return err
		}
		tb := table.Table{Head: []string{"Dump", "Boot", "Mark", "Time (s)", "Records", "Bytes", "Begins"}, Right: []bool{true, true, true, true, true, true}, Width: s.width()}
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
			number := 0
			for i := range s.prof.Dumps {
				if s.prof.Dumps[i] == d {
					number = i + 1
				}
			}
			tb.Rows = append(tb.Rows, []string{strconv.Itoa(number), strconv.Itoa(d.Boot), strconv.FormatInt(d.Number, 10), time, records, cli.Number(d.Total.Bytes), where})
		}
		return tb.Write(w)
	})
}
