package symbol

import (
	"debug/elf"
	"runtime/debug"

	"github.com/lwsbt/lwsbt/symbol/arch"
)

// CanTellCalls reports whether the package recognizes calls for the file's machine, and the
// file holds its code.
func (f *File) CanTellCalls() bool { return f.arch.RecognisesCalls() && !f.noCode }

// FollowsCall reports whether the instruction that ends at addr is a call, as before every
// return address. It returns true if this is not known.
func (f *File) FollowsCall(addr uint64) (follows bool) {
	if !f.CanTellCalls() {
		return true
	}
	defer f.faulted(debug.SetPanicOnFault(true), nil)
	thumb, arm := f.instructionSets(addr)
	c := arch.Code{Addr: f.arch.Strip(addr), Word: f.Word, Big: f.bigEndian(), Text: f.textFunc}
	c.Bytes = f.codeBefore(c.Addr, arch.MaxCall)
	if thumb {
		c.Thumb = true
		if f.arch.FollowsCall(&c) {
			return true
		}
		c.Thumb = false
	}
	return arm && f.arch.FollowsCall(&c)
}

// instructionSets reports which instruction sets the code that ends at addr may use: Thumb,
// and the machine's other set.
func (f *File) instructionSets(addr uint64) (thumb, arm bool) {
	if f.Machine != elf.EM_ARM {
		return false, true
	}
	if addr&f.arch.TagBits != 0 {
		return true, false
	}
	thumb, known := f.thumbAt(addr - 1)
	return thumb || !known, !thumb || !known
}

// callSet holds every address of a file that follows a call, by its offset in a page.
type callSet struct {
	n       int                // number of possible return addresses
	density float64            // the share of n among the possible code addresses
	page    [pageSize][]uint64 // addresses, by their low 12 bits
}

// pageSize is the alignment that every load base has, in bytes.
const pageSize = 1 << 12

// calls returns the addresses of the file that follow a call.
func (f *File) calls() *callSet {
	if f.callSet == nil {
		f.callSet = f.findCalls()
	}
	return f.callSet
}

// findCalls finds all calls in the code.
func (f *File) findCalls() (s *callSet) {
	s = &callSet{}
	if !f.CanTellCalls() || f.image == nil {
		return s
	}
	defer f.faulted(debug.SetPanicOnFault(true), nil)
	places, step := uint64(0), f.arch.Step
	scanned, limit := uint64(0), 4*uint64(len(f.image)) // sections may share bytes
	c := arch.Code{Word: f.Word, Big: f.bigEndian(), Text: f.textFunc}
	for _, seg := range f.text {
		b := f.bytesAt(seg.off, seg.size)
		if scanned += uint64(len(b)); scanned > limit {
			break
		}
		places += uint64(len(b)) / step
		for end := step; end <= uint64(len(b)); end += step {
			c.Addr, c.Bytes = seg.addr+end, b[max(end, arch.MaxCall)-arch.MaxCall:end]
			thumb, arm := f.instructionSets(c.Addr)
			c.Thumb = thumb
			hit := f.arch.FollowsCall(&c)
			if !hit && thumb && arm {
				c.Thumb = false
				hit = f.arch.FollowsCall(&c)
			}
			if hit {
				s.n++
				s.page[c.Addr%pageSize] = append(s.page[c.Addr%pageSize], c.Addr)
			}
		}
	}
	s.density = float64(s.n) / float64(max(places, 1))
	return s
}
