package cli

import "testing"

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "64": 64, "0x10": 16, "1K": 1024, "2k": 2048, "3KiB": 3072, "1MB": 1 << 20, "5G": 5 << 30, "2T": 2 << 40,
		"17179869183G": 17179869183 << 30, "18446744073709551615": 1<<64 - 1} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "K", "-1", "1.5K", "1KK", "1P", "17179869184G", "18446744073709551616", "1 K", "K1"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q: %d, expected an error", s, got)
		}
	}
}
