package conformance

import (
	"errors"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Mutant is an implementation of SPEC.md with exactly one bug, of the kind that
// people write. Vectors that let one pass are missing something.
type Mutant struct {
	Name    string // permanent
	Bug     string // what is wrong with it, in words
	Encoder bool   // it is wrong in writing; else in reading
}

// Mutants lists all, decoders first.
func Mutants() []Mutant { return slices.Clone(mutants) }

// Start makes a testee of the mutant. The zero Mutant has no bug.
func (m Mutant) Start() (Testee, error) { return bugged{m.Name}, nil }

// Killed is what vectors made of a mutant.
type Killed struct {
	Mutant
	By []string // IDs of the vectors that failed, in the set's order; none if it survived
}

// KillMutants puts the vectors of set to every mutant, as they are written.
func KillMutants(set *Set) ([]Killed, error) {
	all := make([]Killed, 0, len(mutants))
	for _, m := range mutants {
		report, err := Run(set, m.Start, Options{Written: true})
		if err != nil {
			return nil, err
		}
		k := Killed{Mutant: m}
		for _, r := range report.Results {
			if r.Status == Fail && !slices.Contains(k.By, r.ID) {
				k.By = append(k.By, r.ID)
			}
		}
		all = append(all, k)
	}
	return all, nil
}

// bugged answers with the bug of that name, none if it is empty.
//
// It is a codec of its own, a bit at a time, so that a mistake in the real one
// is not in all mutants, too.
type bugged struct{ bug string }

func (b bugged) has(bug string) bool { return b.bug == bug }

func (b bugged) Hello() Hello {
	return Hello{Name: "mutant " + b.bug, Ops: Ops(), Machines: codec.Machines()}
}

func (b bugged) Close() error { return nil }

func (b bugged) Ask(requests []Request) ([]Answer, error) {
	answers := make([]Answer, len(requests))
	for i := range requests {
		var err error
		if answers[i], err = b.answer(&requests[i]); err != nil {
			answers[i] = Answer{Outcome: Reject, Bit: -1, Reason: err.Error()}
		}
	}
	return answers, nil
}

func (b bugged) answer(r *Request) (Answer, error) {
	blob := r.Data
	switch r.Op {
	case OpEncode:
		return Answer{Outcome: OK, Data: b.encode(r.In, r.Machine, r.Search)}, nil
	case OpFormat:
		if r.In == nil {
			return Answer{Outcome: OK, Data: []byte(b.line(r.Data))}, nil
		}
		return Answer{Outcome: OK, Data: []byte(b.decoded(r.In))}, nil
	case OpBline:
		v, err := b.parseDecoded(string(r.Data))
		return Answer{Outcome: OK, Value: v}, err
	case OpSalvage:
		return b.salvage(r.Data)
	case OpEnd:
		var err error
		if blob, err = b.blobAtEnd(r.Data); err != nil {
			return Answer{}, err
		}
	case OpMline:
		var err error
		if blob, err = b.parseLine(string(r.Data), r.Lenient); err != nil {
			return Answer{}, err
		}
	}
	v, err := b.decode(blob, r.Word)
	return Answer{Outcome: OK, Value: v}, err
}

// Rejections of mutants.
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
)
