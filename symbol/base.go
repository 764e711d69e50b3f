package symbol

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// ReturnAddr is a return address of a dump. If Lossy, only its low 31 bits are
// known.
type ReturnAddr struct {
	PC    uint64
	Lossy bool
}

// Base is the load base of a file, inferred from the return addresses of a dump.
type Base struct {
	File *File
	// Bias is the address in memory minus the address in the file. If Exact is false, Bias
	// is known only modulo 2^31, because every address of the file had lost its upper bits.
	Bias  uint64
	Exact bool

	Votes    int // addresses that follow a call at this base
	InCode   int // addresses that are in the file's code at this base
	RunnerUp int // votes for the next best base
	// logP is the base-10 logarithm of the probability that any wrong base gets this many
	// votes.
	logP float64
}

// Sound reports whether there is enough evidence for the base.
func (b Base) Sound() bool {
	return b.Votes > 0 && b.logP <= maxLogP && float64(b.Votes) >= minShare*float64(b.InCode) && b.Votes >= 2*b.RunnerUp
}

// String returns the evidence for the base. If the base is not sound, String also names the
// evidence needed.
func (b Base) String() string {
	if b.Sound() || b.File == nil {
		return fmt.Sprintf("%d of the %d addresses in its code follow a call, %d at the next best base",
			b.Votes, b.InCode, b.RunnerUp)
	}
	density := min(max(b.File.calls().density, 1e-9), 0.99)
	needed := math.Ceil((maxLogP - basesBits*math.Log10(2)) / math.Log10(density))
	return fmt.Sprintf("at the best one, %d of the %d addresses in its code follow a call, at the next best, %d; needed are about %.0f, %.0f %% of them, and twice as many as at the next best",
		b.Votes, b.InCode, b.RunnerUp, needed, 100*minShare)
}

// Limits for a sound base.
const (
	maxLogP    = -6.0 // at most one wrong base in a million dumps
	minShare   = 0.9  // share of the addresses in code that follow a call
	basesBits  = 31 - 12
	basesCount = 1 << basesBits
)

// InferBases infers the load bases of files from the return addresses of a dump. A load
// base is a multiple of the page size, and a return address follows a call, so each address
// votes for the bases at which it would follow a call. The result has the best base of each
// file, the most certain first, and bases that are not [Base.Sound] last. An address votes
// for at most one sound base.
//
// Equal addresses of a dump count once.
func InferBases(files []*File, seen []ReturnAddr) []Base {
	seen = distinct(seen)
	var found []Base
	all, left := seen, slices.DeleteFunc(slices.Clone(files), func(f *File) bool { return f == nil })
	for len(left) > 0 {
		var best Base
		at := -1
		for i, f := range left {
			if b := f.vote(seen); b.Sound() && (at < 0 || b.logP < best.logP) {
				best, at = b, i
			}
		}
		if at < 0 {
			break
		}
		left = slices.Delete(left, at, at+1)
		seen = best.complete(seen)
		found = append(found, best)
	}
	for _, f := range left {
		if b := f.vote(all); !b.Sound() {
			found = append(found, b)
		} else { // the votes came from addresses of another file
			found = append(found, f.vote(seen))
		}
	}
	return found
}

// distinct keeps one address for each value of the low bits, preferably one that is not
// lossy.
func distinct(seen []ReturnAddr) []ReturnAddr {
	seen = slices.Clone(seen)
	slices.SortFunc(seen, func(a, b ReturnAddr) int {
		if c := cmp.Compare(a.PC&low31Mask, b.PC&low31Mask); c != 0 {
			return c
		}
		switch {
		case a.Lossy == b.Lossy:
			return cmp.Compare(a.PC, b.PC)
		case b.Lossy:
			return -1
		}
		return 1
	})
	return slices.CompactFunc(seen, func(a, b ReturnAddr) bool { return a.PC&low31Mask == b.PC&low31Mask })
}

// vote returns the base with the most votes of the addresses.
func (f *File) vote(seen []ReturnAddr) Base {
	calls := f.calls()
	if calls.n == 0 {
		return Base{File: f}
	}
	seen = calls.sample(seen)
	votes := make([]int32, basesCount)
	for _, s := range seen {
		pc := f.arch.Strip(s.PC)
		for _, v := range calls.page[pc%pageSize] {
			votes[(pc-v)>>12&(basesCount-1)]++
		}
	}
	b := Base{File: f}
	for page, n := range votes {
		if n := int(n); n > b.Votes {
			b.Bias, b.Votes, b.RunnerUp = uint64(page)<<12, n, b.Votes
		} else {
			b.RunnerUp = max(b.RunnerUp, n)
		}
	}
	for _, s := range seen {
		if _, ok := f.own(b.Bias, s.PC); ok {
			b.InCode++
		}
	}
	b.logP = logTail(b.InCode, b.Votes, calls.density) + basesBits*math.Log10(2)
	return b
}

// maxVotes is the approximate limit for the votes per file.
const maxVotes = 1 << 30

// sample returns all addresses, or an evenly spaced sample if there would be too many
// votes.
func (c *callSet) sample(seen []ReturnAddr) []ReturnAddr {
	longest := 0
	for _, list := range c.page {
		longest = max(longest, len(list))
	}
	step := 1 + int(int64(len(seen))*int64(longest)/maxVotes)
	if step == 1 {
		return seen
	}
	var some []ReturnAddr
	for i := 0; i < len(seen); i += step {
		some = append(some, seen[i])
	}
	return some
}

// own returns the file's own address for an address in memory at a base, both modulo 2^31,
// and reports whether it is in the file's code.
func (f *File) own(base, pc uint64) (uint64, bool) {
	for _, s := range f.text {
		if off := (pc - base - s.addr) & low31Mask; off < s.end-s.addr {
			return s.addr + off, true
		}
	}
	return 0, false
}

// complete finds the upper bits of the base, if any address has them. It returns the
// addresses that are not in the file.
func (b *Base) complete(seen []ReturnAddr) []ReturnAddr {
	full := map[uint64]int{}
	rest := slices.DeleteFunc(slices.Clone(seen), func(s ReturnAddr) bool {
		own, ok := b.File.own(b.Bias, s.PC)
		if !ok || !b.File.FollowsCall(own) {
			return false
		}
		if !s.Lossy {
			full[s.PC-own]++
		}
		return true
	})
	if len(full) == 1 {
		for base := range full {
			b.Bias, b.Exact = base, true
		}
	}
	return rest
}

// ownAddr returns the file's own address for a return address of the dump. It reports
// whether the address is in the file's code and, unless base and address are exact, follows
// a call.
func (b *Base) ownAddr(s ReturnAddr) (uint64, bool) {
	if !s.Lossy && b.Exact {
		own := s.PC - b.Bias
		return own, b.File.Executable(own)
	}
	own, ok := b.File.own(b.Bias&low31Mask, s.PC)
	return own, ok && b.File.FollowsCall(own)
}

// logTail returns the base-10 logarithm of the probability of at least k successes in n
// trials, each with probability p.
func logTail(n, k int, p float64) float64 {
	if k <= 0 || k > n {
		return 0
	}
	p = min(max(p, 1e-9), 1-1e-9)
	// The largest term, and the sum of all relative to it.
	term := func(i int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		return a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p)
	}
	top := math.Inf(-1)
	for i := k; i <= n; i++ {
		top = max(top, term(i))
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(term(i) - top)
	}
	return min(0, (top+math.Log(sum))/math.Ln10)
}
