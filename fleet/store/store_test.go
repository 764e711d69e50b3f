package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// batch returns a batch of one device with one dump of n bytes.
func batch(name, device, upload string, n int64) *Batch {
	return &Batch{Name: name, Day: day,
		Dumps: []Dump{{Build: "b1", Device: device, Boot: 1, Bytes: n, Count: 1, Upload: upload, Received: day.UnixMicro()}},
		Facts: []Fact{{Build: "b1", Device: device, Boot: 1, Path: 5, Bytes: n, Count: 1}},
		Paths: []Path{{Build: "b1", Path: 5, Addresses: []string{"0x1", "0x2"}}}}
}

// total returns the sums of bytes of the facts and of the dumps that a reader sees.
func total(t *testing.T, s *Store) (facts, dumps int64) {
	t.Helper()
	list, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list[Facts] {
		f, err := Read[Fact](s, list[Facts][i])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f {
			facts += r.Bytes
		}
		d, err := Read[Dump](s, list[Dumps][i])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range d {
			dumps += r.Bytes
		}
	}
	return facts, dumps
}

func expect(t *testing.T, s *Store, want int64) {
	t.Helper()
	if facts, dumps := total(t, s); facts != want || dumps != want {
		t.Fatalf("facts of %d bytes, dumps of %d, want %d", facts, dumps, want)
	}
}

func put(t *testing.T, s *Store, b *Batch) {
	t.Helper()
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// A batch is visible once its file of dumps exists, and counts only once.
func TestPut(t *testing.T) {
	s := open(t)
	b := batch("one", "d1", "u1", 10)
	put(t, s, b)
	put(t, s, b)
	expect(t, s, 10)
	put(t, s, batch("two", "d2", "u2", 5))
	expect(t, s, 15)
	if err := os.Remove(filepath.Join(s.Dir(), dayPart(day).name(Dumps, "two"))); err != nil {
		t.Fatal(err)
	}
	expect(t, s, 10)
}

// Escape handles any name of a build, because names come from devices.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{"5ca1ab1e": "5ca1ab1e", "../x": "%2E.%2Fx", "a b": "a%20b", "<": "%3C", ".": "%2E", "v1.2": "v1.2"} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	s := open(t)
	b := batch("x", "d", "u", 3)
	b.Dumps[0].Build, b.Facts[0].Build, b.Paths[0].Build = "../../e", "../../e", "../../e"
	put(t, s, b)
	expect(t, s, 3)
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list[Dumps]) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// Compaction does not change sums, even if it is interrupted at any point, and drops duplicate
// uploads.
func TestCompact(t *testing.T) {
	s := open(t)
	for i := range 9 {
		put(t, s, batch(fmt.Sprintf("b%d", i), fmt.Sprintf("d%d", i), fmt.Sprintf("u%d", i), 100))
	}
	again := batch("z", "d3", "u3", 100)
	again.Dumps[0].Boot, again.Facts[0].Boot = 2, 2
	put(t, s, again)
	expect(t, s, 1000)

	// Another process was killed before it had written the dumps of a compaction.
	b0, _, err := s.merge(dayPart(day), []string{"b0", "b1"}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := dayPart(day).name(Facts, compactedName(2))
	if err := write(s, left, b0.Facts, ""); err != nil {
		t.Fatal(err)
	}
	expect(t, s, 1000)
	old := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(s.path(left), old, old); err != nil {
		t.Fatal(err)
	}
	// Another one waits.
	unlock, err := s.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Open(s.Dir()); err != nil {
		t.Fatal(err)
	} else {
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if err := other.Compact(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two compactions at a time: %v", err)
		}
	}
	unlock()
	compact := func(grace time.Duration) {
		t.Helper()
		if err := s.Compact(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
	}
	compact(time.Hour)
	expect(t, s, 900)
	list, _ := s.Snapshot(t.Context(), "")
	if len(list[Dumps]) != 1 || !strings.Contains(list[Dumps][0], compacted) {
		t.Errorf("%v, want one file of a compaction", list[Dumps])
	}
	if _, err := os.Stat(s.path(left)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left: %v", err)
	}
	// Its inputs are still there, and no other reader counts them; without it, they count again.
	other, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, other, 900)
	hidden := s.path(list[Dumps][0])
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(hidden, away); err != nil {
		t.Fatal(err)
	}
	expect(t, other, 1000)
	if err := os.Rename(away, hidden); err != nil {
		t.Fatal(err)
	}
	compact(0) // deletes what was replaced
	expect(t, s, 900)
	files, err := filepath.Glob(filepath.Join(s.Dir(), Facts, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v %v, want one file", files, err)
	}
	for i := range 4 {
		put(t, s, batch(fmt.Sprintf("c%d", i), "e", fmt.Sprintf("v%d", i), 1))
	}
	compact(0)
	compact(0)
	expect(t, s, 904)
}

// A damaged file is an error that names it, never a panic. Compaction moves it to quarantine with the others of its batch.
func TestCompactDamaged(t *testing.T) {
	s := open(t)
	for i := range 5 {
		put(t, s, batch(fmt.Sprintf("x%d", i), fmt.Sprintf("d%d", i), fmt.Sprintf("u%d", i), 100))
	}
	bad := dayPart(day).name(Facts, "x2")
	whole, err := os.ReadFile(filepath.Join(s.Dir(), bad))
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir(), bad), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := 0
	for i := range whole {
		data := slices.Clone(whole)
		data[i] ^= byte(1 << (i % 8))
		write(data)
		if _, err := Read[Fact](s, bad); err != nil {
			if failed++; !strings.Contains(err.Error(), bad) {
				t.Errorf("byte %d changed: %v does not name the file", i, err)
			}
		}
	}
	if failed < len(whole)/2 {
		t.Errorf("%d of %d changed bytes are errors: too few to show anything", failed, len(whole))
	}
	write([]byte("PAR1"))
	err = s.Compact(t.Context(), 0)
	if d, ok := errors.AsType[*Damaged](err); !ok || d.Name != bad || !strings.Contains(err.Error(), bad) {
		t.Errorf("%v, want an error that names %s", err, bad)
	}
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list[Dumps]) != 1 || len(list[Quarantined]) != 3 || list[Quarantined][1] != "quarantine/"+bad {
		t.Errorf("%+v %v, want one file, and three in quarantine", list, err)
	}
	expect(t, s, 400)
	if err := s.Compact(t.Context(), 0); err != nil {
		t.Errorf("again: %v", err)
	}
	if data, err := s.Read("quarantine/" + bad); string(data) != "PAR1" {
		t.Errorf("%q %v", data, err)
	}
}

// bytesRead returns the bytes that the process has read from files and the like.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("the system does not count what is read")
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A compaction reads what is new, not all files of a day, and nothing if nothing is new. The files of a
// day stay few.
func TestCompactIsIncremental(t *testing.T) {
	s := open(t)
	sum := int64(0)
	hour := func(hour, files int) (read int) {
		for i := range files {
			b := batch(fmt.Sprintf("h%03d-%d", hour, i), fmt.Sprintf("d%d-%d", hour, i), fmt.Sprintf("u%d-%d", hour, i), 1)
			for p := range int64(200) {
				b.Facts = append(b.Facts, Fact{Build: "b1", Device: b.Dumps[0].Device, Boot: 1, Path: 10 + p, Bytes: rand.Int64N(1 << 20), Count: 1})
			}
			b.Dumps[0].Bytes = 0
			for _, f := range b.Facts {
				b.Dumps[0].Bytes += f.Bytes
			}
			sum += b.Dumps[0].Bytes
			put(t, s, b)
		}
		before := bytesRead(t)
		if err := s.Compact(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		return bytesRead(t) - before
	}
	first, total := hour(0, 6), 0
	for h := range 24 {
		total += hour(h+1, 6)
	}
	// Each byte is read twice or three times; all files of the day, each time, would be 300 times first.
	if total > 24*first*4 {
		t.Errorf("%d bytes read in 24 hours, %d in the first", total, first)
	}
	hour(25, 0) // reads what the last compaction has replaced
	if again := hour(26, 0); again > 1000 {
		t.Errorf("%d bytes read although nothing is new", again)
	}
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list[Dumps]) > 12 {
		t.Errorf("%d files, %v", len(list[Dumps]), err)
	}
	expect(t, s, sum)
}

// The sums that readers see are right while two processes write and compact.
func TestConcurrent(t *testing.T) {
	s := open(t)
	other, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged atomic.Int64
	done := make(chan error, 2)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	for k, s := range []*Store{s, other} {
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d-%d", k, i)
				if err := s.Put(t.Context(), batch(id, id, id, 1)); err != nil {
					done <- err
					return
				}
				acknowledged.Add(1)
				if i%5 == 4 {
					if err := s.Compact(t.Context(), time.Hour); err != nil {
						done <- err
						return
					}
				}
			}
			done <- nil
		}()
	}
	for ctx.Err() == nil {
		before := acknowledged.Load()
		facts, _ := total(t, s)
		if after := acknowledged.Load() + 2; facts < before || facts > after {
			t.Fatalf("%d bytes, want %d to %d", facts, before, after)
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	expect(t, s, acknowledged.Load())
}

// An alert that was sent is known.
func TestSent(t *testing.T) {
	s := open(t)
	if err := s.MarkSent(t.Context(), "b", "leak"); err != nil {
		t.Error(err)
	}
	if sent, err := s.Sent(t.Context(), "b", "leak"); !sent || err != nil {
		t.Errorf("an alert that was sent: %v %v", sent, err)
	}
}

// A file that is being written is not listed, and is deleted when it is old.
func TestPartial(t *testing.T) {
	s := open(t)
	put(t, s, batch("one", "d1", "u1", 10))
	dir := filepath.Join(s.Dir(), filepath.Dir(filepath.FromSlash(dayPart(day).name(Dumps, "one"))))
	left := filepath.Join(dir, ".two.parquet.123")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.PutELF(t.Context(), "1.4.2", []byte("elf")); err != nil {
		t.Fatal(err)
	}
	expect(t, s, 10)
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{left, filepath.Join(s.Dir(), elfs, "1.4.2")} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the partial file: %v", err)
	}
	if elf, err := os.ReadFile(s.ELF("1.4.2")); err != nil || string(elf) != "elf" {
		t.Errorf("the ELF file: %q, %v", elf, err)
	}
}

func TestRetain(t *testing.T) {
	s := open(t)
	for i := range 5 {
		b := batch("x", "d", fmt.Sprint(i), 10)
		b.Day = day.AddDate(0, 0, i)
		put(t, s, b)
	}
	if err := s.PutFrames(t.Context(), day.AddDate(0, 0, -9), []Frame{{Build: "b1", Address: "0x1"}}); err != nil { // which stay
		t.Fatal(err)
	}
	deleted, err := s.Retain(t.Context(), Retention{Age: 48 * time.Hour}, day.AddDate(0, 0, 4))
	if err != nil || strings.Join(deleted, " ") != "2026-11-01 2026-11-02" {
		t.Errorf("%v %v", deleted, err)
	}
	expect(t, s, 30)
	all, _ := s.names("")
	size := int64(0)
	for _, o := range all {
		size += o.Size
	}
	deleted, err = s.Retain(t.Context(), Retention{Size: size / 2}, day.AddDate(0, 0, 9))
	if err != nil || len(deleted) != 2 {
		t.Errorf("%v %v, want two days", deleted, err)
	}
	expect(t, s, 10)
	if days, err := filepath.Glob(filepath.Join(s.Dir(), Facts, "*", "*")); err != nil || len(days) != 1 {
		t.Errorf("directories %q %v, want one", days, err)
	}
	if deleted, err = s.Retain(t.Context(), Retention{Size: 1}, day.AddDate(0, 0, 4)); len(deleted) != 0 || err == nil {
		t.Errorf("today: %v %v, want an error", deleted, err)
	}
	expect(t, s, 10)
}
