package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/logflags"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// sink is an output format. It writes to a bufio.Writer, which keeps the first error.
type sink interface {
	// record takes a record that could be read, at least in part.
	record(it *heaplog.Item)
	// unreadable takes a record that could not be read.
	unreadable(it *heaplog.Item)
	// text takes the text between records.
	text(p []byte)
	// close writes the remaining output.
	close()
}

// decode is one run of the command.
func decode(c *cobra.Command, o *options) error {
	ctx, stop := cli.Interruptible(context.Background())
	defer stop()
	if o.output == "" {
		if err := cli.CheckStdout(c.OutOrStdout(), o.Inputs(o.args)); err != nil {
			return err
		}
	}
	note := o.Notes(c.ErrOrStderr(), "btdecode")
	if note != nil && o.WaitsForTerminal(o.args, c.InOrStdin()) {
		note("reading standard input")
	}
	r, err := o.Open(ctx, o.args, c.InOrStdin())
	if err != nil {
		return err
	}
	defer r.Close()
	out := logflags.Outcome{Flags: &o.Flags, Reader: r, Note: note}
	err = cli.WriteOutput(o.output, o.Inputs(o.args), c.OutOrStdout(), func(w io.Writer) error {
		if err := o.write(w, r, &out, c.OutOrStdout()); err != nil {
			return err
		}
		return out.Nothing()
	})
	if err != nil && out.Nothing() == nil {
		return err
	}
	return out.End()
}

// write writes record by record.
func (o *options) write(out io.Writer, r *heaplog.Reader, outcome *logflags.Outcome, stdout io.Writer) error {
	w := bufio.NewWriterSize(out, 64<<10)
	frames := newFrames(o, r)
	s := o.newSink(w, r, frames, stdout)
	panics := panicFinder{own: o.panicLine}
	for it, err := range r.Items() {
		switch {
		case err != nil:
			err = outcome.Add(err)
		case it.Kind == recording.KindIdle:
			err = w.Flush()
		case it.Kind == recording.KindText, it.Kind == recording.KindHeader:
			s.text(it.Text)
			panics.text(it.Text)
		case it.Kind == recording.KindUnreadable:
			s.unreadable(it)
		default:
			s.record(it)
		}
		if err == nil {
			_, err = w.Write(nil) // the error of an earlier write
		}
		if err != nil {
			return err
		}
	}
	s.close()
	if t, ok := s.(*textSink); ok && t.panics > 0 {
		outcome.Decoded = true
	}
	outcome.Hint = panics.hint(o.passthrough, o.Named())
	return w.Flush()
}

// newSink returns the sink of --format.
func (o *options) newSink(w *bufio.Writer, r *heaplog.Reader, frames *frames, stdout io.Writer) sink {
	if o.format == "jsonl" {
		return newJSONSink(w, o, frames)
	}
	t := newTextSink(w, o, frames, stdout)
	if o.passthrough && o.Named() {
		t.locate = r.Locate
	}
	return t
}

// cutNote describes the missing part of a cut record.
func cutNote(it *heaplog.Item) string {
	note := fmt.Sprintf(" [cut: %d of %d frames", len(it.Stack.PCs), it.Cut.Depth)
	if !it.Cut.Sized {
		note += ", no size"
	}
	return note + "]"
}

func moduleOf(a symbol.Addr) *symbol.Module {
	if a.Location == nil {
		return nil
	}
	return a.Location.Module
}
