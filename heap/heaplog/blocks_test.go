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

// blocksText returns the blocks of a dump with the names of their frames, sorted.
func blocksText(d heaplog.DumpBlocks) string {
	var list []string
	for b := range d.Blocks {
		line := fmt.Sprintf("%#x: %d bytes", b.Addr, b.Bytes)
		for f := range b.Path.Frames() {
			line += " " + f.Name
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// A dump has the blocks of its records and of its lines of call paths, also if a name is defined
// after the dump.
func TestDumpBlocks(t *testing.T) {
	record := func(addr, size uint64) string {
		u := &codec.User{}
		u.Set(codec.TagAddress, addr)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: size, PCs: []uint64{0x8000444}}, u)
		if err != nil {
			t.Fatal(err)
		}
		return string(codec.AppendLine(nil, blob)) + "\n"
	}
	outer := callpath.Path{Frames: pathFrames(322, 3358)}
	e := namedPath(2, 96, outer, 11656)
	e.Blocks = []callpath.Block{{Address: 0x20001010, Size: 32}, {Address: 0x20001040, Size: 64}}
	define := callpath.Entry{Path: outer, Definition: true}
	log := strings.Replace(pathBoot, " code", " heap=20001000+800,20002000+100 code", 1) +
		"~h#begin 1 u=1\n" + record(0x20001800, 16) + record(0x20001900, 24) + "~h#end 1 n=2\n" +
		"~h#begin 2 k=paths l=0\n" + pathLine(t, callpath.Head{Dump: 2, Flags: callpath.Blocks}, e) + "~h#end 2 n=2 b=96 l=1\n" +
		pathLine(t, callpath.Head{Dump: 2, Seq: 1}, define)
	want := []string{
		"0x20001800: 16 bytes 0x8000444\n0x20001900: 24 bytes 0x8000444",
		"0x20001010: 32 bytes 0x8005b10 0x8001a3c 0x8000284\n0x20001040: 64 bytes 0x8005b10 0x8001a3c 0x8000284",
	}
	space := []codec.Range{{Start: 0x20001000, Length: 0x800}, {Start: 0x20002000, Length: 0x100}}
	r := open(t, strings.NewReader(log))
	n := 0
	for d, err := range r.DumpBlocks() {
		if err != nil {
			t.Fatal(err)
		}
		if n < len(want) {
			if got := blocksText(d); got != want[n] || !slices.Equal(d.Space, space) {
				t.Errorf("%s has the blocks\n%s\nin %v, want\n%s", d.Name, got, d.Space, want[n])
			}
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d dumps, want %d: %s", n, len(want), notes(r))
	}
}

func TestReaderMoments(t *testing.T) {
	want := []string{
		"live at 0.002 s 1: 0x10: 100 bytes 0x401000\n0x20: 200 bytes 0x402000",
		"live at 0.003 s 2: 0x10: 100 bytes 0x401000",
		"live at 0.004 s 3: 0x30: 150 bytes 0x403000",
		"live at 0.005 s 4: 0x30: 150 bytes 0x403000",
	}
	for _, first := range []bool{false, true} { // after a pass of Dumps
		r := open(t, strings.NewReader(recorded()))
		if first {
			dumpsOf(r)
		}
		var got []string
		for d, err := range r.Moments(4) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d: %s", d.Name, d.Number, blocksText(d)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// A pass of Dumps that was not finished does not know how long the recording is.
	r := open(t, strings.NewReader(recorded()+"~h#begin 1\n"+readme+"\n~h#end 1\n"+recorded()))
	for range r.Dumps() {
		break
	}
	n := 0
	for d, err := range r.Moments(3) {
		if n++; err != nil || d.Index >= 3 {
			t.Errorf("moment %d, %v", d.Index, err)
		}
	}
	for range r.Moments(0) {
		n++
	}
	if n != 4 {
		t.Errorf("%d moments and errors, want 3 and 1", n)
	}
	// Each boot ends with a moment. Frees of one boot do not change another.
	boot := "~h#boot prog=x w=64 heap=0+1000\n"
	r = open(t, strings.NewReader(boot+recorded()+boot+eventLine(codec.EventAllocated, 0x40, 0, 7, 9000, 0x401000)))
	var got []string
	for d, err := range r.Moments(1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("boot %d, %v: %d bytes of %d", d.Boot, d.Time, d.Total.Bytes, len(d.Space)))
	}
	if want := []string{"boot 1, 5ms: 150 bytes of 1", "boot 2, 9ms: 7 bytes of 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
