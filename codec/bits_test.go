package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// fataler is a testing.TB or a rapid.TB.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// blobOf returns the blob of bits in the notation of SPEC.md. A dot stands for a spill bit
// of value spill. blobOf adds padding and length.
func blobOf(t fataler, bits string, spill byte) []byte {
	t.Helper()
	var blob []byte
	n := 0
	for _, c := range bits {
		if n%8 == 0 && c != ' ' {
			blob = append(blob, 0)
		}
		var bit byte
		switch c {
		case ' ':
			continue
		case '0':
		case '1':
			bit = 1
		case '.':
			bit = spill
		default:
			t.Fatalf("bits %q: %q is not 0, 1, a dot or a space", bits, c)
		}
		blob[n/8] |= bit << (7 - n%8)
		n++
	}
	return append(blob, byte((len(blob)+2)>>8), byte(len(blob)+2))
}

// stackOf returns a stack; pcs are innermost first.
func stackOf(size uint64, pcs ...uint64) *codec.Stack {
	return &codec.Stack{Size: size, PCs: pcs}
}

func wantStack(t *testing.T, got, want *codec.Stack) {
	t.Helper()
	if g, w := string(codec.AppendDecoded(nil, got)), string(codec.AppendDecoded(nil, want)); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

// wantError fails the test unless err is an *Error with this reason, offset and clause.
func wantError(t *testing.T, err error, reason codec.Reason, off int, clause string) {
	t.Helper()
	e, ok := err.(*codec.Error)
	if !ok {
		t.Fatalf("got %v, want a rejection %s", err, reason)
	}
	if got, want := fmt.Sprint(e.Reason, " at ", e.Off, " ", e.Clause), fmt.Sprint(reason, " at ", off, " ", clause); got != want {
		t.Errorf("got  %s (%v)\nwant %s", got, e, want)
	}
	if !strings.Contains(e.Error(), clause) || !strings.Contains(e.Error(), string(reason)) {
		t.Errorf("%q names not both %s and %s", e, clause, reason)
	}
}
