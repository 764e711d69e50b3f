package heaplog

import "fmt"

// word is how many bits the addresses of the current boot have, as far as the log tells.
type word struct {
	bits   int // 0 if it is not known
	by     string
	wide   int  // records so far, all of whose addresses are over 32 bits
	narrow bool // there was another one
}

// minWide is how many records in a row, from a boot on, must have no address that fits 32
// bits: one can be damage.
const minWide = 3

// boot takes a line ~h#boot. (BT-HEAD-2)
func (w *word) boot(it *Item) {
	*w = word{}
	if n, _ := it.Header.Uint("w"); n == 32 || n == 64 {
		w.bits, w.by = int(n), fmt.Sprintf("w=%d at %s:%d", n, it.File, it.Line)
	}
}

// record takes a record.
func (w *word) record(it *Item) {
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
