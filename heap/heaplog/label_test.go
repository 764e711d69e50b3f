package heaplog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
)

// Each block is of the thread or the size that its record has.
func TestGroupBy(t *testing.T) {
	var b strings.Builder
	block := func(thread, size uint64) {
		var u codec.User
		u.Set(codec.TagThread, thread)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x1000 + size}, Size: size}, &u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendLine(nil, blob), '\n'))
	}
	b.WriteString("~h#boot w=32\n~h#thread 7 name=mqtt\n~h#begin 1 u=1\n")
	block(7, 10)
	block(7, 20)
	block(8, 20)
	b.WriteString("~h#end 1\n~h#boot w=32\n~h#begin 1 u=1\n")
	block(7, 10)
	b.WriteString("~h#end 1\n")
	for label, want := range map[heaplog.Label]string{
		heaplog.ByThread: "thread 7 mqtt:30 thread 8:20 | thread 7:10",
		heaplog.BySize:   "10 bytes:10 20 bytes:40 | 10 bytes:10",
	} {
		r := open(t, strings.NewReader(b.String()), heaplog.GroupBy(label))
		var dumps []string
		for d, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for a := range d.Allocations() {
				for f := range a.Frames() {
					list = append(list, fmt.Sprintf("%s:%d", f.Name, a.Bytes))
				}
			}
			dumps = append(dumps, strings.Join(list, " "))
		}
		if got := strings.Join(dumps, " | "); got != want {
			t.Errorf("%d: %s, want %s", label, got, want)
		}
	}
	// Lines of call paths have neither.
	r := open(t, strings.NewReader("~h#boot code=8000000+60000,20000000+800 shift=1\n~h#begin 1 k=paths\n~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA\n~h#end 1\n"), heaplog.GroupBy(heaplog.BySize))
	var failed error
	for _, err := range r.Dumps() {
		if err != nil && failed == nil {
			failed = err
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "neither threads nor sizes") {
		t.Errorf("call paths by size: %v", failed)
	}
}

// Where a log has lines of call paths and events, the threads and sizes are those of the events.
func TestGroupEventsBy(t *testing.T) {
	var w callpath.EventsWriter
	var line []byte
	for i, thread := range []uint64{7, 7, 8} {
		line, _ = w.Append(line, callpath.Event{Kind: callpath.Allocated, Time: 1, Thread: thread, Path: 0, Size: uint64(10 * (1 + i/2))})
	}
	log := "~h#boot code=8000000+60000 shift=1\n~h#thread 7 name=mqtt\n" + string(w.Flush(line)) +
		"~h#begin 1 k=paths n=3 b=40\n~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA\n~h#end 1\n"
	for label, want := range map[heaplog.Label]string{
		heaplog.ByThread: "thread 7 mqtt:20 thread 8:20",
		heaplog.BySize:   "10 bytes:20 20 bytes:20",
	} {
		r := open(t, strings.NewReader(log), heaplog.GroupBy(label))
		var list []string
		for d, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			for a := range d.Allocations() {
				for f := range a.Frames() {
					list = append(list, fmt.Sprintf("%s:%d", f.Name, a.Bytes))
				}
			}
		}
		slices.Sort(list)
		if got := strings.Join(list, " "); got != want {
			t.Errorf("%d: %s, want %s", label, got, want)
		}
	}
}
