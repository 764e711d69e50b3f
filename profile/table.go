package profile

import (
	"cmp"
	"iter"
	"slices"
)

// Table is the call paths of several dumps as a view shows them: paths that look
// alike are one row. Diff, growth and the HTML report are computed from it. It takes
// a few words per row and value: stacks are taken from the profile when asked for.
type Table struct {
	Dumps []*Dump
	Total []Value // by dump, of what the view shows

	names  *Names
	stacks stacks
	start  []uint32 // by row, of its values; one more at the end
	values []dumpValue
}

// TableRow is what a row holds in each dump. It keeps no zeros: the table of a log with
// many dumps would take their number times that of call paths.
type TableRow struct{ values []dumpValue }

// dumpValue is what a row holds in a dump.
type dumpValue struct {
	dump int
	Value
}

// Value returns what the row holds in the dump with that index.
func (r TableRow) Value(dump int) Value {
	i, ok := slices.BinarySearchFunc(r.values, dump, func(v dumpValue, dump int) int { return v.dump - dump })
	if !ok {
		return Value{}
	}
	return r.values[i].Value
}

// Values returns the dumps in which the row holds something, in their order.
func (r TableRow) Values() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for _, v := range r.values {
			if !yield(v.dump, v.Value) {
				return
			}
		}
	}
}

// Points returns what the row holds, by dump, of n dumps.
func (r TableRow) Points(n int) []Value {
	list := make([]Value, n)
	for _, v := range r.values {
		list[v.dump] = v.Value
	}
	return list
}

// notShown is in place of the row of a call path that the view leaves out.
const notShown = 1<<32 - 1

// Table returns the call paths of dumps, in the order in which they were met.
func (n *Names) Table(dumps []*Dump) *Table {
	t := &Table{Dumps: dumps, Total: make([]Value, len(dumps)), names: n, stacks: stacks{expand: n.appendShown}}
	rowOf := make([]uint32, n.prof.Paths()) // 1 + row, 0 if not known yet
	type mark struct{ dump, values uint32 } // 1 + the last dump with a value, and how many there are
	var marks array[mark]
	var stack []SiteID
	total := 0
	for i, d := range dumps {
		for id, v := range d.Values() {
			if rowOf[id] == 0 {
				var shown bool
				if stack, shown = n.AppendStack(stack[:0], id); !shown {
					rowOf[id] = notShown
				} else {
					row := t.stacks.row(stack, id)
					rowOf[id] = uint32(row) + 1
					if row == marks.n {
						marks.push(mark{})
					}
				}
			}
			if rowOf[id] == notShown {
				continue
			}
			if m := marks.at(int(rowOf[id] - 1)); m.dump != uint32(i)+1 {
				m.dump, m.values = uint32(i)+1, m.values+1
				total++
			}
			n.saturate(t.Total[i].Add(v))
		}
	}
	t.stacks.index = hashTable{} // nothing is added from here on
	t.start = make([]uint32, marks.n+1)
	for row := range marks.n {
		m := marks.at(row)
		t.start[row+1] = t.start[row] + m.values
		*m = mark{}
	}
	t.values = make([]dumpValue, total)
	for i, d := range dumps {
		for id, v := range d.Values() {
			if rowOf[id] == notShown {
				continue
			}
			row := rowOf[id] - 1
			m := marks.at(int(row))
			if m.dump != uint32(i)+1 {
				m.dump, m.values = uint32(i)+1, m.values+1
			}
			at := &t.values[t.start[row]+m.values-1]
			at.dump = i
			n.saturate(at.Add(v))
		}
	}
	return t
}

// Rows returns how many rows there are.
func (t *Table) Rows() int { return t.stacks.rows() }

// Stack returns the sites of a row, innermost first.
func (t *Table) Stack(row int) []Site { return t.names.appendSites(nil, t.AppendStack(nil, row)) }

// AppendStack appends the sites of a row, innermost first.
func (t *Table) AppendStack(dst []SiteID, row int) []SiteID { return t.stacks.append(dst, row) }

// Site returns a site by its number.
func (t *Table) Site(id SiteID) Site { return t.names.Site(id) }

// Row returns what a row holds.
func (t *Table) Row(row int) TableRow { return TableRow{t.values[t.start[row]:t.start[row+1]]} }

// All returns what all rows together hold.
func (t *Table) All() (all TableRow) {
	for i, v := range t.Total {
		all.values = append(all.values, dumpValue{i, v})
	}
	return all
}

// Complete returns the table with only those of its dumps that are complete, for their
// growth. The rows are the same.
func (t *Table) Complete() *Table {
	c := &Table{names: t.names, stacks: t.stacks, start: make([]uint32, len(t.start))}
	number := make([]int, len(t.Dumps)) // in c, -1 if left out
	for i, d := range t.Dumps {
		number[i] = -1
		if d.Complete() {
			number[i] = len(c.Dumps)
			c.Dumps, c.Total = append(c.Dumps, d), append(c.Total, t.Total[i])
		}
	}
	if len(c.Dumps) == len(t.Dumps) {
		return t
	}
	for row := range t.Rows() {
		for _, v := range t.Row(row).values {
			if n := number[v.dump]; n >= 0 {
				c.values = append(c.values, dumpValue{n, v.Value})
			}
		}
		c.start[row+1] = uint32(len(c.values))
	}
	return c
}

// Change is a row in two dumps.
type Change struct {
	Row           int
	Before, After Value
}

// New reports whether there was nothing before.
func (c *Change) New() bool { return c.Before.IsZero() && !c.After.IsZero() }

// Gone reports whether there is nothing after.
func (c *Change) Gone() bool { return !c.Before.IsZero() && c.After.IsZero() }

// Delta returns the growth of the sum that w asks for.
func (c *Change) Delta(w Weight) Delta { return Sub(w.Of(c.After), w.Of(c.Before)) }

// Diff returns the rows that differ between two dumps of the table, by their index:
// those that grew the most first, those that shrank the most last.
func (t *Table) Diff(before, after int, w Weight) []Change {
	n := 0
	change := func(row int) Change {
		r := t.Row(row)
		return Change{row, r.Value(before), r.Value(after)}
	}
	for row := range t.Rows() {
		if c := change(row); c.Before != c.After {
			n++
		}
	}
	list := make([]Change, 0, n)
	for row := range t.Rows() {
		if c := change(row); c.Before != c.After {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(b.Delta(w).Compare(a.Delta(w)), b.Delta(1-w).Compare(a.Delta(1-w)), cmp.Compare(a.Row, b.Row))
	})
	return list
}

// Heaviest returns the n rows that ever hold the most bytes, then allocations, the
// heaviest first; all rows if n is 0.
func (t *Table) Heaviest(w Weight, n int) []int {
	type heavy struct {
		most Value
		row  uint32
	}
	list := make([]heavy, t.Rows())
	for row := range list {
		h := &list[row]
		h.row = uint32(row)
		for _, v := range t.Row(row).values {
			h.most.Bytes, h.most.Count = max(h.most.Bytes, v.Bytes), max(h.most.Count, v.Count)
		}
	}
	slices.SortFunc(list, func(a, b heavy) int {
		return cmp.Or(cmp.Compare(w.Of(b.most), w.Of(a.most)), cmp.Compare((1-w).Of(b.most), (1-w).Of(a.most)), cmp.Compare(a.row, b.row))
	})
	if n > 0 && len(list) > n {
		list = list[:n]
	}
	rows := make([]int, len(list))
	for i, h := range list {
		rows[i] = int(h.row)
	}
	return rows
}
