package naive

import "testing"

// The check values of both CRCs, as catalogues of CRCs have them.
func TestCRCs(t *testing.T) {
	if got := crc16("123456789"); got != 0x29B1 {
		t.Errorf("CRC-16/IBM-3740 %#x, want 0x29b1", got)
	}
	if got := crc32("123456789"); got != 0xCBF43926 {
		t.Errorf("CRC-32/ISO-HDLC %#x, want 0xcbf43926", got)
	}
}
