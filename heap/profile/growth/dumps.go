package growth

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// useDumps decides which dumps a trend uses.
func useDumps(all []*profile.Dump) []LeakDump {
	series := isSeries(all)
	list := steadyDumps(all, series, maxMissing)
	fitTimes(list, series)
	leaveOutUntimed(list)
	n := map[boot]int{}
	for i := range list {
		if list[i].Used {
			n[list[i].boot]++
		}
	}
	for i := range list {
		if d := &list[i]; d.Used && n[d.boot] < minBootDumps {
			d.Used, d.Reason = false, fmt.Sprintf("its boot has fewer than %d whole dumps", minBootDumps)
		}
	}
	return list
}

// leaveOutUntimed leaves out the dumps without a time, if most have one.
func leaveOutUntimed(list []LeakDump) {
	timed, untimed := 0, 0
	for i := range list {
		if d := &list[i]; d.Used && d.Timed {
			timed++
		} else if d.Used {
			untimed++
		}
	}
	for i := range list {
		if d := &list[i]; d.Used && !d.Timed && untimed < timed {
			d.Used, d.Reason = false, "has no time"
			if d.Note != "" {
				d.Reason = d.Note
			}
		}
	}
}

// steadyDumps decides which dumps show a running program, and lost at most a part of their blocks. If series is set, all are of one boot.
func steadyDumps(all []*profile.Dump, series bool, most float64) []LeakDump {
	list := make([]LeakDump, len(all))
	reader := 0 // of the dump: another one begins with a lower index
	marked := 0 // dumps that announce how many blocks they have
	for i, d := range all {
		if d == nil {
			d = &profile.Dump{}
		}
		if i > 0 && d.Index < list[i-1].Index {
			reader++
		}
		list[i].Dump, list[i].boot = d, boot{reader, d.File, d.Boot, 0}
		if series {
			list[i].boot = boot{}
		}
		missing, known := d.Missing()
		list[i].Missing = missing
		switch {
		case !d.Ended:
			list[i].Reason = "not ended yet"
		case d.Cut && (!known || missing > 0):
			list[i].Reason = "has no end"
		case missing > most && (d.Loss.Lines == 0 || missing > maxMissingPaths):
			list[i].Reason = fmt.Sprintf("%.0f %% of its blocks are missing", 100*missing)
		}
		if known {
			marked++
		}
	}
	leaveOutMixed(list)
	for i := range list {
		d := &list[i]
		if d.Reason == "" && !d.Announced.HasRecords && marked > len(list)/2 {
			d.Reason = "its beginning is missing"
		}
	}
	useUnmarked(list)
	leaveOutUnnamed(list)
	leaveOutOffsets(list)
	leaveOutSubsets(list)
	leaveOutExits(list)
	for i := range list {
		list[i].Used = list[i].Reason == ""
	}
	return list
}

// leaveOutMixed leaves out the logs in which an eighth of the dumps, three or more, have many more blocks than they
// announce, or the number of the dump before and other blocks. A device counts its dumps (BT-HEAD-3): these are lines of
// several.
func leaveOutMixed(list []LeakDump) {
	all, odd := map[string]int{}, map[string]int{}
	last := map[boot]*LeakDump{}
	for i := range list {
		d := &list[i]
		surplus := d.Announced.HasRecords && !d.Diff && float64(cmp.Or(d.Written.Count, d.Total.Count)) > (1+maxMissing)*float64(d.Announced.Records)
		if o := last[d.boot]; surplus || o != nil && d.Number > 0 && o.Number == d.Number && o.Total != d.Total && d.Ended {
			odd[d.File]++
		}
		all[d.File], last[d.boot] = all[d.File]+1, d
	}
	for i := range list {
		if d := &list[i]; odd[d.File] >= 3 && 8*odd[d.File] > all[d.File] {
			d.Reason = "the log mixes dumps of several devices"
		}
	}
}

// leaveOutDevices leaves out the dumps of other devices than that of the last dump: what one does not do is no end of
// what another did.
func leaveOutDevices(list []LeakDump) {
	device := ""
	for i := range slices.Backward(list) {
		d := &list[i]
		if device = cmp.Or(device, d.Device); d.Used && d.Device != "" && d.Device != device {
			d.Used, d.Reason = false, fmt.Sprintf("of device %s, the last one is of %s", d.Device, device)
		}
	}
}

// leaveOutUnnamed leaves out the dumps whose load base was not known yet: their call paths lack the names of
// those of later dumps.
func leaveOutUnnamed(list []LeakDump) {
	latest := map[boot]int{}
	for i := range list {
		latest[list[i].boot] = max(latest[list[i].boot], list[i].Naming)
	}
	for i := range list {
		if d := &list[i]; d.Naming < latest[d.boot] {
			d.Reason = "before the load base was known"
		}
	}
}

// leaveOutOffsets leaves out dumps that cannot be compared: the ~h#boot of some boots of a log is lost, and with it the
// addresses of their call paths. It leaves out those, or the others if these are fewer.
func leaveOutOffsets(list []LeakDump) {
	type group struct {
		file    string
		offsets bool
	}
	offsets := map[boot]bool{} // a dump without entries does not tell
	for i := range list {
		offsets[list[i].boot] = offsets[list[i].boot] || list[i].Offsets
	}
	n := map[group]int{}
	for i := range list {
		if d := &list[i]; d.Reason == "" {
			n[group{d.File, offsets[d.boot]}]++
		}
	}
	for i := range list {
		d := &list[i]
		lost := offsets[d.boot]
		if n, others := n[group{d.File, lost}], n[group{d.File, !lost}]; d.Reason == "" && (n < others || lost && n == others) {
			d.Reason = "the ~h#boot of some boots is lost: their addresses differ"
		}
	}
}

// useUnmarked uses the dumps that have no end or beginning, and no number of their blocks, if they
// have nearly as many blocks as the dumps before and after them: only the mark was lost. Of call paths,
// half as many do: each path that the dump has is whole.
func useUnmarked(list []LeakDump) {
	near := func(i, step int) (count uint64, ok bool) {
		for k := i + step; k >= 0 && k < len(list) && list[k].sameBoot(&list[i]); k += step {
			if d := &list[k]; d.Reason == "" && !d.Loss.Partial {
				return d.Total.Count, true
			}
		}
		return 0, false
	}
	var used []int
	for i := range list {
		d := &list[i]
		if d.Announced.HasRecords || !d.Ended || d.Reason == "" || d.Loss.Partial {
			continue
		}
		least, known := near(i, -1)
		if after, ok := near(i, 1); ok && (!known || after < least) {
			least, known = after, true
		}
		part := 0.9
		if d.Paths {
			part = 1 - maxMissingPaths
		}
		if known && d.Total.Count > 0 && float64(d.Total.Count) >= part*float64(least) {
			used = append(used, i)
		}
	}
	for _, i := range used {
		list[i].Reason = ""
	}
}

// leaveOutExits leaves out the dumps that programs write when they exit: those with why=exit,
// and the last dump of a boot if it has less than half of the bytes of the dump before.
func leaveOutExits(list []LeakDump) {
	last := map[boot]int{}
	before := map[boot]int{}
	for i := range list {
		d := &list[i]
		switch {
		case d.Reason != "" || d.Loss.Partial:
		case d.Why == "exit":
			d.Reason = "written at the exit of the program"
		default:
			if at, ok := last[d.boot]; ok {
				before[d.boot] = at
			}
			last[d.boot] = i
		}
	}
	for boot, at := range last {
		b, ok := before[boot]
		if !ok {
			continue
		}
		if bytes := func(d *LeakDump) float64 { return float64(d.Total.Bytes) / (1 - d.Missing) }; bytes(&list[at]) < bytes(&list[b])/2 {
			list[at].Reason = "holds less than half of the dump before: the program was ending"
		}
	}
}

// leaveOutSubsets leaves out dumps that have only some of the blocks, if others have all. If none has
// all, those that have the same ones as the last dump are used.
func leaveOutSubsets(list []LeakDump) {
	want := ""
	for i := range list {
		if want = list[i].Part(); want == "" {
			break
		}
	}
	for i := range list {
		if d := &list[i]; d.Reason == "" && d.Part() != want {
			d.Reason = "has other blocks than those of the other dumps: " + d.Why
		}
	}
}

// Steady returns the index of the dump that shows the present state of a running program:
//
//   - the last dump that lost at most a fifth of its blocks and was not written at the exit of
//     the program;
//   - the last dump, if its boot has no such dump, and the last dump is complete;
//   - the last dump, or -1 if there is no dump, if no boot has such a dump.
//
// reason is why the result is not the last dump, or what is wrong with the last dump.
func Steady(dumps ...*profile.Dump) (index int, reason string) {
	list := steadyDumps(dumps, false, maxMissingTotal)
	last := len(list) - 1
	for i := last; i >= 0; i-- {
		if list[i].Used {
			return i, list[last].Reason
		}
		if first := i == 0 || !list[i-1].sameBoot(&list[i]); first && list[last].Complete() && list[i].sameBoot(&list[last]) {
			return last, "" // there is no other of this boot
		}
	}
	if last >= 0 {
		reason = list[last].Reason
	}
	return last, reason
}

// boot identifies a boot. Two Readers count the boots of their own logs.
type boot struct {
	reader int
	file   string
	number int
	part   int // since the uptime began again
}

// sameBoot reports whether two dumps are of the same boot.
func (d *LeakDump) sameBoot(o *LeakDump) bool { return d.boot == o.boot }

// isSeries reports whether each dump is of another log, and there are three or more.
func isSeries(dumps []*profile.Dump) bool {
	files := map[string]bool{}
	for _, d := range dumps {
		if d != nil {
			files[d.File] = true
		}
	}
	return len(dumps) >= 3 && len(files) == len(dumps)
}
