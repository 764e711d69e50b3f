package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// siteEvents has the columns of a call site: the sums of its call paths.
type siteEvents struct {
	profile.Site
	replay.Churn               // its Live and Max are not set
	live         profile.Value // at the reported moment
}

func eventsCommand() *cobra.Command {
	s := &session{rows: 20}
	order := ""
	c := &cobra.Command{
		Use: "events [flags] [FILE...]", Short: "peak, churn and lifetimes of a recording of events",
		Long: `events reports on recordings with events: each allocation and free, as btrecord
--events writes them (~v# or ~e# lines). It lists the memory that was live at
the peak (or --at), the memory that each call site allocated, how long its
blocks lived, and frees of addresses that were not allocated. A temporary block
is one that was freed by the next event of its thread.`,
		Example: "btheap events -e app app.rec\nbtheap events --at 2.5s --sort temporary -e app app.rec",
		RunE: func(c *cobra.Command, files []string) error {
			if !slices.Contains([]string{"live", "allocated", "temporary"}, order) {
				return cli.BadArgsf("--sort %q, expected live, allocated or temporary", order)
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeEvents(w, order) })
		},
	}
	f := c.Flags()
	f.VarP(&s.rows, "rows", "n", "list `N` call sites, 0 for all")
	f.StringVar(&order, "sort", "live", "order by `WHAT`: live, allocated or temporary")
	cli.AddFlags(c, "Events", f)
	s.add(c, "Events", oneOutput...)
	s.add(c, "Symbols", symbolFlags...)
	s.add(c, "Input", noteFlags...)
	s.add(c, "Frames", oneFrames...)
	s.add(c, "Logs of an unusual form or size", "input-format", "bare", "strict", "max-paths")
	s.add(c, "Symbols that are not found, or are wrong", rareSymbols...)
	return c
}

// writeEvents writes the totals of the events, and the call sites with the most.
func (s *session) writeEvents(w io.Writer, order string) error {
	if err := s.read(allDumps); err != nil {
		return err
	}
	if s.replay == nil {
		return fmt.Errorf("no events: looked for ~e# and ~v# lines")
	}
	s.summary(w)
	d := s.replay.Peak()
	if s.moment != nil {
		d = s.dumps[0]
	}
	p, err := s.profile(d, s.replay.Ever()) // the second has all call paths
	if err != nil {
		return err
	}
	list := bySite(p, d, s.replay)
	sortSites(list, order, s.w)
	list, left := first(list, s.rows)
	tb := cli.Table{Head: []string{"Live bytes", "Count", "Allocated", "Count", "Temporary", "Mean life (s)", "Call site"},
		Right: []bool{true, true, true, true, true, true}, Width: s.width()}
	for _, l := range list {
		life := "-"
		if l.Freed > 0 {
			life = seconds(l.Lifetime / float64(l.Freed))
		}
		tb.Rows = append(tb.Rows, []string{cli.Number(l.live.Bytes), cli.Number(l.live.Count), cli.Number(l.Total.Bytes),
			cli.Number(l.Total.Count), cli.Number(l.Temporary.Count), life, l.Site.String()})
	}
	fmt.Fprintf(w, "\n%s, at %s s\n\n", d.Name, seconds(d.Time.Seconds()))
	if err := tb.Write(w); err != nil {
		return err
	}
	writeMore(w, "", left, "more call site")
	return nil
}

// summary writes the totals of the whole recording.
func (s *session) summary(w io.Writer) {
	e := s.replay.Totals()
	fmt.Fprintf(w, "%s in %s s: %s, %s, %s\n", cli.Count(e.Events, "event"), seconds((e.Last - e.First).Seconds()),
		cli.Count(e.Allocations, "allocation"), cli.Count(e.Frees, "free"), cli.Count(e.Moves, "move"))
	fmt.Fprintf(w, "peak %s bytes in %s at %s s; %s bytes in %s at the end\n", cli.Number(e.Peak.Bytes), cli.Count(e.Peak.Count, "block"),
		seconds(e.PeakTime.Seconds()), cli.Number(e.Live.Bytes), cli.Count(e.Live.Count, "block"))
	fmt.Fprintf(w, "allocated %s bytes in %s, of which %s temporary (%s %%)\n", cli.Number(e.Total.Bytes), cli.Count(e.Total.Count, "block"),
		cli.Number(e.Temporary.Count), percent(e.Temporary.Count, e.Total.Count))
	if n := e.UnknownFrees + e.DoubleFrees; n > 0 {
		first := ""
		if s.badFree.Line > 0 { // none for a block that stays where it is when moved
			first = fmt.Sprintf("; the first at %v", s.badFree)
		}
		fmt.Fprintf(w, "%s of addresses that are not allocated: %s freed before, %s unknown%s\n",
			cli.Count(n, "free"), cli.Number(e.DoubleFrees), cli.Number(e.UnknownFrees), first)
	}
	if e.Lost > 0 {
		fmt.Fprintf(w, "%s at addresses that were still allocated: frees are missing\n", cli.Count(e.Lost, "allocation"))
	}
}

func seconds(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// bySite adds up call paths by their innermost visible frame.
func bySite(p *profile.Profile, live *profile.Dump, r *replay.Replay) []siteEvents {
	var list []siteEvents
	index := map[profile.Site]int{}
	for path, c := range r.Paths() {
		if c.Total.IsZero() {
			continue
		}
		stack, shown := p.Stack(path)
		if !shown || len(stack) == 0 {
			continue
		}
		i, known := index[stack[0]]
		if !known {
			i = len(list)
			index[stack[0]] = i
			list = append(list, siteEvents{Site: stack[0]})
		}
		l := &list[i]
		l.live.Add(live.Value(path))
		l.Total.Add(c.Total)
		l.Temporary.Add(c.Temporary)
		l.Freed += c.Freed
		l.Lifetime += c.Lifetime
	}
	return list
}

func sortSites(list []siteEvents, order string, w profile.Weight) {
	key := func(l *siteEvents) uint64 {
		switch order {
		case "allocated":
			return w.Of(l.Total)
		case "temporary":
			return l.Temporary.Count
		}
		return w.Of(l.live)
	}
	slices.SortStableFunc(list, func(a, b siteEvents) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(w.Of(b.Total), w.Of(a.Total)))
	})
}
