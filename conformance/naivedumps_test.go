package conformance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// The second implementation of dumps of call paths, section 24: the whole log is read first,
// then the names are looked up, then each dump is added up.

// naiveTotal is the sum of the entries of a path in a dump.
type naiveTotal struct {
	Base   int // 0, 1, or 2 if the outer frames have an unknown name
	Name   uint32
	Frames []naive.CallFrame

	Live, Bytes, Allocs, Ever, Peak uint64

	Estimated         bool
	LiveEst, BytesEst float64
}

// told is the paths that lines tell from a boot on, up to one that forgets them.
type told struct {
	entries []naive.PathEntry
	known   map[uint32][]naive.PathEntry // by name, of whole paths; several if they have the same name
}

// logDump is a dump with what stands between its begin and its end.
type logDump struct {
	pathDump
	paths   []naiveTotal
	told    *told
	begin   map[string]string // keys
	end     map[string]string
	entries []naive.PathEntry
	lines   int64
	gaps    int64
	count   uint64 // of live blocks, and records
	bytes   uint64
}

// logReader is what holds at a place of a log.
type logReader struct {
	boots  int
	before map[string]string // keys of the boot header; nil before the first
	word   int               // bits
	next   int               // sequence of the next line, -1 if it is not known
	told   *told
	open   *logDump
	all    []*logDump
}

// naiveDumps returns the dumps of a log.
func naiveDumps(text string) []pathDump {
	r := &logReader{word: 64, next: -1, told: &told{}}
	for _, item := range logItems(text) {
		switch item[:3] {
		case "~h#":
			r.header(item)
		case "~p#":
			r.line(item)
		case "~m#", "~b#":
			if r.open != nil {
				r.open.count++
				r.open.bytes += sizeOf(item, r.word)
			}
		}
	}
	dumps := make([]pathDump, 0, len(r.all))
	for i, d := range r.all {
		d.told.learn()
		d.addUp(r.all[:i])
		for _, p := range d.paths {
			t := pathTotal{Path: callpath.Path{Base: callpath.Base(p.Base), Outer: p.Name}, Estimated: p.Estimated}
			for _, f := range p.Frames {
				t.Frames = append(t.Frames, callpath.Frame{Value: f.X, Escaped: f.Escaped})
			}
			t.PathSum = callpath.PathSum{Live: p.Live, Bytes: p.Bytes, Allocs: p.Allocs, AllocBytes: p.Ever, Peak: p.Peak,
				LiveEst: p.LiveEst, BytesEst: p.BytesEst}
			d.Paths = append(d.Paths, t)
		}
		dumps = append(dumps, d.pathDump)
	}
	return dumps
}

// header takes a header.
func (r *logReader) header(item string) {
	if strings.Contains(item, "  ") {
		return // rejected (BT-HEAD-1); no vector of dumps has another rejected header
	}
	verb, number, keys := headerOf(item)
	switch verb {
	case "boot":
		r.boots++
		r.word, r.next, r.open = 64, 0, nil
		if keys["w"] == "32" {
			r.word = 32
		}
		if r.before == nil || keys["build"] == "" || keys["code"] == "" || keys["build"] != r.before["build"] ||
			keys["code"] != r.before["code"] || decimal(keys["shift"]) != decimal(r.before["shift"]) {
			r.told = &told{}
		}
		r.before = keys
	case "begin":
		r.open = &logDump{pathDump: pathDump{Number: number, Boot: r.boots, Open: true}, told: r.told, begin: keys}
		r.all = append(r.all, r.open)
	case "end":
		if r.open != nil && number == r.open.Number {
			r.open.end, r.open.Open = keys, false
		}
		r.open = nil
	}
}

// line takes a ~p# line.
func (r *logReader) line(item string) {
	l, reason := naive.ReadPaths(item)
	if reason != "" {
		return
	}
	gap := 0
	if r.next >= 0 {
		gap = (l.Sequence - r.next + 4096) % 4096
	}
	if gap < 2048 {
		r.next = (l.Sequence + 1) % 4096
	} else { // the line came late or twice (BT-DUMP-4)
		gap = 0
	}
	r.told.entries = append(r.told.entries, l.Entries...)
	if r.open != nil && uint64(l.Dump) == r.open.Number%64 {
		r.open.lines++
		r.open.gaps += int64(gap)
		r.open.entries = append(r.open.entries, l.Entries...)
	}
}

// logItems returns the headers, records and lines of a log, each from its lead-in on.
func logItems(text string) (items []string) {
	for len(text) > 0 {
		at := strings.IndexByte(text, '~')
		if at < 0 {
			break
		}
		text = text[at:]
		if len(text) < 3 || text[2] != '#' || !strings.Contains("mbehpv", text[1:2]) {
			text = text[1:]
			continue
		}
		end := 3
		for end < len(text) {
			c := text[end]
			digit := strings.IndexByte(naive.Alphabet, c) >= 0
			if strings.Contains("pv", text[1:2]) && !digit || strings.Contains("me", text[1:2]) && !digit && c != '=' ||
				strings.Contains("\r\n\x1b~", text[end:end+1]) {
				break
			}
			end++
		}
		items = append(items, strings.TrimRight(text[:end], " \t"))
		text = text[end:]
	}
	return items
}

// headerOf returns verb, number and keys of a header, of equal keys the first.
func headerOf(text string) (verb string, number uint64, keys map[string]string) {
	keys = map[string]string{}
	for i, word := range strings.Fields(text[3:]) {
		key, value, isKey := strings.Cut(word, "=")
		_, again := keys[key]
		switch {
		case i == 0:
			verb = word
		case !isKey:
			number = decimal(word)
		case !again:
			keys[key] = value
		}
	}
	return verb, number, keys
}

func decimal(text string) uint64 {
	v, _ := strconv.ParseUint(text, 10, 64)
	return v
}

// sizeOf returns the size that a record has, 0 if it cannot be read.
func sizeOf(record string, word int) uint64 {
	if strings.HasPrefix(record, "~b#") {
		_, size, _ := naive.ParseDecoded(record)
		return size
	}
	blob, reason := naive.ParseLine(record, false)
	if reason != "" {
		return 0
	}
	s, rejected := naive.Decode(blob, word)
	if rejected != nil {
		return 0
	}
	return s.Size
}

// learn finds which names are known. A path behind a name is told once that name is known, so
// entries are read again until nothing new is told. (BT-NAME-2)
func (t *told) learn() {
	t.known = map[uint32][]naive.PathEntry{0: {{Base: 0}}, 1: {{Base: 1}}}
	for count := -1; count != t.count(); {
		count = t.count()
		for _, e := range t.entries {
			if e = t.whole(e); e.Base >= 2 {
				continue
			}
			for n := range e.Frames {
				outer := naive.PathEntry{Base: e.Base, Frames: e.Frames[:n+1]}
				name := nameBehind(uint32(e.Base), outer.Frames)
				same := func(o naive.PathEntry) bool { return o.Base == outer.Base && slices.Equal(o.Frames, outer.Frames) }
				if !slices.ContainsFunc(t.known[name], same) {
					t.known[name] = append(t.known[name], outer)
				}
			}
		}
	}
}

func (t *told) count() (n int) {
	for _, paths := range t.known {
		n += len(paths)
	}
	return n
}

// whole returns an entry with the frames of its name, if that is known.
func (t *told) whole(e naive.PathEntry) naive.PathEntry {
	if paths := t.known[e.Name]; e.Base >= 2 && len(paths) == 1 && len(paths[0].Frames)+len(e.Frames) <= 1024 {
		e.Base, e.Name, e.Frames = paths[0].Base, 0, append(slices.Clone(paths[0].Frames), e.Frames...)
	}
	return e
}

// withFrames returns an entry in which frames that other lines tell behind another name stand in
// the place of an unknown name. (BT-NAME-2)
func (t *told) withFrames(e naive.PathEntry) naive.PathEntry {
	if e.Base < 2 {
		return e
	}
	for _, o := range t.entries {
		for n := 1; o.Base >= 2 && n <= len(o.Frames) && n+len(e.Frames) <= 1024; n++ {
			if nameBehind(o.Name, o.Frames[:n]) == e.Name {
				e.Base, e.Name, e.Frames = 3, o.Name, append(slices.Clone(o.Frames[:n]), e.Frames...)
				return t.withFrames(e)
			}
		}
	}
	return e
}

// nameBehind returns the name of the path with the outer part named outer, followed by frames,
// outermost first. (BT-NAME-1)
func nameBehind(outer uint32, frames []naive.CallFrame) uint32 {
	h := outer
	mix := func(x uint64) {
		g := (h ^ uint32(x)) * 0x9E3779B1
		h = g ^ g>>15
	}
	for _, f := range frames {
		if f.Escaped {
			mix(0xFFFFFFFF)
			mix(f.X % (1 << 32))
			mix(f.X / (1 << 32))
		} else {
			mix(f.X)
		}
	}
	return h
}

// key identifies a path: by all frames, or by its name if not all are known.
func key(base int, name uint32, frames []naive.CallFrame) string {
	if base >= 2 {
		return fmt.Sprintf("%08x", nameBehind(name, frames))
	}
	return fmt.Sprint(base, frames)
}

// addUp sets paths and losses of a dump. earlier are the dumps above it.
func (d *logDump) addUp(earlier []*logDump) {
	sums := map[string]*naiveTotal{}
	for _, e := range d.entries {
		if e.Definition {
			continue
		}
		for _, b := range e.Blocks {
			e.Bytes += b.Size
		}
		d.count, d.bytes = d.count+e.Live, d.bytes+e.Bytes
		e = d.told.withFrames(d.told.whole(e))
		k := key(e.Base, e.Name, e.Frames)
		if sums[k] == nil {
			sums[k] = &naiveTotal{Base: min(e.Base, 2), Name: e.Name, Frames: e.Frames}
		}
		sums[k].add(e, decimal(d.begin["sample"]))
	}
	d.lose()
	if d.begin["k"] == "diff" {
		d.fromBase(earlier, sums)
	}
	for _, s := range sums {
		if s.Live > 0 || s.Bytes > 0 {
			d.paths = append(d.paths, *s)
		}
	}
}

// fromBase adds the paths of the base that the dump does not mention. (BT-DUMP-3)
func (d *logDump) fromBase(earlier []*logDump, sums map[string]*naiveTotal) {
	d.NoBase = true
	for _, base := range slices.Backward(earlier) {
		if base.Boot != d.Boot || base.Number != decimal(d.begin["base"]) {
			continue
		}
		d.NoBase = base.Open || base.NoBase || strings.Trim(strings.Join(base.Lost[:], ""), "0-") != ""
		for _, p := range base.paths {
			if k := key(p.Base, p.Name, p.Frames); sums[k] == nil {
				sums[k] = &p
			}
		}
		return
	}
}

// add adds the values of an entry. (BT-DUMP-2, BT-DUMP-5)
func (p *naiveTotal) add(e naive.PathEntry, rate uint64) {
	if len(e.Frames) > len(p.Frames) { // more frames of an unknown name
		p.Name, p.Frames = e.Name, e.Frames
	}
	p.Live, p.Bytes, p.Allocs, p.Ever, p.Peak = p.Live+e.Live, p.Bytes+e.Bytes, p.Allocs+e.Allocs, p.Ever+e.Ever, p.Peak+e.Peak
	if rate == 0 {
		return
	}
	p.Estimated = true
	blocks := e.Blocks
	if blocks == nil {
		p.estimate(float64(e.Live), float64(e.Bytes), rate)
	}
	for _, b := range blocks {
		p.estimate(1, float64(b.Size), rate)
	}
}

func (p *naiveTotal) estimate(live, bytes float64, rate uint64) {
	chance := 1.0
	if live > 0 && bytes > 0 {
		chance = 1 - math.Exp(-bytes/live/float64(rate))
	}
	p.LiveEst += live / chance
	p.BytesEst += bytes / chance
}

// lose computes what is missing. (BT-DUMP-4)
func (d *logDump) lose() {
	lines := d.gaps
	first, hasFirst := d.begin["l"]
	if last, has := d.end["l"]; has && hasFirst {
		lines = max(0, int64(decimal(last)-decimal(first))-d.lines)
	}
	d.Lost = [3]string{fmt.Sprint(lines), "-", "-"}
	for i, key := range []string{"n", "b"} {
		said, has := d.end[key]
		if !has {
			said, has = d.begin[key]
		}
		if has {
			d.Lost[i+1] = fmt.Sprint(int64(decimal(said) - []uint64{d.count, d.bytes}[i]))
		}
	}
}
