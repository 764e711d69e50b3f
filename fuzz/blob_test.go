package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// bothWays returns data unchanged, and data with a correct length field, which a fuzzer
// rarely finds by itself.
func bothWays(data []byte) [][]byte {
	n := len(data)
	if n < 2 || n > codec.MaxLength {
		return [][]byte{data}
	}
	fitted := slices.Clone(data)
	binary.BigEndian.PutUint16(fitted[n-2:], uint16(n))
	return [][]byte{data, fitted}
}

// FuzzDecode decodes any bytes: the result is a valid stack or a valid rejection, and does
// not depend on the spill bits. Fields follow each other without a gap.
func FuzzDecode(f *testing.F) {
	seed(f, blobSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, blob := range bothWays(data) {
			checkDecode(t, blob)
		}
		if blob, err := codec.BlobAtEnd(data); err == nil && !bytes.HasSuffix(data, blob) {
			t.Fatalf("%x: the blob at the end is %x", data, blob)
		}
	})
}

func checkDecode(t *testing.T, blob []byte) {
	before := slices.Clone(blob)
	var s, narrow codec.Stack
	err := codec.Decoder{}.Decode(&s, nil, blob)
	checkError(t, blob, &s, err)
	checkError(t, blob, &narrow, codec.Decoder{Word: 32}.Decode(&narrow, nil, blob))
	fields, ferr := codec.Decoder{}.AppendFields(nil, blob)
	if (err == nil) != (ferr == nil) {
		t.Fatalf("%x: Decode returns %v, AppendFields %v", blob, err, ferr)
	}
	if err == nil {
		next := 0
		for _, field := range fields {
			if field.Off != next {
				t.Fatalf("%x: %v begins at bit %d, the one before ends at %d", blob, field.Kind, field.Off, next)
			}
			next = field.End()
		}
		if next != 8*len(blob) {
			t.Fatalf("%x: the fields end at bit %d of %d", blob, next, 8*len(blob))
		}
		checkSpills(t, blob, &s, fields)
	}
	var part codec.Stack
	if _, _, err := (codec.Decoder{}).Salvage(&part, blob); err == nil && !equal(&part, &s) {
		t.Fatalf("%x: salvaged %x of %x", blob, part.PCs, s.PCs)
	}
	if !bytes.Equal(before, blob) {
		t.Fatalf("%x was modified", before)
	}
}

// checkError checks that an error is a valid rejection, and that no values are returned with it.
func checkError(t *testing.T, blob []byte, s *codec.Stack, err error) {
	if len(s.PCs) > codec.MaxDepth {
		t.Fatalf("%x: %d frames", blob, len(s.PCs))
	}
	if err == nil {
		return
	}
	var e *codec.Error
	if !errors.As(err, &e) || !slices.Contains(codec.Reasons(), e.Reason) || e.Off < 0 || e.Off > 8*len(blob) {
		t.Fatalf("%x: %#v", blob, err)
	}
	if len(s.PCs) != 0 || s.Size != 0 || s.Marks != (codec.Marks{}) {
		t.Fatalf("%x: error %v, but the stack is %+v", blob, err, s)
	}
}

// checkSpills checks that the result does not change if all spill bits are set, and if all
// are cleared. (BT-FIELD-2)
//
// It skips empty stacks with 8 or more user bits. If such a blob is read as a stack of 32
// frames, its spill bits are bits of values, so changing them can make that reading
// valid. (BT-DEPTH-2)
func checkSpills(t *testing.T, blob []byte, want *codec.Stack, fields []codec.Field) {
	if user := fields[len(fields)-2]; len(want.PCs) == 0 && user.Kind == "user bits" && user.Width >= 8 {
		return
	}
	other := slices.Clone(blob)
	for _, set := range []byte{0xff, 0} {
		for _, field := range fields {
			if field.Kind != "user bits" && field.Kind != "length" {
				bit := field.End() - 1
				other[bit/8] = other[bit/8]&^(0x80>>(bit%8)) | set&(0x80>>(bit%8))
			}
		}
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, other); err != nil || !equal(&s, want) {
			t.Fatalf("%x decodes to %+v; with other spill bits, %x decodes to %+v (%v)", blob, want, other, s, err)
		}
	}
}

func equal(a, b *codec.Stack) bool {
	return slices.Equal(a.PCs, b.PCs) && a.Size == b.Size && a.Marks == b.Marks
}

// FuzzRoundTrip encodes and decodes any stack, for any machine and search: values round-trip,
// except for bits that the machine loses, and the blob has the predicted length.
func FuzzRoundTrip(f *testing.F) {
	seed(f, blobSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m codec.Machine
		var how codec.Search
		var s, got codec.Stack
		gentest.Fill(data, &m, &how, &s)
		gentest.FitTo(&s, m)
		blob, err := codec.Encoder{Machine: m, Search: how}.AppendBlob([]byte("before"), &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		blob = bytes.TrimPrefix(blob, []byte("before"))
		bits, err := codec.Encoder{Machine: m, Search: how}.Bits(&s)
		if err != nil || (bits+7)/8+2 != len(blob) {
			t.Fatalf("%d bytes predicted (%v), %d written", (bits+7)/8+2, err, len(blob))
		}
		if err := (codec.Decoder{}).Decode(&got, nil, blob); err != nil {
			t.Fatalf("%x on %v, %v: %v", s.PCs, m, how, err)
		}
		for n := range s.PCs {
			want, pc := s.PCs[n], got.PCs[n]
			if m.Lossy() && got.Marks.Lossy>>n&1 == 1 {
				want, pc = want&(1<<31-1), pc&(1<<31-1)
			}
			if pc != want {
				t.Fatalf("%v, %v: frame %d is %#x, was %#x", m, how, n, got.PCs[n], s.PCs[n])
			}
		}
		best, err := codec.Encoder{Machine: m, Search: codec.SearchBest}.Bits(&s)
		if err != nil || best > bits {
			t.Fatalf("best takes %d bits (%v), %v %d", best, err, how, bits)
		}
	})
}

// FuzzEncode encodes any stack for every machine and search: the blob is that of testee.py.
func FuzzEncode(f *testing.F) {
	seed(f, blobSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s codec.Stack
		if (codec.Decoder{}).Decode(&s, nil, bothWays(data)[len(bothWays(data))-1]) != nil {
			gentest.Fill(data, &s)
		}
		var list []conformance.Request
		for _, m := range codec.Machines() {
			gentest.FitTo(&s, m) // once a 32-bit machine was tested, the values stay small for the others
			list = appendEncode(list, &s, m)
		}
		gentest.Fill(data, &s)
		for _, m := range []codec.Machine{codec.MachineExact64, codec.MachineWrap64, codec.MachineZero64} {
			list = appendEncode(list, &s, m)
		}
		compareAll(t, list)
	})
}

// appendEncode appends requests to encode a copy of s for the machine, by each search.
func appendEncode(list []conformance.Request, s *codec.Stack, m codec.Machine) []conformance.Request {
	for _, how := range []codec.Search{codec.SearchLws, codec.SearchBest} {
		list = append(list, conformance.Request{Op: "encode", Machine: m, Search: how,
			In: &conformance.Value{Size: s.Size, PCs: slices.Clone(s.PCs)}})
	}
	return list
}
