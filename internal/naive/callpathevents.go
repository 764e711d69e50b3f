package naive

// PathEvent is one event of a ~v# line.
type PathEvent struct {
	Kind         string // allocated freed moved unknown lost
	Time, Thread uint64
	Number       uint64 // of the block: allocated, freed, moved
	Old          uint64 // previous number of the block: moved
	Path         uint32 // name: allocated, moved
	Size         uint64 // allocated, moved
	Address      uint64 // with flag 1: allocated, moved, unknown
	Lost         uint64 // number of missing events: lost
}

// EventLine is a ~v# line.
type EventLine struct {
	Flags, Sequence    int
	Unit               uint64
	Time, Thread, Next uint64 // at the beginning of the line
	Events             []PathEvent
}

// crc32 is CRC-32/ISO-HDLC, a bit at a time.
func crc32(text string) uint64 {
	crc := uint64(0xFFFFFFFF)
	for _, c := range []byte(text) {
		crc ^= uint64(c)
		for range 8 {
			low := crc % 2
			crc /= 2
			if low == 1 {
				crc ^= 0xEDB88320
			}
		}
	}
	return crc ^ 0xFFFFFFFF
}

// eventReader reads the items of a ~v# line.
type eventReader struct {
	*digitReader
	EventLine
	paths              []uint32
	time, thread, next uint64
	units              uint64 // address of the previous block, in units
}

// ReadEvents reads a ~v# line; reason is "" on success.
func ReadEvents(line string) (EventLine, string) {
	digits, reason := digitsOf(line, "~v#", 13, 6, crc32)
	if reason != "" {
		return EventLine{}, reason
	}
	r := &eventReader{digitReader: digits}
	r.Flags, r.Sequence = int(r.digit()), int(r.fixed(3))
	if r.Flags&flagBlocks != 0 {
		if r.Unit = r.digit(); r.reason == "" && r.Unit > 12 {
			r.reject("unit")
		}
	}
	r.Time, r.Thread, r.Next = r.number(), r.number(), r.number()
	r.time, r.thread, r.next = r.Time, r.Thread, r.Next
	for !r.done() {
		n := r.number()
		if r.reason != "" {
			break
		}
		switch a := n / 4; n % 4 {
		case 0:
			e := PathEvent{Kind: "allocated", Path: r.item(a)}
			r.block(&e)
			r.add(e)
		case 1:
			if a == 0 || a > r.next {
				r.reject("age")
			}
			r.add(PathEvent{Kind: "freed", Number: r.next - a})
		case 2:
			e := PathEvent{Kind: "moved", Path: r.item(a)}
			age := r.number()
			if r.reason == "" && (age == 0 || age > r.next) {
				r.reject("age")
			}
			e.Old = r.next - age
			r.block(&e)
			r.add(e)
		case 3:
			r.other(a)
		}
	}
	if r.reason != "" {
		return EventLine{}, r.reason
	}
	return r.EventLine, ""
}

func (r *eventReader) add(e PathEvent) {
	e.Time, e.Thread = r.time, r.thread
	r.Events = append(r.Events, e)
}

// item returns the name of the path that item a refers to.
func (r *eventReader) item(a uint64) uint32 {
	if a == 0 {
		r.paths = append(r.paths, r.name())
		return r.paths[len(r.paths)-1]
	}
	if a > uint64(len(r.paths)) {
		r.reject("index")
		return 0
	}
	return r.paths[a-1]
}

// block reads size and address of a new block.
func (r *eventReader) block(e *PathEvent) {
	e.Size = r.number()
	e.Address = r.address()
	e.Number = r.next
	r.next++
}

func (r *eventReader) address() uint64 {
	if r.Flags&flagBlocks == 0 {
		return 0
	}
	r.units += uint64(unfold(r.number()))
	return r.units << r.Unit
}

func (r *eventReader) other(a uint64) {
	switch a {
	case 0:
		r.time += r.number()
	case 1:
		r.thread = r.number()
	case 2:
		r.add(PathEvent{Kind: "unknown", Address: r.address()})
	case 3:
		r.add(PathEvent{Kind: "lost", Lost: r.number()})
	default:
		for k := r.number(); k > 0 && r.reason == ""; k-- {
			r.digit()
		}
	}
}
