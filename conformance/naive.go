package conformance

import "slices"

// Part is one field of a blob as the naive reader found it.
type Part struct {
	Name  string // depth kind back sign count literal delta size user length
	Frame int    // -1 if it belongs to none
	Off   int    // bits from the blob's start
	Width int    // bits, without the spill bit
	Value uint64 // the low 64 bits
}

// HasSpill says whether a spill bit follows the field. (BT-FIELD-1)
func (p Part) HasSpill() bool { return p.Name != "user" && p.Name != "length" }

// End is the bit after the field and its spill bit.
func (p Part) End() int {
	if p.HasSpill() {
		return p.Off + p.Width + 1
	}
	return p.Off + p.Width
}

// Reading is a blob read one bit at a time, straight from SPEC.md: slow, and
// sharing nothing with the codec.
type Reading struct {
	Parts  []Part // of a rejected blob, those before the fault
	Depth  int
	Value  Value
	Reason string // "" if accepted
	At     int    // rejected: bit that the offending field begins at
}

// Spills are the positions of the spill bits.
func (r Reading) Spills() []int {
	var at []int
	for _, p := range r.Parts {
		if p.HasSpill() {
			at = append(at, p.Off+p.Width)
		}
	}
	return at
}

// ReadNaively reads a blob with its length. (BT-BLOB-1 to BT-USER-1)
func ReadNaively(blob []byte, word int) Reading {
	if len(blob) < 2 {
		return Reading{Reason: "short"}
	}
	end := 8 * (len(blob) - 2)
	length := 256*int(blob[len(blob)-2]) + int(blob[len(blob)-1])
	switch {
	case length == 0:
		return Reading{Reason: "empty", At: end}
	case length != len(blob):
		return Reading{Reason: "length", At: end}
	}
	bits := unpackBits(blob)
	r := readBits(bits, end, word)
	if r.Reason != "" {
		return r
	}
	if next := r.end(); next < end {
		r.Parts = append(r.Parts, Part{Name: "user", Frame: -1, Off: next, Width: end - next,
			Value: number(bits[next:end])})
	}
	r.Parts = append(r.Parts, Part{Name: "length", Frame: -1, Off: end, Width: 16, Value: uint64(length)})
	return r
}

// readBits settles what a depth of 0 means and reads. (BT-DEPTH-2)
func readBits(bits []byte, end, word int) Reading {
	if end < 6 || number(bits[:5]) != 0 {
		return readAs(bits, end, word, -1)
	}
	empty := readAs(bits, end, word, 0)
	if empty.Reason == "" && end-empty.end() < 8 {
		return empty
	}
	full := readAs(bits, end, word, 32)
	switch {
	case full.Reason == "":
		return full
	case empty.Reason == "" || end < 8*46:
		return empty
	}
	return full
}

// readCut reads what is there of a blob cut at its end; a rejection with reason
// truncated then is the cut.
func readCut(data []byte) Reading {
	bits := unpackBits(data)
	depth := -1
	if len(bits) >= 6 && number(bits[:5]) == 0 {
		depth = 32
	}
	return readAs(bits, len(bits), 64, depth)
}

func (r Reading) end() int { return r.Parts[len(r.Parts)-1].End() }

// number is bits as a number, the first the highest.
func number(bits []byte) uint64 {
	var v uint64
	for _, bit := range bits {
		v = 2*v + uint64(bit)
	}
	return v
}

// naive walks over bits up to end.
type naive struct {
	bits []byte
	end  int
	pos  int
	word int
	Reading
}

// readAs reads with depth frames, or with as many as the depth field says if
// depth is -1.
func readAs(bits []byte, end, word, depth int) Reading {
	n := &naive{bits: bits, end: end, word: word}
	n.walk(depth)
	return n.Reading
}

func (n *naive) walk(depth int) {
	said, ok := n.field("depth", -1, 5)
	if !ok {
		return
	}
	if depth < 0 {
		depth = int(said)
	}
	n.Depth = depth
	for i := 0; i < depth; i++ {
		if !n.frame(i) {
			return
		}
	}
	if size, ok := n.counted("size", -1); ok {
		n.Value.Size = size
	}
}

func (n *naive) frame(i int) bool {
	at := n.pos
	kind, ok := n.field("kind", i, 1)
	if !ok {
		return false
	}
	if kind == 0 {
		v, ok := n.counted("literal", i)
		n.push(v, ok)
		return ok
	}
	if i == 0 {
		return n.reject("delta-first", at)
	}
	at = n.pos
	back, ok := n.field("back", i, 3)
	if !ok {
		return false
	}
	if int(back)+1 > i {
		return n.reject("back", at)
	}
	sign, ok := n.field("sign", i, 1)
	if !ok {
		return false
	}
	v, ok := n.counted("delta", i)
	if !ok {
		return false
	}
	base := n.Value.PCs[i-1-int(back)]
	if sign == 0 {
		n.push(base+v, true)
	} else {
		n.push(base-v, true)
	}
	return true
}

// push keeps a frame's address modulo 2^word. (BT-DELTA-6)
func (n *naive) push(v uint64, ok bool) {
	if !ok {
		return
	}
	if n.word == 32 {
		v %= 1 << 32
	}
	n.Value.PCs = append(n.Value.PCs, v)
}

// counted reads a count and a value of that many bits. (BT-COUNT-2, BT-COUNT-4)
func (n *naive) counted(name string, frame int) (uint64, bool) {
	at := n.pos
	count, ok := n.field("count", frame, 6)
	if !ok {
		return 0, false
	}
	if count == 0 {
		count = 64
	}
	if int(count) > n.word {
		return 0, n.reject("count", at)
	}
	return n.field(name, frame, int(count))
}

// field reads width bits and passes over a spill bit. (BT-FIELD-1, BT-FIELD-4)
func (n *naive) field(name string, frame, width int) (uint64, bool) {
	if n.pos+width+1 > n.end {
		return 0, n.reject("truncated", n.pos)
	}
	v := number(n.bits[n.pos : n.pos+width])
	n.Parts = append(n.Parts, Part{Name: name, Frame: frame, Off: n.pos, Width: width, Value: v})
	n.pos += width + 1
	return v, true
}

func (n *naive) reject(reason string, at int) bool {
	n.Reason, n.At = reason, at
	return false
}

// spillsOf are the positions of spill bits in the data of a request for op: from
// the vector's bits where it has them, else as the naive reader finds them.
func (v *Vector) spillsOf(op Op) []int {
	switch {
	case v.Blob == nil:
		return nil
	case op == OpEnd:
		n := len(v.Blob)
		if n < 2 {
			return nil
		}
		length := 256*int(v.Blob[n-2]) + int(v.Blob[n-1])
		if length < 2 || length > n {
			return nil
		}
		at := ReadNaively(v.Blob[n-length:], v.Word).Spills()
		for i := range at {
			at[i] += 8 * (n - length)
		}
		return at
	case v.Bits != nil:
		return slices.Clone(v.Bits.Spills)
	case op == OpSalvage:
		// The last two bytes stay: they must not turn into a right length.
		at := readCut(v.Blob).Spills()
		return slices.DeleteFunc(at, func(n int) bool { return n >= 8*(len(v.Blob)-2) })
	}
	return ReadNaively(v.Blob, v.Word).Spills()
}
