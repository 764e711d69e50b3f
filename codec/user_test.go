package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

var tags = []codec.Tag{codec.TagAddress, codec.TagTime, codec.TagThread, codec.TagSequence, codec.TagEvent, codec.TagOldAddress}

// user returns user fields; pairs are tag, value, tag, value.
func user(pairs ...uint64) *codec.User {
	u := new(codec.User)
	for i := 0; i < len(pairs); i += 2 {
		u.Set(codec.Tag(pairs[i]), pairs[i+1])
	}
	return u
}

var userTests = []struct {
	name, bits string // after an empty stack of size 1
	want       *codec.User
	written    bool // the encoder writes the same bits
}{
	{"none", "", user(), true},
	{"address 0x2000", "0001. 001110. 10000000000000.", user(1, 0x2000), true},
	{"value 0 has one bit", "0011. 000001. 0.", user(3, 0), true},
	{"value of 64 bits has count 0", "0010. 000000. 1" + strings.Repeat("0", 63) + ".", user(2, 1<<63), true},
	{"value of 33 bits", "0010. 100001. 1" + strings.Repeat("0", 31) + "1.", user(2, 1<<32|1), true},
	{"two, in the order of tags", "0001. 000001. 1.  0101. 000010. 10.", user(1, 1, 5, 2), true},
	{"two, in another order", "0101. 000010. 10.  0001. 000001. 1.", user(1, 1, 5, 2), false},
	{"a tag twice: the first counts", "0001. 000001. 1.  0001. 000010. 10.", user(1, 1), false},
	{"an unknown tag is skipped", "1111. 000011. 111.  0001. 000001. 1.", user(1, 1), false},
	{"what follows tag 0 is not read", "0001. 000001. 1.  0000.  0101. 000010. 10.", user(1, 1), false},
	{"spill bits are ignored", "00011 0000011 11", user(1, 1), false},
}

func TestUserFields(t *testing.T) {
	for _, tt := range userTests {
		t.Run(tt.name, func(t *testing.T) {
			blob := blobOf(t, "00000. 000001. 1. "+tt.bits, 0)
			var s codec.Stack
			u := user(4, 99) // must not remain
			if err := (codec.Decoder{}).Decode(&s, u, blob); err != nil {
				t.Fatal(err)
			}
			wantStack(t, &s, stackOf(1))
			if *u != *tt.want {
				t.Errorf("got %v, want %v", u, tt.want)
			}
			if !tt.written {
				return
			}
			got, err := codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(nil, stackOf(1), tt.want)
			if err != nil || !bytes.Equal(got, blob) {
				t.Errorf("encoded %x, %v; want %x", got, err, blob)
			}
		})
	}
}

func TestUserFieldsRejected(t *testing.T) {
	for _, tt := range []struct {
		name, bits string
		off        int
	}{
		{"no count after a tag", "0001. 00", 15},
		{"no value after a count", "0001. 000111. 1", 15},
		{"the second is cut", "0001. 000001. 1.  0010. 011111. 1", 29},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s codec.Stack
			u := user(1, 1)
			err := codec.Decoder{}.Decode(&s, u, blobOf(t, "00000. 000001. 1. "+tt.bits, 0))
			wantError(t, err, "truncated", tt.off, "BT-UF-2")
			if *u != (codec.User{}) || len(s.PCs) != 0 || s.Size != 0 {
				t.Errorf("values beside a rejection: %v, %v", u, s)
			}
		})
	}
}

func drawUser(t *rapid.T) *codec.User {
	u := new(codec.User)
	for _, tag := range tags {
		if rapid.Bool().Draw(t, tag.String()) {
			u.Set(tag, rapid.Uint64().Draw(t, "value")>>rapid.IntRange(0, 63).Draw(t, "shift"))
		}
	}
	return u
}

// User fields round-trip, and do not change the result of a decoder that ignores them.
func TestUserFieldsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, search := gentest.Machine().Draw(t, "machine"), gentest.Search().Draw(t, "search")
		stack := gentest.Stack(m.Word()).Draw(t, "stack")
		u := drawUser(t)
		blob, err := codec.Encoder{Machine: m, Search: search}.AppendBlob(nil, &stack, u)
		if err != nil {
			t.Fatal(err)
		}
		if len(blob) > codec.MaxBlobUser {
			t.Fatalf("%d bytes, expected at most %d", len(blob), codec.MaxBlobUser)
		}
		var s codec.Stack
		var got codec.User
		if len(stack.PCs) == 0 && len(blob) >= 48 {
			return // may read as 32 frames (BT-DEPTH-2)
		}
		if err := (codec.Decoder{Word: m.Word()}).Decode(&s, &got, blob); err != nil {
			t.Fatalf("%x: %v", blob, err)
		}
		if got != *u {
			t.Fatalf("%x: got %v, want %v", blob, got, *u)
		}
		plain, err := codec.Encoder{Machine: m, Search: search}.AppendBlob(nil, &stack, nil)
		if err != nil {
			t.Fatal(err)
		}
		var without, with codec.Stack
		if err := errors.Join((codec.Decoder{Word: m.Word()}).Decode(&without, nil, plain), (codec.Decoder{Word: m.Word()}).Decode(&with, nil, blob)); err != nil {
			t.Fatal(err)
		}
		if with.Size != without.Size || len(with.PCs) != len(without.PCs) {
			t.Fatalf("user fields changed the stack: %v, %v", with, without)
		}
	})
}

func TestEvent(t *testing.T) {
	u := user(1, 0x20001000, 2, 1234567, 5, codec.EventFreed)
	blob, err := codec.Encoder{}.AppendBlob(nil, stackOf(0), u)
	if err != nil {
		t.Fatal(err)
	}
	line := codec.AppendEventLine(nil, blob)
	back, err := codec.ParseEventLine(nil, line)
	if err != nil || !bytes.Equal(back, blob) {
		t.Fatalf("%s: %x, %v", line, back, err)
	}
	var s codec.Stack
	var got codec.User
	if err := (codec.Decoder{Word: 32}).DecodeEvent(&s, &got, back); err != nil || got != *u || len(s.PCs) != 0 {
		t.Errorf("%v %v %v", s, got, err)
	}
	_, err = codec.ParseEventLine(nil, []byte("~m#"+string(line[3:])))
	wantError(t, err, "lead-in", 0, "BT-EVT-1")
}

// In an event a depth field of 0 is an empty stack, whatever follows.
func TestEventDepthZero(t *testing.T) {
	deep := blobOf(t, "00000. "+strings.Repeat("0. 000001. 1. ", 32)+"000001. 1.", 0)
	var s codec.Stack
	if err := (codec.Decoder{}).Decode(&s, nil, deep); err != nil || len(s.PCs) != 32 {
		t.Fatalf("as a record: %v, %v", s, err)
	}
	var u codec.User
	// As an event: no frames, a size of 64 bits, and user fields; the sixth has tag 5,
	// is at bit 309, and is truncated.
	wantError(t, codec.Decoder{}.DecodeEvent(&s, &u, deep), "truncated", 309, "BT-UF-2")

	rapid.Check(t, func(t *rapid.T) {
		want := drawUser(t)
		want.Set(codec.TagEvent, codec.EventFreed)
		want.Set(codec.TagAddress, rapid.Uint64().Draw(t, "address"))
		size := rapid.Uint64().Draw(t, "size")
		blob, err := codec.Encoder{}.AppendBlob(nil, stackOf(size), want)
		if err != nil {
			t.Fatal(err)
		}
		var s codec.Stack
		var u codec.User
		if err := (codec.Decoder{}).DecodeEvent(&s, &u, blob); err != nil || len(s.PCs) != 0 || s.Size != size || u != *want {
			t.Fatalf("%x: %v %v %v, want %v", blob, s, u, err, want)
		}
	})
}

func TestEventRejected(t *testing.T) {
	for _, tt := range []struct {
		name   string
		blob   []byte
		reason codec.Reason
		off    int
		clause string
	}{
		{"no user fields", blobOf(t, "00000. 000001. 1.", 0), "event", 15, "BT-EVT-3"},
		{"no address", blobOf(t, "00000. 000001. 1. 0101. 000001. 1.", 0), "event", 15, "BT-EVT-3"},
		{"no event", blobOf(t, "00000. 000001. 1. 0001. 000001. 1.", 0), "event", 15, "BT-EVT-3"},
		{"moved without old address", blobOf(t, "00000. 000001. 1. 0001. 000001. 1. 0101. 000010. 10.", 0), "event", 15, "BT-EVT-3"},
		{"no length", nil, "short", 0, "BT-BLOB-2"},
		{"no metadata", []byte{0, 0}, "empty", 0, "BT-BLOB-4"},
		{"a frame is cut", blobOf(t, "00001. 0. 000011. 1", 0), "truncated", 15, "BT-FIELD-4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, u := readmeStack(), user(1, 1)
			wantError(t, codec.Decoder{}.DecodeEvent(s, u, tt.blob), tt.reason, tt.off, tt.clause)
			if *u != (codec.User{}) || len(s.PCs) != 0 {
				t.Errorf("values beside a rejection: %v, %v", u, s)
			}
		})
	}
}

var headerTests = []struct {
	line string
	want codec.Header
}{
	{"~h#boot", codec.Header{Verb: "boot"}},
	{"~h#boot prog=fw w=32", codec.Header{Verb: "boot", Keys: []codec.HeaderKey{{"prog", "fw"}, {"w", "32"}}}},
	{"~h#boot prog=my%20fw%25%0A", codec.Header{Verb: "boot", Keys: []codec.HeaderKey{{"prog", "my fw%\n"}}}},
	{"~h#begin 3 t=81250000 n=84 b=61234", codec.Header{Verb: "begin", Number: 3, HasNumber: true,
		Keys: []codec.HeaderKey{{"t", "81250000"}, {"n", "84"}, {"b", "61234"}}}},
	{"~h#end 4294967295", codec.Header{Verb: "end", Number: math.MaxUint32, HasNumber: true}},
	{"~h#future key=", codec.Header{Verb: "future", Keys: []codec.HeaderKey{{"key", ""}}}},
	{"~h#future 0 key=", codec.Header{Verb: "future", HasNumber: true, Keys: []codec.HeaderKey{{"key", ""}}}},
	{"~h#map t=5 t=x", codec.Header{Verb: "map", Keys: []codec.HeaderKey{{"t", "5"}, {"t", "x"}}}},
	{"~h#load t=5", codec.Header{Verb: "load", Keys: []codec.HeaderKey{{"t", "5"}}}},
	{"~h#lost n=18446744073709551615", codec.Header{Verb: "lost", Keys: []codec.HeaderKey{{"n", "18446744073709551615"}}}},
}

func TestHeader(t *testing.T) {
	for _, tt := range headerTests {
		for _, end := range []string{"", "\r\n", " \t"} {
			var h codec.Header
			if err := codec.ParseHeader(&h, []byte(tt.line+end)); err != nil {
				t.Errorf("%q: %v", tt.line+end, err)
				continue
			}
			if h.Verb != tt.want.Verb || h.Number != tt.want.Number || h.HasNumber != tt.want.HasNumber || len(h.Keys) != len(tt.want.Keys) {
				t.Errorf("%q: %+v", tt.line, h)
				continue
			}
			for i, k := range h.Keys {
				if k != tt.want.Keys[i] {
					t.Errorf("%q: key %d is %q, want %q", tt.line, i, k, tt.want.Keys[i])
				}
			}
		}
		if got, err := codec.AppendHeader(nil, &tt.want); err != nil || string(got) != tt.line {
			t.Errorf("written %q, %v, want %q", got, err, tt.line)
		}
	}
	h := headerTests[3].want
	if n, ok := h.Uint("n"); n != 84 || !ok {
		t.Errorf("n is %d, %v", n, ok)
	}
	if _, ok := h.Uint("why"); ok {
		t.Error("a missing key has a value")
	}
}

func TestHeaderRejected(t *testing.T) {
	for _, tt := range []struct {
		line   string
		reason codec.Reason
		off    int
	}{
		{"~m#boot", "lead-in", 0},
		{"~h#", "header-line", 3},
		{"~h#Boot", "header-line", 3},
		{"~h#begin", "header-line", 8},
		{"~h#begin x", "header-line", 9},
		{"~h#begin 4294967296", "header-line", 9},
		{"~h#begin 1  n=2", "header-line", 11},
		{"~h#begin 1 n", "header-line", 11},
		{"~h#begin 1 n=", "header-line", 13},
		{"~h#begin 1 n=2x", "header-line", 13},
		{"~h#begin 1 n=18446744073709551616", "header-line", 13},
		{"~h#begin 1,n=2", "header-line", 10},
		{"~h#boot prog=%2", "header-line", 13},
		{"~h#boot prog=a\x01", "header-line", 14},
		{"~h#boot 3", "header-line", 8},
		{"~h#total 3", "header-line", 9},
		{"~h#boot w=16", "header-line", 10},
		{"~h#future 4294967296", "header-line", 10},
		{"~h#future t=x", "header-line", 12},
		{"~h#total t=1 peak=x", "header-line", 18},
	} {
		h := headerTests[3].want
		err := codec.ParseHeader(&h, []byte(tt.line))
		wantError(t, err, tt.reason, tt.off, "BT-HEAD-1")
		if h.Verb != "" || len(h.Keys) != 0 {
			t.Errorf("%q: a value beside a rejection: %+v", tt.line, h)
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := codec.Header{Verb: rapid.SampledFrom([]string{"boot", "map", "begin", "end", "lost", "x"}).Draw(t, "verb")}
		if h.Verb == codec.VerbBegin || h.Verb == codec.VerbEnd {
			h.Number, h.HasNumber = rapid.Uint32().Draw(t, "number"), true
		}
		for range rapid.IntRange(0, 4).Draw(t, "keys") {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: rapid.StringMatching("[a-z]{2}").Draw(t, "key"),
				Value: string(rapid.SliceOf(rapid.Byte()).Draw(t, "value"))})
		}
		line, err := codec.AppendHeader(nil, &h)
		if err != nil {
			t.Fatalf("%+v: %v", h, err)
		}
		var got codec.Header
		if err := codec.ParseHeader(&got, line); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if again, _ := codec.AppendHeader(nil, &got); !bytes.Equal(again, line) || got.Number != h.Number {
			t.Fatalf("%q became %q", line, again)
		}
	})
}

// User fields and events never panic on any input.
func TestNoRecordingPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "data")
		if n := len(data); n >= 2 && rapid.Bool().Draw(t, "right length") {
			data[n-2], data[n-1] = byte(n>>8), byte(n)
		}
		var s codec.Stack
		var u codec.User
		var h codec.Header
		for name, err := range map[string]error{
			"user":   codec.Decoder{}.Decode(&s, &u, data),
			"event":  codec.Decoder{Word: 32}.DecodeEvent(&s, &u, data),
			"header": codec.ParseHeader(&h, append([]byte("~h#"), data...)),
		} {
			var e *codec.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s: %v is no *codec.Error", name, err)
			}
		}
	})
}

func TestEventsDoNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 600)
	s, u := readmeStack(), user(1, 0x20001000, 2, 1<<40, 3, 7, 5, 0)
	got, back := readmeStack(), user()
	blob := make([]byte, 0, 600)
	if n := testing.AllocsPerRun(100, func() {
		b, err := codec.Encoder{}.AppendBlob(blob[:0], s, u)
		if err != nil {
			t.Fatal(err)
		}
		dst = codec.AppendEventLine(dst[:0], b)
		if err := (codec.Decoder{}).DecodeEvent(got, back, b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAppendUser replaces the user fields of blobs of every machine: the stack, its
// marks and the bits up to the size must not change.
func TestAppendUser(t *testing.T) {
	var want, got codec.User
	want.Set(codec.TagAddress, 0xffffffff81234568)
	want.Set(codec.TagSequence, 0)
	var old codec.User
	old.Set(codec.TagThread, 12345)
	pcs := make([]uint64, codec.MaxDepth)
	for i := range pcs {
		pcs[i] = 0x55d412345678 + uint64(i*i*977)
	}
	for _, m := range codec.Machines() {
		for _, depth := range []int{0, 1, 2, 9, 31, 32} {
			s := codec.Stack{PCs: slices.Clone(pcs[:depth]), Size: 7520}
			if m.Word() == 32 {
				for i := range s.PCs {
					s.PCs[i] &= 1<<32 - 1
				}
			}
			plain, err := codec.Encoder{Machine: m}.AppendBlob(nil, &s, nil)
			if err != nil {
				t.Fatal(err)
			}
			had, err := codec.Encoder{Machine: m}.AppendBlob(nil, &s, &old)
			if err != nil {
				t.Fatal(err)
			}
			for _, blob := range [][]byte{plain, had} {
				out, err := codec.AppendUser([]byte("x"), blob, &want)
				if err != nil {
					t.Fatalf("%v, depth %d: %v", m, depth, err)
				}
				out = out[1:]
				var before, after codec.Stack
				if err := (codec.Decoder{}).Decode(&after, &got, out); err != nil {
					t.Fatalf("%v, depth %d: %v", m, depth, err)
				}
				if err := (codec.Decoder{}).Decode(&before, nil, blob); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(before.PCs, after.PCs) || before.Size != after.Size || before.Marks != after.Marks || got != want {
					t.Errorf("%v, depth %d: %v %v, want %v %v", m, depth, after, got, before, want)
				}
				a, err := codec.Decoder{}.AppendFields(nil, blob)
				if err != nil {
					t.Fatal(err)
				}
				b, err := codec.Decoder{}.AppendFields(nil, out)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(a[:len(b)-2], b[:len(b)-2]) {
					t.Errorf("%v, depth %d: fields before the user's differ", m, depth)
				}
			}
		}
	}
	if out, err := codec.AppendUser([]byte("x"), []byte{0, 0}, &want); err == nil || string(out) != "x" {
		t.Errorf("%q, %v", out, err)
	}
}

// A check tells each change of one bit or two in the bits before it, and of its own value. (BT-UF-4)
func TestCheck(t *testing.T) {
	s := codec.Stack{Size: 7520, PCs: []uint64{0x406651, 0x406852, 0x406c1b, 0x406294}}
	var u codec.User
	u.Set(codec.TagAddress, 0x20001000)
	plain, err := codec.Encoder{}.AppendBlob(nil, &s, &u)
	if err != nil {
		t.Fatal(err)
	}
	u.AddCheck()
	blob, err := codec.Encoder{}.AppendBlob(nil, &s, &u)
	if err != nil {
		t.Fatal(err)
	}
	if more := len(blob) - len(plain); more != 3 && more != 4 {
		t.Errorf("a check takes %d bytes", more)
	}
	read := func(b []byte) (codec.User, error) {
		var got codec.User
		err := codec.Decoder{}.Decode(&codec.Stack{}, &got, b)
		return got, err
	}
	if got, err := read(plain); err != nil || got.Check() != codec.CheckNone {
		t.Errorf("without a check: %v, %v", got.Check(), err)
	}
	if got, err := read(blob); err != nil || got.Check() != codec.CheckRight || got != u {
		t.Errorf("with a check: %+v, %v", got, err)
	}
	stack, err := codec.Encoder{}.Bits(&s)
	if err != nil {
		t.Fatal(err)
	}
	bits := stack + 5 + 7 + 30 + 1 // and the address
	for i := range bits {
		for j := i; j < bits; j++ {
			damaged := bytes.Clone(blob)
			damaged[i/8] ^= 0x80 >> (i % 8)
			if j > i {
				damaged[j/8] ^= 0x80 >> (j % 8)
			}
			if bytes.Equal(damaged[:len(plain)-2], blob[:len(plain)-2]) {
				t.Fatal("not damaged")
			}
			if got, err := read(damaged); err == nil && got.Check() == codec.CheckRight {
				t.Errorf("bits %d and %d changed: %+v", i, j, got)
			}
		}
	}
}

// The CRC is that of BT-PLINE-2, whose check value is 0x29b1, here of a blob by hand: the depth, a size, and a check.
func TestCheckValue(t *testing.T) {
	// depth 0, size 1: 000000 0000010 10; tag 7: 01110; then the count and the value
	crc := func(b ...byte) uint16 {
		v := uint16(0xffff)
		for _, c := range b {
			v ^= uint16(c) << 8
			for range 8 {
				v = v<<1 ^ 0x1021*(v>>15)
			}
		}
		return v
	}
	if crc([]byte("123456789")...) != 0x29b1 {
		t.Fatal("the test's CRC is another")
	}
	s := codec.Stack{Size: 1}
	var u codec.User
	u.AddCheck()
	blob, err := codec.Encoder{}.AppendBlob(nil, &s, &u)
	if err != nil {
		t.Fatal(err)
	}
	value := crc(0b00000000, 0b00010100) // the 15 bits of depth and size, and a 0
	want := "00000.0" + "000001.0" + "1.0" + "0111.0" + fmt.Sprintf("%06b.0%b.0", bits.Len16(value), value)
	want = strings.ReplaceAll(want, ".", "")
	got := ""
	for _, b := range blob[:len(blob)-2] {
		got += fmt.Sprintf("%08b", b)
	}
	if !strings.HasPrefix(got, want) || strings.Trim(got[len(want):], "0") != "" {
		t.Errorf("the bits are %s, want %s", got, want)
	}
}
