package naive

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
	begin, end   []string // words of the headers; end is nil if it has none
	told         *told
	entries      []*pathEntry
	lines        []int // in which they are
	read         int64 // its lines
	gaps         int64 // lines missing before these
	count, bytes uint64
	written      []*pathSum
	sums         []*pathSum
	lost         [3]string
	lostEvents   bool // a ~h#lost is in it
	noBase       bool
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
	log   logReader // reads records
	next  int       // sequence of the next line; -1 if it is not known
}

// pathDumps returns the dumps of a log in words. (Section 24)
func (b impl) pathDumps(text string) string {
	d := &dumpReader{impl: b, boots: [][]string{{}}, told: []*told{{}}, log: logReader{word: 64}, next: -1}
	if d.has("dumps-sequence-from-0") {
		d.next = 0
	}
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
			} else if strings.HasPrefix(item, "~h#boot") && d.has("dumps-rejected-boot") {
				d.header([]string{"boot", "-"})
			}
		case 'p':
			if line, err := d.plain.pline(item); err == nil {
				d.line(strings.Split(line.Words, " "), n)
			} else if d.open != nil && d.has("dumps-rejected-lines-count") {
				d.open.read++
			}
		case 'v':
			switch {
			case d.next >= 0 && d.has("dumps-v-lines-count"):
				d.next++
			case d.open != nil && d.has("dumps-v-lines-are-lines"):
				d.open.read++
			}
		default:
			d.record(kind, item)
		}
	}
	var words []string
	for i, p := range d.dumps {
		d.addUp(p)
		d.lose(p)
		d.apply(p, d.dumps[:i])
		words = append(words, d.words(p)...)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

// header processes a header. (BT-REC-1, BT-HEAD-4, BT-DUMP-1)
func (d *dumpReader) header(words []string) {
	switch words[0] {
	case "boot":
		d.told = append(d.told, d.names(words))
		d.boots = append(d.boots, words)
		if !d.has("dumps-boot-keeps-open") {
			d.open = nil
		}
		if !d.has("dumps-boot-keeps-sequence") {
			d.next = 0
		}
		d.log.boots(words)
	case "begin":
		d.open = nil
		if k := value(words, "k"); d.has("dumps-only-known-k") && k != "" && k != "paths" && k != "diff" {
			return
		}
		d.open = &pathDump{number: words[1], boot: strconv.Itoa(len(d.boots) - 1), begin: words, told: d.told[len(d.told)-1]}
		d.dumps = append(d.dumps, d.open)
		d.log.begins(words, "")
	case "end":
		if d.open != nil && (words[1] == d.open.number || d.has("dumps-any-end-completes")) {
			d.open.end = words
		}
		d.open = nil
	case "map", "load", "lost", "total", "heap", "thread":
		if d.open != nil && words[0] == "lost" {
			d.open.lostEvents = true
		}
		if d.has("dumps-any-header-closes") {
			d.open = nil
		}
	}
}

// record counts a record. (BT-HEAD-4, BT-DUMP-1)
func (d *dumpReader) record(kind rune, text string) {
	if d.open == nil || kind == 'e' && !d.has("dumps-events-count") {
		return
	}
	log := d.log
	if d.has("dumps-word-ignored") {
		log.word = 64
	}
	if d.has("dumps-user-fields-ignored") {
		log.fields = false
	}
	v, err := log.logged(kind, text)
	switch {
	case err != nil && d.has("dumps-unreadable-not-counted"):
		return
	case err != nil:
		v.Size = 0
	}
	d.open.count, d.open.bytes = d.add64(d.open.count, 1), d.add64(d.open.bytes, v.Size)
}

// value returns the value of the first key of that name.
func value(words []string, name string) string {
	for _, word := range words[min(2, len(words)):] {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			return v
		}
	}
	return ""
}

func hasKey(words []string, name string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, name+"=") })
}

// names returns the entries whose names are valid in a boot. (BT-NAME-3)
func (d *dumpReader) names(boot []string) *told {
	for i := len(d.boots) - 1; i >= 0 && len(d.boots[i]) > 0; i-- {
		if d.keepsNames(d.boots[i], boot) {
			return d.told[i]
		}
		if !d.has("dumps-boot-of-any-before") {
			break
		}
	}
	return &told{}
}

// keepsNames reports whether a boot keeps the names of the boot before. (BT-NAME-3)
func (d *dumpReader) keepsNames(before, boot []string) bool {
	same := func(key string) bool {
		return hasKey(boot, key) && hasKey(before, key) && value(boot, key) == value(before, key)
	}
	build, code := same("build"), d.sameRanges(value(before, "code"), value(boot, "code"))
	shift := cmp.Or(number(boot, "shift", false), "0") == cmp.Or(number(before, "shift", false), "0")
	switch d.bug {
	case "dumps-boot-forgets-names":
		return false
	case "dumps-boot-keeps-names":
		return true
	case "dumps-boot-by-code":
		build = true
	case "dumps-boot-by-build":
		code = true
	case "dumps-boot-any-shift":
		shift = true
	case "dumps-boot-build-in-any-case":
		build = strings.EqualFold(value(boot, "build"), value(before, "build"))
	case "dumps-boot-build-of-20-digits":
		a, b := value(boot, "build"), value(before, "build")
		build = a != "" && a[:min(20, len(a))] == b[:min(20, len(b))]
	case "dumps-boot-build-as-number":
		build = strings.TrimLeft(value(boot, "build"), "0") == strings.TrimLeft(value(before, "build"), "0")
	case "dumps-boot-code-as-text":
		code = same("code")
	case "dumps-boot-shift-as-text":
		shift = value(boot, "shift") == value(before, "shift")
	case "dumps-boot-all-keys":
		return slices.Equal(boot, before) && build && code && shift
	}
	return build && code && shift
}

// sameRanges reports whether two lists of ranges are equal.
func (d *dumpReader) sameRanges(a, b string) bool {
	list := func(text string) (ranges []string) {
		for _, number := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return c == '+' || c == ',' }) {
			ranges = append(ranges, strings.TrimLeft(number, "0"))
		}
		return ranges
	}
	x, y := list(a), list(b)
	switch d.bug {
	case "dumps-boot-first-range":
		x, y = x[:min(2, len(x))], y[:min(2, len(y))]
	case "dumps-boot-ranges-without-lengths":
		for i := 1; i < min(len(x), len(y)); i += 2 {
			x[i], y[i] = "", ""
		}
	case "dumps-boot-ranges-in-any-order":
		slices.Sort(x)
		slices.Sort(y)
	}
	return len(x) > 0 && slices.Equal(x, y)
}

// gap returns the number of lines that are missing before a line. (BT-DUMP-4)
func (d *dumpReader) gap(sequence int) int64 {
	late := 2048
	switch d.bug {
	case "dumps-late-from-2047":
		late = 2049
	case "dumps-late-from-2049":
		late = 2047
	case "dumps-nothing-is-late":
		late = 4096
	}
	gap := 0
	if d.next >= 0 {
		gap = (sequence - d.next + 4096) % 4096
	}
	if gap >= late {
		if !d.has("dumps-late-lines-move-on") {
			return 0
		}
		gap = 0
	}
	d.next = (sequence + 1) % 4096
	return int64(gap)
}

// line processes a line. (BT-DUMP-2)
func (d *dumpReader) line(words []string, line int) {
	dump, _ := strconv.ParseUint(strings.TrimPrefix(words[1], "dump="), 10, 64)
	sequence, _ := strconv.Atoi(strings.TrimPrefix(words[2], "seq="))
	late := d.next >= 0 && (sequence-d.next+4096)%4096 >= 2048
	gap := d.gap(sequence)
	mine := false
	if d.open != nil {
		n, _ := strconv.ParseUint(d.open.number, 10, 64)
		if d.has("dumps-number-of-16-bits") {
			n = min(n, math.MaxUint16)
		}
		mine = n%64 == dump && !d.has("dumps-number-not-mod-64") || n == dump || d.has("dumps-any-line")
		mine = mine && (!d.has("dumps-need-k") || value(d.open.begin, "k") != "")
	}
	if late && d.has("dumps-late-lines-do-not-count") {
		mine = false
	}
	if d.open != nil && (mine || d.has("dumps-gap-of-any-line")) {
		d.open.gaps += gap
	}
	if mine || d.open != nil && d.has("dumps-all-lines-are-read") {
		d.open.read++
	}
	for _, word := range words[3:] {
		if strings.HasPrefix(word, "unit=") {
			continue
		}
		e := d.parsePathEntry(word)
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
func (b impl) parsePathEntry(word string) *pathEntry {
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
					if e.bytes += n; e.bytes < n && !b.has("dumps-block-sums-wrap") {
						e.bytes = math.MaxUint64
					}
				}
			}
		}
	}
	return e
}
