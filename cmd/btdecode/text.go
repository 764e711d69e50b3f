package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
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
	hide        func(fn string) bool
	color       palette
	buf         []byte
	below       []byte // frames to write once the log's line has ended
	rendered    map[symbol.FrameAddr]string
}

func newTextSink(w *bufio.Writer, o *options, stdout io.Writer) *textSink {
	t := &textSink{w: w, passthrough: o.passthrough, file: o.file, hide: hider(o.foldRE),
		rendered: map[symbol.FrameAddr]string{}}
	if o.color == "always" || o.color == "auto" && o.output == "" && isTerminal(stdout) {
		t.color = colors
	}
	return t
}

func (t *textSink) record(rec *dump.Record, fixed symbol.Recovery, places []symbol.FrameAddr) error {
	b := codec.AppendDecoded(t.buf[:0], &rec.Stack)
	if rec.Cut {
		b = fmt.Appendf(b, " [cut: %d of %d frames", len(rec.Stack.PCs), rec.Depth)
		if !rec.Sized {
			b = append(b, ", no size"...)
		}
		b = append(b, ']')
	}
	if fixed.Inferred|fixed.Lost != 0 || rec.Stack.Marks.Lossy != 0 && places == nil {
		b = t.appendMarks(b, rec, fixed)
	}
	if len(places) > 0 {
		t.below = t.appendFrames(t.below, places)
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
func (t *textSink) appendMarks(b []byte, rec *dump.Record, fixed symbol.Recovery) []byte {
	for _, m := range []struct {
		word string
		set  uint32
	}{{"inferred", fixed.Inferred}, {"lost", fixed.Lost}} {
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
func (t *textSink) appendFrames(b []byte, places []symbol.FrameAddr) []byte {
	for i, p := range places {
		text, ok := t.rendered[p]
		if !ok {
			text = t.render(p)
			t.rendered[p] = text
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

// render writes a place's lines, but for the frame's number; nothing if all of
// them are hidden.
func (t *textSink) render(p symbol.FrameAddr) string {
	mark := ' '
	switch p.State {
	case symbol.Inferred:
		mark = '~'
	case symbol.Lost:
		mark = '!'
	}
	var b strings.Builder
	fmt.Fprintf(&b, " %c%#x ", mark, p.PC)
	if len(p.Frames) == 0 {
		b.WriteString(where(p) + "\n")
		return b.String()
	}
	shown := 0
	for _, f := range p.Frames {
		if t.hide(f.Name) {
			continue
		}
		if shown++; shown > 1 {
			b.WriteString("       ")
		}
		b.WriteString(t.color.fn + orUnknown(f.Name) + t.color.off)
		switch {
		case f.File != "":
			b.WriteString(" at " + t.color.file + t.file(f.File))
			if f.Line > 0 {
				fmt.Fprintf(&b, ":%d", f.Line)
			}
			b.WriteString(t.color.off)
		case p.Module != "":
			b.WriteString(" in " + filepath.Base(p.Module))
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

// where is what can be said of an address without symbols.
func where(p symbol.FrameAddr) string {
	switch {
	case p.State == symbol.Lost:
		return "?? (only the low 31 bits are known)"
	case p.Module != "":
		return fmt.Sprintf("?? in %s+%#x", filepath.Base(p.Module), p.ObjAddr)
	}
	return "??"
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

// text passes the log's other text on. Frames stand below the line that their
// record is in.
func (t *textSink) text(p []byte) error {
	if !t.passthrough {
		return nil
	}
	if len(t.below) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			_, err := t.w.Write(p)
			return err
		}
		t.w.Write(p[:end+1])
		t.w.Write(t.below)
		t.below, p = t.below[:0], p[end+1:]
	}
	_, err := t.w.Write(p)
	return err
}

func (t *textSink) close() error {
	if len(t.below) == 0 {
		return nil
	}
	t.w.WriteByte('\n')
	_, err := t.w.Write(t.below)
	return err
}

// palette is the colours of a terminal; the zero one has none.
type palette struct{ fn, file, off string }

var colors = palette{fn: "\x1b[32m", file: "\x1b[36m", off: "\x1b[0m"}

// isTerminal says whether w is a terminal that wants colours.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
