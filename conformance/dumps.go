package conformance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// pathDump is a dump of call paths.
type pathDump struct {
	Number uint64
	Boot   int       // ~h#boot headers above it
	Lost   [3]string // lines, live blocks and bytes that are missing, - if not known
	Open   bool      // not complete
	NoBase bool      // a difference from a dump that is missing or not complete
	Paths  []pathTotal
}

// pathTotal is the sum of the entries of a path in a dump.
type pathTotal struct {
	callpath.Path
	callpath.PathSum
	Estimated bool
}

// dumpsWords returns the dumps of a log in words: each dump, and then its paths.
func dumpsWords(dumps []pathDump) string {
	var list []string
	for _, d := range dumps {
		head := fmt.Sprintf("dump=%d;boot=%d;missing=%s", d.Number, d.Boot, strings.Join(d.Lost[:], ","))
		if d.Open {
			head += ";open"
		}
		if d.NoBase {
			head += ";nobase"
		}
		var paths []string
		for _, p := range d.Paths {
			text := fmt.Sprintf("%s;live=%d;bytes=%d", words.Path(p.Path), p.Live, p.Bytes)
			if p.Allocs > 0 || p.AllocBytes > 0 {
				text += fmt.Sprintf(";ever=%d,%d", p.Allocs, p.AllocBytes)
			}
			if p.Peak > 0 {
				text += fmt.Sprintf(";peak=%d", p.Peak)
			}
			if p.Estimated {
				text += fmt.Sprintf(";est=%.0f,%.0f", math.Round(p.LiveEst), math.Round(p.BytesEst))
			}
			paths = append(paths, text)
		}
		list = append(append(list, head), paths...)
	}
	return cmp.Or(strings.Join(list, " "), "-")
}

// sameDumps compares the answer to a dumps request with the expected words. Three differences
// violate only a SHOULD, so they cause a warning: no losses at all (BT-HEAD-4, BT-DUMP-4), no
// estimates at all (BT-DUMP-5), and other paths of a difference without its base (BT-DUMP-3).
// Losses and estimates that an answer does show must be right.
func sameDumps(want, got string) (right bool, warning string) {
	w, g := strings.Split(sortedDumps(want), " "), strings.Split(sortedDumps(got), " ")
	if slices.Equal(w, g) {
		return true, ""
	}
	warning = differentWords(w, g)
	noLosses := !slices.ContainsFunc(g, func(word string) bool {
		return strings.HasPrefix(word, "dump=") && !strings.Contains(word, ";missing=-,-,-")
	})
	noEstimates := !strings.Contains(got, ";est=")
	switch {
	case noLosses:
		warning = "shows no losses"
	case noEstimates && strings.Contains(want, ";est="):
		warning = "shows no estimates of a sampled dump"
	}
	skip := withoutBase(w)
	musts := func(words []string) (list []string) {
		dump := -1
		for _, word := range words {
			switch {
			case strings.HasPrefix(word, "dump="):
				dump++
				if noLosses {
					word, _, _ = strings.Cut(word, ";missing=")
				}
			case dump >= 0 && dump < len(skip) && skip[dump]:
				continue
			case noEstimates:
				word, _, _ = strings.Cut(word, ";est=")
			}
			list = append(list, word)
		}
		return list
	}
	if slices.Equal(musts(w), musts(g)) {
		return true, warning
	}
	return false, ""
}

// sortedDumps returns the words, with the paths of each dump sorted.
func sortedDumps(text string) string {
	words := strings.Split(text, " ")
	for i, from := 0, 0; i <= len(words); i++ {
		if i == len(words) || strings.HasPrefix(words[i], "dump=") {
			slices.Sort(words[from:i])
			from = i + 1
		}
	}
	return strings.Join(words, " ")
}

// withoutBase reports for each dump whether its base is missing or not complete.
func withoutBase(words []string) (list []bool) {
	for _, word := range words {
		if strings.HasPrefix(word, "dump=") {
			list = append(list, strings.HasSuffix(word, ";nobase"))
		}
	}
	return list
}

// differentWords describes the first word in which an answer differs from the expected words.
func differentWords(w, g []string) string {
	for i := 0; ; i++ {
		switch {
		case i == len(w) || i == len(g):
			return fmt.Sprintf("%d words, expected %d", len(g), len(w))
		case w[i] != g[i]:
			return fmt.Sprintf("%s, expected %s", clip(g[i]), clip(w[i]))
		}
	}
}
