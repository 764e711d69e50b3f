package profile

import (
	"math"
	"slices"
	"strings"
)

// Version has the growth of a call path, or of the memory in use, in the boots of one firmware version.
type Version struct {
	Name  string `json:"name"` // such as "firmware 1.4.2", with the build if others have this number, too
	Boots int    `json:"boots"`
	Dumps int    `json:"dumps"` // or reports of an allocator
	// Rate is the mean growth of the floor, with its margin, as in Evidence. Grows is set if the
	// growth is more than two standard errors.
	Rate   float64 `json:"rate"`
	Margin float64 `json:"margin"`
	Grows  bool    `json:"grows"`
	// Unknown is set if it does not grow, but too little of it is in the log to tell: fewer than five
	// intervals; or with the rate of a version that grows, fewer than three blocks would have come, or half of that
	// rate may hide in the noise.
	Unknown bool `json:"unknown,omitempty"`

	absent  bool  // the path has no blocks
	boots   []int // indexes in the trend
	verdict Verdict
	score   float64
}

// versionBoots has the boots of a firmware version.
type versionBoots struct {
	name  string
	boots []int // indexes in the trend
}

// firmware is what ~h#boot says of the program.
type firmware struct{ name, build string }

// versionsOf returns the firmware versions of boots, in the order of the log, nil if there is only
// one. Boots whose version is not known are left out.
func versionsOf(boots []trendBoot, dumps []LeakDump) (list []versionBoots) {
	of := func(n int) firmware { return firmware{dumps[n].Firmware, dumps[n].Build} }
	var all []firmware
	for i := range boots {
		v := of(boots[i].dumps[0])
		if v == (firmware{}) || slices.ContainsFunc(boots[i].dumps, func(n int) bool { return of(n) != v }) {
			continue
		}
		at := slices.Index(all, v)
		if at < 0 {
			at = len(all)
			all, list = append(all, v), append(list, versionBoots{})
		}
		list[at].boots = append(list[at].boots, i)
	}
	if len(list) < 2 {
		return nil
	}
	for i, v := range all {
		list[i].name = v.label(all)
	}
	return list
}

// label returns the name of a version that distinguishes it from all others.
func (v firmware) label(all []firmware) string {
	name, build := "firmware "+v.name, "build "+v.build[:min(12, len(v.build))]
	switch same := slices.ContainsFunc(all, func(o firmware) bool { return o.name == v.name && o != v }); {
	case v.name == "":
		return build
	case same && v.build != "":
		name += ", " + build
	}
	return name
}

// byVersion returns the growth of the path under examination in each firmware version.
func (t *leakTrend) byVersion(points []Value, scale float64, byBytes bool) (list []Version) {
	var spans []float64
	least := math.Inf(1) // rate of those that grow
	for _, v := range t.versions {
		var boots []trendBoot
		absent := true
		for _, n := range v.boots {
			boots = append(boots, t.boots[n])
			absent = absent && !slices.ContainsFunc(t.boots[n].dumps, func(d int) bool { return !points[d].IsZero() })
		}
		part := newTrend(boots)
		e, _ := part.evaluate(points, scale, byBytes)
		grows := e.Rate > 0 && rising(part.floorSteps(nil))
		if grows {
			least = math.Min(least, e.Rate)
		}
		spans = append(spans, part.span)
		list = append(list, Version{Name: v.name, Boots: len(boots), Dumps: part.dumps, Rate: e.Rate, Margin: e.Margin, Grows: grows,
			absent: absent, boots: v.boots, verdict: e.Verdict, score: e.Score})
	}
	for i := range list {
		v := &list[i]
		v.Unknown = !v.Grows && (v.Dumps-v.Boots < minSide || least*spans[i] < 3*scale || v.Rate+v.Margin > least/2)
	}
	return list
}

// mended sets what e says of a path that leaks in the boots of a firmware version, but not in those of the
// version of the last boot.
func (t *leakTrend) mended(e *Evidence) {
	var leaks, now *Version
	for i := range e.Versions {
		v := &e.Versions[i]
		if last := v.boots[len(v.boots)-1]; last == len(t.boots)-1 {
			now = v
		} else if v.verdict == Leaking && (leaks == nil || last > leaks.boots[len(leaks.boots)-1]) {
			leaks = v
		}
	}
	if leaks == nil || now == nil || now.Grows || now.Unknown || now.absent {
		return
	}
	first, end := leaks.boots[0], leaks.boots[len(leaks.boots)-1]+1
	e.Verdict, e.Changed, e.More, e.Since, e.Rate, e.Margin = Grows, true, 0, t.boots[first].dumps[0], now.Rate, now.Margin
	e.Score, e.Ended = leaks.score, &Ended{t.boots[end].dumps[0], leaks.Rate, leaks.Margin}
}

// comparableVersions returns the versions whose call paths have the same names: an address without a
// name is another function in another build, so that a path that a version lacks says nothing.
func comparableVersions(list []Version, stack []Site) []Version {
	if slices.ContainsFunc(stack, func(s Site) bool { return strings.HasPrefix(s.Func, "0x") }) {
		list = slices.DeleteFunc(list, func(v Version) bool { return v.absent })
	}
	if len(list) < 2 {
		return nil
	}
	return list
}
