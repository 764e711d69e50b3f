package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// codecPaths answers the operations of Part III, using package callpath.
func codecPaths(r *Request) (a Answer, err error) {
	switch r.Op {
	case OpPline:
		a.Words, err = codecPline(r.Data)
	case OpVline:
		a.Words, err = codecVline(r.Data)
	case OpDumps:
		a.Words = codecDumps(r.Data)
	case OpPencode:
		a.Data, err = codecPencode(r.Words)
	case OpVencode:
		a.Data, err = codecVencode(r.Words)
	case OpName:
		p, _ := parsePath(r.Words)
		a.Words = fmt.Sprintf("%08x", p.Name())
	case OpOffsets:
		c, _ := parseCode(r.Words, true)
		words := make([]string, len(c.List))
		for i, f := range c.List {
			words[i] = frameText(c.Ranges.Frame(f.Value))
		}
		a.Words = cmp.Or(strings.Join(words, ","), "-")
	case OpAddresses:
		c, _ := parseCode(r.Words, false)
		words := make([]string, len(c.List))
		for i, f := range c.List {
			words[i] = "?"
			if address, _, ok := c.Ranges.Address(f); ok {
				words[i] = fmt.Sprintf("%x", address)
			}
		}
		a.Words = cmp.Or(strings.Join(words, ","), "-")
	}
	return a, err
}

// codecPline returns the words of a ~p# line.
func codecPline(text []byte) (string, error) {
	l, err := readPathLine(text)
	if err != nil {
		return "", err
	}
	return pathLineWords(l), nil
}

// codecVline returns the words of a ~v# line.
func codecVline(text []byte) (string, error) {
	l, err := readEventLine(text)
	if err != nil {
		return "", err
	}
	return eventLineWords(l), nil
}

// codecPencode writes entries as ~p# lines.
func codecPencode(words string) (text []byte, err error) {
	longest, rest, _ := maxOf(words)
	l, _ := parsePathLine(rest)
	if l.Unit > callpath.MaxUnit { // a mistake of the caller, for a Writer
		return callpath.AppendLine(nil, l.Head, nil)
	}
	w := callpath.Writer{Flags: l.Flags, Unit: l.Unit, Limit: longest, Dump: uint32(l.Dump), Lines: uint64(l.Seq)}
	for i := range l.Entries {
		if text, err = w.Append(text, &l.Entries[i]); err != nil {
			return nil, err
		}
	}
	return bytes.TrimSuffix(w.Flush(text), []byte("\n")), nil
}

// codecVencode writes events as a ~v# line.
func codecVencode(words string) (text []byte, err error) {
	l, _ := parseEventLine(words)
	w := callpath.EventsWriter{Flags: l.Flags, Unit: l.Unit, Lines: uint64(l.Seq), Next: l.Next}
	for _, e := range l.Events {
		if text, err = w.Append(text, e); err != nil {
			return nil, err
		}
	}
	return bytes.TrimSuffix(w.Flush(text), []byte("\n")), nil
}
