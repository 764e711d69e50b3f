package conformance

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// validate computes the blob from bits, and checks that the keys of the record do not contradict each other.
func (v *Vector) validate() error {
	if len(v.Ops) == 0 {
		return errors.New("no op, expected op: decode or another")
	}
	if v.Bits != nil {
		blob := v.Bits.Blob()
		if v.Blob == nil {
			v.Blob = blob
		} else if err := v.Bits.matches(v.Blob); err != nil {
			return err
		}
	}
	if v.Digits != nil {
		text, err := lineOfDigits(v.Digits, v.Has(OpVline) || v.Has(OpVencode))
		if err != nil {
			return err
		}
		if v.Text != nil && *v.Text != text {
			return fmt.Errorf("text %q, expected %q for the digits", clip(*v.Text), clip(text))
		}
		v.Text = &text
	}
	if v.Line != "" {
		if v.Blob == nil {
			return errors.New("line without hex or bits, expected the blob it holds")
		}
		if want := "~m#" + base64.StdEncoding.EncodeToString(v.Blob); v.Line != want {
			return fmt.Errorf("line %q, expected %q for the hex", clip(v.Line), clip(want))
		}
	}
	if (v.Control == "") != (v.Differs.Kind == "") {
		return errors.New("control and differs, expected both or neither")
	}
	for _, op := range v.Ops {
		if err := v.validateOp(op); err != nil {
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

// matches checks a blob given in hexadecimal against the bits: except for spill bits, it must
// have the same bits, padded with zeros to the last byte.
func (t *BitText) matches(blob []byte) error {
	want := t.Blob()
	if len(want) != len(blob) {
		return fmt.Errorf("hex has %d bytes, expected %d for the bits", len(blob), len(want))
	}
	masked := append([]byte{}, blob...)
	bitstring.Clear(masked, t.Spills)
	if at := bitstring.FirstDifference(masked, want); at >= 0 {
		return fmt.Errorf("hex differs from bits at bit %d", at)
	}
	return nil
}

// validateOp checks that the record has the keys that op needs.
func (v *Vector) validateOp(op Op) error {
	need := func(ok bool, key string) error {
		if ok {
			return nil
		}
		return fmt.Errorf("op %s without %s, expected it", op, key)
	}
	var err error
	switch {
	case op.encodes():
		err = errors.Join(need(v.In != nil, "in"), need(v.HasMachine, "machine"))
		if !v.Rejects() {
			err = errors.Join(err, need(v.Blob != nil, "hex or bits"))
		}
		if op == OpBareEncode && !v.Rejects() {
			err = errors.Join(err, need(v.Bits != nil, "bits"))
		}
	case kinds[op].text:
		err = need(v.Text != nil, "text")
	case kinds[op].in != "":
		return v.validateWords(op)
	case op != OpFormat:
		err = need(v.Blob != nil, "hex or bits")
	default:
		if v.Words != "" {
			err = need(v.Text != nil || v.Rejects(), "text, or want: reject")
		} else if v.Text != nil && strings.HasPrefix(*v.Text, "~h#") {
			err = need(v.Want != nil && v.Want.Words != "", "want head")
		} else if v.In == nil {
			err = errors.Join(need(v.Blob != nil, "in, hex or bits"), need(v.Line != "" || v.Text != nil, "line or text"))
		} else {
			err = need(v.Text != nil || v.Rejects(), "text, or want: reject")
		}
	}
	if err != nil {
		return err
	}
	if op.encodes() || op == OpFormat {
		return nil
	}
	return need(v.Want != nil, "want")
}

// validateLow compares the expected result of decoding with the input of the encoder: the
// low 31 bits of every value must be equal, on 32-bit machines all bits. (BT-LOSS-1)
func (v *Vector) validateLow() error {
	if v.In == nil || !v.Has(OpDecode) && !v.Has(OpUser) || v.Want.Outcome != OK {
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

// validateWords checks the form of the words that are the input of op. If a vector for pencode or
// vencode has a text, validateWords also checks that the text has the contents of the words.
func (v *Vector) validateWords(op Op) error {
	words := v.given(op)
	if words == "" {
		return fmt.Errorf("op %s without in: %s, expected it", op, kinds[op].in)
	}
	if err := checkWords(op, words); err != nil {
		return err
	}
	if kinds[op].words && v.Want == nil {
		return fmt.Errorf("op %s without want, expected it", op)
	}
	if v.Rejects() || v.Text == nil || kinds[op].words {
		return nil
	}
	if why := (&check{v: v, op: op}).written(*v.Text); why != "" {
		return fmt.Errorf("text: %s, expected what in or want says", why)
	}
	return nil
}

// checkWords returns an error if words do not have the form of the input of op.
func checkWords(op Op, words string) (err error) {
	switch op {
	case OpPencode:
		var rest string
		if _, rest, err = maxOf(words); err == nil {
			_, err = parsePathLine(rest)
		}
	case OpVencode:
		_, err = parseEventLine(words)
	case OpName:
		_, err = parsePath(words)
	case OpOffsets, OpAddresses:
		_, err = parseCode(words, op == OpOffsets)
	}
	return err
}
