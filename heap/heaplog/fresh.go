package heaplog

// addresses are those of the blocks of the dumps of a boot, as long as each block is at an address
// that no earlier dump of the boot has.
type addresses struct {
	boot int
	dump map[uint64]int // ordinal of the dump with a block at an address
	old  bool           // an address came again
}

// maxAddresses is the number of blocks of a boot that are compared.
const maxAddresses = 1 << 16

// add adds a block of d. It returns false if an earlier dump of the boot has a block at its address,
// or if that is not known.
func (a *addresses) add(h *pendingRecord, d *dump) bool {
	if d.boot != a.boot || a.dump == nil {
		*a = addresses{boot: d.boot, dump: map[uint64]int{}}
	}
	if a.old {
		return false
	}
	dump, seen := a.dump[h.Of.address]
	if !h.Addressed || seen && dump != d.ordinal || len(a.dump) >= maxAddresses {
		a.old, a.dump = true, map[uint64]int{}
		return false
	}
	a.dump[h.Of.address] = d.ordinal
	return true
}
