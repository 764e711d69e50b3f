package heaplog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/process"
	"github.com/lwsbt/lwsbt/internal/input"
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

// bases are the ELF files of each boot, and the load bases of position-independent ones, as a survey has
// inferred them.
type bases struct {
	surveyed bool
	choices  map[int]*symbol.Choice // by boot
	byBoot   map[int][]symbol.Base  // nil if bases are not inferred
	notes    []string
	// live means that the log may continue after the survey. Bases are then inferred again
	// each time the number of distinct addresses has doubled, or grown by a quarter as long as none are known.
	live  bool
	known map[symbol.ReturnAddr]bool // addresses found by the survey
}

// wanted reports whether a survey must choose files or infer bases.
func (b *bases) wanted(c *config, p *process.Process) bool {
	if b.surveyed || c.symbols.NoFiles || len(p.Files()) == 0 {
		return false
	}
	again := func(in *input.Input) bool { return in.Stream == nil && !in.Live }
	return b.infers(c, p) || len(p.Files()) > 1 || !slices.ContainsFunc(c.inputs, func(in *input.Input) bool { return !again(in) })
}

// infers reports whether bases must be inferred.
func (b *bases) infers(c *config, p *process.Process) bool {
	return !b.surveyed && !c.symbols.NoFiles && len(c.maps) == 0 && len(p.Unplaced()) > 0
}

// survey reads the logs once to find the load bases. Streams are copied first: of a live log, the data
// available now. Of a log that is followed, it reads what is there now.
func (r *Reader) survey() error {
	h := input.Hooks{Ctx: r.ctx, Survey: true}
	b := &r.learned.bases
	infer := b.infers(&r.config, r.process)
	for i, in := range r.inputs {
		switch {
		case in.Stream != nil:
			if err := in.Stream.Spool(&h, i == 0); err != nil {
				return err
			}
			b.live = b.live || !in.Stream.Ended
		case in.Live: // it is followed and has no end
			b.live = true
		}
	}
	b.surveyed, b.choices = true, map[int]*symbol.Choice{}
	c := surveyor{process: r.process, lossless: r.symbols.Lossless, evidence: newEvidence()}
	if infer {
		b.byBoot, c.seen = map[int][]symbol.Base{}, map[symbol.ReturnAddr]bool{}
	}
	c.bases = *b
	p := r.begin(false)
	for at := range p.all {
		if at.item != nil {
			c.add(at)
		} else if err := at.err; err != nil && r.ctx.Err() == nil && !isRead(err) && !errors.Is(err, ErrNoRecord) { // otherwise, the next pass finds it
			return err
		}
	}
	c.endBoot()
	*b = c.bases
	switch {
	case !infer:
	case r.process.Mapped(): // the log contains the memory map
		b.byBoot, b.live = nil, false
	default:
		b.known = c.seen
	}
	return nil
}

// surveyor chooses the files of each boot, and infers the load bases from the
// addresses of the boot.
type surveyor struct {
	process  *process.Process
	lossless bool // of the encoder
	boot     int
	program  symbol.Boot // of this boot
	evidence *evidence
	seen     map[symbol.ReturnAddr]bool // nil if bases are not inferred
	bases    bases
}

func (c *surveyor) add(at *placed) {
	if at.item.Stack == nil && at.item.Kind != recording.KindPaths {
		return
	}
	if at.boot != c.boot {
		c.endBoot()
		c.boot, c.program = at.boot, programOf(at)
		clear(c.seen)
	}
	c.evidence.mapped = c.evidence.mapped || c.process.Mapped()
	c.evidence.add(at, c.lossless)
	if c.seen == nil {
		return
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

// endBoot chooses the files of the boot, and infers their bases.
func (c *surveyor) endBoot() {
	if c.boot == 0 {
		return
	}
	choice := c.evidence.choose(c.process, c.program)
	c.bases.choices[c.boot] = choice
	c.evidence = newEvidence()
	if len(c.seen) > 0 {
		c.process.Use(choice)
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
