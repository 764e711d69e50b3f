package growth

import (
	"cmp"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"

	"github.com/lwsbt/lwsbt/heap/leak"
)

// surer is by how much more the weight of a function is than that of its one call path that leaks alone.
const surer = 0.3

// addFunctions adds the functions that leak more surely than each call path in which they allocate: one with
// many callers. Two of these that leak alone are two leaks.
func (l *Leaks) addFunctions() {
	alone := map[string][]*Leak{} // by function: its call paths that leak
	for _, r := range l.Rows {
		if stack := r.Stack(); len(stack) > 0 && r.Verdict == leak.Leak {
			alone[stack[0].Func] = append(alone[stack[0].Func], r)
		}
	}
	groups := map[string][]profile.Row{}
	var order []string
	for row := range l.profile.Rows() {
		if !l.Intervals && l.timeline.complete && row.Changes(1) == 0 {
			continue
		}
		site, ok := row.Site()
		if !ok {
			continue
		}
		if groups[site.Func] == nil {
			order = append(order, site.Func)
		}
		groups[site.Func] = append(groups[site.Func], row)
	}
	for _, name := range order {
		rows := groups[name]
		if len(rows) < 2 || len(alone[name]) > 1 {
			continue
		}
		j := leak.Judge(l.series(l.timeline, rows))
		if j.Verdict != leak.Leak || len(alone[name]) > 0 && j.Weight < alone[name][0].Weight+surer {
			continue
		}
		f := l.newLeak(j, rows, []profile.Site{{Func: name}})
		f.function = true
		for _, row := range rows {
			part := l.newLeak(leak.Judge(l.series(l.timeline, []profile.Row{row})), []profile.Row{row}, nil)
			if part.Rate > 0 {
				f.Parts = append(f.Parts, part)
			}
		}
		l.Rows = slices.DeleteFunc(l.Rows, func(r *Leak) bool { return slices.Contains(rows, r.rows[0]) })
		l.Rows = append(l.Rows, f)
		f.sortParts()
	}
}

// sortParts orders the parts by their rates, the largest first.
func (l *Leak) sortParts() {
	slices.SortStableFunc(l.Parts, func(a, b *Leak) int { return cmp.Compare(b.Rate, a.Rate) })
}

// joinParts joins the call paths that leak by one bug: those that grow together from one caller, as what a
// request handler allocates for each request and does not free.
func (l *Leaks) joinParts() {
	var rows []*Leak
	for _, r := range l.Rows {
		if r.Verdict != leak.Leak || r.Parts != nil {
			rows = append(rows, r)
			continue
		}
		joined := false
		for _, o := range rows {
			if joined = o.join(r); joined {
				break
			}
		}
		if !joined {
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		if len(r.Parts) > 1 && !r.function {
			j := leak.Judge(l.series(l.timeline, r.rows))
			if j.Verdict != leak.Leak { // the parts say so
				j.Verdict, j.Why = leak.Leak, ""
				j.Probability = r.Parts[0].Probability
			}
			sum := l.newLeak(j, r.rows, r.stack)
			sum.Parts = r.Parts
			*r = *sum
			r.sortParts()
		}
	}
	l.Rows = rows
}

// join adds a call path to a bug, if it grows together with each part of it and from the same caller.
func (l *Leak) join(r *Leak) bool {
	if l.Verdict != leak.Leak || l.function {
		return false
	}
	common := commonOuter(l.Stack(), r.Stack())
	if !nearCaller(common, l.Stack(), r.Stack()) || !l.together(r) {
		return false
	}
	if l.Parts == nil {
		own := *l
		l.Parts = []*Leak{&own}
	}
	l.Parts, l.rows, l.stack = append(l.Parts, r), append(slices.Clone(l.rows), r.rows...), slices.Clone(common)
	return true
}

// maxInner is the largest number of frames between a call path's end and the caller that it shares with
// another one by one bug.
const maxInner = 3

// nearCaller reports whether two call paths come from one caller that is not just the begin of the program:
// at least two frames are the same, and few are not.
func nearCaller(common, a, b []profile.Site) bool {
	return len(common) >= 2 && len(a)-len(common) <= maxInner && len(b)-len(common) <= maxInner
}

// commonOuter returns the outer frames that two stacks share.
func commonOuter(a, b []profile.Site) []profile.Site {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// alike is the least share of the dumps, of those in which one of two paths grew, in which both did.
const alike = 0.8

// together reports whether two call paths grow in the same dumps by blocks in the same proportion.
func (l *Leak) together(o *Leak) bool {
	a, b := l.growth(), o.growth()
	var both, either, aa, ab, bb float64
	for i := range a {
		if a[i] > 0 || b[i] > 0 {
			either++
		}
		if a[i] > 0 && b[i] > 0 {
			both++
		}
		aa, ab, bb = aa+a[i]*a[i], ab+a[i]*b[i], bb+b[i]*b[i]
	}
	return either > 0 && both >= alike*either && ab >= 0.9*math.Sqrt(aa*bb)
}

// growth returns by how many blocks the row grew in each used dump.
func (l *Leak) growth() (list []float64) {
	points := l.leaks.sum(l.rows[:1], nil) // of several, the first: all grow alike
	for i := range l.leaks.timeline.boots {
		b := &l.leaks.timeline.boots[i]
		for k, d := range b.dumps[1:] {
			list = append(list, float64(points[d].Count)-float64(points[b.dumps[k]].Count))
		}
	}
	return list
}
