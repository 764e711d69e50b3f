package callpath

import (
	"math"

	"github.com/lwsbt/lwsbt/codec"
)

// LineEnd returns the length of the ~p# or ~v# line that text begins with: the lead-in
// and all digits after it. The length is len(text) if the line may continue after text, and
// 0 if text begins with neither lead-in. LineEnd does not check the line. (BT-PLINE-4)
func LineEnd(text []byte) int {
	if len(text) < len(LeadIn) || text[0] != '~' || text[1] != 'p' && text[1] != 'v' || text[2] != '#' {
		return 0
	}
	n := len(LeadIn)
	for n < len(text) && valueOf[text[n]] != noDigit {
		n++
	}
	return n
}

// KeepsNames reports whether the names of one boot are valid in the next boot: their
// ~h#boot lines have the same build, code and shift. If neither line has the key code, the
// caller must make sure that both boots use the code ranges of one ELF file. (BT-NAME-3)
func KeepsNames(before, after *codec.Header) bool {
	build, ok := before.Get("build")
	again, also := after.Get("build")
	if !ok || !also || build != again {
		return false
	}
	shift, _ := before.Uint("shift")
	shiftAgain, _ := after.Uint("shift")
	code, _ := before.Get("code")
	codeAgain, _ := after.Get("code")
	ranges, ok := codec.ParseRanges(code)
	rangesAgain, also := codec.ParseRanges(codeAgain)
	if shift != shiftAgain || ok != also || len(ranges) != len(rangesAgain) {
		return false
	}
	for i := range ranges {
		if ranges[i] != rangesAgain[i] {
			return false
		}
	}
	return true
}

// Scale estimates the blocks and bytes of a heap from a sample. rate is the mean number of
// bytes between samples; live blocks of equal size, bytes in total, are in the sample.
// variance is the variance of scaledBytes. If rate or live is 0, Scale returns live and
// bytes. (BT-DUMP-5)
func Scale(live, bytes, rate uint64) (scaledLive, scaledBytes, variance float64) {
	n, b := float64(live), float64(bytes)
	if rate == 0 || live == 0 || bytes == 0 {
		return n, b, 0
	}
	s := b / n
	p := -math.Expm1(-s / float64(rate))
	return n / p, b / p, n * s * s * (1 - p) / (p * p)
}
