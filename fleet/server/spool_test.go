package server

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
)

// A long journal is written anew while the server runs: it keeps what the server met since the last
// time, and forgets what it did not meet twice.
func TestJournalIsTrimmed(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	upload := func(device, text string) *ingest.Upload {
		return &ingest.Upload{Device: device, Received: time.Now(), Text: []byte(text)}
	}
	accept := func(u *ingest.Upload, boot int64) {
		t.Helper()
		if again, err := s.Add(u, 1); again || err != nil {
			t.Fatalf("again %t, %v", again, err)
		}
		waiting, err := s.Waiting()
		if err != nil {
			t.Fatal(err)
		}
		b := &batch{Name: "b", Uploads: waiting}
		if err := s.begin(b); err != nil {
			t.Fatal(err)
		}
		if err := s.end(b, []entry{{Sum: u.Sum(), Device: u.Device, State: ingest.State{Boot: boot}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(u *ingest.Upload, boot int64, again bool) {
		t.Helper()
		if state := s.state(u.Device); state.Boot != boot || s.known(u.Sum()) != again {
			t.Errorf("device %s: boot %d, known %t, want %d, %t", u.Device, state.Boot, s.known(u.Sum()), boot, again)
		}
	}
	lines := func() int {
		text, err := os.ReadFile(s.path("journal"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte("\n"))
	}
	first := upload("a", "1")
	accept(first, 7)
	for i := range int64(20) { // one state, of which the journal has all
		accept(upload("b", string(rune('a'+i))), i)
	}
	last := upload("b", "last")
	if n := lines(); n != 21 {
		t.Errorf("%d lines, want 21", n)
	}
	s.written = maxJournal + 1 // as if it was long
	accept(last, 50)
	if n := lines(); n != 2+22 { // states and sums
		t.Errorf("%d lines, want 24", n)
	}
	reopen := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = OpenSpool(dir, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	expect(first, 7, true)
	expect(last, 50, true)
	reopen()
	expect(first, 7, true)
	expect(last, 50, true)
	for i := range int64(2) {
		s.written, s.kept = maxJournal+1, 0
		accept(upload("b", "more"+string(rune('a'+i))), 60+i)
	}
	s.written, s.kept = maxJournal+1, 0
	newest := upload("b", "newest")
	accept(newest, 70)
	expect(first, 0, false)
	expect(newest, 70, true)
	reopen()
	expect(first, 0, false)
	expect(newest, 70, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A batch is limited by the rows that its uploads become, not by their bytes: a difference of 40 bytes
// repeats all call paths of a dump.
func TestBatchIsBounded(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	for i := range 3 {
		id := fmt.Sprintf("d%d", i)
		log := fleettest.Log(id, "b", 1, 100)
		for n := range 100 {
			log = fmt.Appendf(log, "~h#begin %d k=diff base=%d\n~h#end %d\n", n+1, n, n+1)
		}
		if status, answer := f.send(t, id, log); status != 201 {
			t.Fatal(status, answer)
		}
	}
	f.w.MaxFacts = 25_000 // two uploads have 20,200
	for _, want := range []int{2, 1} {
		before := waiting(t, f.Spool)
		if _, err := f.w.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := before - waiting(t, f.Spool); n != want {
			t.Errorf("a batch of %d uploads, want %d", n, want)
		}
	}
}

func waiting(t *testing.T, s *Spool) int {
	t.Helper()
	names, err := s.Waiting()
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A line of the journal, or a list of a batch, that cannot be read does not stop the server. It is kept in
// the directory bad, and counted.
func TestDamagedLists(t *testing.T) {
	dir, to := t.TempDir(), open(t, t.TempDir())
	f := serve(t, dir, to, nil)
	for i := range 3 {
		id := fmt.Sprintf("d%d", i)
		if status, answer := f.send(t, id, fleettest.Log(id, "b", 1, 5)); status != 201 {
			t.Fatal(status, answer)
		}
		f.flush(t)
	}
	f.Spool.Close()
	text, err := os.ReadFile(f.Spool.path("journal"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	copy(lines[1], "\x00\xff\x00")
	if err := os.WriteFile(f.Spool.path("journal"), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	f = serve(t, dir, to, nil)
	if n, err := f.Spool.Bad(); n != 1 || err != nil {
		t.Errorf("%d bad files, %v, want the journal", n, err)
	}
	for i, want := range []int{200, 201, 200} { // that of the damaged line is not known any more
		id := fmt.Sprintf("d%d", i)
		if status, answer := f.send(t, id, fleettest.Log(id, "b", 1, 5)); status != want {
			t.Errorf("device %s: status %d, want %d: %s", id, status, want, answer)
		}
	}
	if err := os.WriteFile(f.Spool.path("batch.json"), []byte("{\"name\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.flush(t)
	f.flush(t)
	if n, err := f.Spool.Bad(); n != 2 || err != nil || waiting(t, f.Spool) != 0 {
		t.Errorf("%d bad files, %v, %d uploads wait", n, err, waiting(t, f.Spool))
	}
	if _, _, uploads := inStore(t, to); len(uploads) != 3 {
		t.Errorf("%v, want three uploads", uploads)
	}
}
