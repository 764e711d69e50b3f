package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// thumbCode is a handler with an endless loop at offset 0, and a function with a call at
// offset 16.
//
//	 0  b510       push {r4, lr}
//	 2  b082       sub sp, #8
//	 4  e7fe       b .
//	16  b500       push {lr}
//	18  f7ff fffe  bl 18
//	22  bd00       pop {pc}
var thumbCode = []byte{0x10, 0xb5, 0x82, 0xb0, 0xfe, 0xe7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0x00, 0xb5, 0xff, 0xf7, 0xfe, 0xff, 0x00, 0xbd}

// TestException follows the EXC_RETURN of a handler to the interrupted code, with the
// frames of the ARMv7-M manual (B1.5.6).
func TestException(t *testing.T) {
	for _, test := range []struct {
		name      string
		excReturn uint32
		xpsr      uint32
		extra     uint64 // bytes between the basic frame and the stack pointer before
	}{
		{"main stack", 0xfffffff9, 1 << 24, 0},
		{"main stack, padded", 0xfffffff9, 1<<24 | 1<<9, 4},
		{"floating point", 0xffffffe9, 1 << 24, 72},
		{"non-secure", 0xffffffb8, 1 << 24, 0},
	} {
		var mem []byte
		put := func(list ...uint32) {
			for _, v := range list {
				mem = binary.LittleEndian.AppendUint32(mem, v)
			}
		}
		put(0, 0, 44, test.excReturn)                                 // the handler's locals, r4, lr
		put(10, 11, 12, 13, 112, fuzzText+23, fuzzText+18, test.xpsr) // r0-r3, r12, lr, pc, xPSR
		mem = append(mem, make([]byte, test.extra)...)
		put(fuzzText + 23) // lr that the interrupted function pushed: the address after its own call
		frames := walkThumb(mem)
		if len(frames) < 4 || frames[1].PC != uint64(test.excReturn) || frames[2].PC != fuzzText+18|1 || !frames[2].Signal ||
			frames[2].SP != fuzzStack+48+test.extra || frames[3].PC != fuzzText+23 {
			t.Errorf("%s: %+v", test.name, frames)
		}
	}
}

// TestReset checks that the walk ends if lr has its value after a reset.
func TestReset(t *testing.T) {
	mem := []byte{0, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}
	if frames := walkThumb(append(mem, make([]byte, 64)...)); len(frames) != 1 {
		t.Errorf("%+v: want one frame", frames)
	}
}

// walkThumb walks the stack in mem of thumbCode's handler, stopped in its loop.
func walkThumb(mem []byte) []Frame {
	a := archOf(elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian)
	n := uint64(len(thumbCode))
	o := &Object{Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Order: binary.LittleEndian, arch: a,
		file: bytes.NewReader(thumbCode), pages: map[uint64][]byte{}, symbols: true,
		loads: []load{{fuzzText, 0, n, fuzzText + n}}, text: []span{{fuzzText, fuzzText + n}},
		starts: []uint64{fuzzText, fuzzText + 16}}
	u := &Unwinder{Memory: stackMemory(mem), Modules: []*Module{{Object: o}}, NoScan: true}
	r := Regs{PC: fuzzText + 4 | 1}
	r.Set(armSP, fuzzStack)
	return u.Walk(elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian, r)
}
