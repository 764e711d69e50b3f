package callpath

import (
	"fmt"
	"sort"
)

// Writer packs entries into ~p# lines. A line holds as many entries as fit; each shares
// frames with the entry before it. If a path is too long for a line, Writer writes a
// definition of its outer part, and then refers to the outer part by name. An entry with
// too many blocks for a line is continued in the next line. Set the fields before the
// first entry, or after Flush. Use a Writer for one boot only. The zero Writer writes lines
// of up to MaxLine characters. (BT-PLINE-3, BT-NAME-4)
type Writer struct {
	Flags Flags // of all lines
	Unit  uint8 // of addresses, 0 to MaxUnit
	Limit int   // characters of a line, at least MinLimit; 0 means MaxLine
	// Whole, if it is not 0, lets entries refer by name to the outer part that they share
	// with the previous entry, except in lines whose number is a multiple of Whole. Deep
	// stacks then take up to half as many characters (FIGURES.md), but if a line is
	// lost, outer frames in the next Whole − 1 lines may be unknown.
	Whole uint64
	Dump  uint32 // number of the dump
	Lines uint64 // ~p# lines since the boot

	enc   encoder
	line  []byte
	form  []byte // scratch
	last  Path   // of the previous entry, as passed to Append
	told  bool   // last is set
	named int    // number of frames of last that the line replaces by a name
}

// MinLimit is the smallest Limit of a Writer. With it, every entry can be written, if
// necessary in several parts.
const MinLimit = 96

// Append adds an entry to the current line. It appends completed lines to dst, each with a
// line end. It returns dst unchanged and a [*codec.Error] for an entry that [AppendLine]
// refuses, and, with the reason hash, for one whose path is too long for a line and cannot be
// cut. It does not retain e.
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
	if !w.divisible(e) {
		return dst, refuse(reasonHash, "BT-NAME-4", "a path that cannot be cut: its outer parts have the names 0 and 1")
	}
	part := *e
	if w.Flags&Blocks != 0 && !e.Definition {
		return w.appendBlocks(dst, &part), nil
	}
	return w.append(dst, &part), nil
}

// append adds an entry whose values stay together; only its path may be divided.
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

// appendBlocks adds an entry with blocks, divided into as many parts as necessary. Only the
// first part has the other values, since readers add up the parts. (BT-ENTRY-4)
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
		if name := e.Name(); isName(name) {
			e.Path = Path{Base: Named, Outer: name}
		}
		e.Allocs, e.AllocBytes, e.Peak = 0, 0, 0
	}
	return dst
}

// fit returns how many of the blocks fit the line, in an entry with the path of e.
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

// shortest returns the form of a path that takes the fewest digits in the line: unchanged,
// or with a name in place of outer frames. (BT-NAME-4)
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
			name := outer.Name()
			if !isName(name) {
				continue
			}
			form = Path{Named, name, p.Frames[n:]}
		}
		w.form = w.enc.appendPath(w.form[:0], &form)
		if i == 0 || len(w.form) < least {
			best, least = form, len(w.form)
		}
	}
	return best
}

// cut writes a line that defines as many outer frames of e as fit, and replaces these frames
// of e by their name. (BT-NAME-4)
func (w *Writer) cut(dst []byte, e *Entry) []byte {
	outer := Entry{Path: Path{e.Base, e.Outer, e.Frames[:w.outerFrames(e)]}, Definition: true}
	w.try(&outer)
	e.Path = Path{Named, outer.Name(), e.Frames[len(outer.Frames):]}
	return w.Flush(dst)
}

// outerFrames returns how many outer frames of e fit a definition and have a name; 0 if none.
func (w *Writer) outerFrames(e *Entry) int {
	most := min(len(e.Frames), w.Limit/2) // a frame takes two digits or more
	outer := Entry{Path: Path{e.Base, e.Outer, nil}, Definition: true}
	n := sort.Search(most, func(n int) bool {
		outer.Frames = e.Frames[:n+1]
		return !w.fits(&outer)
	})
	for ; n > 0; n-- {
		outer.Frames = e.Frames[:n]
		if isName(outer.Name()) {
			break
		}
	}
	return n
}

// isName reports whether a name may stand for frames: 0 and 1 are the paths of no frames. (BT-NAME-4)
func isName(name uint32) bool { return name > 1 }

// divisible reports whether an entry can be written: whole in a line, or cut at a name. Only paths
// whose outermost frames are 0 may be too long for both. (BT-NAME-4, BT-PREJ-2)
func (w *Writer) divisible(e *Entry) bool {
	h, unnamed := e.root(), 0 // outer parts without a name
	for _, f := range e.Frames {
		if h = f.mix(h); isName(h) {
			break
		}
		unnamed++
	}
	if unnamed == 0 {
		return true
	}
	alone := Writer{Flags: w.Flags, Unit: w.Unit, Limit: w.Limit}
	alone.open()
	part := *e
	if unnamed < len(e.Frames) {
		part.Frames, part.Definition = e.Frames[:unnamed+1], true
	}
	if part.Definition || len(e.Blocks) == 0 {
		return alone.fits(&part)
	}
	for i := range e.Blocks {
		if part.Blocks = e.Blocks[i : i+1]; !alone.fits(&part) {
			return false
		}
	}
	return true
}

// Flush appends the current line and a line end to dst, if the line has entries.
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
