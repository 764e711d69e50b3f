package profile

import "slices"

// Continue begins the open dump with the call paths of d that hold something. d is an ended dump of this
// Builder or of a fork. Only [Builder.Replace] may add to the dump, whose time is that of what it
// replaces.
func (b *Builder) Continue(d *Dump) {
	b.init()
	x := b.base(d)
	b.continued = &continued{baseDump: x, live: x.liveNow, more: x.moreNow, by: new(edit)}
	b.open.Total = d.Total
}

// Replace replaces the values of a call path in a dump that continues another one.
func (b *Builder) Replace(a Allocation) {
	c := b.continued
	a.Path = b.own(a.Path)
	b.open.Total.sub(c.live.at(a.id))
	if b.open.Total.Add(a.Value) {
		b.open.Loss.Saturated = true
	}
	b.open.Records++
	c.live.set(a.id, a.Value, c.by)
	if m := moreOf(&a); m != (more{}) || c.more.at(a.id) != m {
		c.more.set(a.id, m, c.by)
	}
	c.touched = append(c.touched, a.id)
}

// continued is the open dump of a Builder that continues another one.
type continued struct {
	*baseDump
	live    versioned[Value]
	more    versioned[more]
	by      *edit
	touched []uint32
}

// baseDump is an ended dump that others continue. Its tables lack the call paths that hold nothing.
type baseDump struct {
	of        *table[Value] // of the dump
	ofMore    *table[more]
	liveTable *table[Value]
	moreTable *table[more]
	liveNow   versioned[Value]
	moreNow   versioned[more]
}

// maxBases is the number of bases that a Builder keeps, the latest. One that was dropped is made again.
// A reader keeps the last 64 dumps as bases, of which each is added here when it ends or when it is first used.
const maxBases = 2 * 64

// base returns the base of a dump.
func (b *interner) base(d *Dump) *baseDump {
	if i := slices.IndexFunc(b.bases, func(x *baseDump) bool { return x.of == d.live && x.ofMore == d.more }); i >= 0 {
		return b.bases[i]
	}
	x, by := &baseDump{of: d.live, ofMore: d.more, liveTable: d.live, moreTable: d.more}, new(edit)
	var freed []uint32
	ids, live := d.live.whole()
	for i, id := range ids {
		x.liveNow.set(id, live[i], by)
	}
	ids, more := d.more.whole()
	for i, id := range ids {
		if x.liveNow.at(id).IsZero() {
			freed = append(freed, id)
		}
		x.moreNow.set(id, more[i], by)
	}
	x.drop(freed, by)
	b.keep(x)
	return x
}

func (b *interner) keep(x *baseDump) {
	b.bases = append(b.bases, x)
	b.bases = slices.Delete(b.bases, 0, max(0, len(b.bases)-maxBases))
}

// drop removes what call paths have besides their values.
func (x *baseDump) drop(freed []uint32, by *edit) {
	before, none := make([]more, len(freed)), make([]more, len(freed))
	for i, id := range freed {
		before[i] = x.moreNow.at(id)
		x.moreNow.set(id, more{}, by)
	}
	x.moreTable = x.moreTable.with(freed, none, before)
}

// end returns the tables of the open dump.
func (c *continued) end(b *interner) (live *table[Value], all *table[more]) {
	slices.Sort(c.touched)
	ids := slices.Compact(c.touched)
	b.copied += copyPerChange * len(ids)
	c.liveTable, c.moreTable = shortened(c.liveTable, &b.copied), shortened(c.moreTable, &b.copied)
	live = changed(c.liveTable, ids, &c.liveNow, &c.live)
	all = changed(c.moreTable, ids, &c.moreNow, &c.more)
	x := &baseDump{of: live, ofMore: all, liveTable: live, moreTable: all, liveNow: c.live, moreNow: c.more}
	x.drop(slices.DeleteFunc(ids, func(id uint32) bool { return !c.live.at(id).IsZero() || c.more.at(id) == more{} }), c.by)
	b.keep(x)
	return live, all
}

// changed returns a table with the values of some numbers that differ.
func changed[T comparable](t *table[T], ids []uint32, before, after *versioned[T]) *table[T] {
	var differ []uint32
	var old, now []T
	for _, id := range ids {
		if was, is := before.at(id), after.at(id); was != is {
			differ, old, now = append(differ, id), append(old, was), append(now, is)
		}
	}
	return t.with(differ, now, old)
}

// copyPerChange is how many values of tables a Builder copies per call path that is replaced. See
// shortened.
const copyPerChange = 4

// shortened returns the table in one if it has more changes than values, so that to read it takes time in
// proportion to the values. The copies take at most copied, which is in proportion to what was replaced.
func shortened[T comparable](t *table[T], copied *int) *table[T] {
	if most := t.n + t.changes; t.changes > t.n && most <= *copied {
		*copied -= most
		return t.flat()
	}
	return t
}
