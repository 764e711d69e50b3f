package corpus

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// Each line of a capture decodes to the true allocation, except for bits that the encoder's
// machine lost: none on i386, all but the low 31 bits on x86-64.
func TestCapturesAreTheirTruth(t *testing.T) {
	for _, name := range Captures() {
		low := uint64(1<<31 - 1)
		if name == "i386sql" {
			low = 1<<32 - 1
		}
		lines := bytes.Split(bytes.TrimSpace(Capture(name)), []byte("\n"))
		truth := Truth(name)
		if len(lines) != len(truth) || len(lines) != 2000 {
			t.Fatalf("%s: %d lines, %d truths, want 2000", name, len(lines), len(truth))
		}
		for i, line := range lines {
			blob, err := codec.Decoder{}.ParseLine(nil, line)
			var s codec.Stack
			if err == nil {
				err = codec.Decoder{}.Decode(&s, nil, blob)
			}
			if err != nil {
				t.Fatalf("%s, line %d: %v", name, i+1, err)
			}
			same := slices.EqualFunc(s.PCs, truth[i].PCs, func(a, b uint64) bool { return a&low == b&low })
			if !same || s.Size != truth[i].Size {
				t.Fatalf("%s, line %d: %d %x, truth %d %x", name, i+1, s.Size, s.PCs, truth[i].Size, truth[i].PCs)
			}
		}
	}
}

// A blob is rejected if and only if its name begins with rejected/REASON/, for that reason.
func TestBlobsAreWhatTheyAreCalled(t *testing.T) {
	blobs := Blobs()
	if len(blobs) == 0 {
		t.Fatal("no blobs")
	}
	seen := map[string]bool{}
	for _, b := range blobs {
		if seen[b.Name] {
			t.Errorf("%s twice", b.Name)
		}
		seen[b.Name] = true
		word := 64
		if strings.Contains(b.Name, "/count/") {
			word = 32
		}
		var s codec.Stack
		err := codec.Decoder{Word: word}.Decode(&s, nil, b.Blob)
		want, rejected := strings.CutPrefix(b.Name, "rejected/")
		if !rejected {
			if err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
			continue
		}
		want, _, _ = strings.Cut(want, "/")
		var e *codec.Error
		if !errors.As(err, &e) || string(e.Reason) != want {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}
