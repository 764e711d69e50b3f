package logs

import (
	"fmt"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// At is a moment of a recording with events.
type At struct {
	Peak, End bool
	Time      uint64 // in microseconds, if neither
}

// ParseAt reads "peak", "end", or a time such as "2.5s"; "" is the end.
func ParseAt(s string) (At, error) {
	switch s {
	case "", "end":
		return At{End: true}, nil
	case "peak":
		return At{Peak: true}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return At{}, fmt.Errorf("%q, expected peak, end, or a time such as 2.5s", s)
	}
	return At{Time: uint64(d.Microseconds())}, nil
}

// Of returns what was live at the moment.
func (a At) Of(e *profile.Events) *profile.Dump {
	switch {
	case a.Peak:
		return e.AtPeak()
	case a.End:
		return e.AtEnd()
	}
	return e.At()
}

// Profile adds up the records of all logs by dump and call path. Of a recording
// with events, the replay is in Events afterwards; if it has no dumps, or a moment
// is given, the profile has one: what was live then.
func (r *Reader) Profile(maxPaths int, at *At) (*profile.Profile, error) {
	b := r.newBuilder(maxPaths)
	if at != nil && !at.Peak && !at.End {
		b.events.WatchAt(at.Time)
	}
	h := b.handler()
	if r.Status != nil {
		h.Flush = b.status
	}
	err := r.Each(h)
	b.release()
	b.finish()
	if b.events.Seen() > 0 {
		r.events, r.badFrees = b.events, b.badFrees
		if at != nil || len(b.prof.Dumps) == 0 {
			moment := At{End: true}
			if at != nil {
				moment = *at
			}
			b.prof.Dumps = []*profile.Dump{moment.Of(b.events)}
		}
	} else if at != nil && err == nil && r.found > 0 {
		err = cli.Usagef("--at: the log has no events (~e# lines)")
	}
	return b.prof, err
}

// status says before a wait what there is.
func (b *builder) status() error {
	text := "no dump yet"
	if list := b.prof.Dumps; len(list) == 1 {
		text = fmt.Sprintf("1 dump, %s bytes", cli.Number(list[0].Total.Bytes))
	} else if n := len(list); n > 1 {
		text = fmt.Sprintf("%d dumps, %s → %s bytes", n, cli.Number(list[0].Total.Bytes), cli.Number(list[n-1].Total.Bytes))
	}
	if n := b.events.Seen(); n > 0 {
		text += ", " + cli.Count(n, "event")
	}
	b.r.Status(text + "; Ctrl-C prints the report")
	return nil
}

// Events returns the replay of a recording's events, nil if there were none.
func (r *Reader) Events() *profile.Events { return r.events }

// BadFrees returns where the first frees were that freed nothing.
func (r *Reader) BadFrees() []dump.Place { return r.badFrees }

// builder makes a profile of records.
type builder struct {
	r         *Reader
	prof      *profile.Profile
	begun     int // dumps of the sequence that were begun in prof
	current   *profile.Dump
	held      []held
	modules   map[moduleKey]*profile.Module
	numbers   map[fileKey]uint32 // of files, for tags
	path      []profile.LocationID
	known     []known       // by dump.MemoSlot
	forkPaths [][]knownPath // by worker, by dump.MemoSlot
	before    symbol.Counts

	// aliases finds the locations of addresses that were looked up, as records have
	// them, in the space and the epoch of aliased.
	aliases profile.Index
	aliased state

	events   *profile.Events
	badFrees []dump.Place // the first few
	time     uint64       // of the last event
}

func (r *Reader) newBuilder(maxPaths int) *builder {
	b := &builder{r: r, prof: &profile.Profile{MaxPaths: maxPaths}, modules: map[moduleKey]*profile.Module{}, numbers: map[fileKey]uint32{}}
	b.events = b.prof.NewEvents()
	return b
}

func (b *builder) handler() Handler {
	return Handler{Sequence: true, Record: b.record, Known: b.again, Event: b.event, Header: b.header, Fork: b.fork}
}

// held is a record that waits for its dump.
type held struct {
	path   profile.PathID
	value  profile.Value
	noSize bool
}

// fileKey is a file whose addresses mean the same in every boot.
type fileKey struct{ module, buildID string }

type moduleKey struct {
	fileKey
	start uint64
}

// Tags keep apart addresses that are equal: the state in the low two bits, above
// them 0 for addresses in memory or the number of a file.
const tagState = 2

// known is the call path of a record that is remembered.
type known struct {
	memo   uint64
	epoch  int
	space  *symbol.Space
	path   profile.PathID
	counts symbol.Counts // what looking it up counted
}

// again adds a record that came before, if its call path is the same now.
func (b *builder) again(rec *dump.Record) bool {
	if b.known == nil {
		b.known = make([]known, dump.MemoSlots)
	}
	c := &b.r.Process.Counts
	k := &b.known[dump.MemoSlot(rec.Memo)]
	if k.memo != rec.Memo || k.epoch != b.r.epoch || k.space != b.r.Process.Maps.Space() {
		b.before = *c
		return false
	}
	c.Add(&k.counts)
	b.place(held{path: k.path, value: profile.Value{Bytes: rec.Stack.Size, Count: 1}})
	return true
}

// remember keeps the call path of a record that again was asked for.
func (b *builder) remember(rec *dump.Record, path profile.PathID) {
	c, was := b.r.Process.Counts, &b.before
	b.known[dump.MemoSlot(rec.Memo)] = known{rec.Memo, b.r.epoch, b.r.Process.Maps.Space(), path, symbol.Counts{
		Addresses: c.Addresses - was.Addresses, Lossy: c.Lossy - was.Lossy, Inferred: c.Inferred - was.Inferred,
		Ambiguous: c.Ambiguous - was.Ambiguous, LossySizes: c.LossySizes - was.LossySizes}}
}

func (b *builder) record(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
	path := b.pathOf(rec, &recovery, addrs)
	if rec.Memo != 0 {
		b.remember(rec, path)
	}
	b.place(held{path: path, value: profile.Value{Bytes: rec.Stack.Size, Count: 1}, noSize: rec.Cut && !rec.Sized})
	return nil
}

// place adds a record to its dump, once that is known.
func (b *builder) place(h held) {
	switch b.r.verdict {
	case dump.Hold:
		b.held = append(b.held, h)
		return
	case dump.Split:
		b.begin()
	}
	b.release()
	b.add(h)
}

// header begins dumps at once, for one may have no records.
func (b *builder) header(rec *dump.Record) error {
	switch rec.Header.Verb {
	case codec.VerbBoot:
		b.events.Boot()
		b.r.process, _ = rec.Header.Get("pid")
		b.r.unended = false
	case codec.VerbLost:
		n, _ := rec.Header.Uint("n")
		b.r.lostEvents += min(n, math.MaxUint64-b.r.lostEvents)
	case codec.VerbEnd:
		b.r.unended = false
	}
	if len(b.r.sequence.Dumps) > b.begun {
		b.release()
		b.begin()
	}
	return nil
}

// event replays an allocation event. One that is not known is skipped. (BT-EVT-3)
func (b *builder) event(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
	u := &rec.User
	kind, _ := u.Get(codec.TagEvent)
	addr, _ := u.Get(codec.TagAddress)
	time, ok := u.Get(codec.TagTime)
	if !ok {
		time = b.time // as late as the event before
	}
	b.time = time
	b.r.unended = b.r.process != "" // btrecord ends a process by a dump
	thread, _ := u.Get(codec.TagThread)
	ok = true
	switch kind {
	case codec.EventAllocated:
		b.events.Alloc(b.pathOf(rec, &recovery, addrs), addr, rec.Stack.Size, time, thread)
	case codec.EventFreed:
		ok = b.events.Free(addr, time, thread)
	case codec.EventMoved:
		old, _ := u.Get(codec.TagOldAddress)
		ok = b.events.Move(b.pathOf(rec, &recovery, addrs), old, addr, rec.Stack.Size, time, thread)
	}
	if !ok && len(b.badFrees) < dump.MaxPlaces {
		b.badFrees = append(b.badFrees, rec.Place)
	}
	return nil
}

// begin begins the dumps that the sequence has found.
func (b *builder) begin() {
	for ; b.begun < len(b.r.sequence.Dumps); b.begun++ {
		d := &b.r.sequence.Dumps[b.begun]
		b.current = b.prof.Begin(profile.Dump{Boot: d.Boot, Number: d.Number, File: d.File, Line: d.Line, Time: d.Time, Timed: d.Timed})
	}
}

// release adds the records that were held to the current dump.
func (b *builder) release() {
	for _, h := range b.held {
		b.add(h)
	}
	b.held = b.held[:0]
}

func (b *builder) add(h held) {
	if b.current == nil {
		b.begin()
	}
	b.prof.Add(h.path, h.value)
	if h.noSize {
		b.current.NoSize++
	}
}

// finish names the dumps, and notes what headers announced.
func (b *builder) finish() {
	b.prof.End()
	for i, d := range b.prof.Dumps {
		from := &b.r.sequence.Dumps[i]
		d.Name = fmt.Sprintf("dump %d", i+1)
		if len(b.prof.Dumps) == 1 {
			d.Name = d.File
		}
		d.Cut = from.Start == dump.StartMarked && from.End == nil
		for _, a := range []*dump.Announce{from.Begin, from.End} {
			if a == nil {
				continue
			}
			if a.HasRecords {
				d.AnnouncedRecords, d.HasAnnouncedRecords = a.Records, true
			}
			if a.HasBytes {
				d.AnnouncedBytes, d.HasAnnouncedBytes = a.Bytes, true
			}
		}
	}
}

// pathOf returns the call path of a record.
func (b *builder) pathOf(rec *dump.Record, recovery *symbol.Recovery, addrs []symbol.FrameAddr) profile.PathID {
	b.path = b.path[:0]
	if !b.prof.HasCapacity(len(rec.Stack.PCs)) {
		return b.prof.OtherPath()
	}
	if addrs == nil {
		for i, pc := range rec.Stack.PCs {
			state := recovery.State(i)
			id, fresh := b.prof.Location(pc, uint32(state))
			if fresh && state != symbol.Exact {
				b.prof.Describe(id, &profile.Location{Addr: pc, Call: pc, State: profile.State(state)})
			}
			b.path = append(b.path, id)
		}
	} else {
		now := state{space: b.r.Process.Maps.Space(), epoch: b.r.epoch}
		if now != b.aliased {
			b.aliases.Reset()
			b.aliased = now
		}
		for i := range addrs {
			a := &addrs[i]
			id, known := b.aliases.Get(a.PC, uint32(a.State))
			if !known {
				id = uint32(b.location(a))
				if a.State != symbol.Inferred || now.space != nil { // else it is an address of a file
					b.aliases.Put(a.PC, uint32(a.State), id)
				}
			}
			b.path = append(b.path, profile.LocationID(id))
		}
	}
	id, _ := b.prof.Path(b.path)
	return id
}

// location returns the location of an address that was looked up. In a file, it is
// known by its address there, which is the same in every boot.
func (b *builder) location(a *symbol.FrameAddr) profile.LocationID {
	addr, tag := a.PC, uint32(a.State)
	if a.Module != "" {
		key := fileKey{a.Module, a.BuildID}
		n := b.numbers[key]
		if n == 0 {
			n = uint32(len(b.numbers) + 1)
			b.numbers[key] = n
		}
		addr, tag = a.ObjAddr, tag|n<<tagState
	}
	id, fresh := b.prof.Location(addr, tag)
	if !fresh {
		return id
	}
	l := &profile.Location{Addr: a.PC, Call: a.LookupPC, State: profile.State(a.State), ObjAddr: a.ObjAddr, Module: b.module(a)}
	for _, f := range a.Frames {
		l.Frames = append(l.Frames, profile.Frame{Func: f.Name, Linkage: f.Func, File: f.File, Line: f.Line, Inlined: f.Inlined})
	}
	if a.State != symbol.Exact || l.Module != nil || len(l.Frames) > 0 {
		b.prof.Describe(id, l)
	}
	return id
}

// module returns the module an address is in: a mapping of the map, or the whole
// file where there is no map.
func (b *builder) module(a *symbol.FrameAddr) *profile.Module {
	if a.Module == "" {
		return nil
	}
	m := profile.Module{Path: a.Module, BuildID: a.BuildID}
	switch {
	case a.Mapping != nil:
		m.Start, m.Limit, m.Offset = a.Mapping.Start, a.Mapping.End, a.Mapping.Offset
	case a.File != nil:
		low, high := a.File.Span()
		m.Start, m.Limit = low+a.PC-a.ObjAddr, high+a.PC-a.ObjAddr
	}
	m.Object = a.ObjAddr - (a.PC - m.Start)
	key := moduleKey{fileKey{a.Module, a.BuildID}, m.Start}
	known := b.modules[key]
	if known == nil {
		known = &m
		b.modules[key] = known
	}
	if len(a.Frames) > 0 {
		known.HasFuncs = true
		known.HasFiles = known.HasFiles || a.Frames[0].File != ""
		known.HasLines = known.HasLines || a.Frames[0].Line > 0
		known.HasInlineInfo = known.HasInlineInfo || len(a.Frames) > 1
	}
	return known
}

// NoteDumps says of dumps what is missing of them, and how many there are.
func (r *Reader) NoteDumps(p *profile.Profile, shown []*profile.Dump) {
	for _, d := range shown {
		switch {
		case d.Cut && !d.Complete() && d.HasAnnouncedRecords:
			r.Note("%s (line %d): %s of %s records, no ~h#end: it was cut", d.Name, d.Line, cli.Number(d.Records), cli.Number(d.AnnouncedRecords))
		case d.HasAnnouncedRecords && uint64(d.Records) != d.AnnouncedRecords:
			r.Note("%s (line %d): %s of %s records: lines were lost", d.Name, d.Line, cli.Number(d.Records), cli.Number(d.AnnouncedRecords))
		case d.HasAnnouncedBytes && d.Total.Bytes != d.AnnouncedBytes && !p.Saturated:
			r.Note("%s (line %d): %s of %s bytes: lines were lost or changed", d.Name, d.Line, cli.Number(d.Total.Bytes), cli.Number(d.AnnouncedBytes))
		case d.Cut:
			r.Note("%s (line %d): has no ~h#end: it was cut", d.Name, d.Line)
		}
		if d.NoSize > 0 {
			r.Note("%s: %s cut before the size, counted as 0 bytes", d.Name, cli.Count(d.NoSize, "record"))
		}
	}
	if r.unended {
		r.Note("the recording of process %s has no dump at its end: it was cut, or the process was killed", r.process)
	}
	if r.lostEvents > 0 {
		r.Note("the recorder dropped %s: sums are too low or too high", cli.Count(r.lostEvents, "event"))
	}
	if text := r.sequence.Undecided(); text != "" {
		r.Note("%s", text)
	}
	if p.Saturated {
		r.Note("sums over 2^64-1 are reported as 2^64-1")
	}
	if p.OtherRecords > 0 {
		r.Note("%s of call paths beyond the limit are added up as %q; --max-paths sets the limit", cli.Count(p.OtherRecords, "record"), profile.Other)
	}
}
