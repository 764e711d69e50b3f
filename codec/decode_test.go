package codec_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// readme is the stack of the only correct example in the README of lws.
const (
	readmeHex  = "205d0199442e80d0a48029e485d018a506bac00015"
	readmeLine = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"
	// the same stack, written by lws built with clang, with spill bits set
	clangLine = "~m#JF0BmUQugNCkhSnkhdAYpQa6wAAV"
)

// A blob with spill bits set, as clang's lws writes it, decodes to the same stack.
func TestDecodeSpillOfClang(t *testing.T) {
	blob, err := codec.Decoder{}.ParseLine(nil, []byte(clangLine))
	if err != nil {
		t.Fatal(err)
	}
	var s codec.Stack
	if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
		t.Fatal(err)
	}
	wantStack(t, &s, readmeStack())
}

func readmeStack() *codec.Stack { return stackOf(7520, 0x406651, 0x406852, 0x406c1b, 0x406294) }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// oneLiteral returns the bits of a blob with one literal frame and size 1.
func oneLiteral(count, value string) string {
	return "00001. 0. " + count + ". " + value + ". 000001. 1."
}

var decodeTests = []struct {
	name, bits string
	want       *codec.Stack
}{
	{"no frames, size 0", "00000. 000001. 0.", stackOf(0)},
	{"no frames, size 5", "00000. 000011. 101.", stackOf(5)},
	{"literal of 1 bit", oneLiteral("000001", "1"), stackOf(1, 1)},
	{"literal of 47 bits, one window", oneLiteral("101111", strings.Repeat("10", 23)+"1"), stackOf(1, 0x555555555555)},
	{"literal of 48 bits, the last of one window", oneLiteral("110000", strings.Repeat("10", 24)), stackOf(1, 0xaaaaaaaaaaaa)},
	{"literal of 49 bits, two windows", oneLiteral("110001", strings.Repeat("10", 24)+"1"), stackOf(1, 0x1555555555555)},
	{"literal of 58 bits, three windows", oneLiteral("111010", strings.Repeat("10", 29)), stackOf(1, 0x2aaaaaaaaaaaaaa)},
	{"count 0 is 64", oneLiteral("000000", strings.Repeat("1", 64)), stackOf(1, 1<<64-1)},
	{"more bits than needed", oneLiteral("000100", "0001"), stackOf(1, 1)},
	{"size of 64 bits", "00000. 000000. 1" + strings.Repeat("0", 63) + ".", stackOf(1 << 63)},
	{"delta added", "00010. 0. 000100. 1000. 1. 000. 0. 000010. 11. 000001. 1.", stackOf(1, 8, 11)},
	{"delta subtracted", "00010. 0. 000100. 1000. 1. 000. 1. 000010. 11. 000001. 1.", stackOf(1, 8, 5)},
	{"delta of 42 bits, the last of one window", "00010. 0. 000001. 1. 1. 000. 0. 101010. 1" + strings.Repeat("0", 41) + ". 000001. 1.",
		stackOf(1, 1, 1+1<<41)},
	{"delta of 43 bits, two windows", "00010. 0. 000001. 1. 1. 000. 0. 101011. 1" + strings.Repeat("0", 42) + ". 000001. 1.",
		stackOf(1, 1, 1+1<<42)},
	{"delta of 64 bits", "00010. 0. 000010. 10. 1. 000. 0. 000000. " + strings.Repeat("1", 64) + ". 000001. 1.",
		stackOf(1, 2, 1)},
	{"delta from a delta", "00011. 0. 000100. 1000. 1. 000. 0. 000001. 1. 1. 000. 0. 000001. 1. 000001. 1.",
		stackOf(1, 8, 9, 10)},
	{"below zero is modulo 2^64", "00010. 0. 000001. 1. 1. 000. 1. 000010. 10. 000001. 1.", stackOf(1, 1, 1<<64-1)},
	{"user bits", "00000. 000001. 1. 1111111111", stackOf(1)},
	{"padding that is not zero", "00000. 000001. 1. 1", stackOf(1)},
	{"empty with 40 user bytes that are not 32 frames", "00000. 000001. 1. " + strings.Repeat("1", 320), stackOf(1)},
	{"32 frames", "00000. " + strings.Repeat("0. 000001. 1. ", 32) + "000001. 1.", stackOf(1, ones(32)...)},
	{"31 frames", "11111. " + strings.Repeat("0. 000001. 1. ", 31) + "000001. 1.", stackOf(1, ones(31)...)},
}

func ones(n int) []uint64 {
	pcs := make([]uint64, n)
	for i := range pcs {
		pcs[i] = 1
	}
	return pcs
}

func TestDecode(t *testing.T) {
	for _, tt := range decodeTests {
		for spill := range byte(2) {
			t.Run(fmt.Sprintf("%s, spill %d", tt.name, spill), func(t *testing.T) {
				var s codec.Stack
				if err := (codec.Decoder{}).Decode(&s, nil, blobOf(t, tt.bits, spill)); err != nil {
					t.Fatal(err)
				}
				wantStack(t, &s, tt.want)
			})
		}
	}
}

// Each back from 1 to 8, with nine literals that differ from each other.
func TestDecodeBack(t *testing.T) {
	for back := range 8 {
		bits := "01010. "
		pcs := make([]uint64, 0, 10)
		for n := range 9 {
			bits += fmt.Sprintf("0. 001000. %08b. ", 128+8*n)
			pcs = append(pcs, uint64(128+8*n))
		}
		bits += fmt.Sprintf("1. %03b. 0. 000001. 1. 000001. 1.", back)
		pcs = append(pcs, pcs[8-back]+1)
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, blobOf(t, bits, 0)); err != nil {
			t.Fatal(err)
		}
		wantStack(t, &s, stackOf(1, pcs...))
	}
}

func TestDecodeWord32(t *testing.T) {
	var s codec.Stack
	wraps := blobOf(t, "00010. 0. 000001. 1. 1. 000. 1. 000010. 10. 000001. 1.", 0)
	if err := (codec.Decoder{Word: 32}).Decode(&s, nil, wraps); err != nil {
		t.Fatal(err)
	}
	wantStack(t, &s, stackOf(1, 1, 1<<32-1))

	ok := blobOf(t, oneLiteral("100000", "1"+strings.Repeat("0", 31)), 1)
	if err := (codec.Decoder{Word: 32}).Decode(&s, nil, ok); err != nil {
		t.Fatal(err)
	}
	wantStack(t, &s, stackOf(1, 1<<31))

	wide := blobOf(t, oneLiteral("100001", "1"+strings.Repeat("0", 32)), 0)
	wantError(t, codec.Decoder{Word: 32}.Decode(&s, nil, wide), "count", 8, "BT-COUNT-4")
	wide = blobOf(t, "00000. 100001. 1"+strings.Repeat("0", 32)+".", 0)
	wantError(t, codec.Decoder{Word: 32}.Decode(&s, nil, wide), "count", 6, "BT-COUNT-4")
}

func TestDecodeRejects(t *testing.T) {
	tests := []struct {
		name   string
		blob   []byte
		reason codec.Reason
		off    int
		clause string
	}{
		{"nothing", nil, "short", 0, "BT-BLOB-2"},
		{"one byte", []byte{0}, "short", 0, "BT-BLOB-2"},
		{"no metadata", []byte{0, 0}, "empty", 0, "BT-BLOB-4"},
		{"length 1", []byte{0, 1}, "length", 0, "BT-BLOB-2"},
		{"length that excludes itself", []byte{0x00, 0x10, 0x00, 0x02}, "length", 16, "BT-BLOB-2"},
		{"length with its bytes swapped", []byte{0x00, 0x10, 0x04, 0x00}, "length", 16, "BT-BLOB-2"},
		{"nothing but a length", []byte{0, 2}, "truncated", 0, "BT-FIELD-4"},
		{"frame 0 a delta", blobOf(t, "00001. 1. 000. 0. 000001. 1. 000001. 0.", 0), "delta-first", 6, "BT-DELTA-4"},
		{"frame 1 from two back", blobOf(t, "00010. 0. 000001. 1. 1. 001. 0. 000001. 1. 000001. 0.", 0),
			"back", 6 + 11 + 2, "BT-DELTA-5"},
		{"count cut", blobOf(t, "00001. 0. 000010. 10. 00", 0), "truncated", 18, "BT-FIELD-4"},
		{"size cut", blobOf(t, "00000. 000011. 110", 0), "truncated", 13, "BT-FIELD-4"},
		{"value without its spill bit", blobOf(t, "00000. 000011. 000", 0), "truncated", 13, "BT-FIELD-4"},
		{"depth 0, neither way, short", blobOf(t, "00000. 111111. 1", 0), "truncated", 13, "BT-FIELD-4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := readmeStack()
			wantError(t, codec.Decoder{}.Decode(s, nil, tt.blob), tt.reason, tt.off, tt.clause)
			if len(s.PCs) != 0 || s.Size != 0 {
				t.Errorf("values returned with the error: %v", s)
			}
		})
	}
}

// If a depth field of 0 is valid neither as 0 nor as 32 frames, the number of bytes
// before the length decides which of the two faults is reported. (BT-DEPTH-2)
func TestDecodeDepth0Fault(t *testing.T) {
	// Read as an empty stack: a count of 64 whose value is truncated.
	short := blobOf(t, "00000. 000000. 1111", 0)
	wantError(t, codec.Decoder{}.Decode(new(codec.Stack), nil, short), "truncated", 13, "BT-FIELD-4")

	// At word 32, read as an empty stack: a count of 62. Read as 32 frames: frame 0 is
	// a delta.
	for bytes, reason := range map[int]codec.Reason{45: "count", 46: "delta-first"} {
		bits := "00000. 111110. " + strings.Repeat("1", bytes*8-13)
		wantError(t, codec.Decoder{Word: 32}.Decode(new(codec.Stack), nil, blobOf(t, bits, 0)), reason, 6,
			map[codec.Reason]string{"count": "BT-COUNT-4", "delta-first": "BT-DELTA-4"}[reason])
	}

	// 31 of 32 frames, and a count that is complete if read as an empty stack: empty.
	var s codec.Stack
	cut := blobOf(t, "00000. "+strings.Repeat("0. 000001. 1. ", 31)+"0. 000000. 1111", 0)
	if err := (codec.Decoder{}).Decode(&s, nil, cut); err != nil || len(s.PCs) != 0 {
		t.Errorf("31 of 32 frames also read as an empty stack, got %v, %d frames", err, len(s.PCs))
	}
}

// Every truncation of a blob is rejected, and so is every wrong length.
func TestDecodeTruncations(t *testing.T) {
	blob := unhex(t, readmeHex)
	for n := range len(blob) {
		if err := (codec.Decoder{}).Decode(new(codec.Stack), nil, blob[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(blob))
		}
		// the same bytes with the right length
		cut := append(append([]byte{}, blob[:n]...), 0, byte(n+2))
		if err := (codec.Decoder{}).Decode(new(codec.Stack), nil, cut); n < len(blob)-2 && err == nil {
			t.Errorf("%d bytes of bits with a right length are accepted", n)
		}
	}
	for n := range 1 << 16 {
		bad := append([]byte{}, blob...)
		bad[len(bad)-2], bad[len(bad)-1] = byte(n>>8), byte(n)
		if err := (codec.Decoder{}).Decode(new(codec.Stack), nil, bad); (err == nil) != (n == len(blob)) {
			t.Fatalf("length %d of %d bytes: %v", n, len(blob), err)
		}
	}
}

func TestMarks(t *testing.T) {
	pie := []uint64{0x55d412345678, 0x55d412345600, 0x7f1200000000, 0x400000, 0x401000}
	tests := []struct {
		machine codec.Machine
		want    codec.Marks
	}{
		// with search best, frame 1 is a delta from frame 0, so lossy but not wide; 3
		// and 4 are short
		{codec.MachineExact64, codec.Marks{Wide: 0b00101}},
		{codec.MachineWrap64, codec.Marks{Wide: 0b00101, Wrap: 0b00101, Zero: 0b00100, Lossy: 0b00111}},
		{codec.MachineZero64, codec.Marks{Wide: 0b00101, Wrap: 0b00100, Zero: 0b00101, Lossy: 0b00111}},
	}
	for _, tt := range tests {
		blob, err := codec.Encoder{Machine: tt.machine, Search: codec.SearchBest}.AppendBlob(nil, stackOf(16, pie...), nil)
		if err != nil {
			t.Fatal(err)
		}
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
			t.Fatal(err)
		}
		if s.Marks != tt.want {
			t.Errorf("%v: got %+v, want %+v", tt.machine, s.Marks, tt.want)
		}
		for n, pc := range s.PCs {
			if pc<<33 != pie[n]<<33 {
				t.Errorf("%v: frame %d is %#x, its low 31 bits are not those of %#x", tt.machine, n, pc, pie[n])
			}
		}
	}
}

func TestBlobAtEnd(t *testing.T) {
	blob := unhex(t, readmeHex)
	for junk := range 20 {
		mem := append(make([]byte, junk), blob...)
		got, err := codec.BlobAtEnd(mem)
		if err != nil || len(got) != len(blob) || &got[0] != &mem[junk] {
			t.Errorf("%d bytes before: got %x, %v", junk, got, err)
		}
	}
	for _, tt := range []struct {
		mem    []byte
		reason codec.Reason
		off    int
		clause string
	}{
		{[]byte{7}, "short", 0, "BT-BLOB-2"},
		{[]byte{1, 2, 0, 0}, "empty", 16, "BT-BLOB-4"},
		{[]byte{1, 2, 0, 1}, "length", 16, "BT-BLOB-3"},
		{[]byte{1, 2, 0, 5}, "length", 16, "BT-BLOB-3"},
		{[]byte{1, 2, 255, 255}, "length", 16, "BT-BLOB-3"},
	} {
		_, err := codec.BlobAtEnd(tt.mem)
		wantError(t, err, tt.reason, tt.off, tt.clause)
	}
}

// The fields of a blob cover it without gaps.
func TestAppendFields(t *testing.T) {
	fields, err := codec.Decoder{}.AppendFields(nil, unhex(t, readmeHex))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	pos := 0
	for _, f := range fields {
		if f.Off != pos {
			t.Errorf("%v begins at bit %d, the one before ends at %d", f.Kind, f.Off, pos)
		}
		pos = f.End()
		fmt.Fprintf(&b, "%v:%d ", f.Kind, f.Value)
	}
	// 6 + 33 + 33 + 26 + 33 + 21 bits are 19 bytes: no padding
	want := "depth:4 kind:0 count:23 literal:4220497 kind:0 count:23 literal:4221010 " +
		"kind:1 back:0 sign:0 count:10 delta:969 kind:0 count:23 literal:4219540 " +
		"size count:13 size:7520 length:21 "
	if b.String() != want || pos != 8*21 {
		t.Errorf("to bit %d\ngot  %s\nwant %s", pos, &b, want)
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	blob, line := unhex(t, readmeHex), []byte(readmeLine)
	s := codec.Stack{PCs: make([]uint64, 0, codec.MaxDepth)}
	var out, text []byte
	if n := testing.AllocsPerRun(100, func() {
		if (codec.Decoder{}).Decode(&s, nil, blob) != nil || codec.DecodeLine(&s, line) != nil {
			t.Fatal("rejected")
		}
	}); n != 0 {
		t.Errorf("Decode and DecodeLine allocate %v times", n)
	}
	steps := func() {
		var err1, err2, err3 error
		out, err1 = codec.Decoder{}.ParseLine(out[:0], line)
		text = codec.AppendDecoded(text[:0], &s)
		err2 = codec.ParseDecoded(&s, text)
		out, err3 = codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(out[:0], &s, nil)
		text = codec.AppendLine(text[:0], out)
		if err1 != nil || err2 != nil || err3 != nil || string(text) != readmeLine {
			t.Fatal(err1, err2, err3, string(text))
		}
	}
	steps()
	if n := testing.AllocsPerRun(100, steps); n != 0 {
		t.Errorf("a round through lines and blobs allocates %v times", n)
	}
}

// A blob with 32 frames at word 64 and none at word 32: at either word, AppendFields
// and Decode find the same frames.
func TestFieldsAtBothWords(t *testing.T) {
	blob, err := codec.Decoder{}.ParseLine(nil, []byte("~m#AL39VVVUAABe/qqqqgIigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoiHQAAHE="))
	if err != nil {
		t.Fatal(err)
	}
	for word, depth := range map[int]int{32: 0, 64: 32} {
		var s codec.Stack
		if err := (codec.Decoder{Word: word}).Decode(&s, nil, blob); err != nil || len(s.PCs) != depth {
			t.Errorf("word %d: %d frames, %v; want %d", word, len(s.PCs), err, depth)
		}
		fields, err := codec.Decoder{Word: word}.AppendFields(nil, blob)
		if err != nil {
			t.Errorf("word %d: %v", word, err)
		}
		frames := 0
		for _, f := range fields {
			if f.Kind == "kind" {
				frames++
			}
		}
		if frames != depth {
			t.Errorf("word %d: fields of %d frames, want %d", word, frames, depth)
		}
	}
}
