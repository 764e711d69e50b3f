package fuzz

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// FuzzLine reads any line in all three forms, and compares the results with the naive codec.
// Accepted input is written again.
func FuzzLine(f *testing.F) {
	seed(f, lineSeeds(f))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, lenient := range []bool{false, true} {
			compareLine(t, line, lenient)
		}
		compareDecoded(t, line)
	})
}

func compareLine(t *testing.T, line []byte, lenient bool) {
	parse := codec.ParseLine
	if lenient {
		parse = codec.ParseLineLenient
	}
	blob, err := parse([]byte("x"), line)
	want, reason := naive.ParseLine(string(line), lenient)
	if !sameReason(err, reason) {
		t.Fatalf("%q, lenient %v: %v, the naive codec returns %q", line, lenient, err, reason)
	}
	if err != nil {
		if string(blob) != "x" {
			t.Fatalf("%q: error %v, but the slice is %q", line, err, blob)
		}
		return
	}
	if blob = blob[1:]; !bytes.Equal(blob, want) {
		t.Fatalf("%q, lenient %v: %x, by the naive codec %x", line, lenient, blob, want)
	}
	again := codec.AppendLine(nil, blob)
	if !lenient && !bytes.Equal(again, line) {
		t.Fatalf("%q is written again as %q", line, again)
	}
	if string(again) != naiveLine(blob) {
		t.Fatalf("%x is written %q, by the naive codec %q", blob, again, naiveLine(blob))
	}
}

func compareDecoded(t *testing.T, line []byte) {
	var s, again codec.Stack
	err := codec.ParseDecoded(&s, line)
	pcs, size, reason := naive.ParseDecoded(string(line))
	if !sameReason(err, reason) {
		t.Fatalf("%q: %v, the naive codec says %q", line, err, reason)
	}
	if err != nil {
		return
	}
	if !slices.Equal(s.PCs, pcs) || s.Size != size {
		t.Fatalf("%q: %d %x, by the naive codec %d %x", line, s.Size, s.PCs, size, pcs)
	}
	text := codec.AppendDecoded(nil, &s)
	if string(text) != naiveDecoded(pcs, size) {
		t.Fatalf("%x is written %q, by the naive codec %q", pcs, text, naiveDecoded(pcs, size))
	}
	if err := codec.ParseDecoded(&again, text); err != nil || !equal(&s, &again) {
		t.Fatalf("%q reads as %d %x (%v)", text, again.Size, again.PCs, err)
	}
}

func sameReason(err error, reason string) bool {
	var e *codec.Error
	if err == nil {
		return reason == ""
	}
	return errors.As(err, &e) && string(e.Reason) == reason
}
