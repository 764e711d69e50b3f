package arch

import "encoding/binary"

// callX86 recognizes E8 rel32, into executable parts only, and FF /2: an opcode byte,
// ModRM with reg 2, and the SIB and displacement that ModRM implies.
func callX86(c *Code) bool {
	b := c.Bytes
	n := len(b)
	if n >= 5 && b[n-5] == 0xe8 {
		to := c.Addr + uint64(int64(int32(binary.LittleEndian.Uint32(b[n-4:]))))
		if c.text(to) {
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

// modRMSize returns the length in bytes of ModRM, SIB and displacement.
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

// callAArch64 recognizes BL, into executable parts only, BLR and BLRA*.
func callAArch64(c *Code) bool {
	b := c.Bytes
	if len(b) < 4 || c.Addr&3 != 0 {
		return false
	}
	w := binary.LittleEndian.Uint32(b[len(b)-4:]) // instructions are little-endian always
	switch {
	case w>>26 == 0x25:
		return c.text(c.Addr - 4 + uint64(int64(int32(w<<6)>>4)))
	case w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800:
		return true
	}
	return false
}

// callARM recognizes BL, BLX and, in ARM code, an ADD or MOV to lr before a jump.
func callARM(c *Code) bool {
	b := c.Bytes
	n := len(b)
	if c.Thumb {
		if n >= 4 {
			hi, lo := c.half(b[n-4:]), c.half(b[n-2:])
			if hi>>11 == 0x1e && (lo&0xd000 == 0xd000 || lo&0xd001 == 0xc000) {
				return true
			}
		}
		return n >= 2 && c.half(b[n-2:])&0xff87 == 0x4780 // BLX register
	}
	if n < 4 || c.Addr&3 != 0 {
		return false
	}
	w := c.word(b[n-4:])
	switch {
	case w>>24&0xf == 0xb && w>>28 != 0xf, w>>25 == 0x7d, w&0x0ffffff0 == 0x012fff30:
		return true
	}
	return n >= 8 && c.word(b[n-8:])&0x0fffffff == 0x01a0e00f // MOV lr, pc
}

// callRISCV recognizes JAL and JALR that link to ra or t0, and C.JAL and C.JALR.
func callRISCV(c *Code) bool {
	b := c.Bytes
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
	return h&0xf07f == 0x9002 && h&0x0f80 != 0 || c.Word == 32 && h&0xe003 == 0x2001
}

// callMIPS recognizes JAL, JALR and BAL, each followed by a delay slot.
func callMIPS(c *Code) bool {
	b := c.Bytes
	n := len(b)
	if c.Addr&3 != 0 { // MIPS16 or microMIPS, whose calls are not recognized
		return true
	}
	if n < 8 {
		return false
	}
	w := c.word(b[n-8:])
	return w>>26 == 3 || w>>26 == 0x1d || w&0xfc1f003f == 9 && w>>11&31 == 31 || w&0xfc1f0000 == 0x04110000
}

// callPPC recognizes branches with LK set: b, bc, bclr, bcctr.
func callPPC(c *Code) bool {
	b := c.Bytes
	n := len(b)
	if n < 4 {
		return false
	}
	w := c.word(b[n-4:])
	if w == 0x429f0005 { // bcl to the next instruction, by which code reads its own address
		return false
	}
	op := w >> 26
	return w&1 == 1 && (op == 18 || op == 16 || op == 19 && (w>>1&0x3ff == 16 || w>>1&0x3ff == 528))
}

// callS390 recognizes BRASL, BRAS, BASR and BAS to register 14.
func callS390(c *Code) bool {
	b := c.Bytes
	n := len(b)
	return n >= 6 && b[n-6] == 0xc0 && b[n-5] == 0xe5 ||
		n >= 4 && (b[n-4] == 0xa7 && b[n-3] == 0xe5 || b[n-4] == 0x4d && b[n-3]>>4 == 14) ||
		n >= 2 && b[n-2] == 0x0d && b[n-1]>>4 == 14
}

// callXtensa recognizes CALL0 to CALL12 and CALLX0 to CALLX12, of 3 bytes each, in
// little-endian code, as on ESP chips.
func callXtensa(c *Code) bool {
	b := c.Bytes
	n := len(b)
	if n < 3 {
		return false
	}
	b = b[n-3:]
	return b[0]&0xf == 5 || b[0]&0xf == 0 && b[0]>>6 == 3 && b[1]&0xf0 == 0 && b[2] == 0
}
