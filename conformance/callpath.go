package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// The words of Part III: paths, entries and events as they are in vectors and in BTP/1. README.md
// describes them.

// pathLine is a ~p# line.
type pathLine struct {
	callpath.Head
	Entries []callpath.Entry
}

// eventLine is a ~v# line.
type eventLine struct {
	callpath.EventsHead
	Events []callpath.Event
}

// readPathLine reads a ~p# line.
func readPathLine(text []byte) (*pathLine, error) {
	var l callpath.Line
	if err := l.Parse(text); err != nil {
		return nil, err
	}
	out := &pathLine{Head: l.Head}
	for e := (callpath.Entry{}); l.Next(&e); {
		n := e
		n.Path, n.Blocks = e.Clone(), slices.Clone(e.Blocks)
		out.Entries = append(out.Entries, n)
	}
	return out, nil
}

// readEventLine reads a ~v# line.
func readEventLine(text []byte) (*eventLine, error) {
	var l callpath.Events
	if err := l.Parse(text); err != nil {
		return nil, err
	}
	out := &eventLine{EventsHead: l.EventsHead}
	for e := (callpath.Event{}); l.Next(&e); {
		out.Events = append(out.Events, e)
	}
	return out, nil
}

// pathText returns a path: the digit of its base, a colon, and its name and frames, outermost first.
func pathText(p callpath.Path) string {
	var parts []string
	if p.Base == callpath.Named {
		parts = append(parts, fmt.Sprintf("%08x", p.Outer))
	}
	for _, f := range p.Frames {
		parts = append(parts, frameText(f))
	}
	return fmt.Sprintf("%d:%s", p.Base, strings.Join(parts, "/"))
}

// frameText returns an offset in hexadecimal, or @ and an address.
func frameText(f callpath.Frame) string {
	if f.Escaped {
		return "@" + strconv.FormatUint(f.Value, 16)
	}
	return strconv.FormatUint(f.Value, 16)
}

// parsePath is the reverse of pathText.
func parsePath(text string) (p callpath.Path, err error) {
	bad := fmt.Errorf("path %q, expected 0:, 1: or 2: and frames in hex, such as 0:142/d1e/@8000285 or 2:af2f64e9/142", clip(text))
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
	if p.Frames, err = parseFrames(rest, "/"); err != nil || text != pathText(p) {
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
		if err != nil || frameText(f) != word {
			return nil, fmt.Errorf("frame %q, expected an offset in lower-case hex, or @ and an address", clip(word))
		}
		frames = append(frames, f)
	}
	return frames, nil
}

// pathLineWords returns a ~p# line in words.
func pathLineWords(l *pathLine) string {
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
	text := pathText(e.Path)
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

// wordReader takes key=value words from a list; err keeps the first error.
type wordReader struct {
	words []string
	err   error
}

// take returns the value of the next word, which must have this key.
func (r *wordReader) take(key string) string {
	if r.err != nil {
		return ""
	}
	if len(r.words) == 0 {
		r.err = fmt.Errorf("nothing, expected %s=", key)
		return ""
	}
	value, ok := strings.CutPrefix(r.words[0], key+"=")
	if !ok {
		r.err = fmt.Errorf("%q, expected %s=", clip(r.words[0]), key)
		return ""
	}
	r.words = r.words[1:]
	return value
}

// number returns a decimal number that is at most max.
func (r *wordReader) number(key string, max uint64) uint64 {
	text := r.take(key)
	v, err := strconv.ParseUint(text, 10, 64)
	if r.err == nil && (err != nil || v > max || strconv.FormatUint(v, 10) != text) {
		r.err = fmt.Errorf("%s=%q, expected a decimal number up to %d", key, clip(text), max)
	}
	return v
}

// hex returns a number in hexadecimal, with exactly digits digits unless digits is 0.
func (r *wordReader) hex(key string, digits int) uint64 {
	text := r.take(key)
	v, err := strconv.ParseUint(text, 16, 64)
	if r.err == nil && (err != nil || fmt.Sprintf("%0*x", digits, v) != text) {
		r.err = fmt.Errorf("%s=%q, expected a number in lower-case hex", key, clip(text))
	}
	return v
}

const anyNumber = ^uint64(0)

// parsePathLine is the reverse of pathLineWords. It takes lines that no writer may write, too.
func parsePathLine(text string) (*pathLine, error) {
	l := &pathLine{}
	r := &wordReader{words: strings.Split(text, " ")}
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
	if e.Path, err = parsePath(path); err != nil {
		return e, err
	}
	if values == "def" {
		e.Definition = true
		return e, nil
	}
	r := &wordReader{words: strings.Split(values, ";")}
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
		two := &wordReader{words: []string{"ever=" + allocs, "ever=" + ever}, err: r.err}
		e.Allocs, e.AllocBytes = two.number("ever", anyNumber), two.number("ever", anyNumber)
		r.err = two.err
	}
	if flags&callpath.Peak != 0 {
		e.Peak = r.number("peak", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("entry %q: %q after the values", clip(text), clip(r.words[0]))
	}
	return e, r.err
}

// blocks reads ADDR+SIZE,ADDR+SIZE, so many as are live.
func (r *wordReader) blocks(live uint64) (blocks []callpath.Block) {
	text := r.take("blocks")
	if r.err != nil || text == "-" && live == 0 {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		address, size, _ := strings.Cut(word, "+")
		one := &wordReader{words: []string{"address=" + address, "size=" + size}}
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

// eventLineWords returns a ~v# line in words.
func eventLineWords(l *eventLine) string {
	words := []string{fmt.Sprintf("flags=%d seq=%d", l.Flags, l.Seq)}
	if l.Flags&callpath.Blocks != 0 {
		words = append(words, fmt.Sprintf("unit=%d", l.Unit))
	}
	words = append(words, fmt.Sprintf("t=%d thread=%d next=%d", l.Time, l.Thread, l.Next))
	for _, e := range l.Events {
		words = append(words, eventText(e, l.Flags))
	}
	return strings.Join(words, " ")
}

// eventKinds are the words of the kinds of events, by callpath.EventKind.
var eventKinds = []string{"alloc", "free", "move", "unknown", "lost"}

func eventText(e callpath.Event, flags callpath.Flags) string {
	at := fmt.Sprintf(";t=%d;thread=%d", e.Time, e.Thread)
	address := ""
	if flags&callpath.Blocks != 0 {
		address = fmt.Sprintf(";addr=%x", e.Address)
	}
	text := eventKinds[e.Kind]
	switch e.Kind {
	case callpath.Allocated:
		return fmt.Sprintf("%s;n=%d%s;path=%08x;size=%d%s", text, e.Number, at, e.Path, e.Size, address)
	case callpath.Freed:
		return fmt.Sprintf("%s;n=%d%s", text, e.Old, at)
	case callpath.Moved:
		return fmt.Sprintf("%s;n=%d;old=%d%s;path=%08x;size=%d%s", text, e.Number, e.Old, at, e.Path, e.Size, address)
	case callpath.FreedUnknown:
		return text + at + address
	}
	return fmt.Sprintf("%s%s;count=%d", text, at, e.Count)
}

// parseEventLine is the reverse of eventLineWords.
func parseEventLine(text string) (*eventLine, error) {
	l := &eventLine{}
	r := &wordReader{words: strings.Split(text, " ")}
	l.Flags, l.Seq = callpath.Flags(r.number("flags", 63)), uint32(r.number("seq", 1<<18-1))
	if l.Flags&callpath.Blocks != 0 {
		l.Unit = uint8(r.number("unit", 63))
	}
	l.Time, l.Thread, l.Next = r.number("t", anyNumber), r.number("thread", anyNumber), r.number("next", anyNumber)
	if r.err != nil {
		return l, r.err
	}
	for _, word := range r.words {
		e, err := parseEvent(word, l.Flags)
		if err != nil {
			return l, err
		}
		l.Events = append(l.Events, e)
	}
	return l, nil
}

func parseEvent(text string, flags callpath.Flags) (e callpath.Event, err error) {
	words := strings.Split(text, ";")
	kind := slices.Index(eventKinds, words[0])
	if kind < 0 {
		return e, fmt.Errorf("event %q, expected alloc, free, move, unknown or lost", clip(text))
	}
	e.Kind = callpath.EventKind(kind)
	r := &wordReader{words: words[1:]}
	begins := e.Kind == callpath.Allocated || e.Kind == callpath.Moved
	if begins {
		e.Number = r.number("n", anyNumber)
	}
	switch e.Kind {
	case callpath.Freed:
		e.Old = r.number("n", anyNumber)
	case callpath.Moved:
		e.Old = r.number("old", anyNumber)
	}
	e.Time, e.Thread = r.number("t", anyNumber), r.number("thread", anyNumber)
	if begins {
		e.Path, e.Size = uint32(r.hex("path", 8)), r.number("size", anyNumber)
	}
	if flags&callpath.Blocks != 0 && (begins || e.Kind == callpath.FreedUnknown) {
		e.Address = r.hex("addr", 0)
	}
	if e.Kind == callpath.Lost {
		e.Count = r.number("count", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("event %q: %q after it", clip(text), clip(r.words[0]))
	}
	return e, r.err
}

// codeWords holds the words shift=N code=START+LEN,… LIST: code ranges, and addresses or frames.
type codeWords struct {
	Ranges callpath.Ranges
	List   []callpath.Frame // addresses are Escaped
}

// parseCode reads them. If addresses is set, the list has addresses.
func parseCode(text string, addresses bool) (c codeWords, err error) {
	r := &wordReader{words: strings.Split(text, " ")}
	c.Ranges.Shift = uint8(r.number("shift", 4))
	for i, word := range strings.Split(r.take("code"), ",") {
		start, length, _ := strings.Cut(word, "+")
		one := &wordReader{words: []string{"start=" + start, "length=" + length}, err: r.err}
		c.Ranges.Add(codec.Range{Start: one.hex("start", 0), Length: one.hex("length", 0)}, strconv.Itoa(i))
		r.err = one.err
	}
	if r.err == nil && len(r.words) != 1 {
		r.err = fmt.Errorf("%q, expected shift=N code=START+LEN,… LIST", clip(text))
	}
	if r.err != nil {
		return c, r.err
	}
	list := r.words[0]
	if list == "-" {
		return c, nil
	}
	if addresses {
		list = "@" + strings.ReplaceAll(list, ",", ",@")
	}
	c.List, err = parseFrames(list, ",")
	return c, err
}

// maxOf removes max=N, the length of the longest line to write, from the words of pencode.
func maxOf(words string) (longest int, rest string, err error) {
	first, rest, _ := strings.Cut(words, " ")
	n, ok := strings.CutPrefix(first, "max=")
	longest, err = strconv.Atoi(n)
	if !ok || err != nil || longest < 10 || longest > 1<<16 {
		return 0, "", fmt.Errorf("%q, expected max=N, 10 to 65536", clip(first))
	}
	return longest, rest, nil
}

// samePaths compares the lines of a writer with words. Lines may have any form, but must be valid and
// not longer than max=, their sequence must rise by one, and the entries of each path must add up to
// those of words. why is the first difference, "" if there is none.
func samePaths(words string, text string) (why string) {
	longest, rest, err := maxOf(words)
	if err != nil {
		return err.Error()
	}
	want, err := parsePathLine(rest)
	if err != nil {
		return err.Error()
	}
	got := &pathLine{Head: want.Head}
	for i, line := range strings.Split(text, "\n") {
		l, err := readPathLine([]byte(line))
		if err != nil {
			reason, _ := rejection(err)
			return fmt.Sprintf("line %d is rejected: %s", i+1, reason)
		}
		switch seq := uint16(int(want.Seq)+i) % 4096; {
		case len(line) > longest:
			return fmt.Sprintf("line %d has %d characters, expected at most %d", i+1, len(line), longest)
		case l.Flags != want.Flags || l.Dump != want.Dump || l.Unit != want.Unit:
			return fmt.Sprintf("line %d has flags=%d dump=%d unit=%d", i+1, l.Flags, l.Dump, l.Unit)
		case l.Seq != seq:
			return fmt.Sprintf("line %d has seq=%d, expected %d", i+1, l.Seq, seq)
		}
		got.Entries = append(got.Entries, l.Entries...)
	}
	return differentSums(pathSums(want, got), pathSums(got, got))
}

// pathSum is the sum of the entries of a path.
type pathSum struct {
	values  bool // an entry is not a definition
	numbers [5]uint64
	blocks  []callpath.Block
}

// pathSums adds up the entries of l by path. Names of outer parts that known tells are replaced by
// frames.
func pathSums(l, known *pathLine) map[string]pathSum {
	var names callpath.Names
	for i := range known.Entries {
		names.Add(&known.Entries[i].Path)
	}
	sums := map[string]pathSum{}
	for i := range l.Entries {
		e := &l.Entries[i]
		p := names.Path(names.Add(&e.Path), nil)
		key := pathText(p)
		if p.Base == callpath.Named { // the same path, however many of its frames are named
			key = fmt.Sprintf("2:%08x", p.Name())
		}
		s := sums[key]
		s.values = s.values || !e.Definition
		for i, v := range []uint64{e.Live, e.Bytes, e.Allocs, e.AllocBytes, e.Peak} {
			s.numbers[i] += v
		}
		s.blocks = append(s.blocks, e.Blocks...)
		sums[key] = s
	}
	return sums
}

// differentSums returns what is missing, too much or different in got, "" if nothing is. Definitions
// may be added.
func differentSums(want, got map[string]pathSum) string {
	for key, w := range want {
		g, found := got[key]
		if !found {
			return key + " is missing"
		}
		if w.values != g.values && w.values || w.numbers != g.numbers || !sameBlocks(w.blocks, g.blocks) {
			return fmt.Sprintf("%s has %v %v, expected %v %v", key, g.numbers, g.blocks, w.numbers, w.blocks)
		}
	}
	for key, g := range got {
		if _, found := want[key]; !found && g.values {
			return key + " is too much"
		}
	}
	return ""
}

func sameBlocks(a, b []callpath.Block) bool {
	order := func(x, y callpath.Block) int {
		return strings.Compare(fmt.Sprintf("%016x %016x", x.Address, x.Size), fmt.Sprintf("%016x %016x", y.Address, y.Size))
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(a, b)
}

// sameEvents is like samePaths, for a ~v# line.
func sameEvents(words, text string) (why string) {
	l, err := readEventLine([]byte(text))
	if err != nil {
		reason, _ := rejection(err)
		return "the line is rejected: " + reason
	}
	if len(text) > callpath.MaxEvents {
		return fmt.Sprintf("the line has %d characters, expected at most %d", len(text), callpath.MaxEvents)
	}
	want, err := parseEventLine(words)
	if err != nil {
		return err.Error()
	}
	l.Time, l.Thread, want.Time, want.Thread = 0, 0, 0, 0 // a writer may begin a line with those of its first event
	if got := eventLineWords(l); got != eventLineWords(want) {
		return "it says " + got
	}
	return ""
}

// lineOfDigits returns the line of `digits:`, with lead-in and CRC. *N after a word of digits repeats
// the word.
func lineOfDigits(lines []string, events bool) (string, error) {
	var text []byte
	for _, word := range strings.Fields(strings.Join(lines, " ")) {
		digits, times, err := cutTimes(word)
		if err == nil {
			text, err = appendTimes(text, []byte(digits), times)
		}
		if err != nil {
			return "", fmt.Errorf("digits: %w", err)
		}
	}
	leadIn := callpath.LeadIn
	if events {
		leadIn = callpath.LeadInEvents
	}
	return string(callpath.AppendCRC(append([]byte(leadIn), text...))), nil
}

// crcDigits returns the number of digits of the CRC of a line that is given in `digits:`.
func (v *Vector) crcDigits() int {
	if v.Has(OpVline) || v.Has(OpVencode) {
		return 6
	}
	return 3
}
