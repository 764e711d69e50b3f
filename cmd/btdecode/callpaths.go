package main

import (
	"fmt"
	"strconv"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// callPaths writes a line for each call path of a ~p# line:
//
//	call path e4ca1178: 512 bytes in 1 block, 0x8010222 0x8005b62 0x8001a3c 0x8000284
func (t *textSink) callPaths(it *heaplog.Item) error {
	b := t.buf[:0]
	for i := range it.Allocs {
		a := &it.Allocs[i]
		b = fmt.Appendf(b, "call path %08x: ", a.Name)
		if a.Definition {
			b = append(b, "named"...)
		} else {
			b = fmt.Appendf(b, "%s in %s", printable.Count(a.Bytes, "byte"), printable.Count(a.Count, "block"))
		}
		if !a.Ever.IsZero() {
			b = fmt.Appendf(b, ", ever %s in %s", printable.Count(a.Ever.Bytes, "byte"), printable.Count(a.Ever.Count, "block"))
		}
		if a.Peak > 0 {
			b = fmt.Appendf(b, ", peak %s", printable.Count(a.Peak, "byte"))
		}
		b = appendPCs(append(b, ','), a.Stack, a.NoOuter)
		for i, x := range a.Blocks {
			between := " [at "
			if i > 0 {
				between = ", "
			}
			b = fmt.Appendf(append(b, between...), "%#x+%d", x.Address, x.Size)
		}
		if len(a.Blocks) > 0 {
			b = append(b, ']')
		}
		b = t.appendBelow(b, a.Stack, i == len(it.Allocs)-1)
	}
	return t.writeLines(b)
}

// appendPCs appends a space and an address for each frame, innermost first.
func appendPCs(b []byte, stack []symbol.Addr, noOuter bool) []byte {
	for _, a := range stack {
		b = append(b, ' ')
		if _, ok := heaplog.CodeOffset(a); ok {
			b = append(b, "code+"...)
		}
		b = appendHex(b, a.PC)
	}
	if noOuter {
		b = append(b, " [outer frames not known]"...)
	}
	return b
}

// appendBelow ends a line of output, and appends the frames of its stack. For the last line
// of an item with --passthrough, it keeps the frames in t.below until the log's line ends.
func (t *textSink) appendBelow(b []byte, stack []symbol.Addr, last bool) []byte {
	t.below = t.below[:0]
	if t.frames.looked() {
		t.below = t.appendFrames(t.below, stack)
	}
	if t.passthrough && last {
		return b
	}
	b = append(append(b, '\n'), t.below...)
	t.below = t.below[:0]
	return b
}

func (t *textSink) writeLines(b []byte) error {
	t.buf = b
	_, err := t.w.Write(b)
	return err
}

// pathEvents writes a line for each event of a ~v# line:
//
//	allocated block 7, 100 bytes, t=1000 thread=3, call path af2f64e9: 0x8005b10 0x8001a3c
func (t *textSink) pathEvents(it *heaplog.Item) error {
	b := t.buf[:0]
	for i := range it.Events {
		e := &it.Events[i]
		switch e.Kind {
		case callpath.Allocated:
			b = fmt.Appendf(b, "allocated block %d, %s", e.Number, printable.Count(e.Size, "byte"))
		case callpath.Freed:
			b = fmt.Appendf(b, "freed block %d", e.Old)
		case callpath.Moved:
			b = fmt.Appendf(b, "moved block %d to block %d, %s", e.Old, e.Number, printable.Count(e.Size, "byte"))
		case callpath.FreedUnknown:
			b = append(b, "freed an unknown block"...)
		case callpath.Lost:
			b = append(append(b, "lost "...), printable.Count(e.Count, "event")...)
		}
		if e.Address != 0 {
			b = fmt.Appendf(b, " at %#x", e.Address)
		}
		b = fmt.Appendf(b, ", t=%d thread=%d", e.Time, e.Thread)
		if e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
			b = appendPCs(fmt.Appendf(b, ", call path %08x:", e.Path), e.Stack, e.NoOuter)
		}
		b = t.appendBelow(b, e.Stack, i == len(it.Events)-1)
	}
	return t.writeLines(b)
}

// callPaths writes an object for each call path of a ~p# line:
//
//	{"file":"a.log","line":2,"offset":8,"call_path":"e4ca1178","dump":1,"count":1,"bytes":512,"frames":[…]}
func (j *jsonSink) callPaths(it *heaplog.Item) error {
	for i := range it.Allocs {
		a := &it.Allocs[i]
		b := fmt.Appendf(j.begin(it), `,"call_path":"%08x"`, a.Name)
		if a.Definition {
			b = append(b, `,"definition":true`...)
		} else {
			b = fmt.Appendf(b, `,"dump":%d,"count":%d,"bytes":%d`, it.Paths.Dump, a.Count, a.Bytes)
		}
		if !a.Ever.IsZero() {
			b = fmt.Appendf(b, `,"ever_count":%d,"ever_bytes":%d`, a.Ever.Count, a.Ever.Bytes)
		}
		if a.Peak > 0 {
			b = strconv.AppendUint(append(b, `,"peak_bytes":`...), a.Peak, 10)
		}
		for i, x := range a.Blocks {
			if i == 0 {
				b = append(b, `,"blocks":[`...)
			} else {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"address":"%#x","size":%d}`, x.Address, x.Size)
		}
		if len(a.Blocks) > 0 {
			b = append(b, ']')
		}
		if err := j.endStack(b, a.Stack, a.NoOuter); err != nil {
			return err
		}
	}
	return nil
}

// endStack ends an object with a stack.
func (j *jsonSink) endStack(b []byte, stack []symbol.Addr, noOuter bool) error {
	if noOuter {
		b = append(b, `,"outer_missing":true`...)
	}
	return j.end(j.appendStack(b, stack))
}

// pathEvents writes an object for each event of a ~v# line.
func (j *jsonSink) pathEvents(it *heaplog.Item) error {
	for i := range it.Events {
		e := &it.Events[i]
		b := fmt.Appendf(j.begin(it), `,"event":"%s"`, pathEventNames[e.Kind])
		if e.Kind == callpath.Lost {
			b = fmt.Appendf(b, `,"count":%d`, e.Count)
		}
		if e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
			b = fmt.Appendf(b, `,"block":%d,"size":%d,"call_path":"%08x"`, e.Number, e.Size, e.Path)
		}
		if e.Kind == callpath.Freed || e.Kind == callpath.Moved {
			b = fmt.Appendf(b, `,"old_block":%d`, e.Old)
		}
		if e.Address != 0 {
			b = fmt.Appendf(b, `,"address":"%#x"`, e.Address)
		}
		b = fmt.Appendf(b, `,"time":%d,"thread":%d`, e.Time, e.Thread)
		if err := j.endStack(b, e.Stack, e.NoOuter); err != nil {
			return err
		}
	}
	return nil
}

// pathEventNames are the names of the kinds of events.
var pathEventNames = [...]string{callpath.Allocated: "allocated", callpath.Freed: "freed", callpath.Moved: "moved",
	callpath.FreedUnknown: "freed_unknown", callpath.Lost: "lost"}
