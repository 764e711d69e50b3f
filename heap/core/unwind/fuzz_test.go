package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand"
	"runtime"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// kinds are the machines to fuzz.
var kinds = []struct {
	machine elf.Machine
	class   elf.Class
	order   binary.ByteOrder
}{
	{elf.EM_X86_64, elf.ELFCLASS64, binary.LittleEndian},
	{elf.EM_386, elf.ELFCLASS32, binary.LittleEndian},
	{elf.EM_AARCH64, elf.ELFCLASS64, binary.LittleEndian},
	{elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian},
	{elf.EM_ARM, elf.ELFCLASS32, binary.BigEndian},
	{elf.EM_MIPS, elf.ELFCLASS32, binary.BigEndian},
	{elf.EM_MIPS, elf.ELFCLASS64, binary.LittleEndian},
	{elf.EM_RISCV, elf.ELFCLASS32, binary.LittleEndian},
	{elf.EM_RISCV, elf.ELFCLASS64, binary.LittleEndian},
	{elf.EM_PPC, elf.ELFCLASS32, binary.BigEndian},
	{elf.EM_S390, elf.ELFCLASS64, binary.BigEndian},
}

const (
	fuzzText  = 0x10000
	fuzzStack = 0x7000000
)

// stackMemory is a stack at fuzzStack.
type stackMemory []byte

func (m stackMemory) Read(b []byte, addr uint64) int {
	if addr < fuzzStack || addr-fuzzStack >= uint64(len(m)) {
		return 0
	}
	return copy(b, m[addr-fuzzStack:])
}

// fuzzUnwind unwinds a stack with arbitrary code, tables and registers.
func fuzzUnwind(t *testing.T, kind byte, code, frames, exidx, stack, regs []byte) {
	k := kinds[int(kind)%len(kinds)]
	a := archOf(k.machine, k.class, k.order)
	o := &Object{Machine: k.machine, Class: k.class, Order: k.order, arch: a, file: bytes.NewReader(code),
		pages: map[uint64][]byte{}, symbols: kind&0x80 != 0}
	n := uint64(len(code))
	o.loads = []load{{fuzzText, 0, n, fuzzText + n}}
	o.text = []span{{fuzzText, fuzzText + n}}
	o.eh = readFrames(frames, fuzzText+n, true, k.order, int(a.word))
	o.debug = readFrames(frames, 0, false, k.order, int(a.word))
	o.exidx = section{fuzzText + n, exidx}
	if kind&0x40 != 0 {
		o.starts = []uint64{fuzzText, fuzzText + n/2}
	}
	u := &Unwinder{Memory: stackMemory(stack), Modules: []*Module{{Object: o, Bias: uint64(kind&1) << 12}}}
	var r Regs
	c := cursor{b: regs, order: k.order}
	for i := range min(40, len(regs)/8) {
		v := c.u64()
		if v&1 == 0 { // near the stack
			v = fuzzStack + v>>1%(uint64(len(stack))+64)
		}
		r.Set(i, a.mask(v))
	}
	r.Set(a.sp, fuzzStack+uint64(kind)*8)
	r.PC = fuzzText + u.Modules[0].Bias
	if len(regs) >= 2 {
		r.PC += uint64(regs[0]) | uint64(regs[1])<<8
	}
	list := u.Walk(k.machine, k.class, k.order, r)
	if len(list) == 0 || len(list) > 1024 {
		t.Fatalf("%d frames", len(list))
	}
	for i := range list {
		if list[i].Lookup(); list[i].How > HowScan {
			t.Fatalf("frame %d: %v", i, list[i].How)
		}
	}
}

func FuzzUnwind(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for kind := range kinds {
		f.Add(byte(kind), some(r, 400), cfiSeed(kind), some(r, 32), some(r, 600), some(r, 320))
	}
	f.Fuzz(func(t *testing.T, kind byte, code, frames, exidx, stack, regs []byte) {
		if len(code) > 1<<16 || len(stack) > 1<<16 || len(frames) > 1<<16 || len(exidx) > 1<<16 {
			return
		}
		start := cmdtest.ProcessorTime()
		fuzzUnwind(t, kind, code, frames, exidx, stack, regs)
		if d := cmdtest.ProcessorTime() - start; d > time.Minute {
			t.Fatalf("took %v", d)
		}
	})
}

// FuzzObject reads arbitrary files.
func FuzzObject(f *testing.F) {
	f.Add([]byte(elf.ELFMAG))
	f.Add(header64())
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := NewObject(bytes.NewReader(b), "fuzz")
		if err != nil {
			return
		}
		u := &Unwinder{Memory: stackMemory(make([]byte, 4096)), Modules: []*Module{{Object: o}}}
		var r Regs
		r.PC = o.entry
		r.Set(o.arch.sp, fuzzStack)
		u.Walk(o.Machine, o.Class, o.Order, r)
	})
}

// header64 returns an ELF header for x86-64 with a program header.
func header64() []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: 2, Machine: 62, Version: 1, Entry: 0x400078,
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64})
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: 1, Flags: 5, Vaddr: 0x400000, Filesz: 4096, Memsz: 4096})
	return append(b.Bytes(), bytes.Repeat([]byte{0x55, 0x90, 0xe8, 0, 1, 0, 0, 0x5d, 0xc3}, 40)...)
}

func some(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	r.Read(b)
	return b
}

// cfiSeed returns a CIE and an FDE that covers the code.
func cfiSeed(kind int) []byte {
	k := kinds[kind]
	a := archOf(k.machine, k.class, k.order)
	u32 := func(b []byte, v uint32) []byte { return k.order.(binary.AppendByteOrder).AppendUint32(b, v) }
	cie := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, byte(a.raColumn), 1, 0x03, 0x0c, byte(a.sp), 8, 0x80 | byte(a.raColumn&63), 1, 0, 0}
	b := append(u32(nil, uint32(len(cie))), cie...)
	fde := u32(u32(u32(nil, uint32(len(b)+4)), fuzzText), 0x100)
	fde = append(fde, 0, 0x41, 0x0e, 16, 0x0a, 0x41, 0x0b, 0)
	return append(append(u32(b, uint32(len(fde))), fde...), 0, 0, 0, 0)
}

// TestHostile unwinds 2,000 random stacks without a panic, a hang, or memory out of
// proportion to the input.
func TestHostile(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cmdtest.ProcessorTime()
	for i := range 2000 {
		r := rand.New(rand.NewSource(int64(i)))
		kind := i % len(kinds)
		frames := cfiSeed(kind)
		for range r.Intn(6) {
			frames[r.Intn(len(frames))] = byte(r.Int())
		}
		fuzzUnwind(t, byte(kind)+byte(r.Intn(4))*byte(len(kinds)*5), some(r, 64+r.Intn(2000)), frames, some(r, 8*r.Intn(20)), some(r, r.Intn(4000)), some(r, 320))
	}
	runtime.ReadMemStats(&after)
	if d := cmdtest.ProcessorTime() - start; d > 2*time.Minute {
		t.Errorf("took %v", d)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d bytes kept", grown)
	}
}

// TestLoops unwinds stacks and code with cycles.
func TestLoops(t *testing.T) {
	code := bytes.Repeat([]byte{0xe8, 0xfb, 0xff, 0xff, 0xff, 0xeb, 0xfe, 0x90}, 64) // call and jump to itself
	stack := make([]byte, 1<<16)
	for i := 0; i+8 <= len(stack); i += 8 {
		binary.LittleEndian.PutUint64(stack[i:], fuzzText+5) // follows a call
	}
	regs := make([]byte, 320)
	start := cmdtest.ProcessorTime()
	for _, kind := range []byte{0, 0x40, 0x80, 0xc0} {
		fuzzUnwind(t, kind*11, code, nil, nil, stack, regs)
	}
	if d := cmdtest.ProcessorTime() - start; d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}
