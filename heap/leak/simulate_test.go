package leak

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// share counts how often something was so.
type share struct{ yes, of int }

func (s *share) add(yes bool) {
	s.of++
	if yes {
		s.yes++
	}
}

func (s share) String() string {
	if s.of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", 100*float64(s.yes)/float64(s.of))
}

// score is what the model says in a kind of logs.
type score struct {
	logs, leaks            int
	falseSure, falseLikely int   // paths or heaps that do not leak; likely includes sure
	first                  share // of the logs with a leak: it is ranked first
	found, sure            share // of the leaks
	rate, covers           share // of the leaks: the rate is within a fifth; the interval has the true one
	since                  share // of the leaks: the begin is within a tenth of the log
	bound                  share // of the leaks for which none is said: the bound is at least the true rate
	ended                  share // of the growths that ended: none is said, and the end within a tenth of the log
	calibrated             [10]struct{ n, said, leaks float64 }
}

func (t *score) leak(j *Judgement, starts []float64, right func(func(float64) bool) bool, since, hours float64) {
	t.leaks++
	t.found.add(j.Verdict == Leak)
	t.sure.add(j.Sure())
	t.rate.add(right(func(r float64) bool { return math.Abs(j.Rate/r-1) <= 0.2 }))
	t.covers.add(right(func(r float64) bool { return j.Low <= r*1.0000001 && r*0.9999999 <= j.High }))
	t.since.add(math.Abs(starts[j.Since.Boot]+j.Since.At-since) <= 0.1*hours)
	if j.Verdict == None {
		t.bound.add(right(func(r float64) bool { return j.Bound >= r }))
	}
}

func (t *score) harmless(j *Judgement) {
	if j.Verdict == Leak {
		t.falseLikely++
	}
	if j.Sure() {
		t.falseSure++
	}
}

func (t *score) calibrate(j *Judgement, leaks bool) {
	c := &t.calibrated[min(9, int(10*j.Probability))]
	c.n++
	c.said += j.Probability
	if leaks {
		c.leaks++
	}
}

func (t *score) merge(o *score) {
	t.logs, t.leaks, t.falseSure, t.falseLikely = t.logs+o.logs, t.leaks+o.leaks, t.falseSure+o.falseSure, t.falseLikely+o.falseLikely
	for i, s := range o.shares() {
		d := t.shares()[i]
		d.yes, d.of = d.yes+s.yes, d.of+s.of
	}
	for i, c := range o.calibrated {
		d := &t.calibrated[i]
		d.n, d.said, d.leaks = d.n+c.n, d.said+c.said, d.leaks+c.leaks
	}
}

func (t *score) shares() []*share {
	return []*share{&t.first, &t.found, &t.sure, &t.rate, &t.covers, &t.since, &t.bound, &t.ended}
}

func (t *score) String() string {
	per := func(n int) string { return fmt.Sprintf("%.3f", float64(n)/float64(max(1, t.logs))) }
	s := per(t.falseSure) + " | " + per(t.falseLikely)
	for _, x := range t.shares() {
		s += " | " + x.String()
	}
	return s
}

// addPaths scores the judgements of the paths of a log.
func (t *score) addPaths(w *simulated, list []Judgement) {
	t.logs++
	starts, hours := w.starts(), w.moment(len(w.at)-1)
	living := w.leak >= 0 && w.until == 0
	best := 0
	for i := range list {
		j := &list[i]
		if j.Score() > list[best].Score() {
			best = i
		}
		t.calibrate(j, i == w.leak && living)
		if i != w.leak || !living {
			t.harmless(j)
		}
	}
	switch j := &list[max(0, w.leak)]; {
	case living:
		t.first.add(best == w.leak)
		t.leak(j, starts, w.right, w.since, hours)
	case w.leak >= 0:
		t.ended.add(j.Verdict == None && j.Until != nil && math.Abs(starts[j.Until.Boot]+j.Until.At-w.until) <= 0.1*hours)
	}
}

// addHeap scores the judgement of a heap.
func (t *score) addHeap(h *heapLog, j Judgement) {
	t.logs++
	starts := h.starts()
	last := h.boots[len(h.boots)-1].At
	hours := starts[len(starts)-1] + last[len(last)-1]
	t.calibrate(&j, h.leak)
	if h.leak {
		t.leak(&j, starts, func(f func(float64) bool) bool { return f(h.rate) }, h.since, hours)
		return
	}
	if h.until > 0 {
		t.ended.add(j.Verdict == None && j.Until != nil && math.Abs(starts[j.Until.Boot]+j.Until.At-h.until) <= 0.1*hours)
	}
	t.harmless(&j)
}

// world is a kind of logs.
type world struct {
	name, group string
	run         func(t *score, seed uint64, logs int, each func(j *Judgement, leaks bool))
}

func worlds() (list []world) {
	for k, w := range pathWorlds() {
		group := "paths"
		if w.startUp {
			group = "paths that start up"
		}
		list = append(list, world{w.name, group, func(t *score, seed uint64, logs int, each func(j *Judgement, leaks bool)) {
			for log := range 2 * logs {
				sim := simulateWorld(rand.New(rand.NewPCG(seed, uint64(k)<<32|uint64(log))), w, log%2 == 0)
				var paths []Series
				for i := range sim.seen {
					paths = append(paths, sim.series(i))
				}
				judged := JudgeAll(slices.Values(paths))
				t.addPaths(sim, judged)
				for i := range judged {
					if judged[i].Gain > 0 {
						each(&judged[i], i == sim.leak && sim.until == 0)
					}
				}
			}
		}})
	}
	for k, kind := range slices.Concat(heapKinds, harmless, moreLeaks, moreHarmless) {
		for up, group := range []string{"heaps", "heaps that start up"} {
			list = append(list, world{kind, group, func(t *score, seed uint64, logs int, each func(j *Judgement, leaks bool)) {
				for _, n := range []int{20, 144, 720, 2000} {
					for log := range logs {
						h := heapWorld(rand.New(rand.NewPCG(seed, uint64(100+k)<<40|uint64(n)<<24|uint64(up)<<20|uint64(log))), kind, n, up == 1)
						j := Judge(Series{Boots: h.boots, Kind: Heap, Per: "hour"})
						t.addHeap(h, j)
						each(&j, h.leak)
					}
				}
			}})
		}
	}
	return list
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// The model finds leaks in logs of many kinds, and hardly ever calls something else a leak. The weights were
// fitted to other seeds. LWSBT_FULL=all prints the table of heap/docs/leaks.md.
func TestSimulated(t *testing.T) {
	logs := number("LEAK_LOGS", 2)
	if cmdtest.All() {
		logs = number("LEAK_LOGS", 50)
	}
	seed := uint64(number("LEAK_SEED", 2026))
	only := os.Getenv("LEAK_ONLY")
	list := worlds()
	scores := make([]score, len(list))
	var wait sync.WaitGroup
	for i, w := range list {
		if !strings.Contains(w.group+": "+w.name, only) {
			continue
		}
		wait.Go(func() { w.run(&scores[i], seed, logs, func(*Judgement, bool) {}) })
	}
	wait.Wait()
	groups := map[string]*score{}
	for i, w := range list {
		if scores[i].logs == 0 {
			continue
		}
		t.Logf("%-20s %-32s %s", w.group, w.name, &scores[i])
		if groups[w.group] == nil {
			groups[w.group] = &score{}
		}
		groups[w.group].merge(&scores[i])
	}
	for _, name := range []string{"paths", "paths that start up", "heaps", "heaps that start up"} {
		g := groups[name]
		if g == nil || only != "" {
			continue
		}
		t.Logf("MEAN %-20s %6d logs %s", name, g.logs, g)
		var c []string
		for _, x := range g.calibrated {
			c = append(c, fmt.Sprintf("%.2f %.2f (%.0f)", x.said/x.n, x.leaks/x.n, x.n))
		}
		t.Logf("     said, true: %s", strings.Join(c, "  "))
		g.check(t, name)
	}
	if cmdtest.All() && only == "" {
		document(t, groups)
	}
}

// document holds the table of heap/docs/leaks.md to the scores, or writes it with -update.
func document(t *testing.T, groups map[string]*score) {
	const file, begin = "../docs/leaks.md", "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	rows, after, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatalf("%s has no table", file)
	}
	var table []string
	for _, name := range []string{"paths", "paths that start up", "heaps", "heaps that start up"} {
		cells := strings.Split(groups[name].String(), " | ")
		table = append(table, "|"+name+"|"+strings.Join(cells[:8], "|")+"|")
	}
	want := strings.Join(table, "\n")
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+"\n\n"+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if rows != want {
		t.Errorf("the table of %s (LWSBT_FULL=all go test ./heap/leak -run Simulated -update) is\n%s\nwant\n%s", file, rows, want)
	}
}

// check holds a group of logs to some points below heap/docs/leaks.md, and what is said to what is true.
func (g *score) check(t *testing.T, name string) {
	want := map[string]struct{ found, sure, likely, rate, covers float64 }{
		"paths": {40, 0.002, 0.05, 78, 80}, "paths that start up": {28, 0.005, 0.09, 75, 76}, "heaps": {85, 0.01, 0.035, 90, 90}, "heaps that start up": {80, 0.015, 0.055, 88, 90},
	}[name]
	percent := func(s share) float64 { // and two standard deviations, which few logs need
		p, n := float64(s.yes)/float64(s.of), float64(s.of)
		return 100 * (p + 2*math.Sqrt(p*(1-p)/n))
	}
	logs := float64(g.logs)
	if percent(g.found) < want.found || float64(g.falseSure) > want.sure*logs || float64(g.falseLikely) > want.likely*logs || percent(g.rate) < want.rate || percent(g.covers) < want.covers {
		t.Errorf("%s: %s, want %+v", name, g, want)
	}
	for _, c := range g.calibrated[5:] {
		if c.n >= 200 && (c.said-c.leaks)/c.n > 0.07 { // what is said more carefully is no untruth
			t.Errorf("%s: said %.2f, true %.2f, of %.0f", name, c.said/c.n, c.leaks/c.n, c.n)
		}
	}
}

// Of logs that lost blocks, fewer leaks are found, but none is called what it is not, and no bound is below a leak.
func TestLost(t *testing.T) {
	logs := number("LEAK_LOGS", 15)
	var found [4]float64
	for i, lost := range []float64{0, 0.02, 0.1, 0.3} {
		var s score
		for log := range 2 * logs {
			sim := simulateWorld(rand.New(rand.NewPCG(78, uint64(log))), pathWorld{setting: setting{dumps: 100, boots: 1, lost: lost}}, log%2 == 0)
			var paths []Series
			for k := range sim.seen {
				paths = append(paths, sim.series(k))
			}
			s.addPaths(sim, JudgeAll(slices.Values(paths)))
		}
		t.Logf("%2.0f %% lost: false and sure %.3f, false %.3f, first %v, found %v, sure %v, rate %v, covers %v, bound %v of %d", 100*lost,
			float64(s.falseSure)/float64(s.logs), float64(s.falseLikely)/float64(s.logs), s.first, s.found, s.sure, s.rate, s.covers, s.bound, s.bound.of)
		found[i] = float64(s.found.yes) / float64(s.found.of)
		if float64(s.falseSure) > 0.002*float64(s.logs)+1 || float64(s.falseLikely) > 0.05*float64(s.logs)+1 || s.bound.yes < s.bound.of*9/10 {
			t.Errorf("%g lost: %v", lost, &s)
		}
	}
	if found[1] < 0.8*found[0] || found[2] < 0.6*found[0] || found[3] < 0.3*found[0] {
		t.Errorf("found %.2f", found)
	}
}

// TestFit fits the weights to simulated logs, with LEAK_FIT=LOGS. LEAK_SEED is the first of two seeds.
func TestFit(t *testing.T) {
	logs := number("LEAK_FIT", 0)
	if logs == 0 {
		t.Skip("LEAK_FIT is not set")
	}
	seed := uint64(number("LEAK_SEED", 1))
	var rows []fitRow
	var lock sync.Mutex
	var wait sync.WaitGroup
	for _, w := range worlds() {
		if strings.Contains(w.name, "daily cycle in all") {
			continue // the load
		}
		for s := range uint64(2) {
			wait.Go(func() {
				var own []fitRow
				w.run(&score{}, seed+s, logs, func(j *Judgement, leaks bool) {
					own = append(own, fitRow{j.evidence.terms(), j.evidence.Rivals, leaks, strings.HasPrefix(w.group, "heaps"), w.name})
				})
				lock.Lock()
				rows = append(rows, own...)
				lock.Unlock()
			})
		}
	}
	wait.Wait()
	slices.SortFunc(rows, func(a, b fitRow) int { return cmp.Compare(a.world, b.world) })
	t.Log(fitWeights(rows))
}

// fitRow is a judged series.
type fitRow struct {
	x      [len(weights)]float64
	rivals float64
	leaks  bool
	heap   bool
	world  string
}

// fitWeights maximizes the likelihood of a logistic model whose odds of a path and of a heap are those of the
// rows, by Newton's method, with a small penalty on large weights.
func fitWeights(rows []fitRow) string {
	var n [2][2]float64
	for _, r := range rows {
		n[indexOf(r.heap)][indexOf(r.leaks)]++
	}
	const k = len(weights)
	var w [k]float64
	loss := 0.0
	for range 25 {
		var g [k]float64
		var h [k][k]float64
		loss = 0
		for i := range rows {
			r := &rows[i]
			s := math.Log(n[1][1] / n[1][0])
			if !r.heap {
				s = prior[Path] - math.Log(math.Max(1, r.rivals))
			}
			for a, x := range r.x {
				s += w[a] * x
			}
			p := logistic(s)
			y := float64(indexOf(r.leaks))
			loss -= y*math.Log(p+1e-300) + (1-y)*math.Log(1-p+1e-300)
			q := math.Max(p*(1-p), 1e-6)
			for a, x := range r.x {
				if x == 0 {
					continue
				}
				g[a] += (y - p) * x
				for b := range a + 1 {
					h[a][b] += q * x * r.x[b]
				}
			}
		}
		for a := range w {
			if a > 0 {
				g[a] -= 2 * w[a]
				h[a][a] += 2
			}
			h[a][a] += 1e-6
			for b := a + 1; b < k; b++ {
				h[a][b] = h[b][a]
			}
		}
		d := solve(h, g)
		step, most := 1.0, 0.0
		for _, x := range d {
			step, most = math.Min(step, 2/math.Max(1e-9, math.Abs(x))), math.Max(most, math.Abs(x))
		}
		for a := range w {
			w[a] += step * d[a]
		}
		if most < 1e-4 {
			break
		}
	}
	s := fmt.Sprintf("loss %.1f of %d rows, leaks %v\n", loss, len(rows), n)
	for _, x := range w {
		s += fmt.Sprintf("%.3g, ", x)
	}
	return s
}

func indexOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// solve solves h x = g by elimination.
func solve(h [len(weights)][len(weights)]float64, g [len(weights)]float64) (x [len(weights)]float64) {
	for i := range h {
		p := i
		for r := i; r < len(h); r++ {
			if math.Abs(h[r][i]) > math.Abs(h[p][i]) {
				p = r
			}
		}
		h[i], h[p], g[i], g[p] = h[p], h[i], g[p], g[i]
		for r := range h {
			if f := h[r][i] / h[i][i]; r != i && h[i][i] != 0 {
				for c := i; c < len(h); c++ {
					h[r][c] -= f * h[i][c]
				}
				g[r] -= f * g[i]
			}
		}
	}
	for i := range x {
		x[i] = g[i] / h[i][i]
	}
	return x
}
