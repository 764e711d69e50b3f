package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// leaks is the state of btheap leaks.
type leaks struct {
	*session
	heap cli.Size // 0 if it is not given
	fail string

	limit rateLimit
}

func leaksCommand() *cobra.Command {
	l := &leaks{session: &session{rows: 10}}
	c := &cobra.Command{
		Use: "leaks [flags] [FILE...]", Short: "what leaks, how fast, and how long the heap lasts",
		Long: `leaks judges the call paths and the heaps of the logs, over all dumps and boots:
a leak with its probability and rate, none above a bound, or why it cannot tell
(heap/docs/leaks.md). It uses dumps that lost up to 30 % of their blocks, and
allows for the loss. It leaves out dumps written at the exit of a program. For a
recording with events, it compares 40 to 80 moments.`,
		Example: "btheap leaks -e app.elf device.log\nbtheap leaks --heap 256K --fail-over 1K/h -e app.elf mon.log tue.log",
		RunE: func(c *cobra.Command, files []string) error {
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
	f.StringVar(&l.fail, "fail-over", "", "exit with 1 if what surely leaks (95 %) grows by more than `RATE`: 1K/h, 64/dump")
	l.addAll(c, "Leaks", compareFrames, []string{"json"}, "heap-line")
	return c
}

// checkFlags reads the values of the flags that live has, too.
func (l *leaks) checkFlags() (err error) {
	l.Filter.Suppress = pools
	l.limit, err = parseRate(l.fail)
	return cli.BadArgs(err)
}

// write writes the report and checks --fail-over.
func (l *leaks) write(w io.Writer) error {
	found, err := l.find()
	if err != nil && len(l.dumps) == 1 && l.undecided() == nil && !l.json && l.fail == "" {
		return l.writeOne(w, err)
	}
	if err != nil {
		return err
	}
	if err := l.checkHeap(found); err != nil {
		return err
	}
	if l.json {
		if err := l.writeJSON(w, found); err != nil {
			return err
		}
		return l.checkLimit(found)
	}
	var text strings.Builder
	l.writeText(&text, found)
	for s := range strings.Lines(text.String()) {
		fmt.Fprintln(w, fit(strings.TrimSuffix(s, "\n")))
	}
	if text := l.hint(found); text != "" && cli.IsTerminal(l.c.ErrOrStderr()) {
		l.note("%s", text)
	}
	return l.checkLimit(found)
}

// writeOne writes what a single dump tells: what holds the memory. why says how to get another.
func (l *leaks) writeOne(w io.Writer, why error) error {
	fmt.Fprintln(w, "1 dump: it tells what holds the memory, and more of the same boot,\nsome time apart, what leaks")
	if err := l.writeLargest(w); err != nil {
		return err
	}
	l.note("%v", why)
	return nil
}

// find reads the logs and looks for leaks. Logs need dumps or reports of allocators.
func (l *leaks) find() (*growth.Leaks, error) {
	var p *profile.Profile
	files, told := inOrder(l.files)
	if l.files = files; !told {
		l.note("%d logs, in the order given: neither dates in lines nor numbers in names tell it", len(files))
	}
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
	found := growth.Judge(p, growth.Options{Heap: uint64(l.heap), Heaps: l.heaps()})
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
func (l *leaks) checkHeap(found *growth.Leaks) error {
	for _, d := range found.Dumps {
		if d.Used && l.heap > 0 && d.Total.Bytes > uint64(l.heap) {
			return cli.Usagef("--heap %s: %s holds %s bytes, expected the size of the whole heap, such as 48K", cli.Number(uint64(l.heap)), d.Name, cli.Number(d.Total.Bytes))
		}
	}
	return nil
}

// tooFew returns the error for input in which no boot has enough dumps.
func (l *leaks) tooFew(found *growth.Leaks) error {
	if len(found.Dumps) == 1 {
		return l.onlyOne(found.Dumps[0].Dump)
	}
	var left []string
	for _, d := range found.Dumps[:min(3, len(found.Dumps))] {
		left = append(left, fmt.Sprintf("%s: %s", d.Name, d.Reason))
	}
	return fmt.Errorf("%s, expected three or more whole ones of a boot; %s", cli.Count(len(found.Dumps), "dump"), strings.Join(left, "; "))
}

// writeText writes the report for people.
func (l *leaks) writeText(w io.Writer, found *growth.Leaks) {
	if found.Used == 0 {
		fmt.Fprintln(w, leaktext.HeapHeadline(found))
	} else {
		fmt.Fprintf(w, "%s in %s\n", leaktext.Headline(found), leaktext.Examined(found))
	}
	for _, text := range append([]string{leaktext.Exhaustion(found)}, leaktext.Heaps(found, bars)...) {
		if text != "" {
			fmt.Fprintln(w, text)
		}
	}
	if found.Used == 0 {
		return
	}
	leaks, unknown, ended := leaktext.Listed(found)
	leaks, left := first(leaks, l.rows)
	l.writeLeaks(w, found, leaks)
	writeMore(w, "\n", left, "more leak")
	if slices.ContainsFunc(leaks, func(r *growth.Leak) bool { return len(r.Stack()) == 1 && r.Parts != nil }) {
		if rows, _ := first(found.Rows, lookedAt); found.Boots > 1 && slices.ContainsFunc(rows, func(r *growth.Leak) bool { return slices.ContainsFunc(r.Stack(), unnamed) }) {
			fmt.Fprintln(w, "\naddresses without names may differ by boot, and so may their call paths:\n--hide '^0x' leaves such addresses out, --maps may name them")
		}
	}
	if len(unknown) > 0 {
		text := "\ncannot tell of " + cli.Count(len(found.Unknown()), "call path")
		if x := found.IfLeak(unknown...); x != nil && len(unknown) > 1 {
			text += fmt.Sprintf(" (if the first %d leak, the heap is\nexhausted in %s)", len(unknown), leaktext.Left(x))
		}
		fmt.Fprintln(w, text+":")
		l.writeLeaks(w, found, unknown)
	}
	if len(ended) > 0 {
		fmt.Fprint(w, "\nThese grew, and do not now: a cache that is full, or a leak that was mended:\n")
		l.writeLeaks(w, found, ended)
	}
	if lines := leaktext.Basis(found); len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	}
}

// bars is the number of bars of a row.
const bars = 24

// writeLeaks writes rows with what is known of each.
func (l *leaks) writeLeaks(w io.Writer, found *growth.Leaks, list []*growth.Leak) {
	var limit stackLimit
	defer l.noteCut(&limit)
	for _, r := range list {
		line := marked(r.Points(), func(i int) bool { return found.Dumps[i].Used }, l.w, r.SinceDump, bars)
		boots := ""
		if found.Boots > 1 {
			boots = fmt.Sprintf("  %d boots", found.Boots)
		}
		head := fmt.Sprintf("%s  %s", leaktext.Short(&r.Judgement), leaktext.RateOf(found, r))
		if r.Verdict == leak.None {
			head = "ended  " + leaktext.RateOf(found, r)
		}
		fmt.Fprintf(w, "\n%s\n  %s  %s → %s blocks, %s → %s bytes%s\n", head, line,
			cli.Number(r.First.Count), cli.Number(r.Last.Count), cli.Number(r.First.Bytes), cli.Number(r.Last.Bytes), boots)
		for _, text := range leaktext.Notes(found, r) {
			fmt.Fprintf(w, "  %s\n", cli.Printable(text))
		}
		l.stack(w, limit.leak(r))
		writeParts(w, found, r)
	}
}

// writeParts writes the call paths of a bug: what each has besides the frames that all have.
func writeParts(w io.Writer, found *growth.Leaks, r *growth.Leak) {
	shown, left := first(r.Parts, 5)
	for _, p := range shown {
		stack := p.Stack()
		if len(r.Stack()) == 1 && len(stack) > 1 && stack[0].Func == r.Stack()[0].Func { // the callers of a function
			stack = stack[:2]
		} else {
			stack = stack[:max(1, len(stack)-len(r.Stack()))]
		}
		fmt.Fprintf(w, "      %s  %s\n", leaktext.RateOf(found, p), cli.Printable(path(stack, 60)))
	}
	writeMore(w, "      ", left, "more call path")
}

// lookedAt is the number of call paths that are examined for names of functions.
const lookedAt = 100

// hint returns how to get names of functions if no listed call path has any, else "". It is for
// people at a terminal.
func (l *leaks) hint(found *growth.Leaks) string {
	listed, _ := first(found.Rows, lookedAt)
	named := func(r *growth.Leak) bool {
		return slices.ContainsFunc(r.Stack(), func(s profile.Site) bool { return !unnamed(s) })
	}
	if len(l.Exes) > 0 || len(listed) == 0 || slices.ContainsFunc(listed, named) {
		return ""
	}
	return "the call paths have no names of functions: name the ELF file of the program with -e"
}

// unnamed reports whether a call site is an address without a name.
func unnamed(s profile.Site) bool { return strings.HasPrefix(s.Func, "0x") }
