package profile

import (
	"math"
	"math/bits"
)

// Value is an amount of memory: bytes requested, and number of allocations.
type Value struct {
	Bytes uint64 `json:"bytes"`
	Count uint64 `json:"count"`
}

// Add adds o. If a sum overflows, it becomes 2^64-1, and Add returns true.
func (v *Value) Add(o Value) (saturated bool) {
	v.Bytes += o.Bytes
	if v.Bytes < o.Bytes {
		v.Bytes, saturated = math.MaxUint64, true
	}
	v.Count += o.Count
	if v.Count < o.Count {
		v.Count, saturated = math.MaxUint64, true
	}
	return saturated
}

// sub subtracts o. A negative difference becomes 0.
func (v *Value) sub(o Value) {
	v.Bytes -= min(o.Bytes, v.Bytes)
	v.Count -= min(o.Count, v.Count)
}

// IsZero reports whether v is zero.
func (v Value) IsZero() bool { return v == Value{} }

// wide is a Value whose sums have 128 bits, so that parts can be subtracted again.
type wide struct{ bytes, count [2]uint64 } // the lower half first

func wideOf(v Value) wide { return wide{[2]uint64{v.Bytes}, [2]uint64{v.Count}} }

func (w *wide) add(o wide) {
	for _, x := range []struct{ sum, v *[2]uint64 }{{&w.bytes, &o.bytes}, {&w.count, &o.count}} {
		var carry uint64
		x.sum[0], carry = bits.Add64(x.sum[0], x.v[0], 0)
		x.sum[1] += x.v[1] + carry
	}
}

func (w *wide) sub(o wide) {
	for _, x := range []struct{ sum, v *[2]uint64 }{{&w.bytes, &o.bytes}, {&w.count, &o.count}} {
		var borrow uint64
		x.sum[0], borrow = bits.Sub64(x.sum[0], x.v[0], 0)
		x.sum[1] -= x.v[1] + borrow
	}
}

// value returns the sums, limited to 64 bits.
func (w *wide) value() Value {
	v := Value{w.bytes[0], w.count[0]}
	if w.bytes[1] > 0 {
		v.Bytes = math.MaxUint64
	}
	if w.count[1] > 0 {
		v.Count = math.MaxUint64
	}
	return v
}

// Weight selects the number of a [Value] by which a report is ordered.
type Weight uint8

const (
	Bytes Weight = iota
	Count
)

// Of returns the number of v that w selects: the count if w is Count, else the bytes.
func (w Weight) Of(v Value) uint64 {
	if w == Count {
		return v.Count
	}
	return v.Bytes
}

// other returns the number of v that w does not select.
func (w Weight) other(v Value) uint64 {
	if w == Count {
		return v.Bytes
	}
	return v.Count
}
