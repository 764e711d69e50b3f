package symbol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fit is how the code of a file fits the addresses of a boot.
type fit struct {
	own     []uint64 // distinct addresses in its code
	follow  int      // those that follow a call
	repeats bool     // each is in at least minRepeats records
	unknown bool     // calls cannot be recognized, or the load base is not known
}

func (f *fit) share() float64 { return float64(f.follow) / float64(max(len(f.own), 1)) }

// wrong reports whether the code of the file does not fit.
func (f *fit) wrong() bool {
	enough := len(f.own) >= minCalls || f.repeats && len(f.own) >= minFewCalls
	return !f.unknown && enough && f.share() < wrongShare
}

// fit compares the addresses with the code of a file.
func (c *chooser) fit(o *object) (f fit) {
	bias, known := o.bias(o.file)
	f.unknown = !o.file.CanTellCalls() || !known && c.e.Own == nil
	f.repeats = true
	own := map[uint64]bool{}
	add := func(pc uint64, n int) {
		if o.file.Executable(pc) {
			own[pc] = true
			f.repeats = f.repeats && n >= minRepeats
		}
	}
	if known {
		for a, n := range c.e.Memory {
			if pc, ok := o.file.ownAddr(a.PC, bias); ok && !a.Lossy && n >= c.least {
				add(pc, n)
			}
		}
	}
	if c.e.Own != nil {
		list := c.e.Own(o.file)
		most := 0
		for _, n := range list {
			most = max(most, n)
		}
		for pc, n := range list {
			if n*damagedShare >= most {
				add(pc, n)
			}
		}
	}
	if !known && c.e.Own == nil && len(c.p.added) > 1 {
		f.unknown = !c.anywhere(o.file, add)
	}
	f.own = slices.Sorted(maps.Keys(own))
	for _, pc := range f.own {
		if o.file.FollowsCall(pc) {
			f.follow++
		}
	}
	return f
}

// anywhere adds the addresses of a file at the load base that they vote for. It reports whether there is one.
func (c *chooser) anywhere(f *File, add func(pc uint64, n int)) bool {
	seen := distinct(slices.Collect(maps.Keys(c.e.Memory)))
	b := f.vote(seen)
	for _, a := range seen {
		if pc, ok := f.own(b.Bias, a.PC); ok && b.Sound() {
			add(pc, 1)
		}
	}
	return b.Sound()
}

// byFit keeps one of the candidates that exclude each other.
func (c *chooser) byFit() {
	for i, o := range c.p.added {
		rivals := []int{i}
		for k, other := range c.p.added {
			if k != i && c.why[i] == "" && c.why[k] == "" && excludes(o, other) {
				rivals = append(rivals, k)
			}
		}
		if len(rivals) == 1 {
			continue
		}
		best := c.best(rivals)
		if best < 0 && c.e.Own == nil && !slices.ContainsFunc(rivals, func(k int) bool {
			_, placed := c.p.added[k].bias(c.p.added[k].file)
			return placed || !c.fits[k].unknown
		}) {
			continue // no base could be inferred, which is said elsewhere
		}
		for _, k := range rivals {
			switch {
			case k == best:
			case best >= 0:
				c.why[k] = fmt.Sprintf("%s fits", c.p.added[best].file.Path)
			case c.p.config.Check:
				c.why[k] = "several ELF files may be the program"
			case k != slices.Min(rivals):
				c.why[k] = "--force"
			}
		}
		if best < 0 {
			c.ambiguous(rivals)
		}
	}
}

// ambiguous notes that none of several candidates could be chosen.
func (c *chooser) ambiguous(rivals []int) {
	var names []string
	total, wrong := 0, true
	for _, k := range rivals {
		f := &c.fits[k]
		names = append(names, fmt.Sprintf("%s (%d of %d addresses in its code follow a call)", c.p.added[k].file.Path, f.follow, len(f.own)))
		total, wrong = total+len(f.own), wrong && f.wrong()
	}
	slices.Sort(names)
	text := "no build= says which of these ran: "
	switch {
	case wrong:
		text = c.ran() + " ran, and is none of these: "
	case total == 0:
		return // no address is in any of them
	}
	text += strings.Join(names, ", ")
	if c.p.config.Check {
		c.notes = append(c.notes, text)
	} else {
		c.forced = append(c.forced, text+"; names may be wrong")
	}
}

// ran names the program of the boot.
func (c *chooser) ran() string {
	switch {
	case c.boot.Build != "":
		return "build " + short(c.boot.Build)
	case c.boot.Firmware != "":
		return "firmware " + c.boot.Firmware
	}
	return "another build"
}

// best returns the only candidate whose code fits, -1 if none or several do. Of several with the same
// functions at all addresses, it returns the first by build ID and path.
func (c *chooser) best(rivals []int) int {
	order := slices.SortedFunc(slices.Values(rivals), func(a, b int) int {
		x, y := &c.fits[a], &c.fits[b]
		if x.share() != y.share() {
			return -compare(x.share(), y.share())
		}
		if len(x.own) != len(y.own) {
			return len(y.own) - len(x.own)
		}
		f, g := c.p.added[a].file, c.p.added[b].file
		return strings.Compare(f.BuildID+f.Path, g.BuildID+g.Path)
	})
	first, second := &c.fits[order[0]], &c.fits[order[1]]
	switch {
	case first.unknown || first.wrong() || len(first.own) == 0:
		return -1
	case first.share() < sureShare && first.share()-second.share() < 1-wrongShare:
		return -1
	case len(first.own) > len(second.own) && first.follow > second.follow, first.share() > second.share():
		return order[0]
	}
	for _, k := range order[1:] {
		if f := &c.fits[k]; f.share() == first.share() && !slices.Equal(c.functions(order[0]), c.functions(k)) {
			return -1
		}
	}
	return order[0]
}

func compare(a, b float64) int {
	if a < b {
		return -1
	}
	return 1
}

// functions returns the functions at the addresses of a candidate.
func (c *chooser) functions(i int) (list []string) {
	f := c.p.added[i].file
	for _, pc := range c.fits[i].own {
		frames, _ := f.Lookup(nil, f.arch.CallAddr(pc))
		for _, fr := range frames {
			list = append(list, fr.Func)
		}
		list = append(list, "")
	}
	return list
}
