package server

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The spool knows the state of a device, and its last uploads, also after a restart.
func TestLastUploads(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(dir, 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	add := func(device string, n int) (again bool) {
		t.Helper()
		u := &ingest.Upload{Device: device, Received: time.Now(), Text: fmt.Append(nil, n)}
		again, err := s.add(u, &ingest.Result{Dumps: 1}, nil, s.State(device), ingest.State{Boot: int64(n)})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	write := func() {
		t.Helper()
		names := must(s.Waiting())
		if err := cmp.Or(s.begin(names), s.end(names, []string{"a", "b"}, nil)); err != nil {
			t.Fatal(err)
		}
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
	for n := range maxSums + 1 {
		if add("a", n) {
			t.Errorf("upload %d was accepted before", n)
		}
	}
	add("b", 7)
	reopen()
	write()
	for range 2 {
		if !add("a", 1) || !add("a", maxSums) || !add("b", 7) || s.State("a").Boot != maxSums || s.State("b").Boot != 7 {
			t.Errorf("states %+v, %+v, or an upload is not known", s.State("a"), s.State("b"))
		}
		reopen()
	}
	if add("a", 0) || s.State("a").Boot != 0 {
		t.Errorf("the first of %d uploads is known: %+v", maxSums+1, s.State("a"))
	}
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

// The line of a device that cannot be read does not stop the server. It is kept in the directory bad, and counted.
func TestDamagedLines(t *testing.T) {
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
	file := f.Spool.file("d1")
	line := must(os.ReadFile(file))
	copy(line, "\x00\xff\x00")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	f = serve(t, dir, to, nil)
	for i, want := range []int{200, 201, 200} { // that of the damaged line is not known any more
		id := fmt.Sprintf("d%d", i)
		if status, answer := f.send(t, id, fleettest.Log(id, "b", 1, 5)); status != want {
			t.Errorf("device %s: status %d, want %d: %s", id, status, want, answer)
		}
	}
	if n, err := f.Spool.Bad(); n != 1 || err != nil {
		t.Errorf("%d bad files, %v, want the line", n, err)
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
	for _, step := range []string{"the batch is in the store", "the batch is done", "one upload is removed"} {
		list[step] = t.TempDir()
		if err := os.CopyFS(list[step], os.DirFS(list["the batch is planned"])); err != nil {
			t.Fatal(err)
		}
		if step != "the batch is in the store" {
			if err := os.Rename(filepath.Join(list[step], "batch"), filepath.Join(list[step], "done")); err != nil {
				t.Fatal(err)
			}
		}
		if step == "one upload is removed" {
			if err := os.Remove(filepath.Join(list[step], "done", names[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []string{"one upload is in the batch", "the batch is planned"} { // not durable before the batch is done
		lost := list[step] + ", without the states"
		list[step+", without the states"] = lost
		if err := os.CopyFS(lost, os.DirFS(list[step])); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(lost, "devices")); err != nil {
			t.Fatal(err)
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
		if step == "the batch is in the store" || step == "the batch is done" || step == "one upload is removed" {
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

// A digit of a line that changed is a line that cannot be read, not another state.
func TestLineChecksum(t *testing.T) {
	line := (&entry{Device: "d1", Sums: []string{"5ca1ab1e"}}).text()
	var e entry
	if err := e.parse(line); err != nil || e.Sums[0] != "5ca1ab1e" {
		t.Errorf("%+v %v", e, err)
	}
	for bit := range 8 * (len(line) - 1) {
		bad := bytes.Clone(line)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := e.parse(bad); err == nil {
			t.Errorf("bit %d: %q is accepted", bit, bad)
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
