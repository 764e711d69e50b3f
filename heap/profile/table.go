package profile

import (
	"cmp"
	"slices"
)

// table has the values of a dump by number of the call path: all values, or only those that
// differ from another table's, so that dumps share what stays the same from one to the next. A
// table never changes. The nil table is empty.
type table[T comparable] struct {
	ids     []uint32 // ascending
	values  []T      // of ids; zero if the table that this one is from has a value, and this one has not
	before  []T      // of ids in from
	from    *table[T]
	depth   int // number of tables that this one is from, one from the other
	top     int // largest number in these and in this table, and 1
	changes int // length of ids of this table and of those that it is from, but the last one
	n       int // numbers that have a value

	origin *byte // of all tables that are from one table, those included that flat has made
}

func newTable[T comparable](ids []uint32, values []T) *table[T] {
	return &table[T]{ids: ids, values: values, n: len(ids), top: top(ids), origin: new(byte)}
}

func top(ids []uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return 1 + int(ids[len(ids)-1])
}

// with returns the table that has other values of some numbers. before are those that t has.
func (t *table[T]) with(ids []uint32, values, before []T) *table[T] {
	if len(ids) == 0 {
		return t
	}
	n, none := t.n, *new(T)
	for i := range ids {
		if before[i] == none {
			n++
		}
		if values[i] == none {
			n--
		}
	}
	return &table[T]{ids: ids, values: values, before: before, from: t, changes: t.changes + len(ids), n: n, depth: t.depth + 1, top: max(t.top, top(ids)), origin: t.origin}
}

// flat returns the table without those that it is from.
func (t *table[T]) flat() *table[T] {
	if t == nil || t.from == nil {
		return t
	}
	all := newTable(t.whole())
	all.origin = t.origin
	return all
}

func (t *table[T]) len() int {
	if t == nil {
		return 0
	}
	return t.n
}

// at returns the value of a number, zero if it has none.
func (t *table[T]) at(id uint32) (v T) {
	for ; t != nil; t = t.from {
		if i, ok := slices.BinarySearch(t.ids, id); ok {
			return t.values[i]
		}
	}
	return v
}

// whole returns all numbers that have a value, and the values. The caller must not change them.
func (t *table[T]) whole() (ids []uint32, values []T) {
	if t == nil {
		return nil, nil
	}
	type change struct{ id, depth, at uint32 }
	last := t
	for last.from != nil {
		last = last.from
	}
	if last == t {
		return t.ids, t.values
	}
	var chain []*table[T] // the latest first
	changes := make([]change, 0, t.changes)
	for x := t; x != last; x = x.from {
		for i, id := range x.ids {
			changes = append(changes, change{id, uint32(len(chain)), uint32(i)})
		}
		chain = append(chain, x)
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.depth, b.depth)) })
	ids, values = make([]uint32, 0, t.n), make([]T, 0, t.n)
	var none T
	add := func(id uint32, v T) {
		if v != none {
			ids, values = append(ids, id), append(values, v)
		}
	}
	at := 0
	for i, c := range changes {
		if i > 0 && changes[i-1].id == c.id {
			continue
		}
		for ; at < len(last.ids) && last.ids[at] < c.id; at++ {
			add(last.ids[at], last.values[at])
		}
		if at < len(last.ids) && last.ids[at] == c.id {
			at++
		}
		add(c.id, chain[c.depth].values[c.at])
	}
	for ; at < len(last.ids); at++ {
		add(last.ids[at], last.values[at])
	}
	return ids, values
}

// after returns the values of all, as changes from t if they are few. Both old and all are one table;
// old has the values of t, or is nil if that was not made yet. The changes since the last whole table are at most as many as its values,
// so that a table takes memory in proportion to its changes, and whole takes time in proportion to
// the values.
func (t *table[T]) after(old, all *table[T]) *table[T] {
	if t == nil || all.n == 0 || t.n > all.n+all.n/2 {
		return all
	}
	if old == nil {
		old = t.flat()
	}
	n := 0
	differing(old, all, func(uint32, T, T) { n++ })
	if n == 0 {
		return t // not a table without changes: whole would take time for each of them
	}
	if n > all.n/2 || t.changes+n > all.n {
		return all
	}
	ids, values, before := make([]uint32, 0, n), make([]T, 0, n), make([]T, 0, n)
	differing(old, all, func(id uint32, was, v T) {
		ids, values, before = append(ids, id), append(values, v), append(before, was)
	})
	return t.with(ids, values, before)
}

// differing calls change for each number whose value differs, with the old and the new value, zero if
// it has none.
func differing[T comparable](before, after *table[T], change func(id uint32, old, new T)) {
	oldIDs, old := before.whole()
	ids, values := after.whole()
	var none T
	i := 0
	for k, id := range ids {
		for ; i < len(oldIDs) && oldIDs[i] < id; i++ {
			change(oldIDs[i], old[i], none)
		}
		was := none
		if i < len(oldIDs) && oldIDs[i] == id {
			was = old[i]
			i++
		}
		if was != values[k] {
			change(id, was, values[k])
		}
	}
	for ; i < len(oldIDs); i++ {
		change(oldIDs[i], old[i], none)
	}
}

// between returns the values of the numbers in which after may differ from before, if both are from one
// table. It takes the time of the changes between the two.
func between[T comparable](before, after *table[T]) (values map[uint32]T, ok bool) {
	if before == nil || after == nil {
		return nil, false
	}
	values = map[uint32]T{}
	var latest []*table[T] // of after, the latest first
	for before != after {
		if before.depth == 0 && after.depth == 0 {
			return nil, false
		}
		if before.depth >= after.depth {
			for i, id := range before.ids {
				values[id] = before.before[i]
			}
			before = before.from
		} else {
			latest = append(latest, after)
			after = after.from
		}
	}
	for _, t := range slices.Backward(latest) {
		for i, id := range t.ids {
			values[id] = t.values[i]
		}
	}
	return values, true
}
