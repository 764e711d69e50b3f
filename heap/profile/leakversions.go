package profile

import (
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

	absent bool // the path has no blocks
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
	for _, v := range t.versions {
		var boots []trendBoot
		absent := true
		for _, n := range v.boots {
			boots = append(boots, t.boots[n])
			absent = absent && !slices.ContainsFunc(t.boots[n].dumps, func(d int) bool { return !points[d].IsZero() })
		}
		part := newTrend(boots)
		e, _ := part.evaluate(points, scale, byBytes)
		list = append(list, Version{v.name, len(boots), part.dumps, e.Rate, e.Margin, e.Rate > 0 && rising(part.floorSteps(nil)), absent})
	}
	return list
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
