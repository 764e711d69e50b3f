package heaplog

import (
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Item is a record, or the text between two records, with names. An Item and all it refers to
// are valid until the next item; symbol.Addr values in it stay valid. Besides Dump, Boot and the
// fields of a [recording.Item], its kind decides which fields are set:
//
//	KindBlob, KindDecoded, KindEvent  one of Allocs
//	KindPaths                         one of Allocs for each entry
//	KindPathEvents                    Events
//	KindHeader                        Heap of ~h#heap
//	KindIdle                          none: no data is available, and the pass is about to wait
//
// The Texts of all items together are the log, with heap traces of other systems as the records
// that they were converted to. Offsets count in this text, decompressed.
type Item struct {
	recording.Item
	// Dump is the number of the dump to which the item belongs, from 1. Between two dumps it is
	// that of the previous dump, and before the first dump it is 0. Boot is the number of the
	// boot, from 1. Both are as known at the end of the item. If a dump begins without a header,
	// it is recognized only when its records repeat the beginning of the previous dump. Its
	// first records then have the number of the previous dump.
	Dump, Boot int
	// Allocs are the allocations of the record, with recovered bits and names.
	Allocs []Alloc
	Events []PathEvent
	Heap   *profile.Heap

	located *located // nil if there is no stack
}

// PathEvent is an event of a ~v# line. (BT-VLINE-4)
type PathEvent struct {
	callpath.Event
	Stack   []symbol.Addr // of Allocated and Moved, innermost frame first, as far as it is known
	NoOuter bool          // the outer frames are not known
}

// Alloc is one allocation and its call stack or, in a KindPaths item, a call path and the sum of
// its allocations.
type Alloc struct {
	Stack []symbol.Addr // innermost frame first
	// Value has Count 1 and the size of the allocation. In a KindPaths item, it is the sum that the
	// line holds, which is not scaled up if the dump is sampled.
	profile.Value
	SizeLost bool // only the low 31 bits of the size are known; false in a KindPaths item

	// The following fields are set only in KindPaths items.

	Name       uint32           // of the call path (BT-NAME-1)
	Definition bool             // the entry defines the name, and has no values
	NoOuter    bool             // the outer frames were not captured, or their name is not known
	Blocks     []callpath.Block // each block, if the line has them
	Ever       profile.Value    // allocations since the boot, if the line has them
	Peak       uint64           // the most bytes that were live, if the line has it
}

// located is the call path of a record. It is valid for one generation of the process; generation
// 0 is none.
type located struct {
	generation int
	path       profile.Path
	hasPath    bool
	ambiguous  uint8    // how many of the lost addresses are ambiguous
	states     [3]int32 // addresses by state
	allocs     [1]Alloc
}
