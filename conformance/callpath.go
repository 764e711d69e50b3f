package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/naive"
)

// This file converts the words of Part III (paths, entries and events in vectors and BTP/1,
// see README.md) to and from the values of package naive.

// pathText returns a path as text: its base (0, 1 or 2), a colon, and its name and frames, the
// outermost first. Base 2 means that the path begins with a name.
func pathText(base int, name uint32, frames []naive.CallFrame) string {
	var parts []string
	if base >= 2 {
		base = 2
		parts = append(parts, fmt.Sprintf("%08x", name))
	}
	for _, f := range frames {
		parts = append(parts, frameText(f))
	}
	return strconv.Itoa(base) + ":" + strings.Join(parts, "/")
}

// frameText returns an offset in hexadecimal, or @ and an address.
func frameText(f naive.CallFrame) string {
	if f.Escaped {
		return "@" + strconv.FormatUint(f.X, 16)
	}
	return strconv.FormatUint(f.X, 16)
}

// parsePath is the inverse of pathText.
func parsePath(text string) (base int, name uint32, frames []naive.CallFrame, err error) {
	bad := fmt.Errorf("path %q, expected 0:, 1: or 2: and frames in hex, such as 0:142/d1e/@8000285 or 2:af2f64e9/142", clip(text))
	head, rest, ok := strings.Cut(text, ":")
	if !ok || len(head) != 1 || head[0] < '0' || head[0] > '2' {
		return 0, 0, nil, bad
	}
	base = int(head[0] - '0')
	if base >= 2 {
		word, after, _ := strings.Cut(rest, "/")
		v, err := strconv.ParseUint(word, 16, 32)
		if err != nil || len(word) != 8 {
			return 0, 0, nil, bad
		}
		name, rest = uint32(v), after
	}
	if frames, err = parseFrames(rest, "/"); err != nil {
		return 0, 0, nil, bad
	}
	if text != pathText(base, name, frames) {
		return 0, 0, nil, bad
	}
	if base == 2 && len(frames) > 0 {
		base = 3
	}
	return base, name, frames, nil
}

// parseFrames reads frames that are separated by between; "" means no frames.
func parseFrames(text, between string) (frames []naive.CallFrame, err error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, between) {
		digits, escaped := strings.CutPrefix(word, "@")
		x, err := strconv.ParseUint(digits, 16, 64)
		f := naive.CallFrame{Escaped: escaped, X: x}
		if err != nil || frameText(f) != word {
			return nil, fmt.Errorf("frame %q, expected an offset in lower-case hex, or @ and an address", clip(word))
		}
		frames = append(frames, f)
	}
	return frames, nil
}

// pathLineWords returns a ~p# line in words.
func pathLineWords(l naive.PathLine) string {
	words := []string{fmt.Sprintf("flags=%d dump=%d seq=%d", l.Flags, l.Dump, l.Sequence)}
	if l.Flags&1 != 0 {
		words = append(words, fmt.Sprintf("unit=%d", l.Unit))
	}
	for _, e := range l.Entries {
		words = append(words, entryText(e, l.Flags))
	}
	return strings.Join(words, " ")
}

func entryText(e naive.PathEntry, flags int) string {
	text := pathText(e.Base, e.Name, e.Frames)
	if e.Definition {
		return text + ";def"
	}
	text += fmt.Sprintf(";live=%d", e.Live)
	if flags&1 != 0 {
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
	if flags&2 != 0 {
		text += fmt.Sprintf(";ever=%d,%d", e.Allocs, e.Ever)
	}
	if flags&4 != 0 {
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

// parsePathLine is the inverse of pathLineWords. It also accepts lines that no writer may write.
func parsePathLine(text string) (l naive.PathLine, err error) {
	r := &wordReader{words: strings.Split(text, " ")}
	l.Flags, l.Dump, l.Sequence = int(r.number("flags", 63)), int(r.number("dump", 63)), int(r.number("seq", 4095))
	if l.Flags&1 != 0 {
		l.Unit = r.number("unit", 63)
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

func parseEntry(text string, flags int) (e naive.PathEntry, err error) {
	path, values, _ := strings.Cut(text, ";")
	if e.Base, e.Name, e.Frames, err = parsePath(path); err != nil {
		return e, err
	}
	if values == "def" {
		e.Definition = true
		return e, nil
	}
	r := &wordReader{words: strings.Split(values, ";")}
	e.Live = r.number("live", anyNumber)
	if flags&1 != 0 {
		e.Blocks = r.blocks(e.Live)
	} else {
		e.Bytes = r.number("bytes", anyNumber)
	}
	if flags&2 != 0 {
		allocs, ever, _ := strings.Cut(r.take("ever"), ",")
		two := &wordReader{words: []string{"ever=" + allocs, "ever=" + ever}, err: r.err}
		e.Allocs, e.Ever = two.number("ever", anyNumber), two.number("ever", anyNumber)
		r.err = two.err
	}
	if flags&4 != 0 {
		e.Peak = r.number("peak", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("entry %q: %q after the values", clip(text), clip(r.words[0]))
	}
	return e, r.err
}

// blocks reads live blocks in the form ADDR+SIZE,ADDR+SIZE.
func (r *wordReader) blocks(live uint64) (blocks []naive.CallBlock) {
	text := r.take("blocks")
	if r.err != nil || text == "-" && live == 0 {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		address, size, _ := strings.Cut(word, "+")
		one := &wordReader{words: []string{"address=" + address, "size=" + size}}
		blocks = append(blocks, naive.CallBlock{Address: one.hex("address", 0), Size: one.number("size", anyNumber)})
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
func eventLineWords(l naive.EventLine) string {
	words := []string{fmt.Sprintf("flags=%d seq=%d", l.Flags, l.Sequence)}
	if l.Flags&1 != 0 {
		words = append(words, fmt.Sprintf("unit=%d", l.Unit))
	}
	words = append(words, fmt.Sprintf("t=%d thread=%d next=%d", l.Time, l.Thread, l.Next))
	for _, e := range l.Events {
		words = append(words, eventText(e, l.Flags))
	}
	return strings.Join(words, " ")
}

func eventText(e naive.PathEvent, flags int) string {
	at := fmt.Sprintf(";t=%d;thread=%d", e.Time, e.Thread)
	address := ""
	if flags&1 != 0 {
		address = fmt.Sprintf(";addr=%x", e.Address)
	}
	switch e.Kind {
	case "allocated":
		return fmt.Sprintf("alloc;n=%d%s;path=%08x;size=%d%s", e.Number, at, e.Path, e.Size, address)
	case "freed":
		return fmt.Sprintf("free;n=%d%s", e.Number, at)
	case "moved":
		return fmt.Sprintf("move;n=%d;old=%d%s;path=%08x;size=%d%s", e.Number, e.Old, at, e.Path, e.Size, address)
	case "unknown":
		return "unknown" + at + address
	}
	return fmt.Sprintf("lost%s;count=%d", at, e.Lost)
}

// parseEventLine is the inverse of eventLineWords.
func parseEventLine(text string) (l naive.EventLine, err error) {
	r := &wordReader{words: strings.Split(text, " ")}
	l.Flags, l.Sequence = int(r.number("flags", 63)), int(r.number("seq", 1<<18-1))
	if l.Flags&1 != 0 {
		l.Unit = r.number("unit", 63)
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

func parseEvent(text string, flags int) (e naive.PathEvent, err error) {
	kinds := map[string]string{"alloc": "allocated", "free": "freed", "move": "moved", "unknown": "unknown", "lost": "lost"}
	words := strings.Split(text, ";")
	e.Kind = kinds[words[0]]
	if e.Kind == "" {
		return e, fmt.Errorf("event %q, expected alloc, free, move, unknown or lost", clip(text))
	}
	r := &wordReader{words: words[1:]}
	begins := e.Kind == "allocated" || e.Kind == "moved"
	if begins || e.Kind == "freed" {
		e.Number = r.number("n", anyNumber)
	}
	if e.Kind == "moved" {
		e.Old = r.number("old", anyNumber)
	}
	e.Time, e.Thread = r.number("t", anyNumber), r.number("thread", anyNumber)
	if begins {
		e.Path, e.Size = uint32(r.hex("path", 8)), r.number("size", anyNumber)
	}
	if flags&1 != 0 && (begins || e.Kind == "unknown") {
		e.Address = r.hex("addr", 0)
	}
	if e.Kind == "lost" {
		e.Lost = r.number("count", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("event %q: %q after it", clip(text), clip(r.words[0]))
	}
	return e, r.err
}

// codeWords holds the words shift=N code=START+LEN,… LIST: code ranges, and addresses or frames.
type codeWords struct {
	Shift  int
	Ranges []naive.CodeRange
	List   []naive.CallFrame // addresses are Escaped frames
}

// parseCode reads codeWords; addresses reports whether LIST contains addresses.
func parseCode(text string, addresses bool) (c codeWords, err error) {
	r := &wordReader{words: strings.Split(text, " ")}
	c.Shift = int(r.number("shift", 4))
	for _, word := range strings.Split(r.take("code"), ",") {
		start, length, _ := strings.Cut(word, "+")
		one := &wordReader{words: []string{"start=" + start, "length=" + length}, err: r.err}
		c.Ranges = append(c.Ranges, naive.CodeRange{Start: one.hex("start", 0), Length: one.hex("length", 0)})
		r.err = one.err
	}
	if r.err == nil && len(r.words) != 1 {
		r.err = fmt.Errorf("%q, expected shift=N code=START+LEN,… LIST", clip(text))
	}
	if r.err != nil {
		return c, r.err
	}
	list := r.words[0]
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

// samePaths checks that the lines of a writer have the contents of words, in any form: all lines
// are valid and not longer than max=, the sequence increases by one, and the entries of each path
// add up to the same values. It returns the difference, or "".
func samePaths(words string, text string) (why string) {
	longest, rest, err := maxOf(words)
	if err != nil {
		return err.Error()
	}
	want, err := parsePathLine(rest)
	if err != nil {
		return err.Error()
	}
	got := naive.PathLine{Flags: want.Flags, Dump: want.Dump, Unit: want.Unit}
	for i, line := range strings.Split(text, "\n") {
		l, reason := naive.ReadPaths(line)
		switch seq := (want.Sequence + i) % 4096; {
		case reason != "":
			return fmt.Sprintf("line %d is rejected: %s", i+1, reason)
		case len(line) > longest:
			return fmt.Sprintf("line %d has %d characters, expected at most %d", i+1, len(line), longest)
		case l.Flags != want.Flags || l.Dump != want.Dump || l.Unit != want.Unit:
			return fmt.Sprintf("line %d has flags=%d dump=%d unit=%d", i+1, l.Flags, l.Dump, l.Unit)
		case l.Sequence != seq:
			return fmt.Sprintf("line %d has seq=%d, expected %d", i+1, l.Sequence, seq)
		}
		got.Entries = append(got.Entries, l.Entries...)
	}
	return differentSums(pathSums(want, got), pathSums(got, got), want)
}

// pathSum is the sum of the entries of a path.
type pathSum struct {
	values  bool // an entry is not a definition
	numbers [5]uint64
	blocks  []naive.CallBlock
}

// pathSums adds up the entries of l by path. It resolves the names of outer parts by the paths
// in known.
func pathSums(l, known naive.PathLine) map[string]pathSum {
	outer := map[uint32]naive.PathEntry{}
	tell := func(e naive.PathEntry) {
		for n, h := 0, uint32(e.Base); ; n++ {
			outer[h] = naive.PathEntry{Base: e.Base, Frames: e.Frames[:n]}
			if n == len(e.Frames) {
				break
			}
			h = naive.NameBehind(h, e.Frames[n:n+1])
		}
	}
	for told := -1; told < len(outer); { // repeat while new names become known: an outer part may begin with a name
		told = len(outer)
		for _, e := range known.Entries {
			if e = resolved(e, outer); e.Base < 2 {
				tell(e)
			}
		}
	}
	sums := map[string]pathSum{}
	for _, e := range l.Entries {
		e = resolved(e, outer)
		key := pathText(e.Base, e.Name, e.Frames)
		if e.Base >= 2 { // writers may name a longer or shorter outer part
			key = fmt.Sprintf("2:%08x", naive.NameBehind(e.Name, e.Frames))
		}
		s := sums[key]
		s.values = s.values || !e.Definition
		for i, v := range []uint64{e.Live, e.Bytes, e.Allocs, e.Ever, e.Peak} {
			s.numbers[i] += v
		}
		s.blocks = append(s.blocks, e.Blocks...)
		sums[key] = s
	}
	return sums
}

// resolved returns an entry with its name replaced by frames, if they are known.
func resolved(e naive.PathEntry, outer map[uint32]naive.PathEntry) naive.PathEntry {
	if o, found := outer[e.Name]; e.Base >= 2 && found {
		e.Base, e.Name, e.Frames = o.Base, 0, append(slices.Clone(o.Frames), e.Frames...)
	}
	return e
}

// differentSums describes a sum that is missing, unexpected or different in got, or returns "". got may have additional definitions.
func differentSums(want, got map[string]pathSum, l naive.PathLine) string {
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

func sameBlocks(a, b []naive.CallBlock) bool {
	order := func(x, y naive.CallBlock) int {
		return strings.Compare(fmt.Sprintf("%016x %016x", x.Address, x.Size), fmt.Sprintf("%016x %016x", y.Address, y.Size))
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(a, b)
}

// sameEvents is like samePaths, for a ~v# line.
func sameEvents(words, text string) (why string) {
	l, reason := naive.ReadEvents(text)
	switch {
	case reason != "":
		return "the line is rejected: " + reason
	case len(text) > 1<<16:
		return fmt.Sprintf("the line has %d characters, expected at most 65536", len(text))
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

// lineOfDigits returns the line described by `digits:`. The lines of `digits:` are words of digits; a
// word may end in *N, which repeats it N times. lineOfDigits adds lead-in and CRC.
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
	if events {
		return "~v#" + string(text) + naive.EventCRC(string(text)), nil
	}
	return "~p#" + string(text) + naive.PathCRC(string(text)), nil
}

// crcDigits returns the number of digits of the CRC of the line described by `digits:`.
func (v *Vector) crcDigits() int {
	if v.Has(OpVline) || v.Has(OpVencode) {
		return 6
	}
	return 3
}
