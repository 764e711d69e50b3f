package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A long journal is written anew while the server runs: it keeps what the server met since the last
// time, and forgets what it did not meet twice.
func TestJournalIsTrimmed(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(dir, 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	upload := func(device, text string) *ingest.Upload {
		return &ingest.Upload{Device: device, Received: time.Now(), Text: []byte(text)}
	}
	accept := func(u *ingest.Upload, boot int64) {
		t.Helper()
		if again, err := s.Add(u, &ingest.Result{Dumps: 1}, nil, s.State(u.Device), ingest.State{Boot: boot}); again || err != nil {
			t.Fatalf("again %t, %v", again, err)
		}
		waiting, err := s.Waiting()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.begin(waiting); err != nil {
			t.Fatal(err)
		}
		if err := s.end(waiting, []entry{{Sum: u.Sum(), Device: u.Device, State: ingest.State{Boot: boot}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(u *ingest.Upload, boot int64, again bool) {
		t.Helper()
		if state := s.State(u.Device); state.Boot != boot || s.known(u.Sum()) != again {
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
		if s, err = OpenSpool(dir, 1<<30, slog.New(slog.DiscardHandler)); err != nil {
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

// A journal that is written anew while uploads wait does not say that they are in the store: a server that is killed
// while it writes them writes them again.
func TestJournalLeavesOutWaiting(t *testing.T) {
	dir, to := t.TempDir(), open(t, t.TempDir())
	f := serve(t, dir, to, nil)
	send := func(device string) {
		t.Helper()
		if status, answer := f.send(t, device, fleettest.Log(device, "b", 1, 10)); status != 201 {
			t.Fatal(status, answer)
		}
	}
	send("first")
	f.Spool.written = maxJournal + 1 // as if it was long
	batch := must(f.Spool.Waiting())
	if err := f.Spool.begin(batch); err != nil {
		t.Fatal(err)
	}
	send("second") // waits while the first one is written
	if more := must(f.w.Write(t.Context())); !more {
		t.Fatal("the second upload does not wait")
	}
	if err := f.Spool.begin(must(f.Spool.Waiting())); err != nil {
		t.Fatal(err)
	}
	if err := f.Spool.Close(); err != nil { // killed before the batch is written
		t.Fatal(err)
	}
	f = serve(t, dir, to, nil)
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 2 {
		t.Errorf("%d uploads in the store, want 2", len(uploads))
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
	f.w.MaxFacts = 25_000 // two uploads have 20,200, and frames that count as 75
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

// A line of the journal that cannot be read does not stop the server. The journal is kept in
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
	var log bytes.Buffer // of a first start
	s, err := OpenSpool(dir, 1<<30, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), s.path("bad", "journal-")) {
		t.Errorf("%v, log %q, want an error with the copy of the journal", err, &log)
	}
	s.Close()
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
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 3 {
		t.Errorf("%v, want three uploads", uploads)
	}
}

// killed makes copies of the spool of a server that is killed while it writes a batch, and returns them by the last
// step that it did.
func killed(t *testing.T, f *fixture) map[string]string {
	t.Helper()
	list := map[string]string{}
	keep := func(step string) {
		list[step] = t.TempDir()
		if err := os.CopyFS(list[step], os.DirFS(f.Spool.dir)); err != nil {
			t.Fatal(err)
		}
	}
	names := f.w.plan(must(f.Spool.Waiting()))
	if err := f.Spool.begin(names[:1]); err != nil {
		t.Fatal(err)
	}
	keep("one upload is in the batch")
	if err := f.Spool.begin(names[1:]); err != nil {
		t.Fatal(err)
	}
	keep("the batch is planned")
	if _, err := f.w.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(f.Spool.path("journal"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(journal, []byte("\n"))
	for step, c := range map[string]struct{ lines, removed int }{
		"the batch is in the store": {0, 0}, "a part of the journal is written": {1, 0}, "the journal is written": {len(names), 0}, "one upload is removed": {len(names), 1},
	} {
		list[step] = t.TempDir()
		if err := os.CopyFS(list[step], os.DirFS(list["the batch is planned"])); err != nil {
			t.Fatal(err)
		}
		text := bytes.Join(lines[:c.lines], nil)
		if c.lines == 1 {
			text = append(text, lines[1][:len(lines[1])/2]...)
		}
		if err := os.WriteFile(filepath.Join(list[step], "journal"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range names[:c.removed] {
			if err := os.Remove(filepath.Join(list[step], "batch", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return list
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A server that is killed at any step of a batch writes each upload once, and knows the state of each device.
func TestKilledInBatch(t *testing.T) {
	parts := func(i int) []byte { // of one boot of a device: a header, then dumps
		log := fleettest.Log("d", "b", 3, 5)
		at := bytes.Index(log, []byte("~h#begin 1"))
		if end := bytes.Index(log, []byte("~h#begin 2")); i == 1 {
			return log[at:end]
		} else if i == 2 {
			return log[end:]
		}
		return log[:at]
	}
	storeDir := t.TempDir()
	f := serve(t, t.TempDir(), open(t, storeDir), nil)
	for i := range 2 {
		if status, answer := f.send(t, "d", parts(i)); status != 201 {
			t.Fatal(status, answer)
		}
	}
	for step, dir := range killed(t, f) {
		copied := t.TempDir()
		if step != "one upload is in the batch" && step != "the batch is planned" {
			if err := os.CopyFS(copied, os.DirFS(storeDir)); err != nil {
				t.Fatal(err)
			}
		}
		to := open(t, copied)
		g := serve(t, dir, to, nil)
		for i, want := range []int{200, 200, 201} {
			if status, answer := g.send(t, "d", parts(i)); status != want {
				t.Errorf("%s: upload %d: status %d, want %d: %s", step, i, status, want, answer)
			}
		}
		g.flush(t)
		_, _, uploads := inStore(t, to)
		for u, n := range uploads {
			if n != 1 {
				t.Errorf("%s: upload %s is in the store %d times", step, u, n)
			}
		}
		list, err := to.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		boots, dumps := map[int64]bool{}, map[int64]bool{}
		for _, name := range list[store.Dumps] {
			for _, r := range rowsOf[store.Dump](t, to, name) {
				boots[r.Boot], dumps[r.Dump] = true, true
			}
		}
		if left := len(must(os.ReadDir(g.Spool.path("batch")))); len(uploads) != 3 || len(boots) != 1 || len(dumps) != 3 || left != 0 || g.Spool.Size() != 0 {
			t.Errorf("%s: %d uploads, %d boots, %d dumps in the store, %d uploads and %d bytes in the spool", step, len(uploads), len(boots), len(dumps), left, g.Spool.Size())
		}
	}
}

// If the disk is full while the journal is written, no part of a line stays in it.
func TestFullDiskInJournal(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("mounting a small file system: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	s, err := OpenSpool(dir, 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	u := &ingest.Upload{Device: "d", Received: time.Now(), Text: []byte("1")}
	if _, err := s.Add(u, &ingest.Result{Dumps: 1}, nil, ingest.State{}, ingest.State{Boot: 7}); err != nil {
		t.Fatal(err)
	}
	names := must(s.Waiting())
	if err := s.begin(names); err != nil {
		t.Fatal(err)
	}
	lines := []entry{{Sum: "0", Device: "other"}}
	if err := s.end(nil, lines, nil); err != nil { // the journal has a block of the disk
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !store.Full(err) {
		t.Fatal("the disk is not full: ", err)
	}
	lines = []entry{{Sum: u.Sum(), Device: "d", State: ingest.State{Boot: 7, Header: strings.Repeat("x", 20_000)}}}
	if err := s.end(names, lines, nil); !store.Full(err) {
		t.Fatal(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.end(names, lines, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = OpenSpool(dir, 1<<30, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Bad(); n != 0 || err != nil || s.State("d").Boot != 7 {
		t.Errorf("%d bad files, %v, boot %d", n, err, s.State("d").Boot)
	}
}

// What was accepted is stored, also if the header of the boot before makes the rest unreadable.
func TestAcceptedIsStored(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	wide := "~m#GL38AAAAQAEAagABdAAABSgAAAAAAAAY\n"
	for _, text := range []string{"~h#boot dev=d1 build=b w=32\n~h#begin 0 t=1000000\n~b#size: 16, 0x8000100\n~h#end 0\n", wide} {
		if status, answer := f.send(t, "d1", []byte(text)); status != 201 {
			t.Fatal(status, answer)
		}
		f.flush(t)
	}
	if dumps, _, uploads := inStore(t, to); len(uploads) != 2 {
		t.Errorf("%d bytes, %d uploads, want 2", dumps, len(uploads))
	}
}

// The frames of few call paths count in a batch, too, and dumps without call paths.
func TestCostInBatch(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	empty := []byte("~h#boot\n")
	for i := range 4000 {
		empty = fmt.Appendf(empty, "~h#begin %d t=%d n=0\n~h#end %d n=0\n", i, i, i)
	}
	f.w.MaxFacts = 26_000 // two uploads have 300 facts, and frames that count as 25,000, or dumps that count as 24,000
	for i := range 8 {
		text := append(bytes.Clone(empty), byte('0'+i))
		if i < 4 {
			text = cmdtest.DeepLog(t, i+1, 100, 1000)
		}
		if status, answer := f.send(t, "d1", text); status != 201 {
			t.Fatal(status, answer)
		}
	}
	for _, want := range []int{6, 4, 2, 0} {
		if _, err := f.w.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := waiting(t, f.Spool); n != want {
			t.Errorf("%d uploads wait after a batch, want %d", n, want)
		}
	}
}

// A digit of the journal that changed is a line that cannot be read, not another state.
func TestJournalChecksum(t *testing.T) {
	var b bytes.Buffer
	(&entry{Sum: "5ca1ab1e", Device: "d1"}).append(&b)
	if text, ok := whole(b.Bytes()); !ok || !strings.Contains(string(text), "5ca1ab1e") {
		t.Errorf("%q %t", text, ok)
	}
	for bit := range 8 * (b.Len() - 1) {
		bad := bytes.Clone(b.Bytes())
		bad[bit/8] ^= 1 << (bit % 8)
		if text, ok := whole(bad); ok {
			t.Errorf("bit %d: %q is accepted", bit, text)
		}
	}
}

// A byte of an upload in the spool that changed is an error, or changes no row.
func TestDamagedUpload(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	if status, answer := f.send(t, "d1", fleettest.Log("d1", "b", 3, 20)); status != 201 {
		t.Fatal(status, answer)
	}
	name := must(f.Spool.Waiting())[0]
	file := f.Spool.path("new", name)
	whole := must(os.ReadFile(file))
	read := func() (string, error) {
		var b store.Batch
		e, err := f.Spool.read("new", name, &b)
		if err != nil && len(b.Dumps)+len(b.Facts) > 0 {
			t.Errorf("%d dumps stay after %v", len(b.Dumps), err)
		}
		return fmt.Sprint(e, b), err
	}
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err != nil {
			failed++
		} else if got != want {
			t.Errorf("byte %d: other rows", i)
		}
		if err := os.WriteFile(file, whole[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
	}
	if failed < len(whole)*9/10 {
		t.Errorf("%d of %d bytes are errors", failed, len(whole))
	}
}
