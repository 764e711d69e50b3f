package logs

import (
	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// profileFork finds the call paths of a chunk's records, as far as their addresses are
// known; builder adds them up.
type profileFork struct {
	b       *builder
	items   []item
	hashes  []uint32 // of the keys of items
	keys    []byte
	raw     []rawStack
	pcs     []uint64 // of raw
	blobs   []byte   // of raw
	path    []profile.LocationID
	paths   []knownPath // by dump.MemoSlot; of all lanes of a worker
	rec     dump.Record // scratch
	touched uint32
}

// item is a record.
type item struct {
	kind   itemKind
	noSize bool
	depth  uint8
	path   profile.PathID // if kind is itemPath
	from   uint32         // in keys, or the index in raw
	to     uint32
	size   uint64
	memo   uint64
}

type itemKind uint8

const (
	itemPath itemKind = iota // a call path
	itemKey                  // the key of one
	itemRaw                  // a stack with an address that was not known
)

// rawStack is a stack as it was decoded.
type rawStack struct {
	marks         codec.Marks
	pcs, pcsEnd   uint32 // in pcs
	blob, blobEnd uint32 // in blobs
}

// knownPath is the call path of a record that is remembered.
type knownPath struct {
	memo   uint64
	state  state
	path   profile.PathID
	placed bool
	counts symbol.Counts // what looking it up counted
}

// fork returns what does the work of record and again.
func (b *builder) fork(worker int) Fork {
	if worker == len(b.forkPaths) {
		b.forkPaths = append(b.forkPaths, make([]knownPath, dump.MemoSlots))
	}
	f := &profileFork{b: b, paths: b.forkPaths[worker]}
	return Fork{Begin: f.begin, stack: f.stack, placed: f.placed, exclusive: f.exclusive, known: f.known}
}

func (f *profileFork) begin() {
	f.items, f.hashes, f.keys = f.items[:0], f.hashes[:0], f.keys[:0]
	f.raw, f.pcs, f.blobs = f.raw[:0], f.pcs[:0], f.blobs[:0]
}

// exclusive: an address that is looked up may open files.
func (f *profileFork) exclusive() bool { return len(f.raw) > 0 && f.b.r.Symbols() }

// known reports whether the call path of a record that is remembered is known.
func (f *profileFork) known(p *part, memo uint64) bool {
	k := &f.paths[dump.MemoSlot(memo)]
	return k.memo == memo && k.placed && k.state == p.state
}

// stack takes a record.
func (f *profileFork) stack(p *part, rec *dump.Record) {
	it := item{noSize: rec.Cut && !rec.Sized, size: rec.Stack.Size, memo: rec.Memo}
	hash := uint32(0)
	if rec.Memo != 0 && f.known(p, rec.Memo) {
		k := &f.paths[dump.MemoSlot(rec.Memo)]
		p.counts.Add(&k.counts)
		it.path = k.path
	} else {
		hash = f.look(p, rec, &it)
	}
	f.items = append(f.items, it)
	f.hashes = append(f.hashes, hash)
}

// look looks for the addresses of a record: it is an item of a key if all are known.
func (f *profileFork) look(p *part, rec *dump.Record, it *item) (hash uint32) {
	s := &rec.Stack
	it.depth = uint8(len(s.PCs))
	raw := rawStack{marks: s.Marks, pcs: uint32(len(f.pcs)), blob: uint32(len(f.blobs))}
	if s.Marks.Lossy != 0 {
		f.pcs = append(f.pcs, s.PCs...) // as they were before find recovers their bits
	}
	var counts symbol.Counts
	if f.find(p, rec, &counts) {
		f.pcs = f.pcs[:raw.pcs]
		it.kind, it.from = itemKey, uint32(len(f.keys))
		f.keys, hash = profile.AppendPathKey(f.keys, f.path)
		it.to = uint32(len(f.keys))
		p.counts.Add(&counts)
		if rec.Memo != 0 {
			f.paths[dump.MemoSlot(rec.Memo)] = knownPath{memo: rec.Memo, state: p.state, counts: counts}
		}
		return hash
	}
	if s.Marks.Lossy == 0 {
		f.pcs = append(f.pcs, s.PCs...)
	}
	if p.look.symbols {
		f.blobs = append(f.blobs, rec.Blob...)
	}
	raw.pcsEnd, raw.blobEnd = uint32(len(f.pcs)), uint32(len(f.blobs))
	it.kind, it.from = itemRaw, uint32(len(f.raw))
	f.raw = append(f.raw, raw)
	return 0
}

// find finds the locations of a stack, if all are known.
func (f *profileFork) find(p *part, rec *dump.Record, counts *symbol.Counts) (ok bool) {
	index := f.b.prof.Known()
	if p.look.symbols {
		if index = &f.b.aliases; f.b.aliased.space != p.state.space || f.b.aliased.epoch != p.state.epoch {
			return false
		}
	}
	s := &rec.Stack
	f.path = f.path[:0]
	if m := &s.Marks; m.Lossy == 0 && !m.LossySize {
		counts.Addresses = int64(len(s.PCs))
		f.path, ok = index.GetAll(f.path, s.PCs, uint32(symbol.Exact))
		return ok
	}
	recovery, ok := f.b.r.Process.RecoverKnown(counts, s, rec.Blob, p.state.space)
	for i := 0; ok && i < len(s.PCs); i++ {
		f.path, ok = index.GetAll(f.path, s.PCs[i:i+1], uint32(recovery.State(i)))
	}
	return ok
}

// expect is how many items ahead the table of call paths is asked to be ready.
const expect = 16

// placed adds record i.
func (f *profileFork) placed(p *part, i int) {
	b := f.b
	if i%expect == 0 {
		f.touched += b.prof.Expect(f.hashes[i:min(i+expect, len(f.hashes))])
	}
	it := &f.items[i]
	path := it.path
	switch {
	case it.kind == itemRaw:
		path = f.resolve(&f.raw[it.from])
	case it.kind == itemKey && !b.prof.HasCapacity(int(it.depth)):
		path = b.prof.OtherPath()
	case it.kind == itemKey:
		path, _ = b.prof.PathByKey(f.keys[it.from:it.to], f.hashes[i])
		if it.memo != 0 {
			if k := &f.paths[dump.MemoSlot(it.memo)]; k.memo == it.memo {
				k.path, k.placed = path, true
			}
		}
	}
	b.place(held{path: path, value: profile.Value{Bytes: it.size, Count: 1}, noSize: it.noSize})
}

// resolve does what record would have done.
func (f *profileFork) resolve(raw *rawStack) profile.PathID {
	r, s := f.b.r, &f.rec.Stack
	s.PCs, s.Marks = append(s.PCs[:0], f.pcs[raw.pcs:raw.pcsEnd]...), raw.marks
	blob := f.blobs[raw.blob:raw.blobEnd]
	if !r.Symbols() {
		recovery := r.Process.Recover(s, blob)
		return f.b.pathOf(&f.rec, &recovery, nil)
	}
	var recovery symbol.Recovery
	r.addrs, recovery = r.Process.Resolve(r.addrs[:0], s, blob)
	return f.b.pathOf(&f.rec, &recovery, r.addrs)
}
