package profile

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/lwsbt/lwsbt/symbol"
)

// defaultMaxPaths is the default limit for the call paths of a [Builder]. With so many, of 16
// addresses each, and 16 million distinct addresses, a Builder takes less than 2.5 GB.
const defaultMaxPaths = 10_000_000

// maxAddrs is the limit for distinct addresses.
const maxAddrs = 1 << 24

// paths are the call paths of a Builder: stacks of numbers of addresses.
type paths struct {
	stackTree
	addrs array[symbol.Addr]
	names atomic.Pointer[names] // of the latest view without a filter
}

// Builder adds up allocations by call path, one dump after another. Its memory depends on
// the number of distinct call paths and of their addresses, of which paths share the outer ones,
// and not on the number of allocations. Another
// goroutine may read a Dump while the Builder continues. The zero Builder is equivalent to
// NewBuilder(0).
type Builder struct {
	*interner
	sums    array[Value]     // of the open dump, by number of the path
	touched array[uint32]    // paths that have a sum
	more    map[uint32]*more // what AddAllocation added besides live values
	open    Dump             // the counts of the open dump
	last    ended

	continued *continued // nil unless the open dump continues another one
}

// ended has the values of the dump that ended last.
type ended struct {
	live, allLive *table[Value] // as the dump has them, and in one table, nil if it was not made yet
	more, allMore *table[more]
}

// interner numbers the addresses and call paths of a Builder and its forks.
type interner struct {
	paths    *paths
	byAddr   addrIndex
	files    map[any]uint32 // numbers of files and of locations without file
	module   *symbol.Module // the last one, with its number in files
	number   uint32
	maxPaths int
	rest     Path // of all beyond the limit, once there is one
	stack    []uint32
	bases    []*baseDump
	copied   int // values that shortened may copy
}

// file is a file in which an address has the same meaning in every boot.
type file struct{ name, buildID string }

// NewBuilder returns a Builder that keeps at most maxPaths distinct call paths. The
// allocations of all other call paths are added up as one path, for which [Path.Other] is
// true. If maxPaths is 0 or less, the limit is 10 million.
func NewBuilder(maxPaths int) *Builder {
	if maxPaths <= 0 {
		maxPaths = defaultMaxPaths
	}
	return &Builder{interner: &interner{paths: &paths{}, files: map[any]uint32{}, maxPaths: maxPaths}}
}

func (b *Builder) init() {
	if b.interner == nil {
		b.interner = NewBuilder(0).interner
	}
}

// Fork returns a Builder with the same call paths and another open dump, so that two dumps
// can be open at once.
func (b *Builder) Fork() *Builder {
	b.init()
	return &Builder{interner: b.interner, last: b.last}
}

// Path returns the call path of the addresses, innermost first. Two addresses in files are
// equal if file and address within the file are equal, whatever the load base. Beyond the
// limits, Path returns the path for which [Path.Other] is true.
func (b *Builder) Path(addrs []symbol.Addr) Path { return b.PathFrom(Callers{}, addrs) }

// Callers are the outer addresses of call paths of a [Builder], which the paths have in common.
// The zero Callers has no address.
type Callers struct {
	in   *paths // nil if there are none
	node uint32
}

// overLimit is the node of Callers with an address beyond maxAddrs.
const overLimit = 1<<32 - 1

// Callers returns the Callers that consist of the addresses, innermost first, and then of outer,
// which this Builder has returned.
func (b *Builder) Callers(outer Callers, addrs []symbol.Addr) Callers {
	b.init()
	if outer.node == overLimit || b.paths.addrs.n+len(addrs) > maxAddrs {
		return Callers{b.paths, overLimit}
	}
	b.numbers(addrs)
	return Callers{b.paths, b.paths.node(outer.node, b.stack)}
}

// PathFrom returns the call path of the addresses, innermost first, and then those of outer, which
// this Builder has returned. Its time and memory depend on the number of addresses only.
func (b *Builder) PathFrom(outer Callers, addrs []symbol.Addr) Path {
	b.init()
	if outer.node == overLimit || b.paths.addrs.n+len(addrs) > maxAddrs {
		return b.other()
	}
	b.numbers(addrs)
	return b.path(outer.node, b.stack)
}

// numbers sets stack to the numbers of addresses.
func (b *interner) numbers(addrs []symbol.Addr) {
	b.stack = b.stack[:0]
	for i := range addrs {
		b.stack = append(b.stack, b.addr(&addrs[i]))
	}
}

// path returns the call path of a node and the numbers of addresses below it.
func (b *interner) path(node uint32, stack []uint32) Path {
	p, found := b.paths.find(node, stack)
	switch {
	case found:
	case b.paths.size() >= b.maxPaths:
		return b.other()
	default:
		p.id = b.paths.push(p)
	}
	return Path{b.paths, p.id}
}

// other returns the path of this Builder that represents call paths beyond a limit.
func (b *interner) other() Path {
	if b.rest.in == nil {
		b.rest = Path{b.paths, b.paths.add(0, []uint32{b.addr(&otherAddr)})}
	}
	return b.rest
}

// identity is equal for two addresses that count as the same address.
type identity struct {
	addr  uint64 // in the file
	file  uint32 // its number, 0 for memory, noFile for code offsets
	state symbol.State
}

const noFile = 1<<32 - 1

func (b *interner) identity(a *symbol.Addr) identity {
	l := a.Location
	x, unplaced := a.CodeOffset()
	switch {
	case a.State == symbol.Lost: // only the low 31 bits are known
		return identity{a.PC & (1<<31 - 1), 0, a.State}
	case l == nil, l.Module == nil && l.Own == a.PC && a.PC != 0: // in memory, named or not
		return identity{a.PC, 0, a.State}
	case unplaced:
		return identity{x, noFile, a.State}
	case len(l.Frames) > 0 && (l.Module == nil || l.Own == 0 || l.Module.File == nil): // named by the log
		return identity{0, b.fileNumber(l), a.State}
	case l.Module == nil && l.Build != "": // in memory, of a build without a known file
		return identity{a.PC, b.fileNumber(file{buildID: l.Build}), a.State}
	case l.Module == nil:
		return identity{a.PC, 0, a.State}
	case l.Module != b.module:
		b.module, b.number = l.Module, b.fileNumber(file{l.Module.Name, l.Module.BuildID})
	}
	return identity{l.Own, b.number, a.State}
}

// fileNumber returns the number of a file or a location, from 1.
func (b *interner) fileNumber(key any) uint32 {
	n := b.files[key]
	if n == 0 {
		n = uint32(len(b.files) + 1)
		b.files[key] = n
	}
	return n
}

// addr returns the number of an address.
func (b *interner) addr(a *symbol.Addr) uint32 {
	is := b.identity(a)
	n, found := b.byAddr.find(is)
	if !found {
		n = uint32(b.paths.addrs.n)
		b.paths.addrs.push(*a)
		b.byAddr.add(is, n)
	}
	return n
}

// Add adds allocations of one call path to the open dump. It copies a path of another
// Builder to this one.
func (b *Builder) Add(p Path, v Value) {
	p = b.own(p)
	for b.sums.n <= int(p.id) {
		b.sums.push(Value{})
	}
	sum := b.sums.at(int(p.id))
	if sum.IsZero() && !v.IsZero() {
		b.touched.push(p.id)
	}
	if sum.Add(v) {
		b.open.Loss.Saturated = true
	}
	if b.open.Total.Add(v) {
		b.open.Loss.Saturated = true
	}
	b.open.Records++
	if b.rest.in != nil && p == b.rest {
		b.open.Loss.OtherPaths++
	}
}

// own returns a call path as a path of this Builder.
func (b *Builder) own(p Path) Path {
	b.init()
	if p.in != b.paths {
		return b.Path(p.Append(nil))
	}
	return p
}

// AddAllocation is Add for an Allocation, including its values since the boot and its
// standard errors. It counts one record.
func (b *Builder) AddAllocation(a Allocation) {
	a.Path = b.own(a.Path)
	b.Add(a.Path, a.Value)
	m := moreOf(&a)
	if m == (more{}) {
		return
	}
	if b.more == nil {
		b.more = map[uint32]*more{}
	}
	sum := b.more[a.id]
	if sum == nil {
		sum = &more{}
		b.more[a.id] = sum
	}
	if sum.add(m) {
		b.open.Loss.Saturated = true
	}
}

// Dump returns the current state of the open dump, which stays open. The Builder sets
// Loss.OtherPaths and Loss.Saturated.
func (b *Builder) Dump(info DumpInfo) *Dump {
	b.init()
	d := &Dump{DumpInfo: info, Records: b.open.Records, Total: b.open.Total}
	d.Loss.OtherPaths, d.Loss.Saturated = b.open.Loss.OtherPaths, b.open.Loss.Saturated
	d.in, d.addrs = b.paths, b.paths.addrs.n
	d.live, d.more = newTable(b.liveValues()), newTable(b.moreValues())
	return d
}

// liveValues returns the paths of the open dump, ascending, and their values.
func (b *Builder) liveValues() (ids []uint32, values []Value) {
	ids, values = make([]uint32, 0, b.touched.n), make([]Value, b.touched.n)
	if b.sums.n < 8*b.touched.n { // faster than to sort them
		for id := range b.sums.n {
			if !b.sums.at(id).IsZero() {
				ids = append(ids, uint32(id))
			}
		}
	} else {
		for i := range b.touched.n {
			ids = append(ids, *b.touched.at(i))
		}
		slices.Sort(ids)
	}
	for i, id := range ids {
		values[i] = *b.sums.at(int(id))
	}
	return ids, values
}

func (b *Builder) moreValues() (ids []uint32, values []more) {
	ids = slices.Sorted(maps.Keys(b.more))
	values = make([]more, len(ids))
	for i, id := range ids {
		values[i] = *b.more[id]
	}
	return ids, values
}

// End ends the open dump and returns it. The next Add begins another dump.
func (b *Builder) End(info DumpInfo) *Dump {
	if b.continued != nil {
		return b.endContinued(info)
	}
	d := b.Dump(info)
	d.Ended = true
	for _, id := range d.live.ids {
		*b.sums.at(int(id)) = Value{}
	}
	last := ended{allLive: d.live, allMore: d.more}
	last.live, last.more = b.last.live.after(b.last.allLive, d.live), b.last.more.after(b.last.allMore, d.more)
	d.live, d.more = last.live, last.more
	b.touched.n, b.open, b.more, b.last = 0, Dump{}, nil, last
	return d
}

func (b *Builder) endContinued(info DumpInfo) *Dump {
	d := &Dump{DumpInfo: info, Records: b.open.Records, Total: b.open.Total, Ended: true, in: b.paths, addrs: b.paths.addrs.n}
	d.Loss.Saturated = b.open.Loss.Saturated
	d.live, d.more = b.continued.end(b.interner)
	b.open, b.continued, b.last = Dump{}, nil, ended{live: d.live, more: d.more}
	return d
}
