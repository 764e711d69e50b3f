package profile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// kinds of logs, the columns of the table.
var kinds = []struct {
	name string
	setting
}{
	{"8", setting{dumps: 8, boots: 1}}, {"20", setting{dumps: 20, boots: 1}},
	{"20L", setting{dumps: 20, boots: 1, lossy: true}}, {"20 3b", setting{dumps: 20, boots: 3}},
	{"4", setting{dumps: 4, boots: 1}}, {"100", setting{dumps: 100, boots: 1}},
	{"100L", setting{dumps: 100, boots: 1, lossy: true}}, {"100 3b", setting{dumps: 100, boots: 3}},
}

// share counts how often something was so.
type share struct{ yes, of int }

func (s *share) add(yes bool) {
	s.of++
	if yes {
		s.yes++
	}
}

func (s share) percent() float64 { return 100 * float64(s.yes) / float64(max(1, s.of)) }

// score is the result of one method in one kind of logs.
type score struct {
	first   share // logs with a leak, in which the leak is ranked first
	covered share // leaks with an interval for their rate, in which the interval has the true rate
	accused int   // paths accused in the logs without a leak, of which there are first.of
}

// The rule ranks the leak first more often than other methods, and hardly ever calls something
// else a leak. LWSBT_FULL=all prints the table of heap/docs/leaks.md. Otherwise there are 40 logs of each kind,
// which are right to some 8 %, so the limits are below the numbers of the table.
func TestLeakRule(t *testing.T) {
	some, logs := kinds[:4], 40
	if cmdtest.All() {
		some, logs = kinds, 150
	}
	scores := make([][]score, len(methods)) // by method and kind of logs
	byLeak, byVerdict := map[string]*share{}, map[profile.Verdict]*share{}
	for i := range scores {
		scores[i] = make([]score, len(some))
	}
	for k, s := range some {
		for log := range 2 * logs {
			w := simulate(rand.New(rand.NewPCG(2026, uint64(k)<<32|uint64(log))), s.setting, log%2 == 0)
			for i, m := range methods {
				f := m.find(w)
				scores[i][k].add(w, f)
				if i == len(methods)-1 && s.dumps >= 8 {
					count(byVerdict, f.says, w.leak >= 0 && f.first == w.leak)
					if w.leak >= 0 {
						count(byLeak, w.kind, f.first == w.leak)
					}
				}
			}
		}
	}
	var table strings.Builder
	means, accused, covered := make([]float64, len(methods)), make([]float64, len(methods)), make([]share, len(methods))
	for i, m := range methods {
		fmt.Fprintf(&table, "\n| %s |", m.name)
		for _, s := range scores[i] {
			means[i] += s.first.percent() / float64(len(some))
			accused[i] += float64(s.accused) / float64(s.first.of) / float64(len(some))
			covered[i].yes, covered[i].of = covered[i].yes+s.covered.yes, covered[i].of+s.covered.of
			fmt.Fprintf(&table, " %.0f |", s.first.percent())
		}
		fmt.Fprintf(&table, " %.0f | %.2g | %.0f |", means[i], accused[i], covered[i].percent())
	}
	t.Logf("percentage of logs with the leak first, by kind, and mean; paths accused per log without a leak; percentage of leaks whose interval has the true rate:%s", &table)
	for _, kind := range leakKinds {
		t.Logf("%s: first in %.0f %%", kind, byLeak[kind].percent())
	}
	for v := profile.NoEvidence; v <= profile.Leaking; v++ {
		if s := byVerdict[v]; s != nil {
			t.Logf("first with the word %q: is the leak in %.0f %% of %d", v, s.percent(), s.of)
		}
	}
	last := len(methods) - 1
	for i, m := range methods[:last] {
		if means[last] < means[i]+10 {
			t.Errorf("%s: first in %.0f %%, the rule in %.0f", m.name, means[i], means[last])
		}
	}
	if means[last] < 60 || accused[last] > 0.05 {
		t.Errorf("the rule: first in %.0f %%, %.2f false leaks per log", means[last], accused[last])
	}
	if c := covered[last]; c.of < 20 || c.percent() < 85 {
		t.Errorf("the interval has the true rate in %.0f %% of %d logs", c.percent(), c.of)
	}
}

func count[K comparable](m map[K]*share, key K, yes bool) {
	if m[key] == nil {
		m[key] = &share{}
	}
	m[key].add(yes)
}

func (s *score) add(w *simulated, f finding) {
	if w.leak < 0 {
		s.accused += f.accused
		return
	}
	s.first.add(f.first == w.leak)
	if f.covered != 0 {
		s.covered.add(f.covered > 0)
	}
}
