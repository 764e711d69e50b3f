package logs

import (
	"errors"
	"slices"
	"sync"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// SiteSums is what the call sites of dumps hold.
type SiteSums struct {
	sites profile.Sites
	era   uint32
}

// Top returns the call sites that hold the most.
func (s *SiteSums) Top(o profile.TopOptions) *profile.TopReport { return s.sites.Top(s.era, o) }

// Sites adds up the records of selected dumps by call site, of logs without symbols. It
// keeps no call paths; the dumps of the profile have no values. The sums are nil if only
// Profile can tell what the logs hold: it can read them again then.
func (r *Reader) Sites(maxPaths int, of Selection) (*profile.Profile, *SiteSums, error) {
	if r.flags.Named() || slices.ContainsFunc(r.sources, func(s source) bool { return s.live }) {
		return nil, nil, nil // what is live can be read only once
	}
	b := &siteBuilder{builder: r.newBuilder(maxPaths), of: of, sums: &SiteSums{era: firstEra}, most: maxPaths}
	if b.most <= 0 {
		b.most = profile.DefaultMaxPaths
	}
	err := r.pass(Handler{Sequence: true, Record: b.record, Event: b.event, Header: b.header, Fork: b.fork})
	b.finish()
	if err == nil && b.sums.sites.Len() > maxSites {
		err = errNotSites
	}
	if errors.Is(err, errNotSites) || r.badMaps > 0 {
		r.Process.Maps.Reset()
		r.Process.Counts = symbol.Counts{}
		r.process, r.unended, r.lostEvents = "", false, 0
		return nil, nil, r.Process.Files.SetWord(0, "")
	}
	return b.prof, b.sums, err
}

// errNotSites ends a pass over logs that have more than Sites can add up.
var errNotSites = errors.New("expected records without symbols")

// maxSites is how many distinct addresses Sites adds up, in some 1 GB. With more, it is for
// the limits of a Profile to say what is added up.
const maxSites = 16 << 20

// Eras are of call paths and sums: those of an earlier one do not count in the next.
const (
	notSelected = 1 // of call paths of dumps that are not selected
	firstEra    = 2
)

// siteBuilder adds up records by call site. It finds dumps and distinct call paths in the
// order of the log. For the sums that order makes no difference: each fork adds up what
// it has read, once it is known to count.
type siteBuilder struct {
	*builder
	of      Selection
	sums    *SiteSums
	paths   profile.PathSet
	most    int // call paths
	held    []heldSite
	workers []*siteWorker
	own     profile.SiteAdder // for records that no fork adds up
	keys    []profile.SiteKey
}

// siteRecord is a record.
type siteRecord struct {
	size   uint64
	path   profile.PathHash
	lost   uint32
	noSize bool
}

// heldSite is a record that waits for its dump, and its keys.
type heldSite struct {
	siteRecord
	keys []profile.SiteKey
}

func (b *siteBuilder) record(rec *dump.Record, recovery symbol.Recovery, _ []symbol.FrameAddr) error {
	if b.r.Symbols() {
		return errNotSites
	}
	sr := siteRecord{size: rec.Stack.Size, noSize: rec.Cut && !rec.Sized}
	b.keys, sr.lost, sr.path = b.own.AppendStack(b.keys[:0], rec.Stack.PCs, recovery.Lost)
	if b.r.verdict == dump.Hold {
		b.held = append(b.held, heldSite{sr, slices.Clone(b.keys)})
		return nil
	}
	b.settle()
	b.add(&sr, b.keys)
	return nil
}

func (b *siteBuilder) event(*dump.Record, symbol.Recovery, []symbol.FrameAddr) error {
	return errNotSites
}

func (b *siteBuilder) header(rec *dump.Record) error {
	if len(b.r.sequence.Dumps) > b.begun {
		b.release()
		b.begin()
	}
	return b.builder.header(rec)
}

// settle begins a dump if the verdict says so, and adds the records that were held.
func (b *siteBuilder) settle() {
	if b.r.verdict == dump.Split {
		b.begin()
	}
	if len(b.held) > 0 {
		b.release()
	}
}

// begin begins the dumps that the sequence has found.
func (b *siteBuilder) begin() {
	b.builder.begin()
	if b.of.Last {
		b.sums.era++
		b.sums.sites.Stacks, b.sums.sites.Other = 0, profile.Value{}
	}
}

// release adds the records that were held to the current dump.
func (b *siteBuilder) release() {
	for i := range b.held {
		b.add(&b.held[i].siteRecord, b.held[i].keys)
	}
	b.held = b.held[:0]
}

// add adds a record that no fork adds up.
func (b *siteBuilder) add(sr *siteRecord, keys []profile.SiteKey) {
	met := uint32(0)
	if b.count(sr.size, sr.noSize, sr.path, &met) {
		b.own.Add(&b.sums.sites, b.sums.era, keys, sr.lost, profile.Value{Bytes: sr.size, Count: 1})
	}
}

// count adds a record to the current dump, and reports whether its call sites are to be
// added up. met is the era in which its call path was met last, as far as is known.
func (b *siteBuilder) count(size uint64, noSize bool, path profile.PathHash, met *uint32) bool {
	if b.current == nil {
		b.begin()
	}
	v := profile.Value{Bytes: size, Count: 1}
	d := b.current
	if d.Total.Add(v) {
		b.prof.Saturated = true
	}
	d.Records++
	if noSize {
		d.NoSize++
	}
	era, sites := uint32(notSelected), &b.sums.sites
	if b.of.Last || b.of.All || b.of.From <= b.begun && b.begun <= b.of.To {
		era = b.sums.era
	}
	if *met != era {
		before, ok := b.paths.Meet(path, era, b.most)
		switch {
		case !ok && era != notSelected:
			b.prof.OtherRecords++
			sites.Other.Add(v)
			return false
		case !ok:
			b.prof.OtherRecords++
			return false
		case before != era && era != notSelected:
			sites.Stacks++
		}
		*met = era
	}
	return era != notSelected
}

// finish ends the profile, and adds up what forks have.
func (b *siteBuilder) finish() {
	b.release()
	b.builder.finish()
	sites := &b.sums.sites
	var running sync.WaitGroup
	for _, w := range b.workers {
		running.Go(w.flush)
	}
	b.own.Flush(sites)
	running.Wait()
	from, to, err := b.of.Of(len(b.prof.Dumps))
	if err != nil {
		return // which the report finds, too
	}
	for _, d := range b.prof.Dumps[from:to] {
		if sites.Total.Add(d.Total) {
			b.prof.Saturated = true
		}
	}
	if sites.Other.Count > 0 {
		sites.Stacks++
	}
}

// siteWorker adds up the chunks of a worker.
type siteWorker struct {
	b      *siteBuilder
	lanes  []*siteFork
	adder  profile.SiteAdder
	known  []knownSites // by dump.MemoSlot
	stacks []knownStack // of known
}

// siteFork finds the keys of a chunk's records. It is added up when its worker begins
// another chunk and it has had its turn.
type siteFork struct {
	*siteWorker
	items   []siteItem
	others  []otherSite
	keys    []profile.SiteKey // of others
	era     uint32            // of the items from first on
	first   int
	ended   bool // it has had its turn
	symbols bool
	touched uint32
}

// siteItem is a record of the chunk: known[at], or others[^at] if at is negative.
type siteItem struct {
	at     int32
	noSize bool
	counts bool
}

// otherSite is a record that is not remembered, with keys[from:to] of its siteFork.
type otherSite struct {
	size     uint64
	path     profile.PathHash
	lost     uint32
	from, to uint32
}

// knownSites is a record that is remembered: what is needed each time it comes, in 64
// bytes. How often it came is added up when it makes place for another.
type knownSites struct {
	memo      uint64
	size      uint64
	path      profile.PathHash
	count     uint64
	era       uint32 // of count
	met       uint32 // see siteBuilder.count
	addresses uint32 // if nothing else is counted when it is looked up, or 0
	lost      uint32
	waiting   uint32 // how many items of lanes it is
}

// knownStack is the rest of a knownSites.
type knownStack struct {
	keys   []profile.SiteKey
	counts symbol.Counts // what looking it up counted
}

func (b *siteBuilder) fork(worker int) Fork {
	if worker == len(b.workers) {
		b.workers = append(b.workers, &siteWorker{b: b, known: make([]knownSites, dump.MemoSlots), stacks: make([]knownStack, dump.MemoSlots)})
	}
	w := b.workers[worker]
	f := &siteFork{siteWorker: w}
	w.lanes = append(w.lanes, f)
	return Fork{Begin: f.begin, stack: f.stack, placed: f.placed, known: f.isKnown, Emit: f.emit}
}

func (f *siteFork) begin() {
	for _, lane := range f.lanes {
		if lane.ended || lane == f {
			lane.addUp()
		}
	}
	f.others, f.keys, f.symbols, f.era = f.others[:0], f.keys[:0], false, 0
}

// isKnown reports whether a record has been remembered.
func (f *siteFork) isKnown(_ *part, memo uint64) bool {
	return f.known[dump.MemoSlot(memo)].memo == memo
}

// stack takes a record.
func (f *siteFork) stack(p *part, rec *dump.Record) {
	at := int32(-1)
	if rec.Memo != 0 {
		at = f.remember(p, rec)
	}
	if at < 0 {
		at = ^int32(len(f.others))
		o := otherSite{size: rec.Stack.Size, from: uint32(len(f.keys))}
		f.keys, o.lost, o.path = f.look(&p.counts, p, f.keys, rec)
		o.to = uint32(len(f.keys))
		f.others = append(f.others, o)
	}
	f.items = append(f.items, siteItem{at: at, noSize: rec.Cut && !rec.Sized})
	f.symbols = p.look.symbols
}

// remember returns the slot of a record, -1 if another one is in it that is not added up
// yet.
func (f *siteFork) remember(p *part, rec *dump.Record) int32 {
	slot := dump.MemoSlot(rec.Memo)
	k := &f.known[slot]
	if k.memo != rec.Memo {
		if k.waiting > 0 {
			return -1
		}
		f.addKnown(slot)
		s := &f.stacks[slot]
		s.counts = symbol.Counts{}
		*k = knownSites{memo: rec.Memo, size: rec.Stack.Size}
		s.keys, k.lost, k.path = f.look(&s.counts, p, s.keys[:0], rec)
		if s.counts == (symbol.Counts{Addresses: s.counts.Addresses}) {
			k.addresses = uint32(s.counts.Addresses)
		}
	}
	if k.addresses > 0 {
		p.counts.Addresses += int64(k.addresses)
	} else {
		p.counts.Add(&f.stacks[slot].counts)
	}
	k.waiting++
	return int32(slot)
}

// look appends the keys of a record.
func (f *siteFork) look(c *symbol.Counts, p *part, dst []profile.SiteKey, rec *dump.Record) (keys []profile.SiteKey, lost uint32, path profile.PathHash) {
	s := &rec.Stack
	if s.Marks.Lossy == 0 && !s.Marks.LossySize {
		c.Addresses += int64(len(s.PCs))
		return f.adder.AppendStack(dst, s.PCs, 0)
	}
	p.process.Counts = symbol.Counts{}
	recovery := p.process.Recover(s, rec.Blob)
	c.Add(&p.process.Counts)
	p.process.Counts = symbol.Counts{}
	return f.adder.AppendStack(dst, s.PCs, recovery.Lost)
}

// placed finds the dump of record i.
func (f *siteFork) placed(p *part, i int) {
	b := f.b
	if i%expect == 0 {
		for _, it := range f.items[i:min(i+expect, len(f.items))] {
			if it.at < 0 {
				f.touched += b.paths.Expect(f.others[^it.at].path)
			}
		}
	}
	it := &f.items[i]
	if b.r.verdict == dump.Hold {
		b.held = append(b.held, f.held(it))
		return
	}
	b.settle()
	if f.era != b.sums.era {
		f.era, f.first = b.sums.era, i
	}
	if it.at < 0 {
		o, met := &f.others[^it.at], uint32(0)
		it.counts = b.count(o.size, it.noSize, o.path, &met)
	} else {
		k := &f.known[it.at]
		it.counts = b.count(k.size, it.noSize, k.path, &k.met)
	}
}

func (f *siteFork) held(it *siteItem) heldSite {
	if it.at < 0 {
		o := &f.others[^it.at]
		return heldSite{siteRecord{o.size, o.path, o.lost, it.noSize}, slices.Clone(f.keys[o.from:o.to])}
	}
	k := &f.known[it.at]
	return heldSite{siteRecord{k.size, k.path, k.lost, it.noSize}, slices.Clone(f.stacks[it.at].keys)}
}

// emit ends a chunk.
func (f *siteFork) emit() error {
	f.ended = true
	if f.symbols || f.b.sums.sites.Len() > maxSites {
		return errNotSites
	}
	return nil
}

// addUp adds up the items that count.
func (f *siteFork) addUp() {
	sites := &f.b.sums.sites
	for i, it := range f.items {
		if it.at >= 0 {
			f.known[it.at].waiting--
		}
		switch {
		case !it.counts || i < f.first:
		case it.at < 0:
			o := &f.others[^it.at]
			f.adder.Add(sites, f.era, f.keys[o.from:o.to], o.lost, profile.Value{Bytes: o.size, Count: 1})
		default:
			k := &f.known[it.at]
			if k.era < f.era {
				k.era, k.count = f.era, 0
			}
			if k.era == f.era {
				k.count++
			}
		}
	}
	f.items, f.ended = f.items[:0], false
}

// addKnown adds up a record that was remembered.
func (w *siteWorker) addKnown(slot int) {
	if k := &w.known[slot]; k.count > 0 {
		v := profile.Value{Bytes: k.size, Count: 1}
		w.adder.Add(&w.b.sums.sites, k.era, w.stacks[slot].keys, k.lost, v.Times(k.count))
	}
}

// flush adds up what is left.
func (w *siteWorker) flush() {
	for _, f := range w.lanes {
		f.addUp()
	}
	for slot := range w.known {
		w.addKnown(slot)
	}
	w.adder.Flush(&w.b.sums.sites)
}
