package profile

import (
	"cmp"
	"iter"
	"slices"
)

// rows merges the call paths of dumps that look alike in a view. A row is a stack of sites
// with a value in each dump. Rows are in the order in which they were first met.
type rows struct {
	names  *names
	series series
	stacks *stackTree // of sites; by row, unless paths is set
	paths  []uint32   // the stacks by row, if each path is a row and stacks are those of the Builder
	shown  []int      // by dump: number of call paths that the view shows
	start  []uint32   // by row: index of its first value; plus the end
	ranks  []uint32   // by index of the value: the rank of the dump from which on the row has it, ascending
	values []Value
	total  []Value // by dump: sum of the call paths that the view shows
}

// notShown replaces the row of a call path that the view leaves out.
const notShown = 1<<32 - 1

func newRows(dumps []*Dump, n *names) *rows {
	r := &rows{names: n, series: newSeries(dumps), total: make([]Value, len(dumps)), shown: make([]int, len(dumps))}
	rowOf := make([]uint32, r.series.paths) // by path: 1 + row, 0 if not known
	add := r.adder()
	if r.series.order != nil {
		for _, path := range r.series.met() {
			rowOf[path] = add(path)
		}
	}
	var counts []rowCount // by row
	r.series.each(func(rank, path uint32, _, _ Value) {
		if rowOf[path] == 0 {
			rowOf[path] = add(path)
		}
		row := rowOf[path]
		if row == notShown {
			return
		}
		for int(row) > len(counts) {
			counts = append(counts, rowCount{})
		}
		if c := &counts[row-1]; c.values == 0 || c.rank != rank {
			*c = rowCount{c.values + 1, rank}
		}
	}, nil)
	if !n.same {
		r.stacks.index = treeIndex{} // nothing is added from here on
	}
	r.fill(rowOf, counts)
	return r
}

// adder returns a function that returns 1 + the row of a call path, or notShown. It adds the row
// if it is new.
func (r *rows) adder() func(path uint32) uint32 {
	n := r.names
	if n.same {
		r.paths = []uint32{}
		if n.in != nil {
			r.stacks = &n.in.stackTree
		}
		return func(path uint32) uint32 {
			r.paths = append(r.paths, path)
			return uint32(len(r.paths))
		}
	}
	r.stacks = new(stackTree)
	var buf [1]uint32
	t := translation{from: &n.in.stackTree, to: r.stacks, fold: n.view.Fold, list: func(addr uint32) []uint32 { return n.list(&buf, addr) }}
	shown := shownPaths{names: n}
	return func(path uint32) uint32 {
		if !shown.shows(path) {
			return notShown
		}
		return 1 + t.stack(path)
	}
}

// rowCount is the number of dumps from which on a row has another value, and the last of their ranks.
type rowCount struct{ values, rank uint32 }

// fill sets the values of all rows.
func (r *rows) fill(rowOf []uint32, counts []rowCount) {
	r.start = make([]uint32, len(counts)+1)
	for row, c := range counts {
		r.start[row+1] = r.start[row] + c.values
		counts[row].values = 0 // from here on: of those set
	}
	r.values, r.ranks = make([]Value, r.start[len(counts)]), make([]uint32, r.start[len(counts)])
	total, shown := wide{}, 0
	over := map[uint32]wide{} // rows whose sum does not fit into a Value
	r.series.each(func(rank, path uint32, before, after Value) {
		if rowOf[path] == notShown {
			return
		}
		row := rowOf[path] - 1
		c := &counts[row]
		at := r.start[row] + c.values
		if c.values == 0 || c.rank != rank {
			*c = rowCount{c.values + 1, rank}
			r.ranks[at] = rank
			if at > r.start[row] {
				r.values[at] = r.values[at-1]
			}
		} else {
			at--
		}
		v := &r.values[at]
		sum := wideOf(*v)
		if w, ok := over[row]; ok {
			sum = w
		}
		sum.sub(wideOf(before))
		sum.add(wideOf(after))
		*v = sum.value()
		if sum != wideOf(*v) {
			over[row] = sum
		} else if len(over) > 0 {
			delete(over, row)
		}
		total.sub(wideOf(before))
		total.add(wideOf(after))
		if before.IsZero() {
			shown++
		} else if after.IsZero() {
			shown--
		}
	}, func(dump uint32) { r.total[dump], r.shown[dump] = total.value(), shown })
}

// len returns the number of rows.
func (r *rows) len() int { return len(r.start) - 1 }

// stackOf returns the number of a row's stack in r.stacks.
func (r *rows) stackOf(row int) uint32 {
	if r.paths != nil {
		return r.paths[row]
	}
	return uint32(row)
}

// stack appends the numbers of a row's sites, innermost first.
func (r *rows) stack(dst []uint32, row int) []uint32 { return r.stacks.append(dst, r.stackOf(row)) }

// innermost returns the number of the innermost site of a row; ok is false if it has none.
func (r *rows) innermost(row int) (site uint32, ok bool) { return r.stacks.innermost(r.stackOf(row)) }

// value returns the value of a row in a dump.
func (r *rows) value(row, dump int) Value {
	if dump < 0 || dump >= len(r.total) {
		return Value{}
	}
	from, to := r.start[row], r.start[row+1]
	i, ok := slices.BinarySearch(r.ranks[from:to], r.series.rankOf(dump))
	if !ok {
		i--
	}
	if i < 0 {
		return Value{}
	}
	return r.values[from+uint32(i)]
}

// addTo adds the values of a row by dump.
func (r *rows) addTo(points []Value, row int) {
	for at, to := r.start[row], r.start[row+1]; at < to; at++ {
		end := uint32(len(points))
		if at+1 < to {
			end = r.ranks[at+1]
		}
		for rank := r.ranks[at]; rank < end; rank++ {
			points[r.series.dumpAt(rank)].Add(r.values[at])
		}
	}
}

// changes returns in how many dumps the values of a row are not those of the dump before, or most if they
// are more.
func (r *rows) changes(row, most int) int {
	n := int(r.start[row+1] - r.start[row])
	if n > 0 && r.ranks[r.start[row]] == 0 {
		n-- // the first value
	}
	if n == 0 || r.series.order == nil {
		return min(n, most)
	}
	n = 0
	last := r.value(row, 0)
	for dump := 1; dump < len(r.total) && n < most; dump++ {
		v := r.value(row, dump)
		if v != last {
			n++
		}
		last = v
	}
	return n
}

// Row is a stack of call sites of a profile with its values. Call paths that look alike in
// the view are one row. The zero Row is empty.
type Row struct {
	p      *Profile
	number int
}

// Stack returns the call sites, innermost first.
func (r Row) Stack() []Site {
	if r.p == nil {
		return nil
	}
	rows := r.p.rows()
	return rows.names.sites(rows.stack(nil, r.number))
}

// Site returns the innermost call site; ok is false if the row has none.
func (r Row) Site() (site Site, ok bool) {
	if r.p == nil {
		return Site{}, false
	}
	rows := r.p.rows()
	number, ok := rows.innermost(r.number)
	if !ok {
		return Site{}, false
	}
	return rows.names.siteAt(number), true
}

// Changes returns in how many dumps the value of the row is not that of the dump before, or most if
// they are more.
func (r Row) Changes(most int) int {
	if r.p == nil {
		return 0
	}
	return r.p.rows().changes(r.number, most)
}

// Place returns the stack of the row in two parts: a node of the tree in which the rows of the
// profile share their outer call sites, and the call sites inside of it, innermost first. See
// [Profile.Caller].
func (r Row) Place() (node uint32, inner []Site) {
	if r.p == nil {
		return 0, nil
	}
	rows := r.p.rows()
	node, tail := rows.stacks.stack(rows.stackOf(r.number))
	return node, rows.names.sites(tail)
}

// Caller returns the innermost call site of a node that Place has returned, or Caller itself, and
// the node of the call sites outside of it. The node without call sites is 0.
func (p *Profile) Caller(node uint32) (outer uint32, site Site) {
	rows := p.rows()
	n := rows.stacks.nodes.at(int(node))
	return n.parent, rows.names.siteAt(n.value)
}

// Value returns the value of the row in the last dump.
func (r Row) Value() Value {
	_, last := r.p.last()
	return r.At(last)
}

// At returns the value of the row in the dump with an index, or zero if there is no such
// dump.
func (r Row) At(dump int) Value {
	if r.p == nil {
		return Value{}
	}
	return r.p.rows().value(r.number, dump)
}

// Points returns the value of the row in each dump.
func (r Row) Points() []Value {
	if r.p == nil {
		return nil
	}
	list := make([]Value, len(r.p.dumps))
	r.AddTo(list)
	return list
}

// AddTo adds the value of the row in each dump to that of list, which has one for each dump.
func (r Row) AddTo(list []Value) {
	if r.p != nil {
		r.p.rows().addTo(list, r.number)
	}
}

// lastRow is a row with its value in the last dump.
type lastRow struct {
	number int
	Value
}

// lastRows returns the rows with a value in the last dump.
func (p *Profile) lastRows() iter.Seq[lastRow] {
	return func(yield func(lastRow) bool) {
		rows := p.rows()
		_, last := p.last()
		for row := range rows.len() {
			if v := rows.value(row, last); !v.IsZero() && !yield(lastRow{row, v}) {
				return
			}
		}
	}
}

// Rows returns all rows, in the order in which they were first met.
func (p *Profile) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for i := range p.rows().len() {
			if !yield(Row{p, i}) {
				return
			}
		}
	}
}

// Len returns the number of rows.
func (p *Profile) Len() int { return p.rows().len() }

// Top returns the n largest rows of the last dump, the heaviest first, or all nonzero rows
// if n is 0 or less.
func (p *Profile) Top(w Weight, n int) []Row {
	heaviest := firstOf(p.lastRows(), n, func(a, b lastRow) int {
		return cmp.Or(cmp.Compare(w.Of(b.Value), w.Of(a.Value)), cmp.Compare(w.other(b.Value), w.other(a.Value)), cmp.Compare(a.number, b.number))
	})
	var list []Row
	for _, row := range heaviest {
		list = append(list, Row{p, row.number})
	}
	return list
}

// firstOf returns the first n elements in an order, all if n is 0 or less.
func firstOf[T any](all iter.Seq[T], n int, compare func(a, b T) int) (list []T) {
	cut := func() {
		slices.SortFunc(list, compare)
		if n > 0 {
			list = list[:min(n, len(list))]
		}
	}
	full := false // list[n-1] is an element that n others are before
	for v := range all {
		if full && compare(list[n-1], v) < 0 {
			continue
		}
		list = append(list, v)
		if n > 0 && len(list)/2 > max(n, 1000) {
			cut()
			full = true
		}
	}
	cut()
	return list
}
