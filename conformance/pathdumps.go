package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
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
	var words []string
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
			text := fmt.Sprintf("%s;live=%d;bytes=%d", pathText(p.Path), p.Live, p.Bytes)
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
		words = append(append(words, head), paths...)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

// sameDumps compares the answer to a dumps request with the expected words. Different losses
// (BT-HEAD-4, BT-DUMP-4) and different paths of a difference without its base (BT-DUMP-3)
// violate only a SHOULD, so they cause a warning. An answer without estimates is right, since a
// reader need not show them (BT-DUMP-5); it causes a warning, too.
func sameDumps(want, got string) (right bool, warning string) {
	if want, got = sortedDumps(want), sortedDumps(got); want == got {
		return true, ""
	}
	w, g := mustsOf(want, noBases(want)), mustsOf(got, noBases(want))
	if slices.Equal(w, g) {
		return true, differentWords(want, got)
	}
	plain := func(words []string) []string {
		words = slices.Clone(words)
		for i := range words {
			words[i], _, _ = strings.Cut(words[i], ";est=")
		}
		return words
	}
	if !strings.Contains(got, ";est=") && slices.Equal(plain(w), g) {
		return true, "shows no estimates of a sampled dump"
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

// noBases reports for each dump whether its base is missing.
func noBases(words string) (list []bool) {
	for _, word := range strings.Split(words, " ") {
		if strings.HasPrefix(word, "dump=") {
			list = append(list, strings.HasSuffix(word, ";nobase"))
		}
	}
	return list
}

// mustsOf returns the words that a MUST requires. skip marks the dumps whose paths are only a SHOULD.
func mustsOf(words string, skip []bool) (list []string) {
	dump := -1
	for _, word := range strings.Split(words, " ") {
		if strings.HasPrefix(word, "dump=") {
			dump++
			word, _, _ = strings.Cut(word, ";missing=")
		} else if dump >= 0 && dump < len(skip) && skip[dump] {
			continue
		}
		list = append(list, byName(word))
	}
	return strings.Split(sortedDumps(strings.Join(list, " ")), " ")
}

// byName returns the entry of a path. If the path begins with an unknown name, byName replaces
// this name and the frames after it by the name of the whole path, because how many frames a
// reader shows after an unknown name is only a SHOULD (BT-NAME-2).
func byName(entry string) string {
	path, values, _ := strings.Cut(entry, ";")
	p, err := parsePath(path)
	if err != nil || p.Base != callpath.Named {
		return entry
	}
	return fmt.Sprintf("2:%08x;%s", p.Name(), values)
}

// differentWords returns the first word in which two answers differ.
func differentWords(want, got string) string {
	w, g := strings.Split(want, " "), strings.Split(got, " ")
	for i := 0; ; i++ {
		switch {
		case i == len(w) || i == len(g):
			return fmt.Sprintf("%d words, expected %d", len(g), len(w))
		case w[i] != g[i]:
			return fmt.Sprintf("%s, expected %s", clip(g[i]), clip(w[i]))
		}
	}
}
