package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Hello is a testee's description of itself.
type Hello struct {
	Name, Version string
	Ops           []Op
	Machines      []codec.Machine // machines that it encodes for
	Searches      []codec.Search  // searches that it encodes with; all if empty
}

// only32 reports whether the testee reads only 32-bit words: because
// all machines that it encodes for have 32-bit words.
func (h Hello) only32() bool {
	for _, m := range h.Machines {
		if m.Word() == 64 {
			return false
		}
	}
	return len(h.Machines) > 0
}

// Offers reports whether the testee supports the request.
func (h Hello) Offers(r Request) bool {
	offers := r.Op.row().offers
	return slices.Contains(h.Ops, r.Op) && (offers == nil || offers(&h, &r))
}

// Request is one request to a testee.
type Request struct {
	Op      Op
	Data    []byte // blob, memory, bits or text; for format a blob, if In is nil
	Word    int    // for operations that read blobs: 32 or 64; 0 means 64
	Lenient bool   // for mline
	In      *Value // for encoding and format
	Event   bool   // for format: Data is the blob of an event
	Words   string // for format a header; for pencode, vencode, name, offsets and addresses their input
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
	// Ask answers requests in order, with one Answer each. If the testee crashes, hangs or
	// violates the protocol, the answers end with that request. Ask returns an error if the
	// testee could not be asked, for example because its program does not start again.
	Ask(requests []Request) ([]Answer, error)
	Close() error
}

// Starter starts an instance of a testee; each worker has one. The instance ends when ctx is
// done.
type Starter func(ctx context.Context) (Testee, error)

// Describe returns the request in the words of BTP/1, without an ID.
func (r Request) Describe() string { return strings.Replace(r.Line("ID"), " ID ", " ", 1) }
