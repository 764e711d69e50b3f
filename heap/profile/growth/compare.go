package growth

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Fate is what an update did to the growth of a call path.
type Fate string

const (
	FateNew     Fate = "new"     // it leaks after the update, and did not before
	FateStill   Fate = "still"   // it leaks before and after
	FateMended  Fate = "mended"  // it leaked before, and does not after
	FateGone    Fate = "gone"    // it leaked before, and is not there after, where other leaks are new: it may have another name
	FateUnknown Fate = "unknown" // it leaks on one side, and the other one does not say
)

// Comparison is the growth of a call path before and after an update. Call paths are the same if their functions
// are: those of another build at other addresses or lines, and in a file of another name, too.
type Comparison struct {
	profile.Row
	Fate          Fate
	Why           string // why Fate is FateUnknown, or what a FateMended of a path that is not there depends on
	Before, After leak.Judgement
}

// Comparisons is the result of [Compare].
type Comparisons struct {
	List   []Comparison // by Fate, in the order of the constants, and then by rate
	Per    Unit         // of the rates
	Span   time.Duration
	Before int // number of dumps that were used
	After  int
	// Bound is the largest rate that is not excluded of a call path after the update that is not in List.
	Bound float64
}

// Compare judges the call paths in the first n dumps of the profile, before an update, and in the others. It
// lists those that leak in one of the two.
func Compare(p *profile.Profile, n int) *Comparisons {
	l := &Leaks{profile: p, Dumps: useDumps(p.Dumps()), perByte: 1}
	l.timeline = newTimeline(l.Dumps)
	c := &Comparisons{Per: l.timeline.per, Span: l.timeline.span()}
	for i, d := range l.Dumps {
		switch {
		case !d.Used:
		case i < n:
			c.Before++
		default:
			c.After++
		}
	}
	unnamed, versions := l.nameless(p, n)
	for row := range p.Rows() {
		s := l.series(l.timeline, []profile.Row{row})
		x := Comparison{Row: row, Before: leak.Judge(l.side(s, n, false)), After: leak.Judge(l.side(s, n, true))}
		if x.Before.Verdict == leak.Leak || x.After.Verdict == leak.Leak {
			x.decide(sum(row, 0, n), sum(row, n, len(l.Dumps)), unnamed, versions)
			if (x.Fate == FateNew || x.Fate == FateGone) && p.InliningUnknown() {
				x.Fate, x.Why = FateUnknown, "a build has no lines: a function of this path may be inlined there"
			}
			c.List = append(c.List, x)
		} else {
			c.Bound = math.Max(c.Bound, x.After.Bound)
		}
	}
	renamed := slices.ContainsFunc(c.List, func(x Comparison) bool { return x.Fate == FateNew })
	for i := range c.List {
		if x := &c.List[i]; x.Fate == FateGone && !renamed {
			x.Fate, x.Why = FateMended, "no block of it after the update: mended unless it did not run or was renamed"
		}
	}
	order := []Fate{FateNew, FateStill, FateUnknown, FateGone, FateMended}
	slices.SortStableFunc(c.List, func(a, b Comparison) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Fate), slices.Index(order, b.Fate)),
			cmp.Compare(max(b.Before.Rate, b.After.Rate), max(a.Before.Rate, a.After.Rate)))
	})
	return c
}

// side returns the boots of a series before the update at dump n, or after it.
func (l *Leaks) side(s leak.Series, n int, after bool) leak.Series {
	var boots []leak.Boot
	for i := range s.Boots {
		if (l.timeline.boots[i].dumps[0] >= n) == after {
			boots = append(boots, s.Boots[i])
		}
	}
	s.Boots = boots
	return s
}

// nameless reports whether a call path before, and one after dump n has an address without a name, and whether the
// builds differ, as far as is known: not where such a path is on both sides.
func (l *Leaks) nameless(p *profile.Profile, n int) (unnamed [2]bool, versions bool) {
	same := !l.timeline.versions && len(l.Dumps) > 0 && version(l.Dumps[0].Dump) != ""
	common := same
	for row := range p.Rows() {
		if !same && slices.ContainsFunc(row.Stack(), profile.Site.Nameless) {
			held, after := !sum(row, 0, n).IsZero(), !sum(row, n, len(l.Dumps)).IsZero()
			unnamed[0], unnamed[1] = unnamed[0] || held, unnamed[1] || after
			common = common || held && after
		}
	}
	return unnamed, l.timeline.versions || !common
}

// sum returns the sum of the values of a row in the dumps from index first to before index end.
func sum(row profile.Row, first, end int) (v profile.Value) {
	for _, x := range row.Points()[first:end] {
		v.Add(x)
	}
	return v
}

// decide sets the fate of a call path from its two judgements, and from what it holds before and after the
// update. unnamed reports on which side other call paths have addresses without a name, versions whether the builds
// differ, as far as is known.
func (x *Comparison) decide(held, after profile.Value, unnamed [2]bool, versions bool) {
	const nameless = "an address without a name is another function in another build"
	switch before, now := &x.Before, &x.After; {
	case versions && slices.ContainsFunc(x.Stack(), profile.Site.Nameless), unnamed[1] && after.IsZero(), unnamed[0] && held.IsZero():
		x.Fate, x.Why = FateUnknown, nameless
	case before.Verdict == leak.Leak && now.Verdict == leak.Leak:
		x.Fate = FateStill
	case before.Verdict == leak.Leak && after.IsZero():
		x.Fate = FateGone
	case before.Verdict == leak.Leak && now.Verdict == leak.None && now.Bound < before.Low/2:
		x.Fate = FateMended
	case now.Verdict == leak.Leak && before.Verdict == leak.None && before.Bound < now.Low/2:
		x.Fate = FateNew
	case now.Verdict == leak.Leak:
		x.Fate, x.Why = FateUnknown, "before: "+cmp.Or(before.Why, "a leak of this rate is not excluded")
	default:
		x.Fate, x.Why = FateUnknown, "after: "+cmp.Or(now.Why, "a leak of this rate is not excluded")
	}
}
