package profile

import "sync/atomic"

// Index finds numbers by address and tag. One goroutine may put, while others get. The
// zero Index is empty.
type Index struct {
	table atomic.Pointer[[]indexSlot]
	used  int
}

// indexSlot is an address, its tag, and 1 + its number: 0 if the slot is free. They
// are side by side, since to wait for memory is most of what a search takes.
type indexSlot struct {
	addr  uint64
	value uint64 // tag<<32 | 1 + number; set after addr
}

func hashAddr(addr uint64, tag uint32) uint64 {
	h := (addr ^ uint64(tag)<<48 ^ uint64(tag)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Get returns the number that was put for an address.
func (x *Index) Get(addr uint64, tag uint32) (number uint32, ok bool) {
	table := x.table.Load()
	if table == nil {
		return 0, false
	}
	slots := *table
	mask := uint64(len(slots) - 1)
	for h := hashAddr(addr, tag) & mask; ; h = (h + 1) & mask {
		s := &slots[h]
		switch v := atomic.LoadUint64(&s.value); {
		case v == 0:
			return 0, false
		case uint32(v>>32) == tag && atomic.LoadUint64(&s.addr) == addr:
			return uint32(v) - 1, true
		}
	}
}

// GetAll appends the numbers of several addresses with one tag, up to the first that has
// none; ok reports that all have.
func (x *Index) GetAll(dst []LocationID, addrs []uint64, tag uint32) (_ []LocationID, ok bool) {
	table := x.table.Load()
	if table == nil {
		return dst, len(addrs) == 0
	}
	slots := *table
	mask := uint64(len(slots) - 1)
	for _, addr := range addrs {
		h := hashAddr(addr, tag) & mask
		for {
			s := &slots[h]
			v := atomic.LoadUint64(&s.value)
			if uint32(v>>32) == tag && atomic.LoadUint64(&s.addr) == addr && v != 0 {
				dst = append(dst, LocationID(uint32(v)-1))
				break
			}
			if v == 0 {
				return dst, false
			}
			h = (h + 1) & mask
		}
	}
	return dst, true
}

// Put sets the number, below 2^32-1, of an address that has none.
func (x *Index) Put(addr uint64, tag, number uint32) {
	table := x.table.Load()
	if table == nil || x.used >= len(*table)/2 {
		table = x.grow(table)
	}
	put(*table, indexSlot{addr, uint64(tag)<<32 | uint64(number) + 1})
	x.used++
}

func put(slots []indexSlot, s indexSlot) {
	mask := uint64(len(slots) - 1)
	h := hashAddr(s.addr, uint32(s.value>>32)) & mask
	for slots[h].value != 0 {
		h = (h + 1) & mask
	}
	atomic.StoreUint64(&slots[h].addr, s.addr)
	atomic.StoreUint64(&slots[h].value, s.value)
}

// grow doubles the table. Who reads the old one finds what is in that.
func (x *Index) grow(old *[]indexSlot) *[]indexSlot {
	if old == nil {
		old = new([]indexSlot)
	}
	slots := make([]indexSlot, max(1024, 2*len(*old)))
	mask := uint64(len(slots) - 1)
	for _, s := range *old {
		if s.value != 0 {
			h := hashAddr(s.addr, uint32(s.value>>32)) & mask
			for slots[h].value != 0 {
				h = (h + 1) & mask
			}
			slots[h] = s
		}
	}
	x.table.Store(&slots)
	return &slots
}

// Reset removes everything. No goroutine may call Get at the same time.
func (x *Index) Reset() {
	if table := x.table.Load(); table != nil {
		clear(*table)
	}
	x.used = 0
}
