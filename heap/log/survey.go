package heaplog

import (
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

// bases holds the load bases of position-independent files, by boot.
type bases struct {
	surveyed bool
	byBoot   map[int][]symbol.Base // the bases inferred so far; nil if bases are not inferred
	current  []symbol.Base
	notes    []string
	// live means that the log may continue after the survey. Bases are then inferred again
	// each time the number of distinct addresses has doubled.
	live  bool
	known map[symbol.ReturnAddr]bool // addresses found by the survey
	seen  map[symbol.ReturnAddr]bool
	retry int // size of seen at which bases are inferred again
}

// wanted reports whether a survey must infer bases.
func (b *bases) wanted(r *Reader) bool {
	return !b.surveyed && !r.symbols.NoFiles && len(r.maps) == 0 && len(r.process.Unplaced()) > 0
}

// survey reads the logs once to find where dumps begin, and the load bases. Streams are
// copied first: of a live log, the data available now or, with all, everything.
func (r *Reader) survey(all bool) error {
	h := input.Hooks{Ctx: r.ctx, Survey: true}
	b := &r.bases
	infer := b.wanted(r)
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
			if infer {
				b.surveyed, b.byBoot = true, map[int][]symbol.Base{}
			}
			return nil
		}
	}
	c := &surveyor{r: r}
	if infer {
		b.surveyed, b.byBoot, c.seen = true, map[int][]symbol.Base{}, map[symbol.ReturnAddr]bool{}
	}
	p := newPass(r, c)
	p.hooks.Survey = true
	p.run()
	if c.err != nil {
		return c.err
	}
	if r.selected {
		r.starts = c.starts
	}
	if r.namesFirst {
		r.names = append([]*callpath.Names{}, p.names...)
	}
	switch {
	case !infer:
	case r.process.Mapped(): // the log contains the memory map
		b.byBoot, b.live = nil, false
	default:
		c.infer()
		b.known = c.seen
	}
	return nil
}

// dumpStart is where a dump begins.
type dumpStart struct {
	input  int   // index of its log
	offset int64 // in its log
}

// surveyor gathers the beginnings of dumps, and the addresses of each boot.
type surveyor struct {
	r      *Reader
	starts []dumpStart
	boot   int
	seen   map[symbol.ReturnAddr]bool // nil if bases are not inferred
	err    error
}

func (c *surveyor) item(it *Item, at *placed) bool {
	if at.count > len(c.starts) {
		c.starts = append(c.starts, dumpStart{at.dump.input, at.dump.Offset})
	}
	if c.seen == nil || it.Stack == nil && it.Kind != recording.KindPaths {
		return true
	}
	if at.boot != c.boot {
		c.infer()
		c.boot = at.boot
		clear(c.seen)
	}
	if it.Kind == recording.KindPaths {
		for _, pc := range at.callPaths.pcs {
			if len(c.seen) < maxGathered {
				c.seen[symbol.ReturnAddr{PC: pc}] = true
			}
		}
		return true
	}
	c.r.gather(c.seen, it)
	return true
}

// fail keeps the errors that a second pass would not find.
func (c *surveyor) fail(err error) bool {
	if c.r.ctx.Err() == nil && !isRead(err) {
		c.err = err
	}
	return true
}

func (c *surveyor) end(ending) bool { return true }

func (c *surveyor) report() *report { return &report{} }

// infer infers the bases of the boot from its gathered addresses.
func (c *surveyor) infer() {
	if len(c.seen) > 0 {
		c.r.bases.byBoot[c.boot] = c.r.inferFrom(c.seen, &c.r.bases.notes)
	}
}

// gather adds the addresses of a record.
func (r *Reader) gather(to map[symbol.ReturnAddr]bool, it *Item) {
	if len(to) >= maxGathered {
		return
	}
	for i, pc := range it.Stack.PCs {
		to[symbol.ReturnAddr{PC: pc, Lossy: it.Stack.Marks.Lossy>>i&1 != 0 && !r.symbols.Lossless}] = true
	}
}

// inferFrom infers bases from addresses. It appends a note for each file whose base it cannot
// infer.
func (r *Reader) inferFrom(seen map[symbol.ReturnAddr]bool, notes *[]string) (found []symbol.Base) {
	for _, b := range symbol.InferBases(r.process.Unplaced(), slices.Collect(maps.Keys(seen))) {
		if b.Sound() {
			found = append(found, b)
		} else if len(*notes) < maxBaseNotes {
			*notes = append(*notes, fmt.Sprintf("%s: cannot infer the load base: %v; the program may be another build", b.File.Path, b))
		}
	}
	return found
}

// begin resets the bases for a pass.
func (b *bases) begin() {
	b.current, b.seen, b.retry = nil, map[symbol.ReturnAddr]bool{}, minGathered
	maps.Copy(b.seen, b.known)
	b.retry = max(b.retry, 2*len(b.seen))
}

// setBoot sets the bases of a boot. If only one boot has bases, all boots get them.
func (b *bases) setBoot(p *process.Process, boot int) {
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
func (b *bases) refine(r *Reader, it *Item) (late bool) {
	if !b.live || b.byBoot == nil || r.process.Mapped() || len(b.seen) >= maxGathered {
		return false
	}
	r.gather(b.seen, it)
	if len(b.seen) < b.retry {
		return false
	}
	b.retry = 2 * len(b.seen)
	var missing []string
	found := r.inferFrom(b.seen, &missing)
	if len(found) == 0 {
		return false
	}
	late = len(b.current) == 0
	b.current = found
	r.process.SetBases(found)
	return late
}
