package heaplog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// fieldLog is what a log of testdata/field, or of testdata/systems, holds: a line of testdata/field/truth.tsv has
// the name of the file and, separated by semicolons, what must be found:
//
//	free 86100 kitchen    the last number of a series of this quantity, and a word of its name
//	t 2340                the seconds from the first report of a series to the last
//	boots 3               the boots of a series
//	none word             no series; what is printed, or a trace of the log, has the word
func TestField(t *testing.T) {
	truth, err := os.ReadFile(filepath.Join("testdata", "field", "truth.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(truth)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), "\t")
		t.Run(name, func(t *testing.T) { checkField(t, name, strings.Split(want, ";")) })
		n++
	}
	if n < 60 {
		t.Errorf("%d logs", n)
	}
}

func checkField(t *testing.T, name string, want []string) {
	path := filepath.Join("testdata", "field", name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("testdata", "systems", name)
	}
	r, err := heaplog.Open(t.Context(), heaplog.Files(path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := ""
	for d, err := range r.Dumps() {
		if err != nil {
			said += err.Error() + "\n"
		} else {
			said += d.Why + " trace dump memdump task LEAK\n"
		}
	}
	sum := r.Summary()
	for _, n := range sum.Notes {
		said += n.Text + "\n"
	}
	said += sum.Refusal
	lines := slices.DeleteFunc(slices.Clone(r.Heaps()), func(s growth.HeapSeries) bool { return s.Reports[0].At == 0 }) // of traces
	for _, w := range want {
		if !fieldHas(lines, strings.Fields(w), said) {
			t.Errorf("no %q in %s%q", w, describe(lines), said)
		}
	}
}

// fieldHas reports whether the series have what a part of a line of truth.tsv says.
func fieldHas(list []growth.HeapSeries, want []string, said string) bool {
	if want[0] == "none" {
		return len(list) == 0 && regexp.MustCompile(want[1]).MatchString(said)
	}
	return slices.ContainsFunc(list, func(s growth.HeapSeries) bool {
		first, last := s.Reports[0], s.Reports[len(s.Reports)-1]
		if !last.Used.Known && last.Size.Known && last.Free.Known {
			last.Used.Bytes = last.Size.Bytes - last.Free.Bytes
		}
		a := map[string]profile.Amount{"free": last.Free, "used": last.Used, "largest": last.Largest, "least": last.Min, "total": last.Size, "limit": last.Size}
		switch want[0] {
		case "t":
			span := last.Time - first.Time
			if len(first.Stamps) > 0 && len(last.Stamps) > 0 {
				span = last.Stamps[0].At - first.Stamps[0].At
			}
			return fmt.Sprintf("%.0f", span.Seconds()) == want[1]
		case "boots":
			return fmt.Sprint(last.Boot) == want[1]
		}
		return fmt.Sprint(a[want[0]].Bytes) == want[1] && (len(want) < 3 || strings.Contains(s.Name, want[2]))
	})
}

func describe(list []growth.HeapSeries) string {
	var b strings.Builder
	for _, s := range list {
		last := s.Reports[len(s.Reports)-1]
		fmt.Fprintf(&b, "%q, %d: free %v, used %v, largest %v, least %v, size %v\n", s.Name, s.Total, last.Free, last.Used, last.Largest, last.Min, last.Size)
	}
	return b.String()
}
