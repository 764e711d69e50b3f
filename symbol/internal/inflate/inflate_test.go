package inflate

import (
	"bytes"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"testing"
)

// packed compresses data by the standard library.
func packed(data []byte, level int) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, level)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// samples are data of different kind: runs, text with repetitions far and near, noise, and nothing.
func samples() (list [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var text []byte
	for len(text) < 300_000 {
		if n := r.IntN(40); len(text) > 40_000 && n > 3 {
			at := len(text) - 1 - r.IntN(1<<r.IntN(15))
			text = append(text, text[at:min(len(text), at+n)]...)
		} else {
			text = append(text, "etaoin shrdlu"[:1+r.IntN(12)]...)
			text = append(text, byte(r.NormFloat64()*20+128))
		}
	}
	return [][]byte{nil, {0}, bytes.Repeat([]byte("a"), 70_000), bytes.Repeat([]byte("abcdefg"), 5000), noise, text, append(noise, text...)}
}

func levels() []int {
	return []int{zlib.NoCompression, zlib.BestSpeed, 6, zlib.BestCompression, zlib.HuffmanOnly}
}

// Data that the standard library compressed is the same again, in steps of any size.
func TestRoundTrip(t *testing.T) {
	for i, want := range samples() {
		for _, level := range levels() {
			for _, step := range []int{1, 777, 1 << 16} {
				src := packed(want, level)
				r, err := NewReader(src)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(want))
				for n := 0; n < len(want) && err == nil; {
					before := n
					n, err = r.Fill(got, min(n+step, len(want)))
					if err == nil && (n < before+1 || !bytes.Equal(got[before:n], want[before:n])) {
						t.Fatalf("sample %d, level %d, step %d: wrong up to %d", i, level, step, n)
					}
				}
				if err == nil {
					err = r.Check(got)
				}
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("sample %d, level %d, step %d: %v", i, level, step, err)
				}
			}
		}
	}
}

// A stream that is cut, longer than its section, or has another checksum is damaged.
func TestDamaged(t *testing.T) {
	all := func(src []byte, size int) error {
		r, err := NewReader(src)
		if err != nil {
			return err
		}
		dst := make([]byte, size)
		if _, err := r.Fill(dst, size); err != nil {
			return err
		}
		return r.Check(dst)
	}
	data := samples()[5][:5000]
	for _, level := range levels() {
		src := packed(data, level)
		for n := range src {
			if all(src[:n], len(data)) == nil {
				t.Errorf("level %d: cut to %d of %d bytes, and no error", level, n, len(src))
			}
		}
		if all(src, len(data)-1) == nil || all(src, len(data)+1) == nil {
			t.Errorf("level %d: a section of another size, and no error", level)
		}
		src[len(src)-1] ^= 1
		if all(src, len(data)) == nil {
			t.Errorf("level %d: another checksum, and no error", level)
		}
	}
}

// FuzzReader accepts what the standard library accepts, with the same result.
func FuzzReader(f *testing.F) {
	for _, data := range samples() {
		for _, level := range levels() {
			f.Add(packed(data[:min(len(data), 2000)], level))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var want []byte
		theirs, theirErr := zlib.NewReader(bytes.NewReader(src))
		if theirErr == nil {
			want, theirErr = io.ReadAll(io.LimitReader(theirs, 1<<20))
		}
		if len(want) == 1<<20 {
			return
		}
		r, err := NewReader(src)
		if err != nil {
			if theirErr == nil {
				t.Fatalf("%v, but the standard library reads %d bytes", err, len(want))
			}
			return
		}
		got := make([]byte, len(want))
		_, err = r.Fill(got, len(got))
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
		if err == nil {
			err = r.Check(got)
		}
		if err != nil && theirErr == nil {
			t.Fatalf("%v, but the standard library reads %d bytes", err, len(want))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	data := samples()[5]
	src, dst := packed(data, 6), make([]byte, len(data))
	b.Run("inflate", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			r, _ := NewReader(src)
			r.Fill(dst, len(dst))
		}
	})
	b.Run("zlib", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			r, _ := zlib.NewReader(bytes.NewReader(src))
			io.ReadFull(r, dst)
		}
	})
}
