package mutant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// dumpMutants have bugs in reading dumps of call paths: names, sums, differences, losses.
var dumpMutants = []Mutant{
	{Name: "dumps-last-entry", Bug: "only the last of several entries of a path counts"},
	{Name: "dumps-first-entry", Bug: "only the first of several entries of a path counts"},
	{Name: "dumps-added-up-by-line", Bug: "entries of a path in different lines are not added up"},
	{Name: "dumps-any-line", Bug: "lines of other dumps count"},
	{Name: "dumps-number-not-mod-64", Bug: "the number of the dump is not taken mod 64"},
	{Name: "dumps-need-k", Bug: "lines in a dump without k do not count"},
	{Name: "dumps-only-known-k", Bug: "a dump with an unknown k is left out"},
	{Name: "dumps-any-k-is-diff", Bug: "a dump with an unknown k and a base is read as a difference"},
	{Name: "dumps-cut-paths-are-whole", Bug: "a path with outer frames cut equals the path without them"},
	{Name: "dumps-escaped-are-offsets", Bug: "an escaped frame equals the frame with the same offset"},
	{Name: "dumps-boot-keeps-open", Bug: "a boot header does not close a dump"},
	{Name: "dumps-blocks-at-one-address-once", Bug: "only one of two blocks at one address counts"},
	{Name: "dumps-definitions-count", Bug: "a definition counts as a live block"},
	{Name: "dumps-peak-is-largest", Bug: "the peak of a path is the largest of its entries"},
	{Name: "dumps-ever-once", Bug: "the allocations since the boot are those of the last entry"},
	{Name: "dumps-names-not-known", Bug: "names are not replaced by frames"},
	{Name: "dumps-names-told-before", Bug: "names that are defined later are not replaced"},
	{Name: "dumps-names-of-own-lines", Bug: "names that lines of other dumps define are not known"},
	{Name: "dumps-names-of-definitions", Bug: "only definitions define names"},
	{Name: "dumps-names-not-of-definitions", Bug: "definitions do not define names"},
	{Name: "dumps-names-of-whole-paths", Bug: "paths do not define the names of their outer parts"},
	{Name: "dumps-names-of-names", Bug: "a path that begins with a name does not define its own name"},
	{Name: "dumps-names-of-no-frames", Bug: "names 0 and 1 are not known"},
	{Name: "dumps-names-with-frames", Bug: "a name with frames after it is not replaced"},
	{Name: "dumps-unknown-names-dropped", Bug: "entries with an unknown name do not count"},
	{Name: "dumps-unknown-names-are-one", Bug: "all entries with unknown names count as one path"},
	{Name: "dumps-unknown-names-by-words", Bug: "paths with unknown names differ if they are written differently"},
	{Name: "dumps-first-of-two-paths", Bug: "the first of two paths with a name is used"},
	{Name: "dumps-last-of-two-paths", Bug: "the last of two paths with a name is used"},
	{Name: "dumps-boot-keeps-names", Bug: "a boot keeps all names"},
	{Name: "dumps-boot-forgets-names", Bug: "a boot forgets all names"},
	{Name: "dumps-boot-by-code", Bug: "a boot with equal code keeps the names, whatever its build"},
	{Name: "dumps-boot-by-build", Bug: "a boot with an equal build keeps the names, whatever its code"},
	{Name: "dumps-boot-any-shift", Bug: "a boot with another shift keeps the names"},
	{Name: "dumps-boot-of-any-before", Bug: "a boot with the build of any boot before keeps its names"},
	{Name: "dumps-diff-alone", Bug: "a difference is not applied to its base"},
	{Name: "dumps-diff-added", Bug: "the values of a difference are added to those of the base"},
	{Name: "dumps-diff-keeps-removed", Bug: "a path that a difference removes keeps the values of the base"},
	{Name: "dumps-diff-removes-0-bytes", Bug: "a path with blocks of 0 bytes is removed"},
	{Name: "dumps-diff-of-written-base", Bug: "a difference is applied to the written entries of its base"},
	{Name: "dumps-diff-of-last", Bug: "a difference is applied to the dump before"},
	{Name: "dumps-diff-first-entry", Bug: "only the first of several entries of a difference replaces the base"},
	{Name: "dumps-diff-by-words", Bug: "a path of the base is replaced only if it is written in the same way"},
	{Name: "dumps-scaled-as-one", Bug: "the entries of a path are scaled by the mean size of all"},
	{Name: "dumps-scaled-by-mean", Bug: "blocks are scaled by their mean size"},
	{Name: "dumps-scaled-by-rate", Bug: "values are scaled by R / size"},
}

// told holds the entries of lines, which define names.
type told struct{ entries []*pathEntry }

// pathEntry is an entry and its values.
type pathEntry struct {
	entry
	dump       *pathDump // dump of its line; nil outside of dumps
	def        bool
	live       uint64
	bytes      uint64
	allocs     uint64
	ever, peak uint64
	blocks     []pathBlock
}

type pathBlock struct{ address, size uint64 }

type pathDump struct {
	number, boot string
	begin        []string // words of the header
	told         *told
	entries      []*pathEntry
	lines        []int // in which they are
	written      []*pathSum
	sums         []*pathSum
}

type pathSum struct {
	pathEntry
	key      string
	line     int
	estimate [2]float64
	scaled   bool
}

// dumpReader reads the dumps of a log.
type dumpReader struct {
	impl
	plain impl // reads headers and lines
	boots []([]string)
	told  []*told // by boot
	open  *pathDump
	dumps []*pathDump
}

// pathDumps returns the dumps of a log in words. (Section 24)
func (b impl) pathDumps(text string) string {
	d := &dumpReader{impl: b, boots: [][]string{{}}, told: []*told{{}}}
	for n, place := range strings.Fields(d.plain.scan(text).Words) {
		var kind rune
		var at, size int
		if _, err := fmt.Sscanf(place, "%c@%d+%d", &kind, &at, &size); err != nil {
			break // none
		}
		switch item := text[at : at+size]; kind {
		case 'h':
			if head, err := d.plain.hline(item); err == nil {
				d.header(strings.Split(head.Words, " "))
			}
		case 'p':
			if line, err := d.plain.pline(item); err == nil {
				d.line(strings.Split(line.Words, " "), n)
			}
		}
	}
	var words []string
	for i, p := range d.dumps {
		d.addUp(p)
		d.apply(p, d.dumps[:i])
		words = append(words, d.words(p)...)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

func (d *dumpReader) header(words []string) {
	switch words[0] {
	case "boot":
		d.told = append(d.told, d.names(words))
		d.boots = append(d.boots, words)
		if !d.has("dumps-boot-keeps-open") {
			d.open = nil
		}
	case "begin":
		d.open = nil
		if k := value(words, "k"); d.has("dumps-only-known-k") && k != "" && k != "paths" && k != "diff" {
			return
		}
		d.open = &pathDump{number: words[1], boot: strconv.Itoa(len(d.boots) - 1), begin: words, told: d.told[len(d.told)-1]}
		d.dumps = append(d.dumps, d.open)
	case "end":
		d.open = nil
	}
}

// value returns the value of the first key of that name.
func value(words []string, name string) string {
	for _, word := range words[2:] {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			return v
		}
	}
	return ""
}

// names returns the entries whose names are valid in a boot. (BT-NAME-3)
func (d *dumpReader) names(boot []string) *told {
	last := len(d.boots) - 1
	for i := last; i >= 0; i-- {
		before := d.boots[i]
		if len(before) == 0 {
			break
		}
		build := value(boot, "build") != "" && value(boot, "build") == value(before, "build")
		code := value(boot, "code") != "" && value(boot, "code") == value(before, "code")
		shift := number(boot, "shift", false) == number(before, "shift", false) || d.has("dumps-boot-any-shift")
		switch {
		case d.has("dumps-boot-forgets-names"):
		case d.has("dumps-boot-keeps-names"), build && code && shift,
			d.has("dumps-boot-by-code") && code && shift, d.has("dumps-boot-by-build") && build && shift:
			return d.told[i]
		}
		if !d.has("dumps-boot-of-any-before") {
			break
		}
	}
	return &told{}
}

func (d *dumpReader) line(words []string, line int) {
	dump, _ := strconv.ParseUint(strings.TrimPrefix(words[1], "dump="), 10, 64)
	mine := false
	if d.open != nil {
		n, _ := strconv.ParseUint(d.open.number, 10, 64)
		mine = n%64 == dump && !d.has("dumps-number-not-mod-64") || n == dump || d.has("dumps-any-line")
		mine = mine && (!d.has("dumps-need-k") || value(d.open.begin, "k") != "")
	}
	for _, word := range words[3:] {
		if strings.HasPrefix(word, "unit=") {
			continue
		}
		e := parsePathEntry(word)
		e.dump = d.open
		names := d.told[len(d.told)-1]
		names.entries = append(names.entries, e)
		if e.def && d.has("dumps-definitions-count") {
			e.live = 1
		}
		if mine && (!e.def || e.live > 0) {
			d.open.entries = append(d.open.entries, e)
			d.open.lines = append(d.open.lines, line)
		}
	}
}

// parsePathEntry reads an entry in words.
func parsePathEntry(word string) *pathEntry {
	parts := strings.Split(word, ";")
	e := &pathEntry{entry: parsePath(parts[0])}
	for _, part := range parts[1:] {
		key, text, _ := strings.Cut(part, "=")
		first, second, _ := strings.Cut(text, ",")
		v, _ := strconv.ParseUint(first, 10, 64)
		w, _ := strconv.ParseUint(second, 10, 64)
		switch key {
		case "def":
			e.def = true
		case "live":
			e.live = v
		case "bytes":
			e.bytes = v
		case "ever":
			e.allocs, e.ever = v, w
		case "peak":
			e.peak = v
		case "blocks":
			for _, block := range strings.Split(text, ",") {
				address, size, _ := strings.Cut(block, "+")
				at, _ := strconv.ParseUint(address, 16, 64)
				n, _ := strconv.ParseUint(size, 10, 64)
				if size != "" {
					e.blocks = append(e.blocks, pathBlock{at, n})
					e.bytes += n
				}
			}
		}
	}
	return e
}

// ---- names

// key identifies a path. (BT-NAME-2)
func (d *dumpReader) key(e *entry) string {
	base := e.base
	switch {
	case base >= 2 && d.has("dumps-unknown-names-are-one"):
		return "unknown"
	case base >= 2 && !d.has("dumps-unknown-names-by-words"):
		return fmt.Sprintf("%08x", d.nameOf(e.base, e.name, e.frames))
	case base == 1 && d.has("dumps-cut-paths-are-whole"):
		base = 0
	}
	text := d.plain.pathWords(&entry{base: base, name: e.name, frames: e.frames})
	if d.has("dumps-escaped-are-offsets") {
		text = strings.ReplaceAll(text, "@", "")
	}
	return text
}

// known returns the paths that are defined for a dump, by name.
func (d *dumpReader) known(p *pathDump) map[uint32][]entry {
	known := map[uint32][]entry{0: {{base: 0}}, 1: {{base: 1}}}
	if d.has("dumps-names-of-no-frames") {
		clear(known)
	}
	for more := true; more; {
		more = false
		for _, e := range p.told.entries {
			if !d.tells(e, p) {
				continue
			}
			w := e.entry
			if !d.has("dumps-names-of-names") {
				w = d.whole(known, w)
			}
			for n := 1; w.base < 2 && n <= len(w.frames); n++ {
				outer := entry{base: w.base, frames: w.frames[:n]}
				if d.has("dumps-names-of-whole-paths") && n < len(w.frames) {
					continue
				}
				name := d.nameOf(outer.base, 0, outer.frames)
				same := func(o entry) bool { return o.base == outer.base && slices.Equal(o.frames, outer.frames) }
				if !slices.ContainsFunc(known[name], same) {
					known[name], more = append(known[name], outer), true
				}
			}
		}
	}
	return known
}

// tells reports whether an entry defines names for a dump. Without a bug, all entries do.
func (d *dumpReader) tells(e *pathEntry, p *pathDump) bool {
	switch d.bug {
	case "dumps-names-of-own-lines":
		return e.dump == p
	case "dumps-names-not-of-definitions":
		return !e.def
	case "dumps-names-of-definitions":
		return e.def
	case "dumps-names-told-before":
		return !d.later(e, p)
	}
	return true
}

// later reports whether an entry was read after a dump began.
func (d *dumpReader) later(e *pathEntry, p *pathDump) bool {
	return e.dump == nil && len(p.entries) > 0 && slices.Index(p.told.entries, e) > slices.Index(p.told.entries, p.entries[0]) ||
		e.dump != nil && slices.Index(d.dumps, e.dump) > slices.Index(d.dumps, p)
}

// whole returns an entry whose name, if known, is replaced by frames.
func (d *dumpReader) whole(known map[uint32][]entry, e entry) entry {
	list := known[e.name]
	if e.base < 2 || len(list) == 0 || d.has("dumps-names-not-known") || e.base == 3 && d.has("dumps-names-with-frames") {
		return e
	}
	found := list[0]
	if len(list) > 1 {
		switch {
		case d.has("dumps-first-of-two-paths"):
		case d.has("dumps-last-of-two-paths"):
			found = list[len(list)-1]
		default:
			return e
		}
	}
	return entry{base: found.base, frames: slices.Concat(found.frames, e.frames)}
}

// ---- values

// addUp adds up the entries of a dump. (BT-DUMP-2)
func (d *dumpReader) addUp(p *pathDump) {
	known := d.known(p)
	seen := map[uint64]bool{}
	for i, e := range p.entries {
		w := *e
		w.entry = d.whole(known, e.entry)
		if w.base >= 2 && d.has("dumps-unknown-names-dropped") {
			continue
		}
		if d.has("dumps-blocks-at-one-address-once") {
			for _, b := range e.blocks {
				if seen[b.address] {
					w.live, w.bytes = w.live-1, w.bytes-b.size
				}
				seen[b.address] = true
			}
		}
		s := &pathSum{pathEntry: w, key: d.key(&w.entry), line: p.lines[i]}
		d.scale(s, p)
		at := slices.IndexFunc(p.sums, func(o *pathSum) bool {
			return o.key == s.key && (!d.has("dumps-added-up-by-line") || o.line == s.line)
		})
		switch {
		case at < 0:
			p.sums = append(p.sums, s)
		case d.has("dumps-last-entry"):
			p.sums[at] = s
		case d.has("dumps-first-entry"), d.has("dumps-diff-first-entry") && value(p.begin, "k") == "diff":
		default:
			d.add(p.sums[at], s, p)
		}
	}
	p.written = p.sums
}

// add adds the values of another entry of the path.
func (d *dumpReader) add(s, o *pathSum, p *pathDump) {
	s.live, s.bytes, s.allocs, s.ever = s.live+o.live, s.bytes+o.bytes, s.allocs+o.allocs, s.ever+o.ever
	if len(o.frames) > len(s.frames) {
		s.entry = o.entry
	}
	if d.has("dumps-ever-once") {
		s.allocs, s.ever = o.allocs, o.ever
	}
	if d.has("dumps-peak-is-largest") {
		s.peak = max(s.peak, o.peak)
	} else {
		s.peak += o.peak
	}
	s.estimate[0], s.estimate[1] = s.estimate[0]+o.estimate[0], s.estimate[1]+o.estimate[1]
	if d.has("dumps-scaled-as-one") {
		s.blocks = nil
		d.scale(s, p)
	}
}

// scale estimates the values of an entry of a sampled dump. (BT-DUMP-5)
func (d *dumpReader) scale(s *pathSum, p *pathDump) {
	rate, err := strconv.ParseUint(number(p.begin, "sample", false), 10, 64)
	if err != nil {
		return
	}
	s.scaled = true
	s.estimate = [2]float64{}
	add := func(live, bytes uint64) {
		chance := 1.0
		if live > 0 && bytes > 0 {
			size := float64(bytes) / float64(live)
			chance = 1 - math.Exp(-size/float64(rate))
			if d.has("dumps-scaled-by-rate") {
				chance = min(1, size/float64(rate))
			}
		}
		s.estimate[0], s.estimate[1] = s.estimate[0]+float64(live)/chance, s.estimate[1]+float64(bytes)/chance
	}
	if len(s.blocks) == 0 || d.has("dumps-scaled-by-mean") {
		add(s.live, s.bytes)
		return
	}
	for _, b := range s.blocks {
		add(1, b.size)
	}
}

// apply applies a difference to its base. (BT-DUMP-3)
func (d *dumpReader) apply(p *pathDump, earlier []*pathDump) {
	k := value(p.begin, "k")
	isDiff := k == "diff" || d.has("dumps-any-k-is-diff") && k != "" && k != "paths"
	p.sums = slices.Clone(p.sums)
	for _, base := range slices.Backward(earlier) {
		if !isDiff || d.has("dumps-diff-alone") {
			break
		}
		if !d.has("dumps-diff-of-last") && (base.number != number(p.begin, "base", false) || base.boot != p.boot) {
			continue
		}
		from := base.sums
		if d.has("dumps-diff-of-written-base") {
			from = base.written
		}
		known := d.known(p)
		for _, s := range from {
			d.merge(p, s, known)
		}
		break
	}
	p.sums = slices.DeleteFunc(p.sums, func(s *pathSum) bool {
		return s.bytes == 0 && (s.live == 0 || d.has("dumps-diff-removes-0-bytes"))
	})
}

// merge adds a path of the base.
func (d *dumpReader) merge(p *pathDump, s *pathSum, known map[uint32][]entry) {
	key := s.key
	if w := d.whole(known, s.entry); !d.has("dumps-diff-by-words") {
		key = d.key(&w)
	}
	i := slices.IndexFunc(p.sums, func(o *pathSum) bool {
		if d.has("dumps-diff-by-words") {
			return slices.ContainsFunc(p.entries, func(e *pathEntry) bool {
				return d.plain.pathWords(&e.entry) == d.plain.pathWords(&s.entry)
			}) && o.key == key
		}
		return o.key == key
	})
	switch {
	case i < 0:
		p.sums = append(p.sums, s)
	case d.has("dumps-diff-added"):
		p.sums[i].live += s.live
		p.sums[i].bytes += s.bytes
	case d.has("dumps-diff-keeps-removed") && p.sums[i].live == 0:
		p.sums[i] = s
	}
}

// words returns the dump in words, without ;missing=, which readers need not report.
func (d *dumpReader) words(p *pathDump) []string {
	head := fmt.Sprintf("dump=%s;boot=%s;missing=-,-,-", p.number, p.boot)
	words := []string{head}
	for _, s := range p.sums {
		word := fmt.Sprintf("%s;live=%d;bytes=%d", d.plain.pathWords(&s.entry), s.live, s.bytes)
		if s.allocs > 0 || s.ever > 0 {
			word += fmt.Sprintf(";ever=%d,%d", s.allocs, s.ever)
		}
		if s.peak > 0 {
			word += fmt.Sprintf(";peak=%d", s.peak)
		}
		if s.scaled {
			word += fmt.Sprintf(";est=%.0f,%.0f", s.estimate[0], s.estimate[1])
		}
		words = append(words, word)
	}
	return words
}
