package heaplog

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/process"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// callPaths turns the lines of call paths of one boot into call stacks. It knows the names of
// the call paths, and the addresses of the code. Each boot has one. It can still be used when the
// next boot has begun, for call paths whose names are not known yet.
type callPaths struct {
	process *process.Process
	code    *process.Code
	names   *callpath.Names
	shared  bool // the boot before has used names
	closed  bool // another boot has begun: process is no longer that of this boot

	addrs      map[callpath.Frame]symbol.Addr // frames of this boot of which more than the address is known
	unplaced   map[uint32]struct{}            // code offsets in none of the ranges
	generation int                            // of the process when addrs was checked
	outside    *int64                         // counts unplaced

	built   builtPaths
	builtAt int // generation of the process for which built is valid

	stackBuf []symbol.Addr // these keep their memory between calls
	newBuf   []keptCallers

	pcs []uint64 // addresses in memory of the current line, in a survey
}

// newCallPaths begins the call paths of a boot. last is the latest boot that had lines of call paths,
// nil if there is none. mapped is set if memory maps are given.
func newCallPaths(p *process.Process, mapped bool, boot *recording.Boot, last *callPaths, outside *int64) *callPaths {
	c := &callPaths{process: p, code: process.NewCode(p, boot.Header, mapped), names: boot.Names,
		addrs: map[callpath.Frame]symbol.Addr{}, unplaced: map[uint32]struct{}{}, outside: outside}
	c.shared = last != nil && last.names == c.names
	return c
}

// settle adds the executable mappings that the log has had since the last call. (BT-CODE-3)
func (c *callPaths) settle() {
	if c.closed || !c.code.Settle() {
		return
	}
	clear(c.addrs)
	clear(c.unplaced)
	if c.shared { // offsets of another map
		c.names, c.shared = &callpath.Names{}, false
	}
}

// line names the addresses of the frames of a line, or, without locate, only collects the addresses
// in memory. It returns the number of frames of all entries.
func (c *callPaths) line(p *recording.Placed, locate bool) (frames int64) {
	c.pcs = c.pcs[:0]
	for _, f := range p.Frames {
		if locate {
			c.addr(f)
		} else if pc, memory, ok := c.code.Address(f); ok && memory {
			c.pcs = append(c.pcs, pc)
		}
	}
	for i := range p.Entries {
		frames += int64(p.Entries[i].Depth)
	}
	return frames
}

// named returns the path of a name.
func (c *callPaths) named(name uint32) callpath.ID {
	return c.names.Add(&callpath.Path{Base: callpath.Named, Outer: name})
}

// stack appends the addresses of a path, innermost first, as far as they are known, and
// returns what the path begins with. If limit does not allow all frames, it appends the own innermost
// ones, and the path begins with the name of the others.
func (c *callPaths) stack(dst []symbol.Addr, id callpath.ID, own int, limit *frameLimit) ([]symbol.Addr, callpath.Path) {
	c.settle()
	id = c.names.Resolve(id)
	outer, f, depth := c.names.Outer(id)
	n := depth
	if !limit.take(depth, own) {
		n = own
	}
	for range n {
		dst = append(dst, c.addr(f))
		id = outer
		outer, f, _ = c.names.Outer(id)
	}
	if n < depth {
		return dst, callpath.Path{Base: callpath.Named, Outer: c.names.Name(id)}
	}
	return dst, c.names.Root(id)
}

// frameLimit limits the frames of the stacks of Items. A call path of a few bytes may continue one of
// 1,024 frames by its name, so the frames may be many more than the bytes of the log.
type frameLimit struct {
	left    int64 // frames
	leftOut int64 // call paths of which outer frames were left out
	first   recording.Place
	at      recording.Place // of the current item
}

const (
	freeFrames    = 1 << 18
	framesPerByte = 16 // of the log; ordinary logs have 4 at most
)

func newFrameLimit() frameLimit { return frameLimit{left: freeFrames} }

// item begins an item.
func (l *frameLimit) item(it *Item) {
	l.at = it.Place
	l.left += framesPerByte * int64(len(it.Text))
}

// take reports whether a stack may have all frames, and takes these, or else its own ones.
func (l *frameLimit) take(all, own int) bool {
	if all > own && l.left < int64(all) {
		if l.leftOut++; l.leftOut == 1 {
			l.first = l.at
		}
		l.left -= int64(own)
		return false
	}
	l.left -= int64(all)
	return true
}

// addr returns the address of a frame. An address that has a name keeps it when the module is
// gone.
func (c *callPaths) addr(f callpath.Frame) symbol.Addr {
	if g := c.process.Generation(); !c.closed && g != c.generation {
		c.generation = g
		for f, a := range c.addrs {
			if len(a.Frames()) == 0 {
				delete(c.addrs, f)
			}
		}
	}
	a, ok := c.addrs[f]
	if !ok {
		a = c.locate(f)
		if _, unplaced := a.CodeOffset(); a.Location != nil && !unplaced {
			c.addrs[f] = a
		}
	}
	return a
}

func (c *callPaths) locate(f callpath.Frame) symbol.Addr {
	a, ok := symbol.Addr{}, false
	if c.closed {
		a.PC, _, ok = c.code.Address(f)
	} else {
		a, ok = c.code.Locate(f)
	}
	if !ok {
		if _, known := c.unplaced[uint32(f.Value)]; !known {
			c.unplaced[uint32(f.Value)] = struct{}{}
			*c.outside++
		}
		return symbol.CodeOffset(f.Value)
	}
	return a
}

// CodeOffset returns the code offset of an address in a call path, if the log does not tell
// which address the offset stands for: the offset is in none of the known code ranges. For all
// other addresses, ok is false. (BT-CODE-2)
func CodeOffset(a symbol.Addr) (offset uint64, ok bool) { return a.CodeOffset() }

// unknownOuter returns the outermost Addr of a call path whose outer frames have a name that
// is not known.
func (c *callPaths) unknownOuter(name uint32) symbol.Addr {
	f := callpath.Frame{Value: callpath.MaxOffset + uint64(name)} // no frame has this offset
	a, ok := c.addrs[f]
	if !ok {
		a = namedAddr("(outer frames not known)")
		c.addrs[f] = a
	}
	return a
}

// othersAddr is the address of the path of no frames, for which a device counts the blocks of
// paths that its table has no space for. (BT-NAME-1)
var othersAddr = namedAddr("(all other call paths)")

// namedAddr returns an address that is a name only.
func namedAddr(name string) symbol.Addr {
	return symbol.Addr{Location: &symbol.Location{Frames: []symbol.Frame{{Func: name, Name: name}}}}
}

// builtPath is the call path of a Builder. All Builders of a pass share their call paths.
type builtPath struct {
	profile.Path
	noOuter bool // its outer frames are missing
}

// builtPaths are call paths of Builders, as long as the addresses of their frames do not change.
type builtPaths struct {
	paths   []builtEntry // a cache, by ID modulo its length, of paths without unknown names
	puts    int          // since paths was allocated
	callers map[callpath.ID]profile.Callers
	ids     map[profile.Path]callpath.ID // see single
}

// builtEntry is empty if its path has no Builder.
type builtEntry struct {
	id callpath.ID
	builtPath
}

// minBuilt is the initial length of builtPaths.paths, maxBuilt the largest.
const minBuilt, maxBuilt = 1 << 6, 1 << 14

// slot returns the entry of the cache in which a path belongs.
func (b *builtPaths) slot(id callpath.ID) *builtEntry { return &b.paths[int(id)&(len(b.paths)-1)] }

// put puts a path into the cache.
func (b *builtPaths) put(id callpath.ID, x builtPath) {
	if b.puts++; b.puts > len(b.paths) && len(b.paths) < maxBuilt {
		b.paths, b.puts = make([]builtEntry, 4*len(b.paths)), 0
	}
	*b.slot(id) = builtEntry{id, x}
}

// path returns the call path of a Builder. If a name in it is unknown, it returns the path as far as
// it is known, or with wait, nothing, and ok is false.
func (c *callPaths) path(b *profile.Builder, id callpath.ID, wait bool) (x builtPath, ok bool) {
	if g := c.process.Generation(); c.built.paths == nil || g != c.builtAt {
		c.built = builtPaths{paths: make([]builtEntry, minBuilt), callers: map[callpath.ID]profile.Callers{}}
		c.builtAt = g
	}
	if e := c.built.slot(id); e.id == id && e.Path != (profile.Path{}) {
		return e.builtPath, true
	}
	resolved := c.names.Resolve(id)
	known := c.names.Root(resolved).Base != callpath.Named
	if !known && wait {
		return x, false
	}
	if x = c.build(b, c.names, resolved, c.built.callers); known {
		c.built.put(id, x)
	}
	return x, true
}

// single reports whether a path of a Builder, the one of id, is that of no other path of the log: two paths
// may have the same addresses.
func (c *callPaths) single(p profile.Path, id callpath.ID) bool {
	if c.built.ids == nil {
		c.built.ids = map[profile.Path]callpath.ID{}
	}
	known, ok := c.built.ids[p]
	if !ok {
		c.built.ids[p] = id
	}
	return !ok || known == id
}

// callersStep is the number of frames after which the Callers of a path are kept: a path that
// continues a long one takes the time of so many frames.
const callersStep = 16

// build returns the call path of a Builder for a resolved path of names. callers has the Callers of
// outer parts of paths.
func (c *callPaths) build(b *profile.Builder, names *callpath.Names, id callpath.ID, callers map[callpath.ID]profile.Callers) builtPath {
	c.settle()
	root := names.Root(id)
	outer, f, depth := names.Outer(id)
	cut := root.Base == callpath.Cut && depth <= maxCut // the outermost address depends on depth
	stack, new := c.stackBuf[:0], c.newBuf[:0]          // the frames inside of from
	var from profile.Callers
	for at := depth; at > 0; at-- {
		if at%callersStep == 0 && !cut {
			var known bool
			if from, known = callers[id]; known {
				break
			}
			new = append(new, keptCallers{id, len(stack)})
		}
		stack = append(stack, c.addr(f))
		id = outer
		outer, f, _ = names.Outer(id)
	}
	x := builtPath{noOuter: root.Base != callpath.Whole}
	switch {
	case from != profile.Callers{} || root.Base == callpath.Whole:
	case root.Base == callpath.Named:
		stack = append(stack, c.unknownOuter(root.Outer))
	case depth == 0:
		stack, x.noOuter = append(stack, othersAddr), false
	case cut:
		stack = append(stack, profile.CutAddr(depth))
	default:
		stack = append(stack, deepCutAddr)
	}
	for _, k := range slices.Backward(new) {
		from = b.Callers(from, stack[k.inner:])
		callers[k.id] = from
		stack = stack[:k.inner]
	}
	x.Path = b.PathFrom(from, stack)
	c.stackBuf, c.newBuf = stack, new
	return x
}

// keptCallers are the frames of a path without a number of inner ones.
type keptCallers struct {
	id    callpath.ID
	inner int
}

// maxCut is the largest number of frames in the name of the outermost frame of paths that lack
// their outer frames. Only paths with the same outermost frame share their outer frames in memory.
const maxCut = 64

var deepCutAddr = namedAddr(fmt.Sprintf("(cut at over %d frames)", maxCut))

// allocs appends the entries of a line as Allocs.
func (c *callPaths) allocs(dst []Alloc, entries []recording.Entry, limit *frameLimit) []Alloc {
	addrs := c.stackBuf[:0]
	for i := range entries {
		e := &entries[i]
		a := Alloc{Value: profile.Value{Bytes: e.Bytes, Count: e.Live}, Name: c.names.Name(e.ID), Definition: e.Definition, Blocks: e.Blocks,
			Ever: profile.Value{Bytes: e.AllocBytes, Count: e.Allocs}, Peak: e.Peak}
		var p callpath.Path
		from := len(addrs)
		addrs, p = c.stack(addrs, e.ID, e.Depth, limit)
		a.Stack = addrs[from:len(addrs):len(addrs)]
		a.NoOuter = p.Base == callpath.Named || p.Base == callpath.Cut && len(a.Stack) > 0
		dst = append(dst, a)
	}
	c.stackBuf = addrs
	return dst
}

// pathEvents appends the events of a line.
func (c *callPaths) pathEvents(dst []PathEvent, l *callpath.Events, limit *frameLimit) []PathEvent {
	addrs := c.stackBuf[:0]
	for i := range l.List {
		e := PathEvent{Event: l.List[i]}
		if e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
			var p callpath.Path
			from := len(addrs)
			addrs, p = c.stack(addrs, c.named(e.Path), 0, limit)
			e.Stack = addrs[from:len(addrs):len(addrs)]
			e.NoOuter = p.Base != callpath.Whole
		}
		dst = append(dst, e)
	}
	c.stackBuf = addrs
	return dst
}
