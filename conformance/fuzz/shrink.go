package fuzz

import (
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/conformance"
)

// Limits of shrinking one finding.
const (
	shrinkRequests = 6000
	crashRequests  = 60 // each may cost a start
	shrinkTime     = 8 * time.Second
)

// spent reports whether a finding is made no smaller: its requests, its time or that of the run are used up.
func (f *fuzzer) spent(x *Finding) bool {
	since := time.Since(x.found)
	return x.Steps > shrinkRequests || x.Got.Trouble() && x.Steps > crashRequests || since > shrinkTime ||
		f.For > 0 && time.Since(f.begun) > f.For+shrinkTime
}

// shrink makes the request of a finding smaller, as long as the answers differ in the same way. Forms are
// ordered: shorter ones first, then those of lower characters, so that it ends.
func (f *fuzzer) shrink(x *Finding) {
	simpler := x.Request
	simpler.Word, simpler.Lenient = max(simpler.Word, 64*b2i(simpler.Word > 0)), false
	f.firstOf(x, []conformance.Request{simpler})
	for changed := true; changed; {
		changed = false
		for _, edit := range edits {
			for at := 0; at >= 0; {
				if f.spent(x) {
					return
				}
				var ok bool
				at, ok = f.try(x, edit(form(&x.Request)), at)
				changed = changed || ok
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// try asks the forms from number at on, a batch at a time. If one is taken, it returns its number, at
// which to go on with the same edit; -1 if none is left.
func (f *fuzzer) try(x *Finding, forms []string, at int) (next int, ok bool) {
	text := form(&x.Request)
	for at < len(forms) && !f.spent(x) {
		var list []conformance.Request
		var numbers []int
		for ; at < len(forms) && len(list) < conformance.Batch; at++ {
			if !simplerForm(forms[at], text) {
				continue
			}
			if r, good := withForm(x.Request, forms[at]); good && f.gen.fits(&r) {
				list, numbers = append(list, r), append(numbers, at)
			}
		}
		if i := f.firstOf(x, list); i >= 0 {
			return numbers[i], true
		}
	}
	return -1, false
}

func simplerForm(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	sum := 0
	for i := range len(a) {
		sum += int(a[i]) - int(b[i])
	}
	return sum < 0
}

// firstOf asks requests, takes the first whose answers differ as those of the finding do, and returns its
// number; -1 if none does.
func (f *fuzzer) firstOf(x *Finding, list []conformance.Request) int {
	for len(list) > 0 && !f.spent(x) {
		answers, err := f.testee.Ask(list)
		if err != nil || len(answers) == 0 {
			return -1
		}
		for i, got := range answers {
			x.Steps++
			want := right(&list[i])
			if !want.Trouble() && list[i].Compare(want, got) == x.Field {
				x.Request, x.Want, x.Got = list[i], want, got
				return i
			}
		}
		list = list[len(answers):]
	}
	return -1
}

// edits are the kinds of edits, of whole lines first.
var edits = []func(text string) []string{
	dropParts("\n"), dropParts(" "), dropParts(";"), dropParts(","), dropParts("/"), lowerNumbers, lowerTogether, dropBytes, lowerBytes, dropPairs,
}

// dropParts returns the texts without some of the parts that a separator divides: half of them, a quarter …,
// one; and without one part up to any other separator, as in 0:1/2;live=3.
func dropParts(sep string) func(text string) []string {
	return func(text string) (out []string) {
		parts := strings.SplitAfter(text, sep)
		for size := (len(parts) + 1) / 2; size > 0 && len(parts) > 1; size /= 2 {
			for from := 0; from < len(parts); from += size {
				rest := strings.Join(parts[:from], "") + strings.Join(parts[min(len(parts), from+size):], "")
				out = append(out, rest, strings.TrimSuffix(rest, sep))
			}
		}
		for from := 0; sep != "\n"; {
			at := strings.Index(text[from:], sep)
			if at < 0 {
				break
			}
			at += from
			from = at + 1
			end, begin := at+1, at
			for end < len(text) && !strings.ContainsRune(";,/ )}\n", rune(text[end])) {
				end++
			}
			for begin > 0 && !strings.ContainsRune(";,/ (:=\n", rune(text[begin-1])) {
				begin--
			}
			out = append(out, text[:at]+text[end:], text[:begin]+text[at+1:])
		}
		return out
	}
}

// lowerNumbers returns the texts with one number lower, and all that are equal to it.
func lowerNumbers(text string) (out []string) {
	for _, at := range digitRuns.FindAllStringIndex(text, -1) {
		n := text[at[0]:at[1]]
		last := n[len(n)-1] - 1
		if last == 'a'-1 {
			last = '9'
		}
		for _, to := range []string{"0", "1", n[:(len(n)+1)/2], n[1:], n[:len(n)-1], n[:len(n)-1] + string(last), "1" + n[1:]} {
			if to == "" || to == n || n == "0" {
				continue
			}
			if len(n) > 1 && strings.Count(text, n) > 1 {
				out = append(out, strings.ReplaceAll(text, n, to))
			}
			out = append(out, text[:at[0]]+to+text[at[1]:])
		}
	}
	return out
}

// lowerTogether returns the texts with two numbers lower that may depend on each other, such as that of a
// dump and of its lines.
func lowerTogether(text string) (out []string) {
	all := digitRuns.FindAllStringIndex(text, -1)
	if len(all) > 40 {
		return nil
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			for _, to := range []string{"0", "1"} {
				out = append(out, text[:a[0]]+to+text[a[1]:b[0]]+to+text[b[1]:])
			}
		}
	}
	return out
}

// dropBytes returns the texts without some bytes.
func dropBytes(text string) (out []string) {
	for size := len(text) / 2; size > 0 && len(text) <= 3000; size /= 2 {
		for from := 0; from+size <= len(text); from += size {
			out = append(out, text[:from]+text[from+size:])
		}
	}
	return out
}

// lowerBytes returns the texts with one byte replaced by a simpler one.
func lowerBytes(text string) (out []string) {
	for i := 0; i < len(text) && len(text) <= 1500; i++ {
		for _, to := range []byte("0A a1B") {
			if to < text[i] {
				out = append(out, text[:i]+string(to)+text[i+1:])
			}
		}
	}
	return out
}

// dropPairs returns the texts without two lines or words: a frame and what refers to it.
func dropPairs(text string) (out []string) {
	parts := strings.SplitAfter(text, "\n")
	if len(parts) < 3 {
		parts = strings.SplitAfter(text, " ")
	}
	for i := 0; i < len(parts) && len(parts) <= 24; i++ {
		for k := i + 1; k < len(parts); k++ {
			rest := slices.Delete(slices.Clone(parts), k, k+1)
			out = append(out, strings.Join(slices.Delete(rest, i, i+1), ""))
		}
	}
	return out
}
