package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Rollout compares the leaks of two builds, to decide whether the update of a fleet from one to the other continues.
type Rollout struct {
	BuildBefore string  `json:"build_before"`
	BuildAfter  string  `json:"build_after"`
	Devices     int64   `json:"devices"`  // with the build after
	Of          int64   `json:"of"`       // devices with the last dump of either build
	Share       float64 `json:"share"`    // Devices / Of
	Examined    int64   `json:"examined"` // of Devices
	New         []Leak  `json:"new"`      // leaks, or probable ones, of the build after alone
	Mended      []Leak  `json:"mended"`   // of the build before alone, of paths that the build after has not
	Both        []Leak  `json:"both"`     // of both builds, as in the build after
	Answer      string  `json:"answer"`   // stop, go, or unknown if no device with the build after was examined
	Stages      []Stage `json:"stages"`   // that the update has reached
}

// Stage is a share of the devices, of those that got the build after first.
type Stage struct {
	Percent int       `json:"percent"` // 1, 10, 50 or 100
	Reached time.Time `json:"reached"` // when the last of them sent its first dump with the build after
	Devices int64     `json:"devices"`
	New     int64     `json:"new"`    // of these, devices with a new leak
	Mended  int64     `json:"mended"` // of these, devices on which a leak ended that the build after has not
	Answer  string    `json:"answer"` // stop if New is not 0, else that of the rollout, but unknown for stop
}

// stages returns the stages that an update has reached: first has the devices with the build after.
func (r *Rollout) stages(first []Device) (list []Stage) {
	leaks, mended := on(r.New), on(r.Mended)
	slices.SortFunc(first, func(a, b Device) int { return a.First.Compare(b.First) })
	for _, percent := range []int{1, 10, 50, 100} {
		n := (r.Of*int64(percent) + 99) / 100
		if n == 0 || n > int64(len(first)) {
			break
		}
		s := Stage{Percent: percent, Reached: first[n-1].First, Devices: n, Answer: r.Answer}
		for _, d := range first[:n] {
			if leaks[d.Device] {
				s.New++
			}
			if mended[d.Device] {
				s.Mended++
			}
		}
		if r.Answer == "stop" && s.New == 0 {
			s.Answer = "unknown"
		}
		list = append(list, s)
	}
	return list
}

// Rollout compares the leaks of two builds. Paths are those of the same functions; without names, of the same addresses.
func (d *DB) Rollout(ctx context.Context, before, after string, o Scope) (*Rollout, error) {
	r := &Rollout{BuildBefore: before, BuildAfter: after, Answer: "unknown"}
	o.Builds = []string{before}
	old, err := d.Leaks(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Builds = []string{after}
	now, err := d.Leaks(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Builds = []string{before, after}
	list, err := d.Devices(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if r.Of++; x.Build == after {
			r.Devices++
		}
	}
	o.Builds = []string{after}
	first, err := d.Devices(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	r.Share, r.Examined = float64(r.Devices)/max(1, float64(r.Of)), now.Examined
	known := map[string]bool{}
	for _, l := range old.Rows {
		if l.Verdict.Sure() {
			known[functionsOf(l.Stack)] = true
		}
	}
	has := map[string]bool{}
	for _, l := range now.Rows {
		has[functionsOf(l.Stack)] = true
		switch {
		case !l.Verdict.Sure():
		case known[functionsOf(l.Stack)]:
			r.Both = append(r.Both, l)
		default:
			r.New = append(r.New, l)
		}
	}
	for _, l := range old.Rows {
		if l.Verdict.Sure() && !has[functionsOf(l.Stack)] {
			r.Mended = append(r.Mended, l)
		}
	}
	switch {
	case len(r.New) > 0:
		r.Answer = "stop"
	case r.Examined > 0 && !now.Moving:
		r.Answer = "go"
	}
	r.Stages = r.stages(first)
	return r, nil
}

// on returns the devices with one of these leaks.
func on(list []Leak) map[string]bool {
	devices := map[string]bool{}
	for _, l := range list {
		for _, device := range l.On {
			devices[device] = true
		}
	}
	return devices
}

// functionsOf returns what a path has in common with that of another build: its functions, or addresses without names.
func functionsOf(stack []Frame) string {
	var list []string
	for _, f := range stack {
		list = append(list, cmp.Or(f.Function, f.Address))
	}
	return strings.Join(list, "\n")
}
