package callpath_test

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// The example of SPEC.md: two call paths with their blocks and bytes.
func Example() {
	code := callpath.Ranges{Shift: 1}
	code.Add(codec.Range{Start: 0x8000000, Length: 0x60000}, "")
	path := func(addresses ...uint64) (p callpath.Path) {
		for _, a := range addresses {
			p.Frames = append(p.Frames, code.Frame(a))
		}
		return p
	}
	w := callpath.Writer{Limit: callpath.MaxSerial, Dump: 1, Lines: 5}
	var text []byte
	for _, e := range []callpath.Entry{
		{Path: path(0x8000284, 0x8001a3c, 0x8005b10), Live: 3, Bytes: 96},
		{Path: path(0x8000284, 0x8001a3c, 0x8005b62, 0x8010222), Live: 1, Bytes: 512},
	} {
		var err error
		if text, err = w.Append(text, &e); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s", w.Flush(text))
	// Output: ~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA
}

func ExampleLine() {
	var l callpath.Line
	if err := l.Parse([]byte("~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA")); err != nil {
		fmt.Println(err)
	}
	for e := (callpath.Entry{}); l.Next(&e); {
		fmt.Printf("%d blocks, %d bytes:", e.Live, e.Bytes)
		for _, f := range e.Frames {
			fmt.Printf(" %#x", f.Value)
		}
		fmt.Println()
	}
	fmt.Println(l.Parse([]byte("~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtB")))
	// Output:
	// 3 blocks, 96 bytes: 0x142 0xd1e 0x2d88
	// 1 blocks, 512 bytes: 0x142 0xd1e 0x2db1 0x8111
	// byte 30, text: 0x1b51, expected 0xb51 of the line [crc, BT-PLINE-2]
}

// A line names a path whose frames a later line defines.
func ExampleNames() {
	var names callpath.Names
	named := names.Add(&callpath.Path{Base: callpath.Named, Outer: 0xaf2f64e9})
	fmt.Println(names.Path(named, nil))
	names.Add(&callpath.Path{Frames: offsets(0x142, 0xd1e, 0x2d88)})
	fmt.Println(names.Path(named, nil))
	// Output:
	// {2 2939118825 []}
	// {0 0 [{322 false} {3358 false} {11656 false}]}
}

func ExampleEvents() {
	w := callpath.EventsWriter{Next: 7}
	var text []byte
	for _, e := range []callpath.Event{
		{Kind: callpath.Allocated, Time: 1000, Thread: 1, Path: 0xaf2f64e9, Size: 32},
		{Kind: callpath.Freed, Time: 1005, Thread: 1, Old: 7},
	} {
		text, _ = w.Append(text, e)
	}
	text = w.Flush(text)
	fmt.Printf("%s", text)
	var l callpath.Events
	if err := l.Parse(text[:len(text)-1]); err != nil {
		fmt.Println(err)
	}
	for _, e := range l.List {
		fmt.Printf("%+v\n", e)
	}
	// Output:
	// ~v#AAAAofBHApT2LvCgBDFFHEzMTA
	// {Kind:0 Time:1000 Thread:1 Path:2939118825 Index:0 Number:7 Old:0 Size:32 Address:0 Count:0}
	// {Kind:1 Time:1005 Thread:1 Path:0 Index:0 Number:0 Old:7 Size:0 Address:0 Count:0}
}
