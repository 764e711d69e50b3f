package forms

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Suggestion is an expression for a line that may say what is free or used, although nothing was read.
type Suggestion struct {
	Line   string // the line
	Number string // the number in it
	Expr   string // for --heap-line
}

// candidate is a form of lines with a number that may be what is free.
type candidate struct {
	Suggestion
	shape   string // the line without its numbers
	count   int    // lines
	changes bool   // of the number
	memory  bool   // the words in front of the number are of a memory
	used    bool   // they say that it is used
}

const (
	// maxCandidates is the number of forms that are compared, maxCandidate the bytes of a line, and
	// maxConsidered the number of lines that are examined.
	maxCandidates = 64
	maxCandidate  = 300
	maxConsidered = 20000
)

var (
	largeNumber = regexp.MustCompile(`0[xX][0-9a-fA-F]{3,8}|\d{1,3}(?:[.,]\d{3})+\b|\d+(?:\.\d+)?`)
	memoryWord  = regexp.MustCompile(`(?i)heap|free|mem|ram\b|avail|speicher`)
	usedWord    = regexp.MustCompile(`(?i)rss\b|alloc|used|usage|in use`) // without a freeWord, a number that grows while what is free falls
	otherWord   = regexp.MustCompile(`(?i)peak|max|total`)                // with a usedWord: not what is used now
	freeWord    = regexp.MustCompile(`(?i)free|avail|left`)
	allNumbers  = regexp.MustCompile(`0[xX][0-9a-fA-F]+|\d+`)
	// wordsBefore are up to three words in front of a number, with what stands between them.
	wordsBefore = regexp.MustCompile(`(?:[\pL_$]+[\pL\d_$]*[^\pL\d]{1,4}){1,3}$|[^\pL\d\s]{1,3}$`)
	unitBehind  = regexp.MustCompile(`^( ?[KMk]i?B)\b *(?:[^=: ]|$)`)
)

// consider takes a line of which nothing was read, as long as nothing else was.
func (s *state) consider(line []byte) {
	if len(s.systems) > 0 || len(line) > maxCandidate || s.considered == maxConsidered {
		return
	}
	s.considered++
	shape := allNumbers.ReplaceAll(line, []byte("0"))
	i := slices.IndexFunc(s.candidates, func(c candidate) bool { return c.shape == string(shape) })
	if i < 0 {
		if len(s.candidates) == maxCandidates {
			return
		}
		c, ok := suggest(line)
		if !ok {
			return
		}
		c.shape, i = string(shape), len(s.candidates)
		s.candidates = append(s.candidates, c)
	}
	c := &s.candidates[i]
	c.count++
	c.changes = c.changes || c.count < 100 && !bytes.Contains(line, []byte(c.Number))
}

// suggest returns the number of a line that most likely is what is free, or else what is used.
func suggest(line []byte) (best candidate, ok bool) {
	for _, at := range largeNumber.FindAllIndex(line, maxHeaps) {
		number, before := line[at[0]:at[1]], line[:at[0]]
		label := wordsBefore.Find(before)
		used := usedWord.Match(label) && !freeWord.Match(label)
		if label == nil || len(number) < 3 || used && otherWord.Match(label) ||
			bytes.HasSuffix(before, []byte(":")) && isDigitAt(before, len(before)-2) {
			continue
		}
		c := candidate{Suggestion: Suggestion{string(line), string(number), ""}, memory: memoryWord.Match(label), used: used}
		if ok && (c.used && !best.used || c.used == best.used && (!c.memory || best.memory)) {
			continue
		}
		digits, group := `\d+`, "free"
		if used {
			group = "used"
		}
		switch {
		case bytes.HasPrefix(bytes.ToLower(number), []byte("0x")):
			digits = `0x[0-9A-Fa-f]+`
		case bytes.ContainsAny(number, ".,"):
			digits = `[\d.,]+`
		}
		if unit := unitBehind.FindSubmatch(line[at[1]:]); unit != nil {
			digits += string(unit[1])
		}
		c.Expr = strings.ReplaceAll(allNumbers.ReplaceAllString(regexp.QuoteMeta(string(label)), `\d+`), "'", ".") + `(?P<` + group + `>` + digits + `)`
		best, ok = c, true
	}
	return best, ok
}

func isDigitAt(text []byte, i int) bool { return i >= 0 && isDigit(text[i]) }

// Suggestion returns an expression for the lines that most likely say what is free: those of a memory
// first, then those whose number changes, then the most frequent ones. ok is false if there are none.
func (s *state) Suggestion() (x Suggestion, ok bool) {
	var best candidate
	for _, c := range s.candidates {
		more := c.count > best.count
		if c.changes != best.changes {
			more = c.changes
		}
		if c.memory != best.memory {
			more = c.memory
		}
		if c.count > 1 && (c.memory || c.changes && strings.ContainsAny(c.Expr, "=:")) && more {
			best = c
		}
	}
	return best.Suggestion, best.count > 0
}
