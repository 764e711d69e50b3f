package heapmap_test

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/symbol"
)

// A block in the middle of a heap of 4 KiB keeps two holes apart.
func ExampleMapper() {
	b := profile.NewBuilder(0)
	path := b.Path([]symbol.Addr{{PC: 0x401000}})
	b.Add(path, profile.Value{Bytes: 64, Count: 1})
	d := b.End(profile.DumpInfo{Name: "dump 1", Boot: 1})
	blocks := []replay.Block{{Addr: 0x20001800, Bytes: 64, Path: path}}

	m := heapmap.Mapper{Regions: []codec.Range{{Start: 0x20001000, Length: 0x1000}}}
	x := m.Map(d, slices.Values(blocks), nil, nil)
	fmt.Println(x.Used, "bytes used,", x.Free, "free, the largest hole of", x.Largest)

	p, err := profile.New(d)
	if err != nil {
		panic(err)
	}
	pins, _ := heapmap.Name(x.Pins(), p, 0)
	for _, pin := range pins {
		fmt.Println(pin.Kept, "bytes kept apart by", pin.Stack)
	}
	// Output:
	// 64 bytes used, 4032 free, the largest hole of 2048
	// 1984 bytes kept apart by [0x401000]
}
