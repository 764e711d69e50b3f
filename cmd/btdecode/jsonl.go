package main

import (
	"bufio"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// jsonSink writes an object per record, in the log's order. Addresses are strings,
// for they have up to 64 bits. The objects are written by hand: encoding/json takes
// three times as long.
//
//	{"file":"a.log","line":2,"offset":8,"size":24,"frames":[{"pc":"0x4011d6","state":"exact",
//	 "module":"app","build_id":"…","own":"0x4011d6","source":[{"function":"f","file":"f.c","line":3}]}]}
type jsonSink struct {
	w      *bufio.Writer
	filter *filter
	file   func(path string) string
	buf    []byte
	frames map[symbol.FrameAddr]string // "" if all of it is hidden
	name   string                      // the log, as JSON has it, in quoted
	quoted []byte
}

// maxRendered is how many addresses are remembered with their text.
const maxRendered = 1 << 16

func newJSONSink(w *bufio.Writer, o *options) *jsonSink {
	return &jsonSink{w: w, filter: &o.filter, file: o.file, frames: map[symbol.FrameAddr]string{}}
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

func appendHex(b []byte, v uint64) []byte { return strconv.AppendUint(append(b, "0x"...), v, 16) }

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
func (j *jsonSink) begin(rec *dump.Record) []byte {
	if j.quoted == nil || j.name != rec.File {
		j.name, j.quoted = rec.File, appendString(nil, rec.File)
	}
	b := append(j.buf[:0], `{"file":`...)
	b = append(b, j.quoted...)
	b = append(b, `,"line":`...)
	b = strconv.AppendInt(b, rec.Line, 10)
	b = append(b, `,"offset":`...)
	return strconv.AppendInt(b, rec.Offset, 10)
}

func (j *jsonSink) end(b []byte) error {
	b = append(b, "}\n"...)
	j.buf = b
	_, err := j.w.Write(b)
	return err
}

func (j *jsonSink) record(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
	b := j.begin(rec)
	if rec.Kind == dump.Event {
		b = appendEventJSON(b, &rec.User)
	}
	if !rec.Cut || rec.Sized {
		b = strconv.AppendUint(append(b, `,"size":`...), rec.Stack.Size, 10)
	}
	if rec.Stack.Marks.LossySize {
		b = append(b, `,"size_lost":true`...)
	}
	first := true
	for i, pc := range rec.Stack.PCs {
		from := len(b)
		if first {
			b = append(b, `,"frames":[`...)
		} else {
			b = append(b, ',')
		}
		head := len(b)
		if addrs == nil {
			b = append(b, `{"pc":"`...)
			b = appendHex(b, pc)
			b = append(b, `","state":"`...)
			b = append(b, recovery.State(i).String()...)
			b = append(b, `"}`...)
		} else {
			b = append(b, j.frame(addrs[i])...)
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
	if rec.Cut {
		b = strconv.AppendInt(append(b, `,"cut_from":`...), int64(rec.Depth), 10)
		b = appendString(append(b, `,"error":`...), rec.Err.Error())
		b = appendString(append(b, `,"reason":`...), string(rec.Reason()))
	}
	return j.end(b)
}

// frame is an address that was looked up, as JSON; "" if all of it is hidden.
func (j *jsonSink) frame(a symbol.FrameAddr) string {
	if s, ok := j.frames[a]; ok {
		return s
	}
	if len(j.frames) >= maxRendered {
		clear(j.frames)
	}
	s := string(j.appendFrame(nil, &a))
	j.frames[a] = s
	return s
}

func (j *jsonSink) appendFrame(b []byte, a *symbol.FrameAddr) []byte {
	b = append(b, `{"pc":"`...)
	b = appendHex(b, a.PC)
	b = append(b, `","state":"`...)
	b = append(b, a.State.String()...)
	b = append(b, '"')
	field := func(name, value string) {
		if value != "" {
			b = append(b, `,"`...)
			b = append(b, name...)
			b = appendString(append(b, `":`...), value)
		}
	}
	field("module", a.Module)
	field("build_id", a.BuildID)
	if a.Module != "" {
		field("own", hex(a.ObjAddr))
	}
	if len(a.Frames) == 0 {
		if j.filter.Any() && j.filter.hidden(&symbol.Frame{Name: hex(a.PC)}, a.Module) {
			return nil
		}
		return append(b, '}')
	}
	shown := 0
	for i := range a.Frames {
		f := &a.Frames[i]
		if j.filter.hidden(f, a.Module) {
			continue
		}
		if shown++; shown == 1 {
			b = append(b, `,"source":[`...)
		} else {
			b = append(b, ',')
		}
		open := len(b)
		field("function", f.Name)
		if f.Func != f.Name {
			field("linkage_name", f.Func)
		}
		field("file", j.file(f.File))
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
		b = append(b, '}')
	}
	if shown == 0 {
		return nil
	}
	return append(b, "]}"...)
}

// appendEventJSON appends what an event says beside its stack.
func appendEventJSON(b []byte, u *codec.User) []byte {
	b = append(b, `,"event":"`...)
	b = append(b, eventName(u)...)
	b = append(b, '"')
	for _, f := range []struct {
		tag  codec.Tag
		name string
		hex  bool
	}{{codec.TagAddress, "address", true}, {codec.TagOldAddress, "old_address", true}, {codec.TagTime, "time", false},
		{codec.TagThread, "thread", false}, {codec.TagSequence, "sequence", false}} {
		v, ok := u.Get(f.tag)
		if !ok {
			continue
		}
		b = append(b, `,"`...)
		b = append(b, f.name...)
		b = append(b, `":`...)
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

func (j *jsonSink) unreadable(rec *dump.Record) error {
	b := j.begin(rec)
	b = appendString(append(b, `,"error":`...), rec.Err.Error())
	b = appendString(append(b, `,"reason":`...), string(rec.Reason()))
	b = appendString(append(b, `,"text":`...), string(rec.Text))
	return j.end(b)
}

func (j *jsonSink) close() error { return nil }
