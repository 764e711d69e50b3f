package profile

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Sites adds up what call sites hold that are addresses without a symbol. It keeps no
// call paths: its size depends on the number of distinct addresses. Several goroutines
// may add at once, each by a [SiteAdder].
type Sites struct {
	Total  Value // of all stacks
	Stacks int   // distinct call paths in Total
	Other  Value // of Total: of stacks past a limit, which are in no Add

	n      atomic.Int64 // sums in shards
	shards [siteKinds][siteShards]siteShard
}

// Kinds of sums: those of addresses of which only the low 31 bits are known are apart, and
// of each call site there is a cumulative sum and, if it is ever the innermost, a flat one.
const (
	cumExact = iota
	cumLost
	flatExact
	flatLost
	siteKinds
	flatKinds = flatExact - cumExact
)

// siteShards is how many parts with a lock of their own there are. The highest
// siteShardBits of a SiteKey are the number of its part.
const (
	siteShardBits = 6
	siteShards    = 1 << siteShardBits
)

// SiteKey is an address, or its low 31 bits where the others are lost, by a mapping that
// mixes the bits, can be undone, and is another in each process: nobody can make a log of
// addresses whose keys collide.
type SiteKey uint64

var (
	mixer     = rand.Uint64() | 1
	unmixer   = inverse(mixer)
	pathSeeds = [3]uint64{rand.Uint64() | 1, rand.Uint64() | 1, rand.Uint64()}
)

// inverse returns the inverse of an odd number modulo 2^64, by Newton's method.
func inverse(odd uint64) uint64 {
	x := odd // right modulo 8
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}

func siteKey(addr uint64) SiteKey {
	h := addr * mixer
	h ^= h >> 32
	return SiteKey(h * mixer)
}

// addr returns the address that a key was made of.
func (k SiteKey) addr() uint64 {
	h := uint64(k) * unmixer
	h ^= h >> 32
	return h * unmixer
}

// SiteAdder adds to Sites for one goroutine. It sorts what it is given into buffers, one for
// each part of Sites, and adds them when they are full: so what is added to is in a
// processor's cache, or much of it is waited for at once. The zero SiteAdder is ready to use.
type SiteAdder struct {
	buffers [siteKinds]*[siteShards]siteBuffer
	filled  [siteKinds][siteShards]uint32
	era     uint32 // of what is in them
	seen    [1 << 10]uint32
	stacks  uint32
	touched uint64
}

// siteBuffer holds sums with a count of 1.
type siteBuffer [1 << 9]struct {
	key   SiteKey
	bytes uint64
}

// AppendStack appends the keys of a stack's addresses to dst, innermost first, each of
// them once: recursion counts once. Bit n of lost says that only the low 31 bits of pcs[n]
// are known, and bit n of lostKeys the same of key n.
func (a *SiteAdder) AppendStack(dst []SiteKey, pcs []uint64, lost uint32) (keys []SiteKey, lostKeys uint32, path PathHash) {
	from := len(dst)
	h1, h2 := pathSeeds[2], uint64(len(pcs))
	if a.stacks++; a.stacks == 0 {
		a.seen, a.stacks = [1 << 10]uint32{}, 1
	}
	for i, pc := range pcs {
		k := siteKey(pc)
		x, isLost := uint64(k), lost>>(i&31)&1
		if isLost != 0 {
			x = ^x
			k = siteKey(pc & (1<<31 - 1))
		}
		h1, h2 = fold(h1^x, pathSeeds[0]), fold(h2+x, pathSeeds[1])
		// Only a key with the same low bits can be the same.
		stack := &a.seen[k%SiteKey(len(a.seen))]
		if *stack == a.stacks && hasKey(dst[from:], lostKeys, k, isLost) {
			continue
		}
		*stack = a.stacks
		lostKeys |= isLost << ((len(dst) - from) & 31)
		dst = append(dst, k)
	}
	return dst, lostKeys, PathHash{h1, uint32(h2)}
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func hasKey(keys []SiteKey, lostKeys uint32, k SiteKey, isLost uint32) bool {
	for i, o := range keys {
		if o == k && lostKeys>>i&1 == isLost {
			return true
		}
	}
	return false
}

// Add adds what a stack holds, of which AppendStack returned keys and lost. A new era
// begins with nothing: what was added in one before does not count.
func (a *SiteAdder) Add(s *Sites, era uint32, keys []SiteKey, lost uint32, v Value) {
	if era < a.era || len(keys) == 0 {
		return
	}
	if era > a.era {
		a.filled, a.era = [siteKinds][siteShards]uint32{}, era
	}
	if lost == 0 && v.Count == 1 {
		a.put(s, cumExact, keys, v.Bytes)
		a.put(s, flatExact, keys[:1], v.Bytes)
		return
	}
	for i := range keys {
		a.addOne(s, cumExact+lost>>i&1, keys[i:i+1], v)
	}
	a.addOne(s, flatExact+lost&1, keys[:1], v)
}

func (a *SiteAdder) addOne(s *Sites, kind uint32, key []SiteKey, v Value) {
	if v.Count == 1 {
		a.put(s, kind, key, v.Bytes)
		return
	}
	shard := &s.shards[kind][key[0]>>(64-siteShardBits)]
	shard.Lock()
	defer shard.Unlock()
	if s.turn(shard, a.era) {
		s.reserve(shard, 1)
		shard.add(key[0], v)
	}
}

// put adds keys of one kind to their buffers.
func (a *SiteAdder) put(s *Sites, kind uint32, keys []SiteKey, bytes uint64) {
	buffers, filled := a.buffers[kind], &a.filled[kind]
	if buffers == nil {
		buffers = new([siteShards]siteBuffer)
		a.buffers[kind] = buffers
	}
	for _, k := range keys {
		part := k >> (64 - siteShardBits)
		n := filled[part]
		e := &buffers[part][n%uint32(len(siteBuffer{}))]
		e.key, e.bytes = k, bytes
		if filled[part] = n + 1; n+1 == uint32(len(siteBuffer{})) {
			a.flush(s, kind, part)
		}
	}
}

// Flush adds what is in the buffers.
func (a *SiteAdder) Flush(s *Sites) {
	for kind := range a.filled {
		for part, n := range a.filled[kind] {
			if n > 0 {
				a.flush(s, uint32(kind), SiteKey(part))
			}
		}
	}
}

// ahead is how many sums are looked for at once, if they may not be in a cache.
const ahead = 16

// flush adds a buffer.
func (a *SiteAdder) flush(s *Sites, kind uint32, part SiteKey) {
	list := a.buffers[kind][part][:a.filled[kind][part]]
	a.filled[kind][part] = 0
	shard := &s.shards[kind][part]
	shard.Lock()
	defer shard.Unlock()
	if !s.turn(shard, a.era) {
		return
	}
	touched := uint64(0)
	for len(list) > 0 {
		n := min(ahead, len(list))
		s.reserve(shard, n)
		if len(shard.slots) > inCache {
			for i := range list[:n] { // the processor waits for these together
				at := shard.start(list[i].key)
				touched += shard.slots[at].Count + shard.slots[min(at+2, len(shard.slots)-1)].Count
			}
		}
		for i := range list[:n] {
			shard.add(list[i].key, Value{list[i].bytes, 1})
		}
		list = list[n:]
	}
	a.touched += touched
}

// siteShard is an open hash table of any number of slots. Its keys are in ascending order, but
// for those that found their slot taken: it grows from its first slot to the last.
type siteShard struct {
	sync.Mutex
	slots []siteSum
	used  int
	era   uint32 // of what is in it

	counted int // of used, in Sites.n
}

// inCache is how many slots a processor's cache is certain to hold.
const inCache = 1 << 10

// siteSum is what a call site holds. A slot with a count of 0 is free.
type siteSum struct {
	key SiteKey
	Value
}

// turn makes a shard one of an era; it returns false if it is of a later one.
func (s *Sites) turn(shard *siteShard, era uint32) bool {
	if shard.era < era {
		s.n.Add(-int64(shard.counted))
		shard.slots, shard.used, shard.counted, shard.era = nil, 0, 0, era
	}
	return shard.era == era
}

// start returns where the search for a key begins.
func (t *siteShard) start(k SiteKey) int {
	start, _ := bits.Mul64(uint64(k)<<siteShardBits, uint64(len(t.slots)))
	return int(start)
}

// find returns the slot of a key, a free one if it has none.
func (t *siteShard) find(k SiteKey) *siteSum {
	for at := t.start(k); ; at++ {
		if at >= len(t.slots) {
			at = 0
		}
		if s := &t.slots[at]; s.Count == 0 || s.key == k {
			return s
		}
	}
}

// add adds to a key, for which there is a free slot.
func (t *siteShard) add(k SiteKey, v Value) {
	sum := t.find(k)
	if sum.Count == 0 {
		sum.key = k
		t.used++
	}
	sum.Add(v)
}

// reserve makes a shard have slots for n new keys.
func (s *Sites) reserve(t *siteShard, n int) {
	slots := len(t.slots)
	if t.used+n <= slots/2 || slots > inCache && t.used+n <= slots/4*3 {
		return
	}
	s.n.Add(int64(t.used - t.counted))
	t.counted = t.used
	old := t.slots
	t.slots = make([]siteSum, max(64, slots+slots/2))
	for i := range old {
		if old[i].Count != 0 {
			*t.find(old[i].key) = old[i]
		}
	}
}

// Len returns about how many sums there are.
func (s *Sites) Len() int { return int(s.n.Load()) }

// Top returns the call sites that hold the most of those added in an era, the first of them first.
func (s *Sites) Top(era uint32, o TopOptions) *TopReport {
	r := &TopReport{Total: s.Total, Stacks: s.Stacks}
	rankings := make([]ranking, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for w := range rankings {
		rank := &rankings[w]
		rank.init(o, siteAt)
		running.Go(func() {
			for kind := range flatKinds {
				for i := w; i < siteShards; i += len(rankings) {
					if cum := &s.shards[kind][i]; cum.era == era {
						rank.addShard(cum, &s.shards[flatKinds+kind][i], kind)
					}
				}
			}
		})
	}
	running.Wait()
	all := &rankings[0]
	for i := range rankings[1:] {
		all.take(&rankings[1+i])
	}
	all.add(s.Other, s.Other, siteID{0, siteOther})
	r.Rows, r.Sites = all.finish()
	return r
}

// addShard adds the call sites of a kind of which a shard has the cumulative sums, and
// flat the flat ones.
func (r *ranking) addShard(cum, flat *siteShard, kind int) {
	hasFlat := flat.era == cum.era && flat.used > 0
	for i := range cum.slots {
		sum := &cum.slots[i]
		if sum.Count == 0 {
			continue
		}
		v := Value{}
		if hasFlat {
			v = flat.find(sum.key).Value
		}
		r.add(v, sum.Value, siteID{uint64(sum.key), uint8(kind)})
	}
}

const siteOther = flatKinds

func siteAt(id siteID) Site {
	switch id.kind {
	case cumExact:
		return Site{Func: (&Location{Addr: SiteKey(id.n).addr()}).Name()}
	case cumLost:
		return Site{Func: (&Location{Addr: SiteKey(id.n).addr(), State: Lost}).Name()}
	}
	return Site{Func: Other}
}
