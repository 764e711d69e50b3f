package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// summaryRows is the number of call paths that btheap FILE lists.
const summaryRows = 5

// addSummary makes c write a summary of the logs that are its arguments.
func addSummary(c *cobra.Command) {
	l := &leaks{session: &session{view: profile.View{Basenames: true}}}
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cli.BadArgsf("expected a file or a command, such as btheap leaks")
		case args[0] == cli.Stdio:
			return nil
		}
		if info, err := os.Stat(args[0]); err == nil && !info.IsDir() {
			return nil
		}
		return cli.BadArgsf("%q is neither a command nor a file%s", args[0], cli.Suggest(c, args[0]))
	}
	c.RunE = func(c *cobra.Command, files []string) error {
		if err := l.checkFlags(); err != nil {
			return err
		}
		l.keepNotes = true
		return l.run(c, files, l.writeSummary)
	}
	l.add(c, "Symbols", symbolFlags...)
	l.add(c, "Input", "quiet")
	l.add(c, "Frames", "basenames", "no-fold", "hide")
	l.add(c, "Logs of an unusual form", append(rareInput, "heap-line")...)
	l.add(c, "Symbols that are not found, or are wrong", rareSymbols...)
}

// writeSummary writes what leaks and until when, the largest call paths, what is free, and damage.
func (l *leaks) writeSummary(w io.Writer) error {
	found, err := l.find()
	name := filepath.Base(l.files[0])
	if len(l.files) > 1 {
		name = cli.Count(len(l.files), "log")
	}
	switch {
	case errors.Is(err, heaplog.ErrNoBlock):
		line(w, name+":", l.damage())
		return nil
	case err != nil && len(l.dumps) == 0:
		return err
	}
	if err != nil {
		found = &growth.Leaks{}
		line(w, name+":", cli.Count(len(l.dumps), "dump")+"; 3 or more of a boot, some time apart, show what leaks")
	} else {
		l.writeVerdict(w, name, found)
	}
	if len(l.dumps) > 0 {
		if err := l.writeLargest(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	line(w, "damage:", l.damage())
	fmt.Fprintf(w, "more: %s\n", strings.Join(l.more(found), ", "))
	return nil
}

// writeVerdict writes what leaks, when a heap is exhausted, and what is free.
func (l *leaks) writeVerdict(w io.Writer, name string, found *growth.Leaks) {
	verdict := leaktext.HeapHeadline(found)
	if found.Used > 0 {
		verdict = leaktext.Headline(found) + " in " + leaktext.Examined(found)
	}
	line(w, name+":", verdict)
	if before, after, ok := strings.Cut(leaktext.Exhaustion(found), " at +"); ok {
		line(w, before, "at +"+after)
	}
	for _, text := range leaktext.Heaps(found, 0) {
		fmt.Fprintln(w, fit(text))
	}
	leaks, _ := first(found.Leaking(), 3)
	for _, r := range leaks {
		line(w, fmt.Sprintf("%s  %s", leaktext.Short(&r.Judgement), leaktext.RateOf(found, r)), path(r.Stack(), 50))
		for _, text := range []string{leaktext.Since(found, r), leaktext.Versions(found.Per, found.Span, r.Versions)} {
			if text != "" {
				fmt.Fprintln(w, fit("  "+cli.Printable(text)))
			}
		}
	}
}

// line writes two texts, in two lines if they do not fit into one.
func line(w io.Writer, first, second string) {
	between := " "
	if utf8.RuneCountInString(first)+1+utf8.RuneCountInString(second) > cli.DefaultWidth {
		between = "\n  "
	}
	fmt.Fprintln(w, fit(first)+between+fit(second))
}

// fit breaks a line that is too long at its spaces. The rest is indented more than the line.
func fit(text string) string {
	words := strings.TrimLeft(text, " ")
	before := len(text) - len(words)
	lines := cli.Wrap(words, cli.DefaultWidth-before)
	if len(lines) == 1 {
		return text
	}
	indent := strings.Repeat(" ", max(4, 2+before))
	rest := cli.Wrap(strings.Join(lines[1:], " "), cli.DefaultWidth-len(indent))
	return text[:before] + lines[0] + "\n" + indent + strings.Join(rest, "\n"+indent)
}

// path writes a call path in a line, innermost first, as far as it fits.
func path(sites []profile.Site, width int) string {
	if len(sites) == 0 {
		return "(no frames)"
	}
	s := sites[0].String()
	for _, site := range sites[1:] {
		more := s + " < " + siteName(site)
		if len(more) > width {
			break
		}
		s = more
	}
	return s
}

// writeLargest writes the largest call paths of the last steady dump.
func (l *leaks) writeLargest(w io.Writer) error {
	i, _ := growth.Steady(l.dumps...)
	d := l.dumps[i]
	p, err := l.profile(d)
	if err != nil {
		return err
	}
	total := p.Total(0)
	fmt.Fprintf(w, "\n%s: %s bytes in %s; the largest call paths:\n\n", filepath.Base(d.Name), cli.Number(total.Bytes), cli.Count(total.Count, "block"))
	tb := cli.Table{Head: []string{"Bytes", "%", "Count", "Call path, innermost frame first"}, Right: []bool{true, true, true}, Width: 80}
	rows := p.Top(profile.Bytes, summaryRows)
	for _, row := range rows {
		v := row.Value()
		tb.Rows = append(tb.Rows, []string{cli.Number(v.Bytes), percent(v.Bytes, total.Bytes), cli.Number(v.Count), path(row.Stack(), 50)})
	}
	// An ELF file that is given lacks symbols.
	if err := tb.Write(w); err != nil || len(l.Exes) > 0 || len(rows) == 0 {
		return err
	}
	if site, ok := rows[0].Site(); ok && site.Module == "" && site.Nameless() {
		_, err = fmt.Fprintln(w, "\naddresses without names: -e FILE gives the ELF file")
	}
	return err
}

// damage returns a line on what is lost or wrong.
func (l *leaks) damage() string {
	texts := l.warned
	for _, n := range l.reader.Summary().Notes {
		if n.Kind == heaplog.NoteLoss {
			texts = append(texts, n.Text)
		}
	}
	for i := range texts {
		texts[i] = strings.TrimPrefix(texts[i], l.files[0]+": ")
	}
	switch len(texts) {
	case 0:
		return "none"
	case 1:
		return texts[0]
	}
	return fmt.Sprintf("%s (and %s)", texts[0], cli.Count(len(texts)-1, "more note"))
}

// more returns the commands that tell more.
func (l *leaks) more(found *growth.Leaks) (list []string) {
	if found.Used > 0 || len(found.Heaps) > 0 {
		list = append(list, "btheap leaks")
	}
	if len(l.dumps) > 0 {
		list = append(list, "btheap top", "btheap html")
	}
	if l.reader.Summary().Layout {
		list = append(list, "btheap map")
	}
	return list
}
