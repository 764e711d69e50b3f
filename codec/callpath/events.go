package callpath

import "slices"

// LeadInEvents is the lead-in of a line of events. (BT-VLINE-1)
const LeadInEvents = "~v#"

// MaxEvents is the length of the longest line of events, in characters. (BT-VLINE-3)
const MaxEvents = 65536

// minEvents is the least number of digits of a line of events. (BT-VLINE-1)
const minEvents = 1 + 3 + 3 + eventsCRCDigits

// EventsHead is the head of a line of events. (BT-VLINE-1)
type EventsHead struct {
	Flags  Flags  // Blocks if events have addresses; others have no meaning
	Seq    uint32 // number of ~v# lines since the boot before this one, mod 2^18
	Unit   uint8  // addresses are multiples of 1<<Unit bytes; 0 to MaxUnit; with Blocks only
	Time   uint64 // microseconds since the boot
	Thread uint64 // thread or task of the first event
	Next   uint64 // number of the next block: allocations since the boot before this line
}

// EventKind is the kind of an [Event].
type EventKind uint8

const (
	Allocated    EventKind = iota // block Number begins
	Freed                         // block Old ends
	Moved                         // block Old ends, block Number begins
	FreedUnknown                  // a block that has no number was freed
	Lost                          // Count events are missing here
)

// Event is an event of a line. (BT-VLINE-4)
type Event struct {
	Kind         EventKind
	Time, Thread uint64 // microseconds since the boot; thread or task
	Path         uint32 // Allocated, Moved: name of the call path
	Index        int    // Allocated, Moved: of Path among the names of the line, from 0
	Number       uint64 // Allocated, Moved: of the block that begins, from 0 in a boot
	Old          uint64 // Freed, Moved: number of the block that ends
	Size         uint64 // Allocated, Moved: in bytes
	Address      uint64 // Allocated, Moved, FreedUnknown; with Blocks only
	Count        uint64 // Lost: number of events
}

// Kinds of items, and subkinds of the items of kind others. (BT-VLINE-4)
const (
	itemAllocated = 0
	itemFreed     = 1
	itemMoved     = 2
	itemOther     = 3

	maxFreedAge = 1<<62 - 1 // the item is 4 times the age, plus its kind

	otherTime   = 0
	otherThread = 1
	otherFreed  = 2
	otherLost   = 3
)

// Events is a line of events. The zero Events is ready for use. A reused Events does not
// allocate.
type Events struct {
	EventsHead
	List  []Event // until the next Parse
	Lost  uint64  // sum of their Counts, 2^64-1 if it is more
	After uint64  // number of the next block after the line: EventsHead.Next of the following one

	r                  reader
	time, thread, next uint64
	address            uint64 // of the event before, in units
	paths              []uint32
}

// Parse reads a ~v# line, without its line end. On a [*codec.Error] the line is empty. Parse
// does not retain text. (BT-VLINE-1, BT-PREJ-1)
func (l *Events) Parse(text []byte) error {
	l.clear()
	r := &l.r
	if err := r.open(text, LeadInEvents, minEvents, eventsCRCDigits, crc32Of); err != nil {
		return err
	}
	h := EventsHead{Flags: Flags(r.fixed(1)), Seq: uint32(r.fixed(3))}
	if h.Flags&Blocks != 0 {
		h.Unit = r.unit()
	}
	h.Time, h.Thread, h.Next = r.number(), r.number(), r.number()
	l.EventsHead = h
	l.time, l.thread, l.next = h.Time, h.Thread, h.Next
	l.List = slices.Grow(l.List, len(r.digits)/4) // digits of most events
	for r.more() {
		l.List = append(l.List, Event{})
		e := &l.List[len(l.List)-1]
		if !l.read(e) {
			l.List = l.List[:len(l.List)-1]
		} else if e.Kind == Lost {
			l.Lost += min(e.Count, ^l.Lost)
		}
	}
	l.After = l.next
	if err := r.error(); err != nil {
		l.clear()
		return err
	}
	return nil
}

func (l *Events) clear() {
	l.EventsHead, l.List, l.Lost, l.After = EventsHead{}, l.List[:0], 0, 0
	l.address, l.paths = 0, l.paths[:0]
}

// read reads the next item into e, and reports whether it is an event. (BT-VLINE-4)
func (l *Events) read(e *Event) bool {
	r := &l.r
	at := r.pos
	n := r.number()
	e.Time, e.Thread = l.time, l.thread
	switch kind, a := n%4, n/4; kind {
	case itemAllocated:
		e.Kind = Allocated
		l.begin(r, e, at, a, false)
	case itemFreed:
		e.Kind = Freed
		e.Old = l.old(r, at, a)
	case itemMoved:
		e.Kind = Moved
		l.begin(r, e, at, a, true)
	default:
		return l.other(r, e, a)
	}
	return true
}

// begin reads an item of kind Allocated or Moved, which begins a block. at is the position of
// the first digit of the item. (BT-VLINE-4)
func (l *Events) begin(r *reader, e *Event, at int, a uint64, moved bool) {
	switch {
	case r.reason != "":
		return
	case a == 0:
		e.Path, e.Index = r.name(), len(l.paths)
		l.paths = append(l.paths, e.Path)
	case a > uint64(len(l.paths)):
		r.fail(at, reasonIndex, "BT-VLINE-4", "a path that the line has not named so far")
		return
	default:
		e.Path, e.Index = l.paths[a-1], int(a-1)
	}
	if moved {
		at = r.pos
		e.Old = l.old(r, at, r.number())
	}
	e.Size = r.number()
	e.Address = l.addressOf(r)
	e.Number = l.next
	l.next++
}

// old returns the number of the block of an age. (BT-VLINE-4)
func (l *Events) old(r *reader, at int, age uint64) uint64 {
	if age == 0 || age > l.next {
		r.fail(at, reasonAge, "BT-VLINE-4", "the age is 0, or the block would be before the first one of the boot")
		return 0
	}
	return l.next - age
}

// addressOf reads an address if the line has the flag Blocks.
func (l *Events) addressOf(r *reader) uint64 {
	if l.Flags&Blocks == 0 {
		return 0
	}
	l.address += uint64(unfold(r.number()))
	return l.address << l.Unit
}

// other reads an item of kind others and reports whether it is an event. (BT-VLINE-4)
func (l *Events) other(r *reader, e *Event, a uint64) bool {
	switch a {
	case otherTime:
		l.time += r.number()
	case otherThread:
		l.thread = r.number()
	case otherFreed:
		e.Kind = FreedUnknown
		e.Address = l.addressOf(r)
		return true
	case otherLost:
		e.Kind = Lost
		e.Count = r.number()
		return true
	default:
		r.skip(r.number())
	}
	return false
}

// EventsWriter packs events into ~v# lines. Set the fields before the first event. The
// zero EventsWriter writes lines of up to MaxEvents characters, without addresses, from
// the first block of a boot on.
type EventsWriter struct {
	Flags Flags  // Blocks if events have addresses
	Unit  uint8  // of addresses, 0 to MaxUnit
	Limit int    // characters of a line; 0 means MaxEvents
	Lines uint64 // ~v# lines since the boot
	Next  uint64 // number of the block that the next Allocated or Moved begins; may be raised

	line         []byte // the line so far; empty between lines
	item         []byte
	time, thread uint64
	address      uint64
	next         uint64            // that of the next item in this line
	paths        map[uint32]uint64 // name to index in this line, from 1
}

// Append adds an event to the current line. If the event does not fit, Append first
// appends the current line and a line end to dst, and begins a new line. It ignores
// e.Index and e.Number: Allocated and Moved begin block w.Next. Append returns dst unchanged and an
// [*codec.Error] for an event that cannot be encoded: Old is w.Next or more, or a block is
// freed whose age is 2^62 or more (reason age); or the unit is over MaxUnit, or Address is
// not a multiple of it (reason unit). (BT-VLINE-1, BT-VLINE-4, BT-PREJ-2)
func (w *EventsWriter) Append(dst []byte, e Event) ([]byte, error) {
	switch {
	case w.Flags&^Blocks != 0:
		panic("callpath: EventsWriter: flags that no line is written with")
	case w.Unit > MaxUnit:
		return dst, refuse(reasonUnit, "BT-VLINE-1", "the unit is over 12")
	case (e.Kind == Freed || e.Kind == Moved) && e.Old >= w.Next:
		return dst, refuse(reasonAge, "BT-VLINE-4", "a block that did not begin before")
	case e.Kind == Freed && w.Next-e.Old > maxFreedAge:
		return dst, refuse(reasonAge, "BT-VLINE-4", "a block of an age of 2^62 or more")
	case w.Flags&Blocks != 0 && e.Address&(1<<w.Unit-1) != 0:
		return dst, refuse(reasonUnit, "BT-VLINE-4", "an address that is no multiple of the unit")
	}
	limit := w.Limit
	if limit == 0 {
		limit = MaxEvents
	}
	if w.Next != w.next {
		dst = w.Flush(dst)
	}
	if len(w.line) > 0 {
		w.encode(&e)
		if len(w.line)+len(w.item)+eventsCRCDigits > limit {
			dst = w.Flush(dst)
		}
	}
	if len(w.line) == 0 {
		w.begin(&e)
		w.encode(&e)
	}
	w.take(&e)
	return dst, nil
}

// begin begins a line at the time and thread of an event.
func (w *EventsWriter) begin(e *Event) {
	w.time, w.thread, w.address, w.next = e.Time, e.Thread, 0, w.Next
	if w.paths == nil {
		w.paths = map[uint32]uint64{}
	}
	clear(w.paths)
	line := append(w.line[:0], LeadInEvents...)
	line = append(line, alphabet[w.Flags])
	line = appendFixed(line, w.Lines, 3)
	if w.Flags&Blocks != 0 {
		line = append(line, alphabet[w.Unit])
	}
	w.line = appendNumber(appendNumber(appendNumber(line, e.Time), e.Thread), w.Next)
}

// encode sets w.item to the digits of an event. (BT-VLINE-4)
func (w *EventsWriter) encode(e *Event) {
	item := w.item[:0]
	if e.Time != w.time {
		item = appendNumber(appendNumber(item, otherTime*4+itemOther), e.Time-w.time)
	}
	if e.Thread != w.thread {
		item = appendNumber(appendNumber(item, otherThread*4+itemOther), e.Thread)
	}
	switch e.Kind {
	case Allocated, Moved:
		kind := uint64(itemAllocated)
		if e.Kind == Moved {
			kind = itemMoved
		}
		index := w.paths[e.Path]
		item = appendNumber(item, index*4+kind)
		if index == 0 {
			item = appendFixed(item, uint64(e.Path), nameDigits)
		}
		if e.Kind == Moved {
			item = appendNumber(item, w.Next-e.Old)
		}
		item = w.appendAddress(appendNumber(item, e.Size), e)
	case Freed:
		item = appendNumber(item, (w.Next-e.Old)*4+itemFreed)
	case FreedUnknown:
		item = w.appendAddress(appendNumber(item, otherFreed*4+itemOther), e)
	case Lost:
		item = appendNumber(appendNumber(item, otherLost*4+itemOther), e.Count)
	default:
		panic("callpath: EventsWriter: unknown kind of event")
	}
	w.item = item
}

func (w *EventsWriter) appendAddress(dst []byte, e *Event) []byte {
	if w.Flags&Blocks == 0 {
		return dst
	}
	return appendNumber(dst, fold(int64(e.Address>>w.Unit-w.address)))
}

// take adds w.item, the encoded form of e, to the line.
func (w *EventsWriter) take(e *Event) {
	w.line = append(w.line, w.item...)
	w.time, w.thread = e.Time, e.Thread
	if e.Kind != Freed && e.Kind != Lost {
		w.address = e.Address >> w.Unit
	}
	if e.Kind == Allocated || e.Kind == Moved {
		if w.paths[e.Path] == 0 {
			w.paths[e.Path] = uint64(len(w.paths)) + 1
		}
		w.Next++
		w.next++
	}
}

// Flush appends the current line and a line end to dst, if the line has events.
func (w *EventsWriter) Flush(dst []byte) []byte {
	if len(w.line) == 0 {
		return dst
	}
	start := len(dst)
	dst = append(dst, w.line...)
	dst = appendFixed(dst, crc32Of(dst[start+len(LeadInEvents):]), eventsCRCDigits)
	w.line = w.line[:0]
	w.Lines++
	return append(dst, '\n')
}
