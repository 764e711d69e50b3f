package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Hello is a testee's description of itself.
type Hello struct {
	Name, Version string
	Ops           []Op
	Machines      []codec.Machine // that it encodes as
	Searches      []codec.Search  // that it encodes with; none given is all
	word32        bool            // it reads at word 32 alone
}

// only32 reports whether the testee reads only 32-bit words: all its machines have such words, or
// it is known to do so.
func (h Hello) only32() bool {
	for _, m := range h.Machines {
		if m.Word() == 64 {
			return false
		}
	}
	return h.word32 || len(h.Machines) > 0
}

// Offers reports whether the testee answers requests like r.
func (h Hello) Offers(r Request) bool {
	switch {
	case !slices.Contains(h.Ops, r.Op):
		return false
	case r.Op.encodes():
		return slices.Contains(h.Machines, r.Machine) && (len(h.Searches) == 0 || slices.Contains(h.Searches, r.Search))
	case r.Op == OpFormat && r.Words != "":
		return slices.Contains(h.Ops, OpHline)
	case r.Op == OpFormat && r.Event:
		return slices.Contains(h.Ops, OpEline)
	}
	return true
}

// Request is one request to a testee.
type Request struct {
	Op      Op
	Data    []byte // blob, memory, bits or text; of format a blob, if In is nil
	Word    int    // of operations that read blobs: 32 or 64; 0 is 64
	Lenient bool   // of mline
	In      *Value // of encoding and format
	Event   bool   // of format: Data is the blob of an event
	Words   string // of format a header; of pencode, vencode, name, offsets, addresses their input
	Machine codec.Machine
	Search  codec.Search
}

// word returns the word of the request.
func (r Request) word() int {
	if r.Word == 0 {
		return 64
	}
	return r.Word
}

// Testee is an implementation under test.
type Testee interface {
	Hello() Hello
	// Ask answers requests in their order, with one Answer each. If the testee crashes, hangs
	// or breaks the protocol, the answer to this request is the last. Ask returns an error if
	// the testee cannot be asked at all, as when its program does not start again.
	Ask(requests []Request) ([]Answer, error)
	Close() error
}

// Starter makes another instance of the same testee, for another worker. When ctx
// is done, the instance ends.
type Starter func(ctx context.Context) (Testee, error)

// AskAll returns the answers to all requests. It asks t again until there is one for
// each.
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

// Describe returns the request in BTP/1's words, without an id.
func (r Request) Describe() string { return strings.Replace(r.Line("ID"), " ID ", " ", 1) }
