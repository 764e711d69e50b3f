package process

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec/recording"
)

// Word is the address size of the current boot, as far as the log shows it. The zero Word is
// not known.
type Word struct {
	bits   int // 0 if it is not known
	by     string
	wide   int  // number of records so far, if all their addresses are over 32 bits
	narrow bool // a record had an address of at most 32 bits
}

// minWide is the number of records at the start of a boot that must have only addresses
// over 32 bits. A single record could be damaged.
const minWide = 3

// Boot takes a ~h#boot line. (BT-HEAD-2)
func (w *Word) Boot(it *recording.Item) {
	*w = Word{}
	if n, _ := it.Header.Uint("w"); n == 32 || n == 64 {
		w.bits, w.by = int(n), fmt.Sprintf("w=%d at %s:%d", n, it.File, it.Line)
	}
}

// Record takes a record with a stack.
func (w *Word) Record(it *recording.Item) {
	s := it.Stack
	if w.bits != 0 || w.narrow || len(s.PCs) == 0 {
		return
	}
	for i, pc := range s.PCs {
		if pc < 1<<32 && s.Marks.Lossy>>i&1 == 0 {
			w.narrow = true
			return
		}
	}
	if w.wide++; w.wide == minWide {
		w.bits, w.by = 64, fmt.Sprintf("all addresses up to %s:%d are over 32 bits", it.File, it.Line)
	}
}

// Accept sets the address size of a process. It returns an error if one of its ELF files has
// another.
func (w *Word) Accept(p *Process) error {
	bits, by := w.bits, w.by
	if bits == 0 {
		bits, by = p.MapWord(), "its memory map has addresses over 32 bits"
	}
	return p.SetWord(bits, by)
}
