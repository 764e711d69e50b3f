package profile

// addrIndex is an open-addressed hash table of numbers of addresses, by their identities. It has the identities
// themselves: to wait for memory is most of what a search takes.
type addrIndex struct {
	slots []addrSlot // a power of two
	n     int
}

// addrSlot is an address and, in one word, the rest of its identity and its number plus 1, which is 0 in a free slot:
//
//	63         32 31     28 27                0
//	| file       | state   | number + 1       |
type addrSlot struct{ addr, rest uint64 }

const numberBits = 28 // more than maxAddrs needs

func (is *identity) slot() addrSlot {
	return addrSlot{is.addr, uint64(is.file)<<32 | uint64(is.state)<<numberBits}
}

func (s *addrSlot) hash() uint64 { return mix(s.addr, s.rest>>numberBits) }

// find returns the number of an address.
func (x *addrIndex) find(is identity) (number uint32, found bool) {
	if x.slots == nil {
		return 0, false
	}
	want, mask := is.slot(), uint64(len(x.slots)-1)
	for i := want.hash() & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		number := uint32(s.rest) & (1<<numberBits - 1)
		switch {
		case number == 0:
			return 0, false
		case s.addr == want.addr && s.rest>>numberBits == want.rest>>numberBits:
			return number - 1, true
		}
	}
}

// add adds a number that is not in the table.
func (x *addrIndex) add(is identity, number uint32) {
	if x.n >= len(x.slots)/4*3 {
		old := x.slots
		x.slots = make([]addrSlot, max(64, 2*len(old)))
		for _, s := range old {
			if s.rest<<(64-numberBits) != 0 {
				x.put(s)
			}
		}
	}
	s := is.slot()
	s.rest |= uint64(number) + 1
	x.put(s)
	x.n++
}

func (x *addrIndex) put(s addrSlot) {
	mask := uint64(len(x.slots) - 1)
	i := s.hash() & mask
	for x.slots[i].rest != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}
