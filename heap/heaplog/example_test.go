package heaplog_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// The five call paths that hold the most bytes. Here the log itself says which files are where
// in memory; with heaplog.Exe, the paths have functions and lines.
func ExampleReader_Dumps() {
	const text = `{{{module:0:fw.elf:elf:}}}{{{mmap:0x400000:0x10000:load:0:rx:0x0}}}
~b#size: 100, 0x401230 0x400100
~b#size: 24, 0x402000 0x400200
~b#size: 200, 0x401230 0x400100
`
	r, err := heaplog.Open(context.Background(), heaplog.Stream(strings.NewReader(text), "heap.log"), heaplog.Select(-1, -1))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for d, err := range r.Dumps() {
		if err != nil {
			log.Fatal(err)
		}
		p, err := profile.New(d)
		if err != nil {
			log.Fatal(err)
		}
		for _, row := range p.Top(profile.Bytes, 5) {
			fmt.Println(row.Value().Bytes, row.Stack())
		}
	}
	// Output:
	// 300 [fw.elf+0x1230 fw.elf+0x100]
	// 24 [fw.elf+0x2000 fw.elf+0x200]
}

// Records decoded in place: the rest of the log stays as it is.
func ExampleReader_Items() {
	const text = "boot\nheap: ~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV (main)\nwifi: up\n"
	r, err := heaplog.Open(context.Background(), heaplog.Stream(strings.NewReader(text), "stdin"))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for it, err := range r.Items() {
		if err != nil {
			log.Fatal(err)
		}
		if len(it.Allocs) == 0 {
			os.Stdout.Write(it.Text) // text, marks, and what could not be read
		}
		for _, a := range it.Allocs {
			fmt.Printf("%d bytes by %v", a.Bytes, a.Stack)
		}
	}
	// Output:
	// boot
	// heap: 7520 bytes by [0x406651 0x406852 0x406c1b 0x406294] (main)
	// wifi: up
}

// What was live at the peak of a recording with events.
func ExampleReader_Events() {
	r, err := heaplog.Open(context.Background(), heaplog.Stream(strings.NewReader(recorded()), "app.rec"))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	var replay replay.Replay
	for e, err := range r.Events() {
		if err != nil {
			log.Fatal(err)
		}
		replay.Add(*e)
	}
	d := replay.Peak()
	fmt.Println(d.Name, d.Total.Bytes, d.Total.Count, d.Time)
	// Output:
	// live at the peak 300 2 2ms
}

// The blocks that are live at two moments of a recording with events.
func ExampleReader_Moments() {
	r, err := heaplog.Open(context.Background(), heaplog.Stream(strings.NewReader(recorded()), "app.rec"))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for d, err := range r.Moments(2) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d bytes\n", d.Name, d.Total.Bytes)
		for b := range d.Blocks {
			fmt.Printf("  %#x: %d bytes\n", b.Addr, b.Bytes)
		}
	}
	// Output:
	// live at 0.003 s: 100 bytes
	//   0x10: 100 bytes
	// live at 0.005 s: 150 bytes
	//   0x30: 150 bytes
}
