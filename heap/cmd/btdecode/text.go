package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// textSink writes ~b# lines and, where there are symbols, frames below them.
//
// A ~b# line is as lws writes it, so that lws's own pipeline, cut -d, -f2- and addr2line, reads it:
// what is not certain about a record is in brackets on the line below; with --passthrough, behind
// the record, where a reader of ~b# lines stops (BT-TEXT-3).
type textSink struct {
	w           *bufio.Writer
	passthrough bool
	file        func(path string) string
	frames      *frames
	color       palette
	stack       codec.Stack
	below       []byte // frames to write after the end of the log's line

	locate    func(pc uint64) symbol.Addr // names the addresses of panics, or nil
	panicLine *regexp.Regexp              // of --panic-line, or nil
	panics    int                         // lines with addresses that have names
	line      []byte                      // unfinished line of text
	pcs       []uint64
}

func newTextSink(w *bufio.Writer, o *options, f *frames, stdout io.Writer) *textSink {
	t := &textSink{w: w, panicLine: o.panicLine, passthrough: o.passthrough, file: o.file, frames: f}
	f.render = t.render
	if o.color == "always" || o.output == "" && cli.Color(o.color, stdout) {
		t.color = newPalette()
	}
	return t
}

func (t *textSink) record(it *heaplog.Item) {
	for i := range it.Allocs {
		a, b, states := &it.Allocs[i], t.w.AvailableBuffer(), [3]uint32{}
		if it.Kind == recording.KindPaths {
			b = appendCallPath(b, a)
		} else {
			b, states = t.appendAlloc(b, it, a)
			if t.passthrough { // the log keeps its lines
				b = appendMarks(b, it, a, states)
			} else if it.Cut != nil || a.SizeLost || states[symbol.Inferred]|states[symbol.Lost] != 0 {
				t.below = append(appendMarks(append(t.below, "  "...), it, a, states), '\n')
			}
		}
		t.end(b, a.Stack, i == len(it.Allocs)-1)
	}
	for i := range it.Events {
		e := &it.Events[i]
		t.end(appendPathEvent(t.w.AvailableBuffer(), e), e.Stack, i == len(it.Events)-1)
	}
}

// end writes a line of output and the frames of its stack. For the last line of an item with
// --passthrough, it keeps the frames in t.below until the log's line ends.
func (t *textSink) end(b []byte, stack []symbol.Addr, last bool) {
	if t.frames.looked() {
		t.below = t.appendFrames(t.below, stack)
	}
	if !t.passthrough || !last {
		b = append(append(b, '\n'), t.below...)
		t.below = t.below[:0]
	}
	t.w.Write(b)
}

// appendAlloc appends a ~b# line. It returns for each state the set of frame numbers.
func (t *textSink) appendAlloc(b []byte, it *heaplog.Item, a *heaplog.Alloc) (line []byte, states [3]uint32) {
	s := it.Stack
	if s == nil || s.Marks.Lossy != 0 {
		s = &t.stack
		s.Size, s.PCs = a.Bytes, s.PCs[:0]
		for i, addr := range a.Stack {
			s.PCs = append(s.PCs, addr.PC)
			states[addr.State] |= 1 << i
		}
	}
	b = codec.AppendDecoded(b, s)
	if it.Kind == recording.KindEvent {
		b = appendEvent(b, it.User)
	}
	return b, states
}

// appendMarks appends what is missing or not certain.
func appendMarks(b []byte, it *heaplog.Item, a *heaplog.Alloc, states [3]uint32) []byte {
	if it.Cut != nil {
		b = append(b, cutNote(it)...)
	}
	for _, s := range []symbol.State{symbol.Inferred, symbol.Lost} {
		if states[s] != 0 {
			b = append(append(append(b, " ["...), s.String()...), ": "...)
			b = append(appendSet(b, states[s]), ']')
		}
	}
	if a.SizeLost {
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

// appendFrames writes one line per frame. The frames of an address are adjacent.
func (t *textSink) appendFrames(b []byte, addrs []symbol.Addr) []byte {
	for i, a := range addrs {
		text := t.frames.text(a)
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

// render writes the lines of an address with its visible frames, without the frame's
// number.
func (t *textSink) render(a symbol.Addr, shown []symbol.Frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %c%#x ", " ~!"[a.State], a.PC)
	if len(shown) == 0 {
		b.WriteString(where(a) + "\n")
	}
	for i := range shown {
		f := &shown[i]
		if i > 0 {
			b.WriteString("       ")
		}
		b.WriteString(painted(t.color.fn, orUnknown(f.Name)))
		if f.File != "" {
			at := t.file(f.File)
			if f.Line > 0 {
				at = fmt.Sprintf("%s:%d", at, f.Line)
			}
			b.WriteString(" at " + painted(t.color.file, at))
		} else if m := moduleOf(a); m != nil {
			b.WriteString(" in " + filepath.Base(m.Name))
		}
		if f.Inlined {
			b.WriteString(" (inlined)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// where describes an address without symbols, and gives the reason.
func where(a symbol.Addr) string {
	s, m := "??", moduleOf(a)
	if m != nil {
		s = fmt.Sprintf("?? in %s+%#x", filepath.Base(m.Name), a.Location.Own)
	}
	if why := a.Missing(); why != "" && (m == nil || m.File != nil) { // notes report missing files
		s += " (" + why + ")"
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "??"
	}
	return s
}

// unreadable copies the record and appends the reason.
func (t *textSink) unreadable(it *heaplog.Item) {
	t.w.Write(it.Text)
	fmt.Fprintf(t.w, " [unreadable: %v]", it.Err)
	if !t.passthrough {
		t.w.WriteByte('\n')
	}
}

// text copies other text of the log immediately. Frames follow the line with their record or
// with the address of a panic.
func (t *textSink) text(p []byte) {
	if !t.passthrough {
		return
	}
	for len(p) > 0 && (len(t.below) > 0 || t.locate != nil) {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			if t.locate != nil && len(t.line) <= maxPanic {
				t.line = append(t.line, p[:min(len(p), maxPanic+1)]...)
			}
			break
		}
		line := p[:end+1]
		t.w.Write(line)
		if t.locate != nil {
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
	t.w.Write(p)
}

func (t *textSink) close() {
	if len(t.line) > 0 {
		t.below = t.appendPanic(t.below, t.line)
	}
	if len(t.below) > 0 {
		t.w.WriteByte('\n')
		t.w.Write(t.below)
	}
}

// appendEvent appends the kind of an event, in brackets after the record.
func appendEvent(b []byte, u *codec.User) []byte {
	b = append(append(b, " ["...), eventName(u)...)
	for i := range eventFields {
		f := &eventFields[i]
		v, ok := u.Get(f.tag)
		switch {
		case !ok || f.text == "":
		case f.hex:
			b = appendHex(append(b, f.text...), v)
		default:
			b = strconv.AppendUint(append(b, f.text...), v, 10)
		}
	}
	return append(b, ']')
}

// eventFields are the user fields of events in the output: the text before the value, "" if text
// does not have it, and the name in JSON.
var eventFields = []struct {
	tag        codec.Tag
	text, name string
	hex        bool
}{
	{codec.TagAddress, " ", "address", true},
	{codec.TagOldAddress, " from ", "old_address", true},
	{codec.TagTime, " t=", "time", false},
	{codec.TagThread, " thread=", "thread", false},
	{codec.TagSequence, "", "sequence", false},
}

// palette holds the colours of a terminal; the zero palette has none.
type palette struct{ fn, file func(string) string }

func newPalette() palette {
	paint := func(c *color.Color) func(string) string {
		c.EnableColor()
		return func(s string) string { return c.Sprint(s) }
	}
	return palette{fn: paint(color.New(color.FgGreen)), file: paint(color.New(color.FgCyan))}
}

// painted returns s in a colour, or s itself if the colour is empty.
func painted(paint func(string) string, s string) string {
	if paint == nil {
		return s
	}
	return paint(s)
}
