//go:build linux

package record

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout of heap/record/preload/ring.h, which describes it. TestLayout compiles that file
// and compares.
const (
	ringMagic     = "lwsbtrng"
	ringVersion   = 3
	ringSlot      = 256       // bytes
	ringOwn       = 256 << 10 // bytes
	ringRecordMax = 1088      // words
	ringSlack     = ringRecordMax
	ringPlaces    = 32
	ringDepth     = 1024
	headerBytes   = 4096
)

// LibrarySymbol is a symbol of libraries that write this version of the layout.
var LibrarySymbol = fmt.Sprintf("lwsbt_ring_version_%d", ringVersion)

// header is the beginning of the memory. Fields that both sides change are atomic.
type header struct {
	magic    [8]byte
	version  uint32
	slots    uint32
	words    uint32
	slotAt   uint32
	areaAt   uint64
	area     uint64
	clock    uint32
	children uint32
	sample   uint64
	recorder uint32
	_        uint32

	mode     atomic.Uint32
	root     atomic.Uint32
	slotless atomic.Uint32
	top      atomic.Uint32
	_        [12]uint32

	asleep atomic.Uint32
	beat   atomic.Uint32
	_      [14]uint32

	count atomic.Uint32
	_     [15]uint32
}

// slot holds the owner and the fill level of a ring.
type slot struct {
	state    atomic.Uint32
	pid, tid uint32
	_        uint32
	image    uint64
	name     [16]byte
	_        [6]uint32

	head atomic.Uint32
	lost atomic.Uint32
	_    [14]uint32

	tail    atomic.Uint32
	waiting atomic.Uint32
	room    atomic.Uint32
	_       [13]uint32

	_ [16]uint32
}

// The sizes of both, checked by the compiler.
var (
	_ [256]byte      = [unsafe.Sizeof(header{})]byte{}
	_ [ringSlot]byte = [unsafe.Sizeof(slot{})]byte{}
)

// Clocks of stamps.
const (
	clockCount  = 0
	clockCycles = 1
)

// Bits of header.mode.
const (
	modeAllocs = 1
	modeFrees  = 2
	modeLossy  = 4
)

// States of a slot.
const (
	slotFree    = 0
	slotTaken   = 1
	slotLeft    = 2
	slotFilling = 3
)

// Kinds of records.
const (
	kindAllocated  = 1
	kindFreed      = 2
	kindMoveBegins = 3
	kindMoveEnds   = 4
	kindMoveFailed = 5
	kindMoveFreed  = 6
	kindModule     = 7
	kindUnloaded   = 8
	kindImage      = 9
	kindFork       = 10
)

const flagFrames = 1

// How a stack ends, in word 3 of a record.
const endOutermost = 0
