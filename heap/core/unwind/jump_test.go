package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// walkCode walks the stack in mem of Thumb code, stopped at pc with lr, both relative to the code.
func walkCode(code []byte, starts []uint64, pc, lr uint64, mem []byte) []Frame {
	a := archOf(elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian)
	n := uint64(len(code))
	o := &Object{Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Order: binary.LittleEndian, arch: a,
		file: bytes.NewReader(code), pages: map[uint64][]byte{}, symbols: true,
		loads: []load{{fuzzText, 0, n, fuzzText + n}}, text: []span{{fuzzText, fuzzText + n}}}
	for _, s := range starts {
		o.starts = append(o.starts, fuzzText+s)
	}
	u := &Unwinder{Memory: stackMemory(mem), Modules: []*Module{{Object: o}}, NoScan: true}
	r := Regs{PC: fuzzText + pc | 1}
	r.Set(armSP, fuzzStack)
	r.Set(armLR, fuzzText+lr|1)
	return u.Walk(elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian, r)
}

// TestJumpedTo finds the caller of a function without a frame to which another function jumped.
//
//	 0  bf00       nop
//	 2  e7fe       b .
//	 4  e7fc       b 0
//	 8  b500       push {lr}
//	10  f7ff fffb  bl 4
//	14  bd00       pop {pc}
//	16  f7ff fffa  bl 8
func TestJumpedTo(t *testing.T) {
	code := []byte{0x00, 0xbf, 0xfe, 0xe7, 0xfc, 0xe7, 0x00, 0xbf, 0x00, 0xb5, 0xff, 0xf7, 0xfb, 0xff, 0x00, 0xbd, 0xff, 0xf7, 0xfa, 0xff, 0xfe, 0xe7}
	mem := make([]byte, 64)
	binary.LittleEndian.PutUint32(mem, fuzzText+20|1)
	frames := walkCode(code, []uint64{0, 4, 8, 16}, 2, 14, mem)
	if len(frames) < 3 || frames[1].PC != fuzzText+14|1 || frames[2].PC != fuzzText+20|1 {
		t.Errorf("%+v", frames)
	}
}

// TestOverlay reads code in the place of which another segment has zeros.
func TestOverlay(t *testing.T) {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	b.WriteString(elf.ELFMAG + "\x01\x01\x01")
	b.Write(make([]byte, 9))
	put(uint16(elf.ET_EXEC), uint16(elf.EM_RISCV), uint32(1), uint32(0x1000), uint32(52), uint32(0), uint32(0), uint16(52), uint16(32), uint16(2), uint16(40), uint16(0), uint16(0))
	put(uint32(elf.PT_LOAD), uint32(116), uint32(0x1000), uint32(0x1000), uint32(4), uint32(4), uint32(elf.PF_R|elf.PF_X), uint32(4))
	put(uint32(elf.PT_LOAD), uint32(120), uint32(0x1000), uint32(0x1000), uint32(8), uint32(8), uint32(elf.PF_R|elf.PF_W), uint32(4))
	b.WriteString("\x13\x05\x10\x00")
	b.Write(make([]byte, 8))
	o, err := NewObject(bytes.NewReader(b.Bytes()), "overlay")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.bytes(0x1000, 4); string(got) != "\x13\x05\x10\x00" {
		t.Errorf("% x: not the code", got)
	}
}

// TestContext ends the stack of a context at the function to which its first function returns: tables tell that it
// begins there, and no call precedes it.
//
//	 0  90...  nop
//	16  c3     ret
//	17  90...  nop
//	32  53     push %rbx
//	33  eb fe  jmp .
func TestContext(t *testing.T) {
	code := bytes.Repeat([]byte{0x90}, 35)
	code[16] = 0xc3
	copy(code[32:], "\x53\xeb\xfe")
	n := uint64(len(code))
	rules := &cie{codeAlign: 1, dataAlign: -8, raColumn: 16, code: []byte{0x0c, 7, 8, 0x90, 1}} // CFA rsp+8, return address at CFA-8
	o := &Object{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Order: binary.LittleEndian,
		arch: archOf(elf.EM_X86_64, elf.ELFCLASS64, binary.LittleEndian), file: bytes.NewReader(code), pages: map[uint64][]byte{}, symbols: true,
		loads: []load{{fuzzText, 0, n, fuzzText + n}}, text: []span{{fuzzText, fuzzText + n}}, starts: []uint64{fuzzText + 32},
		eh: &frameTable{list: []fde{{low: fuzzText + 16, high: fuzzText + 24, cie: rules}, {low: fuzzText + 32, high: fuzzText + n, cie: rules, code: []byte{0x41, 0x0e, 16}}}}}
	mem := make([]byte, 64)
	for to, frames := range map[uint64]int{16: 1, 20: 2} {
		binary.LittleEndian.PutUint64(mem[8:], fuzzText+to)
		u := &Unwinder{Memory: stackMemory(mem), Modules: []*Module{{Object: o}}, NoScan: true}
		r := Regs{PC: fuzzText + 33}
		r.Set(7, fuzzStack)
		if got := u.Walk(o.Machine, o.Class, o.Order, r); len(got) != frames {
			t.Errorf("return to %d: %+v", to, got)
		}
	}
}
