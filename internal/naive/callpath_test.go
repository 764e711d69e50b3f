package naive

import (
	"fmt"
	"testing"
)

// The example of SPEC.md Part III, by frames and by name.
func TestPathsExample(t *testing.T) {
	code := []CodeRange{{0x8000000, 0x60000}}
	frames := func(addresses ...uint64) (frames []CallFrame) {
		for _, a := range addresses {
			frames = append(frames, ToFrame(a, code, 1))
		}
		return frames
	}
	a := PathEntry{Frames: frames(0x8000284, 0x8001a3c, 0x8005b10), Live: 3, Bytes: 96}
	b := PathEntry{Frames: frames(0x8000284, 0x8001a3c, 0x8005b62, 0x8010222), Live: 1, Bytes: 512}
	l := PathLine{Dump: 1, Sequence: 5, Entries: []PathEntry{a, b}}
	const line = "~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA"
	got := WritePathsSharing(l, func(n int) uint64 { return []uint64{0, 5}[n] })
	if got != line {
		t.Errorf("line %s, want %s", got, line)
	}
	again, reason := ReadPaths(line)
	if reason != "" || fmt.Sprint(again) != fmt.Sprint(l) {
		t.Errorf("read %v, %s, want %v", again, reason, l)
	}
	named := PathLine{Dump: 1, Sequence: 6, Entries: []PathEntry{
		{Base: 2, Name: 0xAF2F64E9, Live: 3, Bytes: 96}, {Base: 2, Name: 0xE4CA1178, Live: 1, Bytes: 512}}}
	if n := Name(false, a.Frames); n != 0xAF2F64E9 {
		t.Errorf("name %08x", n)
	}
	if n := Name(false, b.Frames); n != 0xE4CA1178 {
		t.Errorf("name %08x", n)
	}
	if got := WritePaths(named); got != "~p#ABGACpT2LvCEgDC4FhykDCgQ61F" {
		t.Errorf("line %s", got)
	}
}

// The check values of both CRCs, as catalogues of CRCs have them.
func TestCRCs(t *testing.T) {
	if got := crc16("123456789"); got != 0x29B1 {
		t.Errorf("CRC-16/IBM-3740 %#x, want 0x29b1", got)
	}
	if got := crc32("123456789"); got != 0xCBF43926 {
		t.Errorf("CRC-32/ISO-HDLC %#x, want 0xcbf43926", got)
	}
}

// What is written is read again.
func TestEventsAgain(t *testing.T) {
	l := EventLine{Flags: 1, Sequence: 70, Unit: 3, Time: 1000, Thread: 2, Next: 40, Events: []PathEvent{
		{Kind: "allocated", Time: 1000, Thread: 2, Number: 40, Path: 0xAF2F64E9, Size: 96, Address: 0x20001000},
		{Kind: "allocated", Time: 1005, Thread: 2, Number: 41, Path: 0xAF2F64E9, Size: 8, Address: 0x20000ff8},
		{Kind: "freed", Time: 1005, Thread: 3, Number: 0},
		{Kind: "moved", Time: 1005, Thread: 3, Number: 42, Old: 41, Path: 1, Size: 1 << 40, Address: 1<<64 - 8},
		{Kind: "unknown", Time: 1005, Thread: 3, Address: 0},
		{Kind: "lost", Time: 1005, Thread: 3, Lost: 1<<64 - 1},
	}}
	line := WriteEvents(l)
	got, reason := ReadEvents(line)
	if reason != "" || fmt.Sprint(got) != fmt.Sprint(l) {
		t.Errorf("%s: read %v, %s, want %v", line, got, reason, l)
	}
}
