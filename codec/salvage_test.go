package codec_test

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// Salvaging a truncated blob returns a prefix of its stack with every complete frame.
func TestSalvageCuts(t *testing.T) {
	blob, full := unhex(t, readmeHex), readmeStack()
	// the bit after each frame and after the size, counted by hand from SPEC.md
	ends := []int{6 + 33, 6 + 66, 6 + 66 + 26, 6 + 66 + 26 + 33}
	sizeEnd := 6 + 66 + 26 + 33 + 21
	for n := range len(blob) {
		var s codec.Stack
		depth, sized, err := codec.Decoder{}.Salvage(&s, blob[:n])
		if err == nil {
			t.Errorf("%d bytes: no error", n)
		}
		whole := 0
		for _, end := range ends {
			if end <= 8*n {
				whole++
			}
		}
		if n == 0 {
			wantError(t, err, "short", 0, "BT-BLOB-2")
		} else if depth != 4 {
			t.Errorf("%d bytes: depth %d", n, depth)
		}
		if sized != (sizeEnd <= 8*n) || sized && s.Size != full.Size || !sized && s.Size != 0 {
			t.Errorf("%d bytes: size %d, %v", n, s.Size, sized)
		}
		s.Size = 0
		wantStack(t, &s, stackOf(0, full.PCs[:whole]...))
	}
	var s codec.Stack
	if depth, sized, err := (codec.Decoder{}).Salvage(&s, blob); depth != 4 || !sized || err != nil {
		t.Errorf("whole: %d, %v, %v", depth, sized, err)
	}
	wantStack(t, &s, full)
}

func TestSalvageNothing(t *testing.T) {
	frames32 := "00000. " + strings.Repeat("0. 000001. 1. ", 32) + "000001. 1."
	cut := func(bits string, n int) []byte { return blobOf(t, bits, 0)[:n] }
	tests := []struct {
		name   string
		blob   []byte
		reason codec.Reason
	}{
		{"no metadata", []byte{0, 0}, "empty"},
		{"damaged, not cut: right length, delta first", blobOf(t, "00001. 1. 000. 0. 000001. 1. 000001. 0.", 0), "delta-first"},
		{"damaged, not cut: right length, bits run out", blobOf(t, "00011. 0. 000001. 1. 0. 111111. 1", 0), "truncated"},
		{"cut, and delta first", cut("00001. 1. 000. 0. 000001. 1. 000001. 0.", 3), "delta-first"},
		{"cut, and a base before frame 0", cut("00010. 0. 000001. 1. 1. 001. 0. 000001. 1. 000001. 0.", 4), "back"},
		{"depth 0, cut to 11 bytes: empty or 32", cut(frames32, 11), "length"},
		{"depth 0, cut to 40 bytes: empty with user bits or 32", cut(frames32, 40), "length"},
		{"empty with 120 user bits, cut to 15 bytes", cut("00000. 000001. 0. "+strings.Repeat("0", 120), 15), "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := readmeStack()
			_, sized, err := codec.Decoder{}.Salvage(s, tt.blob)
			e, ok := err.(*codec.Error)
			if !ok || e.Reason != tt.reason || sized || len(s.PCs) != 0 || s.Size != 0 {
				t.Errorf("got %v, %v, %v; want nothing and %s", s, sized, err, tt.reason)
			}
		})
	}
}

// A truncated frame does not change the marks of the frames before it.
func TestSalvageKeepsMarks(t *testing.T) {
	// A literal that lost its upper bits, and a delta truncated in its back field. The
	// remaining bits of that field refer to a base before frame 0.
	hurt := "101" + "1" + strings.Repeat("0", 28) + "101"
	cut := blobOf(t, "00011. 0. 100011. "+hurt+". 1. 111.", 0)[:7]
	var s codec.Stack
	depth, sized, err := codec.Decoder{}.Salvage(&s, cut)
	if depth != 3 || sized || err == nil {
		t.Errorf("depth %d, size %v, %v", depth, sized, err)
	}
	wantStack(t, &s, stackOf(0, 0x580000005))
	if want := (codec.Marks{Wide: 1, Wrap: 1, Lossy: 1}); s.Marks != want {
		t.Errorf("marks %+v, want %+v", s.Marks, want)
	}
}
