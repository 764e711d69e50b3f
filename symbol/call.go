package symbol

import (
	"debug/elf"
	"encoding/binary"
)

// CallAt is an address inside the instruction that a return address is the end
// of: what to look up to name the call and not the line after it.
func (f *File) CallAt(ret uint64) uint64 {
	ret = f.codeAddr(ret)
	switch {
	case ret == 0:
		return 0
	case f.Machine == elf.EM_MIPS && ret%4 == 0 && ret >= 8:
		return ret - 8 // the call, and the instruction in its delay slot
	}
	return ret - 1
}

// CanTellCalls says whether calls are recognised in the file's kind of code.
func (f *File) CanTellCalls() bool {
	_, ok := callTests[f.Machine]
	return ok
}

// FollowsCall says whether the instruction that ends at addr is a call, as
// it is for every return address. For kinds of code it cannot read it says yes.
func (f *File) FollowsCall(addr uint64) bool {
	t, ok := callTests[f.Machine]
	if !ok {
		return true
	}
	thumb := f.Machine == elf.EM_ARM && addr&1 != 0
	addr = f.codeAddr(addr)
	b := f.code(addr, longestCall)
	return t(f, addr, b, thumb)
}

// longestCall is the longest call instruction in bytes: an x86-64 indirect one
// with a prefix, SIB and 32-bit displacement.
const longestCall = 8

// callTest says whether b, the code up to addr, ends with a call.
type callTest func(f *File, addr uint64, b []byte, thumb bool) bool

var callTests = map[elf.Machine]callTest{
	elf.EM_X86_64:  callX86,
	elf.EM_386:     callX86,
	elf.EM_AARCH64: callAArch64,
	elf.EM_ARM:     callARM,
	elf.EM_RISCV:   callRISCV,
	elf.EM_MIPS:    callMIPS,
	elf.EM_PPC:     callPPC,
	elf.EM_PPC64:   callPPC,
	elf.EM_S390:    callS390,
	elf.EM_XTENSA:  callXtensa,
}

// callX86 knows E8 rel32, into executable parts only, and FF /2: an opcode byte,
// ModRM with reg 2, and what that says follows.
func callX86(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	if n >= 5 && b[n-5] == 0xe8 {
		to := addr + uint64(int64(int32(binary.LittleEndian.Uint32(b[n-4:]))))
		if f.Word == 32 {
			to = uint64(uint32(to))
		}
		if f.Text(to) {
			return true
		}
	}
	for size := 2; size <= 7 && size <= n; size++ {
		if b[n-size] == 0xff && b[n-size+1]>>3&7 == 2 && size == 1+modRMSize(b[n-size+1:]) {
			return true
		}
	}
	return false
}

// modRMSize is the length in bytes of ModRM, SIB and displacement.
func modRMSize(b []byte) int {
	mod, rm, size := b[0]>>6, b[0]&7, 1
	if mod == 3 {
		return size
	}
	if rm == 4 { // SIB
		size++
		if len(b) > 1 && mod == 0 && b[1]&7 == 5 {
			return size + 4
		}
	}
	switch {
	case mod == 1:
		return size + 1
	case mod == 2, rm == 5:
		return size + 4
	}
	return size
}

// callAArch64 knows BL, into executable parts only, BLR and BLRA*.
func callAArch64(f *File, addr uint64, b []byte, _ bool) bool {
	if len(b) < 4 || addr&3 != 0 {
		return false
	}
	w := binary.LittleEndian.Uint32(b[len(b)-4:]) // instructions are little-endian always
	switch {
	case w>>26 == 0x25:
		return f.Text(addr - 4 + uint64(int64(int32(w<<6)>>4)))
	case w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800:
		return true
	}
	return false
}

// callARM knows BL, BLX and, in ARM code, an ADD or MOV to lr before a jump.
func callARM(f *File, addr uint64, b []byte, thumb bool) bool {
	n := len(b)
	if thumb {
		if n >= 4 {
			hi, lo := f.half(b[n-4:]), f.half(b[n-2:])
			if hi>>11 == 0x1e && (lo&0xd000 == 0xd000 || lo&0xd001 == 0xc000) {
				return true
			}
		}
		return n >= 2 && f.half(b[n-2:])&0xff87 == 0x4780 // BLX register
	}
	if n < 4 || addr&3 != 0 {
		return false
	}
	w := f.word(b[n-4:])
	switch {
	case w>>24&0xf == 0xb && w>>28 != 0xf, w>>25 == 0x7d, w&0x0ffffff0 == 0x012fff30:
		return true
	}
	return n >= 8 && f.word(b[n-8:])&0x0fffffff == 0x01a0e00f // MOV lr, pc
}

// callRISCV knows JAL and JALR that link to ra or t0, and C.JAL and C.JALR.
func callRISCV(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	if n >= 4 {
		w := binary.LittleEndian.Uint32(b[n-4:])
		rd := w >> 7 & 31
		if (rd == 1 || rd == 5) && (w&0x7f == 0x6f || w&0x707f == 0x67) {
			return true
		}
	}
	if n < 2 {
		return false
	}
	h := binary.LittleEndian.Uint16(b[n-2:])
	return h&0xf07f == 0x9002 && h&0x0f80 != 0 || f.Word == 32 && h&0xe003 == 0x2001
}

// callMIPS knows JAL, JALR and BAL, which an instruction more follows.
func callMIPS(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	if addr&3 != 0 { // MIPS16 and microMIPS are not told
		return true
	}
	if n < 8 {
		return false
	}
	w := f.word(b[n-8:])
	return w>>26 == 3 || w>>26 == 0x1d || w&0xfc1f003f == 9 && w>>11&31 == 31 || w&0xfc1f0000 == 0x04110000
}

// callPPC knows branches with LK set: b, bc, bclr, bcctr.
func callPPC(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	if n < 4 {
		return false
	}
	w := f.word(b[n-4:])
	if w == 0x429f0005 { // how code asks where it is: bcl to the next instruction
		return false
	}
	op := w >> 26
	return w&1 == 1 && (op == 18 || op == 16 || op == 19 && (w>>1&0x3ff == 16 || w>>1&0x3ff == 528))
}

// callS390 knows BRASL, BRAS, BASR and BAS to register 14.
func callS390(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	return n >= 6 && b[n-6] == 0xc0 && b[n-5] == 0xe5 ||
		n >= 4 && (b[n-4] == 0xa7 && b[n-3] == 0xe5 || b[n-4] == 0x4d && b[n-3]>>4 == 14) ||
		n >= 2 && b[n-2] == 0x0d && b[n-1]>>4 == 14
}

// callXtensa knows CALL0 to CALL12 and CALLX0 to CALLX12, of 3 bytes each, in
// little-endian code, which is all that ESP chips run.
func callXtensa(f *File, addr uint64, b []byte, _ bool) bool {
	n := len(b)
	if n < 3 {
		return false
	}
	b = b[n-3:]
	return b[0]&0xf == 5 || b[0]&0xf == 0 && b[0]>>6 == 3 && b[1]&0xf0 == 0 && b[2] == 0
}

func (f *File) word(b []byte) uint32 {
	if f.order {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (f *File) half(b []byte) uint16 {
	if f.order {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

// callSet is every address of a file that follows a call, by its offset in a page.
type callSet struct {
	n       int                // return addresses there could be
	density float64            // of them, among the addresses that code can have
	page    [pageSize][]uint64 // addresses, by their low 12 bits
}

// pageSize is the alignment of a load base that can be relied on.
const pageSize = 1 << 12

// findCalls looks through all code for calls.
func (f *File) findCalls() *callSet {
	s := &callSet{}
	t, ok := callTests[f.Machine]
	if !ok || f.image == nil {
		return s
	}
	step, thumb := uint64(1), false
	switch f.Machine {
	case elf.EM_AARCH64, elf.EM_MIPS, elf.EM_PPC, elf.EM_PPC64:
		step = 4
	case elf.EM_ARM, elf.EM_RISCV, elf.EM_S390:
		step = 2
	}
	places := uint64(0)
	for _, seg := range f.text {
		b := f.bytesAt(seg.off, seg.size)
		places += uint64(len(b)) / step
		for end := step; end <= uint64(len(b)); end += step {
			addr := seg.addr + end
			code := b[max(end, longestCall)-longestCall : end]
			hit := t(f, addr, code, thumb)
			if !hit && f.Machine == elf.EM_ARM {
				hit = t(f, addr, code, true)
			}
			if hit {
				s.n++
				s.page[addr%pageSize] = append(s.page[addr%pageSize], addr)
			}
		}
	}
	s.density = float64(s.n) / float64(max(places, 1))
	return s
}
