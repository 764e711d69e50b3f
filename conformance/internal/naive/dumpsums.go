package naive

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// add64 returns a sum, which is at most 2^64 − 1. (BT-DUMP-2)
func (d *dumpReader) add64(a, b uint64) uint64 {
	limit := uint64(math.MaxUint64)
	switch d.bug {
	case "dumps-sums-wrap":
		return a + b
	case "dumps-sums-of-63-bits":
		limit = math.MaxInt64
	case "dumps-sums-of-32-bits":
		limit = math.MaxUint32
	}
	if b > limit-min(a, limit) {
		return limit
	}
	return a + b
}

// addUp adds up the entries of a dump. (BT-DUMP-2)
func (d *dumpReader) addUp(p *pathDump) {
	told := d.toldPaths(p)
	seen := map[uint64]bool{}
	for i, e := range p.entries {
		p.count, p.bytes = d.add64(p.count, e.live), d.add64(p.bytes, e.bytes)
		w := *e
		w.entry = d.resolve(told, e.entry)
		if w.base >= 2 && d.has("dumps-unknown-names-dropped") {
			continue
		}
		if d.has("dumps-blocks-at-one-address-once") {
			for _, b := range e.blocks {
				if seen[b.address] {
					w.live, w.bytes = w.live-1, w.bytes-b.size
				}
				seen[b.address] = true
			}
		}
		s := &pathSum{pathEntry: w, key: d.key(&w.entry, &e.entry), line: p.lines[i]}
		d.scale(s, p)
		at := slices.IndexFunc(p.sums, func(o *pathSum) bool {
			return o.key == s.key && (!d.has("dumps-added-up-by-line") || o.line == s.line)
		})
		switch {
		case at < 0:
			p.sums = append(p.sums, s)
		case d.has("dumps-last-entry"):
			p.sums[at] = s
		case d.has("dumps-first-entry"), d.has("dumps-diff-first-entry") && value(p.begin, "k") == "diff":
		default:
			d.add(p.sums[at], s, p)
		}
	}
	p.written = p.sums
}

// add adds the values of another entry of the path.
func (d *dumpReader) add(s, o *pathSum, p *pathDump) {
	s.live, s.bytes = d.add64(s.live, o.live), d.add64(s.bytes, o.bytes)
	if d.has("dumps-ever-once") {
		s.allocs, s.ever = o.allocs, o.ever
	} else {
		s.allocs, s.ever = d.add64(s.allocs, o.allocs), d.add64(s.ever, o.ever)
	}
	if d.has("dumps-peak-is-largest") {
		s.peak = max(s.peak, o.peak)
	} else {
		s.peak = d.add64(s.peak, o.peak)
	}
	s.estimate[0], s.estimate[1] = s.estimate[0]+o.estimate[0], s.estimate[1]+o.estimate[1]
	if d.has("dumps-scaled-as-one") {
		s.blocks = nil
		d.scale(s, p)
	}
}

// scale estimates the values of an entry of a sampled dump. (BT-DUMP-5)
func (d *dumpReader) scale(s *pathSum, p *pathDump) {
	rate, err := strconv.ParseUint(number(p.begin, "sample", false), 10, 64)
	if err != nil || rate == 1 && d.has("dumps-sample-1-is-none") {
		return
	}
	if d.has("dumps-sample-of-32-bits") {
		rate = uint64(uint32(rate))
	}
	s.scaled = true
	s.estimate = [2]float64{}
	add := func(live, bytes uint64) {
		chance := 1.0
		if live == 0 && bytes > 0 && d.has("dumps-scales-0-blocks") {
			live = 1
		}
		if live > 0 && bytes > 0 {
			size := float64(bytes) / float64(live)
			switch d.bug {
			case "dumps-scaled-by-rate":
				chance = min(1, size/float64(rate))
			case "dumps-scaled-inexactly":
				chance = float64(1 - float32(math.Exp(-size/float64(rate))))
			default:
				chance = -math.Expm1(-size / float64(rate))
			}
		}
		s.estimate[0], s.estimate[1] = s.estimate[0]+float64(live)/chance, s.estimate[1]+float64(bytes)/chance
	}
	if len(s.blocks) == 0 || d.has("dumps-scaled-by-mean") {
		add(s.live, s.bytes)
		return
	}
	for _, b := range s.blocks {
		add(1, b.size)
	}
}

// apply applies a difference to its base. (BT-DUMP-3)
func (d *dumpReader) apply(p *pathDump, earlier []*pathDump) {
	k := value(p.begin, "k")
	isDiff := k == "diff" || d.has("dumps-any-k-is-diff") && k != "" && k != "paths"
	p.sums = slices.Clone(p.sums)
	p.noBase = isDiff
	if d.has("dumps-diff-of-first") {
		earlier = slices.Clone(earlier)
		slices.Reverse(earlier)
	}
	inBoot := 0
	for _, base := range slices.Backward(earlier) {
		if base.boot == p.boot {
			inBoot++
		}
		if inBoot > 64 && !d.has("dumps-base-from-further-back") {
			break
		}
		if !isDiff || d.has("dumps-diff-alone") {
			break
		}
		if !d.isBase(base, p) {
			continue
		}
		p.noBase = !base.complete()
		from := base.sums
		if d.has("dumps-diff-of-written-base") {
			from = base.written
		}
		for _, s := range from {
			d.merge(p, s)
		}
		break
	}
	p.sums = slices.DeleteFunc(p.sums, func(s *pathSum) bool {
		return s.bytes == 0 && (s.live == 0 || d.has("dumps-diff-removes-0-bytes")) || s.live == 0 && d.has("dumps-0-blocks-left-out")
	})
}

// isBase reports whether a dump has the number and boot of the base of a difference.
func (d *dumpReader) isBase(base, p *pathDump) bool {
	number, want := base.number, number(p.begin, "base", false)
	switch d.bug {
	case "dumps-diff-of-last":
		return true
	case "dumps-diff-of-any-boot":
		return number == want
	case "dumps-diff-mod-64":
		n, _ := strconv.Atoi(number)
		w, _ := strconv.Atoi(want)
		return n%64 == w%64 && base.boot == p.boot
	case "dumps-diff-not-of-own-number":
		return number == want && number != p.number && base.boot == p.boot
	case "dumps-diff-of-complete":
		return number == want && base.boot == p.boot && base.complete()
	case "dumps-diff-without-base-of-0":
		want = cmp.Or(want, "0")
	case "dumps-diff-without-base-of-last":
		if want == "" {
			return base.boot == p.boot
		}
	}
	return number == want && base.boot == p.boot
}

// merge adds a path of the base.
func (d *dumpReader) merge(p *pathDump, s *pathSum) {
	i := slices.IndexFunc(p.sums, func(o *pathSum) bool {
		if d.has("dumps-diff-by-words") {
			return o.key == s.key && slices.ContainsFunc(p.entries, func(e *pathEntry) bool {
				return d.plain.pathWords(&e.entry) == d.plain.pathWords(&s.entry)
			})
		}
		return o.key == s.key
	})
	switch {
	case i < 0:
		taken := *s
		if d.has("dumps-base-scaled-by-own-sample") {
			d.scale(&taken, p)
		}
		if d.has("dumps-diff-drops-peaks") {
			taken.peak = 0
		}
		if d.has("dumps-diff-drops-ever") {
			taken.allocs, taken.ever = 0, 0
		}
		p.sums = append(p.sums, &taken)
	case d.has("dumps-diff-added"):
		p.sums[i].live += s.live
		p.sums[i].bytes += s.bytes
	case d.has("dumps-diff-keeps-peak"):
		p.sums[i].peak = max(p.sums[i].peak, s.peak)
	case d.has("dumps-diff-keeps-ever") && p.sums[i].allocs == 0:
		p.sums[i].allocs, p.sums[i].ever = s.allocs, s.ever
	case d.has("dumps-diff-keeps-removed") && p.sums[i].live == 0:
		p.sums[i] = s
	}
}

// lose computes what is missing. (BT-DUMP-4, BT-HEAD-4)
func (d *dumpReader) lose(p *pathDump) {
	lines := big.NewInt(p.gaps)
	first, last := number(p.begin, "l", false), number(p.end, "l", false)
	if first != "" && last != "" && !d.has("dumps-l-ignored") {
		n := new(big.Int).Sub(wide(last), wide(first))
		n.Sub(n, big.NewInt(p.read))
		if n.Sign() < 0 && !d.has("dumps-lines-negative") {
			n.SetInt64(0)
		}
		lines = n
	}
	if d.has("dumps-missing-of-63-bits") {
		lines = big.NewInt(lines.Int64())
	}
	p.lost = [3]string{lines.String(), "-", "-"}
	for i, key := range []string{"n", "b"} {
		said := number(p.end, key, false)
		if said == "" || d.has("dumps-begin-counts") && number(p.begin, key, false) != "" {
			said = number(p.begin, key, false)
		}
		if d.has("dumps-lost-events-are-blocks") && p.lostEvents {
			said = ""
		}
		if said == "" || p.end == nil && d.has("dumps-open-counts-nothing") {
			continue
		}
		n := wide(said)
		n.Sub(n, new(big.Int).SetUint64([]uint64{p.count, p.bytes}[i]))
		if n.Sign() < 0 && d.has("dumps-missing-not-negative") {
			n.SetInt64(0)
		}
		if cut := number(p.end, "cut", false); i == 0 && cut != "" && d.has("dumps-cut-is-missing") {
			n.Add(n, wide(cut))
		}
		if d.has("dumps-missing-of-63-bits") {
			n = big.NewInt(int64(n.Uint64()))
		}
		p.lost[i+1] = n.String()
	}
}

func wide(text string) *big.Int {
	n, _ := new(big.Int).SetString(text, 10)
	return n
}

// complete reports whether a dump has its end and its base, and lacks nothing.
func (p *pathDump) complete() bool {
	return p.end != nil && !p.noBase && strings.Trim(strings.Join(p.lost[:], ""), "0-") == ""
}

// words returns the dump in words.
func (d *dumpReader) words(p *pathDump) []string {
	head := fmt.Sprintf("dump=%s;boot=%s;missing=%s", p.number, p.boot, strings.Join(p.lost[:], ","))
	if p.end == nil {
		head += ";open"
	}
	if p.noBase {
		head += ";nobase"
	}
	words := []string{head}
	for _, s := range p.sums {
		word := fmt.Sprintf("%s;live=%d;bytes=%d", d.plain.pathWords(&s.entry), s.live, s.bytes)
		if s.allocs > 0 || s.ever > 0 {
			word += fmt.Sprintf(";ever=%d,%d", s.allocs, s.ever)
		}
		if s.peak > 0 {
			word += fmt.Sprintf(";peak=%d", s.peak)
		}
		if s.scaled {
			word += fmt.Sprintf(";est=%.0f,%.0f", s.estimate[0], s.estimate[1])
		}
		words = append(words, word)
	}
	return words
}
