package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// EventLine is a ~v# line.
type EventLine struct {
	callpath.EventsHead
	Events []callpath.Event
}

// ReadEventLine reads a ~v# line.
func ReadEventLine(text []byte) (*EventLine, error) {
	var l callpath.Events
	if err := l.Parse(text); err != nil {
		return nil, err
	}
	return &EventLine{l.EventsHead, l.List}, nil
}

// String returns the line in words.
func (l *EventLine) String() string {
	words := []string{fmt.Sprintf("flags=%d seq=%d", l.Flags, l.Seq)}
	if l.Flags&callpath.Blocks != 0 {
		words = append(words, fmt.Sprintf("unit=%d", l.Unit))
	}
	words = append(words, fmt.Sprintf("t=%d thread=%d next=%d", l.Time, l.Thread, l.Next))
	for _, e := range l.Events {
		words = append(words, eventText(e, l.Flags))
	}
	return strings.Join(words, " ")
}

// eventKinds are the words of the kinds of events, by callpath.EventKind.
var eventKinds = []string{"alloc", "free", "move", "unknown", "lost"}

func eventText(e callpath.Event, flags callpath.Flags) string {
	at := fmt.Sprintf(";t=%d;thread=%d", e.Time, e.Thread)
	address := ""
	if flags&callpath.Blocks != 0 {
		address = fmt.Sprintf(";addr=%x", e.Address)
	}
	text := eventKinds[e.Kind]
	switch e.Kind {
	case callpath.Allocated:
		return fmt.Sprintf("%s;n=%d%s;path=%08x;size=%d%s", text, e.Number, at, e.Path, e.Size, address)
	case callpath.Freed:
		return fmt.Sprintf("%s;n=%d%s", text, e.Old, at)
	case callpath.Moved:
		return fmt.Sprintf("%s;n=%d;old=%d%s;path=%08x;size=%d%s", text, e.Number, e.Old, at, e.Path, e.Size, address)
	case callpath.FreedUnknown:
		return text + at + address
	}
	return fmt.Sprintf("%s%s;count=%d", text, at, e.Count)
}

// ParseEventLine is the reverse of EventLine.String.
func ParseEventLine(text string) (*EventLine, error) {
	l := &EventLine{}
	r := &reader{words: strings.Split(text, " ")}
	l.Flags, l.Seq = callpath.Flags(r.number("flags", 63)), uint32(r.number("seq", 1<<18-1))
	if l.Flags&callpath.Blocks != 0 {
		l.Unit = uint8(r.number("unit", 63))
	}
	l.Time, l.Thread, l.Next = r.number("t", anyNumber), r.number("thread", anyNumber), r.number("next", anyNumber)
	if r.err != nil {
		return l, r.err
	}
	for _, word := range r.words {
		e, err := parseEvent(word, l.Flags)
		if err != nil {
			return l, err
		}
		l.Events = append(l.Events, e)
	}
	return l, nil
}

func parseEvent(text string, flags callpath.Flags) (e callpath.Event, err error) {
	words := strings.Split(text, ";")
	kind := slices.Index(eventKinds, words[0])
	if kind < 0 {
		return e, fmt.Errorf("event %q, expected alloc, free, move, unknown or lost", Clip(text))
	}
	e.Kind = callpath.EventKind(kind)
	r := &reader{words: words[1:]}
	begins := e.Kind == callpath.Allocated || e.Kind == callpath.Moved
	if begins {
		e.Number = r.number("n", anyNumber)
	}
	switch e.Kind {
	case callpath.Freed:
		e.Old = r.number("n", anyNumber)
	case callpath.Moved:
		e.Old = r.number("old", anyNumber)
	}
	e.Time, e.Thread = r.number("t", anyNumber), r.number("thread", anyNumber)
	if begins {
		e.Path, e.Size = uint32(r.hex("path", 8)), r.number("size", anyNumber)
	}
	if flags&callpath.Blocks != 0 && (begins || e.Kind == callpath.FreedUnknown) {
		e.Address = r.hex("addr", 0)
	}
	if e.Kind == callpath.Lost {
		e.Count = r.number("count", anyNumber)
	}
	if r.err == nil && len(r.words) > 0 {
		r.err = fmt.Errorf("event %q: %q after it", Clip(text), Clip(r.words[0]))
	}
	return e, r.err
}
