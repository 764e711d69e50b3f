package unwind

import "sort"

// stepExidx finds the registers of the caller by the tables of the Arm exception handling
// ABI (EHABI). EXIDX_CANTUNWIND does not mark the end of the stack, because linkers write it
// for all code without tables.
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
	case word>>31 == 0: // the function's personality routine, as in C++; then as 0x81
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

// ehabi is the state of running unwind instructions, which describe the epilogue.
type ehabi struct {
	cursor // of the instructions; past the end, all bytes are 0
	w      *walker
	regs   *Regs
	out    Regs
	vsp    uint64
	pcSet  bool
}

// ehabiOps lists the unwind instructions of EHABI, section 10.3, by mask and value of their
// first byte; the first match counts. do reports whether it succeeded.
var ehabiOps = []struct {
	mask, value byte
	do          func(e *ehabi, b byte) bool
}{
	{0xc0, 0x00, func(e *ehabi, b byte) bool { return e.add(int64(b&0x3f)<<2 + 4) }},
	{0xc0, 0x40, func(e *ehabi, b byte) bool { return e.add(-(int64(b&0x3f)<<2 + 4)) }},
	{0xf0, 0x80, func(e *ehabi, b byte) bool {
		list := uint32(b&15)<<8 | uint32(e.u8())
		return list != 0 && e.pop(list, 4) // 0: refuse to unwind
	}},
	{0xfd, 0x9d, nil},
	{0xf0, 0x90, (*ehabi).setSP},
	{0xf8, 0xa0, func(e *ehabi, b byte) bool { return e.pop(uint32(1)<<(b&7+1)-1, 4) }},
	{0xf8, 0xa8, func(e *ehabi, b byte) bool { return e.pop(uint32(1)<<(b&7+1)-1|1<<(armLR-4), 4) }},
	{0xff, 0xb0, func(e *ehabi, _ byte) bool { e.off = len(e.b); return true }},
	{0xff, 0xb1, func(e *ehabi, _ byte) bool { return e.pop(uint32(e.u8()&15), 0) }},
	{0xff, 0xb2, func(e *ehabi, _ byte) bool { return e.add(0x204 + int64(e.uleb())<<2) }},
	{0xff, 0xb3, func(e *ehabi, _ byte) bool { return e.add(int64(e.u8()&15+1)*8 + 4) }},
	{0xff, 0xb4, func(e *ehabi, _ byte) bool { return e.add(4) }}, // return address authentication code
	{0xf8, 0xb8, func(e *ehabi, b byte) bool { return e.add(int64(b&7+1)*8 + 4) }},
	{0xfe, 0xc8, func(e *ehabi, _ byte) bool { return e.add(int64(e.u8()&15+1) * 8) }},
	{0xf8, 0xd0, func(e *ehabi, b byte) bool { return e.add(int64(b&7+1) * 8) }},
}

// runEHABI returns the registers of the caller.
func (w *walker) runEHABI(code []byte, regs *Regs) (out Regs, ok bool) {
	e := ehabi{w: w, regs: regs, out: *regs, cursor: cursor{b: code}}
	if e.vsp, ok = regs.Get(armSP); !ok {
		return out, false
	}
	for e.off < len(e.b) {
		if !e.step() {
			return out, false
		}
	}
	if !e.pcSet {
		if e.out.PC, ok = e.out.Get(armLR); !ok {
			return out, false
		}
	}
	for _, r := range []int{0, 1, 2, 3, 12} {
		e.out.Forget(r)
	}
	e.out.Set(armSP, e.vsp)
	return e.out, true
}

func (e *ehabi) step() bool {
	b := e.u8()
	for i := range ehabiOps {
		if x := &ehabiOps[i]; b&x.mask == x.value {
			return x.do != nil && x.do(e, b)
		}
	}
	return false
}

func (e *ehabi) add(n int64) bool {
	e.vsp = e.w.arch.mask(e.vsp + uint64(n))
	return true
}

// setSP sets the stack pointer to register b&15.
func (e *ehabi) setSP(b byte) bool {
	v, known := e.regs.Get(int(b & 15))
	if r := int(b & 15); r != armSP && r != armPC {
		v, known = e.out.Get(r)
	}
	e.vsp = v
	return known
}

// pop pops the registers of a list from the stack; bit 0 of the list is register first.
func (e *ehabi) pop(list uint32, first int) bool {
	newSP, setSP := uint64(0), false
	for r := range 16 {
		if list>>r&1 == 0 {
			continue
		}
		v, ok := e.w.wordAt(e.vsp)
		if !ok {
			return false
		}
		e.add(4)
		switch n := first + r; n {
		case armSP:
			newSP, setSP = v, true
		case armPC:
			e.out.PC, e.pcSet = v, true
		default:
			e.out.Set(n, v)
		}
	}
	if setSP {
		e.vsp = newSP
	}
	return true
}
