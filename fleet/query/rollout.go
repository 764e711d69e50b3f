package query

import (
	"cmp"
	"context"
	"strings"
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
	return r, nil
}

// functionsOf returns what a path has in common with that of another build: its functions, or addresses without names.
func functionsOf(stack []Frame) string {
	var list []string
	for _, f := range stack {
		list = append(list, cmp.Or(f.Function, f.Address))
	}
	return strings.Join(list, "\n")
}
