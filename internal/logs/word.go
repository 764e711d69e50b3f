package logs

import (
	"fmt"

	"github.com/lwsbt/lwsbt/dump"
)

// word is how many bits the addresses of the current boot have, as far as the log tells.
type word struct {
	bits   int // 0 if it is not known
	by     string
	wide   int  // records so far, all of whose addresses pass 32 bits
	narrow bool // there was another one
}

// minWide is how many records in a row, from a boot on, have to have no address that
// fits 32 bits: one can be damage.
const minWide = 3

// boot takes a line ~h#boot. (BT-HEAD-2)
func (w *word) boot(rec *dump.Record) {
	*w = word{}
	if n, _ := rec.Header.Uint("w"); n == 32 || n == 64 {
		w.bits, w.by = int(n), fmt.Sprintf("w=%d at %s:%d", n, rec.File, rec.Line)
	}
}

// record takes a record.
func (w *word) record(rec *dump.Record) {
	if w.bits != 0 || w.narrow || len(rec.Stack.PCs) == 0 {
		return
	}
	for i, pc := range rec.Stack.PCs {
		if pc < 1<<32 && rec.Stack.Marks.Lossy>>i&1 == 0 {
			w.narrow = true
			return
		}
	}
	if w.wide++; w.wide == minWide {
		w.bits, w.by = 64, fmt.Sprintf("all addresses up to %s:%d are over 32 bits", rec.File, rec.Line)
	}
}

// setWord has files of other addresses refused, once the log tells what it has.
func (r *Reader) setWord() error {
	bits, by := r.wordNow()
	if bits == r.Process.Files.Word() {
		return nil
	}
	if err := r.Process.Files.SetWord(bits, by); err != nil {
		return fmt.Errorf("-e %w", err)
	}
	return nil
}

// wordNow returns what the log tells, or what --machine has set.
func (r *Reader) wordNow() (bits int, by string) {
	switch {
	case r.flags.machSet || r.offset != 0:
		return r.Process.Files.Word(), ""
	case r.word.bits != 0:
		return r.word.bits, r.word.by
	}
	return r.Process.Maps.Word(), "its memory map has addresses over 32 bits"
}

// wordStays reports whether no record that follows in this boot can change the word.
func (r *Reader) wordStays() bool {
	bits, _ := r.wordNow()
	return bits == r.Process.Files.Word() && (r.word.bits != 0 || r.word.narrow || r.flags.machSet || r.offset != 0)
}
