package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// PathLine is a ~p# line.
type PathLine struct {
	callpath.Head
	Entries []callpath.Entry
}

// ReadPathLine reads a ~p# line.
func ReadPathLine(text []byte) (*PathLine, error) {
	var l callpath.Line
	if err := l.Parse(text); err != nil {
		return nil, err
	}
	out := &PathLine{Head: l.Head}
	for e := (callpath.Entry{}); l.Next(&e); {
		n := e
		n.Path, n.Blocks = e.Clone(), slices.Clone(e.Blocks)
		out.Entries = append(out.Entries, n)
	}
	return out, nil
}

// Path returns a path: the digit of its base, a colon, and its name and frames, outermost first.
func Path(p callpath.Path) string {
	var parts []string
	if p.Base == callpath.Named {
		parts = append(parts, fmt.Sprintf("%08x", p.Outer))
	}
	for _, f := range p.Frames {
		parts = append(parts, Frame(f))
	}
	return fmt.Sprintf("%d:%s", p.Base, strings.Join(parts, "/"))
}

// Frame returns an offset in hexadecimal, or @ and an address.
func Frame(f callpath.Frame) string {
	if f.Escaped {
		return "@" + strconv.FormatUint(f.Value, 16)
	}
	return strconv.FormatUint(f.Value, 16)
}

// ParsePath is the reverse of Path.
func ParsePath(text string) (p callpath.Path, err error) {
	bad := fmt.Errorf("path %q, expected 0:, 1: or 2: and frames in hex, such as 0:142/d1e/@8000285 or 2:af2f64e9/142", Clip(text))
	head, rest, _ := strings.Cut(text, ":")
	switch head {
	case "0":
	case "1":
		p.Base = callpath.Cut
	case "2":
		p.Base = callpath.Named
		word, after, _ := strings.Cut(rest, "/")
		name, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return p, bad
		}
		p.Outer, rest = uint32(name), after
	default:
		return p, bad
	}
	if p.Frames, err = parseFrames(rest, "/"); err != nil || text != Path(p) {
		return p, bad
	}
	return p, nil
}

// parseFrames reads frames with a separator between them; "" is no frame.
func parseFrames(text, between string) (frames []callpath.Frame, err error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, between) {
		digits, escaped := strings.CutPrefix(word, "@")
		x, err := strconv.ParseUint(digits, 16, 64)
		f := callpath.Frame{Escaped: escaped, Value: x}
		if err != nil || Frame(f) != word {
			return nil, fmt.Errorf("frame %q, expected an offset in lower-case hex, or @ and an address", Clip(word))
		}
		frames = append(frames, f)
	}
	return frames, nil
}

// String returns the line in words.
func (l *PathLine) String() string {
	words := []string{fmt.Sprintf("flags=%d dump=%d seq=%d", l.Flags, l.Dump, l.Seq)}
	if l.Flags&callpath.Blocks != 0 {
		words = append(words, fmt.Sprintf("unit=%d", l.Unit))
	}
	for _, e := range l.Entries {
		words = append(words, entryText(e, l.Flags))
	}
	return strings.Join(words, " ")
}

func entryText(e callpath.Entry, flags callpath.Flags) string {
	text := Path(e.Path)
	if e.Definition {
		return text + ";def"
	}
	text += fmt.Sprintf(";live=%d", e.Live)
	if flags&callpath.Blocks != 0 {
		blocks := make([]string, len(e.Blocks))
		for i, b := range e.Blocks {
			blocks[i] = fmt.Sprintf("%x+%d", b.Address, b.Size)
		}
		if len(blocks) == 0 {
			blocks = []string{"-"}
		}
		text += ";blocks=" + strings.Join(blocks, ",")
	} else {
		text += fmt.Sprintf(";bytes=%d", e.Bytes)
	}
	if flags&callpath.Ever != 0 {
		text += fmt.Sprintf(";ever=%d,%d", e.Allocs, e.AllocBytes)
	}
	if flags&callpath.Peak != 0 {
		text += fmt.Sprintf(";peak=%d", e.Peak)
	}
	return text
}

// ParsePathLine is the reverse of PathLine.String. It takes lines that no writer may write, too.
func ParsePathLine(text string) (*PathLine, error) {
	l := &PathLine{}
	r := &reader{words: strings.Split(text, " ")}
	l.Flags, l.Dump, l.Seq = callpath.Flags(r.number("flags", 63)), uint8(r.number("dump", 63)), uint16(r.number("seq", 4095))
	if l.Flags&callpath.Blocks != 0 {
		l.Unit = uint8(r.number("unit", 63))
	}
	if r.err != nil {
		return l, r.err
	}
	for _, word := range r.words {
		e, err := parseEntry(word, l.Flags)
		if err != nil {
			return l, err
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

func parseEntry(text string, flags callpath.Flags) (e callpath.Entry, err error) {
	path, values, _ := strings.Cut(text, ";")
	if e.Path, err = ParsePath(path); err != nil {
		return e, err
	}
	if values == "def" {
		e.Definition = true
		return e, nil
	}
	r := &reader{words: strings.Split(values, ";")}
	e.Live = r.number("live", anyNumber)
	if flags&callpath.Blocks != 0 {
		e.Blocks = r.blocks(e.Live)
		for _, b := range e.Blocks {
			if e.Bytes += b.Size; e.Bytes < b.Size {
				e.Bytes = anyNumber // as Entry has it: no more
			}
		}
	} else {
		e.Bytes = r.number("bytes", anyNumber)
	}
	if flags&callpath.Ever != 0 {
		allocs, ever, _ := strings.Cut(r.take("ever"), ",")
		two := &reader{words: []string{"ever=" + allocs, "ever=" + ever}, err: r.err}
		e.Allocs, e.AllocBytes = two.number("ever", anyNumber), two.number("ever", anyNumber)
		r.err = two.err
	}
	if flags&callpath.Peak != 0 {
		e.Peak = r.number("peak", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("entry %q: %q after the values", Clip(text), Clip(r.words[0]))
	}
	return e, r.err
}

// blocks reads ADDR+SIZE,ADDR+SIZE, so many as are live.
func (r *reader) blocks(live uint64) (blocks []callpath.Block) {
	text := r.take("blocks")
	if r.err != nil || text == "-" && live == 0 {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		address, size, _ := strings.Cut(word, "+")
		one := &reader{words: []string{"address=" + address, "size=" + size}}
		blocks = append(blocks, callpath.Block{Address: one.hex("address", 0), Size: one.number("size", anyNumber)})
		if one.err != nil {
			r.err = one.err
			return nil
		}
	}
	if uint64(len(blocks)) != live {
		r.err = fmt.Errorf("%d blocks, expected the %d of live=", len(blocks), live)
	}
	return blocks
}
