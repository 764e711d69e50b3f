package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// leaks is the state of btheap leaks.
type leaks struct {
	*session
	heap     cli.Size // 0 if it is not given
	fail     string
	format   string
	alive    cli.Natural
	suppress []string
	defaults bool // do not use the default suppressions

	limit rateLimit
}

func leaksCommand() *cobra.Command {
	l := &leaks{session: &session{rows: 10}}
	c := &cobra.Command{
		Use: "leaks [flags] [FILE...]", Short: "what leaks, how fast, and how long the heap lasts",
		Long: `leaks ranks the call paths by the evidence that they leak, over all dumps and
boots of the logs, and calls them leak, probably or grows
(heap/docs/leaks.md). It uses dumps that lost up to a fifth of their blocks, and
lowers its estimate of the growth to allow for the loss. It leaves out dumps
written at the exit of a program. For a recording with events, it compares 40
moments.`,
		Example: "btheap leaks -e app.elf device.log\nbtheap leaks --heap 256K --fail-over 1K/h -e app.elf mon.log tue.log",
		RunE: func(c *cobra.Command, files []string) error {
			if l.format != "text" && l.format != "gcc" {
				return cli.BadArgsf("--format %q, expected text or gcc", l.format)
			}
			if err := l.checkFlags(); err != nil {
				return err
			}
			return l.run(c, files, l.write)
		},
	}
	cli.ExitCodes(c, leakExitCodes)
	f := c.Flags()
	f.VarP(&l.rows, "rows", "n", "list `N` leaks, 0 for all")
	f.Var(&l.heap, "heap", "`SIZE` of the heap, such as 256K: prints when it is exhausted")
	f.StringVar(&l.fail, "fail-over", "", "exit with 1 if the leaks, with those that are probable, grow by more than `RATE`: 1K/h, 64/dump")
	f.Var(&l.alive, "alive", "list the blocks that lived for `N` dumps or more, with addresses")
	f.StringVar(&l.format, "format", "text", "write `WHAT`: text, or gcc (FILE:LINE: warning: ...)")
	f.StringArrayVar(&l.suppress, "suppressions", nil, "leave out the call paths that `FILE` names, in the syntax of LeakSanitizer (repeatable)")
	f.BoolVar(&l.defaults, "no-default-suppressions", false, "also show pools of the C and C++ libraries and of the loader")
	l.addAll(c, "Leaks", compareFrames, []string{"json", "output"})
	c.MarkFlagsMutuallyExclusive("json", "format")
	c.MarkFlagsMutuallyExclusive("alive", "format")
	return c
}

// checkFlags reads the values of the flags that live has, too.
func (l *leaks) checkFlags() (err error) {
	if l.limit, err = parseRate(l.fail); err != nil {
		return cli.BadArgs(err)
	}
	l.Filter.Suppress, err = readSuppressions(l.suppress, !l.defaults)
	return cli.BadArgs(err)
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
	found, err := l.find()
	if err != nil && len(l.dumps) == 1 && (l.reader == nil || l.undecided() == nil) && l.format == "text" && !l.json && l.fail == "" && l.alive == 0 {
		return l.writeOne(w, err)
	}
	if err != nil {
		return err
	}
	if err := l.checkHeap(found); err != nil {
		return err
	}
	var alive []aliveBlock
	if l.alive > 0 {
		if alive, err = l.findAlive(); err != nil {
			return err
		}
	}
	switch {
	case l.json:
		err = l.writeJSON(w, found, alive)
	case l.format == "gcc":
		l.writeGCC(w, found)
	default:
		var text strings.Builder
		l.writeText(&text, found)
		for s := range strings.Lines(text.String()) {
			fmt.Fprintln(w, fit(strings.TrimSuffix(s, "\n")))
		}
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

// writeOne writes what a single dump tells: what holds the memory. why says how to get another.
func (l *leaks) writeOne(w io.Writer, why error) error {
	fmt.Fprintln(w, "1 dump: it tells what holds the memory, and the next one what grows; seven in\none boot, some time apart, suffice to call a call path a leak")
	if err := l.writeLargest(w); err != nil {
		return err
	}
	l.note("%v", why)
	return nil
}

// find reads the logs and looks for leaks. Logs need dumps or reports of allocators.
func (l *leaks) find() (*profile.Leaks, error) {
	var p *profile.Profile
	switch err := l.readSeries(); {
	case errors.Is(err, errOnlyHeaps):
	case err != nil && len(l.heaps()) > 0 && l.undecided() != nil: // the reports need no dumps
		l.note("%v", err)
	case err != nil:
		return nil, err
	default:
		if p, err = l.profile(l.dumps...); err != nil {
			return nil, err
		}
	}
	found := p.Leaks(profile.LeakOptions{Heap: uint64(l.heap), Heaps: l.heaps()})
	if found.Used > 0 || len(found.Heaps) == 0 && len(found.Dumps) == 0 {
		return found, nil
	}
	err := l.tooFew(found)
	if len(found.Heaps) == 0 {
		return nil, err
	}
	if len(found.Dumps) > 0 {
		l.note("%v", err)
	}
	return found, nil
}

// checkHeap returns an error if --heap is less than what a dump holds: a unit is missing.
func (l *leaks) checkHeap(found *profile.Leaks) error {
	for _, d := range found.Dumps {
		if d.Used && l.heap > 0 && d.Total.Bytes > uint64(l.heap) {
			return cli.Usagef("--heap %s: %s holds %s bytes, expected the size of the whole heap, such as 48K", cli.Number(uint64(l.heap)), d.Name, cli.Number(d.Total.Bytes))
		}
	}
	return nil
}

// tooFew returns the error for input in which no boot has enough dumps.
func (l *leaks) tooFew(found *profile.Leaks) error {
	if len(found.Dumps) == 1 {
		return l.onlyOne(found.Dumps[0].Dump)
	}
	var left []string
	for _, d := range found.Dumps[:min(3, len(found.Dumps))] {
		left = append(left, fmt.Sprintf("%s: %s", d.Name, d.Reason))
	}
	return fmt.Errorf("%s, expected three or more whole ones of a boot; %s", cli.Count(len(found.Dumps), "dump"), strings.Join(left, "; "))
}

// checkLimit makes --fail-over the error of the command after the report, if the leaks exceed it.
func (l *leaks) checkLimit(found *profile.Leaks) error {
	err := l.over(found)
	if cli.Code(err) == cli.Short {
		l.outcome = err
		return nil
	}
	return err
}

// over returns an error if the leaks exceed --fail-over, or if it needs times that the log lacks.
func (l *leaks) over(found *profile.Leaks) error {
	switch excess, unit := l.excess(found); {
	case unit != "":
		return cli.Usagef("--fail-over %s: %s", l.limit.text, unit)
	case excess != "":
		return cli.Shortf("%s (--fail-over)", excess)
	}
	return nil
}

// excess returns by what the leaks exceed --fail-over, "" if they do not. unit is why that cannot be told
// with the unit of --fail-over, "" if it can.
func (l *leaks) excess(found *profile.Leaks) (excess, unit string) {
	switch {
	case l.limit.text == "":
		return "", ""
	case found.Used == 0:
		return l.heapsExcess(found)
	case !found.Timed && !l.limit.perDump:
		return "", "the dumps have no times: give SIZE/dump"
	}
	rate, per := found.Rate, "hour"
	if l.limit.perDump {
		per = "dump"
		if found.Timed {
			rate *= found.Span.Hours() / float64(found.Used-found.Boots)
		}
	}
	return l.exceeds(rate, per), ""
}

// heapsExcess is excess for a log without dumps: a heap shrinks, and its unit may be a report.
func (l *leaks) heapsExcess(found *profile.Leaks) (excess, unit string) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		switch {
		case !t.Verdict.Sure():
		case (t.Per == profile.PerHour) == l.limit.perDump:
			return "", fmt.Sprintf("the rate of the heap is per %s: give SIZE/%s", t.Per, map[bool]string{true: "h", false: "dump"}[l.limit.perDump])
		default:
			if excess := l.exceeds(t.Rate, string(t.Per)); excess != "" {
				if t.Name != "" {
					excess = leaktext.HeapName(t) + " " + excess
				}
				return excess, ""
			}
		}
	}
	return "", ""
}

// exceeds returns that a rate is more than the limit, "" if it is not.
func (l *leaks) exceeds(rate float64, per string) string {
	if rate <= l.limit.bytes {
		return ""
	}
	return fmt.Sprintf("leaks %s bytes per %s, more than %s", printable.Signed(rate), per, l.limit.text)
}

// writeText writes the report for people.
func (l *leaks) writeText(w io.Writer, found *profile.Leaks) {
	if found.Used == 0 {
		fmt.Fprintln(w, leaktext.HeapHeadline(found))
	} else {
		fmt.Fprintf(w, "%s in %s\n", leaktext.Headline(found), leaktext.Examined(found))
	}
	for _, text := range append([]string{leaktext.Exhaustion(found)}, leaktext.Heaps(found)...) {
		if text != "" {
			fmt.Fprintln(w, text)
		}
	}
	if found.Used == 0 {
		return
	}
	sure := slices.DeleteFunc(slices.Clone(found.Rows), func(r *profile.Leak) bool { return !r.Verdict.Sure() }) // call paths; functions follow
	sure, left := first(sure, l.rows)
	l.writeLeaks(w, found, sure)
	writeMore(w, "\n", left, "more leak")
	if len(found.Functions) > 0 {
		fmt.Fprint(w, "\nfunctions, with all their callers together:\n")
		l.writeLeaks(w, found, found.Functions)
		if rows, _ := first(found.Rows, lookedAt); found.Boots > 1 && slices.ContainsFunc(rows, func(r *profile.Leak) bool { return slices.ContainsFunc(r.Stack(), unnamed) }) {
			fmt.Fprintln(w, "\naddresses without names may differ by boot, and so may their call paths:\n--hide '^0x' leaves such addresses out, --maps may name them")
		}
	}
	steady, uneven, ended := leaktext.Growing(found)
	if len(steady) > 0 {
		fmt.Fprint(w, "\nThese grow steadily, but not long enough to tell a leak from a cache:\n")
		l.writeLeaks(w, found, steady)
	}
	if len(uneven) > 0 {
		fmt.Fprint(w, "\nThese grow, but so slowly or unevenly that it may be noise; a longer log decides:\n")
		l.writeLeaks(w, found, uneven)
	}
	if len(ended) > 0 {
		fmt.Fprint(w, "\nThese grew as a leak does, and stopped: a leak that was mended, or a cache that\nis full:\n")
		l.writeLeaks(w, found, ended)
	}
	if lines := leaktext.Basis(found); len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	}
}

// writeLeaks writes call paths, or functions with all their callers, with their evidence.
func (l *leaks) writeLeaks(w io.Writer, found *profile.Leaks, list []*profile.Leak) {
	var limit profile.StackLimit
	defer l.noteCut(&limit)
	for _, r := range list {
		bars := sparkline(r.Points(), func(i int) bool { return found.Dumps[i].Used }, l.w, 24)
		verdict, boots := r.Verdict.String(), ""
		if r.Ended != nil {
			verdict = "ended"
		}
		if r.Boots > 1 {
			boots = fmt.Sprintf("  %d boots", r.Boots)
		}
		head := fmt.Sprintf("%s  %s  %s → %s blocks, %s → %s bytes%s", verdict, leaktext.RateOf(found, r),
			cli.Number(r.First.Count), cli.Number(r.Last.Count), cli.Number(r.First.Bytes), cli.Number(r.Last.Bytes), boots)
		between := "  "
		if utf8.RuneCountInString(head+between+bars) > cli.DefaultWidth {
			between = "\n  "
		}
		fmt.Fprintf(w, "\n%s%s%s\n", head, between, bars)
		fmt.Fprintf(w, "  %s\n", leaktext.Evidence(r))
		for _, text := range leaktext.Notes(found, r) {
			fmt.Fprintf(w, "  %s\n", cli.Printable(text))
		}
		l.stack(w, limit.Leak(r))
		writeCallers(w, r.Callers())
	}
}

// writeCallers writes from where a function that leaks is called, and where in it.
func writeCallers(w io.Writer, list []profile.Caller) {
	shown, left := first(list, 5)
	for _, c := range shown {
		text := fmt.Sprintf("%3.0f %%", 100*c.Share)
		if at := c.Stack[0]; at.File != "" {
			text += fmt.Sprintf(" at %s:%d", at.File, at.Line)
		}
		if len(c.Stack) > 1 {
			text += " from " + c.Stack[1].String()
		}
		fmt.Fprintf(w, "      %s\n", cli.Printable(text))
	}
	writeMore(w, "      ", left, "more caller")
}

// lookedAt is the number of call paths that are examined for names of functions.
const lookedAt = 100

// hint returns how to get names of functions if no listed call path has any, else "". It is for
// people at a terminal.
func (l *leaks) hint(found *profile.Leaks) string {
	listed := slices.DeleteFunc(slices.Clone(found.Rows), func(r *profile.Leak) bool { return r.Verdict == profile.NoEvidence })
	listed, _ = first(listed, lookedAt)
	named := func(r *profile.Leak) bool {
		return slices.ContainsFunc(r.Stack(), func(s profile.Site) bool { return !unnamed(s) })
	}
	if len(l.Exes) > 0 || len(listed) == 0 || slices.ContainsFunc(listed, named) {
		return ""
	}
	return "the call paths have no names of functions: name the ELF file of the program with -e"
}

// unnamed reports whether a call site is an address without a name.
func unnamed(s profile.Site) bool { return strings.HasPrefix(s.Func, "0x") }

// writeGCC writes a line per leak in the format of compiler messages, for editors and CI.
func (l *leaks) writeGCC(w io.Writer, found *profile.Leaks) {
	var limit profile.StackLimit
	steady, uneven, _ := leaktext.Growing(found)
	for _, r := range slices.Concat(found.Sure(), steady, uneven) {
		at, name, kind := inLog(found), "(no frames)", "warning"
		stack := limit.Leak(r)
		if len(stack) > 0 {
			name = stack[0].Func
		}
		if callers := r.Callers(); len(callers) > 0 {
			stack = callers[0].Stack
		}
		if i := slices.IndexFunc(stack, func(s profile.Site) bool { return s.File != "" && s.Line > 0 }); i >= 0 {
			at, name = fmt.Sprintf("%s:%d", stack[i].File, stack[i].Line), stack[i].Func
		}
		if r.Verdict == profile.Grows {
			kind = "note"
		}
		fmt.Fprintf(w, "%s: %s: %s: %s: %s, %s → %s blocks\n", at, kind, r.Verdict, name, leaktext.Rate(found, r.Rate, r.Margin),
			cli.Number(r.First.Count), cli.Number(r.Last.Count))
	}
	if len(found.Sure()) == 0 {
		writeHeapsGCC(w, found)
	}
}

// writeHeapsGCC writes a line per heap that shrinks, where no call path tells why: at the report before
// that began, or at the last one.
func writeHeapsGCC(w io.Writer, found *profile.Leaks) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		file, line, kind := t.Last.File, t.Last.Line, "warning"
		if t.Changed && t.Evidence.Since > 0 {
			file, line = t.Began.File, t.Began.Line
		}
		switch {
		case t.Verdict.Sure():
		case t.Grows():
			kind = "note"
		default:
			continue
		}
		fmt.Fprintf(w, "%s:%d: %s: %s\n", file, max(1, line), kind, leaktext.Heap(t))
	}
}

// inLog returns where the log has the last used dump, for a leak of which no source line is known.
func inLog(found *profile.Leaks) string {
	at := "-:1"
	for _, d := range found.Dumps {
		if d.Used && d.File != "" {
			at = fmt.Sprintf("%s:%d", d.File, max(1, d.Line))
		}
	}
	return at
}
