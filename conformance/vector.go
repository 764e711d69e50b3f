package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/btv"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// ParseError is an error with its place.
type ParseError = btv.ParseError

func faultAt(file string, row int, format string, args ...any) error {
	return &ParseError{File: file, Row: row, Msg: fmt.Sprintf(format, args...)}
}

// Vector is one expectation: a record of a .btv file, and what its words mean.
type Vector struct {
	btv.Vector
	Ops     []Op
	In      *Value  // input of the encoder
	Words   string  // other words that are the input of a writer, such as a header; see WordsOf
	WordsOf string  // the word before Words
	Want    *Answer // nil if Blob or Text is the whole expectation
}

// Has reports whether op is among the vector's operations.
func (v *Vector) Has(op Op) bool { return slices.Contains(v.Ops, op) }

// Rejects reports whether the vector must be rejected.
func (v *Vector) Rejects() bool { return v.Want != nil && v.Want.Outcome == Reject }

// Parse reads a .btv file. name is the file name for messages and for the places of vectors.
// Every error is a [*ParseError]. [Set.Check] resolves control vectors later.
func Parse(name string, text []byte) ([]*Vector, error) {
	records, err := btv.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return newVectors(records)
}

func newVectors(records []*btv.Vector) (list []*Vector, err error) {
	for _, r := range records {
		for _, o := range r.Observed {
			if _, err := parseWant(o.Text, true); err != nil {
				return nil, r.Fault("want["+o.Name+"]", err)
			}
		}
		v := &Vector{Vector: *r}
		for _, step := range []struct {
			key string // of which an error is
			do  func() error
		}{{"op", v.readOps}, {"in", v.readIn}, {"want", v.readWant}, {"", v.readDigits}, {"", v.validate}} {
			if err := step.do(); err != nil {
				return nil, r.Fault(step.key, err)
			}
		}
		list = append(list, v)
	}
	return list, nil
}

func (v *Vector) readOps() error {
	for _, name := range v.OpNames {
		op, err := parseOp(name)
		if err != nil {
			return err
		}
		if v.Has(op) {
			return fmt.Errorf("op %s twice, expected it once", op)
		}
		v.Ops = append(v.Ops, op)
	}
	return nil
}

func (v *Vector) readIn() error {
	if v.InText == "" {
		return nil
	}
	if of, text, ok := strings.Cut(v.InText, " "); ok && slices.Contains(inWords(), of) {
		v.WordsOf, v.Words = of, text
		return nil
	}
	in, err := parseValue(v.InText)
	v.In = &in
	return err
}

func (v *Vector) readWant() error {
	if v.WantText == "" {
		return nil
	}
	want, err := parseWant(v.WantText, false)
	v.Want = &want
	return err
}

// readDigits computes the text of a line of digits.
func (v *Vector) readDigits() error {
	if v.Digits == nil {
		return nil
	}
	form := v.lineForm()
	text := string(callpath.AppendCRC(append([]byte(form.leadIn), v.Digits...)))
	if v.Text != nil && *v.Text != text {
		return fmt.Errorf("text %q, expected %q for the digits", clip(*v.Text), clip(text))
	}
	v.Text = &text
	return nil
}

// lineForm returns the form of the line of `digits:`.
func (v *Vector) lineForm() lineForm {
	for _, op := range v.Ops {
		if form := op.row().digits; form.crcDigits > 0 {
			return form
		}
	}
	return pathDigits
}

// validate checks that the record has the keys that its operations need.
func (v *Vector) validate() error {
	if len(v.Ops) == 0 {
		return errors.New("no op, expected op: decode or another")
	}
	for _, op := range v.Ops {
		if err := op.row().in.validate(v, op.row()); err != nil {
			return err
		}
	}
	if err := v.validateSpills(); err != nil {
		return err
	}
	return v.validateLow()
}

// validateSpills checks that the spill bits of an encoder's blob fit its machine, unless the
// head says spill: any. The spill bits of `bits:` are not checked; they are only dots.
func (v *Vector) validateSpills() error {
	if !slices.ContainsFunc(v.Ops, Op.encodes) || v.Rejects() || v.Head.AnySpill || v.Bits != nil && string(v.Blob) == string(v.Bits.Blob()) {
		return nil
	}
	if at := bitstring.FirstDifference(v.Blob, v.machineSpills(v.Blob)); at >= 0 {
		return fmt.Errorf("hex has the spill bit %d otherwise than %v, expected it so, or spill: any in the head", at, v.Machine)
	}
	return nil
}

// validateLow compares the expected result of decoding with the input of the encoder: the
// low 31 bits of every value must be equal, on 32-bit machines all bits. (BT-LOSS-1)
func (v *Vector) validateLow() error {
	if v.In == nil || !v.Has(opDecode) && !v.Has(opUser) || v.Want.Outcome != OK {
		return nil
	}
	mask := uint64(1<<31 - 1)
	if v.HasMachine && v.Machine.Word() == 32 {
		mask = 1<<32 - 1
	}
	if len(v.In.PCs) != len(v.Want.Value.PCs) {
		return fmt.Errorf("want has %d frames, expected the %d of in", len(v.Want.Value.PCs), len(v.In.PCs))
	}
	for i, pc := range v.In.PCs {
		if (pc^v.Want.Value.PCs[i])&mask != 0 {
			return fmt.Errorf("want: frame %d is %x, expected the low bits of in's %x", i, v.Want.Value.PCs[i], pc)
		}
	}
	if (v.In.Size^v.Want.Value.Size)&mask != 0 {
		return fmt.Errorf("want: size is %d, expected the low bits of in's %d", v.Want.Value.Size, v.In.Size)
	}
	return nil
}
