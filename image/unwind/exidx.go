package unwind

import "sort"

// stepExidx finds the caller's registers by the tables of the Arm exception
// handling ABI (EHABI). EXIDX_CANTUNWIND is no end of the stack: linkers write it
// for all code that was compiled without tables.
func (w *walker) stepExidx(m *Module, look uint64, regs *Regs) (out Regs, ok bool) {
	code := m.exidxEntry(look)
	if code == nil {
		return out, false
	}
	return w.runEHABI(code, regs)
}

const cantUnwind = 1

// exidxEntry returns the unwind instructions for an address, nil if there are none.
func (o *Object) exidxEntry(addr uint64) []byte {
	b, order := o.exidx.data, o.arch.order
	n := len(b) / 8
	start := func(i int) uint64 {
		return o.arch.mask(o.exidx.addr + uint64(i)*8 + uint64(signed(int64(order.Uint32(b[i*8:])&0x7fffffff), 31)))
	}
	i := sort.Search(n, func(i int) bool { return start(i) > addr }) - 1
	if i < 0 || !o.inText(addr) {
		return nil
	}
	word := order.Uint32(b[i*8+4:])
	switch {
	case word == cantUnwind:
		return nil
	case word>>31 == 1:
		if word>>24 != 0x80 {
			return nil
		}
		return []byte{byte(word >> 16), byte(word >> 8), byte(word)}
	}
	table := o.arch.mask(o.exidx.addr + uint64(i)*8 + 4 + uint64(signed(int64(word), 31)))
	return o.extab(table)
}

// extab returns the unwind instructions of an entry in .ARM.extab.
func (o *Object) extab(addr uint64) []byte {
	b := o.bytes(addr, 4)
	if b == nil {
		return nil
	}
	word := o.arch.order.Uint32(b)
	var first []byte
	more := 0
	switch {
	case word>>24 == 0x80: // one word
		return []byte{byte(word >> 16), byte(word >> 8), byte(word)}
	case word>>24 == 0x81, word>>24 == 0x82:
		first, more = []byte{byte(word >> 8), byte(word)}, int(word>>16&0xff)
	case word>>31 == 0: // a personality routine of its own, as of C++; then like 0x81
		addr += 4
		if b = o.bytes(addr, 4); b == nil {
			return nil
		}
		word = o.arch.order.Uint32(b)
		first, more = []byte{byte(word >> 16), byte(word >> 8), byte(word)}, int(word>>24)
	default:
		return nil
	}
	if b = o.bytes(addr+4, more*4); b == nil && more > 0 {
		return nil
	}
	for i := 0; i < more; i++ {
		v := o.arch.order.Uint32(b[i*4:])
		first = append(first, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return first
}

// runEHABI runs unwind instructions: they say what the epilogue would do.
func (w *walker) runEHABI(code []byte, regs *Regs) (out Regs, ok bool) {
	vsp, ok := regs.Get(armSP)
	if !ok {
		return out, false
	}
	out = *regs
	pcSet := false
	pop := func(list uint32, first int) bool {
		newSP, setSP := uint64(0), false
		for r := range 16 {
			if list>>r&1 == 0 {
				continue
			}
			v, ok := w.wordAt(vsp)
			if !ok {
				return false
			}
			vsp = w.arch.mask(vsp + 4)
			n := first + r
			switch n {
			case armSP:
				newSP, setSP = v, true
			case armPC:
				out.PC, pcSet = v, true
			default:
				out.Set(n, v)
			}
		}
		if setSP {
			vsp = newSP
		}
		return true
	}
	for i := 0; i < len(code); i++ {
		b := code[i]
		arg := func() uint32 {
			if i++; i < len(code) {
				return uint32(code[i])
			}
			return 0
		}
		good := true
		switch {
		case b < 0x40:
			vsp += uint64(b&0x3f)<<2 + 4
		case b < 0x80:
			vsp -= uint64(b&0x3f)<<2 + 4
		case b < 0x90:
			mask := uint32(b&15)<<8 | arg()
			if mask == 0 {
				return out, false // refuse to unwind
			}
			good = pop(mask, 4)
		case b < 0xa0:
			v, known := regs.Get(int(b & 15))
			if r := int(b & 15); r != armSP && r != armPC {
				v, known = out.Get(r)
			}
			if !known || b == 0x9d || b == 0x9f {
				return out, false
			}
			vsp = v
		case b < 0xb0:
			list := uint32(1)<<(b&7+1) - 1
			if b&8 != 0 {
				list |= 1 << (armLR - 4)
			}
			good = pop(list, 4)
		case b == 0xb0:
			i = len(code)
		case b == 0xb1:
			good = pop(arg()&15, 0)
		case b == 0xb2:
			v, shift := uint64(0), 0
			for {
				a := arg()
				if shift < 32 {
					v |= uint64(a&0x7f) << shift
				}
				shift += 7
				if a&0x80 == 0 {
					break
				}
			}
			vsp += 0x204 + v<<2
		case b == 0xb3:
			vsp += uint64(arg()&15+1)*8 + 4
		case b == 0xb4: // return address authentication code
			vsp += 4
		case b >= 0xb8 && b < 0xc0:
			vsp += uint64(b&7+1)*8 + 4
		case b == 0xc8, b == 0xc9:
			vsp += uint64(arg()&15+1) * 8
		case b >= 0xd0 && b < 0xd8:
			vsp += uint64(b&7+1) * 8
		case b >= 0xc0 && b < 0xc8: // iWMMXt
			arg()
			return out, false
		default:
			return out, false
		}
		vsp = w.arch.mask(vsp)
		if !good {
			return out, false
		}
	}
	if !pcSet {
		v, known := out.Get(armLR)
		if !known {
			return out, false
		}
		out.PC = v
	}
	for _, r := range []int{0, 1, 2, 3, 12} {
		out.Forget(r)
	}
	out.Set(armSP, vsp)
	return out, true
}
