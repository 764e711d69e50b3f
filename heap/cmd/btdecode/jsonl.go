package main

import (
	"bufio"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/symbol"
)

// jsonSink writes an object per record, in the log's order. Addresses are strings, because
// they have up to 64 bits. jsonSink does not use encoding/json, which takes three times as
// long.
//
//	{"file":"a.log","line":2,"offset":8,"size":24,"frames":[{"pc":"0x4011d6","state":"exact",
//	 "module":"app","build_id":"…","own":"0x4011d6","source":[{"function":"f","file":"f.c","line":3}]}]}
type jsonSink struct {
	w      *bufio.Writer
	frames *frames
	file   func(path string) string
	name   string // name of the log whose JSON string is quoted
	quoted []byte
}

func newJSONSink(w *bufio.Writer, o *options, f *frames) *jsonSink {
	j := &jsonSink{w: w, frames: f, file: o.file}
	f.render = j.frame
	return j
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

// appendHex appends 0x and v in hexadecimal. strconv takes twice as long, and addresses are
// most of the output.
func appendHex(b []byte, v uint64) []byte {
	b = append(b, "0x"...)
	for shift := (bits.Len64(v|1) - 1) &^ 3; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[v>>shift&15])
	}
	return b
}

// appendString appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("btdecode: " + err.Error()) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// begin begins an object with the place of a record.
func (j *jsonSink) begin(it *heaplog.Item) []byte {
	if j.quoted == nil || j.name != it.File {
		j.name, j.quoted = it.File, appendString(nil, it.File)
	}
	b := append(j.w.AvailableBuffer(), `{"file":`...)
	b = append(b, j.quoted...)
	b = append(b, `,"line":`...)
	b = strconv.AppendInt(b, it.Line, 10)
	b = append(b, `,"offset":`...)
	return strconv.AppendInt(b, it.Offset, 10)
}

func (j *jsonSink) end(b []byte) { j.w.Write(append(b, "}\n"...)) }

func (j *jsonSink) record(it *heaplog.Item) {
	for i := range it.Allocs {
		a, b := &it.Allocs[i], j.begin(it)
		if it.Kind == recording.KindPaths {
			b = appendCallPathJSON(b, it.PathLine.Dump, a)
		} else {
			b = appendAllocJSON(b, it, a)
		}
		b = j.appendStack(b, a.Stack, a.NoOuter)
		if it.Cut != nil {
			b = strconv.AppendInt(append(b, `,"cut_from":`...), int64(it.Cut.Depth), 10)
			b = appendReason(b, it)
		}
		j.end(b)
	}
	for i := range it.Events {
		e := &it.Events[i]
		j.end(j.appendStack(appendPathEventJSON(j.begin(it), e), e.Stack, e.NoOuter))
	}
}

// appendAllocJSON appends the fields of an allocation, except its stack.
func appendAllocJSON(b []byte, it *heaplog.Item, a *heaplog.Alloc) []byte {
	if it.Kind == recording.KindEvent {
		b = appendEventJSON(b, it.User)
	}
	if it.Cut == nil || it.Cut.Sized {
		b = strconv.AppendUint(append(b, `,"size":`...), a.Bytes, 10)
	}
	if a.SizeLost {
		b = append(b, `,"size_lost":true`...)
	}
	return b
}

// appendStack appends the frames of a stack that are shown.
func (j *jsonSink) appendStack(b []byte, stack []symbol.Addr, noOuter bool) []byte {
	if noOuter {
		b = append(b, `,"outer_missing":true`...)
	}
	looked, first := j.frames.looked(), true
	for _, addr := range stack {
		from := len(b)
		if first {
			b = append(b, `,"frames":[`...)
		} else {
			b = append(b, ',')
		}
		head := len(b)
		if looked {
			b = append(b, j.frames.text(addr)...)
		} else {
			b = append(appendAddr(b, addr), '}')
		}
		if len(b) == head { // hidden
			b = b[:from]
			continue
		}
		first = false
	}
	if !first {
		b = append(b, ']')
	}
	return b
}

// appendReason appends the reason for a cut or unreadable record.
func appendReason(b []byte, it *heaplog.Item) []byte {
	b = appendString(append(b, `,"error":`...), it.Err.Error())
	return appendString(append(b, `,"reason":`...), string(it.Reason()))
}

// appendAddr begins the object of an address.
func appendAddr(b []byte, a symbol.Addr) []byte {
	if offset, ok := heaplog.CodeOffset(a); ok {
		return append(appendHex(append(b, `{"code_offset":"`...), offset), '"')
	}
	b = append(b, `{"pc":"`...)
	b = appendHex(b, a.PC)
	b = append(b, `","state":"`...)
	b = append(b, a.State.String()...)
	return append(b, '"')
}

// appendField appends a string to an object, unless it is empty.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	return appendString(append(b, `":`...), value)
}

// frame is an address that was looked up, with the frames that are shown, as JSON.
func (j *jsonSink) frame(a symbol.Addr, shown []symbol.Frame) string {
	b := appendAddr(nil, a)
	if m := moduleOf(a); m != nil {
		b = appendField(b, "module", m.Name)
		b = appendField(b, "build_id", m.BuildID)
		b = appendField(b, "own", hex(a.Location.Own))
	}
	for i := range shown {
		if i == 0 {
			b = append(b, `,"source":[`...)
		} else {
			b = append(b, ',')
		}
		b = j.appendSource(b, &shown[i])
	}
	if len(shown) > 0 {
		b = append(b, ']')
	}
	return string(append(b, '}'))
}

// appendSource appends a frame.
func (j *jsonSink) appendSource(b []byte, f *symbol.Frame) []byte {
	open := len(b)
	b = appendField(b, "function", f.Name)
	if f.Func != f.Name {
		b = appendField(b, "linkage_name", f.Func)
	}
	b = appendField(b, "file", j.file(f.File))
	if f.Line > 0 {
		b = strconv.AppendInt(append(b, `,"line":`...), int64(f.Line), 10)
	}
	if f.Inlined {
		b = append(b, `,"inlined":true`...)
	}
	if len(b) == open {
		b = append(b, '{')
	} else {
		b[open] = '{' // in place of the first comma
	}
	return append(b, '}')
}

// appendEventJSON appends the fields of an event other than its stack.
func appendEventJSON(b []byte, u *codec.User) []byte {
	b = append(b, `,"event":"`...)
	b = append(b, eventName(u)...)
	b = append(b, '"')
	for i := range eventFields {
		f := &eventFields[i]
		v, ok := u.Get(f.tag)
		if !ok {
			continue
		}
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		if f.hex {
			b = append(appendHex(append(b, '"'), v), '"')
		} else {
			b = strconv.AppendUint(b, v, 10)
		}
	}
	return b
}

// eventName returns the name of an event's kind.
func eventName(u *codec.User) string {
	switch v, _ := u.Get(codec.TagEvent); v {
	case codec.EventAllocated:
		return "allocated"
	case codec.EventFreed:
		return "freed"
	case codec.EventMoved:
		return "moved"
	}
	return "unknown"
}

func (j *jsonSink) unreadable(it *heaplog.Item) {
	b := appendReason(j.begin(it), it)
	j.end(appendString(append(b, `,"text":`...), string(it.Text)))
}

func (j *jsonSink) text([]byte) {}
func (j *jsonSink) close()      {}
