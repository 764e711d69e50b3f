package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func topCommand() *cobra.Command {
	s := &session{rows: 20}
	cum, stacks := false, false
	c := &cobra.Command{
		Use: "top [flags] [FILE...]", Short: "the call sites that hold the most",
		Long: `top lists the call sites that hold the most memory. Flat is the memory that a
call site allocated itself (its frame is the innermost shown); cumulative also
includes the memory that its callees allocated. With --stacks, top lists whole
call stacks.`,
		Example: "btheap top -e app.elf device.log\nbtheap top --by module --cum --maps app.maps device.log",
		RunE: func(c *cobra.Command, files []string) error {
			return s.run(c, files, func(w io.Writer) error {
				p, err := s.one()
				switch {
				case err != nil:
					return err
				case s.json:
					return s.topJSON(w, p, cum, stacks)
				case stacks:
					return s.writeStacks(w, p)
				}
				return s.writeTop(w, p, cum)
			})
		},
	}
	f := c.Flags()
	f.VarP(&s.rows, "rows", "n", "list `N` call sites, 0 for all")
	f.BoolVar(&cum, "cum", false, "order by the cumulative sum")
	f.BoolVar(&stacks, "stacks", false, "list whole call stacks")
	s.addAll(c, "Top", oneFrames, jsonOutput)
	c.MarkFlagsMutuallyExclusive("cum", "stacks")
	return c
}

// writeStacks writes the call stacks of a dump that hold the most.
func (s *session) writeStacks(w io.Writer, p *profile.Profile) error {
	total := p.Total(0)
	fmt.Fprintf(w, "%s: %s bytes in %s, %s\n\n", title(p.Dumps()[0]), cli.Number(total.Bytes), cli.Count(total.Count, "allocation"),
		cli.Count(p.Len(), "call stack"))
	rows := p.Top(s.w, int(s.rows))
	var limit stackLimit
	tb := cli.Table{Head: []string{"Bytes", "%", "Count", "Call stack, innermost frame first"}, Right: []bool{true, true, true}, Width: s.width()}
	tb.Each = func(yield func([]string) bool) {
		limit = stackLimit{} // Write calls Each twice
		for _, row := range rows {
			v := row.Value()
			names := limit.stack(row)
			if len(names) == 0 {
				names = []profile.Site{{Func: "(no frames)"}}
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
	s.noteCut(&limit)
	writeMore(w, "", p.Len()-len(rows), "more call stack")
	return nil
}

// writeTop writes the call sites of a dump that hold the most.
func (s *session) writeTop(w io.Writer, p *profile.Profile, cum bool) error {
	r := p.Sites(s.w, cum, int(s.rows))
	fmt.Fprintf(w, "%s: %s bytes in %s, %s, %s\n\n", title(p.Dumps()[0]), cli.Number(r.Total.Bytes), cli.Count(r.Total.Count, "allocation"),
		cli.Count(r.Paths, "call path"), cli.Count(r.Sites, "call site"))
	tb := cli.Table{Head: []string{"Flat bytes", "%", "Count", "Cum bytes", "%", "Count", "Call site"},
		Right: []bool{true, true, true, true, true, true}, Width: s.width()}
	tb.Each = func(yield func([]string) bool) {
		if r.Sites == 0 && r.Total.Count > 0 { // as in the heap of an allocator without call stacks
			bytes, count := cli.Number(r.Total.Bytes), cli.Number(r.Total.Count)
			yield([]string{bytes, percent(1, 1), count, bytes, percent(1, 1), count, "(no frames)"})
		}
		for _, a := range r.Rows {
			if !yield([]string{
				cli.Number(a.Flat.Bytes), percent(s.w.Of(a.Flat), s.w.Of(r.Total)), cli.Number(a.Flat.Count),
				cli.Number(a.Cum.Bytes), percent(s.w.Of(a.Cum), s.w.Of(r.Total)), cli.Number(a.Cum.Count), a.Site.String()}) {
				return
			}
		}
	}
	if err := tb.Write(w); err != nil {
		return err
	}
	writeMore(w, "", r.Sites-len(r.Rows), "more call site")
	return nil
}

// writeMore writes the number of omitted rows, if there are any, after the text before.
func writeMore(w io.Writer, before string, n int, noun string) {
	if n > 0 {
		fmt.Fprintf(w, "%s%s: -n 0 lists all\n", before, cli.Count(n, noun))
	}
}

// percent returns part in percent of all.
func percent(part, all uint64) string {
	return strconv.FormatFloat(100*float64(part)/max(1, float64(all)), 'f', 1, 64)
}
