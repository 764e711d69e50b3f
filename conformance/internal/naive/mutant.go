// Package naive is a second implementation of SPEC.md, for tests: written to be obviously correct, it
// processes one bit at a time, is slow, and shares no code with the packages of codec/. Fuzz targets
// compare the codec with it.
//
// A [Mutant] is this implementation with exactly one bug. Mutants test the vectors: a mutant that
// passes all vectors shows that a vector is missing.
package naive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// Mutant is an implementation of SPEC.md with exactly one bug, of the kind that programmers
// make. If a mutant passes all vectors, a vector is missing.
type Mutant struct {
	Name    string // permanent
	Bug     string // description of the bug
	Encoder bool   // the bug is in writing, else in reading
}

// Mutants returns all mutants, decoders first.
func Mutants() []Mutant { return slices.Clone(mutants) }

// Codec starts the implementation without a bug.
func Codec(context.Context) (conformance.Testee, error) { return impl{}, nil }

// Start starts the mutant.
func (m Mutant) Start(context.Context) (conformance.Testee, error) { return impl{m.Name}, nil }

// Killer returns the ID of a vector that the mutant fails, as written; "" if it passes all.
func (m Mutant) Killer(ctx context.Context, set *conformance.Set) (id string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err = conformance.Run(ctx, set, m.Start, conformance.Options{Written: true, Failed: func(r *conformance.Result) {
		if id == "" {
			id = r.ID
		}
		cancel()
	}})
	if id != "" {
		err = nil // the run was ended
	}
	return id, err
}

// impl is a codec with the named bug, or without a bug if the name is empty.
type impl struct{ bug string }

func (b impl) has(bug string) bool { return b.bug == bug }

func (b impl) Hello() conformance.Hello {
	return conformance.Hello{Name: strings.TrimSpace("naive " + b.bug), Ops: conformance.Ops(), Machines: codec.Machines()}
}

func (b impl) Close() error { return nil }

func (b impl) Ask(requests []conformance.Request) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, len(requests))
	for i := range requests {
		var err error
		if answers[i], err = b.answer(&requests[i]); err != nil {
			answers[i] = conformance.Answer{Outcome: conformance.Reject, Bit: -1, Reason: err.Error()}
			if at, ok := err.(placed); ok {
				answers[i].Bit = at.bit
			}
		}
	}
	return answers, nil
}

// ofOp returns the implementation that answers op. A bug named OP/BUG is only in operation OP;
// alone reports whether op is this operation.
func (b impl) ofOp(op conformance.Op) (it impl, alone bool) {
	of, bug, alone := strings.Cut(b.bug, "/")
	switch {
	case !alone:
		return b, false
	case of != string(op):
		return impl{}, false
	}
	return impl{bug}, true
}

func (b impl) answer(r *conformance.Request) (conformance.Answer, error) {
	b, alone := b.ofOp(r.Op)
	if a, ok, err := b.pathOp(r); ok {
		return a, err
	}
	blob := r.Data
	if r.In != nil && r.Op != conformance.OpEventEncode && !(r.Op == conformance.OpFormat && b.has("writes-33-frames-in-text")) {
		m := r.Machine
		if r.Op == conformance.OpFormat {
			m = codec.MachineExact64
		}
		if err := b.refusal(r.In, m); err != nil {
			return conformance.Answer{}, err
		}
	}
	switch r.Op {
	case conformance.OpMarks:
		return b.marks(r.Data)
	case conformance.OpScan:
		return b.scan(string(r.Data)), nil
	case conformance.OpLog:
		l := logReader{impl: b, open: "-", word: 64}
		if alone {
			l.plain = b
		}
		return l.read(string(r.Data)), nil
	case conformance.OpUser:
		v, err := b.user(r.Data, r.Word, false)
		return conformance.Answer{Outcome: conformance.OK, Value: v}, err
	case conformance.OpEline:
		v, err := b.eline(string(r.Data), r.Word)
		return conformance.Answer{Outcome: conformance.OK, Value: v}, err
	case conformance.OpUserEncode:
		in := *r.In
		switch {
		case b.has("user-writes-31-frames"):
			in.PCs = in.PCs[:min(len(in.PCs), 31)]
		case b.has("user-refuses-as-event") && b.checkEvent(&in, true) != nil:
			return conformance.Answer{}, errEvent
		}
		return conformance.Answer{Outcome: conformance.OK, Data: b.userEncode(&in, r.Machine, r.Search)}, nil
	case conformance.OpEventEncode:
		return b.eventEncode(r.In, r.Machine, r.Search)
	case conformance.OpHline:
		return b.hline(string(r.Data))
	case conformance.OpEncode:
		return conformance.Answer{Outcome: conformance.OK, Data: b.encode(r.In, r.Machine, r.Search)}, nil
	case conformance.OpFormat:
		return b.format(r)
	case conformance.OpBline:
		v, err := b.parseDecoded(string(r.Data))
		return conformance.Answer{Outcome: conformance.OK, Value: v}, err
	case conformance.OpSalvage:
		return b.salvage(r.Data, r.Word)
	case conformance.OpEnd:
		var err error
		if blob, err = b.blobAtEnd(r.Data); err != nil {
			return conformance.Answer{}, err
		}
	case conformance.OpMline:
		var err error
		if blob, err = b.parseLine(string(r.Data), r.Lenient); err != nil {
			return conformance.Answer{}, err
		}
	}
	v, err := b.decode(blob, r.Word)
	if err != nil && (r.Op == conformance.OpDecode || r.Op == conformance.OpMline) {
		err = placed{err, b.fault(blob, r.Word)}
	}
	return conformance.Answer{Outcome: conformance.OK, Value: v}, err
}

// placed is a rejection for a field that begins at the bit.
type placed struct {
	error
	bit int
}

// fault returns the bit at which the faulty field of a rejected blob begins.
func (b impl) fault(blob []byte, word int) int {
	if len(blob) < 2 {
		return 0
	}
	fields, err := b.framed(blob)
	if err != nil {
		return 8 * (len(blob) - 2)
	}
	r, _ := b.readAnyDepth(fields, 8*len(fields), word)
	return r.at
}

// The reasons of rejections.
var (
	errLeadIn     = errors.New(string(codec.ReasonLeadIn))
	errBase64     = errors.New(string(codec.ReasonBase64))
	errDecoded    = errors.New(string(codec.ReasonDecodedLine))
	errShort      = errors.New(string(codec.ReasonShort))
	errEmpty      = errors.New(string(codec.ReasonEmpty))
	errLength     = errors.New(string(codec.ReasonLength))
	errTruncated  = errors.New(string(codec.ReasonTruncated))
	errDeltaFirst = errors.New(string(codec.ReasonDeltaFirst))
	errBack       = errors.New(string(codec.ReasonBack))
	errCount      = errors.New(string(codec.ReasonCount))
	errFrames     = errors.New(string(codec.ReasonFrames))
	errWord       = errors.New(string(codec.ReasonWord))
)

// words returns an answer in words.
func words(format string, args ...any) conformance.Answer {
	return conformance.Answer{Outcome: conformance.OK, Words: fmt.Sprintf(format, args...)}
}

// format writes the text of a stack, a blob, an event or a header.
func (b impl) format(r *conformance.Request) (conformance.Answer, error) {
	switch {
	case r.Words != "":
		if !b.writable(r.Words) {
			return conformance.Answer{}, errHeader
		}
		return conformance.Answer{Outcome: conformance.OK, Data: []byte(b.header(r.Words))}, nil
	case r.Event:
		lead := "~e#"
		if b.has("event-writes-m") {
			lead = "~m#"
		}
		return conformance.Answer{Outcome: conformance.OK, Data: []byte(lead + b.line(r.Data)[3:])}, nil
	}
	if r.In == nil {
		return conformance.Answer{Outcome: conformance.OK, Data: []byte(b.line(r.Data))}, nil
	}
	return conformance.Answer{Outcome: conformance.OK, Data: []byte(b.decoded(r.In))}, nil
}
