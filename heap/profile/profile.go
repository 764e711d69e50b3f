package profile

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Profile holds the call paths of one or more dumps, as a [View] shows them. A Profile
// never changes, and the results of its methods stay valid. Several goroutines may call its
// methods.
type Profile struct {
	dumps    []*Dump
	view     View
	getNames func() *names // nil of the zero Profile, which is empty
	getRows  func() *rows
}

// New returns the profile of dumps, by line, with everything shown. Dumps of the same
// Builder are not copied. New fails if there is no dump, or if a dump is nil.
func New(dumps ...*Dump) (*Profile, error) {
	if len(dumps) == 0 {
		return nil, fmt.Errorf("profile: no dump")
	}
	if i := slices.Index(dumps, nil); i >= 0 {
		return nil, fmt.Errorf("profile: dump %d is nil", i+1)
	}
	dumps = slices.Clone(dumps)
	if _, ok := common(dumps); !ok {
		b := NewBuilder(0)
		for i, d := range dumps {
			b.addDump(d)
			dumps[i] = b.End(d.DumpInfo)
			dumps[i].Records, dumps[i].Ended, dumps[i].Loss = d.Records, d.Ended, d.Loss
		}
	}
	return view(dumps, View{}), nil
}

// Collect returns the profile of all dumps of an iterator. If the iterator yields errors,
// Collect continues, and returns the errors joined, with the profile. The profile is nil if
// there is no dump.
func Collect(dumps iter.Seq2[*Dump, error]) (*Profile, error) {
	var list []*Dump
	var errs []error
	if dumps == nil {
		dumps = func(func(*Dump, error) bool) {}
	}
	for d, err := range dumps {
		if err != nil {
			errs = append(errs, err)
		} else if d != nil {
			list = append(list, d)
		}
	}
	if len(list) == 0 && errs != nil {
		return nil, errors.Join(errs...)
	}
	p, err := New(list...)
	return p, errors.Join(append(errs, err)...)
}

func view(dumps []*Dump, v View) *Profile {
	p := &Profile{dumps: dumps, view: v}
	p.getNames = sync.OnceValue(func() *names { return newNames(dumps, v) })
	p.getRows = sync.OnceValue(func() *rows { return newRows(dumps, p.getNames()) })
	return p
}

func (p *Profile) names() *names {
	if p == nil || p.getNames == nil {
		return newNames(nil, View{})
	}
	return p.getNames()
}

func (p *Profile) rows() *rows {
	if p == nil || p.getRows == nil {
		return newRows(nil, p.names())
	}
	return p.getRows()
}

// View returns the profile of the same dumps in another view.
func (p *Profile) View(v View) *Profile { return view(p.Dumps(), v) }

// Current returns the view of the profile.
func (p *Profile) Current() View { return *p.names().view }

// Dumps returns the dumps of the profile.
func (p *Profile) Dumps() []*Dump {
	if p == nil {
		return nil
	}
	return slices.Clone(p.dumps)
}

// last returns the last dump and its index.
func (p *Profile) last() (*Dump, int) {
	if p == nil || len(p.dumps) == 0 {
		return &Dump{Ended: true}, -1
	}
	return p.dumps[len(p.dumps)-1], len(p.dumps) - 1
}

// Total returns the sum of the call paths that the view shows in the dump with an index, or
// zero if there is no such dump.
func (p *Profile) Total(dump int) Value {
	switch {
	case p == nil || dump < 0 || dump >= len(p.dumps):
		return Value{}
	case !p.view.Filter.any():
		return p.dumps[dump].Total
	}
	return p.rows().total[dump]
}

// Stack returns the call sites of a path, innermost first, and whether the view shows
// the path at all. It shows no path that is of another Builder than the dumps.
func (p *Profile) Stack(path Path) (sites []Site, shown bool) {
	n := p.names()
	switch {
	case path.in == nil:
		return nil, n.view.Filter.Focus == nil
	case path.in != n.in:
		return nil, false
	}
	stack, shown := n.stack(path.id)
	return n.sites(stack), shown
}
