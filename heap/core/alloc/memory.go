package alloc

import (
	"cmp"

	"github.com/lwsbt/lwsbt/heap/core"
)

func byAddr(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) }

// words calls visit for each aligned word of the memory between start and end, until visit
// returns false or the budget is used up.
func (f *finder) words(start, end uint64, visit func(addr, v uint64) bool) {
	segs := f.m.SegmentsIn(start, end)
	read := f.m.Words()
	for i := range segs {
		s := &segs[i]
		if s.ELF {
			continue
		}
		off := up(max(start, s.Addr), f.ptr) - s.Addr
		for ; off+f.ptr <= uint64(len(s.Data)) && s.Addr+off < end && f.budget > 0; off += f.ptr {
			if f.budget--; off%pageSize < f.ptr {
				f.m.Passed(pageSize)
			}
			if !visit(s.Addr+off, read.Word(s.Data[off:])) {
				return
			}
		}
	}
}

// search returns the heaps that heapAt finds by an aligned word in some memory and its address, and
// [ErrNone] if there are none. heapAt returns nil for other words.
func (f *finder) search(memory []core.Map, heapAt func(addr, v uint64) *Heap) (heaps []*Heap, err error) {
	for _, r := range memory {
		f.words(r.Start, r.End, func(addr, v uint64) bool {
			if len(heaps) == maxArenas {
				return false
			}
			if h := heapAt(addr, v); h != nil {
				heaps = append(heaps, h)
			}
			return true
		})
	}
	if len(heaps) == 0 {
		return nil, ErrNone
	}
	return heaps, nil
}

// holds returns the address of a variable of the program that holds a value, outside of the memory
// between start and end.
func (f *finder) holds(start, end uint64, want func(v uint64) bool, found func(addr, v uint64)) {
	for _, r := range f.data() {
		f.words(r.Start, r.End, func(addr, v uint64) bool {
			if (addr < start || addr >= end) && want(v) {
				found(addr, v)
			}
			return true
		})
	}
}

// data returns the data of the program's files.
func (f *finder) data() []core.Map {
	list := f.p.Data
	for _, r := range f.m.Maps {
		if r.File != "" && r.Write {
			list = append(list[:len(list):len(list)], r)
		}
	}
	return list
}

// contiguous returns the end of the known memory that begins at an address.
func (f *finder) contiguous(addr uint64) uint64 {
	for ; ; f.budget-- {
		s := f.m.Find(addr)
		if s == nil || f.budget <= 0 || s.End() < addr {
			return addr
		}
		addr = s.End()
	}
}

// ring calls visit for the nodes of a ring, whose links are at two offsets, from its first one up to a link that is not answered.
func (f *finder) ring(first, next, back uint64, visit func(at uint64)) {
	for at := first; f.budget > 0; f.budget-- {
		visit(at)
		to, ok := f.m.Pointer(at + next)
		if from, _ := f.m.Pointer(to + back); !ok || from != at || to == first {
			return
		}
		at = to
	}
}
