package reconcile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// distance is that of Levenshtein, up to the limit.
func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 20000 {
		text := make([]byte, 1+r.IntN(12))
		for i := range text {
			text[i] = "abc"[r.IntN(3)]
		}
		right := slices.Clone(text)
		for range r.IntN(8) {
			if i := r.IntN(len(right) + 1); r.IntN(2) == 0 {
				right = slices.Insert(right, i, "abc"[r.IntN(3)])
			} else if i < len(right) {
				right = slices.Delete(right, i, i+1)
			}
		}
		for limit := range maxEdits + 1 {
			for _, head := range []bool{false, true} {
				want := limit + 1
				for n := range len(text) + 1 {
					if n == len(text) || head {
						want = min(want, levenshtein(text[:n], right))
					}
				}
				if got := distance(text, string(right), limit, head); got != want {
					t.Fatalf("%s from %s, limit %d, head %v: %d, want %d", text, right, limit, head, got, want)
				}
			}
		}
	}
}

func levenshtein(a, b []byte) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before := row[0]
		row[0] = i + 1
		for j := range b {
			v := min(row[j]+1, row[j+1]+1, before)
			if a[i] != b[j] {
				v = min(row[j]+1, row[j+1]+1, before+1)
			}
			before, row[j+1] = row[j+1], v
		}
	}
	return row[len(b)]
}
