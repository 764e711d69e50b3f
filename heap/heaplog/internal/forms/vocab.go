package forms

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Quantity is what a number counts.
type Quantity string

// Quantities. A number of bytes that has none of them is no sample.
const (
	Free    Quantity = "free"
	Used    Quantity = "used"
	Largest Quantity = "largest" // free block
	Least   Quantity = "least"   // that was free so far
	Peak    Quantity = "peak"    // that was used so far
	Total   Quantity = "total"
	Limit   Quantity = "limit" // of what may be used

	uptime  Quantity = "uptime" // a clock inside the line
	ident   Quantity = "ident"  // the number is a name
	unknown Quantity = "?"      // memory, but which quantity is not said
	none    Quantity = ""       // class.why says why
)

var levelQuantities = []Quantity{Free, Used, Largest, Least, Peak, Total, Limit}

// level reports whether the quantity is one of a heap.
func (q Quantity) level() bool { return q != none && q != ident && q != uptime }

// vocabulary has the quantity of a label: that of the first row of which one word, one of the second set
// if it has any, and none of the third are in the label. words has words by their meaning, and values what they stand for.
var (
	vocabulary    = rows("vocabulary")
	vocabularySet = func() (list []map[string]uint8) {
		for _, row := range vocabulary {
			m := map[string]uint8{}
			for k, words := range row[1:4] {
				for w := range strings.FieldsSeq(words) {
					m[w] |= 1 << k
				}
			}
			list = append(list, m)
		}
		return list
	}()
	words, values = func() (meaning map[string][]string, value map[string]string) {
		meaning, value = map[string][]string{}, map[string]string{}
		for _, row := range rows("words") {
			meaning[row[0]] = append(meaning[row[0]], strings.Fields(row[1])...)
			for _, w := range strings.Fields(row[1]) {
				if len(row) > 2 {
					value[row[0]+" "+w] = row[2]
				}
			}
		}
		return meaning, value
	}()
	units = func() map[string]float64 { // bytes; 0: a size that the word does not say
		m := map[string]float64{"16": 16} // in the groups of lines.tsv
		for _, w := range words["unit"] {
			m[w], _ = strconv.ParseFloat(values["unit "+w], 64)
		}
		return m
	}()
	memoryWords = words["memory"]
	memoryStart = func() (t [256]bool) { // the first letters of memoryWords
		for _, w := range memoryWords {
			t[w[0]] = true
		}
		return t
	}()
)

// is reports whether a word has a meaning.
func is(meaning, word string) bool { return slices.Contains(words[meaning], word) }

// class is what the words of a label say of its number.
type class struct {
	q    Quantity
	why  string // no sample
	unit string
	hit  bool // the words are known
	weak bool // they are weak words only
}

const (
	// maxLabelWords is the number of words next to a number that are its label.
	maxLabelWords = 8
	// taken is why a total is no limit.
	taken = "what was taken from the system so far: it grows"
)

func classOf(label string) *class {
	w := labelWords(label)
	w = w[max(0, len(w)-maxLabelWords):]
	c := &class{}
	for _, x := range w {
		if _, ok := units[x]; ok && len(x) > 1 && !is("behind", x) {
			c.unit = x
		}
	}
	if strings.Contains(label, "(B)") {
		c.unit = "b"
	}
	i, n := strings.LastIndexByte(label, '.'), len(w)
	switch {
	case i > 0 && strings.HasSuffix(label, ":") && i+5 > len(strings.TrimRight(label, ": (")) && isLetter(label[i+1]): // x.c:259
		c.hit, c.why = true, "a line number"
	case strings.Contains(label, "heapTotal"), strings.Contains(label, "totalJSHeap"):
		c.hit, c.why = true, taken
	case n > 0 && is("name", w[n-1]):
		c.hit, c.q = true, ident
	case n > 2 && w[n-1] == "total" && (w[n-2] == "bytes" || w[n-2] == "seconds"): // as Prometheus names counters
		c.hit, c.why = true, "a counter that only rises"
	}
	for k := 0; k < len(vocabulary) && !c.hit; k++ {
		row, got := vocabularySet[k], uint8(0)
		for _, x := range w {
			got |= row[x]
		}
		if v := vocabulary[k]; got&1 != 0 && (v[2] == "" || got&2 != 0) && got&4 == 0 {
			c.hit, c.q, c.why = true, Quantity(v[0]), v[4]
			c.weak = c.q.level() && !slices.ContainsFunc(w, func(x string) bool { return row[x]&1 != 0 && !is("weak", x) })
		}
	}
	return c
}

// labelWords returns the words of a label in small letters: freeHeapSize has three, ESPFree two.
func labelWords(label string) (words []string) {
	rs, from := []rune(label), -1
	end := func(i int) {
		if from >= 0 {
			words = append(words, strings.ToLower(string(rs[from:i])))
		}
		from = -1
	}
	for i, c := range rs {
		switch {
		case c == '%':
			end(i)
			words = append(words, "%")
		case !unicode.IsLetter(c):
			end(i)
		case from < 0:
			from = i
		case unicode.IsUpper(c) && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1]) && i-from > 1):
			end(i)
			from = i
		}
	}
	end(len(rs))
	return words
}

// isMemory reports whether a word of memory is in a text.
func isMemory(text []byte) bool { return hasMemory(text, false) }

// hasMemory reports whether a word of memory is in a text, or with strict one that is no unit.
func hasMemory(text []byte, strict bool) bool {
	for i := range text {
		if !memoryStart[text[i]|0x20] || i > 0 && isLetter(text[i-1]) && !isUpper(text[i]) && text[i-1] != '_' {
			continue
		}
		for _, w := range memoryWords {
			if len(text)-i >= len(w) && bytes.EqualFold(text[i:i+len(w)], []byte(w)) && !(is("whole", w) && continues(text[i+len(w):])) && !(strict && (w == "byte" || w == "kb")) {
				return true
			}
		}
	}
	return false
}

func continues(text []byte) bool { return len(text) > 0 && text[0] >= 'a' && text[0] <= 'z' }

func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// only reports whether all characters of a text are of a kind.
func only(text []byte, kind func(byte) bool) bool { return span(text, 0, kind) == len(text) }

func allDigits(text []byte) bool { return only(text, isDigit) }
func hasLetter(text []byte) bool { return !only(text, func(c byte) bool { return !isLetter(c) }) }

// span returns the index of the first character from i on that is not of a kind.
func span(text []byte, i int, kind func(byte) bool) int {
	for i < len(text) && kind(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' }
func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
