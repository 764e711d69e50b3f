package forms

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReports reads forms that people have pasted into public reports, 20 times with other numbers. In
// testdata/reports.txt, ## and the report are followed by what is right, and by the lines: {9-1} is a number
// that falls by 1, {m} the two digits of a minute. What is right was written before the reader saw the form:
//
//	used 5104 name   the last value of a series, and a word of its name
//	size 5104        the size of a heap
//	t 1140           the seconds between the first and the last report
//	n 1              the number of series
//	untimed          no report has a time
//	none             nothing is read, and the refusal has a word
//	?used 5104       the same, or nothing is read
func TestReports(t *testing.T) {
	text, err := os.ReadFile("testdata/reports.txt")
	if err != nil {
		t.Fatal(err)
	}
	right, refused, mute := 0, 0, 0
	blocks := strings.Split("\n"+string(text), "\n## ")[1:]
	for _, block := range blocks {
		name, rest, _ := strings.Cut(block, "\n")
		want, lines, _ := strings.Cut(rest, "\n")
		res := Read(strings.NewReader(repeat(lines)))
		if len(res.Heaps) > 0 {
			right++
		} else if refused++; res.Refusal == "" {
			mute++
			t.Logf("%s: refused without a reason", name)
		}
		for _, w := range strings.Split(want, ";") {
			if !reportHas(res.Heaps, w) {
				t.Errorf("%s: no %q; %q", name, w, res.Refusal)
				for i := range res.Heaps {
					h := &res.Heaps[i]
					t.Logf("  %q %q %q: %+v", h.Source, h.Name, h.Label, h.Reports[len(h.Reports)-1])
				}
			}
		}
	}
	t.Logf("%d forms: %d read, %d refused, %d of these without a reason", len(blocks), right, refused, mute)
	if mute*10 > refused {
		t.Errorf("%d of %d refusals have no word", mute, refused)
	}
}

var variable = regexp.MustCompile(`\{(m|([\d.]+)([+-][\d.]+))\}`)

// repeat returns the lines of a form 20 times.
func repeat(lines string) string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(variable.ReplaceAllStringFunc(strings.TrimRight(lines, "\n")+"\n", func(s string) string {
			m := variable.FindStringSubmatch(s)
			if m[1] == "m" {
				return fmt.Sprintf("%02d", i)
			}
			from, _ := strconv.ParseFloat(m[2], 64)
			step, _ := strconv.ParseFloat(m[3], 64)
			decimals := 0
			if k := strings.IndexByte(m[2], '.'); k >= 0 {
				decimals = len(m[2]) - k - 1
			}
			return strconv.FormatFloat(from+step*float64(i), 'f', decimals, 64)
		}))
	}
	return b.String()
}

func reportHas(heaps []Heap, want string) bool {
	p := strings.Fields(want)
	if q, maybe := strings.CutPrefix(p[0], "?"); maybe {
		if len(heaps) == 0 {
			return true
		}
		p[0] = q
	}
	switch p[0] {
	case "none":
		return len(heaps) == 0
	case "untimed":
		return !slices.ContainsFunc(heaps, func(h Heap) bool {
			return slices.ContainsFunc(h.Reports, func(r Report) bool {
				_, dated := r.Date()
				_, since := r.SinceBoot()
				return dated || since
			})
		})
	case "n":
		return strconv.Itoa(len(heaps)) == p[1]
	}
	for i := range heaps {
		h := &heaps[i]
		first, last := h.Reports[0], h.Reports[len(h.Reports)-1]
		var v float64
		switch p[0] {
		case "free":
			v = last.Free
		case "used":
			if v = last.Used; v < 0 && last.Size >= 0 {
				v = last.Size - last.Free
			}
		case "size":
			v = last.Size
		case "largest":
			v = last.Largest
		case "least":
			v = last.Least
		case "t":
			v = last.seconds() - first.seconds()
		}
		if fmt.Sprintf("%.0f", v) == p[1] && (len(p) < 3 || strings.Contains(h.Source+" "+h.Name, p[2])) {
			return true
		}
	}
	return false
}
