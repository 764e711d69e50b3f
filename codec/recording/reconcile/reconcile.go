// Package reconcile decides which records of a dump count, where its headers announce how many there are (n=), the sum
// of their sizes (b=), and the boot the range of its code. A serial line loses and changes characters, and base64 hides
// it: a record that lost one reads as a cut one of another size. A record that does not fit is compared with those of the
// boot. If it is one of these but for a few characters, it counts as that one; else it is left out, and counts as lost.
//
// A call path with a size is a kind of record. A record of a kind that an accepted dump has counts at once.
// Others are held until the dump ends.
package reconcile

import (
	"bytes"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// Record is a record of a dump. A P is what identifies its call path, and a T what the caller keeps of it.
type Record[P comparable, T any] struct {
	Path      P
	Bytes     uint64
	Fields    bool // it has user fields
	Addressed bool // one of these is the address of its block
	Restored  bool // it was damaged, and counts as one of the boot, or has the size that the sum says
	Of        T    // the zero value if only the call path and the size are known
}

// kind is what records have in common that count alike.
type kind[P comparable] struct {
	path  P
	bytes uint64
}

// kindText is what the texts of the records of a kind have in common: all, or with user fields, a prefix.
type kindText struct {
	prefix      []byte
	least, most int  // lengths of the texts
	varied      bool // the records have user fields
	votes       int  // of texts that have the prefix, less the others, at most maxVotes
	count       int  // records of the boot
}

// fact is a record whose text is right.
type fact[P comparable, T any] struct {
	text string
	*Record[P, T]
}

// held is a record, or a line of text, of which it is not known whether it counts.
type held[P comparable, T any] struct {
	Record[P, T]
	text   []byte // its line, from the lead-in on
	err    bool   // it is unreadable or cut
	named  bool   // its call path was read
	inside bool   // a character in it was lost: it is not just cut
	prose  bool   // it has no lead-in that can be read
}

// total is a number of records, and the sum of their sizes.
type total struct{ n, bytes uint64 }

func (t *total) add(bytes uint64) {
	t.n++
	if t.bytes += bytes; t.bytes < bytes {
		t.bytes = ^uint64(0)
	}
}

// Reconciler has what the dumps of a boot have told of its records.
type Reconciler[P comparable, T any] struct {
	Eager bool // a record that may be right counts at once: unfinished dumps are wanted

	boot  int
	head  *codec.Header
	code  []codec.Range
	kinds map[kind[P]]*kindText
	once  map[kind[P]]bool        // of dumps that do not add up
	last  map[string][]fact[P, T] // of the dump before, at most maxFacts, by the ends of their texts
	// checked: records of the boot have a check. (BT-UF-4)
	checked bool

	// of the current dump
	facts   []fact[P, T]
	present map[string]bool // texts of facts
	held    []held[P, T]
	have    total  // of the records that count so far
	line    []byte // text that may be a damaged record
	open    bool   // the last held record goes on in the text that follows
	work    int    // comparisons
}

const (
	maxFacts  = 1 << 12
	maxHeld   = 1 << 16 // of a dump: others count at once
	maxKinds  = 1 << 12
	maxWork   = 1 << 19 // comparisons of a dump
	maxVotes  = 8
	minText   = 10 // characters of a line that is compared
	maxText   = 400
	endText   = 8  // characters of the end of a text
	innerText = 6  // and of the part before
	minPrefix = 9  // of the prefix of a kind, with its lead-in
	minProse  = 14 // where the lead-in is damaged
	maxEdits  = 5  // of a text; shorter ones have fewer
	// changedPerLost is how many records that can be read may be damaged for each that cannot.
	changedPerLost = 2
	// often is how many times as frequent a kind is as one that differs by a character or two, and is it,
	// damaged.
	often = 5
)

// Begin begins a dump of a boot. The head is its ~h#boot, nil if it has none, and the code that of its key code, nil if
// that is not known. A boot with the ~h#boot of the one before is guessed, as from a number: its records have a check, too.
func (r *Reconciler[P, T]) Begin(boot int, head *codec.Header, code []codec.Range) {
	if boot != r.boot || r.kinds == nil {
		checked := r.checked && head != nil && head == r.head
		*r = Reconciler[P, T]{Eager: r.Eager, boot: boot, head: head, code: code, kinds: map[kind[P]]*kindText{}, once: map[kind[P]]bool{}, checked: checked}
	}
	if len(r.facts) > 0 {
		r.last = map[string][]fact[P, T]{}
		for _, f := range r.facts {
			r.last[end(f.text)] = append(r.last[end(f.text)], f)
			if key := inner(f.text, 0); key != "" {
				r.last[key] = append(r.last[key], f)
			}
		}
	}
	r.facts, r.held, r.present, r.line, r.open, r.work = nil, nil, map[string]bool{}, nil, false, 0
	r.have = total{}
}

// editsOf returns how many characters of a text of n may be damaged for it to be restored.
func editsOf(n int) int { return min(n/9, maxEdits) }

// inner returns the characters before the last ones of a text, which has shift more characters there than it had.
func inner[T string | []byte](text T, shift int) string {
	to := len(text) - innerText - shift
	if to < innerText {
		return ""
	}
	return "." + string(text[to-innerText:to])
}

// end returns the end of a text.
func end[T string | []byte](text T) string { return string(text[max(0, len(text)-endText):]) }

// Add takes a record whose call path was read. It returns nil if the record counts now, else the record that
// waits for the end of the dump, of which the caller may still set Of.
func (r *Reconciler[P, T]) Add(it *recording.Item, h Record[P, T]) (waits *Record[P, T]) {
	r.line, r.open = r.line[:0], false
	check := checkOf(it)
	if check == codec.CheckWrong || check == codec.CheckNone && (r.checked || r.far(it)) { // also one that was cut
		return r.hold(it, Record[P, T]{}, true)
	}
	r.checked = r.checked || check == codec.CheckRight
	if it.Err == nil && (r.Eager || check == codec.CheckRight || r.kinds[kind[P]{h.Path, h.Bytes}] != nil) || len(r.held) >= maxHeld {
		r.fact(it.Text, &h)
		r.have.add(h.Bytes)
		return nil
	}
	waits = r.hold(it, h, it.Err != nil)
	r.held[len(r.held)-1].named = true
	return waits
}

func checkOf(it *recording.Item) codec.Check {
	if it.Err != nil || it.User == nil {
		return codec.CheckNone
	}
	return it.User.Check()
}

// Believes reports whether a record counts that is not for Add: in no dump, as behind a lost ~h#begin, or in a dump of
// call paths, as one whose key n became k. Where records of the boot have a check, one without must be of a known kind,
// or have no user bits, as those of lws itself. (BT-UF-4)
func (r *Reconciler[P, T]) Believes(it *recording.Item, h Record[P, T]) bool {
	if check := checkOf(it); check != codec.CheckNone || !r.checked {
		return check != codec.CheckWrong
	}
	return it.Err == nil && (r.kinds[kind[P]{h.Path, h.Bytes}] != nil || !hasUserBits(it) && !r.far(it))
}

// hasUserBits reports whether a record has more user bits than the padding up to a byte.
func hasUserBits(it *recording.Item) bool {
	fields, err := codec.Decoder{}.AppendFields(nil, it.Blob)
	return err == nil && len(fields) > 1 && fields[len(fields)-2].Kind == "user bits" && fields[len(fields)-2].Width >= 8
}

// farFromCode is the distance in bytes from the code of a boot at which an address is damaged.
const farFromCode = 1 << 20

// far reports whether a record has an address that is nowhere near the code of the boot.
func (r *Reconciler[P, T]) far(it *recording.Item) bool {
	if len(r.code) == 0 || it.Stack == nil {
		return false
	}
	for i, pc := range it.Stack.PCs {
		known := ^uint64(0)
		if it.Stack.Marks.Lossy>>i&1 != 0 {
			known = 1<<31 - 1
		}
		if !slices.ContainsFunc(r.code, func(c codec.Range) bool {
			return (pc-c.Start)&known < c.Length || (pc-(c.Start+c.Length))&known < farFromCode || (c.Start-pc)&known <= farFromCode
		}) {
			return true
		}
	}
	return false
}

// Unreadable takes a record of which nothing could be read.
func (r *Reconciler[P, T]) Unreadable(it *recording.Item) { r.hold(it, Record[P, T]{}, true) }

func (r *Reconciler[P, T]) hold(it *recording.Item, h Record[P, T], unread bool) *Record[P, T] {
	if len(r.held) >= maxHeld { // it is lost
		return &h
	}
	x := held[P, T]{Record: h, text: bytes.Clone(it.Text), err: unread}
	x.inside = it.Err != nil && lostInside(it.Text)
	if it.Cut != nil && it.Cut.ByLws {
		x.inside = false
	}
	r.held = append(r.held, x)
	r.open = it.Err != nil
	return &r.held[len(r.held)-1].Record
}

// Text takes text between records: the rest of a damaged record, or a line that may be one.
func (r *Reconciler[P, T]) Text(text []byte) {
	if len(text) == 1 && text[0] == '\n' && len(r.line) == 0 {
		r.open = false
		return
	}
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		part := text
		if end >= 0 {
			part = text[:end]
		}
		if r.open {
			if x := &r.held[len(r.held)-1]; len(x.text)+len(part) <= maxText {
				x.text = append(x.text, part...)
			}
		} else if len(r.line)+len(part) <= maxText {
			r.line = append(r.line, part...)
		}
		if end < 0 {
			return
		}
		if line := bytes.TrimRight(r.line, "\r"); !r.open && len(line) >= minText && len(r.held) < maxHeld {
			r.held = append(r.held, held[P, T]{text: bytes.Clone(line), err: true, inside: true, prose: true})
		}
		r.line, r.open = r.line[:0], false
		text = text[end+1:]
	}
}

// fact takes a record whose text is right.
func (r *Reconciler[P, T]) fact(text []byte, h *Record[P, T]) {
	key := kind[P]{h.Path, h.Bytes}
	k := r.kinds[key]
	if k == nil {
		if len(r.kinds) >= maxKinds {
			return
		}
		k = &kindText{prefix: bytes.Clone(text), least: len(text), most: len(text), varied: h.Fields}
		r.kinds[key] = k
	}
	k.count++
	switch n := common(k.prefix, text); { // a text with other bits that decoders ignore is rare
	case n == len(k.prefix) && (h.Fields || n == len(text)):
		k.votes = min(k.votes+1, maxVotes)
	case k.votes > 0:
		k.votes--
	case h.Fields:
		k.prefix = k.prefix[:n]
	default:
		k.prefix, k.least, k.most = bytes.Clone(text), len(text), len(text)
	}
	if h.Fields {
		k.least, k.most = min(k.least, len(text)), max(k.most, len(text))
	}
	if len(r.facts) < maxFacts && !r.present[string(text)] {
		c := *h
		s := string(text)
		r.facts = append(r.facts, fact[P, T]{s, &c})
		r.present[s] = true
	}
}

// common returns the length of the common beginning of two texts.
func common(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// lostInside reports whether a record of base64 that is too short lost a character before its end: its end has
// the padding or the length of a whole one. (BT-BLOB-2)
func lostInside(text []byte) bool {
	if bytes.HasSuffix(text, []byte("=")) {
		return true
	}
	digits := bytes.TrimPrefix(text, []byte(codec.LeadIn))
	if len(digits) < 8 {
		return false
	}
	var tail uint32
	for _, c := range digits[len(digits)-3:] {
		v := bytes.IndexByte([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"), c)
		if v < 0 {
			return true
		}
		tail = tail<<6 | uint32(v)
	}
	length := int(tail & 0xffff)
	n := len(digits) - length/3*4
	return length > 0 && length%3 == 0 && n != 0 && n >= -2 && n <= 2
}
