package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	heap "github.com/lwsbt/lwsbt/profile"
)

// leaks is the state of btheap leaks.
type leaks struct {
	*session
	rows     cli.Natural
	heap     cli.Size // 0 if it is not given
	fail     string
	format   string
	alive    cli.Natural
	suppress []string
	defaults bool // do not use the default suppressions

	limit rateLimit
}

func leaksCommand() *cobra.Command {
	l := &leaks{session: &session{unit: heap.ByLine}, rows: 10}
	s := l.session
	c := s.command(&cobra.Command{
		Use: "leaks [flags] [FILE...]", Short: "what leaks, how fast, and how long the heap lasts",
		Long: `leaks ranks the call paths by the evidence that they leak, over all dumps and
boots of the logs, and calls them leak, probably or grows (docs/leaks.md). It
uses dumps that lost some lines, and adds the loss to the error. It leaves out
dumps written at the exit of a program. For a recording with events, it compares
40 moments.`,
		Example: "btheap leaks -e app.elf device.log\nbtheap leaks --heap 256K --fail-over 1K/h -e app.elf mon.log tue.log",
	})
	s.args = func(args []string) ([]string, error) { return args, l.checkFlags() }
	s.load, s.report = l.readSeries, l.write
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VarP(&l.rows, "rows", "n", "list `N` leaks, 0 for all")
	f.Var(&l.heap, "heap", "`SIZE` of the heap, such as 256K: prints when it is exhausted")
	f.StringVar(&l.fail, "fail-over", "", "exit with 1 if the leaks, with those that are probable, grow by more than `RATE`: 1K/h, 64/dump")
	f.Var(&l.alive, "alive", "list the blocks that lived for `N` dumps or more, with addresses")
	f.StringVar(&l.format, "format", "text", "write `WHAT`: text, or gcc (FILE:LINE: warning: ...)")
	f.StringArrayVar(&l.suppress, "suppressions", nil, "leave out the call paths that `FILE` names, in the syntax of LeakSanitizer (repeatable)")
	f.BoolVar(&l.defaults, "no-default-suppressions", false, "also show pools of the C and C++ libraries and of the loader")
	cli.AddFlags(c, "Leaks", f)
	s.addAll(c, compareFrames, []string{"json", "output"})
	c.MarkFlagsMutuallyExclusive("json", "format")
	c.MarkFlagsMutuallyExclusive("alive", "format")
	return c
}

// checkFlags reads the values of the flags.
func (l *leaks) checkFlags() (err error) {
	if l.format != "text" && l.format != "gcc" {
		return fmt.Errorf("--format %q, expected text or gcc", l.format)
	}
	if l.limit, err = parseRate(l.fail); err != nil {
		return err
	}
	l.Filter.Suppress, err = readSuppressions(l.suppress, !l.defaults)
	return err
}

// rateLimit is the value of --fail-over: bytes per hour or per dump.
type rateLimit struct {
	text    string
	bytes   float64
	perDump bool
}

// parseRate reads SIZE/UNIT, such as 1K/h.
func parseRate(s string) (r rateLimit, err error) {
	if s == "" {
		return r, nil
	}
	size, unit, _ := strings.Cut(s, "/")
	n, err := cli.ParseSize(size)
	hours, ok := map[string]float64{"s": 1.0 / 3600, "min": 1.0 / 60, "h": 1, "day": 24, "week": 168, "dump": 1}[unit]
	if err != nil || !ok {
		return r, fmt.Errorf("--fail-over %q, expected SIZE/UNIT, such as 1K/h: the unit is s, min, h, day, week or dump", s)
	}
	return rateLimit{s, float64(n) / hours, unit == "dump"}, nil
}

// write writes the report and checks --fail-over.
func (l *leaks) write(w io.Writer) error {
	p, err := l.profile(l.dumps)
	if err != nil {
		return err
	}
	found := p.Leaks(heap.LeakOptions{Heap: uint64(l.heap)})
	if found.Used == 0 {
		return l.tooFew(found)
	}
	var alive []aliveBlock
	if l.alive > 0 {
		if alive, err = l.findAlive(); err != nil {
			return err
		}
	}
	switch {
	case l.json:
		err = l.document(found, alive).write(w)
	case l.format == "gcc":
		l.writeGCC(w, found)
	default:
		l.writeText(w, found)
		if l.alive > 0 {
			l.writeAlive(w, alive)
		}
		if text := l.hint(found); text != "" && cli.IsTerminal(l.c.ErrOrStderr()) {
			l.note("%s", text)
		}
	}
	if err != nil {
		return err
	}
	return l.checkLimit(found)
}

// tooFew returns the error for input in which no boot has enough dumps.
func (l *leaks) tooFew(found *heap.Leaks) error {
	if len(found.Dumps) == 1 {
		return l.onlyOne(found.Dumps[0].Dump)
	}
	var left []string
	for _, d := range found.Dumps[:min(3, len(found.Dumps))] {
		left = append(left, fmt.Sprintf("%s: %s", d.Name, d.Reason))
	}
	return fmt.Errorf("%s, expected three or more whole ones of a boot; %s", cli.Count(len(found.Dumps), "dump"), strings.Join(left, "; "))
}

// checkLimit sets the error of the command if the leaks exceed --fail-over.
func (l *leaks) checkLimit(found *heap.Leaks) error {
	text, err := l.over(found)
	if text != "" {
		l.outcome = cli.Shortf("%s", text)
	}
	return err
}

// over returns a message if the leaks exceed --fail-over, else "".
func (l *leaks) over(found *heap.Leaks) (string, error) {
	if l.limit.text == "" || found.Used == 0 {
		return "", nil
	}
	if !found.Timed && !l.limit.perDump {
		return "", cli.Usagef("--fail-over %s: the dumps have no times: give SIZE/dump", l.limit.text)
	}
	rate := found.Rate
	if found.Timed && l.limit.perDump {
		rate *= found.Span.Hours() / float64(found.Used-found.Boots)
	}
	if rate <= l.limit.bytes {
		return "", nil
	}
	per := "hour"
	if l.limit.perDump {
		per = "dump"
	}
	return fmt.Sprintf("leaks %s bytes per %s, more than %s (--fail-over)", slope(rate), per, l.limit.text), nil
}

// worst returns the rows that the report lists: the rows that leak or probably leak, and at
// most three rows that grow.
func (l *leaks) worst(found *heap.Leaks) (sure, grow []heap.Leak, more int) {
	for _, r := range found.Rows {
		switch {
		case r.Verdict >= heap.Probably:
			sure = append(sure, r)
		case r.Verdict == heap.Grows && len(grow) < 3 && !slices.ContainsFunc(found.Functions, func(f heap.Leak) bool { return calledBy(&r, &f) }):
			grow = append(grow, r)
		}
	}
	if n := int(l.rows); n > 0 && len(sure) > n {
		sure, more = sure[:n], len(sure)-n
	}
	return sure, grow, more
}

// calledBy reports whether a call path is one of a function's.
func calledBy(path, function *heap.Leak) bool {
	stack := path.Stack()
	return len(stack) > 0 && stack[0].Func == function.Stack()[0].Func
}

// writeText writes the report for people.
func (l *leaks) writeText(w io.Writer, found *heap.Leaks) {
	sure, grow, more := l.worst(found)
	fmt.Fprintf(w, "%s in %s\n", headline(found), examined(found))
	l.writeExhaustion(w, found)
	if text := torn(found.Dumps); text != "" {
		fmt.Fprintln(w, text)
	}
	for i := range sure {
		l.writeLeak(w, found, &sure[i])
	}
	if more > 0 {
		fmt.Fprintln(w)
		writeMore(w, more, "more leak")
	}
	l.writeFunctions(w, found)
	if len(grow) > 0 {
		fmt.Fprintf(w, "\nMay be leaks (of %s that do not leak, about %s look like this by chance):\n", cli.Count(found.Varied, "call path"), amount(found.Random)[1:])
	}
	for i := range grow {
		l.writeLeak(w, found, &grow[i])
	}
	l.writeBasis(w, found)
}

// headline returns a sentence with the number of leaks.
func headline(found *heap.Leaks) string {
	n := map[heap.Verdict]int{}
	for _, r := range found.Sure() {
		n[r.Verdict]++
	}
	for i := range found.Rows {
		if found.Rows[i].Verdict == heap.Grows {
			n[heap.Grows]++
		}
	}
	var list []string
	if k := n[heap.Leaking]; k > 0 {
		list = append(list, cli.Count(k, "leak"))
	}
	if k := n[heap.Probably]; k > 0 {
		list = append(list, cli.Count(k, "probable leak"))
	}
	switch {
	case len(list) == 0 && n[heap.Grows] == 0:
		return "no leak found"
	case len(list) == 0:
		return "no leak found (" + cli.Count(n[heap.Grows], "call path") + " may be one)"
	}
	return strings.Join(list, ", ")
}

// examined returns a description of the examined dumps.
func examined(found *heap.Leaks) string {
	s := cli.Count(found.Used, "dump")
	if found.Boots > 1 {
		s += fmt.Sprintf(" of %d boots", found.Boots)
	}
	if found.Timed {
		s += " over " + duration(found.Span.Hours())
	}
	return s
}

// duration writes hours in a unit that gives a small number.
func duration(hours float64) string {
	for _, u := range []struct {
		hours float64
		name  string
	}{{24 * 365, "years"}, {24 * 2, "days"}, {1, "h"}, {1.0 / 60, "min"}} {
		if hours < u.hours {
			continue
		}
		if u.name == "days" {
			u.hours = 24
		}
		if hours/u.hours > 1000 {
			return "over 1,000 " + u.name
		}
		return strconv.FormatFloat(hours/u.hours, 'g', 3, 64) + " " + u.name
	}
	return strconv.FormatFloat(hours*3600, 'g', 3, 64) + " s"
}

// shortRun is the time below which rates are per second and not per hour.
const shortRun = 2 * time.Minute

// rate writes a rate and its margin, bytes per hour or dump, such as
// "+69.3 ± 6.5 bytes per dump".
func rate(found *heap.Leaks, v, margin float64) string {
	per := "dump"
	switch {
	case found.Timed && found.Span < shortRun:
		per, v, margin = "second", v/3600, margin/3600
	case found.Timed:
		per = "hour"
	}
	return fmt.Sprintf("%s ± %s bytes per %s", amount(v), amount(margin)[1:], per)
}

// span writes a time in the unit of the rates.
func span(found *heap.Leaks, v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "never"
	case found.Timed:
		return duration(v)
	}
	return slope(math.Round(v))[1:]
}

// left returns the time until the heap is full, such as "3 h (2 h to 5 h)".
func left(found *heap.Leaks) string {
	x := found.Exhaustion
	in := span(found, x.In)
	if !found.Timed {
		in += " dumps"
	}
	if from, to := span(found, x.From), span(found, x.To); from != to {
		in += fmt.Sprintf(" (%s to %s)", from, to)
	}
	return in
}

// writeExhaustion writes when the heap will be full.
func (l *leaks) writeExhaustion(w io.Writer, found *heap.Leaks) {
	if x := found.Exhaustion; x != nil {
		fmt.Fprintf(w, "free %s bytes: exhausted in %s at %s\n", cli.Number(x.Free), left(found), rate(found, x.Rate, x.Margin))
	}
}

// torn returns a message if the heap becomes fragmented: according to the allocator's reports
// in the dumps of the last boot, the largest free block became a quarter smaller, but the free
// memory did not become a tenth smaller. Otherwise, or with fewer than three reports, it
// returns "".
func torn(dumps []heap.LeakDump) string {
	var list []heap.Heap
	for i := range dumps {
		if i > 0 && (dumps[i].Boot != dumps[i-1].Boot || dumps[i].File != dumps[i-1].File) {
			list = list[:0]
		}
		if dumps[i].Heap.Known {
			list = append(list, dumps[i].Heap)
		}
	}
	if len(list) < 3 {
		return ""
	}
	first, last := list[0], list[len(list)-1]
	if float64(last.Largest) > 0.75*float64(first.Largest) || float64(last.Free) < 0.9*float64(first.Free) {
		return ""
	}
	return fmt.Sprintf("fragmentation: the largest free block went from %s to %s bytes, what is free from %s to %s (btheap map)",
		cli.Number(first.Largest), cli.Number(last.Largest), cli.Number(first.Free), cli.Number(last.Free))
}

// amount writes a rate: with a fraction only if it is small.
func amount(v float64) string {
	if math.Abs(v) >= 100 {
		v = math.Round(v)
	}
	return slope(v)
}

// writeLeak writes a call path with its evidence.
func (l *leaks) writeLeak(w io.Writer, found *heap.Leaks, r *heap.Leak) {
	points := r.Points()
	bars := make([]*heap.Value, len(points))
	for i := range points {
		if found.Dumps[i].Used {
			bars[i] = &points[i]
		}
	}
	boots := ""
	if r.Boots > 1 {
		boots = fmt.Sprintf("  %d boots", r.Boots)
	}
	fmt.Fprintf(w, "\n%s  %s  %s → %s blocks, %s → %s bytes%s  %s\n", r.Verdict, rate(found, r.Rate, r.Margin),
		cli.Number(r.First.Count), cli.Number(r.Last.Count), cli.Number(r.First.Bytes), cli.Number(r.Last.Bytes), boots, sparkline(bars, l.w, 24))
	fmt.Fprintf(w, "  %s\n", kept(r))
	stack(w, r.Stack())
}

// hint returns how to get names of functions if no listed call path has any, else "". It is for
// people at a terminal.
func (l *leaks) hint(found *heap.Leaks) string {
	if len(l.Exes) > 0 {
		return ""
	}
	listed := 0
	for i := range found.Rows {
		r := &found.Rows[i]
		if r.Verdict == heap.NoEvidence {
			continue
		}
		listed++
		if slices.ContainsFunc(r.Stack(), func(s heap.Site) bool { return !unnamed(s) }) {
			return ""
		}
	}
	if listed == 0 {
		return ""
	}
	return "the call paths have no names of functions: name the ELF file of the program with -e"
}

// kept describes the evidence of a call path.
func kept(r *heap.Leak) string {
	return fmt.Sprintf("kept memory grew in %d of %s (%.0f if random)%s", r.Rose, cli.Count(r.Intervals, "interval"), r.Chance, evidence(&r.Evidence))
}

// evidence describes the growth of kept memory: of the floor (see profile.Evidence).
func evidence(e *heap.Evidence) string {
	s := ", in both halves of the log"
	if e.H2 < 0.5 {
		s = ", most of it in one half"
	}
	switch {
	case e.D <= 0.12:
		s += ", steadily"
	case e.D > 0.25:
		s += ", unevenly"
	}
	if e.ByBytes {
		s += "; the blocks grow"
	}
	return s
}

// writeFunctions writes the functions with more evidence than any of their call paths: a leak
// with many callers.
func (l *leaks) writeFunctions(w io.Writer, found *heap.Leaks) {
	for i := range found.Functions {
		if i == 0 {
			fmt.Fprint(w, "\nfunctions, with all their callers together:\n")
		}
		l.writeLeak(w, found, &found.Functions[i])
	}
	if len(found.Functions) > 0 && found.Boots > 1 && slices.ContainsFunc(found.Rows, func(r heap.Leak) bool { return slices.ContainsFunc(r.Stack(), unnamed) }) {
		fmt.Fprintln(w, "\naddresses without names may differ by boot, and so may their call paths:\n--hide '^0x' leaves such addresses out, --maps may name them")
	}
}

// unnamed reports whether a call site is an address without a name.
func unnamed(s heap.Site) bool { return strings.HasPrefix(s.Func, "0x") }

// writeBasis writes the omissions, and the data on which the answer is based.
func (l *leaks) writeBasis(w io.Writer, found *heap.Leaks) {
	var lines []string
	left := map[string][]string{}
	var reasons []string
	for _, d := range found.Dumps {
		if !d.Used {
			if left[d.Reason] == nil {
				reasons = append(reasons, d.Reason)
			}
			left[d.Reason] = append(left[d.Reason], d.Name)
		}
	}
	for _, reason := range reasons {
		names := left[reason]
		if n := len(names) - 3; n > 0 {
			names = append(slices.Clone(names[:3]), fmt.Sprintf("%d more", n))
		}
		lines = append(lines, fmt.Sprintf("left out: %s (%s)", strings.Join(names, ", "), reason))
	}
	if found.Missing > 0.0005 {
		lines = append(lines, fmt.Sprintf("%.1f %% of the blocks are missing: rates are corrected, and paths are ranked by a low estimate", 100*found.Missing))
	}
	if !found.Enough {
		lines = append(lines, "too few dumps to say leak: give 7 or more of a boot")
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	}
}

// writeGCC writes a line per leak in the format of compiler messages, for editors and CI.
func (l *leaks) writeGCC(w io.Writer, found *heap.Leaks) {
	_, grow, _ := l.worst(found)
	for _, r := range slices.Concat(found.Sure(), grow) {
		at, name, kind := "unknown:0", "(no frames)", "warning"
		stack := r.Stack()
		if len(stack) > 0 {
			name = stack[0].Func
		}
		if i := slices.IndexFunc(stack, func(s heap.Site) bool { return s.File != "" && s.Line > 0 }); i >= 0 {
			at, name = fmt.Sprintf("%s:%d", stack[i].File, stack[i].Line), stack[i].Func
		}
		if r.Verdict == heap.Grows {
			kind = "note"
		}
		fmt.Fprintf(w, "%s: %s: %s: %s: %s, %s → %s blocks\n", at, kind, r.Verdict, name, rate(found, r.Rate, r.Margin),
			cli.Number(r.First.Count), cli.Number(r.Last.Count))
	}
}
