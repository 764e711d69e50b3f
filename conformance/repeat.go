package conformance

import (
	"fmt"
	"strings"
)

// Repeat holds the parts of a command that repeats a failure: the paths of the vectors, flags,
// and the command line of the testee.
type Repeat struct {
	Flags   []string // flags that change the requests
	Vectors []string
	Testee  []string // program and arguments; none for the codec itself
}

// Command returns the shell command that runs the vector of r alone.
func (p Repeat) Command(r *Result, seed uint64) string {
	words := []string{"btconform", "--run", quote(r.ID)}
	if r.Failure != nil && r.Failure.random {
		words = append(words, fmt.Sprintf("--seed=%d", seed))
	}
	for _, w := range append(p.Flags, p.Vectors...) {
		words = append(words, quote(w))
	}
	if len(p.Testee) > 0 {
		words = append(words, "--")
		for _, w := range p.Testee {
			words = append(words, quote(w))
		}
	}
	return strings.Join(words, " ")
}

// quote quotes s for a shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
