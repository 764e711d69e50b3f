package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query/oldrule"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Leak holds the evidence that a call path leaks in a build. (fleet/docs/fleet-leaks.md)
type Leak struct {
	Path     int64    `json:"path,string"`
	Examined int64    `json:"examined"` // devices
	Grew     int64    `json:"grew"`     // devices on which the path grows
	Shrank   int64    `json:"shrank"`   // devices on which it shrinks, by the same rule; as many may grow at random
	Share    float64  `json:"share"`    // (Grew − Shrank) / Examined, at least 0
	Z        float64  `json:"z"`        // Grew − Shrank, in standard deviations
	Mean     float64  `json:"mean"`     // mean change on all devices, in standard errors
	Alone    int64    `json:"alone"`    // devices that leak by their own dumps, and far more than the path changes on others
	D        float64  `json:"d"`        // distance of the floors from a straight line
	Pace     float64  `json:"pace"`     // rate in the second half of the growth, divided by that in the first half
	PaceErr  float64  `json:"pace_err"` // standard error of Pace
	Last     float64  `json:"last"`     // rate in the last tenth of the growth, divided by that before
	LastErr  float64  `json:"last_err"`
	Rate     *float64 `json:"rate"`   // present rate, median of the devices that grow, bytes per hour; nil if no times are known
	Rate95   *float64 `json:"rate95"` // 95th percentile
	// Rates has the rate of each device on which the path grows, sorted.
	Rates []float64 `json:"-"`
	Hours *float64  `json:"hours"` // median of the time until this path alone exhausts the heap
	Gain  float64   `json:"gain"`  // rise of the floor, in bytes per device
	Score float64   `json:"score"`
	// Since is when the path began to grow, median of the devices that grow; nil if it grows since their
	// first dumps.
	Since *time.Time `json:"since"`
	// Slowing is set if the growth slows down or has ended, as that of a cache.
	Slowing bool `json:"slowing"`

	Verdict oldrule.Verdict `json:"verdict"`
	Stack   []Frame         `json:"stack"` // innermost first

	grows []growth
	near  int64 // as Alone, but the path changes half as much
}

// Word returns the word for the evidence: slowing, or that of the verdict.
func (r Leak) Word() string {
	if r.Slowing {
		return "slowing"
	}
	return r.Verdict.String()
}

// Leaks is the result of [DB.Leaks].
type Leaks struct {
	Build    string `json:"build"`
	Devices  int64  `json:"devices"`  // devices with a dump
	Examined int64  `json:"examined"` // devices with a boot of three dumps or more
	Paths    int64  `json:"paths"`    // call paths examined
	// Load is the growth of the typical call path, as a fraction, if it is a tenth or more: the load of
	// the devices grew. Paths that grow up to three times as much are not called leaks.
	Load float64 `json:"load"`
	// Moving is set if nearly all call paths are of a single boot: the addresses change with each
	// boot. There are no Rows then.
	Moving bool   `json:"moving"`
	Rows   []Leak `json:"rows"` // paths with evidence, the most likely leak first
	// Exhaustion is nil if no row is a leak or a probable leak, or if the free memory is not known.
	Exhaustion *Exhaustion `json:"exhaustion"`
}

// Exhaustion holds the times until the heaps of the devices are full: of those with the path that fills its heaps first.
type Exhaustion struct {
	Devices int64    `json:"devices"`
	Hours   *float64 `json:"hours"`   // median
	Hours05 *float64 `json:"hours05"` // 5th percentile
	// Each has the hours of each device that leaks, by any path, sorted.
	Each []float64 `json:"-"`
}

// Leaks returns the call paths of a build that leak or may leak. The scope must have exactly
// one build.
func (d *DB) Leaks(ctx context.Context, o Scope) (*Leaks, error) {
	if len(o.Builds) != 1 {
		return nil, fmt.Errorf("query: leaks of %d builds, expected one", len(o.Builds))
	}
	var l *Leaks
	err := d.with(ctx, o, allTables, func(s *session) error {
		l = &Leaks{Build: o.Builds[0]}
		return s.leaks(ctx, l)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s *session) leaks(ctx context.Context, l *Leaks) error {
	defer s.drop("wanted")
	byDevice, err := s.moments(ctx)
	if err != nil {
		return err
	}
	if l.Devices = int64(len(byDevice)); l.Devices == 0 {
		return fmt.Errorf("build %s: %w", l.Build, ErrNoDump)
	}
	n, err := rows[struct{ Paths, Boots, Once, Devices int64 }](ctx, s, text("moving"))
	if err != nil {
		return fmt.Errorf("query moving: %w", err)
	}
	l.Paths = n[0].Paths
	if l.Moving = n[0].Boots >= 3 && n[0].Once*10 >= n[0].Paths*9 && n[0].Devices*2 >= l.Devices; l.Moving {
		return nil
	}
	sums, err := s.evidence(ctx, l, byDevice)
	if err != nil {
		return err
	}
	l.judge(sums)
	l.exhaust()
	return s.stacks(ctx, len(l.Rows), func(i int) (pathOf, *[]Frame) { return pathOf{l.Build, l.Rows[i].Path}, &l.Rows[i].Stack })
}

// evidence applies the rule for one device to each path of each device.
func (s *session) evidence(ctx context.Context, l *Leaks, byDevice [][]moment) (map[int64]*pathSum, error) {
	sums := map[int64]*pathSum{}
	number := 0
	err := s.eachSeries(ctx, byDevice, func(d *device) {
		number++
		if len(d.test.Boots) > 0 {
			l.Examined++
		}
	}, func(d *device, path int64, values []profile.Value) {
		if len(d.test.Boots) == 0 {
			return
		}
		p := sums[path]
		if p == nil {
			p = &pathSum{}
			sums[path] = p
		}
		p.add(number, d, values)
	})
	return sums, err
}

// judge adds the rows.
func (l *Leaks) judge(sums map[int64]*pathSum) {
	l.Load = load(sums)
	for path, p := range sums {
		if r := l.row(path, p); r.Verdict > oldrule.NoEvidence {
			l.Rows = append(l.Rows, r)
		}
	}
	rank := func(r *Leak) int {
		switch {
		case r.Verdict.Sure():
			return -int(r.Verdict)
		case r.Slowing:
			return 1
		}
		return 0
	}
	slices.SortFunc(l.Rows, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
	})
}

// Limits of the load.
const (
	minLoadPaths = 8
	minLoad      = 0.1
	loadTimes    = 3 // paths that grow this many times as much as the typical one are not of the load
)

// load returns the growth of the typical path, 0 if it is small.
func load(sums map[int64]*pathSum) float64 {
	var growths []float64
	for _, p := range sums {
		if p.first > 0 {
			growths = append(growths, p.last/p.first-1)
		}
	}
	if len(growths) < minLoadPaths {
		return 0
	}
	if typical := quantile(growths, 0.5); typical >= minLoad {
		return typical
	}
	return 0
}

// Limits of the rule over devices.
const (
	alike    = 3    // devices that leak alone although their own dumps say "probably" only
	far      = 3    // a device leaks alone if its path grows this many times as much as it changes on others
	near     = 1.5  // a tenth of the devices is evidence if it grows this many times as much
	outliers = 0.02 // of the others, which may be leaking devices that are not recognized; one of ten or more
	slowing  = 0.9  // Pace below which the growth slows down
	ended    = 0.85 // rate of the last tenth, relative to the time before
	maxD     = 0.25
	halved   = -0.5 // the same, if the path grows on a quarter of the devices that change
	again    = 1.5  // a path that fell to nearly nothing leaks if it rises this many times as fast since then
	opposed  = -0.3 // change on the other devices, relative to that on those that grow
	errors2  = 2.0  // standard errors
	drift    = 2.5  // standard errors of the mean change of all devices
)

// row returns the evidence for a path.
func (l *Leaks) row(path int64, p *pathSum) Leak {
	spread, swing := p.spread(), p.swing()
	if load := min(l.Load, p.typical(l.Examined)); load > 0 {
		p.leaveOut(func(g *growth) bool { return g.net < max(spread, loadTimes*load*g.first) })
	}
	if p.flushed() {
		p.leaveOut(func(g *growth) bool { return g.flush.time[1] > 0 })
	}
	r := Leak{Path: path, Examined: l.Examined, Shrank: int64(p.shrank)}
	r.setAlone(p, spread, swing)
	if r.z(p); r.Z < 3.5 && (r.alone() || r.Alone == 1 && r.Grew == 1) { // the others that grow are noise
		p.leaveOut(func(g *growth) bool { return !g.alone })
		r.Share = float64(r.Alone) / float64(r.Examined)
		r.Grew = r.Alone
	}
	var gain, bend, bent, excess, most float64
	for i := range p.grows {
		g := &p.grows[i]
		gain, excess, most = gain+g.gain, excess+g.excess, most+g.most
		if !g.changed && !(g.alone && g.leaks) && g.boots < manyBoots {
			bend += g.bend * g.gain
		}
		bent += g.gain
	}
	r.D = bend / max(bent, 1)
	r.Gain, r.Mean = gain/float64(l.Examined), p.mean()
	r.grows = p.grows
	if faster := r.paces(p); faster {
		r.D = 0 // a cache does not fill faster and faster
	}
	r.Verdict = p.verdict(&r)
	if r.Slowing {
		r.Verdict = min(r.Verdict, oldrule.Grows)
	}
	net := max(0, float64(r.Grew-r.Shrank)) / float64(r.Grew+r.Shrank)
	if r.alone() || r.only() {
		net = 1
	}
	r.Score = r.Gain * net * math.Pow(1-r.D, 6) * math.Pow(max(0, min(1, r.Pace-r.PaceErr)), 2) * (max(0, excess)/max(most, 1) + 0.02)
	r.times()
	return r
}

// setAlone sets Alone and near.
func (r *Leak) setAlone(p *pathSum, spread, swing float64) {
	for i := range p.grows {
		g := &p.grows[i]
		g.alone = g.leaks || g.verdict.Sure()
		if g.alone && g.net >= max(near*spread, swing) {
			r.near++
		}
	}
	r.keepAlone(p, func(g *growth) bool { return g.net >= max(far*spread, swing) })
	if r.Alone < alike { // Leaking is needed then
		r.keepAlone(p, func(g *growth) bool { return g.leaks })
	}
	if r.Alone <= 2 { // a queue grows while its device is offline, and then returns
		r.keepAlone(p, func(g *growth) bool { return g.net >= near*swing })
	}
}

// keepAlone counts as Alone the devices among them that meet a condition.
func (r *Leak) keepAlone(p *pathSum, meets func(*growth) bool) {
	r.Alone = 0
	for i := range p.grows {
		g := &p.grows[i]
		if g.alone = g.alone && meets(g); g.alone {
			r.Alone++
		}
	}
}

// z sets Grew, Share and Z.
func (r *Leak) z(p *pathSum) {
	grew, shrank := float64(len(p.grows)), float64(p.shrank)
	r.Grew, r.Share = int64(len(p.grows)), max(0, grew-shrank)/float64(r.Examined)
	if r.Z = 0; grew+shrank > 0 {
		r.Z = (grew - shrank) / math.Sqrt(grew+shrank)
	}
}

// alone reports whether enough devices leak alone: two, or the only one.
func (r *Leak) alone() bool { return r.Alone > 0 && r.Alone >= min(2, r.Examined) }

// only reports whether all devices on which the path grows leak alone.
func (r *Leak) only() bool { return r.Alone > 0 && r.Alone == r.Grew }

// paces compares the later growth with the earlier one. It reports whether the growth became faster: the present
// rate of a device is then that of the last tenth.
func (r *Leak) paces(p *pathSum) (faster bool) {
	var thirds, last halves
	for i := range r.grows {
		thirds.add(&r.grows[i].thirds)
		last.add(&r.grows[i].last)
	}
	r.Pace, r.PaceErr = thirds.pace()
	if r.Last, r.LastErr = last.pace(); 2*last.n < thirds.n { // most boots have too few dumps
		r.Last, r.LastErr = 1, unknown
	}
	few := 0.3 / max(1, last.n) // two devices have equal rates now and then
	r.Slowing = r.Pace+errors2*r.PaceErr < slowing || r.Last+errors2*max(r.LastErr, few) < ended && !r.slowBefore()
	if ratio, err := p.all.pace(); (p.shared() || r.near == 0) && ratio+errors2*err < slowing { // so does the growth of all
		r.Pace, r.PaceErr, r.Slowing = ratio, err, true
	}
	if r.Last-errors2*r.LastErr < 1.1 {
		return false
	}
	for i := range r.grows {
		if g := &r.grows[i]; g.rate > 0 && g.last.time[1] > 0 {
			g.rate = max(g.rate, g.last.rise[1]/g.last.time[1])
		}
	}
	return true
}

// slowBefore reports whether the path grows in the last tenth, and grew as slowly in an earlier one: a leak may depend on the
// load, which is less at weekends.
func (r *Leak) slowBefore() bool {
	var sums [9]step
	var all step
	for i := range r.grows {
		for j, s := range r.grows[i].tenths {
			sums[j].rise, sums[j].time = sums[j].rise+s.rise, sums[j].time+s.time
			all.rise, all.time = all.rise+s.rise, all.time+s.time
		}
	}
	last := sums[0].rise / sums[0].time
	return last > 0.3*all.rise/all.time && slices.ContainsFunc(sums[2:], func(s step) bool {
		return 2*s.time >= sums[0].time && s.rise <= 1.1*last*s.time
	})
}

// verdict applies the thresholds.
func (p *pathSum) verdict(r *Leak) oldrule.Verdict {
	if r.Grew == 0 || p.opposed() {
		return oldrule.NoEvidence
	}
	alone, own := r.alone(), oldrule.NoEvidence
	if r.Examined == 1 {
		own = p.grows[0].verdict
	}
	z := min(r.Z, r.Mean) // with many devices, noise that rises on most and falls more on few has a large Z
	tenth := r.near >= 2 && 10*r.near >= r.Examined
	pace := r.Pace - r.PaceErr
	if r.Pace < slowing && !(alone && r.only()) {
		pace = 0
	}
	switch {
	case (z >= 4 || alone || own == oldrule.Leaking) && r.D <= maxD && pace >= 0.75:
		return oldrule.Leaking
	case (z >= 3.5 || alone || tenth || r.only() || own >= oldrule.Probably) && r.D <= maxD && pace >= 0.65:
		return oldrule.Probably
	case (r.Z >= 2 || alone || own >= oldrule.Grows) && r.D <= 0.40:
		return oldrule.Grows
	}
	return oldrule.NoEvidence
}

// times sets the rates, the hours and Since of a row.
func (r *Leak) times() {
	var rates, hours, since []float64
	for i := range r.grows {
		g := &r.grows[i]
		if g.rate > 0 {
			rates = append(rates, g.rate)
			if g.free >= 0 {
				hours = append(hours, float64(g.free)/g.rate)
			}
		}
		if g.changed {
			since = append(since, float64(g.since))
		}
	}
	if r.Rates = rates; len(rates) > 0 {
		r.Rate, r.Rate95 = pointer(quantile(rates, 0.5)), pointer(quantile(rates, 0.95))
	}
	if len(hours) > 0 {
		r.Hours = pointer(quantile(hours, 0.5))
	}
	if 2*len(since) > len(r.grows) {
		at := time.UnixMicro(int64(quantile(since, 0.5))).UTC()
		r.Since = &at
	}
}

func pointer(v float64) *float64 { return &v }

// exhaust computes the times until the heaps of the leaking devices are full, and their median on the devices of the
// path that fills them first.
func (l *Leaks) exhaust() {
	free, rate := map[int]float64{}, map[int]float64{}
	var first *Leak
	for i := range l.Rows {
		r := &l.Rows[i]
		if !r.Verdict.Sure() || r.Hours == nil {
			continue
		}
		if first == nil || *r.Hours < *first.Hours {
			first = r
		}
		for _, g := range r.grows {
			if g.rate > 0 && g.free >= 0 {
				free[g.device], rate[g.device] = float64(g.free), rate[g.device]+g.rate
			}
		}
	}
	if first == nil {
		return
	}
	var hours, each []float64
	for _, g := range first.grows {
		if r := rate[g.device]; r > 0 {
			hours = append(hours, free[g.device]/r)
		}
	}
	for d, r := range rate {
		each = append(each, free[d]/r)
	}
	slices.Sort(each)
	l.Exhaustion = &Exhaustion{int64(len(hours)), pointer(quantile(hours, 0.5)), pointer(quantile(hours, 0.05)), each}
}
