package unwind

import (
	"debug/elf"
	"encoding/binary"
	"reflect"
	"testing"
)

// TestTables checks that no line of a table is hidden by the lines before it.
func TestTables(t *testing.T) {
	for name, table := range map[string]*table{"aarch64": aarch64Table(), "arm": armTable(), "thumb": thumbTable(),
		"thumb2": thumb2Table(), "mips": mipsTable(), "riscv": riscvTable(), "rvc": rvcTable()} {
		lines, reached := 0, map[*pattern]bool{}
		all := map[*pattern]bool{}
		for _, list := range table.index {
			for i, p := range list {
				all[p] = true
				hidden := false
				for _, q := range list[:i] {
					hidden = hidden || q.mask&^p.mask == 0 && p.value&q.mask == q.value && (q.word == 0 || q.word == p.word)
				}
				if !hidden {
					reached[p] = true
				}
			}
		}
		for p := range all {
			if lines++; !reached[p] {
				t.Errorf("%s: %08x %08x is never reached", name, p.mask, p.value)
			}
		}
		if lines < 20 {
			t.Errorf("%s: %d lines", name, lines)
		}
	}
}

// TestDecode compares instructions with what the manuals of the machines say.
func TestDecode(t *testing.T) {
	const sp64, pc = 31, 0x1000
	var list = func(ops ...op) []op { return ops }
	for _, test := range []struct {
		name    string
		machine elf.Machine
		class   elf.Class
		code    string
		want    inst
	}{
		{"stp x29, x30, [sp, #-32]!", elf.EM_AARCH64, elf.ELFCLASS64, "\xfd\x7b\xbe\xa9", inst{size: 4, ops: list(
			op{kind: opAdd, dst: sp64, src: sp64, imm: -32}, op{kind: opStore, dst: 29, src: sp64, size: 8},
			op{kind: opStore, dst: 30, src: sp64, imm: 8, size: 8})}},
		{"sub sp, sp, #1, lsl #12", elf.EM_AARCH64, elf.ELFCLASS64, "\xff\x07\x40\xd1", inst{size: 4, ops: list(
			op{kind: opAdd, dst: sp64, src: sp64, imm: -4096})}},
		{"b.ne -8", elf.EM_AARCH64, elf.ELFCLASS64, "\xc1\xff\xff\x54", inst{size: 4, flow: flowJump, cond: true, known: true, target: pc - 8}},
		{"ret", elf.EM_AARCH64, elf.ELFCLASS64, "\xc0\x03\x5f\xd6", inst{size: 4, flow: flowReturn, reg: 30}},
		{"addi sp, sp, -16", elf.EM_RISCV, elf.ELFCLASS64, "\x13\x01\x01\xff", inst{size: 4, ops: list(op{kind: opAdd, dst: 2, src: 2, imm: -16})}},
		{"sd ra, 8(sp)", elf.EM_RISCV, elf.ELFCLASS64, "\x23\x34\x11\x00", inst{size: 4, ops: list(op{kind: opStore, dst: 1, src: 2, imm: 8, size: 8})}},
		{"c.addi16sp -64", elf.EM_RISCV, elf.ELFCLASS32, "\x39\x71", inst{size: 2, ops: list(op{kind: opAdd, dst: 2, src: 2, imm: -64})}},
		{"c.lwsp ra, 12(sp)", elf.EM_RISCV, elf.ELFCLASS32, "\xb2\x40", inst{size: 2, ops: list(op{kind: opLoad, dst: 1, src: 2, imm: 12, size: 4})}},
		{"c.jr ra", elf.EM_RISCV, elf.ELFCLASS32, "\x82\x80", inst{size: 2, flow: flowReturn, reg: 1}},
		{"addiu sp, sp, -32", elf.EM_MIPS, elf.ELFCLASS32, "\xe0\xff\xbd\x27", inst{size: 4, ops: list(op{kind: opAdd, dst: 29, src: 29, imm: -32})}},
		{"sw ra, 28(sp)", elf.EM_MIPS, elf.ELFCLASS32, "\x1c\x00\xbf\xaf", inst{size: 4, ops: list(op{kind: opStore, dst: 31, src: 29, imm: 28, size: 4})}},
		{"beqz v0, +16", elf.EM_MIPS, elf.ELFCLASS32, "\x03\x00\x40\x10", inst{size: 4, flow: flowJump, cond: true, known: true, delay: true, target: pc + 16}},
		{"sub sp, sp, #1024", elf.EM_ARM, elf.ELFCLASS32, "\x01\xdb\x4d\xe2", inst{size: 4, ops: list(op{kind: opAdd, dst: 13, src: 13, imm: -1024})}},
		{"push {r4, lr}", elf.EM_ARM, elf.ELFCLASS32, "\x10\x40\x2d\xe9", inst{size: 4, ops: list(op{kind: opAdd, dst: tempReg, src: 13},
			op{kind: opAdd, dst: 13, src: 13, imm: -8}, op{kind: opStore, dst: 4, src: tempReg, imm: -8, size: 4},
			op{kind: opStore, dst: 14, src: tempReg, imm: -4, size: 4})}},
		{"bxne lr", elf.EM_ARM, elf.ELFCLASS32, "\x1e\xff\x2f\x11", inst{size: 4, flow: flowReturn, reg: 14, cond: true, condOps: true}},
	} {
		var in inst
		if a := archOf(test.machine, test.class, binary.LittleEndian); !a.decode(a, []byte(test.code), pc, &in) || !reflect.DeepEqual(in, test.want) {
			t.Errorf("%s: %+v, want %+v", test.name, in, test.want)
		}
	}
}
