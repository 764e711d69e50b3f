package gentest

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
)

// Generated values fit the word size.
func TestStackFitsWord(t *testing.T) {
	for _, word := range []int{32, 64} {
		widest := 0
		rapid.Check(t, func(t *rapid.T) {
			s := Stack(word).Draw(t, "stack")
			if len(s.PCs) > codec.MaxDepth {
				t.Fatalf("%d frames", len(s.PCs))
			}
			for _, v := range append(s.PCs, s.Size) {
				if bits.Len64(v) > word {
					t.Fatalf("%#x at word %d", v, word)
				}
				widest = max(widest, bits.Len64(v))
			}
		})
		if widest != word {
			t.Errorf("word %d: no value wider than %d bits", word, widest)
		}
	}
}

// Every record of a log is in its text, in order.
func TestLogHoldsItsRecords(t *testing.T) {
	records := 0
	rapid.Check(t, func(t *rapid.T) {
		l := AnyLog().Draw(t, "log")
		rest := l.Text
		for i, blob := range l.Blobs {
			line := codec.AppendLine(nil, blob)
			at := bytes.Index(rest, line)
			if at < 0 {
				t.Fatalf("record %d, %s, is not in %q", i, line, l.Text)
			}
			rest = rest[at+len(line):]
		}
		records += len(l.Blobs)
	})
	if records == 0 {
		t.Error("no log had a record")
	}
}

// Fill is deterministic and reaches all machines and depths.
func TestFill(t *testing.T) {
	machines, depths := map[codec.Machine]bool{}, map[int]bool{}
	source := rand.NewChaCha8([32]byte{})
	data := make([]byte, 400)
	for range 2000 {
		source.Read(data)
		var m, again codec.Machine
		var s, same codec.Stack
		Fill(data, &m, &s)
		Fill(data, &again, &same)
		if m != again || s.Size != same.Size || len(s.PCs) != len(same.PCs) {
			t.Fatalf("%x fills %v %v, then %v %v", data, m, s, again, same)
		}
		machines[m], depths[len(s.PCs)] = true, true
	}
	if len(machines) != 6 || len(depths) != codec.MaxDepth+1 {
		t.Errorf("2000 inputs reach %d machines and %d depths, want 6 and 33", len(machines), len(depths))
	}
}
