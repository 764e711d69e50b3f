// Code generated from preload/ring.h by go test ./heap/record -run Layout -update. DO NOT EDIT.

//go:build linux

package record

import (
	"sync/atomic"
	"unsafe"
)

const (
	ringEnv        = "LWSBT_RING"
	ringMagic      = "lwsbtrng"
	ringVersion    = 8
	ringSlot       = 256
	ringRules      = (4 << 20)
	ringTables     = 255
	ringRecordMax  = 1088
	ringSlack      = ringRecordMax
	ringDepth      = 1024
	ringPlaces     = 32
	ringDied       = 0x40000000
	ringTallyBits  = 20
	ringTallyMax   = 0xfffff
	ringTally      = 0x9e3779b1
	ringStampBits  = 48
	ringFrames     = 1
	ringCheckBits  = 11
	ringCheck      = 0x9e3779b97f4a7c15
	ringPlaceNone  = 255
	clockCount     = 0
	clockCycles    = 1
	modeAllocs     = 1
	modeFrees      = 2
	modeLossy      = 4
	stateFree      = 0
	stateTaken     = 1
	stateLeft      = 2
	stateFilling   = 3
	kindAllocated  = 1
	kindFreed      = 2
	kindMoveBegins = 3
	kindMoveEnds   = 4
	kindMoveFailed = 5
	kindMoveFreed  = 6
	kindModule     = 7
	kindUnloaded   = 8
	kindImage      = 9
	kindElsewhere  = 11
	kindExec       = 12
	hooksLibrary   = 0
	hooksProgram   = 1
	hooksNone      = 2
	endOutermost   = 0
	endDepth       = 1
	endUnknown     = 2
	endUnreadable  = 3
	ruleNone       = 0
	ruleEnd        = 1
	ruleSp         = 2
	ruleFp         = 3
	ruleAtFp       = 4
	ruleSignal     = 5
	ruleOther      = 6
)

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
	alive    atomic.Uint32
	mode     atomic.Uint32
	root     atomic.Uint32
	slotless atomic.Uint32
	top      atomic.Uint32
	rulesAt  uint64
	_        [10]uint32
	asleep   atomic.Uint32
	beat     atomic.Uint32
	_        [14]uint32
	count    atomic.Uint32
	_        [15]uint32
}

var _ [256]byte = [unsafe.Sizeof(header{})]byte{}

type slot struct {
	state   atomic.Uint32
	pid     uint32
	tid     uint32
	_       uint32
	image   uint64
	_       [10]uint32
	head    atomic.Uint32
	lost    atomic.Uint32
	again   atomic.Uint32
	_       [13]uint32
	tail    atomic.Uint32
	waiting atomic.Uint32
	room    atomic.Uint32
	_       [13]uint32
	_       [16]uint32
}

var _ [256]byte = [unsafe.Sizeof(slot{})]byte{}

type table struct {
	key    uint64
	at     uint32
	number uint32
}

var _ [16]byte = [unsafe.Sizeof(table{})]byte{}

type tables struct {
	count atomic.Uint32
	_     [3]uint32
}

var _ [16]byte = [unsafe.Sizeof(tables{})]byte{}
