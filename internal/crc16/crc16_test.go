package crc16

import "testing"

// The check value of the catalogue of CRCs is that of 123456789.
func TestUpdate(t *testing.T) {
	text := []byte("123456789")
	if got := Update(Init, text); got != 0x29b1 {
		t.Errorf("%#x, want 0x29b1", got)
	}
	if got := Update(Update(Init, text[:4]), text[4:]); got != 0x29b1 {
		t.Errorf("in two parts %#x, want 0x29b1", got)
	}
}
