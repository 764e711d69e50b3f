package unwind

import (
	"bytes"
	"testing"
)

// A number with more bytes than assemblers write ends the table. No limit counts the time to
// read such a number, which would be spent for each frame.
func TestLongNumbers(t *testing.T) {
	for n, bad := range map[int]bool{1: false, 10: false, 16: false, 17: true, 1 << 20: true} {
		b := append(bytes.Repeat([]byte{0x80}, n-1), 0, 7)
		u, s := cursor{b: b}, cursor{b: b}
		if v, w := u.uleb(), s.sleb(); v != 0 || w != 0 || u.bad != bad || s.bad != bad {
			t.Errorf("%d bytes: %d, %v and %d, %v; want 0, %v", n, v, u.bad, w, s.bad, bad)
		}
		if u.off > 32 || s.off > 32 {
			t.Errorf("%d bytes: %d and %d were read", n, u.off, s.off)
		}
	}
}
