package leak

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write the vectors")

// vector is a series with what is true of it by construction.
type vector struct {
	Name   string  `json:"name"`
	Series Series  `json:"series"`
	Want   wanting `json:"want"`
}

// wanting is the answer that is right, within tolerances.
type wanting struct {
	Verdicts []Verdict `json:"verdicts"`        // any of these
	Sure     bool      `json:"sure,omitempty"`  // at least 0.95
	Rate     float64   `json:"rate,omitempty"`  // of a leak, within a tenth; the interval has it
	Bound    float64   `json:"bound,omitempty"` // of none: it is at least this, and at most ten times as much
	Since    *Moment   `json:"since,omitempty"` // within a tenth of the boot
	Until    *Moment   `json:"until,omitempty"`
}

// shape is a boot of n points, an hour apart.
func shape(n int, f func(i float64) float64) (b Boot) {
	for i := range n {
		b.At, b.Value = append(b.At, float64(i+1)), append(b.Value, math.Round(f(float64(i))))
	}
	return b
}

func ramp(i float64) float64 { return 40000 + 50*i }

func starting(i float64) float64 { return ramp(i) - 20000*math.Exp(-i/2) }

// noise is the same each time, between 0 and 1.
func noise(i float64) float64 {
	_, f := math.Modf(math.Abs(math.Sin(i*12.9898)) * 43758.5453)
	return f
}

func pick(yes bool, a, b float64) float64 {
	if yes {
		return a
	}
	return b
}

// vectors returns the vectors of heaps, of which each breaks one wrong idea of growth.
func vectors() []vector {
	h := func(boots ...Boot) Series { return Series{Boots: boots, Kind: Heap, Quantum: 8, Per: "hour"} }
	p := func(boots ...Boot) Series { return Series{Boots: boots, Kind: Path, Quantum: 50, Per: "dump"} }
	version := func(v string, b Boot) Boot { b.Version = v; return b }
	leaks := wanting{Verdicts: []Verdict{Leak}, Sure: true, Rate: 50}
	likely := wanting{Verdicts: []Verdict{Leak}, Rate: 50}
	none := wanting{Verdicts: []Verdict{None}}
	lossy := shape(60, func(i float64) float64 { return ramp(i) * (0.9 + 0.05*noise(i)) })
	for i := range lossy.At {
		lossy.Kept = append(lossy.Kept, 0.9+0.05*noise(float64(i)))
	}
	return []vector{
		{"straight", h(shape(60, ramp)), leaks},
		{"the first report is from before the start-up", h(shape(60, func(i float64) float64 { return pick(i == 0, 20000, ramp(i)) })), leaks},
		{"an exponential start-up", h(shape(100, starting)), leaks},
		{"one step", h(shape(200, func(i float64) float64 { return ramp(i) + pick(i > 60, 20000, 0) })), likely},
		{"two levels by turns", h(shape(200, func(i float64) float64 { return ramp(i) + pick(math.Mod(i, 2) == 1, 20000, 0) })), leaks},
		{"a collected heap", h(shape(200, func(i float64) float64 { return ramp(i) + 4000*math.Mod(i, 12)/12 })), likely},
		{"spikes", h(shape(200, func(i float64) float64 { return ramp(i) + pick(math.Mod(i, 10) == 3, 30000, 0) })), leaks},
		{"a lost digit", h(shape(200, func(i float64) float64 { return pick(i == 150, 4000, ramp(i)) })), leaks},
		{"noise", h(shape(200, func(i float64) float64 { return ramp(i) + 600*noise(i) })), leaks},
		{"dense noise", h(shape(1440, func(i float64) float64 { return ramp(i) + 3000*noise(i) })), leaks},
		{"three boots, each starts up", h(shape(100, starting), shape(100, starting), shape(80, starting)), leaks},
		{"late in the only boot", h(shape(200, func(i float64) float64 { return 40000 + 50*math.Max(0, i-60) })), wanting{Verdicts: []Verdict{Leak, Unknown}, Rate: 50, Since: &Moment{0, 61}}},
		{"late in the second boot", h(shape(40, func(float64) float64 { return 40000 }), shape(40, func(i float64) float64 { return 40000 + 50*math.Max(0, i-16) })), wanting{Verdicts: []Verdict{Leak}, Rate: 50, Since: &Moment{1, 17}}},
		{"began with the second firmware", h(version("1", shape(30, func(float64) float64 { return 40000 })), version("2", shape(30, ramp))), wanting{Verdicts: []Verdict{Leak}, Sure: true, Rate: 50, Since: &Moment{1, 1}}},
		{"mended by the second firmware", h(version("1", shape(30, ramp)), version("2", shape(30, func(float64) float64 { return 40000 }))), wanting{Verdicts: []Verdict{None}, Until: &Moment{1, 1}}},
		{"a full cache", h(shape(100, func(i float64) float64 { return 40000 + 50*math.Min(40, i) })), wanting{Verdicts: []Verdict{None}, Until: &Moment{0, 41}}},
		{"flat", h(shape(60, func(float64) float64 { return 40000 })), wanting{Verdicts: []Verdict{None}, Bound: 0.05}},
		{"flat and noisy", h(shape(60, func(i float64) float64 { return 40000 + 600*noise(i) })), none},
		{"shrinks", h(shape(60, func(i float64) float64 { return 40000 - 50*i })), none},
		{"daily cycle", h(shape(96, func(i float64) float64 { return 40000 + 3000*math.Sin(i*math.Pi/12) })), none},
		{"three points", h(shape(3, ramp)), wanting{Verdicts: []Verdict{Unknown, Leak}}},
		{"two points", h(shape(2, ramp)), wanting{Verdicts: []Verdict{Unknown}}},
		{"no points", h(), wanting{Verdicts: []Verdict{Unknown}}},
		{"a call path, a block in each dump", p(shape(20, ramp)), leaks},
		{"a call path of which a tenth is lost", Series{Boots: []Boot{lossy}, Kind: Path, Quantum: 50, Per: "dump"}, wanting{Verdicts: []Verdict{Leak, Unknown}}},
	}
}

func fileOf(name string) string {
	return filepath.Join("vectors", strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-")+".json")
}

// The vectors are as they were constructed, and Judge agrees with what is true of them.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("vectors/*.json")
	if err != nil || len(files) != len(vectors()) && !*update {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, v := range vectors() {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		if *update {
			if err := os.WriteFile(fileOf(v.Name), text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(fileOf(v.Name)); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s differs: %v (go test ./heap/leak -run Vectors -update)", fileOf(v.Name), err)
		}
		v.check(t)
	}
}

func (v *vector) check(t *testing.T) {
	j, w := Judge(v.Series), &v.Want
	near := func(got, want *Moment) bool {
		at := v.Series.Boots[want.Boot].At
		return got != nil && got.Boot == want.Boot && math.Abs(got.At-want.At) <= 0.1*(at[len(at)-1]-at[0])
	}
	switch {
	case !slices.Contains(w.Verdicts, j.Verdict), w.Sure && !j.Sure():
		t.Errorf("%s: %v, probability %.3f, %s, want %v", v.Name, j.Verdict, j.Probability, j.Why, w.Verdicts)
	case w.Rate > 0 && (math.Abs(j.Rate/w.Rate-1) > 0.1 || j.Low > w.Rate || j.High < w.Rate):
		t.Errorf("%s: rate %v (%v to %v), want %v", v.Name, j.Rate, j.Low, j.High, w.Rate)
	case w.Since != nil && !near(&j.Since, w.Since), w.Until != nil && !near(j.Until, w.Until), w.Until == nil && j.Until != nil:
		t.Errorf("%s: since %v until %v, want %v, %v", v.Name, j.Since, j.Until, w.Since, w.Until)
	case j.Verdict == None && (j.Bound < w.Bound || w.Bound > 0 && j.Bound > 10*w.Bound):
		t.Errorf("%s: bound %v, want %v", v.Name, j.Bound, w.Bound)
	}
}

// A second implementation, in Python, gives the same numbers for the vectors and for series that reach each
// constant of the model.
func TestSecondImplementation(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	var all []Series
	for _, v := range vectors() {
		if len(v.Series.Boots) > 0 {
			all = append(all, v.Series)
		}
	}
	seeds := uint64(1)
	if cmdtest.Full() {
		seeds = 4
	}
	for seed := range seeds {
		all = append(all, varied(5+seed)...)
	}
	all = append(all, beside()...)
	var in bytes.Buffer
	e := json.NewEncoder(&in)
	for _, s := range all {
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(weights)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/growth.py", string(text))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for i, s := range all {
		var o struct {
			Verdict                   Verdict
			Probability, Rate, Weight float64
			Low, High                 *float64
			Since                     [2]float64
			Until                     *[2]float64
		}
		if err := d.Decode(&o); err != nil {
			t.Fatalf("series %d: %v", i, err)
		}
		j := Judge(s)
		same := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("series %d of %d: %s %v, of the second implementation %v", i, len(all), what, got, want)
			}
		}
		if j.Verdict != o.Verdict || (j.Until == nil) != (o.Until == nil) {
			t.Errorf("series %d: %v until %v, of the second implementation %v until %v", i, j.Verdict, j.Until, o.Verdict, o.Until)
			continue
		}
		same("probability", j.Probability, o.Probability)
		same("rate", j.Rate, o.Rate)
		same("weight", j.Weight, o.Weight)
		same("since", j.Since.At, o.Since[1])
		same("since boot", float64(j.Since.Boot), o.Since[0])
		if j.Until != nil {
			same("until", j.Until.At, o.Until[1])
			same("until boot", float64(j.Until.Boot), o.Until[0])
		}
		if o.Low != nil && o.High != nil {
			same("low", j.Low, *o.Low)
			same("high", j.High, *o.High)
		}
	}
}

// varied returns series of the simulated logs, short ones, with loss and damage.
func varied(seed uint64) (list []Series) {
	for k, kind := range slices.Concat(heapKinds, harmless, moreLeaks, moreHarmless) {
		for _, n := range []int{20, 41, 70, 150}[k%2:][:3] {
			h := heapWorld(rand.New(rand.NewPCG(seed, uint64(k)<<32|uint64(n))), kind, n, k%3 > 0)
			s := Series{Boots: h.boots, Kind: Heap, Quantum: 8, Per: "hour"}
			if k%5 == 4 && len(s.Boots) > 1 {
				s.Boots[len(s.Boots)-1].Version = "2"
			}
			list = append(list, s)
		}
	}
	return list
}

// beside returns series on both sides of constants that the simulated logs seldom reach.
func beside() (list []Series) {
	add := func(k Kind, boots ...Boot) {
		list = append(list, Series{Boots: boots, Kind: k, Quantum: 8, Per: "hour"})
	}
	flat := func(n int) Boot { return shape(n, func(float64) float64 { return 40000 }) }
	for n := 1; n < 14; n++ { // minNone, perPoint, minQuiet
		add(Heap, flat(n))
		add(Heap, shape(n, ramp))
		add(Heap, shape(40, ramp), flat(n+6))
		add(Path, shape(40, ramp), flat(n+6))
	}
	for n := 4; n < 9; n++ { // shortBoot, mostShort
		boots := make([]Boot, 16)
		for i := range boots {
			boots[i] = shape(n, ramp)
		}
		add(Path, boots...)
	}
	for i := range 30 { // tolerance: a bend that is hardly one; hardly, uncertain: noise of all sizes
		bend := float64(i) / 30
		add(Heap, shape(64, func(x float64) float64 { return 40000 + 50*x + bend*20*math.Max(0, x-32) }))
		add(Heap, shape(60, func(x float64) float64 { return 40000 + 2*x + 30*float64(i)*noise(x) }))
		add(Path, shape(90, func(x float64) float64 { return 40000 + 20*x + 100*float64(i)*noise(x+float64(i)) }))
	}
	for k := 6.0; k < 12; k++ { // maxIdle
		add(Heap, shape(64, func(i float64) float64 { return 40000 + 50*math.Max(0, i-k) }))
	}
	for i := range 10 { // flatPart, startStep, and the shapes, in hours
		x := float64(i)
		step := func(at float64) func(t float64) float64 {
			return func(t float64) float64 { return 40000 + 100*x*math.Min(1, math.Floor(t/at)) + 60*noise(t) + 20*t }
		}
		add(Heap, shape(40, step(1)))
		add(Heap, shape(40, step(20)))
		add(Heap, shape(24+3*i, func(t float64) float64 { return 40000 + 500*math.Sqrt(t) + x*t + 5*noise(t) }))
		add(Heap, shape(6+2*i, func(t float64) float64 { return 40000 - 2000*math.Cos(2*math.Pi*t/24) + 5*x*t }))
		add(Heap, shape(40, func(t float64) float64 { return 40000 + 100*math.Min(t, 4*x) + 60*noise(t) })) // former
	}
	for i := range 40 { // shapeBetter
		p := 0.69 + float64(i)/1000
		add(Heap, shape(60, func(t float64) float64 { return 40000 + 600*math.Pow(t, p) + float64(10+i%2*30)*noise(t) }))
	}
	for i := range 36 { // leastCycle, mostCycles, daily
		for _, cycle := range []float64{24, 168} {
			hours, of := cycle*(0.2+float64(i)/12), Boot{}
			for i := range 60 {
				at := hours * float64(i) / 59
				of.At, of.Value = append(of.At, 1+at), append(of.Value, math.Round(40000-3000*math.Cos(2*math.Pi*at/cycle)+10*at))
			}
			add(Heap, of)
		}
	}
	for i := range 20 { // noise behind a growth that ended
		add(Heap, shape(80, func(t float64) float64 {
			return 40000 + 50*math.Min(t, 50) + math.Min(math.Max(0, t-50), 1)*60*float64(i)*(noise(t)-0.5)
		}))
	}
	for i := range 14 { // what remains of a growth that ended: a half, an eighth; where it ended: in the last tenth
		part, end := float64(i)/20, float64(24+i)
		add(Heap, shape(80, func(t float64) float64 { return 40000 + 50*math.Min(t, 50) + 50*part*math.Max(0, t-50) }))
		add(Path, shape(80, func(t float64) float64 { return 40000 + 50*math.Min(t, 50) + 50*part*math.Max(0, t-50) }))
		add(Heap, shape(40, func(t float64) float64 { return 40000 + 50*math.Min(t, end) }))
		add(Heap, shape(64, func(t float64) float64 { return 40000 + 50*math.Min(t, float64(3+i)) })) // its length, and where
		add(Heap, shape(64, func(t float64) float64 { return 40000 + 50*math.Min(math.Max(0, t-30), float64(1+i)) }))
	}
	for k, w := range pathWorlds() {
		if w.dumps > 120 {
			continue
		}
		sim := simulateWorld(rand.New(rand.NewPCG(6, uint64(k))), w, true)
		list = append(list, sim.series(sim.leak), sim.series((sim.leak+1)%len(sim.seen)))
	}
	return list
}

// Kept and versions of vectors are read as they are written.
func TestVectorJSON(t *testing.T) {
	for _, v := range vectors() {
		text, err := os.ReadFile(fileOf(v.Name))
		if err != nil {
			t.Fatal(err)
		}
		var o vector
		if err := json.Unmarshal(text, &o); err != nil || fmt.Sprint(o.Series) != fmt.Sprint(v.Series) || o.Want.Rate != v.Want.Rate {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// A path that grows as most others do follows the load; what grows more is a leak. Fewer than eight paths have no load.
func TestLoad(t *testing.T) {
	paths := func(n int, growth, other float64) (list []Series) {
		for i := range n {
			list = append(list, Series{Boots: []Boot{shape(60, func(x float64) float64 {
				return 10000*(1+growth*x/60) + 60*noise(x*float64(i+1))
			})}, Quantum: 8})
		}
		return append(list, Series{Boots: []Boot{shape(60, func(x float64) float64 { return 10000 * (1 + other*x/60) })}, Quantum: 8})
	}
	for _, c := range []struct {
		n             int
		growth, other float64
		follows       bool // the last path
	}{{12, 0.5, 0.5, true}, {12, 0.15, 0.15, true}, {12, 0.05, 0.05, false}, {12, 0.5, 4, false}, {7, 0.5, 0.5, true}, {6, 0.5, 0.5, false}, {12, 0, 0.5, false}} {
		list := JudgeAll(slices.Values(paths(c.n, c.growth, c.other)))
		if j := list[len(list)-1]; (j.Verdict != Leak) != c.follows {
			t.Errorf("%d paths grow by %v, one by %v: %v %.3f %s", c.n, c.growth, c.other, j.Verdict, j.Probability, j.Why)
		}
	}
}
