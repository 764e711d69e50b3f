package main

import (
	"fmt"
	"strconv"

	"github.com/lwsbt/lwsbt/codec/callpath"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// appendCallPath appends a call path of a ~p# line:
//
//	call path e4ca1178: 512 bytes in 1 block, 0x8010222 0x8005b62 0x8001a3c 0x8000284
func appendCallPath(b []byte, a *heaplog.Alloc) []byte {
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
	return b
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

// appendPathEvent appends an event of a ~v# line:
//
//	allocated block 7, 100 bytes, t=1000 thread=3, call path af2f64e9: 0x8005b10 0x8001a3c
func appendPathEvent(b []byte, e *heaplog.PathEvent) []byte {
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
	return b
}

// appendCallPathJSON appends the values of a call path of a ~p# line:
//
//	{"file":"a.log","line":2,"offset":8,"call_path":"e4ca1178","dump":1,"count":1,"bytes":512,"frames":[…]}
func appendCallPathJSON(b []byte, dump uint8, a *heaplog.Alloc) []byte {
	b = fmt.Appendf(b, `,"call_path":"%08x"`, a.Name)
	if a.Definition {
		b = append(b, `,"definition":true`...)
	} else {
		b = fmt.Appendf(b, `,"dump":%d,"count":%d,"bytes":%d`, dump, a.Count, a.Bytes)
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
	return b
}

// appendPathEventJSON appends the values of an event of a ~v# line.
func appendPathEventJSON(b []byte, e *heaplog.PathEvent) []byte {
	b = fmt.Appendf(b, `,"event":"%s"`, pathEventNames[e.Kind])
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
	return fmt.Appendf(b, `,"time":%d,"thread":%d`, e.Time, e.Thread)
}

// pathEventNames are the names of the kinds of events.
var pathEventNames = [...]string{callpath.Allocated: "allocated", callpath.Freed: "freed", callpath.Moved: "moved",
	callpath.FreedUnknown: "freed_unknown", callpath.Lost: "lost"}
