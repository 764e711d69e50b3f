//go:build linux

package record

import (
	"fmt"
	"path/filepath"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// process is a program that runs in a process: exec begins another one.
type process struct {
	key    processKey
	parent uint32
	name   string // path of the program
	word   int    // bits
	config *Config
	clock  *clock
	out    *output
	// host is the PID here, where key.pid is that of the process's own PID namespace. It is
	// negative for a process of another namespace that is not found.
	host  int
	hooks int   // hooksLibrary, ...
	bad   error // why not all of it was recorded
	exe   executable

	modules modules
	tree    tree
	account account
	live    liveTable
	owed    map[uint64]int // by address: expected frees of blocks that have already ended
	names   callpath.Writer
	events  callpath.EventsWriter
	dumps   uint32
	last    uint64 // µs of the last event
	zero    uint64 // µs of the clock at the boot
	mapped  uint64 // the most memory that it had mapped, as it was read last
	begun   bool   // the boot is written
	path    callpath.Path
	text    []byte // buffer of the output
	line    []byte // buffer of the line of events

	threads map[uint32]string // names as written, by TID

	idle    bool // a child without events so far, not in a recording
	pruneAt int  // number of paths at which prune removes empty paths
}

// largest returns the size that no block exceeds: the most memory that the process had mapped, if that is known.
func (p *process) largest() uint64 {
	if n, err := statusBytes(p.host, "VmPeak"); err == nil {
		p.mapped = n
		return n
	}
	return maxSize // it has ended
}

// foreign reports whether the process is in another PID namespace.
func (p *process) foreign() bool { return p.host != int(p.key.pid) }

type processKey struct {
	pid   uint32
	image uint64
}

// boot begins a boot of the recording, without blocks. Times in the boot count from zero, in
// µs of the clock, or from the clock's last measurement if that is earlier.
func (p *process) boot(zero uint64) {
	p.zero = min(zero, p.clock.now)
	p.last = 0
	p.account = account{}
	p.live = liveTable{}
	p.owed = map[uint64]int{}
	for id := range p.tree.n {
		n := p.tree.node(id)
		n.sum, n.defined = sum{}, false
	}
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
	if !p.begun || !p.config.Events || t.tid == t.pid || p.foreign() {
		return
	}
	name := t.name()
	if name == "" || p.threads[t.tid] == name {
		return
	}
	p.threads[t.tid] = name
	p.header(&codec.Header{Verb: "thread", Number: t.tid, HasNumber: true, Keys: []codec.HeaderKey{{Key: "name", Value: name}}})
}

// begin records a new block. ended, if not nil, is the block that was moved to b.
func (p *process) begin(b block, ended *block, tid uint32, micros uint64) {
	b.number = p.account.allocs
	p.put(b, tid, micros)
	if ended != nil {
		p.account.remove(p.sum(ended.path), ended.size)
	}
	p.account.add(p.sum(b.path), b.size, micros)
	if !p.config.Events {
		return
	}
	e := callpath.Event{Kind: callpath.Allocated, Time: micros, Thread: uint64(tid), Path: p.define(b.path), Size: b.size}
	if ended != nil {
		e.Kind, e.Old = callpath.Moved, ended.number
	}
	p.event(e)
}

func (p *process) sum(id pathID) *sum { return &p.tree.node(id).sum }

// put adds a block to the live blocks. If there is already a block at its address, the clocks
// of two processors disagree, or a free was not seen: that block has ended; its free may come.
func (p *process) put(b block, tid uint32, micros uint64) {
	if old, replaced := p.live.put(b); replaced {
		p.account.conflicts++
		p.owed[b.addr]++
		p.end(old, tid, micros)
	}
}

// end records that a block ended. It is no longer in the table.
func (p *process) end(b block, tid uint32, micros uint64) {
	p.account.remove(p.sum(b.path), b.size)
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

// take removes the block at an address, if it is known.
func (p *process) take(addr uint64) (block, bool) {
	if len(p.owed) > 0 && p.owed[addr] > 0 {
		if p.owed[addr]--; p.owed[addr] == 0 {
			delete(p.owed, addr)
		}
		return block{}, false
	}
	return p.live.take(addr)
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
	name := p.tree.node(id).name
	if id < roots {
		return name
	}
	outer, n := id, p.tree.node(id)
	for ; outer >= roots && !n.defined; n = p.tree.node(outer) {
		n.defined = true
		outer = n.parent
	}
	if outer == id {
		return name
	}
	p.tree.path(&p.path, id)
	e := callpath.Entry{Path: p.path, Definition: true}
	if outer >= roots {
		e.Path = callpath.Path{Base: callpath.Named, Outer: n.name, Frames: p.path.Frames[n.depth:]}
	}
	if len(e.Frames) > 0 {
		p.entry(&e)
	}
	return name
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
