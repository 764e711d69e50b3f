package forms

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// signatures recognize reports that have no levels: all texts are in the log, in this order. quiet is the
// number of lines from the first one on, whose numbers of bytes are none.
var signatures = []struct {
	texts []string
	quiet int64
	is    string // and what to do instead
}{
	{[]string{"invoked oom-killer"}, 200, "the kernel's report of an out-of-memory kill: it names the process, and no growth; log VmRSS of that process"},
	{[]string{"Killed process", "total-vm"}, 1, "the kernel's report of an out-of-memory kill: it names the process, and no growth; log VmRSS of that process"},
	{[]string{"Mem-Info:"}, 60, "the kernel's report of its memory, after a failed allocation: no growth; log MemAvailable of /proc/meminfo"},
	{[]string{"<malloc version="}, 200, "the XML of glibc's malloc_info: print mallinfo2().uordblks instead"},
	{[]string{"#CD:BEGIN#"}, 0, "a crash dump: btcore stacks -e ELF FILE reads it"},
	{[]string{"CORRUPT HEAP"}, 30, "a heap corruption: btdecode names the functions of its backtrace"},
	{[]string{"desc: --massif", "time_unit:"}, always, "a file of valgrind's massif: run ms_print, or valgrind --tool=dhat, whose file btheap reads"},
	{[]string{"ms_print arguments:"}, always, "the text of ms_print: run valgrind --tool=dhat, whose file btheap reads"},
	{[]string{"\"dhatFileVersion\""}, always, "a file of valgrind's DHAT that is not whole"},
	{[]string{"HEAP SUMMARY:"}, 60, "a report of valgrind's memcheck without loss records: run it with --leak-check=full"},
	{[]string{"ERROR: LeakSanitizer"}, 200, "a report of LeakSanitizer without a leak"},
	{[]string{"Detected memory leaks!"}, 200, "a report of _CrtDumpMemoryLeaks: it lists leaked blocks without call stacks; print a level at intervals"},
	{[]string{"UMDH", "BackTrace"}, always, "a log of UMDH: umdh compares two of them"},
	{[]string{"MOST CALLS TO ALLOCATION FUNCTIONS"}, always, "the text of heaptrack_print: give the heaptrack file itself"},
	{[]string{"reading file \"heaptrack."}, always, "the text of heaptrack_print: give the heaptrack file itself"},
	{[]string{"unreferenced object 0x"}, 200, "a report of the kernel's kmemleak: suspected blocks with backtraces, no levels"},
	{[]string{"[ Top ", "differences ]"}, always, "a comparison by tracemalloc: no levels; print tracemalloc.get_traced_memory()[0] at intervals"},
	{[]string{"tracemalloc"}, 0, "a report of tracemalloc: compare snapshots in Python, or print tracemalloc.get_traced_memory()[0] at intervals"},
	{[]string{"stacks with outstanding allocations"}, 200, "a report of bcc's memleak: bytes by call stack, no levels"},
	{[]string{"memory item information"}, 200, "the blocks of RT-Thread's memtrace: no levels; free prints them"},
	{[]string{"Owner", "LEAK"}, 200, "the blocks of TizenRT's mem_leak: no levels"},
	{[]string{"Page allocated via order"}, always, "the kernel's page_owner that is not whole"},
	{[]string{"heap profile:"}, always, "a heap profile that is not whole"},
	{[]string{"Guru Meditation"}, 0, panics},
	{[]string{">>>stack>>>"}, 0, panics},
	{[]string{"abort() was called at PC"}, 0, panics},
	{[]string{"HardFault"}, 0, panics},
	{[]string{"Hard fault"}, 0, panics},
	{[]string{"Hard Fault"}, 0, panics},
	{[]string{"ZEPHYR FATAL ERROR"}, 0, panics},
	{[]string{"======= Backtrace: ="}, 0, panics},
	{[]string{"ERROR: AddressSanitizer"}, 0, "a report of AddressSanitizer about one access: it names the functions itself"},
	{[]string{"Showing nodes accounting for"}, always, "the text of pprof: give the profile itself"},
	{[]string{"#instances", "#bytes"}, always, "a histogram of jmap: bytes by class, no levels; log jcmd PID GC.heap_info at intervals"},
	{[]string{"YGCT", "FGCT"}, always, "jstat, whose columns are percent or parts of the heap: log jcmd PID GC.heap_info at intervals"},
	{[]string{"OBJ SIZE", "CACHE SIZE"}, always, "the kernel's caches by slabtop: log MemAvailable of /proc/meminfo"},
	{[]string{"~~Dr.M~~"}, always, "a report of Dr. Memory: it names the functions itself"},
	{[]string{"leaks for", "total leaked bytes"}, 0, "a report of macOS' leaks: it lists blocks, no levels"},
	{[]string{"<valgrindoutput>"}, always, "the XML of valgrind: run it without --xml"},
	{[]string{"JAVA PROFILE 1.0"}, always, "a heap dump of Java: Eclipse MAT reads it"},
	{[]string{"[ Top ", ": size=", ", count="}, always, "a list by tracemalloc: no levels; print tracemalloc.get_traced_memory()[0] at intervals"},
	{[]string{"Mem alloc fail"}, 0, "a failed allocation, and no level"},
}

const (
	panics = "a panic: btdecode names the functions of its backtrace"
	always = 1 << 40
)

// mark is a text of a signature or a banner.
type mark struct {
	text         string
	signature, k int
}

// marks are the texts of the signatures by their first two bytes.
var marks = func() (list [1 << 16][]mark) {
	for i, s := range signatures {
		for k, text := range s.texts {
			at := uint16(text[0])<<8 | uint16(text[1])
			list[at] = append(list[at], mark{text, i, k})
		}
	}
	return list
}()

// candidate is a number that may be a level, although it does not count.
type candidate struct {
	label, first, last  string // its words, and how it is spelled in the first and the last line
	firstLine, lastLine []byte
	why                 string
	q                   Quantity // as its words say
	unit                string
	count, changes      int
}

const (
	// maxUnknown is the number of labels without a known word, maxCandidate the bytes of a line that are kept.
	maxUnknown   = 64
	maxCandidate = 400
)

func (c *candidate) see(label, raw, line []byte, unit string) {
	if line = line[:min(len(line), maxCandidate)]; c.count == 0 {
		*c = candidate{label: string(label), first: string(raw), firstLine: bytes.Clone(line), unit: unit, q: c.q, why: c.why}
	}
	c.count++
	if c.last != string(raw) {
		c.last = string(raw)
		c.changes++
	}
	c.lastLine = append(c.lastLine[:0], line...)
}

// refusals is what tells why a log has no samples.
type refusals struct {
	found         []int // texts of each signature
	quiet         int64 // the last line of a report without levels
	bare          int   // lines of numbers only
	bareColumns   int
	bareLines     candidate
	bareSeparator string         // of the columns, "" for spaces
	dropped       int            // samples of damaged lines
	unknown       []candidate    // without a known word
	known         map[string]int // index in unknown, by label
}

// mark looks for the texts of signatures.
func (r *refusals) mark(b []byte, line int64) {
	for i := 0; i+1 < len(b); i++ {
		for _, m := range marks[uint16(b[i])<<8|uint16(b[i+1])] {
			if len(b)-i < len(m.text) || string(b[i:i+len(m.text)]) != m.text {
				continue
			}
			if r.found == nil {
				r.found = make([]int, len(signatures))
			}
			if r.found[m.signature] == m.k {
				r.found[m.signature]++
			}
			if n := signatures[m.signature].quiet; n > 0 && m.k == 0 {
				r.quiet = max(r.quiet, line+n-1)
			}
		}
	}
}

// missed takes a number whose words are not known.
func (r *refusals) missed(n *number, line []byte) {
	i, known := r.known[string(n.label)]
	if !known {
		if len(r.unknown) == maxUnknown {
			return
		}
		if i = len(r.unknown); i == 0 {
			r.known = map[string]int{}
		}
		r.known[string(n.label)] = i
		r.unknown = append(r.unknown, candidate{})
	}
	r.unknown[i].see(n.label, n.raw, line, string(n.unit))
}

// Is returns what the log is if it is a report without levels, "" if that is not known.
func (l *Levels) Is() string {
	for i, n := range l.found {
		if n == len(signatures[i].texts) {
			return signatures[i].is
		}
	}
	return ""
}

// Refusal returns what is missing in a log that has no samples: why the number that is nearest to a level
// does not count, or which words are not known, and if there is one, an expression for --heap-line that
// reads it, with what it reads.
func (l *Levels) Refusal(refused []*Series) string {
	if is := l.Is(); is != "" {
		return is
	}
	if l.bare > 2 && l.bare*3 > int(l.order) {
		return l.bareText()
	}
	if c := nearest(refused); c != nil {
		return strings.TrimSuffix(fmt.Sprintf("%q: %s; %s", clean(c.label), c.why, c.offer()), "; ")
	}
	var list []string
	var best *candidate
	for i := range l.unknown {
		c := &l.unknown[i]
		if c.changes < 2 || !isText(c.label) {
			continue
		}
		if len(list) < 4 {
			list = append(list, fmt.Sprintf("%q (%s to %s)", clean(c.label), c.first, c.last))
		}
		if best == nil && c.large() {
			best = c
		}
	}
	if list == nil {
		return l.nothing()
	}
	text := "no word of memory before a number: which is free or used? " + strings.Join(list, ", ")
	if best != nil {
		text = strings.TrimSuffix(text+"; "+best.offer(), "; ")
	}
	return text
}

// nothing returns why there are no candidates either.
func (l *Levels) nothing() string {
	for _, r := range l.series {
		if r.class.q.level() {
			return fmt.Sprintf("%q is a %s: no number is what is free or used", clean(r.label), r.class.q)
		}
	}
	return Nothing
}

// Nothing is the Refusal of a log in which no number looks like one of memory.
const Nothing = "no line says how many bytes are free or used"

// bareText describes rows of numbers.
func (l *Levels) bareText() string {
	text := fmt.Sprintf("rows of %d numbers without names: which column is free or used, and in which unit?", l.bareColumns)
	if l.bareColumns == 1 {
		text = "a column without a name: is it what is free or used, and in which unit?"
	}
	expr := `^` + strings.Repeat(`\S+ +`, l.bareColumns-1) + `(?P<free>\d+)$`
	if sep := l.bareSeparator; sep != "" {
		expr = `^(?:[^` + sep + `]*` + sep + `){` + strconv.Itoa(l.bareColumns-1) + `}(?P<free>[\d.]+)$`
	}
	if unit := l.bareLines.unit; unit != "" {
		expr = strings.Replace(expr, `\d+)`, `[\d.,]+ ?`+regexp.QuoteMeta(unit)+`)`, 1)
	}
	if l.bareColumns == 7 {
		text, expr = text+" /proc/PID/statm has 7, in pages, the second in use:", `^\d+ (?P<used_4096>\d+)( \d+){5}$`
	}
	first, last := reads(expr, l.bareLines.firstLine), reads(expr, l.bareLines.lastLine)
	if first < 0 || last < 0 {
		return text
	}
	switch l.bareColumns {
	case 7:
	case 1:
		text += " If it is what is free, in bytes:"
	default:
		text += " If the last one is what is free, in bytes:"
	}
	return fmt.Sprintf("%s --heap-line '%s', which reads %.0f and at last %.0f bytes", text, expr, first, last)
}

// nearest returns the refused series that is nearest to a level, nil if there is none.
func nearest(refused []*Series) (best *candidate) {
	most := 0
	for _, s := range refused {
		n := s.raw.total
		if s.Quantity != none || s.raw.refused.q.level() {
			n *= 4
		}
		if c := &s.raw.refused; n > most && c.count > 0 && isText(c.label) {
			best, most = c, n
			best.why = s.Why
		}
	}
	return best
}

// isText reports whether a label is text, and not of a binary file.
func isText(label string) bool {
	return utf8.ValidString(label) && !strings.ContainsFunc(label, func(c rune) bool { return unicode.IsControl(c) && c != '\t' })
}

// large reports whether a number may be one of bytes: it has a unit of bytes, or four digits.
func (c *candidate) large() bool {
	return units[strings.ToLower(c.unit)] > 0 || len(strings.Trim(c.first, ".,")) >= 4 && !isAddress([]byte(c.first)) && c.changes > 1
}

var (
	allNumbers = regexp.MustCompile(`0[xX][0-9a-fA-F]+|\d+`)
	wordsAhead = regexp.MustCompile(`(?:[\pL_$][\pL\d_$.]*[^\pL\d]{0,4}){1,3}$`)
)

// offer returns an expression for --heap-line that reads the number, and what it reads from the first and the
// last line. It returns "" for what is no level, and for an expression that does not read both.
func (c *candidate) offer() string {
	group, unit := string(c.q), strings.ToLower(c.unit)
	switch {
	case c.q == unknown || c.q == none && c.why == "":
		group = "free"
	case c.q != Free && c.q != Used, c.changes < 2 && isAddress([]byte(c.first)):
		return ""
	}
	digits := `[\d.,]+(?:[eE][+-]?\d+)?`
	if allDigits([]byte(c.first)) && allDigits([]byte(c.last)) {
		digits = `\d+`
	} else if isAddress([]byte(c.first)) {
		digits = `0[xX][0-9a-fA-F]+`
	}
	switch factor, known := units[unit]; {
	case known && factor > 1:
		digits += ` ?` + regexp.QuoteMeta(c.unit)
	case unit == "page" || unit == "pages":
		group += "_4096"
	case unit == "word" || unit == "words":
		group += "_4"
	case known && factor == 0:
		return ""
	case c.why == fractions:
		group += "_KB"
	}
	ahead := wordsAhead.FindString(strings.TrimRight(c.label, "0123456789-+"))
	if ahead == "" {
		return ""
	}
	expr := strings.ReplaceAll(allNumbers.ReplaceAllString(regexp.QuoteMeta(ahead), `\d+`), "'", ".") + `(?P<` + group + `>` + digits + `)`
	first, last := reads(expr, c.firstLine), reads(expr, c.lastLine)
	if first < 0 || last < 0 {
		return ""
	}
	what, _, _ := strings.Cut(group, "_")
	return fmt.Sprintf("if it is what is %s: --heap-line '%s', which reads %.0f and at last %.0f bytes", what, expr, first, last)
}

// fractions is why numbers with a point do not count.
const fractions = "fractions without a unit"

// reads returns what an expression reads from a line, negative if that is nothing.
func reads(expr string, line []byte) float64 {
	e, err := regexp.Compile(expr)
	if err != nil {
		return -1
	}
	l := NewLevels(e)
	l.Line(Line{Text: line, Number: 1})
	heaps, _ := l.Heaps()
	if len(heaps) != 1 {
		return -1
	}
	r := heaps[0].Reports[0]
	return max(r.Free, r.Used)
}

// clean returns a label without signs at its ends.
func clean(label string) string {
	return strings.Join(strings.Fields(strings.Trim(label, " ,;:=\"'{}[]()|")), " ")
}

// maxHeaps is the number of heaps of a line that the user names.
const maxHeaps = 16
