package heaplog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/internal/process"
	"github.com/lwsbt/lwsbt/symbol"
)

const (
	// maxGathered is the maximum number of distinct addresses gathered per boot. More
	// addresses do not improve the inferred load bases.
	maxGathered = 1 << 20
	// minGathered is the number of addresses after which load bases are first inferred on a
	// live log.
	minGathered = 8
	// maxBaseNotes is the maximum number of boots with a note that a base cannot be
	// inferred.
	maxBaseNotes = 50
)

// bases are the load bases of position-independent files, as a survey has inferred them.
type bases struct {
	surveyed bool
	byBoot   map[int][]symbol.Base // nil if bases are not inferred
	notes    []string
	// live means that the log may continue after the survey. Bases are then inferred again
	// each time the number of distinct addresses has doubled, or grown by a quarter as long as none are known.
	live  bool
	known map[symbol.ReturnAddr]bool // addresses found by the survey
}

// passBases are the load bases of a pass.
type passBases struct {
	bases
	current []symbol.Base
	seen    map[symbol.ReturnAddr]bool
	retry   int // size of seen at which bases are inferred again
	changes int // how often they have changed since records were read
}

// wanted reports whether a survey must infer bases.
func (b *bases) wanted(c *config, p *process.Process) bool {
	return !b.surveyed && !c.symbols.NoFiles && len(c.maps) == 0 && len(p.Unplaced()) > 0
}

// survey reads the logs once to find where dumps begin, the load bases, and the names of call paths.
// Streams are copied first: of a live log, the data available now or, with all, everything. Of a log that is
// followed, it reads what is there now.
func (r *Reader) survey(all bool) error {
	h := input.Hooks{Ctx: r.ctx, Survey: true}
	b := &r.learned.bases
	infer := b.wanted(&r.config, r.process)
	for i, in := range r.inputs {
		switch {
		case in.Stream != nil:
			if err := in.Stream.Spool(&h, all, i == 0); err != nil {
				return err
			}
			b.live = b.live || !in.Stream.Ended
		case in.Live: // it is followed and has no end
			b.live = true
			if all {
				return fmt.Errorf("%s: is read until it is interrupted: dumps cannot be selected in it", in.Name)
			}
		}
	}
	c := surveyor{process: r.process, lossless: r.symbols.Lossless}
	if infer {
		b.surveyed, b.byBoot, c.seen = true, map[int][]symbol.Base{}, map[symbol.ReturnAddr]bool{}
		c.bases = *b
	}
	p := r.begin(false)
	for at := range p.all {
		if at.item != nil {
			c.add(at)
		} else if err := at.err; err != nil && r.ctx.Err() == nil && !isRead(err) && !(b.live && errors.Is(err, ErrNoRecord)) { // otherwise, the next pass finds it
			return err
		}
	}
	if r.selected {
		r.learned.starts = c.starts
	}
	if r.namesFirst {
		r.learned.names = append([]*callpath.Names{}, p.names...)
	}
	switch {
	case !infer:
	case r.process.Mapped(): // the log contains the memory map
		b.byBoot, b.live = nil, false
	default:
		c.infer()
		*b = c.bases
		b.known = c.seen
	}
	return nil
}

// dumpStart is where a dump begins.
type dumpStart struct {
	input  int   // index of its log
	offset int64 // in its log
}

// surveyor gathers the beginnings of dumps, and infers the load bases from the addresses of each boot.
type surveyor struct {
	process  *process.Process
	lossless bool // of the encoder
	starts   []dumpStart
	boot     int
	seen     map[symbol.ReturnAddr]bool // nil if bases are not inferred
	bases    bases
}

func (c *surveyor) add(at *placed) {
	if at.count > len(c.starts) {
		c.starts = append(c.starts, dumpStart{at.dump.input, at.dump.Offset})
	}
	if c.seen == nil || at.item.Stack == nil && at.item.Kind != recording.KindPaths {
		return
	}
	if at.boot != c.boot {
		c.infer()
		c.boot = at.boot
		clear(c.seen)
	}
	if at.item.Kind != recording.KindPaths {
		gather(c.seen, at.item, c.lossless)
		return
	}
	for _, pc := range at.callPaths.pcs {
		if len(c.seen) < maxGathered {
			c.seen[symbol.ReturnAddr{PC: pc}] = true
		}
	}
}

// infer infers the bases of the boot from its gathered addresses.
func (c *surveyor) infer() {
	if len(c.seen) > 0 {
		c.bases.byBoot[c.boot] = inferFrom(c.process, c.seen, &c.bases.notes)
	}
}

// gather adds the addresses of a record.
func gather(to map[symbol.ReturnAddr]bool, it *Item, lossless bool) {
	if len(to) >= maxGathered {
		return
	}
	for i, pc := range it.Stack.PCs {
		to[symbol.ReturnAddr{PC: pc, Lossy: it.Stack.Marks.Lossy>>i&1 != 0 && !lossless}] = true
	}
}

// inferFrom infers bases from addresses. It appends a note for each file whose base it cannot
// infer.
func inferFrom(p *process.Process, seen map[symbol.ReturnAddr]bool, notes *[]string) (found []symbol.Base) {
	for _, b := range symbol.InferBases(p.Unplaced(), slices.Collect(maps.Keys(seen))) {
		if b.Sound() {
			found = append(found, b)
		} else if len(*notes) < maxBaseNotes {
			*notes = append(*notes, fmt.Sprintf("%s: cannot infer the load base: %v; the program may be another build", b.File.Path, b))
		}
	}
	return found
}

// begin returns the bases for a pass.
func (b bases) begin() passBases {
	p := passBases{bases: b, seen: maps.Clone(b.known)}
	if p.seen == nil {
		p.seen = map[symbol.ReturnAddr]bool{}
	}
	p.retry = max(minGathered, len(p.seen)+1)
	return p
}

// setBoot sets the bases of a boot. If only one boot has bases, all boots get them.
func (b *passBases) setBoot(p *process.Process, boot int) {
	if b.byBoot == nil {
		return
	}
	if len(b.byBoot) == 1 {
		for _, only := range b.byBoot {
			b.current = only
		}
	} else if found, ok := b.byBoot[boot]; ok {
		b.current = found
	}
	p.SetBases(b.current)
}

// refine infers the bases of a live log again when the number of distinct addresses has
// doubled. late reports that these are the first bases, so that earlier records have no
// names.
func (b *passBases) refine(p *process.Process, it *Item, lossless bool) (late bool) {
	if !b.live || b.byBoot == nil || p.Mapped() || len(b.seen) >= maxGathered {
		return false
	}
	gather(b.seen, it, lossless)
	if len(b.seen) < b.retry {
		return false
	}
	b.retry = 2 * len(b.seen)
	if len(b.current) == 0 {
		b.retry = len(b.seen) + 1 + len(b.seen)/4
	}
	var missing []string
	found := inferFrom(p, b.seen, &missing)
	if len(found) == 0 {
		return false
	}
	late = len(b.current) == 0
	if !slices.EqualFunc(found, b.current, func(x, y symbol.Base) bool { return x.File == y.File && x.Bias == y.Bias }) {
		b.changes++
	}
	b.current = found
	p.SetBases(found)
	return late
}
