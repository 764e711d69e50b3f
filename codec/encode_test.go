package codec_test

import (
	"bytes"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

func TestAppendBlob(t *testing.T) {
	const ff = 0xffffffffffffffff
	tests := []struct {
		name    string
		machine codec.Machine
		search  codec.Search
		stack   *codec.Stack
		bits    string // dots as 0; * after a field as 1
	}{
		{"size 0 takes one bit", codec.MachineExact64, codec.SearchLws, stackOf(0), "00000. 000001. 0."},
		{"README, lws", codec.MachineWrap64, codec.SearchLws, readmeStack(),
			"00100. 0. 010111. 10000000110011001010001. 0. 010111. 10000000110100001010010." +
				"1. 000. 0. 001010. 1111001001. 0. 010111. 10000000110001010010100. 001101. 1110101100000."},
		{"README, best: frame 0 is a base", codec.MachineWrap64, codec.SearchBest, readmeStack(),
			"00100. 0. 010111. 10000000110011001010001. 1. 000. 0. 001010. 1000000001." +
				"1. 000. 0. 001010. 1111001001. 1. 010. 1. 001010. 1110111101. 001101. 1110101100000."},
		{"an equal base is subtracted, the farthest wins", codec.MachineExact64, codec.SearchLws, stackOf(1, 5, 0x1000, 0x1000, 0x1000),
			"00100. 0. 000011. 101. 0. 001101. 1000000000000. 1. 000. 1. 000001. 0. 1. 001. 1. 000001. 0. 000001. 1."},
		{"nearest is frame 0: lws writes a literal", codec.MachineExact64, codec.SearchLws, stackOf(1, 0x1000, 0x800, 0x1001),
			"00011. 0. 001101. 1000000000000. 0. 001100. 100000000000. 0. 001101. 1000000000001. 000001. 1."},
		{"the delta lws takes is a bit too long", codec.MachineExact64, codec.SearchLws, stackOf(1, 0, 0x800, 0x880),
			"00011. 0. 000001. 0. 0. 001100. 100000000000. 0. 001100. 100010000000. 000001. 1."},
		{"literal and delta equally long: literal", codec.MachineExact64, codec.SearchBest, stackOf(1, 0x100, 0x101+0x20),
			"00010. 0. 001001. 100000000. 0. 001001. 100100001. 000001. 1."},
		{"best goes around 2^64", codec.MachineExact64, codec.SearchBest, stackOf(1, ff-1, 1),
			"00010. 0. 000000. 1111111111111111111111111111111111111111111111111111111111111110." +
				"0. 000001. 1. 000001. 1."},
		{"best goes around 2^64 when it pays", codec.MachineExact64, codec.SearchBest, stackOf(1, 2, ff-1),
			"00010. 0. 000010. 10. 1. 000. 1. 000011. 100. 000001. 1."},
		{"best does not go around 2^32", codec.MachineExact32, codec.SearchBest, stackOf(1, 2, 0xfffffffe),
			"00010. 0. 000010. 10. 0. 100000. 11111111111111111111111111111110. 000001. 1."},
		{"wrap64 loses all but 31 bits", codec.MachineWrap64, codec.SearchLws, stackOf(1, 0x55d412345678),
			"00001. 0. 101111. 101011001111000 1 0010010001101000101011001111000* 000001. 1."},
		{"zero64 too", codec.MachineZero64, codec.SearchLws, stackOf(1, 0x55d412345678),
			"00001. 0. 101111. 000000000000000 1 0010010001101000101011001111000. 000001. 1."},
		{"exact64 does not", codec.MachineExact64, codec.SearchLws, stackOf(1, 0x55d412345678),
			"00001. 0. 101111. 101010111010100 0 0010010001101000101011001111000. 000001. 1."},
		{"wrap32 writes bit 31 into the spill bit", codec.MachineWrap32, codec.SearchLws, stackOf(1, 0x80000001),
			"00001. 0. 100000. 10000000000000000000000000000001* 000001. 1."},
		{"zero32 does not", codec.MachineZero32, codec.SearchLws, stackOf(1, 0x80000001),
			"00001. 0. 100000. 10000000000000000000000000000001. 000001. 1."},
		{"wrap64, 33 bits", codec.MachineWrap64, codec.SearchLws, stackOf(1, 0x100000000),
			"00001. 0. 100001. 0 1 0000000000000000000000000000000* 000001. 1."},
		{"wrap64, 64 bits: bit 63 is as bit 31", codec.MachineWrap64, codec.SearchLws, stackOf(1, 0x8000000000000000),
			"00001. 0. 000000. 1 0000000000000000000000000000000 1 0000000000000000000000000000000* 000001. 1."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := blobOf(t, string(bytes.ReplaceAll([]byte(tt.bits), []byte("*"), []byte("1"))), 0)
			got, err := codec.Encoder{Machine: tt.machine, Search: tt.search}.AppendBlob([]byte("before"), tt.stack, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := append([]byte("before"), set...); !bytes.Equal(got, want) {
				t.Errorf("\ngot  %x\nwant %x", got, want)
			}
			bits, err := codec.Encoder{Machine: tt.machine, Search: tt.search}.Bits(tt.stack)
			if err != nil || (bits+7)/8+2 != len(set) {
				t.Errorf("predicted %d bits, %d bytes (%v), want %d bytes", bits, (bits+7)/8+2, err, len(set))
			}
		})
	}
}

// climb returns MaxDepth addresses, from base up, step apart. The tests choose step so that a
// delta has 5 bits less than a literal.
func climb(base, step uint64) []uint64 {
	pcs := make([]uint64, codec.MaxDepth)
	for n := range pcs {
		pcs[n] = base + uint64(n)*step
	}
	return pcs
}

// The longest blobs, by word and search. (BT-LIM-2)
func TestLongest(t *testing.T) {
	tests := []struct {
		machine codec.Machine
		search  codec.Search
		stack   *codec.Stack
		bits    int
		bytes   int
		line    int
	}{
		{codec.MachineExact32, codec.SearchBest, stackOf(1<<32-1, climb(1<<31, 1<<26)...), 1390, 176, 239},
		{codec.MachineExact32, codec.SearchLws, stackOf(1<<32-1, climb(1<<31, 1<<26)...), 1420, 180, 243},
		{codec.MachineWrap64, codec.SearchBest, stackOf(1<<64-1, climb(1<<63, 1<<58+1)...), 2446, 308, 415},
		{codec.MachineWrap64, codec.SearchLws, stackOf(1<<64-1, climb(1<<63, 1<<58+1)...), 2476, 312, 419},
	}
	for _, tt := range tests {
		bits, err := codec.Encoder{Machine: tt.machine, Search: tt.search}.Bits(tt.stack)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := codec.Encoder{Machine: tt.machine, Search: tt.search}.AppendBlob(nil, tt.stack, nil)
		if err != nil {
			t.Fatal(err)
		}
		line := codec.AppendLine(nil, blob)
		if bits != tt.bits || len(blob) != tt.bytes || len(line) != tt.line {
			t.Errorf("%v %v: %d bits, %d bytes, line of %d; want %d, %d, %d", tt.machine, tt.search,
				bits, len(blob), len(line), tt.bits, tt.bytes, tt.line)
		}
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil || len(s.PCs) != codec.MaxDepth {
			t.Errorf("%v %v: does not decode: %v, %d frames", tt.machine, tt.search, err, len(s.PCs))
		}
	}
}

// The shortest blob has 4 bytes, and MaxBlob and MaxBlobUser are lengths of blobs.
func TestLimitsAreReached(t *testing.T) {
	var all codec.User
	for tag := codec.TagAddress; tag <= codec.TagOldAddress; tag++ {
		all.Set(tag, 1<<64-1)
	}
	longest := stackOf(1<<64-1, climb(1<<63, 1<<58+1)...)
	for _, c := range []struct {
		stack *codec.Stack
		user  *codec.User
		want  int
	}{
		{stackOf(0), nil, 4}, {stackOf(1), nil, 4}, {longest, nil, codec.MaxBlob}, {longest, &all, codec.MaxBlobUser},
	} {
		blob, err := codec.Encoder{Machine: codec.MachineExact64}.AppendBlob(nil, c.stack, c.user)
		if err != nil || len(blob) != c.want {
			t.Errorf("%d frames, size %d: %d bytes (%v), want %d", len(c.stack.PCs), c.stack.Size, len(blob), err, c.want)
		}
	}
}

func TestAppendBlobRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		stack   *codec.Stack
		machine codec.Machine
		want    string
	}{
		"33 frames": {stackOf(1, ones(33)...), codec.MachineExact64,
			"depth is 33, expected at most 32 frames [frames, BT-REJ-2]"},
		"33 bits on a 32-bit machine": {stackOf(1, 1, 1<<32), codec.MachineWrap32,
			"literal of frame 1 is 0x100000000, expected at most 32 bits on wrap32 [word, BT-REJ-2]"},
		"a size of 33 bits": {stackOf(1 << 32), codec.MachineZero32,
			"size is 4294967296, expected at most 32 bits on zero32 [word, BT-REJ-2]"},
	} {
		out, err := codec.Encoder{Machine: tt.machine}.AppendBlob([]byte("before"), tt.stack, nil)
		if err == nil || err.Error() != tt.want || string(out) != "before" {
			t.Errorf("%s: got %q, %v; want %q", name, out, err, tt.want)
		}
		if _, err := (codec.Encoder{Machine: tt.machine, Search: codec.SearchBest}).Bits(tt.stack); err == nil || err.Error() != tt.want {
			t.Errorf("%s: Bits: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, m := range codec.Machines() {
		if got, err := codec.ParseMachine(m.String()); err != nil || got != m {
			t.Errorf("%v reads back as %v, %v", m, got, err)
		}
		want := 32
		if s := m.String(); s[len(s)-2:] == "64" {
			want = 64
		}
		if m.Word() != want {
			t.Errorf("%v has a word of %d bits", m, m.Word())
		}
	}
	if _, err := codec.ParseMachine("vax"); err == nil {
		t.Error("vax is taken for a machine")
	}
	for _, name := range []string{"lws", "best"} {
		if got, err := codec.ParseSearch(name); err != nil || got.String() != name {
			t.Errorf("search %s reads back as %v, %v", name, got, err)
		}
	}
	if _, err := codec.ParseSearch("worst"); err == nil {
		t.Error("worst is taken for a search")
	}
}

// If dst has space for MaxBlob bytes, the blob is written in place, and the bytes
// before it are unchanged.
func TestAppendBlobInPlace(t *testing.T) {
	longest := stackOf(1<<64-1, climb(1<<63, 1<<58+1)...) // MaxBlob
	for _, s := range []*codec.Stack{stackOf(0), stackOf(7520, 0x406651), longest} {
		want, err := codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(nil, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{codec.MaxBlob, codec.MaxBlob + 100, 2 * codec.MaxBlob} {
			dst := append(make([]byte, 0, 3+room), "abc"...)
			var got []byte
			if n := testing.AllocsPerRun(10, func() { got, err = (codec.Encoder{Machine: codec.MachineWrap64}).AppendBlob(dst, s, nil) }); n != 0 {
				t.Errorf("%d frames, room for %d bytes: %v allocations", len(s.PCs), room, n)
			}
			if err != nil || !bytes.Equal(got[3:], want) || string(dst) != "abc" || &got[0] != &dst[0] {
				t.Errorf("%d frames, room for %d bytes: %x %v, want %x", len(s.PCs), room, got, err, want)
			}
		}
	}
}
