package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// live is the state of btheap live.
type live struct {
	leaks
	ask string
}

func liveCommand() *cobra.Command {
	l := &live{leaks: leaks{session: &session{}}}
	c := &cobra.Command{
		Use: "live [flags] [FILE]", Short: "watch the heap of a running device",
		Long: `live shows on a terminal what leaks, while a log grows or a device writes to a
serial port: the leaks first, then what holds the most. If the output is not a
terminal, it writes one line, or with --json one JSON object, for each dump and
for each report of the allocator on what is free. It waits for more at the end
of a file, and looks at the last 240 dumps. Ctrl-C ends it.`,
		Example: "btheap live -e app.elf --serial /dev/ttyUSB0:115200 --ask 'dump now'\nbtheap live -e app.elf device.log\nssh router logread -f | btheap live -e app.elf",
		RunE:    l.watch,
	}
	cli.ExitCodes(c, leakExitCodes)
	f := c.Flags()
	f.StringVar(&l.ask, "ask", "", "the Enter key sends `TEXT` and a line feed to the serial port")
	f.Var(&l.heap, "heap", "`SIZE` of the heap, such as 256K: shows when it is exhausted")
	f.StringVar(&l.fail, "fail-over", "", "show an alarm, and exit with 1, if what surely leaks grows by more than `RATE`: 1K/h, 64/dump")
	cli.AddFlags(c, "Live", f)
	l.add(c, "Live", "serial", "json")
	l.add(c, "Symbols", symbolFlags...)
	l.add(c, "Input", noteFlags...)
	l.add(c, "Frames", compareFrames...)
	l.addRare(c, "heap-line")
	return c
}

// watch checks the flags, and shows the log on a terminal or prints it.
func (l *live) watch(c *cobra.Command, files []string) error {
	l.c, l.files = c, files
	switch {
	case len(files) > 1:
		return cli.BadArgsf("%d files, expected one log", len(files))
	case l.ask != "" && l.Serial == "":
		return cli.BadArgsf("--ask needs --serial: nobody reads what is sent to a log")
	}
	if len(files) == 1 && files[0] != cli.Stdio && l.Serial == "" {
		if info, err := os.Stat(files[0]); err == nil && info.Mode().IsRegular() {
			l.Follow = true
		}
	}
	if err := l.checkFlags(); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	defer l.close()
	if err := l.open(heaplog.Refresh(time.Second)); err != nil {
		return err
	}
	if port := l.Port(); l.ask != "" && port != nil {
		go l.sendLines(c.InOrStdin(), port)
	}
	show := l.print
	out := cli.File(c.OutOrStdout())
	if out != nil && cli.IsTerminal(out) && !l.json && os.Getenv("TERM") != "dumb" {
		show = func(io.Writer) error { return l.draw(out) }
	}
	if err := show(c.OutOrStdout()); err != nil {
		return err
	}
	if err := l.out.End(); err != nil {
		return err
	}
	if err := l.undecided(); err != nil {
		return err
	}
	return l.outcome
}

// read reads the log to its end and calls each with every dump, whether it has ended or not, and every
// report of an allocator.
func (l *live) read(each func(u heaplog.Update) error) error {
	for u, err := range l.reader.Updates() {
		if err != nil {
			err = l.out.Add(err)
		} else if u.Dump != nil && !u.Dump.Ended { // the log is read as far as it goes for now
			err = l.undecided()
		}
		if err == nil && (u.Dump != nil || u.Report != nil) {
			err = each(u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// state is the evaluation of the last dumps and reports.
type state struct {
	recent
	p     *profile.Profile // nil if there is no dump
	found *growth.Leaks
	alarm string // "" if there is none
}

// judge looks for leaks in the last dumps and reports.
func (l *live) judge(r recent) (*state, error) {
	st := &state{recent: r}
	if len(r.dumps) > 0 {
		var err error
		if st.p, err = newView(l.view, r.dumps...); err != nil {
			return nil, err
		}
	}
	st.found = growth.Judge(st.p, growth.Options{Heap: uint64(l.heap), Heaps: r.heaps()})
	excess, unit := l.excess(st.found)
	if st.alarm = excess; unit != "" {
		st.alarm = "none at " + l.limit.text + ": " + unit
	}
	return st, nil
}

// sendLines sends the line of --ask for each line that the user enters.
func (l *live) sendLines(in io.Reader, port io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if _, err := io.WriteString(port, l.ask+"\n"); err != nil {
			l.warn(cli.Message(err))
			return
		}
	}
}

// print writes a line for each dump and report.
func (l *live) print(w io.Writer) error {
	r := recent{keep: lookedBack}
	var last *state
	err := l.read(func(u heaplog.Update) (err error) {
		if !r.add(u) {
			return nil
		}
		if last, err = l.judge(r); err != nil {
			return err
		}
		if l.json {
			return last.writeJSON(w)
		}
		_, err = fmt.Fprintln(w, last.line())
		return err
	})
	if err != nil {
		return err
	}
	if last == nil {
		l.note("no dump yet")
		return nil
	}
	return l.checkLimit(last.found)
}

// line describes the last dump or report.
func (st *state) line() string {
	text := st.report
	if st.last == nil {
		text = st.dump
	}
	s := text()
	if st.alarm != "" {
		s += "; ALARM: " + st.alarm
	}
	return printable.Text(s)
}

// dump describes the last dump.
func (st *state) dump() string {
	d := st.dumps[len(st.dumps)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", when(d), held(d))
	if n := len(st.dumps); n > 1 && st.dumps[n-2].Boot == d.Boot {
		fmt.Fprintf(&b, " (%s)", signed(subtract(d.Total.Bytes, st.dumps[n-2].Total.Bytes)))
	}
	if !d.Complete() {
		fmt.Fprintf(&b, ", %s", d.Incomplete())
	}
	fmt.Fprintf(&b, "; %s", st.finding())
	if leaks := st.found.Leaking(); len(leaks) > 0 {
		r := leaks[0]
		fmt.Fprintf(&b, ", %s", leaktext.RateOf(st.found, r))
		if stack := r.Stack(); len(stack) > 0 {
			fmt.Fprintf(&b, ", %s", siteName(stack[0]))
		}
	}
	if x := st.found.Exhaustion; x != nil {
		fmt.Fprintf(&b, "; exhausted in %s", leaktext.Left(st.found.Exhaustion))
	}
	return b.String()
}

// when returns the name and the time of a dump.
func when(d *profile.Dump) string {
	s := fmt.Sprintf("dump %d", d.Index+1)
	if d.Boot > 1 {
		s += fmt.Sprintf(", boot %d", d.Boot)
	}
	if d.Timed {
		s += ", " + printable.Duration(d.Time.Hours())
	}
	return s
}

// held describes the live memory of a dump.
func held(d *profile.Dump) string {
	return fmt.Sprintf("%s bytes in %s", cli.Number(d.Total.Bytes), cli.Count(d.Total.Count, "block"))
}

// finding returns a phrase with the number of leaks.
func (st *state) finding() string {
	if st.found.Used == 0 {
		s := cli.Count(len(st.dumps), "dump") + ", expected three or more whole ones"
		if len(st.found.Heaps) > 0 {
			s += "; " + leaktext.HeapHeadline(st.found)
		}
		return s
	}
	return leaktext.Headline(st.found)
}
