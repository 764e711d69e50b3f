package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/process"
	"github.com/lwsbt/lwsbt/symbol"
)

// openProcess opens the ELF files and reads the memory maps that the command line names.
func (r *reporter) openProcess(ctx context.Context) (*process.Process, []process.Snapshot, error) {
	c := symbol.Config{DebugDirs: r.DebugDirs, NoFiles: !r.Named(), Check: true}
	if m, given := r.CodecMachine(); given {
		c.Lossless, c.Word, c.WordBy = !m.Lossy(), m.Word(), "machine "+m.String()
	}
	for _, e := range r.Exes {
		spec, err := symbol.ParseFileSpec(e)
		if err != nil {
			return nil, nil, fmt.Errorf("-e %w", err)
		}
		c.Files = append(c.Files, spec)
	}
	var maps []process.Snapshot
	for _, m := range r.Maps {
		s, err := process.ParseSnapshot(m)
		if err != nil {
			return nil, nil, fmt.Errorf("--maps: %w", err)
		}
		maps = append(maps, s)
	}
	if err := process.ReadSnapshots(ctx, maps); err != nil {
		return nil, nil, fmt.Errorf("--maps: %w", err)
	}
	p, err := process.New(c)
	if err != nil {
		return nil, nil, fmt.Errorf("-e %w", err)
	}
	return p, maps, nil
}

// address is an address in a record.
type address struct {
	pc    uint64
	lossy bool // only the low 31 bits of pc are known
}

// names finds the functions of addresses. Where no memory map is known, addresses wait until the end of the boot, whose
// addresses tell which of several ELF files ran, and the load bases.
type names struct {
	process *process.Process
	named   bool               // the command line names files with symbols
	word    process.Word       // of this boot
	machine *codec.Machine     // of --machine, nil if it was not given
	of      map[address]string // the outermost function, "" if none is known
	waiting map[address]bool
	bases   []symbol.Base             // inferred last
	boot    symbol.Boot               // what its header says of the program
	seen    map[symbol.ReturnAddr]int // addresses of this boot, with the records that have each
	boots   int                       // that ended
	wrong   []string                  // why addresses of boots have no names
	addrs   []symbol.Addr             // reused
}

// maxWaiting is the largest number of addresses that wait. More do not improve the bases.
const maxWaiting = 1 << 20

// begin begins a boot.
func (n *names) begin(h *codec.Header) {
	n.boot = symbol.Boot{}
	n.boot.Build, _ = h.Get("build")
	n.boot.Firmware, _ = h.Get("fw")
	n.boot.Text, _ = h.Get("text")
	code, _ := h.Get("code")
	n.boot.Code, _ = codec.ParseRanges(code)
}

// record takes a record with a stack. It returns an error if an ELF file cannot be that of the log.
func (n *names) record(it *recording.Item) error {
	if !n.named {
		return nil
	}
	if n.word.Record(it); n.machine == nil {
		if err := n.word.Accept(n.process); err != nil {
			return fmt.Errorf("-e %w", err)
		}
	}
	mapped, unnamed := n.process.Mapped(), false
	for i, pc := range it.Stack.PCs {
		a := address{pc, it.Stack.Marks.Lossy>>i&1 != 0}
		switch name, known := n.of[a]; {
		case mapped: // the upper bits that a lossy encoder dropped may depend on the record
			unnamed = unnamed || !known || a.lossy && name == ""
		case len(n.seen) < maxWaiting:
			n.seen[n.returnAddr(a)]++
			if !known || n.boots > 0 { // another program may have another function there
				n.waiting[a] = true
			}
		}
	}
	if unnamed {
		n.resolve(it.Stack, it.Blob)
	}
	return nil
}

func (n *names) returnAddr(a address) symbol.ReturnAddr {
	return symbol.ReturnAddr{PC: a.pc, Lossy: a.lossy && (n.machine == nil || n.machine.Lossy())}
}

// settle ends a boot: it names the addresses that wait, by the ELF files that the boot used.
func (n *names) settle() {
	if len(n.waiting) == 0 {
		return
	}
	if !n.process.Mapped() {
		choice := n.process.Choose(n.boot, symbol.Evidence{Memory: n.seen})
		n.process.Use(choice)
		for _, text := range slices.Concat(choice.Notes, choice.Forced) {
			if !slices.Contains(n.wrong, text) {
				n.wrong = append(n.wrong, text)
			}
		}
	}
	n.boots++
	clear(n.seen)
	placed := true
	if files := n.process.Unplaced(); len(files) > 0 && !n.process.Mapped() {
		var seen []symbol.ReturnAddr
		for a := range n.waiting {
			seen = append(seen, n.returnAddr(a))
		}
		found := slices.DeleteFunc(symbol.InferBases(files, seen), func(b symbol.Base) bool { return !b.Sound() })
		if len(found) > 0 {
			n.bases = found
		}
		n.process.SetBases(n.bases)
		placed = len(n.bases) > 0
	}
	for a := range n.waiting {
		s := codec.Stack{PCs: []uint64{a.pc}}
		if a.lossy {
			s.Marks.Lossy = 1
		}
		n.resolve(&s, nil)
	}
	if placed { // else they wait for more
		clear(n.waiting)
	}
}

// resolve names the addresses of a stack. For inlined calls, the name is that of the outermost
// function, which has the frame.
func (n *names) resolve(s *codec.Stack, blob []byte) {
	n.addrs = n.process.Resolve(n.addrs[:0], s, blob)
	for i, a := range n.addrs {
		key, name := address{s.PCs[i], s.Marks.Lossy>>i&1 != 0}, ""
		if frames := a.Frames(); len(frames) > 0 {
			name = frames[len(frames)-1].Name
		}
		switch old := n.of[key]; {
		case old == "" || n.process.Mapped() && name != "":
			n.of[key] = name
		case name != "" && !slices.Contains(strings.Split(old, " or "), name): // of another build
			n.of[key] = old + " or " + name
		}
	}
}
