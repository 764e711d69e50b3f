// Package server receives heap dumps from devices, by HTTP and MQTT, and writes them to
// a store.
//
//	PUT, MQTT ─Accept→ Spool (durable) ─Writer→ store
//
// An upload is accepted once it is in the spool on disk. In the background, the server writes
// uploads from the spool to the store, in batches. It first moves the uploads of a batch to a directory
// of their own. If the server is killed, it later writes the same batch again, under the same name.
package server

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Spool is a directory of accepted uploads that are not in the store yet:
//
//	new/TIME-COST-SUM    an upload: a line of JSON, then the log, compressed by zstd
//	batch/TIME-COST-SUM  an upload of the batch that is being written
//	tmp/                 uploads that are being received
//	bad/                 uploads and journals that could not be read, such as after a fault of the disk
//	journal              the uploads that are in the store, one line of JSON each
type Spool struct {
	dir     string
	limit   int64 // largest Size, in bytes
	log     *slog.Logger
	encoder *zstd.Encoder

	size    atomic.Int64
	failing atomic.Pointer[time.Time] // since when batches cannot be written, nil if they can
	mu      sync.Mutex
	now     memory // what the server remembers; see turn
	before  memory
	journal *os.File
	written int64 // size of the journal
	kept    int64 // size of the journal after it was written anew
	lock    *os.File
	stored  map[string]bool // files in batch/ that the journal has: if there is one, the whole batch is in the store
}

// memory holds the uploads in a part of the journal.
type memory struct {
	sums   map[string]bool         // of accepted uploads, in the spool or in the store
	states map[string]ingest.State // by device
}

func newMemory() memory { return memory{map[string]bool{}, map[string]ingest.State{}} }

// entry is a line of the journal. State is the state of the device after the upload.
type entry struct {
	Sum    string       `json:"sum,omitempty"`
	Device string       `json:"device"`
	State  ingest.State `json:"state"`
}

// append appends the line of an entry: the CRC-32C of the text in hexadecimal, a space and the text.
func (e *entry) append(b *bytes.Buffer) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // not for these types
	}
	fmt.Fprintf(b, "%08x %s\n", store.Sum(text), text)
}

// whole returns the text of a line of the journal; ok is false if its checksum is wrong. Lines of earlier versions have
// none.
func whole(line []byte) (text []byte, ok bool) {
	if len(line) > 0 && line[0] == '{' {
		return line, true
	}
	sum, text, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	return text, ok && string(sum) == fmt.Sprintf("%08x", store.Sum(text))
}

// Limits of a memory; there are two.
const (
	maxSums    = 1_000_000 // about 50 MB
	maxJournal = 256 << 20 // bytes
)

// ErrBusy is returned for an upload if the spool is full. The device should try again later.
var ErrBusy = errors.New("too many uploads wait to be written")

// OpenSpool opens a spool, and creates its directory. limit is the largest size of the spool in
// bytes. Only one process can have a spool open.
func OpenSpool(dir string, limit int64, log *slog.Logger) (s *Spool, err error) {
	s = &Spool{dir: dir, limit: limit, log: log, now: newMemory(), before: newMemory(), stored: map[string]bool{}}
	for _, d := range []string{"new", "batch", "tmp", "bad"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	if s.lock, err = lockFile(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("spool %s: another server uses it: %w", dir, err)
	}
	if s.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	if err := s.readJournal(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	tmp, err := os.ReadDir(s.path("tmp"))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, e := range tmp { // uploads that were not acknowledged
		os.Remove(s.path("tmp", e.Name()))
	}
	for _, list := range []string{"batch", "new"} {
		names, err := s.list(list)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if info, err := os.Lstat(s.path(list, name)); err == nil {
				s.size.Add(info.Size())
			}
			sum := sumOf(name)
			if list == "batch" && s.known(sum) {
				s.stored[name] = true
			}
			s.now.sums[sum] = true
		}
	}
	return s, nil
}

func (s *Spool) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// readJournal reads the journal. It drops a last line without a line end, because its batch is unfinished. If
// other lines cannot be read, such as after a fault of the disk, it keeps a copy of the journal in the directory bad.
func (s *Spool) readJournal() error {
	f, err := os.OpenFile(s.path("journal"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	damaged, size := false, int64(0)
	r := bufio.NewReader(f)
	line, err := r.ReadBytes('\n')
	for ; err == nil; line, err = r.ReadBytes('\n') {
		size += int64(len(line))
		var e entry
		if text, ok := whole(line); !ok || json.Unmarshal(text, &e) != nil {
			damaged = true
			continue
		}
		s.remember(&e)
		if len(s.now.sums) >= maxSums {
			s.before, s.now = s.now, newMemory()
		}
	}
	if err != io.EOF {
		return err
	}
	if damaged { // writeJournal replaces the name, and the file stays
		to := s.path("bad", fmt.Sprintf("journal-%d", time.Now().UnixNano()))
		if err := os.Link(s.path("journal"), to); err != nil {
			return err
		}
		s.log.Error("lines of the journal could not be read: an upload that is sent again may count twice", "copy", to)
	}
	if damaged || len(line) > 0 || size > maxJournal {
		return s.writeJournal(s.before, s.now)
	}
	return s.openJournal()
}

// remember stores the sum and the state of an entry.
func (s *Spool) remember(e *entry) {
	if e.Sum != "" {
		s.now.sums[e.Sum] = true
	}
	if e.Device != "" {
		s.now.states[e.Device] = e.State
	}
}

// known reports whether an upload was accepted.
func (s *Spool) known(sum string) bool { return s.now.sums[sum] || s.before.sums[sum] }

// state returns the state of a device after its last upload.
func (s *Spool) state(device string) ingest.State {
	if state, ok := s.now.states[device]; ok {
		return state
	}
	return s.before.states[device]
}

// turn forgets what the server has not met since the last turn, and writes the journal anew, if there
// are many uploads or if the journal is large.
func (s *Spool) turn() error {
	s.mu.Lock()
	due := len(s.now.sums) >= maxSums || s.written > max(maxJournal, 2*s.kept)
	s.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.writeJournal(s.now); err != nil {
		return err
	}
	s.mu.Lock()
	s.before, s.now = s.now, newMemory()
	s.mu.Unlock()
	return nil
}

// writeJournal writes a journal with a line for each state and each sum, and opens it. It leaves out the sums of
// uploads that wait: the journal has what is in the store.
func (s *Spool) writeJournal(of ...memory) error {
	var b bytes.Buffer
	s.mu.Lock()
	names, err := s.Waiting()
	waiting := map[string]bool{}
	for _, name := range names {
		waiting[sumOf(name)] = true
	}
	for _, m := range of {
		for device, state := range m.states {
			(&entry{Device: device, State: state}).append(&b)
		}
		for sum := range m.sums {
			if !waiting[sum] {
				(&entry{Sum: sum}).append(&b)
			}
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	tmp := s.path("tmp", "journal")
	if err := writeSynced(tmp, b.Bytes()); err != nil {
		return err
	}
	if err := os.Rename(tmp, s.path("journal")); err != nil {
		return err
	}
	s.kept = int64(b.Len())
	s.journal.Close() // of the old file; if the new one cannot be opened, nothing is written to the old one
	return s.openJournal()
}

// openJournal opens the journal to add lines.
func (s *Spool) openJournal() error {
	f, err := os.OpenFile(s.path("journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.journal, s.written = f, info.Size()
	return store.SyncPath(s.dir)
}

// Close closes the spool.
func (s *Spool) Close() error {
	return errors.Join(s.journal.Close(), s.lock.Close())
}

// Size returns the size of the waiting uploads in bytes.
func (s *Spool) Size() int64 { return s.size.Load() }

// meta is the first line of an upload in the spool.
type meta struct {
	Device   string    `json:"device"`
	Build    string    `json:"build,omitempty"`
	FW       string    `json:"fw,omitempty"`
	Received time.Time `json:"received"`
}

// Add adds an upload to the spool, durably. again reports whether the upload is in the spool or in the store already.
func (s *Spool) Add(u *ingest.Upload, res *ingest.Result) (again bool, err error) {
	sum := u.Sum()
	if res.Dumps == 0 { // only a header, which may be that of the boot before
		sum = fmt.Sprintf("%s.%d", sum, u.Received.UnixNano())
	}
	s.mu.Lock()
	again = s.known(sum)
	s.mu.Unlock()
	if again {
		return true, store.SyncPath(s.path("new")) // the other Add may not have synced the directory yet
	}
	if s.Size() >= s.limit {
		return false, ErrBusy
	}
	head, err := json.Marshal(meta{u.Device, u.Build, u.FW, u.Received})
	if err != nil {
		return false, err
	}
	data := s.encoder.EncodeAll(append(append(head, '\n'), u.Text...), nil)
	name := fmt.Sprintf("%020d-%d-%s", u.Received.UnixNano(), res.Facts+factsPerDump*res.Dumps+res.Frames/framesPerFact, sum)
	tmp := s.path("tmp", name)
	if err := writeSynced(tmp, data); err != nil {
		os.Remove(tmp)
		return false, err
	}
	s.mu.Lock()
	if s.known(sum) { // another Add of the same upload was faster
		s.mu.Unlock()
		os.Remove(tmp)
		return true, store.SyncPath(s.path("new"))
	}
	err = os.Rename(tmp, s.path("new", name))
	if err == nil {
		s.now.sums[sum] = true
	}
	s.mu.Unlock()
	if err != nil {
		os.Remove(tmp)
		return false, err
	}
	s.size.Add(int64(len(data)))
	return false, store.SyncPath(s.path("new"))
}

// The memory of dumps, and of the frames of call paths, in a batch.
const (
	factsPerDump  = 3
	framesPerFact = 8
)

// costOf returns the day on which an upload was received, and the memory that its rows take, in facts.
func costOf(name string) (day string, facts int) {
	var ns int64
	fmt.Sscanf(name, "%d-%d-", &ns, &facts)
	return time.Unix(0, ns).UTC().Format(time.DateOnly), facts
}

// writeSynced writes the content of a file durably. The name is durable once its directory is
// synced.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// sumOf returns the sum of an upload, which its name ends with.
func sumOf(name string) string {
	return name[strings.LastIndexByte(name, '-')+1:]
}

// Waiting returns the names of the uploads that are in no batch yet, the oldest first.
func (s *Spool) Waiting() ([]string, error) { return s.list("new") }

// list returns the names of the files in a directory of the spool, sorted.
func (s *Spool) list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Bad returns the number of files in the directory bad.
func (s *Spool) Bad() (int, error) {
	entries, err := os.ReadDir(s.path("bad"))
	return len(entries), err
}

// read reads an upload of the batch.
func (s *Spool) read(name string) (*ingest.Upload, error) {
	path := s.path("batch", name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe may not end
		return nil, cmp.Or(err, errors.New("not a file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	r := bufio.NewReader(z)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w", name, err)
	}
	var m meta
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("spool: %s: %w", name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w", name, err)
	}
	return &ingest.Upload{Device: m.Device, Build: m.Build, FW: m.FW, Received: m.Received, Text: text}, nil
}

// begin moves waiting uploads to the directory batch, durably.
func (s *Spool) begin(names []string) error {
	for _, name := range names {
		if err := os.Rename(s.path("new", name), s.path("batch", name)); err != nil {
			return err
		}
	}
	return errors.Join(store.SyncPath(s.path("batch")), store.SyncPath(s.path("new")))
}

// end records that a batch is in the store, and removes its uploads; those in bad it sets aside.
// entries are new lines of the journal, one for each upload that it lacks.
func (s *Spool) end(names []string, entries []entry, bad []string) error {
	var lines bytes.Buffer
	for i := range entries {
		entries[i].append(&lines)
	}
	_, err := s.journal.Write(lines.Bytes())
	if err = errors.Join(err, s.journal.Sync()); err != nil {
		return errors.Join(err, s.journal.Truncate(s.written)) // no part of a line stays
	}
	s.written += int64(lines.Len())
	s.mu.Lock()
	for i := range entries {
		s.remember(&entries[i])
	}
	s.mu.Unlock()
	for _, name := range names {
		s.stored[name] = true
	}
	for _, name := range names {
		path := s.path("batch", name)
		info, err := os.Lstat(path)
		if err == nil && slices.Contains(bad, name) {
			if err = os.Rename(path, s.path("bad", name)); err == nil {
				s.mu.Lock() // it may be sent anew
				delete(s.now.sums, sumOf(name))
				delete(s.before.sums, sumOf(name))
				s.mu.Unlock()
			}
		} else if err == nil {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // done before an error
		}
		if err != nil {
			return err
		}
		s.size.Add(-info.Size())
	}
	if err := store.SyncPath(s.path("batch")); err != nil {
		return err
	}
	clear(s.stored)
	return s.turn()
}
