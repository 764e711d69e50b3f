//go:build linux

package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// dump writes a dump of the live blocks by path, now or, if peak is set, at the peak.
func (p *process) dump(why string, micros uint64, peak bool) (blocks, bytes uint64) {
	value := func(s *sum) (blocks, bytes uint64) { return s.live, s.bytes }
	if peak {
		value, micros = p.account.then, p.account.peakAt
	}
	p.settle()
	for id := range p.tree.n {
		n, b := value(p.sum(id))
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
	for _, id := range p.tree.sorted(func(s *sum) bool { n, _ := value(s); return n > 0 }) {
		n := p.tree.node(id)
		p.tree.path(&p.path, id)
		e := callpath.Entry{Path: p.path, Blocks: blocksOf[id]}
		if n.defined {
			e.Path = callpath.Path{Base: callpath.Named, Outer: n.name}
		}
		e.Live, e.Bytes = value(&n.sum)
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
	if p.config.Sample > 0 {
		return fmt.Sprintf("%s, %s of them live at the end", printable.Count(a.allocs, "sampled block"), printable.Number(p.live.n)) + p.faults()
	}
	return fmt.Sprintf("%s, %s, peak %s, %s in %s at the end", printable.Count(a.allocs, "allocation"), printable.Count(a.frees, "free"),
		printable.Count(a.peak, "byte"), printable.Count(a.live, "byte"), printable.Count(a.allocs-a.frees, "allocation")) + p.faults()
}

// faults returns a message on errors in the totals, "" if there are none.
func (p *process) faults() string {
	text := ""
	if n := p.account.lost; n > 0 {
		text += "; " + lostEvents(n) + " lost"
	}
	if n := p.account.conflicts; n > 0 && p.hooks == hooksProgram {
		text += fmt.Sprintf("; %s freed by functions that the program does not export", printable.Count(n, "block"))
	} else if n > 0 {
		text += fmt.Sprintf("; %s whose end was not seen in time", printable.Count(n, "block"))
	}
	return text
}

// lostEvents returns a number of lost events in words. A tally does not count on at its maximum.
func lostEvents(n uint64) string {
	if n >= ringTallyMax {
		return fmt.Sprintf("%d events or more", n)
	}
	return fmt.Sprintf("%d events", n)
}

// incomplete returns an error that says why not all events were recorded, or nil. A program with a
// malloc of its own may have more functions that free than those that it exports, as Chromium has:
// faults counts such blocks.
func (p *process) incomplete() error {
	unseen := 0
	for _, n := range p.owed {
		unseen += n
	}
	switch {
	case p.hooks == hooksNone:
		return errors.New("the program has a malloc of its own, whose calls cannot be recorded")
	case p.account.lost > 0:
		return fmt.Errorf("%s were lost", lostEvents(p.account.lost))
	case unseen > 0 && p.config.Sample == 0 && p.hooks == hooksLibrary:
		return fmt.Errorf("%d frees were not seen", unseen)
	}
	return p.bad
}
