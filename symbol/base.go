package symbol

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Seen is a return address of a dump. If Hurt, only its low 31 bits are known.
type Seen struct {
	PC   uint64
	Hurt bool
}

// Base is where a file was loaded, as far as a dump's return addresses tell.
type Base struct {
	File *File
	// Low is the difference of an address in memory and in the file, modulo 2^31.
	Low uint64
	// Full is the whole difference, if Whole: some address was not hurt.
	Full  uint64
	Whole bool

	Votes int // addresses that follow a call at this base
	Of    int // addresses that fall into the file's code at this base
	Next  int // votes for the next best base
	// Chance is the logarithm to base 10 of how likely any wrong base at all gets
	// so many votes.
	Chance float64
}

func (b Base) String() string {
	return fmt.Sprintf("%s: %d of the %d addresses in its code follow a call, %d at the next best base",
		b.File.Path, b.Votes, b.Of, b.Next)
}

// What a base must show before it is believed.
const (
	maxChance  = -6.0 // no more than one wrong base in a million dumps
	minShare   = 0.9  // of addresses in the code that follow a call
	basesBits  = 31 - 12
	basesCount = 1 << basesBits
)

// FindBase finds where files were loaded from the return addresses of a dump
// alone. A base keeps the offset in a page, and return addresses follow calls:
// so each address votes for the bases at which it would. One base for each file;
// the file whose base is the surest takes its addresses first. Files without a
// sound base are not in the result.
//
// Two addresses of one dump that are equal count once.
func FindBase(files []*File, seen []Seen) []Base {
	seen = distinct(seen)
	var found []Base
	left := slices.Clone(files)
	for len(left) > 0 && len(seen) > 0 {
		best, at := Base{}, -1
		for i, f := range left {
			if b, ok := f.vote(seen); ok && (at < 0 || b.Chance < best.Chance) {
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
	return found
}

// distinct keeps one of the addresses with the same low bits, an unhurt one if
// there is one.
func distinct(seen []Seen) []Seen {
	seen = slices.Clone(seen)
	slices.SortFunc(seen, func(a, b Seen) int {
		if c := cmp.Compare(a.PC&lowMask, b.PC&lowMask); c != 0 {
			return c
		}
		switch {
		case a.Hurt == b.Hurt:
			return cmp.Compare(a.PC, b.PC)
		case b.Hurt:
			return -1
		}
		return 1
	})
	return slices.CompactFunc(seen, func(a, b Seen) bool { return a.PC&lowMask == b.PC&lowMask })
}

// vote lets each address vote and returns the base with the most, if it is sound.
func (f *File) vote(seen []Seen) (Base, bool) {
	calls := f.calls()
	if calls.n == 0 {
		return Base{}, false
	}
	votes := make([]int32, basesCount)
	for _, s := range seen {
		pc := f.codeAddr(s.PC)
		for _, v := range calls.page[pc%pageSize] {
			votes[(pc-v)>>12&(basesCount-1)]++
		}
	}
	best, next := 0, 0
	for i, n := range votes {
		if n > votes[best] {
			best = i
		}
	}
	for i, n := range votes {
		if i != best && int(n) > next {
			next = int(n)
		}
	}
	b := Base{File: f, Low: uint64(best) << 12, Votes: int(votes[best]), Next: next}
	for _, s := range seen {
		if f.textAt(b.Low, s.PC) {
			b.Of++
		}
	}
	b.Chance = tail(b.Of, b.Votes, calls.density) + basesBits*math.Log10(2)
	return b, b.Chance <= maxChance && float64(b.Votes) >= minShare*float64(b.Of) && b.Votes >= 2*next
}

// own is the file's own address for an address in memory at a base, modulo 2^31
// both, and whether that lies in its code.
func (f *File) own(base, pc uint64) (uint64, bool) {
	for _, s := range f.text {
		if off := (pc - base - s.addr) & lowMask; off < s.end-s.addr {
			return s.addr + off, true
		}
	}
	return 0, false
}

func (f *File) textAt(base, pc uint64) bool {
	_, ok := f.own(base, pc)
	return ok
}

// complete finds the upper bits of the base, if any address has them, and
// returns the addresses that are not the file's.
func (b *Base) complete(seen []Seen) []Seen {
	full := map[uint64]int{}
	rest := slices.DeleteFunc(slices.Clone(seen), func(s Seen) bool {
		own, ok := b.File.own(b.Low, s.PC)
		if !ok || !b.File.FollowsCall(own) {
			return false
		}
		if !s.Hurt {
			full[s.PC-own]++
		}
		return true
	})
	if len(full) == 1 {
		for base := range full {
			b.Full, b.Whole = base, true
		}
	}
	return rest
}

// Own is the file's own address for a return address of the dump. It says no
// where the address is not in the file's code, or follows no call there.
func (b *Base) Own(s Seen) (uint64, bool) {
	if !s.Hurt && b.Whole {
		own := s.PC - b.Full
		return own, b.File.Text(own)
	}
	own, ok := b.File.own(b.Low, s.PC)
	return own, ok && b.File.FollowsCall(own)
}

// tail is the logarithm to base 10 of the probability that of n trials at least
// k succeed, each with probability p.
func tail(n, k int, p float64) float64 {
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
