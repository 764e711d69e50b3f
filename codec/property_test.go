package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// encoded is a stack, the machine and search that encoded it, and its blob.
type encoded struct {
	stack   codec.Stack
	machine codec.Machine
	search  codec.Search
	blob    []byte
}

func drawEncoded(t *rapid.T) encoded {
	e := encoded{machine: gentest.Machine().Draw(t, "machine"), search: gentest.Search().Draw(t, "search")}
	e.stack = gentest.Stack(e.machine.Word()).Draw(t, "stack")
	var err error
	if e.blob, err = (codec.Encoder{Machine: e.machine, Search: e.search}).AppendBlob(nil, &e.stack, nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func decode(t *rapid.T, blob []byte, word int) codec.Stack {
	var s codec.Stack
	err := codec.Decoder{Word: word}.Decode(&s, nil, blob)
	if err != nil {
		t.Fatalf("%x: %v", blob, err)
	}
	return s
}

// No reader panics on any input.
func TestNoInputPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "data")
		if n := len(data); n >= 2 && rapid.Bool().Draw(t, "right length") {
			data[n-2], data[n-1] = byte(n>>8), byte(n)
		}
		s := codec.Stack{PCs: []uint64{1, 2, 3}, Size: 4}
		if (codec.Decoder{}).Decode(&s, nil, data) != nil && (len(s.PCs) != 0 || s.Size != 0) {
			t.Fatalf("%x: frames beside the rejection: %x", data, s.PCs)
		}
		for _, read := range []func() error{
			func() error { return codec.Decoder{}.Decode(&s, nil, data) },
			func() error { return codec.Decoder{Word: 32}.Decode(&s, nil, data) },
			func() error { _, err := codec.BlobAtEnd(data); return err },
			func() error { _, err := codec.Decoder{}.AppendFields(nil, data); return err },
			func() error { _, err := codec.Decoder{}.ParseLine(nil, data); return err },
			func() error { _, err := codec.Decoder{Lenient: true}.ParseLine(nil, data); return err },
			func() error { return codec.ParseDecoded(&s, data) },
			func() error { _, _, err := codec.Decoder{}.Salvage(&s, data); return err },
		} {
			err := read()
			var e *codec.Error
			if err != nil && (!errors.As(err, &e) || e.Error() == "" || !slices.Contains(codec.Reasons(), e.Reason)) {
				t.Fatalf("%x: a rejection without a reason: %#v", data, err)
			}
		}
	})
}

// Exact machines lose nothing. On other machines, the low 31 bits of every value are
// right, and the whole value is right unless it is marked lossy. (BT-LOSS-1, BT-LOSS-3)
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoded(t)
		got := decode(t, e.blob, 64)
		if len(got.PCs) != len(e.stack.PCs) {
			t.Fatalf("depth %d, want %d", len(got.PCs), len(e.stack.PCs))
		}
		check := func(what string, got, want uint64, hurt bool) {
			if hurt && e.machine.Lossy() {
				got, want = got&(1<<31-1), want&(1<<31-1)
			}
			if got != want {
				t.Errorf("%s: %#x, want %#x (hurt %v)", what, got, want, hurt)
			}
		}
		for n := range got.PCs {
			check(fmt.Sprint("frame ", n), got.PCs[n], e.stack.PCs[n], got.Marks.Lossy>>n&1 == 1)
		}
		check("size", got.Size, e.stack.Size, got.Marks.LossySize)
	})
}

// Decoding and encoding a blob of an exact encoder again gives the same blob; so does a
// blob of another machine that lost nothing.
func TestCanonicalBlobsEncodeTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoded(t)
		got := decode(t, e.blob, 64)
		if got.Marks.Lossy != 0 || got.Marks.LossySize {
			t.Skip("values were lost")
		}
		again, err := codec.Encoder{Machine: e.machine, Search: e.search}.AppendBlob(nil, &got, nil)
		if err != nil || !bytes.Equal(again, e.blob) {
			t.Fatalf("%x, want %x (%v)", again, e.blob, err)
		}
	})
}

// Search best is never longer than search lws, and the stack decodes unchanged.
func TestBestIsNotLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := gentest.Machine().Draw(t, "machine")
		s := gentest.Stack(m.Word()).Draw(t, "stack")
		best, err1 := codec.Encoder{Machine: m, Search: codec.SearchBest}.Bits(&s)
		lws, err2 := codec.Encoder{Machine: m}.Bits(&s)
		if err1 != nil || err2 != nil || best > lws {
			t.Fatalf("best %d bits (%v), lws %d (%v)", best, err1, lws, err2)
		}
	})
}

// No encoding of a small stack is shorter than that of search best: the test tries
// every form, base, sign and wraparound for every frame, and decodes each.
func TestBestByBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]codec.Machine{codec.MachineExact32, codec.MachineExact64}).Draw(t, "machine")
		s := gentest.Numbers(m.Word(), 5).Draw(t, "stack")
		got, err := codec.Encoder{Machine: m, Search: codec.SearchBest}.Bits(&s)
		if err != nil {
			t.Fatal(err)
		}
		head := 6 + 7 + significant(s.Size) + 1
		if want := head + shortest(t, s, nil, m.Word()); got != want {
			t.Fatalf("%d bits, the shortest way takes %d", got, want)
		}
	})
}

func significant(v uint64) int { return max(1, bits.Len64(v)) }

// shortest tries all forms of frame len(forms) and of the frames after it, and returns
// the fewest bits of the encodings that decode as the stack.
func shortest(t *rapid.T, s codec.Stack, forms []string, word int) int {
	n := len(forms)
	if n == len(s.PCs) {
		return readsAs(t, s, forms)
	}
	best := shortest(t, s, append(forms[:n:n], "0"+"0"+counted(s.PCs[n])), word)
	for base := max(0, n-8); base < n; base++ {
		for sign, d := range []uint64{s.PCs[n] - s.PCs[base], s.PCs[base] - s.PCs[n]} {
			if word == 32 && d>>32 != 0 {
				continue // it wraps, and a reader need not know the word (BT-DELTA-6)
			}
			form := "10" + fmt.Sprintf("%03b0%b0", n-1-base, sign) + counted(d)
			best = min(best, shortest(t, s, append(forms[:n:n], form), word))
		}
	}
	return best
}

func counted(v uint64) string {
	value := fmt.Sprintf("%b", v)
	return fmt.Sprintf("%06b0%s0", len(value)%64, value)
}

// readsAs checks that the forms decode as s, and returns their number of bits.
func readsAs(t *rapid.T, s codec.Stack, forms []string) int {
	text := fmt.Sprintf("%05b0", len(s.PCs))
	n := 0
	for _, f := range forms {
		text += f
		n += len(f)
	}
	if got := decode(t, blobOf(t, text+counted(s.Size), 0), 64); !slices.Equal(got.PCs, s.PCs) || got.Size != s.Size {
		t.Fatalf("%q reads as %x, want %x", forms, got.PCs, s.PCs)
	}
	return n
}

// Conversely, of all blobs with one or two frames and short values, none is shorter
// than the blob that search best makes of its stack.
func TestBestAmongAllSmallBlobs(t *testing.T) {
	const widest = 4 // bits of a value
	var values []string
	for count := 1; count <= widest; count++ {
		for v := range 1 << count {
			values = append(values, fmt.Sprintf("%06b0%0*b0", count, count, v))
		}
	}
	var second []string
	for _, v := range values {
		second = append(second, "00"+v, "10"+"0000"+"00"+v, "10"+"0000"+"10"+v)
	}
	tried := 0
	try := func(text string) {
		var s codec.Stack
		if err := (codec.Decoder{}).Decode(&s, nil, blobOf(t, text, 0)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if n, err := (codec.Encoder{Search: codec.SearchBest}).Bits(&s); err != nil || n > len(text) {
			t.Fatalf("%s, %d bits, reads as %x, which takes %d (%v)", text, len(text), s.PCs, n, err)
		}
		tried++
	}
	for _, first := range values {
		for _, size := range values[:6] {
			try("000010" + "00" + first + size)
			for _, form := range second {
				try("000100" + "00" + first + form + size)
			}
		}
	}
	if tried < 10000 {
		t.Fatalf("only %d blobs were tried", tried)
	}
}

// A blob that lost bytes at its end is rejected, with its old length and with a
// corrected one. Salvage returns the beginning of the stack.
func TestEveryTruncation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoded(t)
		whole := decode(t, e.blob, 64)
		for n := range e.blob {
			cut := e.blob[:n]
			var s codec.Stack
			if err := (codec.Decoder{}).Decode(&s, nil, cut); err == nil && !endsInLength(cut) {
				t.Fatalf("%d bytes of %d are accepted: %x", n, len(e.blob), cut)
			}
			depth, sized, err := codec.Decoder{}.Salvage(&s, cut)
			if endsInLength(cut) {
				continue // random bits that look complete
			}
			if err == nil {
				t.Fatalf("%d bytes of %d are salvaged without an error", n, len(e.blob))
			}
			if len(s.PCs) > len(whole.PCs) || !slices.Equal(s.PCs, whole.PCs[:len(s.PCs)]) {
				t.Fatalf("%d bytes of %d: salvaged %x of %x", n, len(e.blob), s.PCs, whole.PCs)
			}
			if len(s.PCs) > 0 && depth != len(whole.PCs) || sized && s.Size != whole.Size {
				t.Fatalf("%d bytes of %d: depth %d, size %v %d", n, len(e.blob), depth, sized, s.Size)
			}
			if want := marksOf(&whole, len(s.PCs), sized); s.Marks != want {
				t.Fatalf("%d bytes of %d: marks %+v, of the whole %+v", n, len(e.blob), s.Marks, want)
			}
			if n < 2 || len(whole.PCs)%codec.MaxDepth == 0 {
				continue // a depth field of 0 has other readings
			}
			fitted := append(slices.Clone(cut[:n-2]), byte(n>>8), byte(n))
			if err := (codec.Decoder{}).Decode(&s, nil, fitted); err == nil {
				t.Fatalf("%d bytes of %d with a length made to fit are accepted: %x", n, len(e.blob), fitted)
			}
		}
	})
}

// marksOf returns the marks of the first frames of a stack and, if sized, of its size.
func marksOf(s *codec.Stack, frames int, sized bool) codec.Marks {
	first := uint32(1)<<frames - 1
	return codec.Marks{Wide: s.Marks.Wide & first, Wrap: s.Marks.Wrap & first, Zero: s.Marks.Zero & first,
		Lossy: s.Marks.Lossy & first, LossySize: s.Marks.LossySize && sized}
}

func endsInLength(b []byte) bool {
	n := len(b)
	return n >= 2 && int(b[n-2])<<8+int(b[n-1]) == n
}

// Spill bits do not change the stack or its marks. (BT-FIELD-2)
func TestSpillBitsNeverMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoded(t)
		want := decode(t, e.blob, 64)
		other := slices.Clone(e.blob)
		fields, err := codec.Decoder{}.AppendFields(nil, e.blob)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if bit := f.End() - 1; f.Kind != "user bits" && f.Kind != "length" && rapid.Bool().Draw(t, "flip") {
				other[bit/8] ^= 0x80 >> (bit % 8)
			}
		}
		got := decode(t, other, 64)
		if !slices.Equal(got.PCs, want.PCs) || got.Size != want.Size || got.Marks != want.Marks {
			t.Fatalf("%x reads as %v, %x as %v", e.blob, want, other, got)
		}
	})
}

// At word 32, a blob decodes to the values of word 64 modulo 2^32, or is rejected because
// a count is over 32. (BT-DELTA-6, BT-COUNT-4)
func TestWord32IsModulo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blob := smallCounts(t)
		wide, narrow := decode(t, blob, 64), decode(t, blob, 32)
		for n := range wide.PCs {
			wide.PCs[n] %= 1 << 32
		}
		if !slices.Equal(wide.PCs, narrow.PCs) || wide.Size != narrow.Size {
			t.Fatalf("%x at word 32, %x at 64 modulo 2^32", narrow.PCs, wide.PCs)
		}
	})
}

// smallCounts returns a valid blob with counts of up to 32 and deltas that wrap around
// 2^32 and around 0.
func smallCounts(t *rapid.T) []byte {
	depth := rapid.IntRange(0, 31).Draw(t, "depth")
	value := func() string {
		count := rapid.IntRange(1, 32).Draw(t, "count")
		v := rapid.Uint64Range(0, 1<<count-1).Draw(t, "value")
		return fmt.Sprintf("%06b0%0*b0", count, count, v)
	}
	text := fmt.Sprintf("%05b0", depth)
	for n := range depth {
		if n == 0 || rapid.Bool().Draw(t, "literal") {
			text += "00" + value()
			continue
		}
		back := rapid.IntRange(0, min(n-1, 7)).Draw(t, "back")
		text += fmt.Sprintf("10%03b0%d0", back, rapid.IntRange(0, 1).Draw(t, "sign")) + value()
	}
	return blobOf(t, text+value(), 0)
}

// Bits predicts the size of the blob that AppendBlob writes.
func TestPredictedSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoded(t)
		n, err := codec.Encoder{Machine: e.machine, Search: e.search}.Bits(&e.stack)
		if err != nil || (n+7)/8+2 != len(e.blob) {
			t.Fatalf("%d bits, %d bytes predicted (%v), %d written", n, (n+7)/8+2, err, len(e.blob))
		}
		fields, err := codec.Decoder{}.AppendFields(nil, e.blob)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if f.Kind == "size" && f.End() != n {
				t.Fatalf("the size ends at bit %d, predicted %d", f.End(), n)
			}
		}
		if len(e.blob) > codec.MaxBlob {
			t.Fatalf("%d bytes, the most are %d", len(e.blob), codec.MaxBlob)
		}
	})
}

// Both text forms parse to their input, strictly and leniently.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blob := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "blob")
		line := codec.AppendLine([]byte("x"), blob)[1:]
		for _, lenient := range []bool{false, true} {
			if got, err := (codec.Decoder{Lenient: lenient}).ParseLine([]byte("dst"), line); err != nil || !bytes.Equal(got, append([]byte("dst"), blob...)) {
				t.Fatalf("lenient %t: %s reads as %x (%v), want %x", lenient, line, got, err, blob)
			}
		}
		s := gentest.Stack(64).Draw(t, "stack")
		text := codec.AppendDecoded(nil, &s)
		var got codec.Stack
		if err := codec.ParseDecoded(&got, text); err != nil || !slices.Equal(got.PCs, s.PCs) || got.Size != s.Size {
			t.Fatalf("%s reads as %d %x (%v)", text, got.Size, got.PCs, err)
		}
	})
}

// A blob is found from its end, whatever bytes precede it. (BT-BLOB-3)
func TestBlobIsFoundFromItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blob := gentest.Blob().Draw(t, "blob")
		mem := append(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "before"), blob...)
		got, err := codec.BlobAtEnd(mem)
		if err != nil || !bytes.Equal(got, blob) {
			t.Fatalf("%x (%v), want %x", got, err, blob)
		}
	})
}
