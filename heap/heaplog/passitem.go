package heaplog

import (
	"bytes"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// use places and names an item, and yields it.
func (p *pass) use(rec *forms.Item) bool {
	if rec.Kind == recording.KindText {
		return p.useText(rec)
	}
	it, at := &p.item, &p.at
	it.Item = *rec.Item
	it.Allocs, it.Events, it.Heap, it.located = nil, nil, nil, nil
	p.place(it, at)
	it.Dump, it.Boot = at.count, at.boot
	p.tally.add(it, at)
	return p.err == nil && p.yield(at)
}

// useText is use for text between records.
func (p *pass) useText(rec *forms.Item) bool {
	p.text(rec)
	p.tally.last = rec.Place
	it, at := &p.between, &p.betweenAt
	it.Place, it.Text = rec.Place, rec.Text
	at.boot, at.input, at.count, at.dump = p.places.bootNumber(), p.places.input, p.places.count, p.places.dump
	it.Dump, it.Boot = at.count, at.boot
	return p.yield(at)
}

// place finds the place of an item, and names the addresses of a record.
func (p *pass) place(it *Item, at *placed) {
	switch it.Kind {
	case recording.KindUnreadable:
		p.places.other(&it.Item, at)
	case recording.KindHeader:
		p.header(it, at)
	case recording.KindPaths, recording.KindPathEvents:
		p.line(it, at)
	case recording.KindEvent:
		p.places.other(&it.Item, at)
		p.record(it)
	default:
		p.places.beforeRecord()
		p.places.record(&it.Item, at)
		p.record(it)
	}
}

// text processes text between records.
func (p *pass) text(rec *forms.Item) {
	p.places.prose(rec.Text)
	boots, err := p.process.Markup(rec.Text)
	if boots {
		p.places.restart()
	}
	if p.levels != nil {
		if boots {
			p.levels.Boot()
		}
		for _, line := range rec.Lines {
			p.places.reported = p.levels.Line(line) > 0 || p.places.reported
		}
	}
	if err != nil && p.naming {
		p.tally.badMarkup(err)
	}
}

// header processes a ~h# line.
func (p *pass) header(it *Item, at *placed) {
	given, sameELF := len(p.c.maps) > 0, false
	if it.Header.Verb == codec.VerbBoot {
		if p.levels != nil {
			p.levels.Boot()
		}
		p.restoreBoot(it)
		sameELF = len(p.process.Files()) > 0 && (p.paths == nil || p.paths.closed || p.paths.code.FromELF())
	}
	p.places.header(&it.Item, at, sameELF)
	at.callPaths = p.paths
	if it.Header.Verb == codec.VerbBegin && p.c.refresh > 0 && p.levels != nil && p.levels.Samples > p.sampled+p.sampled/8 {
		p.findHeaps()
	}
	at.heaps = p.heaps
	p.process.Marked()
	switch it.Header.Verb {
	case codec.VerbBoot:
		p.word.Boot(&it.Item)
		if !given {
			p.process.Reset()
			p.boot = 0
		}
		p.newCode()
		p.useBoot()
	case "map": // the modules known so far end here (BT-REC-4)
		if !given {
			p.process.Remap()
		}
	}
}

// restoreBoot gives a ~h#boot that is cut the keys of the one before. It is cut if it lacks keys of
// that one, and is otherwise its beginning.
func (p *pass) restoreBoot(it *Item) {
	if rest, ok := bytes.CutPrefix(p.bootText, it.Text); ok && bytes.IndexByte(rest, ' ') >= 0 {
		var whole codec.Header
		if codec.ParseHeader(&whole, p.bootText) == nil {
			it.Header = &whole
			p.tally.note(NoteLoss, fmt.Sprintf("%s:%d: the ~h#boot is cut: its keys are those of the one before", it.File, it.Line))
		}
		return
	}
	p.bootText = append(p.bootText[:0], it.Text...)
}

// record names the addresses of a record with a stack.
func (p *pass) record(it *Item) {
	p.word.Record(&it.Item)
	if !p.locatable(it) || !p.naming {
		return
	}
	p.bases.judge(p.process, &p.at, p.c.symbols.Lossless)
	if p.bases.refine(p.process, it, p.c.symbols.Lossless) && p.tally.readable > 0 {
		p.tally.note(NoteSymbols, fmt.Sprintf("no load base was known before %s:%d: addresses of earlier records have no names", it.File, it.Line))
	}
	p.resolve(it)
	p.at.naming = p.bases.changes
}

// locatable prepares the process for the addresses of an item. It returns false after an
// error, which ends the pass.
func (p *pass) locatable(it *Item) bool {
	if !p.given && len(p.c.mappings) > 0 {
		p.process.Map(p.c.mappings)
		p.given = true
	}
	if p.err = p.setWord(); p.err != nil {
		return false
	}
	p.useBoot()
	return true
}

// useBoot makes the process that of the current boot.
func (p *pass) useBoot() {
	if boot := p.places.bootNumber(); boot != p.boot {
		p.boot = boot
		p.bases.setBoot(p.process, boot, p.program())
	}
}

// program returns what the ~h#boot of this boot says of its program.
func (p *pass) program() (b symbol.Boot) {
	at := placed{}
	p.places.fill(&at, stays)
	at.header = p.places.log.Boot().Header
	return programOf(&at)
}

// newCode begins a boot with its ~h#boot line, or a log.
func (p *pass) newCode() {
	p.process.ResetCode()
	if p.paths != nil {
		p.paths.closed = true
	}
}

// callPaths returns the call paths of this boot.
func (p *pass) callPaths() *callPaths {
	c, boot := p.paths, p.places.log.Boot()
	if c == nil || c.closed {
		c = newCallPaths(p.process, len(p.c.maps) > 0, boot, c, &p.tally.outside)
		if c.code.Problem != "" {
			p.tally.note(NoteSymbols, c.code.Problem)
		}
		p.paths = c
	}
	c.settle()
	if boot.Names != c.names {
		p.places.log.SetNames(c.names)
	}
	return c
}

// line processes a line of call paths or of events.
func (p *pass) line(it *Item, at *placed) {
	p.places.beforeRecord()
	if !p.locatable(it) {
		return
	}
	c := p.callPaths()
	if it.Kind == recording.KindPaths {
		p.places.pathLine(&it.Item, at)
		at.callPaths = c
		p.bases.judge(p.process, at, false)
		p.tally.states[symbol.Exact] += c.line(&at.Placed, p.naming)
	} else {
		p.places.other(&it.Item, at)
	}
	at.callPaths = c
}

// setWord rejects ELF files whose address size differs from the log's.
func (p *pass) setWord() error {
	if p.c.machineBy != "" {
		return nil
	}
	if err := p.word.Accept(p.process); err != nil {
		return &OptionError{"Exe", err}
	}
	return nil
}

// resolve names the addresses of a record, unless the same record was named before.
func (p *pass) resolve(it *Item) {
	d := p.locatedBefore(it)
	if generation := p.process.Generation() + 1; d.generation != generation {
		d.generation = generation
		d.hasPath = false
		p.lookUp(d, it)
	}
	it.located, it.Allocs = d, d.allocs[:]
	t := &p.tally
	for state := range d.states {
		t.states[state] += int64(d.states[state])
	}
	t.ambiguous += int64(d.ambiguous)
	if d.allocs[0].SizeLost {
		t.lostSizes++
	}
}

// locatedBefore returns the names of the same record, as far as they are cached.
func (p *pass) locatedBefore(it *Item) *located {
	if it.Memo == nil {
		p.scratch.generation = 0
		return &p.scratch
	}
	d, ok := (*it.Memo).(*located)
	if !ok {
		d = &located{}
		*it.Memo = d
	}
	return d
}

// lookUp names the addresses of a record.
func (p *pass) lookUp(d *located, it *Item) {
	s := it.Stack
	a := &d.allocs[0]
	a.Stack = p.process.Resolve(a.Stack[:0], s, it.Blob)
	a.Value = profile.Value{Bytes: s.Size, Count: 1}
	a.SizeLost = s.Marks.LossySize && !p.c.symbols.Lossless
	d.states, d.ambiguous = [3]int32{}, 0
	names := p.logNames.any()
	for i := range a.Stack {
		addr := &a.Stack[i]
		d.states[addr.State]++
		if addr.State == symbol.Lost && addr.Ambiguous() {
			d.ambiguous++
		}
		if names {
			*addr = p.logNames.name(*addr)
		}
	}
}
