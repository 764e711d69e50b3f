// Package ingest converts the logs of devices to rows of a store.
package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/fleet/store"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/decompress"
	"github.com/lwsbt/lwsbt/symbol"
)

// Upload is a log, or a part of one, as a device sent it. A part should end at the end of a
// dump, since the rest of a dump in a later upload is not added to it. A part that begins with a ~h#boot
// may have no dump: it begins a boot.
type Upload struct {
	Device string
	// Build and FW are used for boots whose header does not contain them (SPEC.md, BT-HEAD-6).
	Build, FW string
	Labels    store.Labels
	Received  time.Time
	Text      []byte // UTF-8, not compressed
}

// Sum returns the first 32 hexadecimal digits of the SHA-256 of device and text. Uploads of
// one device with the same text are the same upload.
func (u *Upload) Sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", u.Device)
	h.Write(u.Text)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// State holds the facts about a device's earlier uploads that are needed to read the next one.
// The zero State is the state of a device without uploads.
type State struct {
	Boot   int64  `json:"boot"`             // see [store.Dump]
	Header string `json:"header"`           // the ~h#boot of that boot; "" if there is none
	Dumps  int64  `json:"dumps"`            // of that boot so far
	Number int64  `json:"number,omitempty"` // of the last of these
	Open   bool   `json:"open,omitempty"`   // the upload ended within a dump
	Last   Last   `json:"last"`             // of all dumps of the device
}

// Last is the last dump of a device. A log that grows may be sent again whole: its dumps up to this one
// are not new.
type Last struct {
	Build, FW                              string
	Boot, Dump, Time, Uptime, Bytes, Count int64
	Complete                               bool
}

// LastOf returns the last dump, from its row.
func LastOf(d *store.Dump) Last {
	return Last{d.Build, d.FW, d.Boot, d.Dump, d.Time, d.Uptime, d.Bytes, d.Count, d.Complete}
}

// isLast reports whether a dump is the last dump, or the whole of it if that was cut off. Only the uptime, and the header
// of the boot if it differs, tell dumps with the same content apart.
func (w *writer) isLast(d *profile.Dump) bool {
	l := &w.state.Last
	build, fw := w.u.version(d)
	if w.state.Boot == l.Boot && w.state.Header != d.BootHeader {
		return false
	}
	if e := epoch(d.BootHeader); e > 0 && e != l.Time-l.Uptime {
		return false
	}
	same := l.Bytes == number(d.Total.Bytes) && l.Count == number(d.Total.Count)
	return l.Boot != 0 && l.Build == build && l.FW == fw && d.Timed && l.Uptime == d.Time.Microseconds() && (same || !l.Complete)
}

// version returns the build and the firmware of a dump.
func (u *Upload) version(d *profile.Dump) (build, fw string) {
	return cmp.Or(d.Build, u.Build, store.Unknown), clean(cmp.Or(d.Firmware, u.FW))
}

// Limits of one upload.
type Limits struct {
	Paths  int // distinct call paths
	Frames int // of these call paths, each with all its frames
	Dumps  int
	Facts  int // call paths of all dumps
	Builds int // each becomes some files of the store
}

// DefaultLimits suit devices of some megabytes of heap. A few bytes of a log may add a call path of
// 1,024 frames, or repeat all call paths of a dump, so the limits count what is stored.
var DefaultLimits = Limits{Paths: 100_000, Frames: 1_500_000, Dumps: 10_000, Facts: 1_000_000, Builds: 8}

// maxHeap is the largest number of bytes or blocks of a dump: sums over all devices of a fleet are exact.
const maxHeap = 1 << 46

// maxTime is the limit of an uptime and of a Unix time in µs, 142 years. A later one counts as none.
const maxTime = 1 << 52

// ErrNoDump is returned for an upload without a dump and without a ~h#boot that begins it.
var ErrNoDump = errors.New("no heap dump: expected a log with ~m# or ~p# lines (SPEC.md)")

// ErrText is returned for an upload that is compressed, or UTF-16.
var ErrText = errors.New("the log is UTF-16 or compressed (again, or by xz): expected UTF-8")

// ErrLimit is returned for an upload that exceeds [Limits].
var ErrLimit = errors.New("too much in one upload")

// ErrDevice is returned if a log names another device.
var ErrDevice = errors.New("the log names another device")

// device matches valid names of devices.
var device = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)

// CheckDevice returns an error unless name is a valid name of a device: 1 to 128 letters, digits
// and . _ : @ -, the first of which is a letter or digit.
func CheckDevice(name string) error {
	if !device.MatchString(name) {
		return fmt.Errorf("device %q: expected 1 to 128 letters, digits and . _ : @ -, the first a letter or digit", name)
	}
	return nil
}

// maxVersion is the largest number of bytes of a build ID, which becomes the name of a directory
// (see [store.Escape]), and of a version or reason.
const maxVersion = 200

// checkBuild returns an error unless a build can be the name of a directory, and a part of a page's URL.
func checkBuild(build string) error {
	if n := len(store.Escape(build)); n > maxVersion || clean(build) != build || build == "." || build == ".." {
		return fmt.Errorf("build %.40q: expected printable UTF-8 of up to %d bytes, of which those that a URL escapes count three times", build, maxVersion)
	}
	return nil
}

// clean returns a version or a reason, which are for people, without what is too long. What is not printable
// becomes U+FFFD.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(s[:min(len(s), maxVersion)], "\ufffd"))
}

// Result holds the numbers of an upload.
type Result struct {
	Dumps      int
	New        int // dumps that the device had not sent before
	Facts      int // call paths of all dumps
	Paths      int // distinct
	Frames     int // of these, each with all its frames
	Builds     []string
	Incomplete int   // dumps known to be incomplete
	Unreadable int64 // unreadable records
}

// Dump is the rows of a dump.
type Dump struct {
	store.Dump
	Facts []Value
	Paths []store.Path // that no dump before of the upload has
}

// Value is a [store.Fact], without what it has in common with its dump.
type Value struct{ Path, Count, Bytes int64 }

// Append appends the rows to a batch.
func (d *Dump) Append(b *store.Batch) {
	b.Dumps, b.Paths = append(b.Dumps, d.Dump), append(b.Paths, d.Paths...)
	for _, v := range d.Facts {
		b.Facts = append(b.Facts, store.Fact{Build: d.Build, Device: d.Device, Path: v.Path, Boot: d.Boot, Dump: d.Dump.Dump, Time: d.Time,
			Count: v.Count, Bytes: v.Bytes, Complete: d.Complete, Lost: d.Lost})
	}
}

// Read reads an upload of a device with a state. It passes the dumps that are new to add, and sets s to the state after the
// upload. On an error of the upload it adds nothing, and s stays. If the header of the boot before does not suit the log,
// the log is read without it.
func (u *Upload) Read(ctx context.Context, s *State, limit Limits, add func(*Dump) error) (Result, error) {
	before := *s
	c, err := u.read(ctx, s, &limit)
	if err != nil && s.Header != "" && ctx.Err() == nil {
		*s = State{Last: s.Last}
		c, err = u.read(ctx, s, &limit)
	}
	if err != nil {
		*s = before
		return c.Result, err
	}
	w := writer{u: u, add: add, sum: u.Sum(), state: *s, boot: 1, header: u.header(), paths: map[pathOf]int64{}, texts: map[symbol.Addr]string{}}
	if c.Dumps == 0 {
		if s.Boot == s.Last.Boot || s.Header != c.end.BootHeader { // else it is sent again
			w.begin(c.end.Boots, c.end.BootHeader)
			*s = w.state
		}
		return c.Result, nil
	}
	w.last = c.dumps[c.Dumps-1]
	if w.header {
		w.boot = c.dumps[0].Boot
	}
	begun := s.Boot > s.Last.Boot && !w.header // a boot without dumps, which the upload continues
	if i := slices.IndexFunc(c.dumps, w.isLast); i >= 0 && !begun {
		w.resume(c.dumps[i])
		c.dumps = c.dumps[i+1:]
	}
	for _, d := range c.dumps {
		if err := w.dump(d); err != nil {
			return c.Result, err
		}
	}
	c.New = len(c.dumps)
	if c.end.BootHeader != "" && c.end.Boots > w.boot { // a boot without a dump so far
		w.begin(c.end.Boots, c.end.BootHeader)
	}
	w.state.Open = u.open(s.Open)
	*s = w.state
	return c.Result, nil
}

// contents holds the dumps of the log of an upload.
type contents struct {
	Result
	dumps []*profile.Dump
	end   heaplog.Summary
	seen  map[profile.Path]struct{}
	stack []symbol.Addr
}

// read reads the log, and checks that it can be stored.
func (u *Upload) read(ctx context.Context, s *State, limit *Limits) (c contents, err error) {
	if err := cmp.Or(CheckDevice(u.Device), checkBuild(u.Build)); err != nil {
		return c, err
	}
	if decompress.FormatOf(u.Text) != "" || bytes.HasPrefix(u.Text, []byte("\xff\xfe")) || bytes.HasPrefix(u.Text, []byte("\xfe\xff")) {
		return c, ErrText // the reader would convert it, but not after the header of a state
	}
	r, err := heaplog.Open(ctx, heaplog.Stream(u.text(s), u.Device), heaplog.Unnamed(), heaplog.MaxPaths(limit.Paths))
	if err != nil {
		return c, err
	}
	defer r.Close()
	c.seen = map[profile.Path]struct{}{}
	for d, err := range r.Dumps() {
		if errors.Is(err, heaplog.ErrNoRecord) {
			break
		}
		if err == nil {
			d.Cut = d.Cut || c.Dumps == 0 && u.rest(s.Open)
			d.Timed = d.Timed && d.Time.Microseconds() < maxTime
			err = cmp.Or(u.check(d.Device, d.Build), c.add(u, d, limit))
		}
		if err != nil {
			return c, err
		}
	}
	for _, d := range c.dumps {
		d.Heaps = r.HeapsOf(d)
	}
	c.Paths, c.end = len(c.seen), r.Summary()
	if c.end.BootHeader != "" { // of a boot that may have no dump
		h := parse(c.end.BootHeader)
		dev, _ := h.Get("dev")
		build, _ := h.Get("build")
		if err := u.check(dev, build); err != nil {
			return c, err
		}
	}
	if c.Dumps == 0 && (!u.header() || c.end.BootHeader == "" || len(c.end.Faults) > 0) ||
		c.Dumps > 0 && c.end.Readable() == 0 && !c.dumps[c.Dumps-1].Complete() {
		return c, ErrNoDump
	}
	return c, nil
}

// check returns an error if the header of a boot names another device, or a build that cannot be stored.
func (u *Upload) check(dev, build string) error {
	if dev != "" && dev != u.Device {
		return fmt.Errorf("%w: dev=%s, expected %s", ErrDevice, dev, u.Device)
	}
	return checkBuild(build)
}

// add adds a dump. It returns an error at the limits.
func (c *contents) add(u *Upload, d *profile.Dump, limit *Limits) error {
	c.dumps = append(c.dumps, d)
	if c.Dumps++; c.Dumps > limit.Dumps {
		return fmt.Errorf("%w: more than %d dumps", ErrLimit, limit.Dumps)
	}
	if d.Loss.OtherPaths > 0 {
		return fmt.Errorf("%w: more than %d call paths", ErrLimit, limit.Paths)
	}
	if c.Facts += d.Len(); c.Facts > limit.Facts {
		return fmt.Errorf("%w: more than %d call paths over the dumps: send fewer dumps at once", ErrLimit, limit.Facts)
	}
	if c.Unreadable += d.Loss.Unreadable; !d.Complete() {
		c.Incomplete++
	}
	if build, _ := u.version(d); !slices.Contains(c.Builds, build) {
		c.Builds = append(c.Builds, build)
	}
	if len(c.Builds) > limit.Builds {
		return fmt.Errorf("%w: more than %d builds", ErrLimit, limit.Builds)
	}
	if d.Total.Bytes > maxHeap || d.Total.Count > maxHeap {
		return fmt.Errorf("%w: a dump of %d blocks and %d bytes, expected up to %d", ErrLimit, d.Total.Count, d.Total.Bytes, uint64(maxHeap))
	}
	for a := range d.Allocations() {
		if a.Bytes > maxHeap || a.Count > maxHeap {
			return fmt.Errorf("%w: a call path of %d blocks and %d bytes, expected up to %d", ErrLimit, a.Count, a.Bytes, uint64(maxHeap))
		}
		if _, known := c.seen[a.Path]; known {
			continue
		}
		c.seen[a.Path] = struct{}{}
		c.stack = a.Append(c.stack[:0])
		if c.Frames += len(c.stack); c.Frames > limit.Frames {
			return fmt.Errorf("%w: the call paths have more than %d frames", ErrLimit, limit.Frames)
		}
	}
	return nil
}

// header reports whether the log begins with a ~h#boot.
func (u *Upload) header() bool {
	for it := range recording.Items(u.Text) {
		if it.Kind != recording.KindText {
			return it.Kind == recording.KindHeader && it.Header.Verb == codec.VerbBoot
		}
	}
	return false
}

// rest reports whether the log begins within a dump: it has records before a ~h#begin, and then a ~h#end, or
// the log before ended within a dump.
func (u *Upload) rest(open bool) bool {
	records := false
	for it := range recording.Items(u.Text) {
		switch it.Kind {
		case recording.KindHeader:
			if v := it.Header.Verb; v == codec.VerbBoot || v == codec.VerbBegin || v == codec.VerbEnd {
				return records && (open || v == codec.VerbEnd)
			}
		case recording.KindBlob, recording.KindDecoded, recording.KindPaths:
			records = true
		}
	}
	return records && open
}

// open reports whether the log ends within a dump. open is that of the log before.
func (u *Upload) open(open bool) bool {
	last := func(verb string) int { return bytes.LastIndex(u.Text, []byte("~h#"+verb)) }
	begin, end := last(codec.VerbBegin), max(last(codec.VerbEnd), last(codec.VerbBoot))
	return begin > end || begin == end && open // both -1
}

// text returns the log, after the header of the boot that it continues.
func (u *Upload) text(s *State) io.Reader {
	if s.Header == "" || u.header() {
		return bytes.NewReader(u.Text)
	}
	return io.MultiReader(bytes.NewReader([]byte(s.Header+"\n")), bytes.NewReader(u.Text))
}

// epoch returns the Unix time in µs at uptime 0, as the key epoch of a ~h#boot says; 0 if it does not.
func epoch(header string) int64 {
	h := parse(header)
	if v, _ := h.Uint("epoch"); v < maxTime {
		return int64(v)
	}
	return 0
}

// parse returns a header, which a log had; an empty one if it is none.
func parse(header string) (h codec.Header) {
	codec.ParseHeader(&h, []byte(header))
	return h
}

// pathOf is a call path of a build.
type pathOf struct {
	build string
	path  profile.Path
}

// writer makes the rows of the dumps of an upload.
type writer struct {
	u      *Upload
	add    func(*Dump) error
	row    Dump // that is being written
	sum    string
	state  State
	boot   int  // number of the boot of the last dump
	within bool // the boot of the state is one of this upload
	header bool // the upload begins with a ~h#boot
	last   *profile.Dump
	paths  map[pathOf]int64
	texts  map[symbol.Addr]string // of addresses
	stack  []symbol.Addr
}

// dump adds a dump.
func (w *writer) dump(d *profile.Dump) error {
	if w.state.Boot == 0 || d.Boot != w.boot || !w.within && !w.continues(d) {
		w.begin(d.Boot, d.BootHeader)
	}
	build, fw := w.u.version(d)
	w.row = Dump{Dump: store.Dump{
		Build: build, FW: fw, Device: w.u.Device,
		Boot: w.state.Boot, Dump: w.state.Dumps, Time: w.time(d), Uptime: -1, Received: w.u.Received.UnixMicro(),
		Bytes: number(d.Total.Bytes), Count: number(d.Total.Count), Complete: d.Complete(), Why: clean(d.Why),
		Labels: w.u.Labels, Upload: w.sum,
	}}
	row := &w.row.Dump
	setHeaps(row, d)
	if d.Timed {
		row.Uptime = d.Time.Microseconds()
	}
	row.Lost, _ = d.Missing()
	w.state.Dumps++
	w.state.Number, w.state.Last = d.Number, LastOf(row)
	held := map[int64]int{} // facts by path; different paths may have the same text
	for a := range d.Allocations() {
		id := w.path(row.Build, a.Path)
		i, ok := held[id]
		if !ok {
			i = len(w.row.Facts)
			held[id] = i
			w.row.Facts = append(w.row.Facts, Value{Path: id})
		}
		w.row.Facts[i].Count += number(a.Count)
		w.row.Facts[i].Bytes += number(a.Bytes)
	}
	return w.add(&w.row)
}

// continues reports whether the first dump of the upload is of the boot of the upload before. It is not if
// the upload begins with a header, unless the device sends the header of its boot with each upload: the
// number and the time of the dumps then do not begin anew. Without a header, it is not if both begin anew.
func (w *writer) continues(d *profile.Dump) bool {
	s := &w.state
	later := !d.Timed || s.Dumps == 0 || d.Time.Microseconds() >= s.Last.Uptime
	if d.BootHeader != s.Header {
		return false
	}
	if w.header {
		return d.Number > s.Number && later
	}
	return d.Number > min(s.Number, 1) || later
}

// begin begins a boot of the device.
func (w *writer) begin(boot int, header string) {
	last := w.state.Last
	w.state = State{Boot: max(w.u.Received.UnixMicro(), w.state.Boot+1, last.Boot+1), Header: header, Last: last}
	w.boot, w.within = boot, true
}

// resume continues after the last dump of the device, which the upload contains.
func (w *writer) resume(d *profile.Dump) {
	last := w.state.Last
	w.state = State{Boot: last.Boot, Header: d.BootHeader, Dumps: last.Dump + 1, Number: d.Number, Last: last}
	w.boot, w.within = d.Boot, true
}

// time returns the Unix time of a dump in µs: by the device's clock if the header of the boot
// has the key epoch, else computed back from the last dump, which is assumed to be new.
func (w *writer) time(d *profile.Dump) int64 {
	switch {
	case d.Timed && epoch(w.state.Header) > 0:
		return epoch(w.state.Header) + d.Time.Microseconds()
	case d.Timed && w.last.Timed && w.last.Boot == d.Boot:
		return w.u.Received.UnixMicro() - (w.last.Time - d.Time).Microseconds()
	}
	return w.u.Received.UnixMicro()
}

// path returns the identifier of a call path, and adds the path to the row.
func (w *writer) path(build string, p profile.Path) int64 {
	key := pathOf{build, p}
	if id, ok := w.paths[key]; ok {
		return id
	}
	w.stack = p.Append(w.stack[:0])
	addresses := make([]string, len(w.stack))
	for i, a := range w.stack {
		text, known := w.texts[a]
		if !known {
			text = address(a)
			w.texts[a] = text
		}
		addresses[i] = text
	}
	id := store.PathID(addresses)
	w.paths[key] = id
	w.row.Paths = append(w.row.Paths, store.Path{Build: build, Path: id, Addresses: addresses})
	return id
}

// address returns the text of an address; see [store.Path].
func address(a symbol.Addr) string {
	if offset, ok := heaplog.CodeOffset(a); ok {
		return fmt.Sprintf("code+%#x", offset)
	}
	return a.String()
}

// setHeaps sets the sums over the heaps of a device, and the largest free block of any, -1 for what a heap does not report; and the
// heaps as JSON if two or more have a size. ~h#heap lines are preferred to those of other systems, which report the same memory.
func setHeaps(row *store.Dump, d *profile.Dump) {
	own := slices.ContainsFunc(d.Heaps, func(h profile.Heap) bool { return h.Free.Known && !h.Foreign })
	row.HeapSize, row.HeapFree, row.HeapLargest, row.HeapMinimum = -1, -1, -1, -1
	var list []store.Heap
	for i, h := range slices.DeleteFunc(slices.Clone(d.Heaps), func(h profile.Heap) bool { return !h.Free.Known || own && h.Foreign }) {
		if i == 0 {
			row.HeapSize, row.HeapFree, row.HeapMinimum = 0, 0, 0
		}
		row.HeapSize, row.HeapFree, row.HeapMinimum = sum(row.HeapSize, known(h.Size)), sum(row.HeapFree, known(h.Free)), sum(row.HeapMinimum, known(h.Min))
		row.HeapLargest = max(row.HeapLargest, known(h.Largest))
		if h.Size.Known && len(list) < 64 {
			list = append(list, store.Heap{Name: clean(h.Name), Size: known(h.Size), Free: known(h.Free)})
		}
	}
	if text, err := json.Marshal(list); err == nil && len(list) > 1 {
		row.Heaps = string(text)
	}
}

// sum returns a + b, -1 if one of them is not known.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return number(uint64(a) + uint64(b))
}

// known returns an amount, -1 if it is not known.
func known(a profile.Amount) int64 {
	if !a.Known {
		return -1
	}
	return number(a.Bytes)
}

func number(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// DeviceOf returns the name of the device in the first ~h#boot that contains one, or "".
func DeviceOf(text []byte) string {
	for it := range recording.Items(text) {
		if it.Kind != recording.KindHeader || it.Header.Verb != codec.VerbBoot {
			continue
		}
		if name, ok := it.Header.Get("dev"); ok {
			return name
		}
	}
	return ""
}
