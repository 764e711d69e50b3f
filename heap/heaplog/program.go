package heaplog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/codec/recording/reconcile"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/process"
	"github.com/lwsbt/lwsbt/symbol"
)

// programOf returns what the ~h#boot of the boot of an item says of its program.
func programOf(at *placed) (b symbol.Boot) {
	if at.header != nil && at.bootText != "" {
		b.Build, _ = at.header.Get("build")
		b.Firmware, _ = at.header.Get("fw")
		b.Text, _ = at.header.Get("text")
		b.Code = reconcile.Ranges(at.header, "code")
	}
	return b
}

// evidence has the addresses of a boot, with the number of records that have each.
type evidence struct {
	mapped  bool
	memory  map[symbol.ReturnAddr]int
	offsets process.Frames // code offsets that count the code of the ELF file
}

func newEvidence() *evidence {
	return &evidence{memory: map[symbol.ReturnAddr]int{}, offsets: process.Frames{}}
}

// add adds the addresses of a record or of a line of call paths. Those of a record that is cut may be wrong.
func (e *evidence) add(at *placed, lossless bool) {
	it := at.item
	switch {
	case it.Err != nil || len(e.memory)+len(e.offsets) >= maxGathered:
	case it.Kind != recording.KindPaths:
		for i, pc := range it.Stack.PCs {
			e.memory[symbol.ReturnAddr{PC: pc, Lossy: it.Stack.Marks.Lossy>>i&1 != 0 && !lossless}]++
		}
	default:
		for _, f := range at.Frames {
			if pc, memory, ok := at.callPaths.code.Address(f); ok && memory {
				e.memory[symbol.ReturnAddr{PC: pc}]++
			} else if !f.Escaped {
				e.offsets[f]++
			}
		}
	}
}

// choose chooses the files of the boot.
func (e *evidence) choose(p *process.Process, b symbol.Boot) *symbol.Choice {
	x := symbol.Evidence{Memory: e.memory, Mapped: e.mapped}
	if len(e.offsets) > 0 {
		x.Own = e.offsets.Own
	}
	return p.Choose(b, x)
}

// passBases are the files and load bases of a pass.
type passBases struct {
	bases
	boot    int
	program symbol.Boot // of this boot
	used    map[int]*symbol.Choice
	current []symbol.Base
	seen    map[symbol.ReturnAddr]bool
	retry   int // size of seen at which bases are inferred again
	changes int // how often they, or the files of a boot, have changed since records were read

	evidence *evidence // of this boot, if no survey has chosen its files
	records  int       // in it
}

// begin returns the bases for a pass.
func (b bases) begin() passBases {
	p := passBases{bases: b, seen: maps.Clone(b.known), used: map[int]*symbol.Choice{}}
	if p.seen == nil {
		p.seen = map[symbol.ReturnAddr]bool{}
	}
	p.retry = max(minGathered, len(p.seen)+1)
	return p
}

// setBoot sets the files and bases of a boot. If only one boot has bases, all boots get them.
func (b *passBases) setBoot(p *process.Process, boot int, program symbol.Boot) {
	choice := b.choices[boot]
	b.boot, b.program, b.evidence, b.records = boot, program, nil, 0
	if choice == nil {
		choice = p.Choose(program, symbol.Evidence{Mapped: p.Mapped()})
		if len(p.Files()) > 0 {
			b.evidence = newEvidence()
		}
	}
	p.Use(choice)
	b.used[boot] = choice
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

// judge chooses the files of a boot of a live log again when the number of records has doubled.
func (b *passBases) judge(p *process.Process, at *placed, lossless bool) {
	if b.evidence == nil {
		return
	}
	b.evidence.mapped = b.evidence.mapped || p.Mapped()
	b.evidence.add(at, lossless)
	if b.records++; b.records < minGathered || b.records&(b.records-1) != 0 {
		return
	}
	choice := b.evidence.choose(p, b.program)
	if !choice.Equal(b.used[b.boot]) {
		b.changes++
	}
	p.Use(choice)
	b.used[b.boot] = choice
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

// programNotes adds a note for each reason why addresses of boots have no names, or names that may be wrong.
func (b *passBases) programNotes(list *noteList) {
	boots := slices.Sorted(maps.Keys(b.used))
	of := map[Note][]string{}
	var order []Note
	add := func(boot int, texts []string, option string) {
		for _, text := range texts {
			n := Note{NoteWrong, text, option}
			if of[n] == nil {
				order = append(order, n)
			}
			of[n] = append(of[n], fmt.Sprint(boot))
		}
	}
	for _, boot := range boots {
		add(boot, b.used[boot].Notes, "Force")
		add(boot, b.used[boot].Forced, "")
	}
	for _, n := range order {
		if list := of[n]; len(list) < len(boots) && len(list) == 1 {
			n.Text = "boot " + list[0] + ": " + n.Text
		} else if len(list) < len(boots) && len(list) <= 4 {
			n.Text = "boots " + strings.Join(list, ", ") + ": " + n.Text
		} else if len(list) < len(boots) {
			n.Text = fmt.Sprintf("%d boots: %s", len(list), n.Text)
		}
		*list = append(*list, n)
	}
}
