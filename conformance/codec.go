package conformance

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// Codec starts a testee in this process: the codec of this module, with its log reader for scanning.
func Codec(context.Context) (Testee, error) { return codecTestee{}, nil }

type codecTestee struct{}

func (codecTestee) Hello() Hello {
	return Hello{Name: "lwsbt-go", Version: version(), Ops: Ops(), Machines: codec.Machines(),
		Searches: []codec.Search{codec.SearchLws, codec.SearchBest}}
}

func (codecTestee) Close() error { return nil }

func (codecTestee) Ask(requests []Request) ([]Answer, error) {
	answers := make([]Answer, len(requests))
	for i := range requests {
		answers[i] = askCodec(&requests[i])
	}
	return answers, nil
}

// askCodec returns the codec's answer; a panic is a crash.
func askCodec(r *Request) (a Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = Answer{Outcome: Crash, Signal: "PANIC", Text: fmt.Sprint(p), Bit: -1}
		}
	}()
	var err error
	switch {
	case r.Op.encodes():
		a, err = codecEncode(r)
	case r.Op == OpFormat:
		a, err = codecFormat(r)
	case r.Op == OpSalvage:
		return codecSalvage(r.Data, r.word())
	case r.Op == OpScan:
		a.Words = codecScan(r.Data)
	case r.Op == OpLog:
		a.Words = codecLog(r.Data)
	case r.Op == OpHline:
		var h codec.Header
		if err = codec.ParseHeader(&h, r.Data); err == nil {
			a.Words = headerWords(&h)
		}
	case isPathOp(r.Op):
		a, err = codecPaths(r)
	default:
		a, err = codecRead(r)
	}
	if err != nil {
		return rejectAnswer(err)
	}
	a.Outcome, a.Bit = OK, -1
	return a
}

// codecRead answers the operations that return a stack.
func codecRead(r *Request) (a Answer, err error) {
	var s codec.Stack
	var u codec.User
	blob := r.Data
	switch r.Op {
	case OpDecode:
		err = codec.DecodeWord(&s, blob, r.word())
	case OpMarks:
		err = codec.Decode(&s, blob)
	case OpEnd:
		if blob, err = codec.BlobAtEnd(r.Data); err == nil {
			err = codec.DecodeWord(&s, blob, r.word())
		}
	case OpMline:
		parse := codec.ParseLine
		if r.Lenient {
			parse = codec.ParseLineLenient
		}
		if blob, err = parse(nil, r.Data); err == nil {
			err = codec.DecodeWord(&s, blob, r.word())
		}
	case OpBline:
		err = codec.ParseDecoded(&s, r.Data)
	case OpUser:
		err = codec.DecodeUser(&s, &u, blob, r.word())
	case OpEline:
		if blob, err = codec.ParseEventLine(nil, r.Data); err == nil {
			err = codec.DecodeEvent(&s, &u, blob, r.word())
		}
	case OpBare:
		var bits int
		bits, err = codec.DecodeBareWord(&s, r.Data, r.word())
		a.Words = fmt.Sprintf("bits=%d pcs=%s", bits, formatPCs(s.PCs))
		return a, err
	}
	if r.Op == OpMarks {
		a.Words = marksWords(&s)
		return a, err
	}
	a.Value = Value{Size: s.Size, PCs: s.PCs, User: userFields(&u)}
	return a, err
}

// userFields returns the user fields that are present, sorted by tag.
func userFields(u *codec.User) (fields []UserField) {
	for tag := codec.TagAddress; tag <= codec.TagOldAddress; tag++ {
		if v, ok := u.Get(tag); ok {
			fields = append(fields, UserField{uint8(tag), v})
		}
	}
	return fields
}

// marksWords returns the words that list the frames with each mark; the word size marks the size.
func marksWords(s *codec.Stack) string {
	list := func(bits uint32, size bool) string {
		var words []string
		for n := range codec.MaxDepth {
			if bits>>n&1 == 1 {
				words = append(words, strconv.Itoa(n))
			}
		}
		if size {
			words = append(words, "size")
		}
		if len(words) == 0 {
			return "-"
		}
		return strings.Join(words, ",")
	}
	m := s.Marks
	return fmt.Sprintf("wide=%s wrap=%s zero=%s lossy=%s", list(m.Wide, false), list(m.Wrap, false), list(m.Zero, false),
		list(m.Lossy, m.LossySize))
}

// headerWords returns a header without its lead-in, with - if it has no number.
func headerWords(h *codec.Header) string {
	number := "-"
	if h.HasNumber {
		number = strconv.FormatUint(uint64(h.Number), 10)
	}
	words := []string{h.Verb, number}
	for _, k := range h.Keys {
		words = append(words, k.Key+"="+escape(k.Value))
	}
	return strings.Join(words, " ")
}

// escape returns a value with the escapes that a writer of headers uses. (BT-HEAD-1)
func escape(value string) string {
	var out []byte
	for _, c := range []byte(value) {
		if '!' <= c && c <= '}' && c != '%' {
			out = append(out, c)
		} else {
			out = fmt.Appendf(out, "%%%02X", c)
		}
	}
	return string(out)
}

// unescape is the inverse of escape; ok is false if a % is not followed by two digits.
func unescape(text string) (value string, ok bool) {
	var out []byte
	for len(text) > 0 {
		if text[0] != '%' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		if len(text) < 3 {
			return "", false
		}
		c, err := hex.DecodeString(text[1:3])
		if err != nil {
			return "", false
		}
		out, text = append(out, c...), text[3:]
	}
	return string(out), true
}

// parseHeaderWords is the inverse of headerWords. It also accepts headers that a writer must
// refuse; ok is false if codec.Header cannot represent the header.
func parseHeaderWords(text string) (h codec.Header, ok bool) {
	words := strings.Split(text, " ")
	h.Verb = words[0]
	if len(words) > 1 && words[1] != "-" {
		n, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			return h, false
		}
		h.Number, h.HasNumber = uint32(n), true
	}
	for _, word := range words[min(2, len(words)):] {
		name, text, found := strings.Cut(word, "=")
		value, ok := unescape(text)
		if !found || !ok {
			return h, false
		}
		h.Keys = append(h.Keys, codec.HeaderKey{Key: name, Value: value})
	}
	return h, true
}

func codecEncode(r *Request) (a Answer, err error) {
	s := codec.Stack{PCs: r.In.PCs, Size: r.In.Size}
	switch r.Op {
	case OpBareEncode:
		a.Data, a.Bits, err = codec.AppendBare(nil, &s, r.Machine, r.Search)
	case OpUserEncode, OpEventEncode:
		var u codec.User
		for _, f := range r.In.User {
			u.Set(codec.Tag(f.Tag), f.Value)
		}
		if r.Op == OpUserEncode {
			a.Data, err = codec.AppendBlobUser(nil, &s, &u, r.Machine, r.Search)
		} else {
			a.Data, err = codec.AppendEvent(nil, &s, &u, r.Machine, r.Search)
		}
	default:
		a.Data, err = codec.AppendBlob(nil, &s, r.Machine, r.Search)
	}
	return a, err
}

func codecFormat(r *Request) (a Answer, err error) {
	switch {
	case r.In != nil:
		s := codec.Stack{PCs: r.In.PCs, Size: r.In.Size}
		if _, err := codec.AppendBlob(nil, &s, codec.MachineExact64, codec.SearchLws); err != nil {
			return a, err // ~b# lines have as many frames as blobs (BT-REJ-2)
		}
		a.Data = codec.AppendDecoded(nil, &s)
	case r.Words != "":
		h, ok := parseHeaderWords(r.Words)
		if !ok {
			return a, &codec.Error{Off: -1, Field: codec.FieldText, Frame: -1, Clause: "BT-HEAD-1", Reason: codec.ReasonHeaderLine}
		}
		a.Data, err = codec.AppendHeader(nil, &h)
	case r.Event:
		a.Data = codec.AppendEventLine(nil, r.Data)
	default:
		a.Data = codec.AppendLine(nil, r.Data)
	}
	return a, err
}

// codecSalvage answers the complete frames of a truncated blob, or a rejection if no frame can
// be trusted. (BT-SALV-1, BT-SALV-2)
func codecSalvage(data []byte, word int) Answer {
	var s codec.Stack
	depth, sized, err := codec.SalvageWord(&s, data, word)
	if e, ok := err.(*codec.Error); ok {
		cut := e.Reason == codec.ReasonLength || e.Reason == codec.ReasonEmpty || e.Reason == codec.ReasonShort
		if !cut || depth == 0 {
			return rejectAnswer(err)
		}
	}
	return Answer{Outcome: OK, Depth: depth, Sized: sized, Value: Value{Size: s.Size, PCs: s.PCs}, Bit: -1}
}

// codecScan lists the records in a text: the letter of the lead-in, its byte offset, and the
// length of the record in bytes. It includes records that cannot be read, but no ~b# that does
// not begin in the form of a record. (BT-TEXT-3)
func codecScan(text []byte) string {
	var found []string
	for it := range recording.Items(text) {
		if it.Found() {
			found = append(found, fmt.Sprintf("%c@%d+%d", it.Text[1], it.Offset, len(it.Text)))
		}
	}
	return cmp.Or(strings.Join(found, " "), "-")
}

// codecLog lists the records in a recording with their values and the number of their dump.
// (BT-REC-1, BT-REC-2, BT-HEAD-4)
func codecLog(text []byte) string {
	var log recording.Log
	var found []string
	for it := range recording.Items(text) {
		p := log.Add(it)
		if !it.Found() || strings.IndexByte("mbe", it.Text[1]) < 0 {
			continue
		}
		of := "-"
		if p.Dump != nil && it.Text[1] != 'e' {
			of = strconv.FormatUint(uint64(p.Dump.Begin.Number), 10)
		}
		item := fmt.Sprintf("%c@%d+%d;boot=%d;dump=%s;", it.Text[1], it.Offset, len(it.Text), p.Boot.Number, of)
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
	return cmp.Or(strings.Join(found, " "), "-")
}

// codecDumps lists the dumps of call paths in a log.
func codecDumps(text []byte) string {
	var out []pathDump
	for _, d := range recording.Dumps(text) {
		m := d.Missing()
		x := pathDump{Number: uint64(d.Begin.Number), Boot: d.Boot.Number, Open: d.End == nil, NoBase: d.NoBase,
			Lost: [3]string{strconv.FormatInt(m.Lines, 10), "-", "-"}}
		if m.HasBlocks {
			x.Lost[1] = strconv.FormatInt(m.Blocks, 10)
		}
		if m.HasBytes {
			x.Lost[2] = strconv.FormatInt(m.Bytes, 10)
		}
		paths, names, _ := d.Settle()
		for _, s := range paths {
			if s.Live > 0 || s.Bytes > 0 {
				x.Paths = append(x.Paths, pathTotal{names.Path(s.ID, nil), s, s.LiveEst > 0 || s.BytesEst > 0})
			}
		}
		out = append(out, x)
	}
	return dumpsWords(out)
}

func rejectAnswer(err error) Answer {
	e, ok := err.(*codec.Error)
	if !ok {
		return Answer{Outcome: Reject, Bit: -1, Text: err.Error()}
	}
	a := Answer{Outcome: Reject, Reason: string(e.Reason), Bit: e.Off, Text: err.Error()}
	if e.Field == codec.FieldText {
		a.Bit = -1 // bit= is only for faults in blobs
	}
	return a
}
