package main

import "testing"

// The rule ranks the leak first more often than the other methods, and hardly ever calls
// something else a leak. The limits are below what docs/leaks.md shows, for the few logs of a
// test: 40 in each column are right to some 8 %.
func TestRule(t *testing.T) {
	var some []column
	for _, c := range columns {
		if c.dumps == 8 || c.dumps == 20 {
			some = append(some, c)
		}
	}
	b := newBench(some, 40, 20261123, false)
	means, accused := make([]float64, len(methods)), make([]float64, len(methods))
	for i := range methods {
		for _, s := range b.scores[i] {
			means[i] += s.rate() / float64(len(some))
			accused[i] += float64(s.accused) / float64(s.logs) / float64(len(some))
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
	intervals, hit := 0, 0
	for _, s := range b.scores[last] {
		intervals, hit = intervals+s.intervals, hit+s.hit
	}
	if intervals < 20 || float64(hit) < 0.85*float64(intervals) {
		t.Errorf("the interval has the true rate in %d of %d logs", hit, intervals)
	}
}
