package server

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
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
		if again, err := s.Add(u); again || err != nil {
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
