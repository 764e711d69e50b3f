package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/logs"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/internal/table"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// sink is what an output format is made of.
type sink interface {
	// record is given each record that could be read, at least in part. Addrs are
	// nil where nothing is looked up.
	record(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error
	// unreadable is given the others.
	unreadable(rec *dump.Record) error
	// close writes what is left.
	close() error
}

// textWriter is a sink that wants the text between records.
type textWriter interface{ text(p []byte) error }

// decode is one run of the command.
func decode(c *cobra.Command, o *options) error {
	ctx, stop := cli.Interruptible(context.Background())
	defer stop()
	note := func(format string, args ...any) {
		fmt.Fprintf(c.ErrOrStderr(), "btdecode: %s\n", printable.Text(fmt.Sprintf(format, args...)))
	}
	if o.passthrough {
		o.DropOnly()
	}
	if o.format == "pprof" && o.output == "" && cli.IsTerminal(c.OutOrStdout()) {
		return cli.BadArgsf("--format pprof is binary: give -o FILE, or a pipe")
	}
	if !o.Quiet && c.Flags().Changed("fold") {
		note("--fold is now --hide; the old name goes with the next release")
	}
	if o.output == "" && !o.addsUp() {
		if err := cli.CheckStdout(c.OutOrStdout(), o.Inputs(o.args)); err != nil {
			return err
		}
	}
	if o.Live() && o.Flags.Dump != "" && !o.addsUp() {
		return cli.BadArgsf("--dump prints records when the log has ended: with --follow or --serial it needs --top or a --format that adds up")
	}
	r, err := logs.Open(ctx, &o.Flags, o.args, c.InOrStdin(), note)
	if err != nil {
		return err
	}
	defer r.Close()
	var outcome error
	err = cli.WriteOutput(o.output, o.Inputs(o.args), c.OutOrStdout(), func(w io.Writer) error {
		if o.addsUp() {
			outcome, err = o.report(r, w, c.OutOrStdout())
		} else {
			outcome, err = o.stream(r, w, c.OutOrStdout())
		}
		if err == nil && outcome != nil && cli.Code(outcome) != cli.Short {
			return outcome // nothing to write
		}
		return err
	})
	if err != nil {
		return err
	}
	return outcome
}

// stream writes record by record.
func (o *options) stream(r *logs.Reader, out, stdout io.Writer) (outcome, err error) {
	if o.Flags.Dump != "" {
		if err := r.Select(); err != nil {
			return nil, err
		}
	}
	w := bufio.NewWriterSize(out, 64<<10)
	s := o.newSink(w, r, stdout)
	h := logs.Handler{Flush: w.Flush, Unreadable: s.unreadable}
	if !o.filter.Any() && !(o.passthrough && o.Named()) { // these keep state from line to line
		h.Fork = func(int) logs.Fork { return o.fork(w, r, stdout) }
	}
	h.Record = func(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
		if !o.filter.keeps(addrs) {
			return nil
		}
		return s.record(rec, recovery, addrs)
	}
	h.Event = h.Record
	if t, ok := s.(textWriter); ok {
		h.Text = t.text
		h.Header = func(rec *dump.Record) error { return t.text(rec.Text) }
	}
	if err = r.Each(h); err == nil && r.Found() > 0 {
		err = s.close()
	}
	if e := w.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	r.Notes()
	o.noteFilter(r, o.filter.matched)
	return r.Outcome(), nil
}

// fork returns what writes parts of a log as stream does, to w in the end.
func (o *options) fork(w io.Writer, r *logs.Reader, stdout io.Writer) logs.Fork {
	var text bytes.Buffer
	b := bufio.NewWriterSize(&text, 4<<10)
	s := o.newSink(b, r, stdout)
	f := logs.Fork{Record: s.record, Unreadable: s.unreadable, Events: true}
	if t, ok := s.(textWriter); ok {
		f.Text = t.text
	}
	f.Begin = func() {
		b.Reset(&text)
		text.Reset()
		if t, ok := s.(*textSink); ok {
			t.below = t.below[:0] // of a chunk that was abandoned inside a line
		}
	}
	f.Emit = func() error {
		b.Flush()
		_, err := w.Write(text.Bytes())
		return err
	}
	return f
}

// newSink returns the sink of --format.
func (o *options) newSink(w *bufio.Writer, r *logs.Reader, stdout io.Writer) sink {
	switch {
	case o.format == "addr2line":
		return &addr2lineSink{w: w, options: o}
	case o.format == "jsonl":
		return newJSONSink(w, o)
	case o.encode:
		m, _ := o.CodecMachine()
		return &encodeSink{w: w, passthrough: o.passthrough, machine: m, search: o.search}
	}
	t := newTextSink(w, o, stdout)
	if o.passthrough && o.Named() {
		t.process = &r.Process
	}
	return t
}

// noteFilter reports the expressions that matched nothing, if there are records.
func (o *options) noteFilter(r *logs.Reader, m logs.Matched) {
	if r.Found() > 0 {
		o.filter.Note(m, r.Note)
	}
}

// report adds everything up and writes it.
func (o *options) report(r *logs.Reader, out, stdout io.Writer) (outcome, err error) {
	p, err := r.Profile(o.maxPaths, nil)
	if err != nil {
		return nil, err
	}
	outcome = r.Outcome()
	r.Notes()
	if len(p.Dumps) == 0 || outcome != nil && cli.Code(outcome) != cli.Short {
		if outcome == nil {
			outcome = errors.New("no dump")
		}
		return outcome, nil
	}
	from, to, err := o.Selected().Of(len(p.Dumps))
	if err != nil {
		return nil, err
	}
	if len(p.Dumps) > 1 && o.Flags.Dump == "" {
		r.Note("%d dumps, of which this is the last; --dump N, A..B or all selects others, btheap growth compares them", len(p.Dumps))
	}
	d := p.Dumps[from]
	if to-from > 1 {
		d = p.Sum(p.Dumps[from:to])
	}
	r.NoteDumps(p, p.Dumps[from:to])
	v := &profile.View{Hide: o.filter.Hide, Show: o.filter.Show, Ignore: o.filter.Ignore, Focus: o.filter.Focus,
		Basenames: o.basenames, FullNames: o.fullNames}
	n := v.Names(p)
	if o.top > 0 {
		err = writeTop(out, stdout, n.Top(d, profile.TopOptions{N: o.top}), o.output != "")
	} else {
		weight := profile.Bytes
		if o.weight == "count" {
			weight = profile.Count
		}
		var notes []string
		notes, err = n.Export(out, o.format, d, profile.ExportOptions{Weight: weight, Program: "btdecode"})
		for _, text := range notes {
			r.Note("%s", text)
		}
	}
	if err != nil {
		return nil, err
	}
	o.noteFilter(r, logs.Matched(n.Matched))
	return outcome, nil
}

// writeTop prints the call sites that hold the most.
func writeTop(w, stdout io.Writer, t *profile.TopReport, toFile bool) error {
	fmt.Fprintf(w, "%s bytes in %s, %s, %s\n\n", cli.Number(t.Total.Bytes), cli.Count(t.Total.Count, "allocation"),
		cli.Count(t.Stacks, "call path"), cli.Count(t.Sites, "call site"))
	tb := table.Table{Head: []string{"Flat bytes", "%", "Count", "Cum bytes", "%", "Count", "Call site"},
		Right: []bool{true, true, true, true, true, true}}
	if !toFile && cli.IsTerminal(stdout) {
		tb.Width = cli.Width(stdout)
	}
	for _, a := range t.Rows {
		tb.Rows = append(tb.Rows, []string{
			cli.Number(a.Flat.Bytes), percent(a.Flat.Bytes, t.Total.Bytes), cli.Number(a.Flat.Count),
			cli.Number(a.Cum.Bytes), percent(a.Cum.Bytes, t.Total.Bytes), cli.Number(a.Cum.Count), a.Site.String()})
	}
	return tb.Write(w)
}

func percent(part, all uint64) string { return fmt.Sprintf("%.1f", profile.Share(part, all)) }
