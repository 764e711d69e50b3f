package fuzz

import (
	"bytes"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// FuzzLine reads any line in its forms, as testee.py does, and writes accepted ones again.
func FuzzLine(f *testing.F) {
	seed(f, lineSeeds(f))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, lenient := range []bool{false, true} {
			checkLine(t, line, lenient)
		}
		checkDecoded(t, line)
	})
}

func checkLine(t *testing.T, line []byte, lenient bool) {
	compareOperation(t, conformance.Request{Op: "mline", Data: line, Lenient: lenient})
	blob, err := codec.Decoder{Lenient: lenient}.ParseLine([]byte("x"), line)
	if err != nil {
		if string(blob) != "x" {
			t.Fatalf("%q: error %v, but the slice is %q", line, err, blob)
		}
		return
	}
	again := compareOperation(t, conformance.Request{Op: "format", Data: blob[1:]}).Data
	if !lenient && !bytes.Equal(again, line) {
		t.Fatalf("%q is written again as %q", line, again)
	}
}

func checkDecoded(t *testing.T, line []byte) {
	if compareOperation(t, conformance.Request{Op: "bline", Data: line}).Outcome != conformance.OK {
		return
	}
	var s, again codec.Stack
	if err := codec.ParseDecoded(&s, line); err != nil {
		t.Fatal(err)
	}
	text := compareOperation(t, conformance.Request{Op: "format", In: &conformance.Value{Size: s.Size, PCs: s.PCs}}).Data
	if err := codec.ParseDecoded(&again, text); err != nil || !equal(&s, &again) {
		t.Fatalf("%q reads as %d %x (%v)", text, again.Size, again.PCs, err)
	}
}
