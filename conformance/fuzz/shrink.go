package fuzz

import (
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
	return x.steps > shrinkRequests || x.Got.Trouble() && x.steps > crashRequests || since > shrinkTime ||
		f.For > 0 && time.Since(f.begun) > f.For+shrinkTime
}

// shrink makes the request of a finding smaller, as long as the answers differ in the same way. Forms are
// ordered: shorter ones first, then those of lower characters, so that it ends.
func (f *fuzzer) shrink(x *Finding) {
	simpler := x.Request
	if simpler.Lenient = false; simpler.Word > 0 {
		simpler.Word = 64
	}
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
			x.steps++
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
var edits = []func(text string) []string{dropParts("\n"), dropParts(" "), dropParts(";"), dropParts(","), dropParts("/"), lowerNumbers, dropBytes}

// dropParts returns the texts without some of the parts that a separator divides: half of them, a quarter …,
// one; and without what stands before or behind one separator, up to any other, as in 0:1/2;live=3.
func dropParts(sep string) func(text string) []string {
	return func(text string) (out []string) {
		parts := strings.SplitAfter(text, sep)
		for size := (len(parts) + 1) / 2; size > 0 && len(parts) > 1; size /= 2 {
			for from := 0; from < len(parts); from += size {
				rest := strings.Join(parts[:from], "") + strings.Join(parts[min(len(parts), from+size):], "")
				out = append(out, rest, strings.TrimSuffix(rest, sep))
			}
		}
		for at := 0; at < len(text) && sep != "\n"; at++ {
			if text[at] != sep[0] {
				continue
			}
			begin := strings.LastIndexAny(text[:at], ";,/ (:=\n") + 1
			end := at + 1 + len(text[at+1:])
			if n := strings.IndexAny(text[at+1:], ";,/ )}\n"); n >= 0 {
				end = at + 1 + n
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
		for _, to := range []string{"0", "1", n[:(len(n)+1)/2], n[1:], n[:len(n)-1], n[:len(n)-1] + string(n[len(n)-1]-1), "1" + n[1:]} {
			if to != "" && digitRuns.FindString(to) == to {
				out = append(out, strings.ReplaceAll(text, n, to), text[:at[0]]+to+text[at[1]:])
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
