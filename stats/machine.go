package stats

import (
	"fmt"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// spillSample is the maximum number of records examined for spill bits.
const spillSample = 1000

// Inference infers from the records of a dump which machine encoded it: the word size, and
// the behavior of its shifts. A single record is weak evidence. (BT-LOSS-2)
type Inference struct {
	records int64
	wide    int64 // values of more than 32 bits
	wrap    int64 // of these, values with the signature of wrap64
	zero    int64
	big     int64 // addresses over 32 bits in records without a blob
	high    int64 // addresses of 32 bits, the uppermost set
	spills  int64 // fields of 32 bits examined
	spilled int64 // of these, fields with a spill bit of 1
	sampled int
	fields  []codec.Field
}

// Add adds a record to the evidence. blob is nil if only the stack is known; Add then ignores
// the loss flags of s.
func (f *Inference) Add(s *codec.Stack, blob []byte) {
	f.records++
	m := s.Marks
	if m.Wide != 0 && blob != nil {
		f.wide += int64(bits.OnesCount32(m.Wide))
		f.wrap += int64(bits.OnesCount32(m.Wrap))
		f.zero += int64(bits.OnesCount32(m.Zero &^ m.Wrap))
		return
	}
	high := false
	for _, pc := range s.PCs {
		switch {
		case pc>>32 != 0:
			f.big++
		case pc>>31 == 1:
			f.high++
			high = true
		}
	}
	if high && blob != nil && f.sampled < spillSample {
		f.sampled++
		f.sampleSpills(blob)
	}
}

func (f *Inference) sampleSpills(blob []byte) {
	f.fields, _ = codec.Decoder{}.AppendFields(f.fields[:0], blob)
	for _, x := range f.fields {
		if (x.Kind == "literal" || x.Kind == "delta") && x.Width == 32 {
			f.spills++
			if x.Spill {
				f.spilled++
			}
		}
	}
}

// mostly is the share of the evidence, in 1/1000, that is enough to decide.
const mostly = 990

func share(n, of int64) int64 { return n * 1000 / max(of, 1) }

// Machine returns the machine that fits the evidence best. sure reports whether every other
// machine that fits decodes alike; machines with 32-bit words all decode alike. Without
// evidence, Machine returns exact32 and false.
func (f *Inference) Machine() (m codec.Machine, sure bool) {
	exact := f.wide - f.wrap - f.zero
	switch {
	case f.wide > 0 && f.wrap >= max(exact, f.zero):
		return codec.MachineWrap64, share(f.wrap, f.wide) >= mostly
	case f.wide > 0 && f.zero >= exact:
		return codec.MachineZero64, share(f.zero, f.wide) >= mostly
	case f.wide > 0:
		return codec.MachineExact64, share(exact, f.wide) >= mostly
	case f.big > 0:
		return codec.MachineExact64, false
	case f.spills > 0 && share(f.spilled, f.spills) >= mostly:
		return codec.MachineWrap32, true
	case f.spills > 0:
		return codec.MachineZero32, true
	}
	return codec.MachineExact32, f.high > 0
}

// Evidence returns the evidence for the result of Machine, in sentences.
func (f *Inference) Evidence() []string {
	m, sure := f.Machine()
	switch {
	case f.records == 0:
		return []string{"no record"}
	case f.wide > 0:
		return f.wideEvidence(m, sure)
	case f.big > 0:
		return []string{fmt.Sprintf("%s addresses over 32 bits, none of them in a blob: 64-bit words; "+
			"what the encoder's shifts do there is not known", printable.Number(f.big))}
	case f.high > 0:
		all := []string{fmt.Sprintf("%s addresses of 32 bits with the uppermost set, none wider: 32-bit words",
			printable.Number(f.high))}
		switch {
		case f.spills == 0:
		case f.spilled == f.spills:
			all = append(all, fmt.Sprintf("the spill bit after all %s examined values of 32 bits is 1: %v",
				printable.Number(f.spills), m))
		default:
			all = append(all, fmt.Sprintf("the spill bit after %s of %s examined values of 32 bits is 1: %v",
				printable.Number(f.spilled), printable.Number(f.spills), m))
		}
		return append(all, "nothing is lost on 32-bit words")
	}
	return []string{fmt.Sprintf("no address in %s records has more than 31 bits: 32-bit words, "+
		"or a 64-bit program at low addresses, with nothing lost either way", printable.Number(f.records))}
}

func (f *Inference) wideEvidence(m codec.Machine, sure bool) []string {
	n, what := f.wide-f.wrap-f.zero, "keep their upper bits"
	switch m {
	case codec.MachineWrap64:
		n, what = f.wrap, "repeat their low bits"
	case codec.MachineZero64:
		n, what = f.zero, "are 0 above their low 32 bits"
	}
	count := "all"
	if n != f.wide {
		count = printable.Number(n)
	}
	all := []string{fmt.Sprintf("%s values over 32 bits, %s %s: %v", printable.Number(f.wide), count, what, m)}
	if !sure {
		all = append(all, "the rest do not: is this the dump of several machines?")
	}
	if m.Lossy() {
		all = append(all, "only the low 31 bits of such addresses are in the dump")
	}
	return all
}
