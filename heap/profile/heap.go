package profile

import (
	"strconv"
)

// Heap holds what an allocator reported about one of its heaps. (BT-HEAD-2)
type Heap struct {
	Source  string `json:"source,omitempty"` // whose: a device, a host, a process, as lines of text have it; "" if all are of one
	Name    string `json:"name"`             // which of several heaps, with its Source; "" if the log names none
	Size    Amount `json:"size"`             // of the heap
	Free    Amount `json:"free"`             // sum of the free blocks
	Largest Amount `json:"largest"`          // the largest free block
	Min     Amount `json:"min"`              // the least that was ever free
	Used    Amount `json:"used,omitzero"`    // of a Foreign report that says no more: of the heap, or of what its Name says, such as VmRSS
	Foreign bool   `json:"-"`                // from a line of another system or of the program, not from ~h#heap
}

// Amount is a number of bytes that a report may lack.
type Amount struct {
	Bytes uint64
	Known bool
}

// MarshalJSON returns the number, or null if it is not known.
func (a Amount) MarshalJSON() ([]byte, error) {
	if !a.Known {
		return []byte("null"), nil
	}
	return strconv.AppendUint(nil, a.Bytes, 10), nil
}

// Fragmentation returns the fraction of the free memory that is not in the largest free block, 0
// to 1. known is false if the report lacks one of the two.
func (h *Heap) Fragmentation() (fraction float64, known bool) {
	if !h.Free.Known || !h.Largest.Known {
		return 0, false
	}
	if h.Free.Bytes == 0 {
		return 0, true
	}
	return max(0, 1-float64(h.Largest.Bytes)/float64(h.Free.Bytes)), true
}

// OnlyUsed reports whether the report says what is used, and nothing of what is free.
func (h *Heap) OnlyUsed() bool { return h.Used.Known && !h.Free.Known }
