package naive

import (
	"cmp"
	"math/bits"
	"strconv"
	"strings"
)

// putter appends fields to a text of digits.
type putter struct {
	b    impl
	text []byte
}

func (p *putter) fixed(v uint64, n int) {
	for range n {
		p.text = append(p.text, base64Alphabet[v&63])
		v >>= 6
	}
}

func (p *putter) number(v uint64) {
	for v>>5 != 0 {
		p.fixed(v&31|32, 1)
		v >>= 5
	}
	if p.b.has("w-number-in-two-digits") && len(p.text)%7 == 0 {
		p.fixed(v|32, 1)
		v = 0
	}
	p.fixed(v, 1)
}

func (p *putter) folded(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

// frames writes steps.
func (p *putter) frames(frames []frame) {
	p.number(uint64(len(frames)))
	ref := uint64(0)
	for _, f := range frames {
		if f.escaped && !p.b.has("w-escape-not-written") {
			p.text = append(p.text, "/////"...)
			p.number(f.x)
			ref = 0
			if p.b.has("w-step-from-escape") {
				ref = f.x
			}
			continue
		}
		v := p.folded(f.x - ref)
		class := max(0, (bits.Len64(v)-5)/6)
		if p.b.has("w-step-of-class-3") {
			class = 3
		}
		p.fixed(v<<2|uint64(class), class+2)
		ref = f.x
	}
}

// keyValues returns the values of key=value words.
func keyValues(words []string) map[string]string {
	all := map[string]string{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		all[key] = value
	}
	return all
}

func (m keys) number(key string) uint64 {
	v, _ := strconv.ParseUint(m[key], 10, 64)
	return v
}

func (m keys) hex(key string) uint64 {
	v, _ := strconv.ParseUint(m[key], 16, 64)
	return v
}

type keys map[string]string

// pathWriter writes entries as ~p# lines, without shared frames.
type pathWriter struct {
	b         impl
	head      keys
	longest   int
	seq, unit uint64
	line      string // digits of entries
	at        uint64 // address of the previous block in the line, in units
	lines     []string
}

// pencode writes the entries of words.
func (b impl) pencode(text string) ([]byte, error) {
	words := strings.Split(text, " ")
	n := 0
	for n < len(words) && !strings.Contains(words[n], ":") {
		n++
	}
	w := &pathWriter{b: b, head: keyValues(words[:n])}
	w.longest = int(w.head.number("max"))
	if b.has("w-240-always") {
		w.longest = 240
	}
	w.seq, w.unit = w.head.number("seq"), w.head.number("unit")
	if w.unit > 12 && !b.has("w-unit-over-12") {
		return nil, errUnit
	}
	var err error
	long := reads(func() { // panics with errHash
		for i := n; i < len(words) && err == nil; i++ {
			err = w.entry(words[i])
		}
	})
	if err = cmp.Or(err, long); err != nil {
		return nil, err
	}
	w.flush()
	return []byte(strings.Join(w.lines, "\n")), nil
}

func (w *pathWriter) flush() {
	if w.line == "" {
		return
	}
	p := &putter{b: w.b}
	p.fixed(w.head.number("flags"), 1)
	p.fixed(w.head.number("dump"), 1)
	seq := w.seq & 4095
	if w.b.has("w-sequence-of-one-digit") {
		seq &= 63
	}
	p.fixed(seq, 2)
	if w.head.number("flags")&1 != 0 {
		p.fixed(w.unit, 1)
	}
	p.text = append(p.text, w.line...)
	p.fixed(impl{}.crc16(string(p.text)), 3)
	w.lines = append(w.lines, "~p#"+string(p.text))
	w.line, w.at = "", 0
	if !w.b.has("w-sequence-stays") {
		w.seq++
	}
}

// put adds the digits of an entry, in a new line if they do not fit.
func (w *pathWriter) put(digits func() string) {
	at := w.at
	text := digits()
	left := w.longest - 3 - 4 - int(w.head.number("flags")&1) - 3
	if len(w.line)+len(text) > left && w.line != "" {
		w.flush()
		if w.b.has("w-blocks-go-on") {
			w.at = at
		}
		text = digits()
	}
	if len(text) > left {
		panic(errHash)
	}
	w.line += text
}

func (w *pathWriter) path(e entry) string {
	p := &putter{b: w.b}
	if w.b.has("w-cut-as-whole") && e.base == 1 {
		e.base = 0
	}
	p.number(e.base)
	if e.base >= 2 {
		p.fixed(uint64(e.name), 6)
	}
	if e.base != 2 {
		p.frames(e.frames)
	}
	return string(p.text)
}

// checkOffsets returns an error if an offset is over 27 bits.
func (b impl) checkOffsets(frames []frame) error {
	for i, f := range frames {
		if f.escaped || f.x>>27 == 0 {
			continue
		}
		if !b.has("w-frame-over-27-bits") {
			return errFrame
		}
		frames[i].x &= 1<<27 - 1
	}
	return nil
}

// defineOuter writes definitions of outer parts until the rest of a path fits a line, and returns the rest.
func (w *pathWriter) defineOuter(e entry) entry {
	b := w.b
	for len(e.frames) > w.longest/2 || len(w.path(e)) > w.longest-80 { // define the outer part, and refer to it by name
		n := 1
		for n < len(e.frames) && len(w.path(entry{base: e.base, name: e.name, frames: e.frames[:n+1]})) <= w.longest-12 {
			n++
		}
		outer := entry{base: e.base, name: e.name, frames: e.frames[:n]}
		name := impl{}.nameOf(outer.base, outer.name, outer.frames)
		for n > 0 && name <= 1 && !b.has("w-names-no-frames") {
			n--
			outer.frames = e.frames[:n]
			name = impl{}.nameOf(outer.base, outer.name, outer.frames)
		}
		if n == 0 {
			break // it has to fit as it is
		}
		if b.has("w-outer-name-of-outermost") {
			name = impl{}.nameOf(0, 0, outer.frames)
		}
		if !b.has("w-outer-part-not-defined") {
			w.put(func() string { return w.path(outer) + "A" })
		}
		e.base, e.name, e.frames = 3, name, e.frames[n:]
		if b.has("w-outer-part-lost") {
			e.base = 1
		}
	}
	return e
}

func (w *pathWriter) entry(word string) error {
	b := w.b
	pathWord, values, _ := strings.Cut(word, ";")
	e := parsePath(pathWord)
	if len(e.frames) > 1024 && !b.has("w-depth-over-1024") {
		return errDepth
	}
	if err := b.checkOffsets(e.frames); err != nil {
		return err
	}
	v := keys(keyValues(strings.Split(values, ";")))
	if v.number("live") == 1<<64-1 && !b.has("w-live-wraps") {
		return errNumber
	}
	var blocks []string
	if text := v["blocks"]; text != "" && text != "-" {
		blocks = strings.Split(text, ",")
	}
	for _, block := range blocks {
		address, _, _ := strings.Cut(block, "+")
		if a, _ := strconv.ParseUint(address, 16, 64); a&(1<<w.unit-1) != 0 && !b.has("w-address-rounded-down") {
			return errUnit
		}
	}
	e = w.defineOuter(e)
	if values == "def" {
		w.put(func() string { return w.path(e) + "A" })
		return nil
	}
	w.valued(e, v, blocks)
	return nil
}

// valued writes an entry with values, in parts if its blocks do not fit a line.
func (w *pathWriter) valued(e entry, v keys, blocks []string) {
	b := w.b
	flags := w.head.number("flags")
	for first := true; first || len(blocks) > 0; first = false {
		most := max(1, (w.longest-60)/24)
		if len(w.path(e)) > w.longest-80 {
			most = 1
		}
		part := blocks[:min(len(blocks), most)]
		blocks = blocks[len(part):]
		if !first && b.has("w-blocks-of-one-line") {
			return
		}
		w.put(func() string {
			p := &putter{b: b, text: []byte(w.path(e))}
			live := v.number("live")
			if flags&1 != 0 {
				live = uint64(len(part))
			}
			if b.has("w-live-as-it-is") {
				live--
			}
			p.number(live + 1)
			w.blocks(p, part)
			if flags&1 == 0 {
				p.number(v.number("bytes"))
			}
			w.history(p, v, first)
			return string(p.text)
		})
	}
}

// history writes the sums since the boot and the peak, of the first part of an entry.
func (w *pathWriter) history(p *putter, v keys, first bool) {
	b, flags := w.b, w.head.number("flags")
	ever, peak := v["ever"], v.number("peak")
	if !first && !b.has("w-values-of-each-part") {
		ever, peak = "0,0", 0
	}
	allocs, bytes, _ := strings.Cut(ever, ",")
	two := keys{"a": allocs, "b": bytes}
	if flags&4 != 0 && b.has("w-peak-first") {
		p.number(peak)
	}
	if flags&2 != 0 {
		p.number(two.number("a"))
		p.number(two.number("b"))
	}
	if flags&4 != 0 && !b.has("w-peak-first") {
		p.number(peak)
	}
}

func (w *pathWriter) blocks(p *putter, blocks []string) {
	for _, block := range blocks {
		address, size, _ := strings.Cut(block, "+")
		k := keys{"address": address, "size": size}
		at := k.hex("address") >> w.unit
		if p.b.has("w-unit-not-applied") {
			at = k.hex("address")
		}
		p.number(p.folded(at - w.at))
		p.number(k.number("size"))
		w.at = at
	}
}

// vencode writes the events of words as a ~v# line.
func (b impl) vencode(text string) ([]byte, error) {
	words := strings.Split(text, " ")
	n := 0
	for n < len(words) && !strings.Contains(words[n], ";") {
		n++
	}
	head := keys(keyValues(words[:n]))
	p := &putter{b: b}
	flags, unit := head.number("flags"), head.number("unit")
	if unit > 12 && !b.has("w-event-unit-over-12") {
		return nil, errUnit
	}
	p.fixed(flags, 1)
	p.fixed(head.number("seq"), 3)
	if flags&1 != 0 {
		p.fixed(unit, 1)
	}
	p.number(head.number("t"))
	p.number(head.number("thread"))
	p.number(head.number("next"))
	w := &eventWriter{putter: p, flags: flags, unit: unit, time: head.number("t"), thread: head.number("thread"),
		next: head.number("next"), paths: map[string]uint64{}}
	for _, word := range words[n:] {
		if err := w.event(word); err != nil {
			return nil, err
		}
	}
	p.fixed(impl{}.crc32(string(p.text)), 6)
	return append([]byte("~v#"), p.text...), nil
}

// timeAndThread writes the time and thread of an event if they differ from those before.
func (w *eventWriter) timeAndThread(e keys) {
	b := w.b
	if t := e.number("t"); t != w.time && !b.has("w-time-of-the-line") {
		w.number(3)
		if b.has("w-time-whole") {
			w.number(t)
		} else {
			w.number(t - w.time)
		}
		w.time = t
	}
	if t := e.number("thread"); t != w.thread && !b.has("w-thread-of-the-line") {
		w.number(7)
		w.number(t)
		w.thread = t
	}
}

type eventWriter struct {
	*putter
	flags, unit, time, thread, next, at uint64
	paths                               map[string]uint64
}

func (w *eventWriter) event(word string) error {
	b := w.b
	kind, rest, _ := strings.Cut(word, ";")
	e := keys(keyValues(strings.Split(rest, ";")))
	w.timeAndThread(e)
	age := w.next - e.number(map[string]string{"move": "old"}[kind])
	if kind == "free" {
		age = w.next - e.number("n")
	}
	limit := w.next
	if kind == "free" && !b.has("w-freed-age-over-62-bits") || kind == "move" && b.has("w-moved-age-of-62-bits") {
		limit = min(limit, 1<<62-1)
	}
	if (kind == "free" || kind == "move") && (age == 0 || age > limit) && !b.has("w-any-age") {
		return errAge
	}
	if e.hex("addr")&(1<<w.unit-1) != 0 && !b.has("w-event-address-rounded-down") {
		return errUnit
	}
	switch kind {
	case "alloc", "move":
		k := uint64(0)
		if kind == "move" {
			k = 2
		}
		if at := w.paths[e["path"]]; at > 0 {
			w.number(4*at + k)
		} else {
			w.paths[e["path"]] = uint64(len(w.paths) + 1)
			if b.has("w-index-from-0") {
				w.paths[e["path"]]--
			}
			w.number(k)
			w.fixed(e.hex("path"), 6)
		}
		if kind == "move" {
			w.number(age)
		}
		w.number(e.number("size"))
		w.address(e)
		if w.next++; kind == "move" && b.has("w-move-takes-no-number") {
			w.next--
		}
	case "free":
		if b.has("w-age-one-less") {
			age--
		}
		w.number(4*age + 1)
	case "unknown":
		w.number(11)
		w.address(e)
	case "lost":
		w.number(15)
		w.number(e.number("count"))
	}
	return nil
}

func (w *eventWriter) address(e keys) {
	if w.flags&1 == 0 {
		return
	}
	at := e.hex("addr") >> w.unit
	w.number(w.folded(at - w.at))
	if !w.b.has("w-addresses-whole") {
		w.at = at
	}
}
