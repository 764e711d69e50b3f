package unwind

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
)

// maxText limits the number of bytes of code of a file that are searched for calls, and the
// number that are searched for jumps.
const maxText = 128 << 20

// textPart is the number of bytes of code read at a time.
const textPart = 1 << 20

// eachText calls f for the code of the file, up to maxText bytes, in parts. Parts
// overlap by maxCode bytes, so that each instruction is complete in one. f must not
// retain b.
func (o *Object) eachText(f func(b []byte, addr uint64)) {
	left := uint64(maxText)
	buf := make([]byte, textPart+maxCode)
	for _, t := range o.text {
		if n := t.high - t.low; n > left || o.inPLT(t.low) {
			continue
		}
		left -= t.high - t.low
		for at := t.low; at < t.high; at += textPart {
			if b := buf[:min(uint64(len(buf)), t.high-at)]; o.readAt(b, at) {
				f(b, at)
			}
		}
	}
}

// readAt fills b with the file's bytes at a loaded address, and reports whether the
// file has all of them.
func (o *Object) readAt(b []byte, addr uint64) bool {
	for _, l := range o.loads {
		if l.addr <= addr && uint64(len(b)) <= l.size && addr-l.addr <= l.size-uint64(len(b)) {
			n, _ := o.file.ReadAt(b, int64(l.off+addr-l.addr))
			return n == len(b)
		}
	}
	return false
}

// findStarts adds the targets of calls to the known function starts, if the file has no
// symbol table.
func (o *Object) findStarts() {
	if o.called || o.symbols {
		return
	}
	o.called = true
	o.branches(func(_, next, to uint64, kind flow) {
		if kind == flowCall && o.inText(to) && !o.inPLT(to) && to != next {
			o.starts = append(o.starts, to)
		}
	})
	slices.Sort(o.starts)
	o.starts = slices.Compact(o.starts)
}

// branches calls f for the direct jumps and calls in the code, with the address of the next instruction.
// It decodes at every address where an instruction may begin.
func (o *Object) branches(f func(at, next, to uint64, kind flow)) {
	o.eachText(func(b []byte, addr uint64) {
		if o.Machine == elf.EM_X86_64 || o.Machine == elf.EM_386 {
			o.branchesX86(b, addr, f)
			return
		}
		o.eachInst(b, addr, func(at uint64, in *inst) {
			if in.known {
				f(at, at+uint64(in.size), o.arch.addr(in.target), in.flow)
			}
		})
	})
}

// branchesX86 takes all bytes of these values for jumps and calls; if their target is code, this is rarely wrong. On
// x86-64, code whose address an LEA computes also counts as called; it may be the start
// function of a thread:
//
//	call rel32       E8 rel32
//	jmp rel32        E9 rel32
//	jcc rel32        0F 8x rel32
//	lea rel32(%rip)  0100 1R00  8D  00 reg 101  rel32
func (o *Object) branchesX86(b []byte, addr uint64, f func(at, next, to uint64, kind flow)) {
	for i := 0; i+5 <= len(b); i++ {
		kind, at := flowJump, i+2
		switch {
		case b[i] == 0xe8:
			kind, at = flowCall, i+1
		case b[i] == 0xe9:
			at = i + 1
		case b[i] == 0x0f && b[i+1]>>4 == 8:
		case b[i] == 0x8d && i > 0 && b[i+1]&0xc7 == 5 && b[i-1]&0xfb == 0x48 && o.arch.word == 8:
			kind = flowCall
		default:
			continue
		}
		if at+4 <= len(b) {
			next := addr + uint64(at) + 4
			f(addr+uint64(i), next, o.arch.mask(next+uint64(int64(int32(binary.LittleEndian.Uint32(b[at:]))))), kind)
		}
	}
}

// eachInst calls f for each address at which an instruction can be decoded. f must not
// retain in.
func (o *Object) eachInst(b []byte, addr uint64, f func(at uint64, in *inst)) {
	if o.arch.decode == nil {
		return
	}
	var in inst
	step := int(o.arch.step)
	for i := 0; i+step <= len(b); i += step {
		for mode := range o.arch.tag + 1 {
			if mode == 0 && i&3 != 0 && o.Machine == elf.EM_ARM {
				continue
			}
			in = inst{ops: in.ops[:0]}
			if o.arch.decode(o.arch, b[i:min(len(b), i+maxCode)], addr+uint64(i)|mode, &in) {
				f(addr+uint64(i), &in)
			}
		}
	}
}

// jump is a direct jump.
type jump struct{ from, to uint64 }

// jumpsTo returns up to n jumps into the range from low to high from outside of it, one for
// each target, the highest target first.
func (o *Object) jumpsTo(low, high uint64, n int) (list []jump) {
	if !o.jumped {
		o.jumped = true
		o.jumps = o.findJumps()
	}
	i := sort.Search(len(o.jumps), func(i int) bool { return o.jumps[i].to > high })
	for i--; i >= 0 && o.jumps[i].to >= low && len(list) < n; i-- {
		j := o.jumps[i]
		if (j.from < low || j.from > high) && (len(list) == 0 || list[len(list)-1].to != j.to) {
			list = append(list, j)
		}
	}
	return list
}

// maxJumps limits the number of jumps of a file that are stored.
const maxJumps = 1 << 22

// findJumps returns the direct jumps to distant code, sorted by target.
func (o *Object) findJumps() (list []jump) {
	o.branches(func(from, _, to uint64, kind flow) {
		if kind == flowJump && len(list) < maxJumps && (to < from-min(from, 64) || to > from+64) && o.inText(to) {
			list = append(list, jump{from, to})
		}
	})
	slices.SortFunc(list, func(a, b jump) int { return cmp.Compare(a.to, b.to) })
	return list
}

// callTarget returns the target of the call before ra, if the instruction contains it.
func (w *walker) callTarget(ra uint64) (uint64, bool) {
	a := w.arch
	m := w.module(a.addr(ra) - 1)
	if m == nil {
		return 0, false
	}
	thumb := a.machine == elf.EM_ARM && ra&1 != 0
	pc := a.addr(ra) - m.Bias
	back := []uint64{4}
	switch a.machine {
	case elf.EM_X86_64, elf.EM_386:
		back = []uint64{5}
		if b := m.code(pc - 5); len(b) == 0 || b[0] != 0xe8 {
			return 0, false
		}
	case elf.EM_MIPS:
		back = []uint64{8}
	case elf.EM_RISCV:
		if to, ok := w.farCall(m, pc); ok {
			return to, true
		}
		back = []uint64{4, 2}
	case elf.EM_S390:
		return 0, false
	}
	for _, n := range back {
		in, ok := w.decode(m, pc-n, thumb)
		if ok && in.flow == flowCall && (in.size == int(n) || in.delay) {
			return in.target, in.known
		}
	}
	return 0, false
}

// farCall returns the target of a far call on RISC-V, AUIPC and JALR.
func (w *walker) farCall(m *Module, pc uint64) (uint64, bool) {
	b := m.code(pc - 8)
	if len(b) < 8 {
		return 0, false
	}
	hi, lo := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if hi&0x7f != 0x17 || lo&0x707f != 0x67 || hi>>7&31 != lo>>15&31 || lo>>7&31 != 1 {
		return 0, false
	}
	return w.arch.mask(pc - 8 + m.Bias + uint64(int64(int32(hi&0xfffff000))) + uint64(int64(int32(lo)>>20))), true
}
