package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/elffile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Layout describes the addresses in the logs of a firmware, from notes in its ELF file.
// Fields that the file does not give are zero. (BT-NOTE-1)
type Layout struct {
	Code     []codec.Range // executable memory, in the order in which offsets count
	Shift    int           // offsets count units of 2^Shift bytes
	Heap     []codec.Range
	Firmware string // version, safe to print
}

// The notes of a Layout, and their types.
const (
	noteSection = ".note.lwsbt"
	noteOwner   = "lwsbt\x00"

	noteCode = 1 // u32 shift, u32 count, then start and end of each range
	noteText = 2 // version, not terminated
	noteHeap = 3 // start and end of each range
)

// maxShift is the largest Layout.Shift.
const maxShift = 4

var errNote = errors.New("section " + noteSection + " is malformed")

// Layout returns the Layout of the file, from its note section. Without a note, Code is the
// executable segments by address, and Shift is the alignment of instructions. The error
// reports a malformed note section; the Layout then comes from the program headers alone.
func (f *File) Layout() (Layout, error) {
	l, err := f.noteLayout()
	if len(l.Code) == 0 {
		l.Shift = f.codeShift()
		for _, s := range f.codeLoads {
			l.Code = append(l.Code, codec.Range{Start: s.addr, Length: s.end - s.addr})
		}
		slices.SortFunc(l.Code, func(a, b codec.Range) int { return cmp.Compare(a.Start, b.Start) })
	}
	return l, err
}

// codeShift returns the unit of code offsets that the machine has by default, as a power of 2.
// (BT-CODE-3)
func (f *File) codeShift() int {
	switch f.Machine {
	case elf.EM_RISCV, elf.EM_S390:
		return 1
	case elf.EM_ARM:
		if f.entry&1 != 0 { // Thumb
			return 1
		}
		return 2
	case elf.EM_AARCH64, elf.EM_MIPS, elf.EM_PPC, elf.EM_PPC64:
		return 2
	}
	return 0
}

// noteLayout reads the note section.
func (f *File) noteLayout() (l Layout, err error) {
	b, err := f.section(noteSection)
	if err != nil {
		return l, fmt.Errorf("%s: %w", f.Path, err)
	}
	for len(b) > 0 {
		n, rest, ok := elffile.Next(b, f.order)
		b = rest
		if string(n.Name) == noteOwner {
			switch n.Type {
			case noteCode:
				l.Code, l.Shift, ok = f.codeNote(n.Desc)
			case noteText:
				l.Firmware = printable.Text(string(n.Desc))
			case noteHeap:
				l.Heap, ok = f.ranges(n.Desc)
			}
		}
		if !ok {
			return Layout{}, fmt.Errorf("%s: %w", f.Path, errNote)
		}
	}
	return l, nil
}

// codeNote reads a note of type noteCode.
func (f *File) codeNote(desc []byte) (list []codec.Range, shift int, ok bool) {
	if len(desc) < 8 {
		return nil, 0, false
	}
	s, n := f.order.Uint32(desc), uint64(f.order.Uint32(desc[4:]))
	list, ok = f.ranges(desc[8:])
	if !ok || s > maxShift || n != uint64(len(list)) {
		return nil, 0, false
	}
	return list, int(s), true
}

// ranges reads pairs of words.
func (f *File) ranges(b []byte) (list []codec.Range, ok bool) {
	word := f.Word / 8
	if len(b)%(2*word) != 0 || len(b)/(2*word) > maxSegments {
		return nil, false
	}
	for ; len(b) > 0; b = b[2*word:] {
		start, end := f.wordAt(b), f.wordAt(b[word:])
		if end < start {
			return nil, false
		}
		list = append(list, codec.Range{Start: start, Length: end - start})
	}
	return list, true
}

// wordAt returns the word at the start of b.
func (f *File) wordAt(b []byte) uint64 {
	if f.Word == 32 {
		return uint64(f.order.Uint32(b))
	}
	return f.order.Uint64(b)
}
