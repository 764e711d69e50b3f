package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// checkControl returns an error unless the control vector is accepted and the vector differs
// from it in the declared place only.
func (v *Vector) checkControl(control *Vector) error {
	if v.Differs.Kind == "in" {
		return v.checkControlIn(control)
	}
	if control.Want == nil || control.Want.Outcome != OK {
		return fmt.Errorf("control vector %s is not an accepted vector", control.ID)
	}
	if v.Want == nil || !control.Has(v.Ops[0]) {
		return fmt.Errorf("control vector %s does not have the op %s", control.ID, v.Ops[0])
	}
	d := v.Differs
	if d.Kind != "word" && v.Word != control.Word || d.Kind != "reading" && v.Lenient != control.Lenient {
		return fmt.Errorf("control vector %s is read in another way, expected differs: word or reading", control.ID)
	}
	a, b := v.Input(), control.Input()
	if v.Digits != nil && control.Digits != nil { // the CRC follows from the digits
		a, b = a[:len(a)-v.lineForm().crcDigits], b[:len(b)-control.lineForm().crcDigits]
	}
	if same := bytes.Equal(a, b); same != (d.Kind == "word" || d.Kind == "reading") {
		return fmt.Errorf("differs %v: bytes equal to the control vector's: %v", d, same)
	}
	repaired, err := d.Repair(a, b, v.Text == nil)
	if err != nil {
		return fmt.Errorf("differs %v: %w", d, err)
	}
	if !bytes.Equal(repaired, b) {
		return fmt.Errorf("differs %v: also at bit %d", d, bitstring.FirstDifference(repaired, b))
	}
	return nil
}

// checkControlIn returns an error unless the input of v differs from the input of its control
// vector by one more or one fewer frame, or by one value.
func (v *Vector) checkControlIn(control *Vector) error {
	if v.Words != "" {
		return v.checkControlWords(control)
	}
	// Of two faults the first one counts: the control vector is then refused for the other one.
	other := control.Rejects() && v.Rejects() && control.Want.Reason != v.Want.Reason
	if v.In == nil || control.In == nil || control.Blob == nil && control.Text == nil && !other || v.Machine != control.Machine || v.Search != control.Search {
		return fmt.Errorf("control vector %s is not to encode on the same machine", control.ID)
	}
	a, b := v.In, control.In
	n, others := min(len(a.PCs), len(b.PCs)), 0
	for i := range n {
		if a.PCs[i] != b.PCs[i] {
			others++
		}
	}
	if a.Size != b.Size {
		others++
	}
	for _, f := range append(slices.Clone(a.User), b.User...) {
		if !slices.Contains(a.User, f) || !slices.Contains(b.User, f) {
			others++ // a value that differs is counted twice
		}
	}
	if len(a.User) == len(b.User) && others == 2 {
		others = 1
	}
	if others += len(a.PCs) + len(b.PCs) - 2*n; others != 1 {
		return fmt.Errorf("differs in: %d values differ from the control vector's, expected one", others)
	}
	return nil
}

// checkControlWords returns an error unless the words of v, which a writer must refuse, differ
// from the words of the control vector in one word, or by one more or one fewer word.
func (v *Vector) checkControlWords(control *Vector) error {
	if control.Words == "" || control.WordsOf != v.WordsOf || control.WordsOf == "head" && control.Text == nil || control.Rejects() {
		return fmt.Errorf("control vector %s is not to write such words", control.ID)
	}
	a, b := strings.Split(v.Words, " "), strings.Split(control.Words, " ")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > 1 || len(b) > 1 || len(a)+len(b) == 0 {
		return fmt.Errorf("differs in: words %q differ from the control vector's %q, expected one", a, b)
	}
	return nil
}
