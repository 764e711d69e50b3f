package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// textSink writes ~b# lines and, where there are symbols, frames below them.
//
// What follows an address list in brackets is not part of the record: a reader
// of ~b# lines stops before it. (BT-TEXT-3)
type textSink struct {
	w           *bufio.Writer
	passthrough bool
	file        func(path string) string
	filter      *filter
	color       palette
	buf         []byte
	below       []byte // frames to write once the log's line has ended
	rendered    map[symbol.FrameAddr]string

	process *symbol.Process // names the addresses of panics; nil: they stay as they are
	line    []byte          // of text, not ended yet
	pcs     []uint64
}

func newTextSink(w *bufio.Writer, o *options, stdout io.Writer) *textSink {
	t := &textSink{w: w, passthrough: o.passthrough, file: o.file, filter: &o.filter, rendered: map[symbol.FrameAddr]string{}}
	if o.color == "always" || o.output == "" && cli.Color(o.color, stdout) {
		t.color = newPalette()
	}
	return t
}

func (t *textSink) record(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
	b := codec.AppendDecoded(t.buf[:0], &rec.Stack)
	if rec.Kind == dump.Event {
		b = appendEvent(b, &rec.User)
	}
	if rec.Cut {
		b = fmt.Appendf(b, " [cut: %d of %d frames", len(rec.Stack.PCs), rec.Depth)
		if !rec.Sized {
			b = append(b, ", no size"...)
		}
		b = append(b, ']')
	}
	if recovery.Inferred|recovery.Lost != 0 {
		b = t.appendMarks(b, rec, recovery)
	}
	if len(addrs) > 0 {
		t.below = t.appendFrames(t.below, addrs)
	}
	if !t.passthrough {
		b = append(b, '\n')
		b = append(b, t.below...)
		t.below = t.below[:0]
	}
	t.buf = b
	_, err := t.w.Write(b)
	return err
}

// appendMarks says which frames are not what the record said, or only in part.
func (t *textSink) appendMarks(b []byte, rec *dump.Record, recovery symbol.Recovery) []byte {
	for _, m := range []struct {
		word string
		set  uint32
	}{{"inferred", recovery.Inferred}, {"lost", recovery.Lost}} {
		if m.set != 0 {
			b = append(b, " ["...)
			b = append(b, m.word...)
			b = append(b, ": "...)
			b = appendSet(b, m.set)
			b = append(b, ']')
		}
	}
	if rec.Stack.Marks.LossySize {
		b = append(b, " [lost: size]"...)
	}
	return b
}

// appendSet writes frame numbers as "0-4,7".
func appendSet(b []byte, set uint32) []byte {
	for first := true; set != 0; first = false {
		from := bits.TrailingZeros32(set)
		to := from + bits.TrailingZeros32(^(set >> from)) - 1
		if !first {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(from), 10)
		if to > from {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(to), 10)
		}
		set = uint32(uint64(set) >> (to + 1) << (to + 1))
	}
	return b
}

// appendFrames writes a line a frame, those inlined into one place together.
func (t *textSink) appendFrames(b []byte, addrs []symbol.FrameAddr) []byte {
	for i, a := range addrs {
		text, ok := t.rendered[a]
		if !ok {
			if len(t.rendered) >= maxRendered {
				clear(t.rendered)
			}
			text = t.render(&a)
			t.rendered[a] = text
		}
		if text == "" {
			continue
		}
		if b = append(b, "  "...); i < 10 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, text...)
	}
	return b
}

// render writes the lines of an address, but for the frame's number; nothing if all
// of them are hidden.
func (t *textSink) render(a *symbol.FrameAddr) string {
	mark := ' '
	switch a.State {
	case symbol.Inferred:
		mark = '~'
	case symbol.Lost:
		mark = '!'
	}
	var b strings.Builder
	fmt.Fprintf(&b, " %c%#x ", mark, a.PC)
	if len(a.Frames) == 0 {
		if t.filter.Any() && t.filter.hidden(&symbol.Frame{Name: hex(a.PC)}, a.Module) {
			return ""
		}
		b.WriteString(where(a) + "\n")
		return b.String()
	}
	shown := 0
	for i := range a.Frames {
		f := &a.Frames[i]
		if t.filter.hidden(f, a.Module) {
			continue
		}
		if shown++; shown > 1 {
			b.WriteString("       ")
		}
		b.WriteString(painted(t.color.fn, orUnknown(f.Name)))
		switch {
		case f.File != "":
			at := t.file(f.File)
			if f.Line > 0 {
				at = fmt.Sprintf("%s:%d", at, f.Line)
			}
			b.WriteString(" at " + painted(t.color.file, at))
		case a.Module != "":
			b.WriteString(" in " + filepath.Base(a.Module))
		}
		if f.Inlined {
			b.WriteString(" (inlined)")
		}
		b.WriteByte('\n')
	}
	if shown == 0 {
		return ""
	}
	return b.String()
}

// where describes an address without symbols, and why there are none.
func where(a *symbol.FrameAddr) string {
	s := "??"
	if a.Module != "" {
		s = fmt.Sprintf("?? in %s+%#x", filepath.Base(a.Module), a.ObjAddr)
	}
	if a.Reason != "" && (a.Module == "" || a.File != nil) { // a missing file is a note, once
		s += " (" + a.Reason + ")"
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "??"
	}
	return s
}

// unreadable leaves the record as it is, with the reason beside it.
func (t *textSink) unreadable(rec *dump.Record) error {
	t.w.Write(rec.Text)
	_, err := fmt.Fprintf(t.w, " [unreadable: %v]", rec.Err)
	if !t.passthrough {
		err = t.w.WriteByte('\n')
	}
	return err
}

// text passes the log's other text on, at once. Frames stand below the line that
// their record is in, or the address of a panic.
func (t *textSink) text(p []byte) error {
	if !t.passthrough {
		return nil
	}
	for len(p) > 0 && (len(t.below) > 0 || t.process != nil) {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			if t.process != nil && len(t.line) <= maxPanic {
				t.line = append(t.line, p[:min(len(p), maxPanic+1)]...)
			}
			break
		}
		line := p[:end+1]
		t.w.Write(line)
		if t.process != nil {
			if len(t.line) > 0 {
				t.line = append(t.line, line[:min(len(line), maxPanic+1)]...)
				line = t.line
			}
			t.below = t.appendPanic(t.below, line)
			t.line = t.line[:0]
		}
		t.w.Write(t.below)
		t.below, p = t.below[:0], p[end+1:]
	}
	_, err := t.w.Write(p)
	return err
}

func (t *textSink) close() error {
	if len(t.line) > 0 {
		t.below = t.appendPanic(t.below, t.line)
	}
	if len(t.below) == 0 {
		return nil
	}
	t.w.WriteByte('\n')
	_, err := t.w.Write(t.below)
	return err
}

// appendEvent appends the kind of an event, in brackets after the record.
func appendEvent(b []byte, u *codec.User) []byte {
	b = append(append(b, " ["...), eventName(u)...)
	for _, f := range []struct {
		tag    codec.Tag
		before string
		hex    bool
	}{{codec.TagAddress, " ", true}, {codec.TagOldAddress, " from ", true}, {codec.TagTime, " t=", false}, {codec.TagThread, " thread=", false}} {
		if v, ok := u.Get(f.tag); ok && f.hex {
			b = appendHex(append(b, f.before...), v)
		} else if ok {
			b = strconv.AppendUint(append(b, f.before...), v, 10)
		}
	}
	return append(b, ']')
}

// palette is the colours of a terminal; the zero one has none.
type palette struct{ fn, file func(string) string }

func newPalette() palette {
	paint := func(c *color.Color) func(string) string {
		c.EnableColor()
		return func(s string) string { return c.Sprint(s) }
	}
	return palette{fn: paint(color.New(color.FgGreen)), file: paint(color.New(color.FgCyan))}
}

// painted is s in a colour, if there is one.
func painted(paint func(string) string, s string) string {
	if paint == nil {
		return s
	}
	return paint(s)
}
