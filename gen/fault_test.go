package gen

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// read reads b in the form of f.
func (f Fault) read(b []byte) error {
	var s codec.Stack
	var blob []byte
	var err error
	switch f.Input {
	case Blob:
		return codec.Decoder{Word: f.Word}.Decode(&s, nil, b)
	case Line:
		blob, err = codec.Decoder{}.ParseLine(nil, b)
	case LineLenient:
		blob, err = codec.Decoder{Lenient: true}.ParseLine(nil, b)
	case Decoded:
		return codec.ParseDecoded(&s, b)
	}
	if err != nil {
		return err
	}
	return codec.Decoder{Word: f.Word}.Decode(&s, nil, blob)
}

// Each faulty input is rejected for its reason, and the input that it was made from is accepted.
func TestFaults(t *testing.T) {
	for _, reason := range codec.Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			ways := map[string]bool{}
			for seed := range uint64(2000) {
				f := NewFault(reason, seed)
				ways[f.Input.String()+f.Changed] = true
				if err := f.read(f.Origin); err != nil {
					t.Fatalf("seed %d: origin %x (%v) is rejected: %v", seed, f.Origin, f.Input, err)
				}
				err := f.read(f.Bytes)
				var e *codec.Error
				if !errors.As(err, &e) || e.Reason != reason {
					t.Fatalf("seed %d: %v %x (%s): got %v, want %s", seed, f.Input, f.Bytes, f.Changed, err, reason)
				}
				if g := NewFault(reason, seed); !bytes.Equal(f.Bytes, g.Bytes) {
					t.Fatalf("seed %d gives two faults", seed)
				}
			}
			if len(ways) < 2 && reason != codec.ReasonEmpty && reason != codec.ReasonDeltaFirst && reason != codec.ReasonLeadIn {
				t.Errorf("only %v", ways)
			}
		})
	}
}
