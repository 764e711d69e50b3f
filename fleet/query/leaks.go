package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
)

// Verdict is the word for a call path of a build.
type Verdict uint8

const (
	Grows    Verdict = iota // it grows on some devices: a leak is more likely than before, but not likely
	Probably                // probably a leak
	Leaking                 // a leak
)

// String returns leak, probably or grows.
func (v Verdict) String() string { return [...]string{"grows", "probably", "leak"}[min(v, Leaking)] }

// MarshalText returns the text of String, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Sure reports whether v is a leak, or probably one.
func (v Verdict) Sure() bool { return v >= Probably }

// Leak holds the evidence that a call path leaks in a build. (fleet/docs/fleet-leaks.md)
type Leak struct {
	Path     int64   `json:"path,string"`
	Examined int64   `json:"examined"` // devices
	Grew     int64   `json:"grew"`     // devices on which it leaks, if it leaks on a share of them
	Share    float64 `json:"share"`    // the likeliest share of devices that leak, of those that were tried
	// Evidence is the logarithm of the likelihood ratio of a leak on that share of the devices to none.
	Evidence float64  `json:"evidence"`
	Pace     float64  `json:"pace"` // rate in the second half of the growth, divided by that in the first half
	PaceErr  float64  `json:"pace_err"`
	Rate     *float64 `json:"rate"`     // median of the devices that leak, bytes per hour; nil if no times are known
	RateErr  *float64 `json:"rate_err"` // median standard error of the rate of one device
	Rate95   *float64 `json:"rate95"`   // 95th percentile
	Hours    *float64 `json:"hours"`    // median of the time until this path alone exhausts the heap
	// Since is when the path began to grow, median of the devices that leak; nil if it grows since their
	// first dumps.
	Since *time.Time `json:"since"`
	// Slowing is set if the growth slows down, as that of a cache.
	Slowing bool `json:"slowing"`

	Verdict Verdict `json:"verdict"`
	Stack   []Frame `json:"stack"` // innermost first
	Curves  *Curves `json:"curves,omitempty"`
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
	Paths    int64  `json:"paths"`    // call paths of the build
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

// Exhaustion holds when the heaps of the devices that leak are full. Each device has its own time, and of several
// heaps, that of the first.
type Exhaustion struct {
	Devices int64    `json:"devices"` // whose heap is full before a boot usually ends
	Hours   *float64 `json:"hours"`   // median of these
	Hours05 *float64 `json:"hours05"` // 5th percentile
	Heap    string   `json:"heap"`    // that is full first on most of these, "" if the devices name none
	// Reboot is the number of devices whose boots end before their heap is full. Boot is the median of the length of their
	// boots in hours, and Reach that of the bytes that leak until then.
	Reboot int64    `json:"reboot"`
	Boot   *float64 `json:"boot"`
	Reach  *float64 `json:"reach"`
	// Unknown is the number of devices with several heaps of which none grows by itself, and Among the names that most have.
	Unknown int64  `json:"unknown"`
	Among   string `json:"among"`
	// Each has the hours of each of Devices, sorted.
	Each []float64 `json:"-"`
}

// Leaks returns the call paths of a build that leak or may leak, of the devices with a dump in the scope. The scope must
// have exactly one build. Devices that sent dumps since they were judged are judged first.
func (d *DB) Leaks(ctx context.Context, o Scope) (*Leaks, error) {
	if len(o.Builds) != 1 {
		return nil, fmt.Errorf("query: leaks of %d builds, expected one", len(o.Builds))
	}
	if err := d.Judge(ctx, o.Builds[0]); err != nil {
		return nil, err
	}
	var l *Leaks
	err := d.with(ctx, o, ofLeaks, func(s *session) error {
		l = &Leaks{Build: o.Builds[0]}
		return s.leaks(ctx, l)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s *session) leaks(ctx context.Context, l *Leaks) error {
	n, err := rows[struct{ Devices, Boots, Paths int64 }](ctx, s, text("counts"))
	if err != nil {
		return fmt.Errorf("query counts: %w", err)
	}
	if l.Devices, l.Paths = n[0].Devices, n[0].Paths; l.Devices == 0 {
		return fmt.Errorf("build %s: %w", l.Build, ErrNoDump)
	}
	if err := s.sum(ctx, l, n[0].Boots); err != nil || l.Moving {
		return err
	}
	return s.stacks(ctx, len(l.Rows), func(i int) (pathOf, *[]Frame) { return pathOf{l.Build, l.Rows[i].Path}, &l.Rows[i].Stack })
}

// usual is what a path does on the devices on which it does not leak.
type usual struct {
	Path          int64
	Sum, Level    float64
	Net, Swing    float64
	Growth        float64
	Devices, Seen int64
}

// Limits of the load, and of the sums.
const (
	minLoadPaths = 8
	minLoad      = 0.1
	loadTimes    = 3 // paths that grow this many times as much as the typical one are not of the load

	prior   = 5   // logarithm of the odds against a leak, of a call path that grows on some devices
	surely  = 3   // and for the word leak, the evidence beyond it
	hints   = 2   // evidence for the word grows
	slowing = 0.9 // Pace below which the growth slows down
)

// sum adds up the judgements of the devices. boots is the number of their boots.
func (s *session) sum(ctx context.Context, l *Leaks, boots int64) error {
	if err := s.tables(ctx, "examined"); err != nil {
		return err
	}
	n, err := rows[struct{ Examined int64 }](ctx, s, "select count(*) as n from examined where boots > 0")
	if err != nil {
		return err
	}
	l.Examined = n[0].Examined
	list, err := rows[usual](ctx, s, text("usual"))
	if err != nil || len(list) == 0 {
		return err
	}
	if l.Moving = moving(list, boots, l.Devices); l.Moving {
		return nil
	}
	l.Load = loadOf(list)
	var known []values
	for _, u := range list {
		known = append(known, values{u.Path, []float64{u.Net, u.Swing, loadTimes * min(l.Load, max(0, u.Growth))}})
	}
	if err := s.define(ctx, "usually", literal(known, "net", "swing", "most_load")); err != nil {
		return err
	}
	if err := s.define(ctx, "weighed", text("weighed", "{alone}", fmt.Sprintf("%e", math.Log(float64(1+l.Examined)/2)))); err != nil {
		return err
	}
	if err := s.define(ctx, "shares", text("shares", "{devices}", fmt.Sprint(l.Examined))); err != nil {
		return err
	}
	best, err := rows[struct {
		Path       int64
		Lod, Share float64
	}](ctx, s, text("evidence"))
	if err != nil || len(best) == 0 {
		return err
	}
	var of []values
	evidence := map[int64]Leak{}
	for _, b := range best {
		of = append(of, values{b.Path, []float64{b.Share}})
		evidence[b.Path] = Leak{Path: b.Path, Examined: l.Examined, Evidence: b.Lod, Share: b.Share}
	}
	if err := s.define(ctx, "shared", literal(of, "share")); err != nil {
		return err
	}
	sums, err := rows[found](ctx, s, text("found"))
	if err != nil {
		return err
	}
	for i := range sums {
		r := evidence[sums[i].Path]
		ok := sums[i].judge(&r)
		for _, v := range []*float64{&r.Evidence, &r.Pace, &r.PaceErr, r.Rate, r.Rate95, r.RateErr} { // the last digits depend on the order, or the engine
			if v != nil {
				*v = math.Round(*v*1e9) / 1e9
			}
		}
		if ok {
			l.Rows = append(l.Rows, r)
		}
	}
	slices.SortFunc(l.Rows, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), cmp.Compare(a.Word(), b.Word()), cmp.Compare(b.Evidence, a.Evidence), cmp.Compare(a.Path, b.Path))
	})
	return s.exhaust(ctx, l)
}

// moving reports whether nearly all paths are of one boot of one device.
func moving(list []usual, boots, devices int64) bool {
	once := 0
	for _, u := range list {
		if u.Devices == 1 && u.Seen <= 1 {
			once++
		}
	}
	return boots >= 3 && once*10 >= len(list)*9
}

// loadOf returns the growth of the typical path, 0 if it is small.
func loadOf(list []usual) float64 {
	var growths []float64
	for _, u := range list {
		if u.Level > 0 {
			growths = append(growths, u.Sum/u.Level)
		}
	}
	if len(growths) < minLoadPaths {
		return 0
	}
	if g := quantile(growths, 0.5); g >= minLoad {
		return g
	}
	return 0
}

// found has the sums of a path.
type found struct {
	Path, Varies, Grew    int64
	Rate, Rate95, Err     *float64
	Begun                 int64
	Since                 *float64 // Unix time in seconds
	Jump, Grown           float64
	N, A, B, AA, AB, BB   float64 // rates in the two halves of the growth, of the devices that leak
	A1, B1, AA1, AB1, BB1 float64 // and of all
	Up, Rest, Rest2       float64 // changes on the devices that leak, on the others, and their squares
	Near                  int64
	Most                  float64 // largest weight
	Shape                 float64 // mean of those of the devices that leak
}

// judge sets what the sums of a path say. It reports whether the path has a word.
func (f *found) judge(r *Leak) bool {
	r.Grew, r.Rate, r.Rate95, r.RateErr = f.Grew, f.Rate, f.Rate95, f.Err
	if 2*f.Begun > f.Grew && f.Since != nil {
		at := time.UnixMicro(int64(*f.Since * 1e6)).UTC()
		r.Since = &at
	}
	grew, others := float64(f.Grew), float64(f.Varies-f.Grew)
	if f.Near == 0 || others > 0 && f.Rest > 2*math.Sqrt(f.Rest2) && f.Rest/others >= f.Up/math.Max(1, grew)/3 { // the others grow, too: the shape of all counts
		f.N, f.A, f.B, f.AA, f.AB, f.BB = float64(f.Varies), f.A1, f.B1, f.AA1, f.AB1, f.BB1
	}
	shape := f.pace(r)
	// What falls on the others is a saw-tooth.
	opposed := f.Rest < -0.5*f.Up || f.Rest < -0.3*f.Up && f.Up+f.Rest < 2.5*math.Sqrt(f.Rest2+f.Up*f.Up/math.Max(1, grew))
	returns := f.Grown > 0 && f.Jump > -0.5*f.Grown // a leak begins again at a boot, the load goes on
	grows := r.Evidence > hints
	r.Evidence += f.Shape
	beyond := r.Evidence - prior
	if p := leak.Path.Probability(f.Most); r.Examined == 1 { // the word that its log alone has
		switch beyond = -1; {
		case p >= leak.Sure:
			beyond = surely
		case p >= 0.5:
			beyond = 0
		}
	}
	switch {
	case opposed || f.Grew == 0:
		return false
	case f.N >= 5 && r.Pace < r.PaceErr: // of so many devices that leak, the shape is known
		return grows
	case r.Slowing || returns || shape > 8:
		r.Slowing = r.Slowing || shape > 8
		return grows
	case beyond >= surely:
		r.Verdict = Leaking
	case beyond >= 0:
		r.Verdict = Probably
	}
	return grows
}

// pace compares the two halves of the growth. The shape of a growth is common to all devices, so it counts once: pace returns
// the logarithm of the likelihood ratio of a growth that slows down to one that does not.
func (f *found) pace(r *Leak) (shape float64) {
	r.Pace, r.PaceErr = 1, unknown
	if f.N < 1 {
		return 0
	}
	if f.A > 0 {
		p := math.Min(f.B/f.A, unknown)
		squares := math.Max(0, f.BB-2*p*f.AB+p*p*f.AA)
		r.Pace = p
		if f.N > 1 {
			r.PaceErr = math.Min(unknown, math.Sqrt(squares*f.N/(f.N-1))/f.A)
		}
	}
	r.PaceErr = math.Max(r.PaceErr, 0.15/math.Sqrt(f.N))
	errors := 2.0
	if r.PaceErr < 0.05 { // many devices
		errors = 1
	}
	r.Slowing = r.Pace+errors*r.PaceErr < slowing
	if d := 1 - r.Pace; d > 0 {
		shape = d * d / 2 / (r.PaceErr*r.PaceErr + 0.07*0.07)
	}
	return shape
}

// unknown is a ratio of rates, or its standard error, that says nothing.
const unknown = 10
