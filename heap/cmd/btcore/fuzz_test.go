package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Any image, ELF file or registers under any flags: see cmdtest.FuzzSub.
func FuzzCommand(f *testing.F) {
	heap := [][]string{{"--carve"}, {"--damage"}, {"--leaks"}, {"--only", "leaked"}, {"--only", "damaged"},
		{"--owner", "0x20000100"}, {"--owner", "active"}, {"-e", "FILE"}, {"-e", "FILE@0x20000000"}, {"--regs", "FILE"}}
	stacks := [][]string{{"--no-tables"}, {"--no-scan"}, {"--max-frames", "3"}, {"--thread", "1"}, {"--regs", "FILE"}, {"-e", "FILE"},
		{"-e", "FILE@0x400000"}}
	holds := [][]string{{"-n", "0"}, {"--path", "0x20001040"}, {"--allocator", "glibc"}, {"--allocator", "musl"}, {"-e", "FILE"}, {"--regs", "FILE"}}
	subs := []cmdtest.Sub{
		{Name: "holds", Flags: holds, Args: []string{"--sysroot", "/nowhere", "FILE"}},
		{Name: "holds", Flags: holds, Args: []string{"--sysroot", "/nowhere", "--ram", "0x20000000=FILE"}},
		{Name: "heap", Flags: heap, Args: []string{"--sysroot", "/nowhere", "FILE"}},
		{Name: "heap", Flags: heap, Args: []string{"--sysroot", "/nowhere", "--ram", "0x20000000=FILE"}},
		{Name: "heap", Flags: heap, Args: []string{"--sysroot", "/nowhere", "--ram", "FILE"}},
		{Name: "stacks", Flags: stacks, Args: []string{"--sysroot", "/nowhere", "FILE"}},
		{Name: "stacks", Flags: stacks, Args: []string{"--sysroot", "/nowhere", "--ram", "0x20000000=FILE"}},
	}
	for _, word := range []int{32, 64} {
		ram := deadRAM(f, word)
		cmdtest.SeedSub(f, subs, ram)
		cmdtest.SeedSub(f, subs, coreOf(word, ram))
	}
	cmdtest.SeedSub(f, subs, []byte(":020000042000DA\n:0400000001020304F2\n:00000001FF\n"))
	cmdtest.SeedSub(f, subs, []byte("S0030000FC\nS30920000000010203046C\nS70500000000FA\n"))
	cmdtest.SeedSub(f, subs, []byte("pc 0x400123 0x400123 <main+3>\nsp 0x20000800\nR00=20000800 R13=20000900 R15=08000123\n"))
	cmdtest.FuzzSub(f, func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return cli.Run(command(), args, stdin, stdout, stderr)
	}, subs)
}

// deadRAM returns 8 KB of RAM at 0x20000000 with a list of two blocks as libwebsockets
// makes it, the owner at offset 0x100.
func deadRAM(f *testing.F, word int) []byte {
	const base, owner = 0x20000000, 0x20000100
	mem, p := make([]byte, 8<<10), uint64(word/8)
	put := func(addr, v uint64) {
		if word == 64 {
			binary.LittleEndian.PutUint64(mem[addr-base:], v)
		} else {
			binary.LittleEndian.PutUint32(mem[addr-base:], uint32(v))
		}
	}
	m := codec.MachineExact64
	if word == 32 {
		m = codec.MachineExact32
	}
	last, at := uint64(0), uint64(base+0x1000)
	for i := range uint64(2) {
		blob, err := codec.Encoder{Machine: m}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x8000100 + 2*i, 0x8000200}, Size: 40}, nil)
		if err != nil {
			f.Fatal(err)
		}
		node := at + (uint64(len(blob))+15)/16*16
		copy(mem[node-uint64(len(blob))-base:], blob)
		put(node, last)
		put(node+2*p, owner)
		if last == 0 {
			put(owner+p, node)
		} else {
			put(last+p, node)
		}
		put(owner, node)
		last, at = node, node+0x100
	}
	binary.LittleEndian.PutUint32(mem[owner+2*p-base:], 2)
	return mem
}

// coreOf returns a core file of an Arm or x86-64 program with this RAM.
func coreOf(word int, ram []byte) []byte {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	if word == 64 {
		b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		put(uint16(4), uint16(62), uint32(1), uint64(0), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0))
		put(uint32(1), uint32(6), uint64(120), uint64(0x20000000), uint64(0), uint64(len(ram)), uint64(len(ram)), uint64(1))
	} else {
		b.WriteString("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		put(uint16(4), uint16(40), uint32(1), uint32(0), uint32(52), uint32(0), uint32(0), uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0))
		put(uint32(1), uint32(84), uint32(0x20000000), uint32(0), uint32(len(ram)), uint32(len(ram)), uint32(6), uint32(1))
	}
	b.Write(ram)
	return b.Bytes()
}
