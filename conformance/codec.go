package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// Codec starts a testee in this process: the codec of this module, with its reader of logs.
func Codec(context.Context) (Testee, error) { return codecTestee{}, nil }

type codecTestee struct{}

func (codecTestee) Hello() Hello {
	return Hello{Name: "lwsbt-go", Version: version(), Ops: Ops(), Machines: codec.Machines(),
		Searches: []codec.Search{codec.SearchLws, codec.SearchBest}}
}

// version returns the version of this module, if the build contains it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
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
	a, err := r.Op.row().ask(r)
	if err != nil {
		return rejectAnswer(err)
	}
	a.Outcome, a.Bit = OK, -1
	return a
}

func rejectAnswer(err error) Answer {
	e, ok := err.(*codec.Error)
	if !ok {
		return Answer{Outcome: Reject, Bit: -1, Text: err.Error()}
	}
	a := Answer{Outcome: Reject, Reason: string(e.Reason), Bit: e.Off, Text: err.Error()}
	if e.Field == "text" {
		a.Bit = -1 // bit= is only for faults in blobs
	}
	return a
}

func stackAnswer(s *codec.Stack, u *codec.User, err error) (Answer, error) {
	return Answer{Value: Value{Size: s.Size, PCs: s.PCs, User: userFields(u)}}, err
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

func codecDecode(r *Request) (Answer, error) { return decodeBlob(r.Data, nil, r) }

func codecEnd(r *Request) (Answer, error) {
	blob, err := codec.BlobAtEnd(r.Data)
	return decodeBlob(blob, err, r)
}

func codecMline(r *Request) (Answer, error) {
	blob, err := codec.Decoder{Lenient: r.Lenient}.ParseLine(nil, r.Data)
	return decodeBlob(blob, err, r)
}

// decodeBlob decodes a blob unless err is an error.
func decodeBlob(blob []byte, err error, r *Request) (Answer, error) {
	var s codec.Stack
	if err == nil {
		err = codec.Decoder{Word: r.word()}.Decode(&s, nil, blob)
	}
	return stackAnswer(&s, &codec.User{}, err)
}

func codecBline(r *Request) (Answer, error) {
	var s codec.Stack
	err := codec.ParseDecoded(&s, r.Data)
	return stackAnswer(&s, &codec.User{}, err)
}

func codecUser(r *Request) (Answer, error) {
	var s codec.Stack
	var u codec.User
	err := codec.Decoder{Word: r.word()}.Decode(&s, &u, r.Data)
	return stackAnswer(&s, &u, err)
}

func codecEline(r *Request) (Answer, error) {
	var s codec.Stack
	var u codec.User
	blob, err := codec.ParseEventLine(nil, r.Data)
	if err == nil {
		err = codec.Decoder{Word: r.word()}.DecodeEvent(&s, &u, blob)
	}
	return stackAnswer(&s, &u, err)
}

// codecSalvage answers the complete frames of a truncated blob, or a rejection if no frame can
// be trusted. (BT-SALV-1, BT-SALV-2)
func codecSalvage(r *Request) (Answer, error) {
	var s codec.Stack
	depth, sized, err := codec.Decoder{Word: r.word()}.Salvage(&s, r.Data)
	if e, ok := err.(*codec.Error); ok {
		cut := e.Reason == "length" || e.Reason == "empty" || e.Reason == "short"
		if !cut || depth == 0 {
			return Answer{}, err
		}
	}
	return Answer{Depth: depth, Sized: sized, Value: Value{Size: s.Size, PCs: s.PCs}}, nil
}

func codecMarks(r *Request) (Answer, error) {
	var s codec.Stack
	err := codec.Decoder{}.Decode(&s, nil, r.Data)
	return Answer{Words: marksWords(&s)}, err
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

func codecHline(r *Request) (Answer, error) {
	var h codec.Header
	err := codec.ParseHeader(&h, r.Data)
	return Answer{Words: words.Header(&h)}, err
}

func (v *Value) stack() *codec.Stack { return &codec.Stack{PCs: v.PCs, Size: v.Size} }

func (v *Value) user() (u codec.User) {
	for _, f := range v.User {
		u.Set(codec.Tag(f.Tag), f.Value)
	}
	return u
}

func codecEncode(r *Request) (a Answer, err error) {
	a.Data, err = codec.Encoder{Machine: r.Machine, Search: r.Search}.AppendBlob(nil, r.In.stack(), nil)
	return a, err
}

func codecUserEncode(r *Request) (a Answer, err error) {
	u := r.In.user()
	a.Data, err = codec.Encoder{Machine: r.Machine, Search: r.Search}.AppendBlob(nil, r.In.stack(), &u)
	return a, err
}

func codecEventEncode(r *Request) (a Answer, err error) {
	u := r.In.user()
	a.Data, err = codec.Encoder{Machine: r.Machine, Search: r.Search}.AppendEvent(nil, r.In.stack(), &u)
	return a, err
}

func codecFormat(r *Request) (a Answer, err error) {
	switch {
	case r.In != nil:
		if _, err := (codec.Encoder{}).AppendBlob(nil, r.In.stack(), nil); err != nil {
			return a, err // ~b# lines have as many frames as blobs (BT-REJ-2)
		}
		a.Data = codec.AppendDecoded(nil, r.In.stack())
	case r.Words != "":
		h, ok := words.ParseHeader(r.Words)
		if !ok {
			return a, &codec.Error{Off: -1, Field: "text", Frame: -1, Clause: "BT-HEAD-1", Reason: "header-line"}
		}
		a.Data, err = codec.AppendHeader(nil, &h)
	case r.Event:
		a.Data = codec.AppendEventLine(nil, r.Data)
	default:
		a.Data = codec.AppendLine(nil, r.Data)
	}
	return a, err
}
