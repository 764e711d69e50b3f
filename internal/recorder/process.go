//go:build linux

package recorder

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// process is a program that runs in a process: exec begins another one.
type process struct {
	key    processKey
	parent uint32
	name   string // path of the program
	word   uint64 // bits
	config *Config
	clock  *clock
	out    *output
	// foreign reports whether the process is in another PID namespace, so that its PID has
	// no meaning here.
	foreign bool
	exe     executable

	modules modules
	tree    tree
	account account
	live    liveTable
	owed    map[uint64]int // by address: expected frees of blocks that have already ended
	defined []bool         // by pathID: the recording defines its name
	names   callpath.Writer
	events  callpath.EventsWriter
	dumps   uint32
	last    uint64 // µs of the last event
	zero    uint64 // µs of the clock at the boot
	begun   bool   // the boot is written
	path    callpath.Path
	text    []byte // buffer of the output
	line    []byte // buffer of the line of events

	threads map[uint32]string // names as written, by TID

	forks []fork // heaps for children that may record
	many  int    // number of paths from which on prune removes empty paths
}

type processKey struct {
	pid   uint32
	image uint64
}

// fork holds the live blocks of a process immediately before a fork.
type fork struct {
	stamp uint64
	live  liveTable
}

// maxForks is the most forks whose heap is kept. A child that records nothing never takes it.
const maxForks = 16

// boot begins a boot of the recording, without blocks. Times in the boot count from zero, in
// µs of the clock, or from the clock's last measurement if that is earlier.
func (p *process) boot(zero uint64) {
	p.zero = min(zero, p.clock.now)
	p.last = 0
	p.account = account{}
	p.live.clear()
	p.owed = map[uint64]int{}
	p.defined = nil
	p.threads = map[uint32]string{}
	p.names = callpath.Writer{Whole: 8}
	p.events = callpath.EventsWriter{}
	p.dumps = 0
	h := codec.Header{Verb: codec.VerbBoot, Keys: []codec.HeaderKey{
		{Key: "prog", Value: filepath.Base(p.name)},
		{Key: "pid", Value: fmt.Sprint(p.key.pid)},
	}}
	if p.parent != 0 {
		h.Keys = append(h.Keys, codec.HeaderKey{Key: "parent", Value: fmt.Sprint(p.parent)})
	}
	h.Keys = append(h.Keys, codec.HeaderKey{Key: "w", Value: fmt.Sprint(p.word)},
		codec.HeaderKey{Key: "epoch", Value: fmt.Sprint(p.clock.start.UnixMicro() + int64(p.zero))},
		codec.HeaderKey{Key: "shift", Value: "0"})
	p.header(&h)
	p.text = append(p.text, "~h#map t=0\n{{{reset}}}\n"...)
	p.text = p.modules.append(p.text, 0)
	p.begun = true
}

func (p *process) header(h *codec.Header) {
	text, err := codec.AppendHeader(p.text, h)
	if err != nil {
		panic("recorder: " + err.Error())
	}
	p.text = append(text, '\n')
}

// mark keeps a copy of the live blocks for the child of a fork.
func (p *process) mark(stamp uint64) {
	if !p.begun {
		return
	}
	if len(p.forks) == maxForks {
		p.forks = slices.Delete(p.forks, 0, 1)
	}
	p.forks = append(p.forks, fork{stamp, p.live.clone()})
}

// copy copies modules and call paths from the parent process, and returns the blocks that
// were live at the fork with this stamp.
func (p *process) copy(from *process, stamp uint64) liveTable {
	i := slices.IndexFunc(from.forks, func(f fork) bool { return f.stamp == stamp })
	if i < 0 {
		return liveTable{}
	}
	p.modules, p.tree = from.modules.clone(), from.tree.clone()
	live := from.forks[i].live
	from.forks = slices.Delete(from.forks, i, i+1)
	return live
}

// inherit records the blocks that the process has from its parent.
func (p *process) inherit(live *liveTable) {
	if live.n == 0 {
		return
	}
	for b := range live.all {
		p.begin(b, nil, p.key.pid, 0)
	}
	if !p.config.Events {
		p.dump("fork", 0, false)
	}
}

// flush writes the buffered text to the output.
func (p *process) flush() {
	p.out.write(p.text)
	p.text = p.text[:0]
}

// time returns the time of a stamp in µs since the boot. Times do not decrease.
func (p *process) time(stamp uint64) uint64 {
	if t := p.clock.micros(stamp); t > p.zero+p.last {
		p.last = t - p.zero
	}
	return p.last
}

// thread writes the name of a thread other than the first, unless the recording has it.
func (p *process) thread(t *thread) {
	name := t.name()
	if !p.begun || !p.config.Events || t.tid == t.pid || name == "" || p.threads[t.tid] == name {
		return
	}
	p.threads[t.tid] = name
	p.header(&codec.Header{Verb: "thread", Number: t.tid, HasNumber: true, Keys: []codec.HeaderKey{{Key: "name", Value: name}}})
}

// begin records a new block. ended, if not nil, is the block that was moved to b.
func (p *process) begin(b block, ended *block, tid uint32, micros uint64) {
	if old, replaced := p.live.put(p.numbered(b)); replaced {
		// The clocks of two processors disagree, or a free was not seen. The block at this
		// address has ended; its free may come.
		p.account.conflicts++
		p.owed[b.addr]++
		p.end(old, tid, micros)
	}
	if ended != nil {
		p.account.remove(ended.path, ended.size)
	}
	p.account.add(b.path, b.size, micros)
	if !p.config.Events {
		return
	}
	e := callpath.Event{Kind: callpath.Allocated, Time: micros, Thread: uint64(tid), Path: p.define(b.path), Size: b.size}
	if ended != nil {
		e.Kind, e.Old = callpath.Moved, ended.number
	}
	p.event(e)
}

// numbered returns a block with the number that its event will have.
func (p *process) numbered(b block) block {
	b.number = p.account.allocs
	return b
}

// end records that a block ended. It is no longer in the table.
func (p *process) end(b block, tid uint32, micros uint64) {
	p.account.remove(b.path, b.size)
	if p.config.Events {
		p.event(callpath.Event{Kind: callpath.Freed, Time: micros, Thread: uint64(tid), Old: b.number})
	}
}

// free records the free of an address.
func (p *process) free(addr uint64, tid uint32, micros uint64) {
	b, ok := p.take(addr)
	if ok {
		p.end(b, tid, micros)
		return
	}
	if p.config.Events && p.config.Sample == 0 && addr != 0 {
		p.event(callpath.Event{Kind: callpath.FreedUnknown, Time: micros, Thread: uint64(tid)})
	}
}

// take removes the block at an address. It counts a free of a block that is not known.
func (p *process) take(addr uint64) (block, bool) {
	if len(p.owed) > 0 && p.owed[addr] > 0 {
		if p.owed[addr]--; p.owed[addr] == 0 {
			delete(p.owed, addr)
		}
		return block{}, false
	}
	b, ok := p.live.take(addr)
	if !ok && addr != 0 {
		p.account.foreign++
	}
	return b, ok
}

func (p *process) lose(n, micros uint64) {
	p.account.lost += n
	if p.config.Events {
		p.event(callpath.Event{Kind: callpath.Lost, Count: n, Time: micros})
		return
	}
	p.text = fmt.Appendf(p.text, "~h#lost n=%d\n", n)
}

func (p *process) event(e callpath.Event) {
	line, err := p.events.Append(p.line[:0], e)
	if err != nil {
		panic("recorder: " + err.Error()) // a block older than the boot
	}
	if p.line = line; len(line) == 0 {
		return
	}
	p.text = append(p.names.Flush(p.text), line...) // definitions precede the line that uses them
	if len(p.text) > 1<<16 {
		p.flush()
	}
}

// define returns the name of a path. If the recording does not define the path, define writes
// a definition that continues the longest defined outer part.
func (p *process) define(id pathID) uint32 {
	if int(id) >= len(p.defined) {
		p.defined = append(p.defined, make([]bool, len(p.tree.nodes)-len(p.defined))...)
	}
	if p.defined[id] || id < roots {
		return p.tree.nodes[id].name
	}
	outer := id
	for outer >= roots && !p.defined[outer] {
		p.defined[outer] = true
		outer = p.tree.nodes[outer].parent
	}
	p.tree.path(&p.path, id)
	e := callpath.Entry{Path: p.path, Definition: true}
	if outer >= roots {
		e.Path = callpath.Path{Base: callpath.Named, Outer: p.tree.nodes[outer].name, Frames: p.path.Frames[p.tree.depth(outer):]}
	}
	if len(e.Frames) > 0 {
		p.entry(&e)
	}
	return p.tree.nodes[id].name
}

func (p *process) entry(e *callpath.Entry) {
	var err error
	if p.text, err = p.names.Append(p.text, e); err != nil {
		panic("recorder: " + err.Error()) // more frames, or larger offsets, than the tree takes
	}
	if len(p.text) > 1<<16 {
		p.flush()
	}
}

// dump writes a dump of the live blocks by path, now or, if peak is set, at the peak.
func (p *process) dump(why string, micros uint64, peak bool) (blocks, bytes uint64) {
	value := p.account.now
	if peak {
		value, micros = p.account.then, p.account.peakAt
	}
	p.settle()
	for id := range p.tree.nodes {
		n, b := value(pathID(id))
		blocks, bytes = blocks+n, bytes+b
	}
	p.dumps++
	number := p.dumps - 1
	a := &p.account
	if p.config.Sample == 0 {
		p.text = fmt.Appendf(p.text, "~h#total t=%d allocs=%d frees=%d bytes=%d live=%d peak=%d\n", p.last, a.allocs, a.frees, a.bytes, a.live, a.peak)
	}
	p.text = fmt.Appendf(p.text, "~h#begin %d t=%d k=paths why=%s n=%d b=%d l=%d", number, micros, why, blocks, bytes, p.names.Lines)
	if p.config.Sample > 0 {
		p.text = fmt.Appendf(p.text, " sample=%d", p.config.Sample)
	}
	p.text = append(p.text, '\n')
	p.names.Dump = number
	p.names.Flags = 0
	var blocksOf map[pathID][]callpath.Block
	if p.config.Addresses && !peak {
		blocksOf = p.blocks()
		p.names.Flags, p.names.Unit = callpath.Blocks, p.live.unit()
	}
	var e callpath.Entry
	for id := range p.tree.sorted(func(id pathID) bool { n, _ := value(id); return n > 0 }) {
		p.tree.path(&p.path, id)
		e = callpath.Entry{Path: p.path}
		if int(id) < len(p.defined) && p.defined[id] {
			e.Path = callpath.Path{Base: callpath.Named, Outer: p.tree.nodes[id].name}
		}
		e.Live, e.Bytes = value(id)
		e.Blocks = blocksOf[id]
		p.entry(&e)
	}
	p.text = p.names.Flush(p.text)
	p.names.Flags, p.names.Unit = 0, 0
	p.text = fmt.Appendf(p.text, "~h#end %d n=%d b=%d l=%d\n", number, blocks, bytes, p.names.Lines)
	p.flush()
	p.out.flush()
	return blocks, bytes
}

// blocks returns the live blocks of each path, by address.
func (p *process) blocks() map[pathID][]callpath.Block {
	m := map[pathID][]callpath.Block{}
	for b := range p.live.all {
		m[b.path] = append(m[b.path], callpath.Block{Address: b.addr, Size: b.size})
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b callpath.Block) int { return cmp.Compare(a.Address, b.Address) })
	}
	return m
}

// minMany is the least value of many: some 20 MB of paths.
const minMany = 1 << 18

// prune removes empty call paths once there are many paths. It keeps the paths that hold a
// block now, in forks or, with AtPeak, at the peak, and the paths to which a thread of the
// process may refer.
func (p *process) prune(threads []*thread) {
	if len(p.tree.nodes) < max(p.many, minMany) {
		return
	}
	wanted := make([]bool, len(p.tree.nodes))
	for id := range p.account.sums {
		s := &p.account.sums[id]
		wanted[id] = s.live > 0 || p.config.AtPeak && s.epoch == p.account.epoch && s.peakLive > 0
	}
	refer := func(each func(*pathID)) {
		p.live.paths(each)
		for i := range p.forks {
			p.forks[i].live.paths(each)
		}
		for _, t := range threads {
			if t == nil || t.proc != p {
				continue
			}
			each(&t.last)
			each(&t.moving.path)
			for i := range t.places {
				each(&t.places[i])
			}
		}
	}
	refer(func(id *pathID) { wanted[*id] = true })
	moved := p.tree.prune(wanted)
	refer(func(id *pathID) { *id = moved[*id] })
	sums, defined := make([]sum, len(p.tree.nodes)), make([]bool, len(p.tree.nodes))
	for id, to := range moved {
		if to == 0 && id != 0 {
			continue
		}
		if id < len(p.account.sums) {
			sums[to] = p.account.sums[id]
		}
		if id < len(p.defined) {
			defined[to] = p.defined[id]
		}
	}
	p.account.sums, p.defined = sums, defined
	p.many = 2 * len(p.tree.nodes)
}

// settle completes the unfinished lines.
func (p *process) settle() {
	p.text = p.names.Flush(p.text)
	p.text = p.events.Flush(p.text)
}

// finish writes the last dump.
func (p *process) finish(why string, micros uint64) {
	if p.config.AtPeak {
		p.dump("peak", micros, true)
	}
	p.dump(why, micros, false)
}

// String returns a sentence with the totals.
func (p *process) String() string {
	a := &p.account
	var b strings.Builder
	if p.config.Sample > 0 {
		blocks, bytes, stderr := p.estimate()
		fmt.Fprintf(&b, "%s ± %s bytes (standard error) in about %s at the end, from %s of %s",
			rounded(bytes), rounded(stderr), printable.Count(uint64(math.Round(blocks)), "allocation"),
			printable.Number(p.live.n), printable.Count(a.allocs, "sampled block"))
		return b.String() + p.faults()
	}
	fmt.Fprintf(&b, "%s, %s, peak %s, %s in %s at the end", printable.Count(a.allocs, "allocation"), printable.Count(a.frees, "free"),
		printable.Count(a.peak, "byte"), printable.Count(a.live, "byte"), printable.Count(a.allocs-a.frees, "allocation"))
	return b.String() + p.faults()
}

func rounded(x float64) string { return printable.Number(uint64(math.Round(x))) }

// estimate returns an estimate of all live blocks from the sampled ones, and the standard
// error of their bytes. A block is sampled with probability p = 1 − exp(−size/rate).
func (p *process) estimate() (blocks, bytes, stderr float64) {
	variance := 0.0
	for b := range p.live.all {
		size := float64(b.size)
		q := -math.Expm1(-size / float64(p.config.Sample))
		if q == 0 {
			continue // of no bytes: never sampled
		}
		blocks, bytes = blocks+1/q, bytes+size/q
		variance += size * size * (1 - q) / (q * q)
	}
	return blocks, bytes, math.Sqrt(variance)
}

// faults returns a message on errors in the totals, "" if there are none.
func (p *process) faults() string {
	text := ""
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{p.account.lost, "events lost"},
		{p.account.conflicts, "blocks whose end was not seen in time"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf("; %d %s", c.n, c.what)
		}
	}
	return text
}
