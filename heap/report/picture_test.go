package report_test

import (
	"testing"

	growth "github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/report"
)

// Each value of the axis is written once, also where the memory hardly changes.
func TestAxisOfConstant(t *testing.T) {
	for _, values := range [][]float64{{0, 0, 0}, {96, 96, 96}, {96, 97, 96}, {5775360, 5775360, 5775360}, {5775361, 5775362, 5775361}, {9e9, 9e9 + 1, 9e9}} {
		pic := report.Draw(report.Drawing{
			Series:    growth.Series{Boots: []growth.Boot{{At: []float64{0, 1, 2}, Value: values}}},
			Judgement: &growth.Judgement{},
			Time:      func(float64) string { return "2 h" },
		})
		if pic == nil {
			t.Fatalf("%v: no picture", values)
		}
		seen := map[string]bool{}
		for _, label := range pic.Texts {
			if label.Anchor == "end" && seen[label.Text] {
				t.Errorf("%v: the axis has %q twice", values, label.Text)
			}
			seen[label.Text] = true
		}
		if len(seen) < 3 {
			t.Errorf("%v: %v, expected the unit, the time and a value or more", values, seen)
		}
	}
}
