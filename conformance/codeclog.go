package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// The codec's answers about recordings and call paths, Parts II and III.

// codecScan lists the records in a text: the letter of the lead-in, its byte offset, and the
// length of the record in bytes. It includes records that cannot be read, but no ~b# that does
// not begin in the form of a record. (BT-TEXT-3)
func codecScan(r *Request) (Answer, error) {
	var found []string
	for it := range recording.Items(r.Data) {
		if it.Found() {
			found = append(found, fmt.Sprintf("%c@%d+%d", it.Text[1], it.Offset, it.Extent()))
		}
	}
	return Answer{Words: cmp.Or(strings.Join(found, " "), "-")}, nil
}

// codecLog lists the records in a recording with their values and the number of their dump.
// (BT-REC-1, BT-REC-2, BT-HEAD-4)
func codecLog(r *Request) (Answer, error) {
	var log recording.Log
	var found []string
	for it := range unrepaired(r.Data) {
		p := log.Add(it)
		if !it.Found() || strings.IndexByte("mbe", it.Text[1]) < 0 {
			continue
		}
		of := "-"
		if p.Dump != nil && it.Text[1] != 'e' {
			of = strconv.FormatUint(uint64(p.Dump.Begin.Number), 10)
		}
		item := fmt.Sprintf("%c@%d+%d;boot=%d;dump=%s;", it.Text[1], it.Offset, it.Extent(), p.Boot.Number, of)
		if it.Err != nil && (it.Cut == nil || it.Kind != recording.KindDecoded) {
			item += "reject"
		} else {
			v := Value{Size: it.Stack.Size, PCs: it.Stack.PCs}
			if it.User != nil {
				v.User = userFields(it.User)
			}
			item += strings.ReplaceAll(v.String(), " ", ";")
		}
		found = append(found, item)
	}
	return Answer{Words: cmp.Or(strings.Join(found, " "), "-")}, nil
}

// unrepaired returns the items of a log. A record of which package recording has read only a beginning, as where lines
// ran into each other, is rejected. (BT-TEXT-3)
func unrepaired(log []byte) iter.Seq[*recording.Item] {
	return func(yield func(*recording.Item) bool) {
		for it := range recording.Items(log) {
			if it.Found() && it.Extent() > len(it.Text) {
				it.Err, it.Cut = errRepaired, nil
			}
			if !yield(it) {
				return
			}
		}
	}
}

var errRepaired = errors.New("only a beginning of the record is a blob")

// codecDumps lists the dumps of call paths in a log.
func codecDumps(r *Request) (Answer, error) {
	var out []pathDump
	for _, d := range recording.Dumps(unrepaired(r.Data)) {
		m := d.Missing()
		x := pathDump{Number: uint64(d.Begin.Number), Boot: d.Boot.Number, Open: d.End == nil, NoBase: d.NoBase,
			Lost: [3]string{strconv.FormatUint(m.Lines, 10), m.Blocks.String(), m.Bytes.String()}}
		paths, names, _ := d.Settle()
		for s := range paths.All() {
			if s.Live > 0 || s.Bytes > 0 {
				x.Paths = append(x.Paths, pathTotal{names.Path(s.ID, nil), s, s.LiveEst > 0 || s.BytesEst > 0})
			}
		}
		out = append(out, x)
	}
	return Answer{Words: dumpsWords(out)}, nil
}

func codecPline(r *Request) (Answer, error) {
	l, err := words.ReadPathLine(r.Data)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Words: l.String()}, nil
}

func codecVline(r *Request) (Answer, error) {
	l, err := words.ReadEventLine(r.Data)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Words: l.String()}, nil
}

func codecName(r *Request) (Answer, error) {
	p, err := words.ParsePath(r.Words)
	return Answer{Words: fmt.Sprintf("%08x", p.Name())}, err
}

func codecOffsets(r *Request) (Answer, error) {
	c, err := words.ParseAddresses(r.Words)
	list := make([]string, len(c.List))
	for i, f := range c.List {
		list[i] = words.Frame(c.Ranges.Frame(f.Value))
	}
	return Answer{Words: cmp.Or(strings.Join(list, ","), "-")}, err
}

func codecAddresses(r *Request) (Answer, error) {
	c, err := words.ParseOffsets(r.Words)
	list := make([]string, len(c.List))
	for i, f := range c.List {
		list[i] = "?"
		if address, _, ok := c.Ranges.Address(f); ok {
			list[i] = fmt.Sprintf("%x", address)
		}
	}
	return Answer{Words: cmp.Or(strings.Join(list, ","), "-")}, err
}

// codecPencode writes entries as ~p# lines.
func codecPencode(r *Request) (a Answer, err error) {
	l, err := parsePencode(r.Words)
	if err != nil {
		return a, err
	}
	if l.Unit > callpath.MaxUnit { // a mistake of the caller, for a Writer
		a.Data, err = callpath.AppendLine(nil, l.Head, nil)
		return a, err
	}
	w := callpath.Writer{Flags: l.Flags, Unit: l.Unit, Limit: l.longest, Dump: uint32(l.Dump), Lines: uint64(l.Seq)}
	for i := range l.Entries {
		if a.Data, err = w.Append(a.Data, &l.Entries[i]); err != nil {
			return a, err
		}
	}
	a.Data = bytes.TrimSuffix(w.Flush(a.Data), []byte("\n"))
	return a, nil
}

// codecVencode writes events as a ~v# line.
func codecVencode(r *Request) (a Answer, err error) {
	l, err := words.ParseEventLine(r.Words)
	if err != nil {
		return a, err
	}
	w := callpath.EventsWriter{Flags: l.Flags, Unit: l.Unit, Lines: uint64(l.Seq), Next: l.Next}
	for _, e := range l.Events {
		if a.Data, err = w.Append(a.Data, e); err != nil {
			return a, err
		}
	}
	a.Data = bytes.TrimSuffix(w.Flush(a.Data), []byte("\n"))
	return a, nil
}
