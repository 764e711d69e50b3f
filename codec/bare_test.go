package codec_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// bitsOf converts bits, as SPEC.md draws them, to bytes, padded with zeros.
func bitsOf(t *testing.T, bits string) []byte {
	blob := blobOf(t, bits, 0)
	return blob[:len(blob)-2]
}

var bareTests = []struct {
	name, bits string
	pcs        []uint64
}{
	{"no frames", "00000.", nil},
	{"one", "00001. 0. 000011. 101.", []uint64{5}},
	{"README's", "00100. 0. 010111. 10000000110011001010001. 0. 010111. 10000000110100001010010." +
		"1. 000. 0. 001010. 1111001001. 0. 010111. 10000000110001010010100.", readmeStack().PCs},
	{"bits up to the end of a byte", "00001. 0. 000111. 1000000.", []uint64{64}},
	{"32", "00000. " + strings.Repeat("0. 000001. 1. ", 32), ones(32)},
}

func TestBare(t *testing.T) {
	for _, tt := range bareTests {
		t.Run(tt.name, func(t *testing.T) {
			want := bitsOf(t, tt.bits)
			n := strings.Count(tt.bits, "0") + strings.Count(tt.bits, "1") + strings.Count(tt.bits, ".")
			stack := stackOf(1<<40, tt.pcs...) // the size must not matter
			got, bits, err := codec.Encoder{}.AppendBare([]byte("before"), stack)
			if err != nil || bits != n || !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("got %x, %d bits, %v\nwant %x, %d bits", got, bits, err, want, n)
			}
			for _, after := range [][]byte{nil, {0xff}, bytes.Repeat([]byte{0xff}, 40)} {
				s := readmeStack()
				bits, err := codec.Decoder{}.DecodeBare(s, append(bytes.Clone(want), after...))
				if err != nil || bits != n {
					t.Errorf("%d bytes after: %d bits, %v; want %d", len(after), bits, err, n)
				}
				wantStack(t, s, stackOf(0, tt.pcs...))
			}
		})
	}
}

func TestBareRejects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		b      []byte
		reason codec.Reason
		off    int
		clause string
	}{
		{"nothing", nil, codec.ReasonTruncated, 0, "BT-FIELD-4"},
		{"a frame is missing", bitsOf(t, "00010. 0. 000001. 1. 0. 0000"), codec.ReasonTruncated, 19, "BT-FIELD-4"},
		{"delta first", bitsOf(t, "00001. 1. 000. 0. 000001. 1."), codec.ReasonDeltaFirst, 6, "BT-DELTA-4"},
		{"base before frame 0", bitsOf(t, "00010. 0. 000001. 1. 1. 001. 0. 000001. 1."), codec.ReasonBack, 19, "BT-DELTA-5"},
	} {
		s := readmeStack()
		bits, err := codec.Decoder{}.DecodeBare(s, tt.b)
		wantError(t, err, tt.reason, tt.off, tt.clause)
		if bits != 0 || len(s.PCs) != 0 || s.Size != 0 {
			t.Errorf("%s: %d bits and %v beside the error", tt.name, bits, s)
		}
	}
	if out, _, err := (codec.Encoder{}).AppendBare([]byte("before"), stackOf(0, ones(33)...)); err == nil || string(out) != "before" {
		t.Errorf("33 frames: %q, %v", out, err)
	}
}

// On every machine, a bare stack is a prefix of its blob.
func TestBareBeginsTheBlob(t *testing.T) {
	for _, m := range codec.Machines() {
		s := stackOf(7, 0x7f6d979b, 0x5610d13c, 0x5610d13a, 0x9771324a)
		blob, err := codec.Encoder{Machine: m, Search: codec.SearchBest}.AppendBlob(nil, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		bare, bits, err := codec.Encoder{Machine: m, Search: codec.SearchBest}.AppendBare(nil, s)
		if err != nil || !bytes.Equal(bare[:bits/8], blob[:bits/8]) {
			t.Errorf("%v: %x is not how %x begins (%v)", m, bare, blob, err)
		}
		var back codec.Stack
		if got, err := (codec.Decoder{}).DecodeBare(&back, blob); err != nil || got != bits {
			t.Errorf("%v: the blob's stack takes %d bits, alone %d (%v)", m, got, bits, err)
		}
		wantStack(t, &back, stackOf(0, s.PCs...))
	}
}
