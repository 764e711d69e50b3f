package alloc

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
)

// jemalloc 5.3 with 64-bit words, addresses of 48 bits and pages of 4096 bytes. A tree of two levels has a word for each first
// and last page of an extent, and for all pages of a slab; symbols are not needed:
//
//	root: 2^18 leaves, by bits 47 to 30 of the address │ leaf: 2^18 words, by bits 29 to 12
//	word: size class:8 │ extent, bits 47 to 7 │ 00 │ state:3 │ head:1 │ slab:1
//	extent: … free regions:10, size class:8, state:3, …:4, slab:1, arena:12 │ address │ size, 12 bits of another number │ … │ at 64: free regions of a slab, a bit for each
//
// Regions in the caches of threads count as used in slabs:
//
//	cache: slow part │ bin of each size class: stack pointer │ number │ low 16 bits of: low water, full, empty
//	slow part: … │ at 32: address of the bins │ arena, 0 if the thread ended
//
// Each arena has a bin for each size class. It has the current slab, and before it counters of the regions and slabs.
const (
	jeBits   = 18
	jeLeaf   = 8 << jeBits // bytes of a leaf, and of the root
	jeSmall  = 36          // size classes of slabs
	jeBitmap = 64          // offset in an extent
	jeHuge   = 2 << 20     // alignment of the memory of metadata
	jeCaches = 73          // bins of a cache, at most
	jeActive = 0           // states of an extent: in use
	jeDirty  = 1           // free
	jeMuzzy  = 2           // free, the system may take the memory
)

// jeSize returns the bytes of a size class.
func jeSize(class uint64) uint64 {
	if class <= 4 {
		return max(8, 16*class)
	}
	base := uint64(32) << ((class - 1) / 4 % 64)
	return base + ((class-1)%4+1)*base/4
}

// jeExtent is a range of pages.
type jeExtent struct {
	at, addr, size      uint64 // at: of its own description
	class, arena, state uint64
	slab                bool
	free                uint64 // regions
}

// jemalloc is the search for the extents of a process.
type jemalloc struct {
	*finder
	h       *Heap
	root    uint64
	extents map[uint64]*jeExtent // by the address of their description
	wrong   uint64               // words of the tree that contradict their extent, and free regions of slabs
}

func (f *finder) jemalloc() ([]*Heap, error) {
	if f.ptr != 8 || f.m.ByteOrder() != binary.ByteOrder(binary.LittleEndian) {
		return nil, ErrNone
	}
	j := &jemalloc{finder: f, extents: map[uint64]*jeExtent{}}
	if !j.findRoot() {
		return nil, ErrNone
	}
	j.h = &Heap{Kind: JeMalloc, Name: "jemalloc", Addr: j.root, slack: 15}
	j.h.own(j.root, jeLeaf)
	j.tree(func(page, v uint64) { j.page(page, v) })
	list := make([]*jeExtent, 0, len(j.extents))
	for _, e := range j.extents {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *jeExtent) int { return cmp.Compare(a.addr, b.addr) })
	j.metadata(list)
	for _, e := range list {
		j.h.own(e.addr&^(pageSize-1), e.size)
		j.blocks(e)
	}
	j.h.sort()
	j.h.prove("pages of extents", 0, j.wrong)
	j.caches()
	j.bins(list)
	return []*Heap{j.h}, nil
}

// findRoot finds the tree, by a word in the data of a file, or in memory behind it, that leads to a leaf with an extent of its place.
func (j *jemalloc) findRoot() bool {
	data := j.data()
	for i, r := range j.m.Maps {
		if i > 0 && r.Write && r.File == "" && j.m.Maps[i-1].End == r.Start && j.m.Maps[i-1].File != "" {
			data = append(data[:len(data):len(data)], r)
		}
	}
	for _, r := range data {
		j.words(r.Start, r.End, func(addr, v uint64) bool {
			if v%64 != 0 || v == 0 {
				return true
			}
			if s := j.m.Find(v); s == nil || s.ELF || s.End()-v < jeLeaf || j.owner(v).End == 0 {
				return true
			}
			page, ok := uint64(0), false
			j.leaf(v, 0, func(_, word uint64) bool {
				e, there := j.extent(word)
				page, ok = e.addr>>12, there
				return false // the first word tells
			})
			if root := addr - page>>jeBits*8; ok && j.reads(root) {
				j.root = root
				return false
			}
			return true
		})
		if j.root != 0 {
			return true
		}
	}
	return false
}

// reads reports whether the pages of the tree at an address lead to extents that begin or end there.
func (j *jemalloc) reads(root uint64) bool {
	good, bad := 0, 0
	j.root = root
	j.tree(func(page, v uint64) {
		if e, ok := j.extent(v); ok && page >= e.addr&^(pageSize-1) && page < e.addr&^(pageSize-1)+e.size {
			good++
		} else {
			bad++
		}
	})
	j.root = 0
	return good > 0 && bad <= good/16
}

// tree calls visit for each page in the tree, with its word.
func (j *jemalloc) tree(visit func(page, v uint64)) {
	j.words(j.root, j.root+jeLeaf, func(addr, leaf uint64) bool {
		if leaf != 0 {
			j.leaf(leaf, (addr-j.root)/8<<(jeBits+12), func(page, v uint64) bool {
				visit(page, v)
				return true
			})
		}
		return true
	})
}

// leaf calls visit for each word of a leaf that is not 0, until it returns false.
func (j *jemalloc) leaf(leaf, first uint64, visit func(page, v uint64) bool) {
	j.words(leaf, leaf+jeLeaf, func(addr, v uint64) bool {
		return v&(1<<48-1)&^127 == 0 || visit(first+(addr-leaf)/8<<12, v)
	})
}

// extent reads the extent that a word of the tree leads to.
func (j *jemalloc) extent(v uint64) (e jeExtent, ok bool) {
	e.at = uint64(int64(v<<16)>>16) &^ 127
	flags, _ := j.m.Pointer(e.at)
	size, ok := j.m.Pointer(e.at + 16)
	e.addr, _ = j.m.Pointer(e.at + 8)
	e.size, e.class, e.arena, e.state, e.slab, e.free = size&^(pageSize-1), flags>>20&255, flags&(1<<12-1), flags>>17&7, flags>>12&1 != 0, flags>>28&(1<<10-1)
	return e, ok && e.addr != 0 && e.size != 0 && e.addr&^(pageSize-1)+e.size > e.addr && flags>>45 == 0
}

// page adds the extent of a page.
func (j *jemalloc) page(page, v uint64) {
	e, ok := j.extent(v)
	if !ok {
		j.wrong++
		return
	}
	start := e.addr &^ (pageSize - 1)
	whole := e.state == jeActive && (page == start || e.slab) // else class and kind may be those of an earlier extent
	if v>>2&7 != e.state || page < start || page >= start+e.size || whole && (v&1 != 0 != e.slab || v>>48 != e.class) {
		j.wrong++
	}
	if j.extents[e.at] == nil {
		j.extents[e.at] = &e
	}
}

// blocks adds the regions of an extent.
func (j *jemalloc) blocks(e *jeExtent) {
	size := jeSize(e.class)
	switch {
	case j.finder.blocks <= 0:
		return
	case e.state == jeDirty || e.state == jeMuzzy:
		j.h.Blocks = append(j.h.Blocks, Block{Addr: e.addr, Size: e.size, State: Free})
		return
	case e.state != jeActive:
		return
	case !e.slab:
		j.finder.blocks--
		j.h.Blocks = append(j.h.Blocks, Block{Addr: e.addr, Size: size})
		return
	case e.class >= jeSmall:
		j.wrong++
		return
	}
	free := uint64(0)
	for i := range min(e.size/size, 512) {
		word, _ := j.m.Pointer(e.at + jeBitmap + i/64*8)
		b := Block{Addr: e.addr + i*size, Size: size}
		if word>>(i%64)&1 != 0 {
			b.State = Free
			free++
		}
		j.finder.blocks--
		j.h.Blocks = append(j.h.Blocks, b)
	}
	if free != e.free {
		j.wrong++
	}
}

// owner returns the memory of jemalloc's own structures at an address: it is aligned, and begins with its size.
func (j *jemalloc) owner(at uint64) (r core.Map) {
	for start := at &^ (jeHuge - 1); start != 0 && at-start < 1<<26; start -= jeHuge {
		if size, _ := j.m.Pointer(start); size != 0 && size%jeHuge == 0 && size > at-start && size <= 1<<34 {
			return core.Map{Start: start, End: start + size}
		}
	}
	return r
}

// metadata adds the memory of jemalloc's own structures: those with descriptions of extents, and with leaves.
func (j *jemalloc) metadata(list []*jeExtent) {
	last := core.Map{}
	add := func(at uint64) {
		if at >= last.Start && at < last.End {
			return
		}
		if last = j.owner(at); last.End == 0 {
			j.wrong++
		} else if !slices.ContainsFunc(j.h.Ranges, func(r core.Map) bool { return r.Start == last.Start }) {
			j.h.own(last.Start, last.End-last.Start)
		}
	}
	for _, e := range list {
		add(e.at)
	}
	j.words(j.root, j.root+jeLeaf, func(_, leaf uint64) bool {
		if leaf != 0 {
			add(leaf)
		}
		return true
	})
}

// caches marks the regions in the caches of threads, which are outside of extents, and the block that has their stacks.
func (j *jemalloc) caches() {
	missing := uint64(0)
	own := slices.Clone(j.h.Ranges)
	slices.SortFunc(own, func(a, b core.Map) int { return cmp.Compare(a.Start, b.Start) })
	own = append(own, core.Map{Start: ^uint64(0), End: ^uint64(0)})
	at := uint64(0)
	for _, r := range own { // the memory between
		j.words(at, r.Start, func(addr, v uint64) bool {
			if v != 0 && v%8 == 0 {
				bins, _ := j.m.Pointer(v + 32)
				arena, _ := j.m.Pointer(v + 40)
				if bins == addr+8 && arena != 0 {
					missing += j.cache(bins)
				}
			}
			return true
		})
		at = max(at, r.End)
	}
	j.h.prove("cached regions that are in no slab of their size", 0, missing)
}

// cache marks the regions in a cache. It returns the number of those that are no used block of their size class.
func (j *jemalloc) cache(bins uint64) (missing uint64) {
	for class := range uint64(jeCaches) {
		at := bins + 24*class
		top, _ := j.m.Pointer(at)
		full, _ := j.m.Uint(at+18, 2)
		empty, ok := j.m.Uint(at+20, 2)
		n, most := (empty-top)&0xffff/8, (empty-full)&0xffff/8
		if !ok || top == 0 || top%8 != 0 || most == 0 || n > most {
			break // behind the last one
		}
		if k := j.h.block(top - 1); k >= 0 {
			j.h.Blocks[k].State = Internal
		}
		for i := range n {
			p, _ := j.m.Pointer(top + 8*i)
			k := j.h.block(p)
			if k < 0 || j.h.Blocks[k].Addr != p || j.h.Blocks[k].Size != jeSize(class) || j.h.Blocks[k].State != Used {
				missing++
				continue
			}
			j.h.Blocks[k].State = Cached
		}
	}
	return missing
}

// jeBin is a bin of an arena, by its counters.
type jeBin struct{ at, arena, class uint64 }

// bins compares the counters of the bins with the regions and slabs that were found. A bin is found by its current slab; the others of its
// arena are at equal distances.
func (j *jemalloc) bins(list []*jeExtent) {
	type sum struct{ regions, slabs uint64 }
	sums := map[[2]uint64]sum{} // by arena and class
	slabs := map[uint64]*jeExtent{}
	for _, e := range list {
		if e.slab && e.state == jeActive && e.class < jeSmall {
			x := sums[[2]uint64{e.arena, e.class}]
			sums[[2]uint64{e.arena, e.class}] = sum{x.regions + e.size/jeSize(e.class) - e.free, x.slabs + 1}
			slabs[e.at] = e
		}
	}
	found := map[uint64][]jeBin{} // by arena
	for _, r := range slices.Clone(j.h.Ranges) {
		j.words(r.Start, r.End, func(addr, v uint64) bool {
			if e := slabs[v]; e != nil {
				if _, _, ok := j.counters(addr); ok && len(found[e.arena]) < 16*jeSmall {
					found[e.arena] = append(found[e.arena], jeBin{addr, e.arena, e.class})
				}
			}
			return true
		})
	}
	regions, want, got := uint64(0), sum{}, sum{}
	for _, x := range sums {
		got = sum{got.regions + x.regions, got.slabs + x.slabs}
	}
	usual, most := uint64(0), 0 // distance between bins: that of the arena with the most of them
	for _, list := range found {
		if _, step := binsOf(list, 0); step != 0 && (len(list) > most || len(list) == most && step < usual) {
			usual, most = step, len(list)
		}
	}
	for arena := range uint64(1 << 12) {
		first, step := binsOf(found[arena], usual)
		for class := range uint64(jeSmall) {
			x, any := sums[[2]uint64{arena, class}]
			n, k, ok := j.counters(first + class*step)
			switch {
			case step == 0 && !any:
			case step == 0 || !ok:
				regions += x.regions
			default:
				want = sum{want.regions + n, want.slabs + k}
			}
		}
	}
	j.h.prove("regions of slabs whose counter was not found", 0, regions)
	j.h.prove("regions of all slabs", want.regions, got.regions)
	j.h.prove("slabs", want.slabs, got.slabs)
	if j.budget <= 0 {
		j.h.prove("all memory was searched", 1, 0)
	}
}

// binsOf returns the address of the first bin of an arena, and the distance between bins, 0 if they are not known. An arena with bins
// of one class has the usual distance.
func binsOf(list []jeBin, usual uint64) (first, step uint64) {
	if len(list) == 1 && usual != 0 {
		return list[0].at - list[0].class*usual, usual
	}
	votes, best := map[[2]uint64]int{}, 0
	for _, a := range list {
		for _, b := range list {
			if a.class >= b.class || a.at >= b.at || (b.at-a.at)%(b.class-a.class) != 0 {
				continue
			}
			d := (b.at - a.at) / (b.class - a.class)
			k := [2]uint64{a.at - a.class*d, d}
			if votes[k]++; votes[k] > best || votes[k] == best && k[0] < first {
				best, first, step = votes[k], k[0], k[1]
			}
		}
	}
	return first, step
}

// counters reads those of the bin whose current slab is at an address: regions in use, and slabs. ok is false if it is none.
func (j *jemalloc) counters(at uint64) (regions, slabs uint64, ok bool) {
	var v [10]uint64 // allocated, freed, requested, in use, …, slabs made, used again, slabs, not full
	for i := range v {
		v[i], _ = j.m.Pointer(at - 80 + uint64(i)*8)
	}
	return v[3], v[8], v[0]-v[1] == v[3] && v[8] <= v[6] && v[9] <= v[8]
}
