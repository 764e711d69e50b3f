package forms

import (
	"bytes"
	"slices"
	"strings"
)

// Own is the system of lines that programs print themselves. They count only where no form has the line.
const Own = "print"

// ownKeys are in each line that may say something of a heap, or how long the system runs.
const ownKeys = "free|Free|FREE|heap|Heap|HEAP|avail|Avail|AVAIL|emain|argest|iggest|axAlloc|ax_alloc|ax alloc|ax Alloc|ax block|ax Block|ax_block|axBlock|ptime|illis|otal|\"ts\"| left|used|Used|USED|emory|rss|Rss|RSS|esident|Alloc"

// field is a number of a line, and what its words say that it is.
type field struct {
	kind  int   // index of a value
	value int64 // bytes, or µs
	at    int   // index of the number
	stats       // name, named and heap
	sure  bool  // it is of a heap, whatever the line has besides
}

// maxHeaps is the number of heaps of a line.
const maxHeaps = 16

// ownLine reads a line that a program prints itself: numbers with words before them, as in "Free heap:
// 41232, largest block 31744", or behind them, as in "41232 bytes free". It reports whether there are any.
//
// A number counts if its words say so, and if the line names a memory, a largest block or a time. All
// other numbers are skipped.
func (s *state) ownLine(line []byte) bool {
	tokens := lexOwn(line)
	goes := bytes.Contains(line, []byte("TotalAlloc")) // Alloc is what Go calls so, and not an allocation
	for i := range tokens {
		if goes && tokens[i].text == "Alloc" {
			tokens[i].labels = []label{{"alloc", wordGo}}
		}
	}
	var list []field
	for i := range tokens {
		if tokens[i].kind != numberToken {
			continue
		}
		if f, ok := fieldOf(line, tokens, i, list); ok && len(list) < 4*maxHeaps {
			list = append(list, f)
		}
	}
	list = accept(list, tokens, s.stats.own && s.stats.any)
	for _, x := range byHeap(list) {
		s.add(x)
	}
	return len(list) > 0
}

// fieldOf returns what the number at index i is.
func fieldOf(line []byte, tokens []token, i int, before []field) (f field, ok bool) {
	l := labelBefore(tokens, i)
	t := &tokens[i]
	l.giveUnit(t)
	if t.whole > 0 {
		return wholeOf(t, before)
	}
	f = field{value: t.value, at: i}
	f.own = true
	f.name, f.named = nameOf(l, tokens, i)
	f.heap = !f.named && l.has(wordHeap)
	if f.kind = l.time(t); f.kind == valueTime {
		f.value = l.microseconds(t)
		return f, f.value >= 0
	}
	if !t.isBytes() || i+1 < len(tokens) && tokens[i+1].is(wordNot) || !l.has(wordHeap|wordResident|wordGo) && ofOther(tokens[:i]) { // 5 slots
		return f, false
	}
	f.kind = l.role()
	after := labelAfter(tokens, i)
	switch {
	case after == nil || after.role() < 0:
	case f.kind == valueFree && !l.equals && between(tokens, i): // "Heap 5 free 7 used": which of them is free?
		return f, false
	case (f.kind == none || f.kind == bareHeap) && !l.any(wordNot) && after.role() != valueSize:
		f.kind = after.role()
		f.heap = f.heap || !f.named && after.has(wordHeap)
	}
	if f.kind == valueSize && !l.has(wordHeap) && !l.equals && slices.ContainsFunc(before, func(b field) bool { return b.kind == valueFree && (!f.named || b.name == f.name) }) {
		return f, false // "free 5 total 7" may be the total of what is free
	}
	f.sure = f.kind == valueFree && l.has(wordTotal)
	switch f.kind {
	case valueFree:
		f.point = pointOf(l, tokens, i)
	case valueUsed:
		ok = f.setUsed(&l, t, line, tokens[i+1:])
		return f, ok
	}
	return f, f.kind != none
}

// setUsed sets what the words say of a number that is used. It reports whether the number counts.
func (f *field) setUsed(w *words, t *token, line []byte, behind []token) bool {
	f.alone = w.has(wordResident | wordGo)
	f.sure = f.alone
	if f.unsure = !w.isUsed(t, line) || goesOn(behind); !f.unsure {
		f.label = string(line[w.first.at : w.last.at+len(w.last.text)])
	}
	return !f.alone || !f.unsure
}

// ofOther reports whether the last words that say what numbers are of say that these are of no heap:
// "SPIFFS: total 7, used 2, free".
func ofOther(tokens []token) bool {
	for _, t := range slices.Backward(tokens) {
		if t.is(wordHeap | wordNot) {
			return t.is(wordNot)
		}
	}
	return false
}

// wholeOf returns the size of what the number before has a part of: 5 of 7, 5 / 7.
func wholeOf(t *token, before []field) (f field, ok bool) {
	if len(before) == 0 {
		return f, false
	}
	part := before[len(before)-1]
	f = field{valueSize, t.value, part.at, part.stats, false}
	return f, part.at == t.whole-1 && (part.kind == valueFree || part.kind == valueUsed) && t.isBytes()
}

// between reports whether only words stand between a number and the one before.
func between(tokens []token, i int) bool {
	k := i - 1
	for k >= 0 && tokens[k].kind == wordToken {
		k--
	}
	return k >= 0 && k < i-1 && tokens[k].kind == numberToken
}

// Kinds of a field besides the values.
const (
	none     = -1
	bareHeap = -2 // "heap: 5"
	bareMax  = -3 // "max: 5"
)

// words are the words before or behind a number: those of the whole label, and those behind its last
// colon, which are next to the number.
type words struct {
	label, next []label
	first, last *token // of next
	equals      bool   // a colon, an equals sign or "is" is next to the number
}

func (w *words) has(c class) bool {
	return slices.ContainsFunc(w.next, func(l label) bool { return l.class&c != 0 })
}

func (w *words) any(c class) bool {
	return slices.ContainsFunc(w.label, func(l label) bool { return l.class&c != 0 })
}

// only reports whether the words next to the number are all of some classes.
func (w *words) only(c class) bool {
	return !slices.ContainsFunc(w.next, func(l label) bool { return l.class&c == 0 })
}

// role returns what a number with these words is.
func (w *words) role() int {
	switch {
	case w.has(wordNot) || w.any(wordNot) && !w.has(wordHeap) || w.has(wordUnknown) && !w.has(wordHeap):
		return none
	case w.has(wordMin):
		if w.has(wordUsed | wordLargest | wordBlock) {
			return none
		}
		return valueLeast
	case w.has(wordLargest) || w.has(wordMax) && w.has(wordBlock|wordFree):
		return valueLargest
	case w.has(wordMax) && w.has(wordUsed):
		return valuePeak
	case w.has(wordMax):
		if w.only(wordMax) {
			return bareMax
		}
		return none
	case w.has(wordFree):
		return valueFree
	case w.has(wordFrag):
		return none
	case w.has(wordResident | wordGo), w.has(wordUsed) && !w.has(wordUnknown):
		return valueUsed
	case w.has(wordTotal) && w.has(wordHeap):
		return valueSize
	case w.has(wordTotal) && w.only(wordTotal|wordFill):
		return valueSize
	case w.has(wordHeap) && w.only(wordHeap|wordFill):
		return bareHeap
	}
	return none
}

// giveUnit gives a number the unit of bytes that the words next to it have. It is none of bytes if it has
// another one.
func (w *words) giveUnit(t *token) {
	i := slices.IndexFunc(w.next, func(l label) bool { return l.class&wordBytes != 0 })
	switch {
	case i < 0:
	case t.unit == "":
		t.unit = w.next[i].word
		t.value = amountOf(t.text, t.unit)
	case t.unit[0] != w.next[i].word[0]:
		t.value = -1
	}
}

// isUsed reports whether the words surely say that the number is what is used: an amount and not a share,
// now and not at a peak or since the start, of all memory and not of an allocation.
func (w *words) isUsed(t *token, line []byte) bool {
	const rest = wordUsed | wordHeap | wordFill
	switch {
	case !w.equals || slices.ContainsFunc(w.next, func(l label) bool { return l.word == "allocated" }):
		return false
	case w.has(wordResident):
		return w.only(wordResident|wordTotal|rest) && w.last.text != "Rss" && // smaps has that of a mapping
			(t.unit != "" || w.has(wordUsed) || bytes.Contains(line, []byte("heapUsed"))) // of ps, it is in KiB
	case w.has(wordGo):
		return w.only(wordGo | wordHeap)
	}
	return w.only(rest) && (t.unit != "" || t.value > 100) // not a percentage
}

// goesOn reports whether the words behind a number are not those of the next one.
func goesOn(behind []token) bool {
	i := slices.IndexFunc(behind, func(t token) bool { return t.kind != wordToken })
	if i < 0 {
		i = len(behind)
	}
	return i > 0 && (i == len(behind) || behind[i].kind != colonToken)
}

// time returns valueTime if the number is the time since the boot.
func (w *words) time(t *token) int {
	if w.has(wordTime) && w.only(wordTime|wordUnit|wordFill) && (w.equals || t.unit != "") {
		return valueTime
	}
	return none
}

// microseconds returns a time, of which the label or the number has the unit. A number without one is
// in ms if it is called so, and in s otherwise; -1 if it is no time.
func (w *words) microseconds(t *token) int64 {
	unit := t.unit
	if t.clock > 0 {
		return t.clock
	}
	if unit == "" {
		for _, l := range w.next {
			if l.class == wordUnit || l.word == "millis" {
				unit = l.word
			}
		}
	}
	switch {
	case t.value < 0 || t.value > 1<<43:
		return -1
	case unit == "ms" || unit == "millis" || unit == "" && t.value > 1e11: // ms since 1970
		return t.value * 1e3
	case unit == "" || unit[0] == 's':
		return t.value * 1e6
	}
	return -1
}

// labelBefore returns the words before the number at index i, up to a separator or another number.
func labelBefore(tokens []token, i int) (w words) {
	from := i
	for from > 0 && tokens[from-1].kind != numberToken && tokens[from-1].kind != separatorToken {
		from--
	}
	colon := false
	for k, t := range tokens[from:i] {
		switch t.kind {
		case wordToken:
			if colon {
				w.next = nil
			}
			colon, w.equals = false, t.text == "is"
			if w.next == nil {
				w.first = &tokens[from+k]
			}
			if !w.equals {
				w.last = &tokens[from+k]
			}
			w.label, w.next = append(w.label, t.labels...), append(w.next, t.labels...)
		case colonToken:
			colon = len(w.next) > 0
			w.equals = from+k+1 == i
		}
	}
	return w
}

// labelAfter returns the words behind the number at index i, up to a separator or the end of the line;
// nil if they belong to another number, or if there is a word that is not known.
func labelAfter(tokens []token, i int) *words {
	var w words
	for _, t := range tokens[i+1:] {
		if t.kind == separatorToken || t.kind == closeToken {
			break
		}
		if t.kind == numberToken && t.whole > 0 {
			continue
		}
		if t.kind != wordToken || slices.ContainsFunc(t.labels, func(l label) bool { return l.class == wordUnknown }) {
			return nil
		}
		w.next = append(w.next, t.labels...)
	}
	return &w
}

// nameOf returns the name of the heap that the words before a number have, or those before a separator
// such as a bracket if they are the name of a memory and nothing else.
func nameOf(w words, tokens []token, i int) (name string, named bool) {
	for _, list := range [][]label{w.next, w.label} {
		for _, l := range slices.Backward(list) {
			if l.class&wordName != 0 {
				return heapName(l.word), true
			}
		}
		if slices.ContainsFunc(w.label, func(l label) bool { return l.class == wordUnknown }) {
			return "", false // "dma_driver: free heap" is no heap of this name
		}
	}
	for k := i - 1; k > 0 && tokens[k].kind != numberToken; k-- {
		if t := tokens[k-1]; tokens[k].mark == ']' && len(t.labels) == 1 && t.labels[0].class&wordName != 0 { // [internal]
			return heapName(t.labels[0].word), true
		}
	}
	return "", false
}

// accept returns the fields that count. A line without the name of a memory, a largest block or a time
// says nothing of a heap, unless the lines before it did, and a bare "heap" is what is free only if the
// line has more.
func accept(list []field, tokens []token, memory bool) []field {
	has := func(kinds ...int) bool {
		return slices.ContainsFunc(list, func(f field) bool { return slices.Contains(kinds, f.kind) })
	}
	frag := false
	for _, t := range tokens {
		memory = memory || t.is(wordHeap)
		frag = frag || t.is(wordFrag)
	}
	bare := bareBytes(tokens)
	sure := slices.ContainsFunc(list, func(f field) bool { return f.sure })
	if !memory && !frag && !bare && !sure && !has(valueLargest, valueTime) {
		return nil
	}
	free := has(valueFree)
	var kept []field
	for _, f := range list {
		switch f.kind {
		case bareHeap:
			if free || !frag && !has(valueLargest, valueLeast) {
				continue
			}
			f.kind = valueFree
		case bareMax:
			if !frag {
				continue
			}
			f.kind = valueLargest
		}
		kept = append(kept, f)
	}
	return kept
}

// bareBytes reports whether a line is "41232 bytes free" and nothing else but the tag of a log.
func bareBytes(tokens []token) bool {
	i := slices.IndexFunc(tokens, func(t token) bool { return t.kind == numberToken })
	return i >= 0 && tokens[i].unit != "" && !slices.ContainsFunc(tokens[:i], func(t token) bool { return t.kind == wordToken && !t.tag })
}

// byHeap returns the values of each heap of a line, in the order of the line. A number without a name
// is of the heap before it; "heap" behind PSRAM is another one.
func byHeap(list []field) (heaps []stats) {
	for i := range list {
		f := &list[i]
		if f.named || i == 0 {
			continue
		}
		if before := &list[i-1]; !f.heap || before.name != psram {
			f.name, f.named = before.name, before.named
		} else {
			f.named = true
		}
	}
	for _, f := range list {
		at := slices.IndexFunc(heaps, func(x stats) bool { return x.name == f.name && x.v[f.kind] < 0 && !x.alone && !f.alone })
		if f.kind == valueTime && len(heaps) > 0 {
			at = 0
		}
		if at < 0 {
			at = len(heaps)
			heaps = append(heaps, newStats())
			heaps[at].name, heaps[at].named, heaps[at].heap, heaps[at].own = f.name, f.named, f.heap, true
		}
		x := &heaps[at]
		x.v[f.kind], x.any = f.value, true
		x.take(&f.stats, f.kind)
		x.named, x.heap = x.named || f.named, x.heap || f.heap
	}
	return heaps
}

// heapName returns the name of a heap of ESP-IDF as capabilities have it, and other names as they are.
func heapName(text string) string {
	switch name := strings.ToLower(strings.TrimSpace(text)); name {
	case "psram", "spiram":
		return psram
	case "internal", "inter":
		return "internal"
	case "dma", "dram", "iram":
		return strings.ToUpper(name)
	}
	return strings.TrimSpace(text)
}

// maxPoints is the number of points of a program that are kept apart, and maxPoint the bytes of one.
const (
	maxPoints = 8
	maxPoint  = 48
)

// pointOf returns the words before a number at index i, if some of them are not known, and those in
// brackets before them: "free-memory-after-publishing".
func pointOf(l words, tokens []token, i int) string {
	var text []string
	known := true
	for k := i - 1; k > 0 && tokens[k].kind != numberToken && tokens[k].mark != '['; k-- {
		if tokens[k].mark != ']' {
			continue
		}
		if t := tokens[k-1]; k > 1 && tokens[k-2].mark == '[' && len(t.labels) == 1 {
			text, known = append(text, t.labels[0].word), false
		}
		break
	}
	for _, w := range l.label {
		text = append(text, w.word)
		known = known && w.class != wordUnknown
	}
	if point := strings.Join(text, "-"); !known && len(point) <= maxPoint {
		return point
	}
	return ""
}

// pointOf returns a point of the program, "" if there are too many.
func (s *state) pointOf(point string) string {
	if point == "" || slices.Contains(s.points, point) {
		return point
	}
	if len(s.points) == maxPoints {
		return ""
	}
	s.points = append(s.points, point)
	return point
}
