package core

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestOverlaps compares Segments with a map from address to byte.
func TestOverlaps(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var m Image
		want := map[uint64]byte{}
		base := uint64(rnd.IntN(2)) * (1<<64 - 64) // the last piece may end at 2^64
		for range rnd.IntN(12) {
			addr, n := base+uint64(rnd.IntN(48)), rnd.IntN(16)
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(rnd.IntN(255) + 1)
				if _, ok := want[addr+uint64(i)]; !ok {
					want[addr+uint64(i)] = data[i]
				}
			}
			m.add(Segment{Addr: addr, Data: data})
		}
		got, last := 0, uint64(0)
		for i, s := range m.Segments() {
			if i > 0 && s.Addr < last {
				t.Fatalf("seed %d: segment at %#x begins before %#x", seed, s.Addr, last)
			}
			last = s.End()
			for j, b := range s.Data {
				if want[s.Addr+uint64(j)] != b {
					t.Fatalf("seed %d: byte at %#x is %#x, want %#x", seed, s.Addr+uint64(j), b, want[s.Addr+uint64(j)])
				}
				got++
			}
		}
		if got != len(want) {
			t.Fatalf("seed %d: %d bytes, want %d", seed, got, len(want))
		}
		// Read and Bytes return only known bytes.
		for a := base; a < base+64 && a >= base; a++ {
			n := 0
			for want[a+uint64(n)] != 0 && a+uint64(n) >= a {
				n++
			}
			p := make([]byte, 80)
			if k := m.Read(p, a); k != n {
				t.Fatalf("seed %d: Read at %#x: %d bytes, want %d", seed, a, k, n)
			}
			if b, ok := m.Bytes(a, uint64(n)); !ok || !bytes.Equal(b, p[:n]) {
				t.Fatalf("seed %d: Bytes(%#x, %d): %x %v", seed, a, n, b, ok)
			}
			if _, ok := m.Bytes(a, uint64(n+1)); ok {
				t.Fatalf("seed %d: Bytes(%#x, %d): more bytes than are known", seed, a, n+1)
			}
		}
	}
}

func TestPassesTheEnd(t *testing.T) {
	var m Image
	m.add(Segment{Addr: 1<<64 - 4, Data: make([]byte, 8)})
	if s := m.Segments(); len(s) != 1 || len(s[0].Data) != 4 || s[0].End() != 0 {
		t.Errorf("%v", s)
	}
	if len(m.Notes()) != 1 {
		t.Errorf("notes: %q", m.Notes())
	}
}

func TestUint(t *testing.T) {
	var m Image
	m.Order = binary.BigEndian
	m.add(Segment{Addr: 0x100, Data: []byte{1, 2, 3}})
	m.add(Segment{Addr: 0x103, Data: []byte{4, 5, 6, 7, 8}})
	for size, want := range map[int]uint64{1: 1, 2: 0x102, 4: 0x1020304, 8: 0x102030405060708} {
		if v, ok := m.Uint(0x100, size); !ok || v != want {
			t.Errorf("%d bytes: %#x %v, want %#x", size, v, ok, want)
		}
	}
	if _, ok := m.Uint(0x101, 8); ok {
		t.Error("8 bytes of 7 were read")
	}
}

// write writes a file of a test.
func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
