package leaktext

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// Four dumps have three intervals, too few to exclude a leak; five have four.
func TestHeadlineOfFewDumps(t *testing.T) {
	for used, want := range map[int]string{0: "cannot tell", 3: "cannot tell", 4: "cannot tell", 5: "none above ", 40: "none above "} {
		if got := Headline(&growth.Leaks{Used: used, Per: "dump", Bound: 16}); !strings.HasPrefix(got, want) {
			t.Errorf("%d dumps: %q, want %q", used, got, want)
		}
	}
}

// What is not sure is not written like what is.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want string
	}{
		{0.9494, "94 %"}, {0.94999, "94 %"}, {leak.Sure, "95 %"}, {0.954, "95 %"}, {0.956, "96 %"}, {0.9999, "99 %"}, {0.004, "0 %"},
	} {
		if got := Verdict(&leak.Judgement{Verdict: leak.Leak, Probability: c.p}, "dump", 0); got != "leak, "+c.want {
			t.Errorf("%g: %q, want %q", c.p, got, c.want)
		}
	}
}
