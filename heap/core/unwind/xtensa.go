package unwind

// xtensaSP is the DWARF number of Xtensa's stack pointer, a1.
const xtensaSP = 1

// stepWindow returns the registers of the caller under Xtensa's windowed ABI. When a window overflows, the processor stores
// a0 to a3 of the caller below the stack pointer of the function that it called. No tables are needed.
//
//	a0    nn aaaaaa aaaaaaaa aaaaaaaa aaaaaaaa    n: size of the window, a: return address without its upper bits
//	sp-16: a0 of the caller, sp-12: a1, sp-8: a2, sp-4: a3
func (w *walker) stepWindow(regs *Regs) (out Regs, ok bool) {
	a0, ok := regs.Get(0)
	sp, known := regs.Get(xtensaSP)
	if !ok || !known || a0>>30 == 0 || a0&0x3fffffff == 0 { // 0 ends a stack
		return out, false
	}
	out.PC = a0&0x3fffffff | regs.PC&0xc0000000
	for i := range 4 {
		v, ok := w.word(w.arch.mask(sp - 16 + 4*uint64(i)))
		if !ok {
			return out, false
		}
		out.Set(i, v)
	}
	return out, true
}
