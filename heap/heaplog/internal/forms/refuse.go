package forms

import (
	"fmt"
	"strings"
)

// signatures recognize reports that have no levels: all texts are in the log, in this order. quiet is the
// number of lines behind the first one, whose numbers of bytes are none.
var signatures = []struct {
	texts []string
	quiet int64
	is    string // and what to do instead
}{
	{[]string{"invoked oom-killer"}, 200, "the kernel's report of an out-of-memory kill: it names the process, and no growth; log VmRSS of that process"},
	{[]string{"<malloc version="}, 200, "the XML of glibc's malloc_info: print mallinfo2().uordblks instead"},
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

// unknownWords are the words before numbers that no row of the vocabulary has.
type unknownWords struct {
	label, first, last string
	changes            int
}

// maxUnknown is the number of unknownWords.
const maxUnknown = 64

// refusals is what tells why a log has no samples.
type refusals struct {
	found       []int // texts of each signature
	quiet       int64 // the last line of a report without levels
	bare        int   // lines of numbers only
	bareColumns int
	dropped     int // samples of damaged lines
	unknown     []unknownWords
	known       map[string]int // index in unknown, by label
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
				r.quiet = max(r.quiet, line+n)
			}
		}
	}
}

// missed takes a number whose words are not known.
func (r *refusals) missed(label, raw []byte) {
	i, known := r.known[string(label)]
	if !known {
		if len(r.unknown) == maxUnknown {
			return
		}
		if i = len(r.unknown); i == 0 {
			r.known = map[string]int{}
		}
		r.known[string(label)] = i
		r.unknown = append(r.unknown, unknownWords{label: string(label), first: string(raw)})
	}
	if u := &r.unknown[i]; u.last != string(raw) {
		u.last = string(raw)
		u.changes++
	}
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

// Offer is an expression for --heap-line that reads a log, and what it reads.
type Offer struct {
	Expr        string
	Line        string // the first one that it matches
	First, Last string // numbers
}

// Refusal returns what is missing in a log that has no samples: why the numbers that are nearest to a
// level do not count, or which words are not known.
func (l *Levels) Refusal(refused []*Series) string {
	if is := l.Is(); is != "" {
		return is
	}
	if l.bare > 2 && l.bare*3 > int(l.line) {
		text := fmt.Sprintf("rows of %d numbers without names: which column is free or used, and in which unit?", l.bareColumns)
		if l.bareColumns == 7 {
			text += " /proc/PID/statm has 7, in pages"
		}
		return text
	}
	best, most := (*Series)(nil), 0
	for _, s := range refused {
		n := len(s.raw.samples)
		if s.Quantity != none {
			n *= 4
		}
		if n > most {
			best, most = s, n
		}
	}
	if best != nil {
		return fmt.Sprintf("%q: %s", clean(best.Label), best.Why)
	}
	var list []string
	for _, u := range l.unknown {
		if u.changes > 1 && len(list) < 4 {
			list = append(list, fmt.Sprintf("%q (%s to %s)", clean(u.label), u.first, u.last))
		}
	}
	if list == nil {
		return ""
	}
	return "no word of memory before a number; say which is free or used: " + strings.Join(list, ", ")
}

// clean returns a label without signs at its ends.
func clean(label string) string {
	return strings.Join(strings.Fields(strings.Trim(label, " ,;:=\"'{}[]()|")), " ")
}

// maxHeaps is the number of heaps of a line that the user names.
const maxHeaps = 16
