package reconcile

import "slices"

// restore returns the record of the boot that a damaged one was: a block of the dump before that this dump lacks,
// or else a kind, from whose text it alone differs by the fewest characters lost, added or changed.
// times is how often the dump has the kind of a record that may be right as it is, 0 for others.
// text is that of the block.
func (r *Reconciler[P, T]) restore(x *held[P, T], times int) (h Record[P, T], text string, ok bool) {
	best, same := maxEdits+1, true
	limit := editsOf(len(x.text))
	for _, key := range []string{end(x.text), inner(x.text, 0), inner(x.text, 1), inner(x.text, -1)} {
		for _, f := range r.last[key] {
			if r.work++; r.work > maxWork {
				return h, "", false
			}
			if !f.Addressed || r.present[f.text] || f.text == text {
				continue
			}
			switch d := distance(x.text, f.text, limit, false); {
			case d > limit:
			case d < best:
				best, same, h, text = d, true, *f.Record, f.text
			case d == best:
				same = same && f.Path == h.Path && f.Bytes == h.Bytes
				h, text = Record[P, T]{Path: h.Path, Bytes: h.Bytes}, "" // which block is not known
			}
		}
	}
	if best > maxEdits {
		best, same, h = r.restoreKind(x, times)
	}
	h.Restored = true
	return h, text, best <= maxEdits && same
}

// restored counts a record that a damaged one was.
func (r *Reconciler[P, T]) restored(h *Record[P, T], text string) {
	if text != "" {
		r.present[text] = true
	}
	if k := r.kinds[kind[P]{h.Path, h.Bytes}]; k != nil {
		k.count++
	}
}

// restoreKind returns the kind of record that a damaged one was. Where the records of a kind differ, as by
// their addresses, only what they have in common is compared.
func (r *Reconciler[P, T]) restoreKind(x *held[P, T], times int) (best int, same bool, h Record[P, T]) {
	best = maxEdits + 2 // no kind
	second := best
	for key, k := range r.kinds {
		if r.work++; r.work > maxWork {
			return maxEdits + 1, false, h
		}
		limit := editsOf(len(k.prefix))
		if k.count < often*times || len(k.prefix) < minPrefix || x.prose && len(k.prefix) < minProse {
			continue
		}
		if n := len(x.text); n < k.least-limit || n > k.most+limit {
			continue
		}
		switch d := distance(x.text, string(k.prefix), limit, k.varied); {
		case d > limit:
		case d < best:
			best, second = d, best
			h = Record[P, T]{Path: key.path, Bytes: key.bytes}
		default:
			second = min(second, d)
		}
	}
	same = second > best && (best <= 2 || second > best+1)
	return best, same, h
}

// distance returns how many characters must be lost, added or changed to make text from right, limit+1 if it is
// more than limit. With head, only the beginning of text must be made.
func distance(text []byte, right string, limit int, head bool) int {
	n, m := len(text), len(right)
	if d := n - m; d < -limit || d > limit && !head || m > maxText {
		return limit + 1
	}
	same := 0
	for same < min(n, m) && text[same] == right[same] {
		same++
	}
	text, right = text[same:], right[same:]
	n, m = n-same, m-same
	if !head {
		for n > 0 && m > 0 && text[n-1] == right[m-1] {
			n, m = n-1, m-1
		}
		if n == 0 || m == 0 {
			return min(max(n, m), limit+1)
		}
	}
	return banded(text[:n], right[:m], limit, head)
}

// band is the number of diagonals that distance examines.
const band = 2*maxEdits + 1

// banded is distance by a row of the table after the other.
func banded(text []byte, right string, limit int, head bool) int {
	n, m := len(text), len(right)
	// row[k] is the distance of right[:i] and text[:i+k-maxEdits].
	var row, next [band]int
	for k := range row {
		if row[k] = k - maxEdits; row[k] < 0 || row[k] > n {
			row[k] = limit + 1
		}
	}
	for i := 1; i <= m; i++ {
		least := limit + 1
		for k := range next {
			j := i + k - maxEdits
			v := limit + 1
			switch {
			case j < 0 || j > n:
			case j == 0:
				v = i
			default:
				v = row[k]
				if text[j-1] != right[i-1] {
					v++
				}
				if k > 0 {
					v = min(v, next[k-1]+1)
				}
				if k+1 < band {
					v = min(v, row[k+1]+1)
				}
			}
			next[k] = v
			least = min(least, v)
		}
		if least > limit {
			return limit + 1
		}
		row = next
	}
	if head {
		return slices.Min(append(row[max(0, maxEdits-m):max(0, maxEdits-m, min(band, n-m+maxEdits+1))], limit+1))
	}
	if k := n - m + maxEdits; k >= 0 && k < band {
		return min(row[k], limit+1)
	}
	return limit + 1
}
