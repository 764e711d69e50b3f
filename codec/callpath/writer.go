package callpath

import (
	"fmt"
	"sort"
)

// Writer packs entries into ~p# lines: as many as fit a line, each sharing frames with
// the one before it. A path that is too long for a line is cut: its outer part is
// defined, and then named. An entry with too many blocks goes on in the next line. Set
// the fields before the first entry, or after Flush. A Writer is for one boot. The zero
// Writer writes lines of up to MaxLine characters. (BT-PLINE-3, BT-NAME-4)
type Writer struct {
	Flags Flags // of all lines
	Unit  uint8 // of addresses, 0 to MaxUnit
	Limit int   // characters of a line, at least MinLimit; 0 means MaxLine
	// Whole, if it is not 0, lets entries name an outer part that they have in common
	// with the entry before, except in every line whose number is a multiple of Whole.
	// Deep stacks take up to half of the characters less (docs/callpaths.md), but a line
	// lost may take outer frames of the next Whole − 1 lines with it.
	Whole uint64
	Dump  uint32 // number of the dump
	Lines uint64 // ~p# lines since the boot

	enc   encoder
	line  []byte
	form  []byte // scratch
	last  Path   // of the entry before, as it was given
	told  bool   // last is set
	named int    // frames of last that the line has by name
}

// MinLimit is the smallest Limit of a Writer: every entry fits a line then, if need be
// in several parts.
const MinLimit = 96

// Append adds an entry to the line, and appends to dst each line that is complete and a
// line end. It returns dst unchanged and an [*codec.Error] for an entry that
// [AppendLine] refuses. It does not keep e.
func (w *Writer) Append(dst []byte, e *Entry) ([]byte, error) {
	if w.Limit == 0 {
		w.Limit = MaxLine
	}
	if w.Limit < MinLimit || w.Unit > MaxUnit {
		panic(fmt.Sprintf("callpath: Writer: limit %d, unit %d", w.Limit, w.Unit))
	}
	switch h := w.head(); {
	case len(w.line) == 0:
		w.enc.head = h
	case w.enc.head != h:
		panic("callpath: Writer: a field was changed without Flush")
	}
	if err := w.enc.check(e); err != nil {
		return dst, err
	}
	part := *e
	if w.Flags&Blocks != 0 && !e.Definition {
		return w.appendBlocks(dst, &part), nil
	}
	return w.append(dst, &part), nil
}

// append adds an entry that must not be divided, except for its path.
func (w *Writer) append(dst []byte, e *Entry) []byte {
	if w.try(e) {
		return dst
	}
	dst = w.Flush(dst)
	for !w.try(e) {
		dst = w.cut(dst, e)
	}
	return dst
}

// appendBlocks adds an entry with blocks, in as many parts as it takes. What is no
// block is in the first part alone, so that the parts add up to it. (BT-ENTRY-4)
func (w *Writer) appendBlocks(dst []byte, e *Entry) []byte {
	blocks := e.Blocks
	for first := true; first || len(blocks) > 0; first = false {
		n := 0
		for w.open(); n == 0; {
			n = w.fit(e, blocks)
			if n > 0 || len(blocks) == 0 && w.fits(e) {
				break
			}
			if w.enc.any {
				dst = w.Flush(dst)
			} else {
				dst = w.cut(dst, e)
			}
			w.open()
		}
		e.Blocks, blocks = blocks[:n], blocks[n:]
		w.try(e)
		e.Path = Path{Base: Named, Outer: e.Name()}
		e.Allocs, e.AllocBytes, e.Peak = 0, 0, 0
	}
	return dst
}

// fit returns how many of the blocks an entry could have in the line.
func (w *Writer) fit(e *Entry, blocks []Block) int {
	most := min(len(blocks), w.Limit/2) // a block takes two digits or more
	return sort.Search(most, func(n int) bool {
		part := *e
		part.Blocks = blocks[:n+1]
		return !w.fits(&part)
	})
}

// head returns the head of the line. (BT-PLINE-1)
func (w *Writer) head() Head {
	return Head{w.Flags, uint8(w.Dump % 64), uint16(w.Lines % 4096), w.Unit}
}

// open begins a line if there is none.
func (w *Writer) open() {
	if len(w.line) == 0 {
		w.line = w.enc.begin(w.line, w.head())
	}
}

// fits reports whether an entry fits the line.
func (w *Writer) fits(e *Entry) bool {
	p := w.shortest(&e.Path)
	address := w.enc.address
	w.form = w.enc.appendPath(w.form[:0], &p)
	if e.Definition {
		w.form = append(w.form, 0)
	} else {
		w.form = w.enc.values(w.form, e)
	}
	w.enc.address = address
	return len(w.line)+len(w.form)+crcDigits <= w.Limit
}

// try adds an entry to the line, if it fits, and reports whether it did.
func (w *Writer) try(e *Entry) bool {
	w.open()
	if !w.fits(e) {
		return false
	}
	p := w.shortest(&e.Path)
	w.named = len(e.Frames) - len(p.Frames)
	part := *e
	part.Path = p
	w.line = w.enc.entry(w.line, &part)
	w.last = Path{e.Base, e.Outer, append(w.last.Frames[:0], e.Frames...)}
	w.told = true
	return true
}

// shortest returns the form of a path that takes the fewest digits in the line: as it
// is, or after a name. (BT-NAME-4)
func (w *Writer) shortest(p *Path) Path {
	if w.Whole == 0 || w.Lines%w.Whole == 0 || !w.told || w.last.Base != p.Base || w.last.outer() != p.outer() {
		return *p
	}
	best, least := *p, 0
	common := commonFrames(w.last.Frames, p.Frames)
	for i, n := range []int{0, common, w.named} {
		if n > common || i > 0 && n == 0 {
			continue
		}
		form := *p
		if n > 0 {
			outer := Path{p.Base, p.Outer, p.Frames[:n]}
			form = Path{Named, outer.Name(), p.Frames[n:]}
		}
		w.form = w.enc.appendPath(w.form[:0], &form)
		if i == 0 || len(w.form) < least {
			best, least = form, len(w.form)
		}
	}
	return best
}

// cut defines, in a line of its own, as many outer frames of an entry as fit, and
// leaves the rest of the path to the entry. (BT-NAME-4)
func (w *Writer) cut(dst []byte, e *Entry) []byte {
	most := min(len(e.Frames), w.Limit/2) // a frame takes two digits or more
	outer := Entry{Path: Path{e.Base, e.Outer, nil}, Definition: true}
	n := sort.Search(most, func(n int) bool {
		outer.Frames = e.Frames[:n+1]
		return !w.fits(&outer)
	})
	outer.Frames = e.Frames[:n]
	w.try(&outer)
	e.Path = Path{Named, outer.Name(), e.Frames[n:]}
	return w.Flush(dst)
}

// Flush appends the line so far and a line end to dst, if there is one.
func (w *Writer) Flush(dst []byte) []byte {
	if len(w.line) == 0 {
		return dst
	}
	w.line = w.enc.end(w.line, 0)
	dst = append(append(dst, w.line...), '\n')
	w.line = w.line[:0]
	w.Lines++
	return dst
}
