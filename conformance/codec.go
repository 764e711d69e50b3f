package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
)

// Codec starts the codec of this module in this process, with its log reader for scanning.
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

// askCodec takes a panic for a crash.
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
		return codecSalvage(r.Data)
	case r.Op == OpScan:
		return codecScan(r.Data)
	case r.Op == OpHline:
		var h codec.Header
		if err = codec.ParseHeader(&h, r.Data); err == nil {
			a.Words = headerWords(&h)
		}
	default:
		a, err = codecRead(r)
	}
	if err != nil {
		return rejectAnswer(err)
	}
	a.Outcome, a.Bit = OK, -1
	return a
}

// codecRead answers what gives a stack.
func codecRead(r *Request) (a Answer, err error) {
	var s codec.Stack
	var u codec.User
	blob := r.Data
	switch r.Op {
	case OpDecode:
		err = codec.DecodeWord(&s, blob, r.Word)
	case OpMarks:
		err = codec.Decode(&s, blob)
	case OpEnd:
		if blob, err = codec.BlobAtEnd(r.Data); err == nil {
			err = codec.DecodeWord(&s, blob, r.Word)
		}
	case OpMline:
		parse := codec.ParseLine
		if r.Lenient {
			parse = codec.ParseLineLenient
		}
		if blob, err = parse(nil, r.Data); err == nil {
			err = codec.DecodeWord(&s, blob, r.Word)
		}
	case OpBline:
		err = codec.ParseDecoded(&s, r.Data)
	case OpUser:
		err = codec.DecodeUser(&s, &u, blob, r.Word)
	case OpEline:
		if blob, err = codec.ParseEventLine(nil, r.Data); err == nil {
			err = codec.DecodeEvent(&s, &u, blob, r.Word)
		}
	case OpBare:
		var bits int
		bits, err = codec.DecodeBare(&s, r.Data)
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

// userFields lists the user fields that are there, by tag.
func userFields(u *codec.User) (fields []UserField) {
	for tag := codec.TagAddress; tag <= codec.TagOldAddress; tag++ {
		if v, ok := u.Get(tag); ok {
			fields = append(fields, UserField{uint8(tag), v})
		}
	}
	return fields
}

// marksWords lists the frames that carry each mark; size stands for the size's.
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

// headerWords is a header without its lead-in, with - where it has no number.
func headerWords(h *codec.Header) string {
	number := "-"
	if h.HasNumber {
		number = strconv.FormatUint(uint64(h.Number), 10)
	}
	words := []string{h.Verb, number}
	text := string(codec.AppendHeader(nil, &codec.Header{Verb: h.Verb, Number: h.Number, HasNumber: h.HasNumber, Keys: h.Keys}))
	keys := strings.Split(text, " ")[1:]
	if number != "-" {
		keys = keys[1:]
	}
	return strings.Join(append(words, keys...), " ")
}

// parseHeaderWords is the reverse. An error says why there is no such header. (BT-HEAD-1)
func parseHeaderWords(h *codec.Header, text string) error {
	verb, rest, _ := strings.Cut(text, " ")
	number, keys, more := strings.Cut(rest, " ")
	line := codec.LeadInHeader + verb
	if number != "-" {
		line += " " + number
	}
	if more {
		line += " " + keys
	}
	return codec.ParseHeader(h, []byte(line))
}

func codecEncode(r *Request) (a Answer, err error) {
	s := codec.Stack{PCs: r.In.PCs, Size: r.In.Size}
	switch r.Op {
	case OpBareEncode:
		a.Data, a.Bits, err = codec.AppendBare(nil, &s, r.Machine, r.Search)
	case OpUserEncode:
		var u codec.User
		for _, f := range r.In.User {
			u.Set(codec.Tag(f.Tag), f.Value)
		}
		a.Data, err = codec.AppendBlobUser(nil, &s, &u, r.Machine, r.Search)
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
		var h codec.Header
		if err := parseHeaderWords(&h, r.Words); err != nil {
			return a, err
		}
		a.Data = codec.AppendHeader(nil, &h)
	case r.Event:
		a.Data = codec.AppendEventLine(nil, r.Data)
	default:
		a.Data = codec.AppendLine(nil, r.Data)
	}
	return a, nil
}

// codecSalvage distinguishes a blob that was cut, of which the whole frames stand,
// from one of which nothing is certain. (BT-SALV-1, BT-SALV-2)
func codecSalvage(data []byte) Answer {
	var s codec.Stack
	depth, sized, err := codec.Salvage(&s, data)
	if e, ok := err.(*codec.Error); ok {
		cut := e.Reason == codec.ReasonLength || e.Reason == codec.ReasonEmpty || e.Reason == codec.ReasonShort
		if !cut || depth == 0 {
			return rejectAnswer(err)
		}
	}
	return Answer{Outcome: OK, Depth: depth, Sized: sized, Value: Value{Size: s.Size, PCs: s.PCs}, Bit: -1}
}

// codecScan lists the records in a text: the letter of the lead-in, the byte it
// stands at, and the bytes of the record. A ~b# whose beginning has not the form
// is no record; of the others, those that cannot be read are. (BT-TEXT-3)
func codecScan(text []byte) Answer {
	s := dump.NewScanner(bytes.NewReader(text), "text")
	s.Recordings = true
	var (
		found []string
		stack codec.Stack
	)
	for s.Next() {
		r := s.Record()
		if r.Kind == dump.Decoded && codec.ParseDecoded(&stack, r.Text) != nil {
			continue
		}
		found = append(found, fmt.Sprintf("%c@%d+%d", r.Text[1], r.Offset, len(r.Text)))
	}
	if len(found) == 0 {
		found = []string{"-"}
	}
	return Answer{Outcome: OK, Words: strings.Join(found, " "), Bit: -1}
}

func rejectAnswer(err error) Answer {
	e, ok := err.(*codec.Error)
	if !ok {
		return Answer{Outcome: Reject, Bit: -1, Text: err.Error()}
	}
	a := Answer{Outcome: Reject, Reason: string(e.Reason), Bit: e.Off, Text: err.Error()}
	if e.Field == codec.FieldText {
		a.Bit = -1 // bit= is of blobs alone
	}
	return a
}
