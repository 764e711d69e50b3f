// Package server receives heap dumps from devices, by HTTP, and writes them to
// a store.
//
//	PUT ─Accept→ Spool (durable) ─Writer→ store
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
	"crypto/sha256"
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

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Spool is a directory of accepted uploads that are not in the store yet:
//
//	new/TIME-COST-SUM    an upload: a line with its device (see entry), then its rows (see encode)
//	batch/TIME-COST-SUM  an upload of the batch that is being written
//	done/                a batch that is in the store, and is being removed
//	devices/HASH         a line for a device: its state, and its last uploads
//	tmp/                 files that are being written
//	bad/                 uploads and lines that could not be read, such as after a fault of the disk
type Spool struct {
	dir   string
	limit int64 // largest Size, in bytes
	log   *slog.Logger
	lock  *flock.Flock

	size    atomic.Int64
	failing atomic.Pointer[time.Time] // since when batches cannot be written, nil if they can

	mu   sync.Mutex      // held until the name of an upload is durable
	last int64           // time in the name of the last upload, in ns
	bad  map[string]bool // sums of uploads in bad/ that were not sent again
}

// entry is the line of a device, or that of an upload.
type entry struct {
	Device string       `json:"device"`
	State  ingest.State `json:"state"`           // after the last upload, or this one
	Sums   []string     `json:"sums,omitempty"`  // of the last uploads of the device, the newest last
	Dumps  int          `json:"dumps,omitempty"` // rows of dumps that follow the line
}

// maxSums is the number of uploads by which a repeated one is recognized. The store recognizes older ones when it is compacted.
const maxSums = 100

// text returns the line of an entry: the CRC-32C of the rest in hexadecimal, a space, and JSON.
func (e *entry) text() []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // not for these types
	}
	return fmt.Appendf(nil, "%08x %s\n", store.Sum(text), text)
}

// parse is the inverse of text.
func (e *entry) parse(line []byte) error {
	sum, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if string(sum) != fmt.Sprintf("%08x", store.Sum(text)) {
		return store.ErrSum
	}
	return json.Unmarshal(text, e)
}

// add adds an upload and the state after it. again reports whether the entry had the upload.
func (e *entry) add(sum string, after ingest.State) (again bool) {
	again = slices.Contains(e.Sums, sum)
	others := slices.DeleteFunc(e.Sums, func(other string) bool { return other == sum })
	e.State, e.Sums = after, append(others[max(0, len(others)-maxSums+1):], sum)
	return again
}

// ErrBusy is returned for an upload if the spool is full. The device should try again later.
var ErrBusy = errors.New("too many uploads wait to be written")

// OpenSpool opens a spool, and creates its directory. limit is the largest size of the spool in
// bytes. Only one process can have a spool open.
func OpenSpool(dir string, limit int64, log *slog.Logger) (s *Spool, err error) {
	s = &Spool{dir: dir, limit: limit, log: log, bad: map[string]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s.lock = flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if ok, err := s.lock.TryLock(); !ok {
		return nil, errors.Join(fmt.Errorf("spool %s: another server uses it", dir), err)
	}
	for _, d := range []string{"done", "tmp"} { // uploads that are in the store, and those that were not acknowledged
		err = errors.Join(err, os.RemoveAll(s.path(d)))
	}
	for _, d := range []string{"new", "batch", "devices", "tmp", "bad"} {
		err = errors.Join(err, os.MkdirAll(s.path(d), 0o700))
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, list := range []string{"bad", "batch", "new"} {
		names, err := s.list(list)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if list == "bad" {
				s.bad[sumOf(name)] = true
				continue
			}
			if info, err := os.Lstat(s.path(list, name)); err == nil {
				s.size.Add(info.Size())
			}
			e, err := s.read(list, name, nil)
			if err != nil {
				continue // it is set aside when it is written
			}
			d := s.device(e.Device) // which may lack it, if the server was killed in add
			d.add(sumOf(name), e.State)
			if err := s.put(d); err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
		}
	}
	return s, nil
}

func (s *Spool) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// file returns the name of the file of a device: devices choose no file names.
func (s *Spool) file(device string) string {
	return s.path("devices", fmt.Sprintf("%x", sha256.Sum256([]byte(device))))
}

// device returns the line of a device. One that cannot be read is moved to bad: the device begins anew.
func (s *Spool) device(name string) *entry {
	e := &entry{}
	line, err := os.ReadFile(s.file(name))
	if err == nil {
		err = e.parse(line)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("the state of a device could not be read: an upload that is sent again may count twice", "device", name, "err", err)
		os.Rename(s.file(name), s.path("bad", fmt.Sprintf("device-%d", time.Now().UnixNano())))
	}
	if err != nil {
		e = &entry{Device: name}
	}
	return e
}

// put writes the line of a device. It is durable after sync.
func (s *Spool) put(e *entry) error {
	tmp := s.path("tmp", "device")
	if err := os.WriteFile(tmp, e.text(), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, s.file(e.Device))
}

// State returns the state of a device after its last upload.
func (s *Spool) State(device string) ingest.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.device(device).State
}

// wasBad reports whether an upload was accepted, and could not be read then.
func (s *Spool) wasBad(sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad[sum]
}

// forget deletes the state of a device, and the files in bad, which cannot be searched.
func (s *Spool) forget(device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.list("bad")
	for _, name := range names {
		err = errors.Join(err, os.Remove(s.path("bad", name)))
	}
	if e := os.Remove(s.file(device)); !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, store.SyncPath(s.path("devices")))
}

// Close closes the spool.
func (s *Spool) Close() error { return s.lock.Close() }

// Size returns the size of the waiting uploads in bytes.
func (s *Spool) Size() int64 { return s.size.Load() }

// errChanged is returned by add if the device has sent another upload since its state was read.
var errChanged = errors.New("the state of the device changed")

// add adds an upload to the spool, durably: its rows, and the states of its device before and after it. again reports whether
// the upload is in the spool or in the store already.
func (s *Spool) add(u *ingest.Upload, res *ingest.Result, rows []byte, before, after ingest.State) (again bool, err error) {
	sum := u.Sum()
	if res.Dumps == 0 { // only a header, which may be that of the boot before
		sum = fmt.Sprintf("%s.%d", sum, u.Received.UnixNano())
	}
	tmp := s.path("tmp", fmt.Sprintf("%d-%s", u.Received.UnixNano(), sum))
	defer os.Remove(tmp)
	head := (&entry{Device: u.Device, State: after, Dumps: res.New}).text()
	full := s.Size() >= s.limit
	if !full {
		if err := writeSynced(tmp, append(head, rows...)); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.device(u.Device)
	state := e.State
	switch again = e.add(sum, after) && !s.bad[sum]; { // a bad one was accepted, and lost
	case again:
		return true, store.SyncPath(s.path("new")) // the add before may have failed to
	case full:
		return false, ErrBusy
	case state != before:
		return false, errChanged
	}
	s.last = max(s.last+1, u.Received.UnixNano()) // names are in the order of the states
	name := fmt.Sprintf("%020d-%d-%s", s.last, res.Facts+factsPerDump*res.Dumps+res.Frames/framesPerFact, sum)
	if err := os.Rename(tmp, s.path("new", name)); err != nil {
		return false, err
	}
	if err := s.put(e); err != nil {
		return false, errors.Join(err, os.Remove(s.path("new", name)))
	}
	delete(s.bad, sum)
	s.size.Add(int64(len(head) + len(rows)))
	return false, store.SyncPath(s.path("new"))
}

// Unreadable is the error of an upload that cannot be read.
type Unreadable struct{ error }

func (u Unreadable) Unwrap() error { return u.error }

// Put reads an upload, and adds it to the spool, durably. It then calls read with what is in the upload, and the time
// that it took, and adds nothing if read returns an error. again reports whether the upload is in the spool or in the store already.
func (s *Spool) Put(ctx context.Context, u *ingest.Upload, limit ingest.Limits, read func(*ingest.Result, time.Duration) error) (res ingest.Result, again bool, err error) {
	for {
		start := time.Now()
		before := s.State(u.Device)
		after := before
		if s.wasBad(u.Sum()) { // the dumps that the state has are lost
			after = ingest.State{}
		}
		rows, res, err := encode(ctx, u, &after, limit)
		if e := read(&res, time.Since(start)); err != nil {
			return res, false, Unreadable{err}
		} else if e != nil {
			return res, false, e
		}
		again, err := s.add(u, &res, rows, before, after)
		if !errors.Is(err, errChanged) {
			return res, again, err
		}
	}
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
	return e, nil
}

// decode is the inverse of encode, after a line for the upload. On an error, the batch stays.
func decode(r *bufio.Reader, to *store.Batch) (*entry, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if err := e.parse(line); err != nil || to == nil {
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

// end records that the batch is in the store, and removes its uploads; those in bad it sets aside. devices are those of
// the others, whose states must be durable before.
func (s *Spool) end(names, devices, bad []string) error {
	var size int64
	for _, name := range names {
		if info, err := os.Lstat(s.path("batch", name)); err == nil {
			size += info.Size()
		}
	}
	for _, name := range devices {
		if err := store.SyncPath(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := errors.Join(store.SyncPath(s.path("devices")), os.RemoveAll(s.path("done")))
	for _, name := range bad {
		if e := os.Link(s.path("batch", name), s.path("bad", name)); !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
		s.mu.Lock() // it may be sent anew
		s.bad[sumOf(name)] = true
		s.mu.Unlock()
	}
	if err == nil { // at once: the rest of a batch would be another batch
		err = os.Rename(s.path("batch"), s.path("done"))
	}
	if err != nil {
		return err
	}
	s.size.Add(-size)
	if err := store.SyncPath(s.dir); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(s.path("done")), os.MkdirAll(s.path("batch"), 0o700))
}
