package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Hello is what a testee says of itself.
type Hello struct {
	Name, Version string
	Ops           []Op
	Machines      []codec.Machine // that it encodes as
	word32        bool            // it reads at word 32 alone
}

// only32 says whether the testee is one of 32-bit words alone: all that it
// encodes as are, or it is known to be.
func (h Hello) only32() bool {
	for _, m := range h.Machines {
		if m.Word() == 64 {
			return false
		}
	}
	return h.word32 || len(h.Machines) > 0
}

// Offers says whether the testee does what is asked.
func (h Hello) Offers(r Request) bool {
	return slices.Contains(h.Ops, r.Op) && (r.Op != OpEncode || slices.Contains(h.Machines, r.Machine))
}

// Request is one question.
type Request struct {
	Op      Op
	Data    []byte // blob, memory or text; of format a blob, if In is nil
	Word    int    // of decode, end and mline: 32 or 64
	Lenient bool   // of mline
	In      *Value // of encode and format
	Machine codec.Machine
	Search  codec.Search
}

// Testee answers questions.
type Testee interface {
	Hello() Hello
	// Ask answers requests in their order, one Answer each: all of them, or, where
	// one crashes, hangs or breaks the protocol, those up to it. An error says that
	// the testee could not be asked at all, as when its program does not start again.
	Ask(requests []Request) ([]Answer, error)
	Close() error
}

// Starter makes another instance of the same testee, for another worker. When ctx
// is done, the instance ends.
type Starter func(ctx context.Context) (Testee, error)

// AskAll asks again until all requests are answered.
func AskAll(t Testee, requests []Request) ([]Answer, error) {
	answers := make([]Answer, 0, len(requests))
	for len(answers) < len(requests) {
		more, err := t.Ask(requests[len(answers):])
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, errors.New("testee: no answer and no error")
		}
		answers = append(answers, more...)
	}
	return answers, nil
}

// Codec starts the testee within this process: the codec of this module.
func Codec(context.Context) (Testee, error) { return codecTestee{}, nil }

type codecTestee struct{}

func (codecTestee) Hello() Hello {
	return Hello{Name: "lwsbt-go", Version: version(), Ops: Ops(), Machines: codec.Machines()}
}

func (codecTestee) Close() error { return nil }

func (codecTestee) Ask(requests []Request) ([]Answer, error) {
	answers := make([]Answer, len(requests))
	for i := range requests {
		answers[i] = askCodec(&requests[i])
	}
	return answers, nil
}

// askCodec takes a panic for what it is.
func askCodec(r *Request) (a Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = Answer{Outcome: Crash, Signal: "PANIC", Text: fmt.Sprint(p), Bit: -1}
		}
	}()
	var s codec.Stack
	switch r.Op {
	case OpDecode:
		return valueAnswer(&s, codec.DecodeWord(&s, r.Data, r.Word))
	case OpEnd:
		blob, err := codec.BlobAtEnd(r.Data)
		if err == nil {
			err = codec.DecodeWord(&s, blob, r.Word)
		}
		return valueAnswer(&s, err)
	case OpMline:
		parse := codec.ParseLine
		if r.Lenient {
			parse = codec.ParseLineLenient
		}
		blob, err := parse(nil, r.Data)
		if err == nil {
			err = codec.DecodeWord(&s, blob, r.Word)
		}
		return valueAnswer(&s, err)
	case OpBline:
		return valueAnswer(&s, codec.ParseDecoded(&s, r.Data))
	case OpSalvage:
		return salvageAnswer(&s, r.Data)
	case OpEncode:
		s.PCs, s.Size = r.In.PCs, r.In.Size
		blob, err := codec.AppendBlob(nil, &s, r.Machine, r.Search)
		if err != nil {
			return Answer{Outcome: Skip, Text: err.Error()}
		}
		return Answer{Outcome: OK, Data: blob}
	case OpFormat:
		if r.In == nil {
			return Answer{Outcome: OK, Data: codec.AppendLine(nil, r.Data)}
		}
		s.PCs, s.Size = r.In.PCs, r.In.Size
		return Answer{Outcome: OK, Data: codec.AppendDecoded(nil, &s)}
	}
	return Answer{Outcome: Skip, Text: "unsupported"}
}

func valueAnswer(s *codec.Stack, err error) Answer {
	if err != nil {
		return rejectAnswer(err)
	}
	return Answer{Outcome: OK, Value: Value{s.Size, s.PCs}}
}

func rejectAnswer(err error) Answer {
	e, ok := err.(*codec.Error)
	if !ok {
		return Answer{Outcome: Reject, Bit: -1, Text: err.Error()}
	}
	off := e.Off
	if e.Field == codec.FieldText {
		off *= 8
	}
	return Answer{Outcome: Reject, Reason: string(e.Reason), Bit: off, Text: err.Error()}
}

// salvageAnswer tells a blob that was cut, of which the whole frames stand,
// from one of which nothing can be said. (BT-SALV-1, BT-SALV-2)
func salvageAnswer(s *codec.Stack, data []byte) Answer {
	depth, _, err := codec.Salvage(s, data)
	if e, ok := err.(*codec.Error); ok {
		cut := e.Reason == codec.ReasonLength || e.Reason == codec.ReasonEmpty || e.Reason == codec.ReasonShort
		if !cut || depth == 0 {
			return rejectAnswer(err)
		}
	}
	return Answer{Outcome: OK, Depth: depth, Value: Value{PCs: s.PCs}}
}

// Describe says the request in BTP/1's words, without an id.
func (r Request) Describe() string { return strings.Replace(r.Line("ID"), " ID ", " ", 1) }
