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
	"context"
	"encoding/gob"
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
//	new/TIME-COST-SUM    an upload: a line as in the journal with the device, then its rows (see encode)
//	batch/TIME-COST-SUM  an upload of the batch that is being written
//	tmp/                 uploads that are being received
//	bad/                 uploads and journals that could not be read, such as after a fault of the disk
//	journal              the uploads that are in the store, one line of JSON each
type Spool struct {
	dir   string
	limit int64 // largest Size, in bytes
	log   *slog.Logger

	size    atomic.Int64
	failing atomic.Pointer[time.Time] // since when batches cannot be written, nil if they can
	adding  sync.Mutex                // held until the name of an upload is durable
	last    int64                     // time in the name of the last upload, in ns
	bad     map[string]bool           // sums of uploads in bad/
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
	states map[string]ingest.State // by device, after its last upload in the spool or in the store
}

func newMemory() memory { return memory{map[string]bool{}, map[string]ingest.State{}} }

// entry is a line of the journal. State is the state of the device after the upload.
type entry struct {
	Sum    string       `json:"sum,omitempty"`
	Device string       `json:"device"`
	State  ingest.State `json:"state"`
	Dumps  int          `json:"dumps,omitempty"` // rows of dumps that follow, in the file of an upload
}

// append appends the line of an entry: the CRC-32C of the text in hexadecimal, a space and the text.
func (e *entry) append(b *bytes.Buffer) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // not for these types
	}
	fmt.Fprintf(b, "%08x %s\n", store.Sum(text), text)
}

// whole returns the text of a line of the journal; ok is false if its checksum is wrong.
func whole(line []byte) (text []byte, ok bool) {
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
	s = &Spool{dir: dir, limit: limit, log: log, now: newMemory(), before: newMemory(), stored: map[string]bool{}, bad: map[string]bool{}}
	for _, d := range []string{"new", "batch", "tmp", "bad"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	if s.lock, err = lockFile(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("spool %s: another server uses it: %w", dir, err)
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
	for _, list := range []string{"bad", "batch", "new"} {
		names, err := s.list(list)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			sum := sumOf(name)
			if list == "bad" {
				s.bad[sum] = true
				continue
			}
			if info, err := os.Lstat(s.path(list, name)); err == nil {
				s.size.Add(info.Size())
			}
			if list == "batch" && s.known(sum) {
				s.stored[name] = true
			} else if e, err := s.read(list, name, nil); err == nil { // else it is set aside when it is written
				s.remember(e)
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

// State returns the state of a device after its last upload.
func (s *Spool) State(device string) ingest.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.now.states[device]; ok {
		return state
	}
	return s.before.states[device]
}

// wasBad reports whether an upload was accepted, and could not be read then.
func (s *Spool) wasBad(sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad[sum]
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

// forget deletes the state of a device, and the files in bad, which cannot be searched.
func (s *Spool) forget(device string) error {
	names, err := s.list("bad")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(s.path("bad", name)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	delete(s.now.states, device)
	delete(s.before.states, device)
	s.mu.Unlock()
	return s.writeJournal(s.before, s.now)
}

// writeJournal writes a journal with a line for each state and each sum, and opens it. It leaves out the sums of
// uploads that wait: the journal has what is in the store.
func (s *Spool) writeJournal(of ...memory) error {
	var b bytes.Buffer
	s.adding.Lock() // the states are those of uploads whose names are durable
	defer s.adding.Unlock()
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

// errChanged is returned by Add if the device has sent another upload since its state was read.
var errChanged = errors.New("the state of the device changed")

// Add adds an upload to the spool, durably: its rows, and the states of its device before and after it. again reports whether
// the upload is in the spool or in the store already.
func (s *Spool) Add(u *ingest.Upload, res *ingest.Result, rows []byte, before, after ingest.State) (again bool, err error) {
	sum := u.Sum()
	if res.Dumps == 0 { // only a header, which may be that of the boot before
		sum = fmt.Sprintf("%s.%d", sum, u.Received.UnixNano())
	}
	if s.Size() >= s.limit && !s.knows(sum) {
		return false, ErrBusy
	}
	var data bytes.Buffer
	(&entry{Device: u.Device, State: after, Dumps: res.New}).append(&data)
	data.Write(rows)
	tmp := s.path("tmp", fmt.Sprintf("%d-%s", u.Received.UnixNano(), sum))
	defer os.Remove(tmp)
	if err := writeSynced(tmp, data.Bytes()); err != nil {
		return false, err
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.knows(sum) {
		return true, store.SyncPath(s.path("new")) // the Add before may have failed to
	}
	if s.State(u.Device) != before {
		return false, errChanged
	}
	s.last = max(s.last+1, u.Received.UnixNano()) // names are in the order of the states
	name := fmt.Sprintf("%020d-%d-%s", s.last, res.Facts+factsPerDump*res.Dumps+res.Frames/framesPerFact, sum)
	if err := os.Rename(tmp, s.path("new", name)); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.remember(&entry{Sum: sum, Device: u.Device, State: after})
	s.mu.Unlock()
	s.size.Add(int64(data.Len()))
	return false, store.SyncPath(s.path("new"))
}

func (s *Spool) knows(sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known(sum)
}

// encode reads an upload of a device with a state, and returns its rows: an ingest.Dump each, by package gob, compressed by zstd.
func encode(ctx context.Context, u *ingest.Upload, s *ingest.State, limit ingest.Limits) ([]byte, ingest.Result, error) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, ingest.Result{}, err
	}
	e := gob.NewEncoder(z)
	res, err := u.Read(ctx, s, limit, func(d *ingest.Dump) error { return e.Encode(d) })
	err = errors.Join(err, z.Close())
	return b.Bytes(), res, err
}

// The memory of dumps, and of the frames of call paths, in a batch.
const (
	factsPerDump  = 3
	framesPerFact = 8
)

// timeOf returns when an upload was received, UTC.
func timeOf(name string) time.Time {
	var ns int64
	fmt.Sscanf(name, "%d-", &ns)
	return time.Unix(0, ns).UTC()
}

// costOf returns the memory that the rows of an upload take, in facts.
func costOf(name string) (facts int) {
	fmt.Sscanf(name, "%d-%d-", new(int64), &facts)
	return facts
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

// read appends the rows of an upload in a directory to a batch that is not nil.
func (s *Spool) read(dir, name string, to *store.Batch) (*entry, error) {
	path := s.path(dir, name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe may not end
		return nil, cmp.Or(err, errors.New("not a file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := decode(bufio.NewReader(f), to)
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w", path, err)
	}
	e.Sum = sumOf(name)
	return e, nil
}

// decode is the inverse of encode, after a line for the upload. On an error, the batch stays.
func decode(r *bufio.Reader, to *store.Batch) (*entry, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if text, ok := whole(line); !ok {
		return nil, store.ErrSum
	} else if err := json.Unmarshal(text, e); err != nil || to == nil {
		return e, err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	before, rows := *to, gob.NewDecoder(z)
	for range e.Dumps {
		var d ingest.Dump
		if err := rows.Decode(&d); err != nil {
			*to = before
			return nil, err
		}
		d.Append(to)
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // which checks the checksum
		*to = before
		return nil, err
	}
	e.Dumps = 0
	return e, nil
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
		s.now.sums[entries[i].Sum] = true
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
				s.bad[sumOf(name)] = true
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
