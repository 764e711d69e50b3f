package profile_test

import (
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/symbol"
)

// record is an allocation as an importer reads it.
type record struct {
	bytes uint64
	stack []symbol.Addr // innermost first
}

// function returns an address in a function.
func function(pc uint64, name string) symbol.Addr {
	return symbol.Addr{PC: pc, Location: &symbol.Location{Own: pc, Call: pc - 1, Frames: []symbol.Frame{{Func: name, Name: name}}}}
}

var (
	mainAddr  = function(0x1010, "main")
	parseAddr = function(0x2010, "parse")
	cacheAddr = function(0x3010, "cache_add")
)

// The five call paths that hold the most.
func ExampleProfile_Top() {
	var b profile.Builder
	for _, r := range []record{
		{100, []symbol.Addr{parseAddr, mainAddr}},
		{4096, []symbol.Addr{cacheAddr, mainAddr}},
		{50, []symbol.Addr{parseAddr, mainAddr}},
		{8, []symbol.Addr{{PC: 0x9000}, mainAddr}}, // no symbol is known
	} {
		b.Add(b.Path(r.stack), profile.Value{Bytes: r.bytes, Count: 1})
	}
	p, err := profile.New(b.End(profile.DumpInfo{Name: "dump 1"}))
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range p.Top(profile.Bytes, 5) {
		fmt.Println(row.Value().Bytes, row.Stack())
	}
	// Output:
	// 4096 [cache_add main]
	// 150 [parse main]
	// 8 [0x9000 main]
}

// What is live at the peak of a recording of events.
func ExampleReplay() {
	var b profile.Builder
	path := b.Path([]symbol.Addr{parseAddr, mainAddr})
	var r replay.Replay
	r.Add(replay.Event{Kind: replay.Allocated, Addr: 0x10, Bytes: 64, Path: path})
	r.Add(replay.Event{Kind: replay.Allocated, Addr: 0x20, Bytes: 16, Path: path})
	r.Add(replay.Event{Kind: replay.Freed, Addr: 0x10})
	for a := range r.Peak().Allocations() {
		for f := range a.Frames() {
			fmt.Print(f.Name, " ")
		}
		fmt.Println("held", a.Bytes, "bytes")
	}
	// Output:
	// parse main held 80 bytes
}

// A sampled dump has estimates; the standard errors tell their precision.
func ExampleAllocation() {
	b := profile.NewBuilder(0)
	path := b.Path([]symbol.Addr{{PC: 0x8000284}})
	b.AddAllocation(profile.Allocation{Path: path, Value: profile.Value{Bytes: 4096, Count: 8}, BytesErr: 512, CountErr: 1})
	d := b.End(profile.DumpInfo{Name: "dump 1", Sample: 65536})
	for a := range d.Allocations() {
		fmt.Printf("%d ± %.0f bytes\n", a.Bytes, a.BytesErr)
	}
	// Output: 4096 ± 512 bytes
}
