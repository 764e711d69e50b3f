package dwarf

import (
	"cmp"
	"fmt"
	"strings"
)

// Frame is one call in source. Unknown fields are "" or 0.
type Frame struct {
	Func          string // linkage name
	File          string
	Line          int
	Discriminator int  // distinguishes several pieces of code on one line
	Inlined       bool // inlined into the next frame
}

// Lookup appends the frames at an address to dst, innermost first. The error names the
// data that could not be read; Lookup may find frames despite an error. After ErrBudget,
// Lookup finds no more frames.
func (d *Data) Lookup(dst []Frame, pc uint64) ([]Frame, error) {
	if d.Budget.exceeded() {
		return dst, ErrBudget
	}
	d.Budget.most = d.Budget.steps
	d.Budget.steps += stepsPerLookup
	n := len(dst)
	dst, err := d.lookup(dst, pc)
	if d.Budget.exceeded() || d.Alt != nil && d.Alt.Budget.exceeded() { // the frames may lack their end
		return dst[:n], ErrBudget
	}
	d.Budget.steps = min(d.Budget.most, d.Budget.steps)
	return dst, err
}

func (d *Data) lookup(dst []Frame, pc uint64) ([]Frame, error) {
	u, err := d.unitOf(pc)
	if u == nil {
		return dst, err
	}
	u.readRoot()
	lines, w := u.loadLines(), u.withScopes()
	scopes := w.loadScopes()
	if err = cmp.Or(w.err, scopes.err); err != nil && w.d.file != "" {
		err = fmt.Errorf("%s: %w", w.d.file, err)
	}
	err = cmp.Or(u.err, lines.err, err)
	at, row := Frame{}, lines.find(pc)
	if row != nil {
		at.File, at.Line, at.Discriminator = lines.path(row.file), int(row.line), int(row.disc)
	}
	n := scopes.spans.find(pc)
	if n < 0 && row != nil {
		return append(dst, at), err
	}
	for n >= 0 {
		s := &scopes.list[n]
		at.Func, at.Inlined = w.d.nameOf(s.die, 0).text, s.parent >= 0
		if s.parent < 0 && w.isCPlusPlus() {
			at.Func = d.symbolName(at.Func, s.low)
		}
		dst = append(dst, at)
		at = Frame{Line: int(s.callLine), File: lines.path(s.callFile)}
		n = s.parent
	}
	return dst, err
}

// symbolName returns the mangled C++ symbol at start, or name if there is none. DWARF has no
// linkage name for C++ functions that only their own unit sees, but the symbol table has:
// shapes::(anonymous namespace)::disc::disc(double) instead of disc.
func (d *Data) symbolName(name string, start uint64) string {
	if strings.HasPrefix(name, "_Z") {
		return name
	}
	if s := d.Symbol(start); strings.HasPrefix(s, "_Z") {
		return s
	}
	return name
}
