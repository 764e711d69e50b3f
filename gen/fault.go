package gen

import (
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Fault is an input with one fault, and the valid input that it was made from. Both are
// read the same way: as a blob, as a ~m# line (strictly or leniently), or as a ~b#
// line.
type Fault struct {
	Reason  codec.Reason
	Input   Input
	Word    int // word size at which blobs and ~m# lines are read, 32 or 64
	Bytes   []byte
	Origin  []byte
	Changed string // how Bytes differs from Origin
}

// Input is the form of an input.
type Input uint8

const (
	Blob        Input = iota
	Line              // ~m#, strict
	LineLenient       // ~m#, lenient
	Decoded           // ~b#
)

// String returns the name of the form.
func (i Input) String() string { return [...]string{"blob", "line", "lenient line", "decoded line"}[i] }

// NewFault returns a fault with the given reason. The seed chooses the valid input and,
// if there are several ways to cause the fault, one of them. NewFault panics if reason
// is not in [codec.Reasons].
func NewFault(reason codec.Reason, seed uint64) Fault {
	f := faulter{rng: newRNG(seed, "fault/"+string(reason)), f: Fault{Reason: reason, Word: 64}}
	f.stack()
	switch reason {
	case codec.ReasonLeadIn:
		f.leadIn()
	case codec.ReasonBase64:
		f.base64()
	case codec.ReasonDecodedLine:
		f.decodedLine()
	case codec.ReasonShort:
		left := f.rng.below(2)
		f.blob(f.origin[:left], "all but %d bytes gone", left)
	case codec.ReasonEmpty:
		f.blob([]byte{0, 0}, "all gone, and the length 0")
	case codec.ReasonLength:
		f.length()
	case codec.ReasonTruncated:
		f.truncated()
	case codec.ReasonDeltaFirst:
		b := unpack(f.origin)
		b[6] = 1
		f.blob(b.pack(), "kind of frame 0 set to delta")
	case codec.ReasonBack:
		f.back()
	case codec.ReasonCount:
		f.count()
	default:
		panic("gen: no fault for reason " + string(reason))
	}
	return f.f
}

type faulter struct {
	rng    *rng
	s      codec.Stack // 1 to 31 frames, since a depth field of 0 is ambiguous
	origin []byte      // blob of s
	f      Fault
}

// stack creates the valid stack and blob from which the faulty input is made.
func (f *faulter) stack() {
	m := models[f.rng.below(len(models))]
	f.s = m.Program(f.rng.uint64() % 16).Stacks(1)[0]
	f.s.PCs = f.s.PCs[:1+f.rng.below(min(len(f.s.PCs), codec.MaxDepth-1))]
	f.encode()
}

func (f *faulter) encode() {
	var err error
	if f.origin, err = (codec.Encoder{Search: codec.SearchBest}).AppendBlob(nil, &f.s, nil); err != nil {
		panic("gen: " + err.Error())
	}
}

func (f *faulter) blob(b []byte, format string, args ...any) {
	f.f.Input, f.f.Origin, f.f.Bytes = Blob, f.origin, append([]byte{}, b...)
	f.f.Changed = fmt.Sprintf(format, args...)
}

func (f *faulter) text(in Input, origin, changed, format string, args ...any) {
	f.f.Input, f.f.Origin, f.f.Bytes = in, []byte(origin), []byte(changed)
	f.f.Changed = fmt.Sprintf(format, args...)
}

func (f *faulter) leadIn() {
	if f.rng.chance(50) {
		line := string(codec.AppendDecoded(nil, &f.s))
		f.text(Decoded, line, f.spoil(line, 3), "a character of the lead-in")
		return
	}
	line := string(codec.AppendLine(nil, f.origin))
	f.text(Line, line, f.spoil(line, 3), "a character of the lead-in")
}

// spoil removes or changes one of the first n characters.
func (f *faulter) spoil(line string, n int) string {
	at := f.rng.below(n)
	if f.rng.chance(50) {
		return line[:at] + line[at+1:]
	}
	return line[:at] + string(line[at]^1) + line[at+1:]
}

func (f *faulter) base64() {
	// A length that is not a multiple of 3 gives padding to damage.
	for len(f.origin)%3 == 0 {
		f.s.PCs[0], f.s.Size = f.s.PCs[0]^1, f.s.Size+f.s.Size+1
		f.encode()
	}
	line := string(codec.AppendLine(nil, f.origin))
	text := strings.TrimRight(line, "=")
	at := 3 + f.rng.below(len(text)-3)
	ways := []func(){
		func() {
			bad := "!\"#$%&'()*,.:;<>?@[]^`{|}~\x00\x1b\x7f\x80\xff"
			c := bad[f.rng.below(len(bad))]
			f.text(f.reading(), line, line[:at]+string([]byte{c})+line[at+1:], "%q at byte %d", c, at)
		},
		func() {
			c := "-_"[f.rng.below(2)]
			f.text(Line, line, line[:at]+string(c)+line[at+1:], "%q at byte %d, read strictly", c, at)
		},
		func() {
			c := " \t\r\n"[f.rng.below(4)]
			f.text(Line, line, line[:at]+string(c)+line[at:], "%q put in at byte %d, read strictly", c, at)
		},
		func() { f.text(Line, line, line[:len(line)-1], "the last padding gone, read strictly") },
		func() { f.text(f.reading(), line, line+"=", "padding too much") },
		func() { f.text(f.reading(), line, text[:at+1]+"="+line[at+1:], "padding in the middle") },
		func() {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
			last := len(text) - 1
			c := alphabet[strings.IndexByte(alphabet, text[last])|1]
			f.text(f.reading(), line, text[:last]+string(c)+line[last+1:], "an unused bit set")
		},
		func() {
			one := text[:3+(len(text)-3)/4*4+1]
			f.text(LineLenient, line, one, "a single character beyond groups of 4")
		},
	}
	ways[f.rng.below(len(ways))]()
	f.mustDiffer()
}

// mustDiffer panics if the fault is equal to its origin.
func (f *faulter) mustDiffer() {
	if string(f.f.Bytes) == string(f.f.Origin) {
		panic("gen: nothing changed: " + f.f.Changed)
	}
}

func (f *faulter) reading() Input {
	return []Input{Line, LineLenient}[f.rng.below(2)]
}

func (f *faulter) decodedLine() {
	line := string(codec.AppendDecoded(nil, &f.s))
	comma := strings.IndexByte(line, ',')
	last := strings.LastIndex(line, " 0x")
	const over = "18446744073709551616" // 2^64
	ways := []func(){
		func() { f.text(Decoded, line, strings.Replace(line, "size:", "siez:", 1), "size misspelt") },
		func() { f.text(Decoded, line, strings.Replace(line, ",", "", 1), "no comma") },
		func() { f.text(Decoded, line, "~b#size: ,"+line[comma+1:], "no size") },
		func() { f.text(Decoded, line, "~b#size: "+over+line[comma:], "a size of 2^64") },
		func() { f.text(Decoded, line, line[:last]+" "+line[last+3:], "an address without 0x") },
		func() { f.text(Decoded, line, line+" 0x10000000000000000", "an address of 2^64") },
		func() { f.text(Decoded, line, line+" 0x", "an address without digits") },
		func() { f.text(Decoded, line, line+" 0x12g", "an address with a g") },
		func() { f.text(Decoded, line, line[:last]+" "+line[last:], "two spaces") },
		func() { f.text(Decoded, line, line+strings.Repeat(" 0x1", codec.MaxDepth), "over 32 addresses") },
	}
	ways[f.rng.below(len(ways))]()
	f.mustDiffer()
}

func (f *faulter) length() {
	n := len(f.origin)
	b := append([]byte{}, f.origin...)
	set := func(length int) { b[n-2], b[n-1] = byte(length>>8), byte(length) }
	swapped := n<<8&0xff00 | n>>8
	switch way := f.rng.below(5); {
	case way == 0:
		wrong := 1 + f.rng.below(codec.MaxLength-1)
		if wrong >= n {
			wrong++
		}
		set(wrong)
		f.blob(b, "length %d of %d bytes", wrong, n)
	case way == 1:
		set(n - 2)
		f.blob(b, "length without its own two bytes")
	case way == 2 && swapped != n:
		set(swapped)
		f.blob(b, "length little-endian")
	case way == 3:
		cut := 1 + f.rng.below(n-2)
		f.blob(b[cut:], "the first %d bytes gone", cut)
	default:
		more := 1 + f.rng.below(8)
		f.blob(append(make([]byte, more), b...), "%d bytes before the blob", more)
	}
}

// truncated removes bytes from the end of the fields, and corrects the length.
func (f *faulter) truncated() {
	b := unpack(f.origin)
	fields := fieldsOf(f.origin)
	var end int // of the size, spill bit included
	for _, field := range fields {
		if field.Kind == codec.FieldSize {
			end = field.End()
		}
	}
	keep := f.rng.below((end+7)/8) * 8 // in bits; less than all bytes of the fields
	f.blob(b[:keep].pack(), "%d bits of %d left", keep, end)
}

// back writes a stack whose frame n is a delta, and makes the delta refer to before
// frame 0.
func (f *faulter) back() {
	n := 1 + f.rng.below(7)
	for len(f.s.PCs) <= n {
		f.s.PCs = append(f.s.PCs, 0)
	}
	f.s.PCs[0] |= 1 << 20 // a literal of 21 bits or more, so that a small delta is shorter
	f.s.PCs[n] = f.s.PCs[n-1] + 1 + uint64(f.rng.below(200))
	f.s.PCs[n-1] |= 1 << 20
	f.s.PCs[n] = f.s.PCs[n-1] + 1 + uint64(f.rng.below(200))
	f.encode()
	b := unpack(f.origin)
	for _, field := range fieldsOf(f.origin) {
		if field.Kind == codec.FieldBack && field.Frame == n {
			back := f.rng.between(n, 7)
			b.set(field.Off, field.Width, uint64(back))
			f.blob(b.pack(), "back of frame %d set to %d", n, back)
			return
		}
	}
	panic("gen: frame is not a delta")
}

// count writes a value with a count over 32, which is invalid for words of 32 bits.
func (f *faulter) count() {
	for n := range f.s.PCs {
		f.s.PCs[n] &= 1<<32 - 1
	}
	f.s.Size &= 1<<32 - 1
	m := codec.MachineExact32
	var err error
	if f.origin, err = (codec.Encoder{Machine: m, Search: codec.SearchBest}).AppendBlob(nil, &f.s, nil); err != nil {
		panic("gen: " + err.Error())
	}
	f.f.Word = 32
	var counts []codec.Field
	fields := fieldsOf(f.origin)
	for _, field := range fields {
		if field.Kind == codec.FieldCount || field.Kind == codec.FieldSizeCount {
			counts = append(counts, field)
		}
	}
	field := counts[f.rng.below(len(counts))]
	count := f.rng.between(33, 64)
	old := int(field.Value)
	at := field.End()
	b := unpack(f.origin)
	wide := append(bitString{}, b[:at]...)
	wide.set(field.Off, field.Width, uint64(count&63))
	wide = wide.append(0, count-old)
	end := fields[len(fields)-1].Off
	for _, last := range fields {
		if last.Kind == codec.FieldSize {
			end = last.End()
		}
	}
	wide = append(wide, b[at:end]...)
	f.blob(wide.pack(), "a count of %d set to %d, with as many bits", old, count)
}
