package codec_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// Each field but the user bits and the length ends with a spill bit, which is 0 in this blob, and which readers ignore. (BT-FIELD-1, BT-FIELD-4)
func TestSpillBits(t *testing.T) {
	blob := unhex(t, readmeHex)
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range fields[:len(fields)-1] {
		changed := append([]byte(nil), blob...)
		changed[(f.End()-1)/8] ^= 0x80 >> ((f.End() - 1) % 8)
		got, err := codec.Decoder{}.AppendFields(nil, changed)
		if err != nil || len(got) != len(fields) {
			t.Fatalf("field %d: %v", i, err)
		}
		for k := range got {
			if fields[k].Spill || got[k].Spill != (k == i) || got[k].Value != fields[k].Value {
				t.Errorf("spill bit of field %d changed: field %d is %+v", i, k, got[k])
			}
		}
	}
}

// The user bits are those from the size to the length. (BT-USER-1)
func TestUserBits(t *testing.T) {
	blob, err := codec.AppendUser(nil, unhex(t, readmeHex), user(1, 0x20001000))
	if err != nil {
		t.Fatal(err)
	}
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		t.Fatal(err)
	}
	f, end := fields[len(fields)-2], 8*(len(blob)-2)
	if f.Kind != "user bits" || f.End() != end || f.Off != fields[len(fields)-3].End() || fields[len(fields)-1].Off != end {
		t.Errorf("%+v, want user bits up to bit %d", f, end)
	}
}

// A frame is written as the delta from the nearest of the eight before it.
func TestNearestOfEight(t *testing.T) {
	for back := 1; back <= 8; back++ {
		s := codec.Stack{Size: 1}
		for i := range uint64(9) {
			s.PCs = append(s.PCs, 0x8000000+i*0x100000)
		}
		s.PCs = append(s.PCs, s.PCs[9-back]+4)
		blob, err := codec.Encoder{}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		fields, _ := codec.Decoder{}.AppendFields(nil, blob)
		if !slices.ContainsFunc(fields, func(f codec.Field) bool { return f.Frame == 9 && f.Kind == "delta" && f.Value == 4 }) {
			t.Errorf("%d frames back: %+v", back, fields)
		}
	}
}

// What stands between and behind the ranges of digits is no digit.
func TestNoDigits(t *testing.T) {
	for _, c := range "/:;<=>?@G`g" {
		var s codec.Stack
		if err := codec.ParseDecoded(&s, []byte("~b#size: 1, 0x8000"+string(c)+"0")); err == nil {
			t.Errorf("0x8000%c0 is accepted as %#x", c, s.PCs)
		}
		if err := codec.ParseDecoded(&s, []byte("~b#size: 1"+string(c)+"0, 0x8000")); err == nil {
			t.Errorf("size 1%c0 is accepted as %d", c, s.Size)
		}
	}
}

// An event has no check: of those with a replaced character, half are accepted, with another value. Of those that
// lost one, none is.
func TestDamagedEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	accepted, lost := 0, 0
	const lines = 4000
	for range lines {
		s := codec.Stack{Size: uint64(8 + r.IntN(500))}
		for range 3 + r.IntN(4) {
			s.PCs = append(s.PCs, uint64(0x8000+2*r.IntN(20000)))
		}
		var u codec.User
		u.Set(codec.TagEvent, codec.EventAllocated)
		u.Set(codec.TagAddress, uint64(0x20000000+8*r.IntN(8192)))
		u.Set(codec.TagTime, uint64(1000000+r.IntN(1<<30)))
		blob, err := codec.Encoder{}.AppendEvent(nil, &s, &u)
		if err != nil {
			t.Fatal(err)
		}
		line := codec.AppendEventLine(nil, blob)
		is := func(line []byte) int {
			blob, err := codec.ParseEventLine(nil, line)
			if err == nil {
				err = codec.Decoder{}.DecodeEvent(&s, &u, blob)
			}
			if err != nil {
				return 0
			}
			return 1
		}
		at := 3 + r.IntN(len(line)-3)
		lost += is(append(append([]byte(nil), line[:at]...), line[at+1:]...))
		for old := line[at]; line[at] == old; {
			line[at] = digits[r.IntN(len(digits))]
		}
		accepted += is(line)
	}
	if lost > 0 || accepted < lines*4/10 || accepted > lines*6/10 {
		t.Errorf("of %d, %d accepted with a replaced character, %d without one", lines, accepted, lost)
	}
}
