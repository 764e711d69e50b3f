package heaplog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/symbol"
)

const (
	// maxGathered is how many distinct addresses of a boot are gathered: more tell no more
	// about its load bases.
	maxGathered = 1 << 20
	// minGathered is with how many load bases are first inferred on a live log.
	minGathered = 8
	// maxBaseNotes is of how many boots a note says that bases cannot be inferred.
	maxBaseNotes = 50
)

// bases is where position-independent files were loaded, by boot.
type bases struct {
	surveyed bool
	byBoot   map[int][]symbol.Base // as far as inferred; nil if bases are not inferred
	current  []symbol.Base
	notes    []string
	// live: the log may go on after the survey, and bases are inferred again each time
	// that twice as many addresses were seen.
	live  bool
	known map[symbol.ReturnAddr]bool // as the survey left it
	seen  map[symbol.ReturnAddr]bool
	retry int // size of seen
}

// wanted reports whether a survey has to infer bases.
func (b *bases) wanted(r *Reader) bool {
	return !b.surveyed && !r.symbols.NoFiles && len(r.maps) == 0 && r.section == "" && len(r.process.Unplaced()) > 0
}

// survey reads the logs once to learn where dumps begin, and the load bases. What cannot be
// read twice is copied first; of a live log, what there is now, or with all, everything.
func (r *Reader) survey(all bool) error {
	h := hooks{ctx: r.ctx, survey: true}
	b := &r.bases
	infer := b.wanted(r)
	for i, in := range r.inputs {
		switch {
		case in.stream != nil:
			if err := in.stream.spool(&h, all, i == 0); err != nil {
				return err
			}
			b.live = b.live || !in.stream.ended
		case in.live: // it is followed, and has no end
			b.live = true
			if all {
				return fmt.Errorf("%s: is read until it is interrupted: dumps cannot be selected in it", in.name)
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
	p.hooks.survey = true
	p.run()
	if c.err != nil {
		return c.err
	}
	if r.selected {
		r.starts = p.sequence.dumps
	}
	switch {
	case !infer:
	case r.process.Mapped(): // the log tells
		b.byBoot, b.live = nil, false
	default:
		c.infer()
		b.known = c.seen
	}
	return nil
}

// surveyor gathers the addresses of each boot.
type surveyor struct {
	r    *Reader
	boot int
	seen map[symbol.ReturnAddr]bool // nil if bases are not to be inferred
	err  error
}

func (c *surveyor) item(p *pass, it *Item, _ boundary) bool {
	if c.seen == nil || it.Stack == nil {
		return true
	}
	if boot := max(p.sequence.boot, 1); boot != c.boot {
		c.infer()
		c.boot = boot
		clear(c.seen)
	}
	c.r.gather(c.seen, it)
	return true
}

// fail keeps errors that another pass would not meet.
func (c *surveyor) fail(err error) bool {
	if c.r.ctx.Err() == nil && !isRead(err) {
		c.err = err
	}
	return true
}

func (c *surveyor) end(*pass) bool { return true }

// infer infers the bases of the boot whose addresses were gathered.
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

// inferFrom infers bases from addresses. It appends to notes of which files it cannot.
func (r *Reader) inferFrom(seen map[symbol.ReturnAddr]bool, notes *[]string) (found []symbol.Base) {
	for _, b := range symbol.InferBases(r.process.Unplaced(), slices.Collect(maps.Keys(seen))) {
		if b.Sound() {
			found = append(found, b)
		} else if len(*notes) < maxBaseNotes {
			*notes = append(*notes, fmt.Sprintf("%s: cannot infer the load base: %v; give --maps or -e %s@0xADDR, or link with -no-pie", b.File.Path, b, b.File.Path))
		}
	}
	return found
}

// begin begins a pass.
func (b *bases) begin() {
	b.current, b.seen, b.retry = nil, map[symbol.ReturnAddr]bool{}, minGathered
	maps.Copy(b.seen, b.known)
	b.retry = max(b.retry, 2*len(b.seen))
}

// turn sets the bases of a boot. If only one boot has bases, all have these.
func (b *bases) turn(p *symbol.Process, boot int) {
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

// again infers bases again on a live log, each time that twice as many distinct addresses
// were seen. late reports that these are the first bases: the records before have none.
func (b *bases) again(r *Reader, it *Item) (late bool) {
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
