package reconcile

import (
	"math"

	"github.com/lwsbt/lwsbt/codec"
)

// Ranges returns the address ranges of a key of a ~h#boot, none if there is no such header or key. (BT-CODE-1)
func Ranges(boot *codec.Header, key string) (list []codec.Range) {
	if boot != nil {
		text, _ := boot.Get(key)
		list, _ = codec.ParseRanges(text)
	}
	return list
}

// HeapSize returns the size in bytes of the heaps of a boot: the sum of sizes, one for each heap that has a ~h#heap, or
// of the ranges of the key heap if that is more. It is the largest number if it is not known, or one of sizes is that.
func HeapSize(boot *codec.Header, sizes []uint64) uint64 {
	sum, regions := uint64(0), uint64(0)
	for _, n := range sizes {
		if n == math.MaxUint64 {
			return n
		}
		sum += n
	}
	for _, r := range Ranges(boot, "heap") {
		regions += r.Length
	}
	if sum = max(sum, regions); sum == 0 {
		return math.MaxUint64
	}
	return sum
}
