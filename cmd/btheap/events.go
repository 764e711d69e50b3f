package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/logs"
	"github.com/lwsbt/lwsbt/internal/table"
	heap "github.com/lwsbt/lwsbt/profile"
)

// siteEvents is what a call site did: of what heap.PathEvents has, what is shown, as
// there may be millions.
type siteEvents struct {
	id               heap.SiteID
	live             heap.Value // at the moment asked for
	total            heap.Value
	temporary, freed uint64
	lifetime         float64
}

func eventsCommand() *cobra.Command {
	s := &session{unused: []unused{{"events belong to no dump; --at selects a time", []string{"dump", "split"}}}}
	rows, order := 0, ""
	c := s.command(&cobra.Command{
		Use: "events [flags] [FILE...]", Short: "peak, churn and lifetimes of a recording of events",
		Long: `events reports on recordings with events, which have a line for each allocation
and free (~e# lines, as btrecord --events writes). It lists what was live at the
peak (or --at), what each call site allocated, how long its blocks lived, and
frees of addresses that were not allocated. A temporary block is one that was
freed by the next event of its thread.`,
		Example: "btheap events -e app app.rec\nbtheap events --at 2.5s --sort temporary -e app app.rec",
	}, heap.ByLine, func(args []string) ([]string, error) {
		if !contains(orders, order) {
			return nil, fmt.Errorf("--sort %q, expected live, allocated or temporary", order)
		}
		if rows < 0 {
			return nil, fmt.Errorf("-n %d, expected a number of call sites", rows)
		}
		return args, nil
	}, func(w io.Writer) error {
		if s.reader == nil || s.reader.Events() == nil {
			return fmt.Errorf("no events: looked for ~e# lines")
		}
		e := s.reader.Events()
		s.summary(w, e)
		at := logs.At{Peak: true}
		if s.moment != nil {
			at = *s.moment
		}
		d := at.Of(e)
		s.reader.NoteDumps(s.prof, nil)
		list := s.bySite(d, e)
		sortSites(list, order, s.w)
		tb := table.Table{Head: []string{"Live bytes", "Count", "Allocated", "Count", "Temporary", "Mean life (s)", "Call site"},
			Right: []bool{true, true, true, true, true, true}, Width: s.width()}
		for i, l := range list {
			if rows > 0 && i == rows {
				break
			}
			life := "-"
			if l.freed > 0 {
				life = seconds(l.lifetime / float64(l.freed))
			}
			tb.Rows = append(tb.Rows, []string{cli.Number(l.live.Bytes), cli.Number(l.live.Count), cli.Number(l.total.Bytes),
				cli.Number(l.total.Count), cli.Number(l.temporary), life, s.names.Site(l.id).String()})
		}
		fmt.Fprintf(w, "\n%s, at %s s\n\n", d.Name, seconds(float64(d.Time)))
		if err := tb.Write(w); err != nil {
			return err
		}
		if more := len(list) - len(tb.Rows); more > 0 {
			fmt.Fprintf(w, "%s: -n 0 lists all\n", cli.Count(more, "more call site"))
		}
		return nil
	})
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVarP(&rows, "rows", "n", 20, "list `N` call sites, 0 for all")
	f.StringVar(&order, "sort", "live", "order by `WHAT`: live, allocated or temporary")
	cli.AddFlags(c, "Events", f)
	return c
}

var orders = []string{"live", "allocated", "temporary"}

// summary writes what the whole recording did.
func (s *session) summary(w io.Writer, e *heap.Events) {
	fmt.Fprintf(w, "%s in %s s: %s, %s, %s\n", cli.Count(e.Seen(), "event"), seconds(float64(e.Last)-float64(e.First)),
		cli.Count(e.Allocations, "allocation"), cli.Count(e.Frees, "free"), cli.Count(e.Moves, "move"))
	fmt.Fprintf(w, "peak %s bytes in %s at %s s; %s bytes in %s at the end\n", cli.Number(e.Peak.Bytes), cli.Count(e.Peak.Count, "block"),
		seconds(float64(e.PeakTime)), cli.Number(e.Live.Bytes), cli.Count(e.Live.Count, "block"))
	fmt.Fprintf(w, "allocated %s bytes in %s, of which %s temporary (%s %%)\n", cli.Number(e.Total.Bytes), cli.Count(e.Total.Count, "block"),
		cli.Number(e.Temporary.Count), percent(e.Temporary.Count, e.Total.Count))
	if n := e.UnknownFrees + e.DoubleFrees; n > 0 {
		fmt.Fprintf(w, "%s of addresses that are not allocated: %s freed before, %s unknown; the first at %v\n",
			cli.Count(n, "free"), cli.Number(e.DoubleFrees), cli.Number(e.UnknownFrees), s.reader.BadFrees()[0])
	}
	if e.Lost > 0 {
		fmt.Fprintf(w, "%s at addresses that were still allocated: frees are missing\n", cli.Count(e.Lost, "allocation"))
	}
}

func seconds(us float64) string { return strconv.FormatFloat(us/1e6, 'f', 3, 64) }

// bySite adds up call paths by their innermost frame that is shown.
func (s *session) bySite(d *heap.Dump, e *heap.Events) []siteEvents {
	var list []siteEvents
	var index []uint32 // by SiteID: 1 + index in list
	var stack []heap.SiteID
	for i := range e.Paths() {
		id := heap.PathID(i)
		p := e.Path(id)
		if p.Total.IsZero() {
			continue
		}
		var shown bool
		if stack, shown = s.names.AppendStack(stack[:0], id); !shown || len(stack) == 0 {
			continue
		}
		if n := s.names.Sites(); len(index) < n {
			index = append(index, make([]uint32, n-len(index))...)
		}
		at := &index[stack[0]]
		if *at == 0 {
			list = append(list, siteEvents{id: stack[0]})
			*at = uint32(len(list))
		}
		l := &list[*at-1]
		l.live.Add(d.Value(id))
		l.total.Add(p.Total)
		l.temporary += p.Temporary.Count
		l.freed += p.Freed
		l.lifetime += p.Lifetime
	}
	return list
}

func sortSites(list []siteEvents, order string, w heap.Weight) {
	key := func(l *siteEvents) uint64 {
		switch order {
		case "allocated":
			return w.Of(l.total)
		case "temporary":
			return l.temporary
		}
		return w.Of(l.live)
	}
	slices.SortStableFunc(list, func(a, b siteEvents) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(w.Of(b.total), w.Of(a.total)))
	})
}
