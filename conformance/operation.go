package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// Op is an operation; the names are those of BTP/1 and `op:`.
type Op string

const (
	opDecode  Op = "decode"  // blob to stack
	opEncode  Op = "encode"  // stack to blob
	opEnd     Op = "end"     // memory that ends with a blob, to stack
	opSalvage Op = "salvage" // truncated blob to its complete frames
	opMline   Op = "mline"   // ~m# text to stack
	opBline   Op = "bline"   // ~b# text to stack
	opFormat  Op = "format"  // stack to ~b# text, blob to ~m# or ~e# text, header to ~h# text

	opMarks Op = "marks" // blob to the marks of its values
	opScan  Op = "scan"  // text to the positions of its records
	opLog   Op = "log"   // text to its records, read according to its headers

	opUser        Op = "user"         // blob to stack and user fields
	opUserEncode  Op = "user-encode"  // stack and user fields to blob
	opEline       Op = "eline"        // ~e# text to stack and user fields
	opEventEncode Op = "event-encode" // stack and user fields to the blob of an event
	opHline       Op = "hline"        // ~h# text to a header

	opPline     Op = "pline"     // ~p# text to its entries
	opVline     Op = "vline"     // ~v# text to its events
	opDumps     Op = "dumps"     // text to its dumps of call paths
	opPencode   Op = "pencode"   // entries to ~p# lines
	opVencode   Op = "vencode"   // events to a ~v# line
	opName      Op = "name"      // path to its name
	opOffsets   Op = "offsets"   // addresses to frames
	opAddresses Op = "addresses" // frames to addresses
)

// operation is all that the runner knows of an operation.
type operation struct {
	Op
	in  input
	out output
	ask func(*Request) (Answer, error) // the codec's answer

	// offers reports whether a testee with the operation supports the request. nil: always.
	offers func(h *Hello, r *Request) bool

	writes bool   // a clause about writers, not readers, applies
	drawn  string // see Op.Drawn

	// compare reports whether an answer is right, and describes a violated SHOULD. If it is nil,
	// the answer must equal the expected one.
	compare func(c *check, a Answer) (right bool, warning string)
	// expect returns the expected answer. If it is nil, `want:` has the answer.
	expect func(c *check) Answer
	// says compares the lines that a writer wrote with the words of the request, and returns
	// the first difference, "" if there is none.
	says func(words, text string) (why string)

	blob      func(v *Vector) ([]byte, error) // the blob in the input or the output
	placed    bool                            // the bit of a rejection is defined
	spillBits func(v *Vector) []int           // see Vector.Spills
	digits    lineForm                        // the line that `digits:` gives
	// at32 reports whether a reader at word 32 must give the same answer as at word 64. nil: no.
	at32 func(v *Vector, blob func(*Vector) ([]byte, error)) bool
}

// operations lists the operations, in the order of the answer to hello.
var operations = []*operation{
	{Op: opDecode, in: bytesInput{word: true}, out: stackOutput, ask: codecDecode,
		blob: blobItself, placed: true, spillBits: fieldSpills, at32: stackAt32},
	encoder(opEncode, codecEncode),
	{Op: opEnd, in: bytesInput{word: true}, out: stackOutput, ask: codecEnd,
		blob: blobAtEnd, spillBits: endSpills, at32: stackAt32},
	{Op: opSalvage, in: bytesInput{word: true}, out: partOutput, ask: codecSalvage,
		blob: blobItself, spillBits: salvageSpills, at32: salvageAt32},
	{Op: opMline, in: bytesInput{text: true, word: true, reading: true}, out: stackOutput, ask: codecMline, drawn: "text",
		blob: blobOfLine, placed: true, at32: stackAt32},
	{Op: opBline, in: bytesInput{text: true}, out: stackOutput, ask: codecBline, drawn: "text"},
	{Op: opFormat, in: formatInput{}, offers: offersText, out: textOutput, ask: codecFormat, writes: true, drawn: "expected",
		expect: expectText},

	{Op: opMarks, in: bytesInput{}, out: wordsOutput("marks"), ask: codecMarks,
		blob: blobItself, placed: true, spillBits: writtenSpills},
	{Op: opScan, in: bytesInput{text: true}, out: wordsOutput("found"), ask: codecScan, drawn: "text"},

	{Op: opUser, in: bytesInput{word: true}, out: stackOutput, ask: codecUser,
		blob: blobItself, placed: true, spillBits: writtenSpills},
	encoder(opUserEncode, codecUserEncode),
	{Op: opEline, in: bytesInput{text: true, word: true}, out: stackOutput, ask: codecEline, drawn: "text"},
	encoder(opEventEncode, codecEventEncode),
	{Op: opHline, in: bytesInput{text: true}, out: wordsOutput("head"), ask: codecHline, drawn: "text"},
	{Op: opLog, in: bytesInput{text: true}, out: wordsOutput("records"), ask: codecLog, drawn: "log"},

	{Op: opPline, in: bytesInput{text: true}, out: wordsOutput("paths"), ask: codecPline, drawn: "text", digits: pathDigits},
	{Op: opVline, in: bytesInput{text: true}, out: wordsOutput("events"), ask: codecVline, drawn: "text", digits: eventDigits},
	{Op: opDumps, in: bytesInput{text: true}, out: dumpsOutput, ask: codecDumps, drawn: "log", compare: compareDumps},
	{Op: opPencode, in: wordsInput{of: "paths", orWant: true, before: "max=240 ", check: checks(parsePencode)}, out: textOutput, ask: codecPencode,
		writes: true, drawn: "nothing", compare: compareLines, expect: expectWords, says: samePaths, digits: pathDigits},
	{Op: opVencode, in: wordsInput{of: "events", orWant: true, check: checks(words.ParseEventLine)}, out: textOutput, ask: codecVencode,
		writes: true, drawn: "nothing", compare: compareLines, expect: expectWords, says: sameEvents, digits: eventDigits},
	{Op: opName, in: wordsInput{of: "path", check: checks(words.ParsePath)}, out: wordsOutput("name"), ask: codecName,
		writes: true, drawn: "request"},
	{Op: opOffsets, in: wordsInput{of: "addresses", check: checks(words.ParseAddresses)}, out: wordsOutput("offsets"), ask: codecOffsets,
		writes: true, drawn: "request"},
	{Op: opAddresses, in: wordsInput{of: "frames", check: checks(words.ParseOffsets)}, out: wordsOutput("addresses"), ask: codecAddresses,
		drawn: "request"},
}

func encoder(op Op, ask func(*Request) (Answer, error)) *operation {
	return &operation{Op: op, in: stackInput{}, offers: offersStack, out: blobOutput, ask: ask, writes: true, drawn: "expected",
		compare: compareBlob, expect: expectBlob, blob: blobItself, spillBits: fieldSpills}
}

// lineForm is the form of a line of digits.
type lineForm struct {
	leadIn    string
	crcDigits int
}

var (
	pathDigits  = lineForm{callpath.LeadIn, 3}
	eventDigits = lineForm{callpath.LeadInEvents, 6}
)

// row returns the operation with this name; of an unknown one, a row without anything.
func (op Op) row() *operation {
	for _, o := range operations {
		if o.Op == op {
			return o
		}
	}
	return &operation{Op: op, in: bytesInput{}, out: stackOutput}
}

// Ops lists all operations.
func Ops() []Op {
	ops := make([]Op, len(operations))
	for i, o := range operations {
		ops[i] = o.Op
	}
	return ops
}

func parseOp(word string) (Op, error) {
	ops := Ops()
	if op := Op(word); slices.Contains(ops, op) {
		return op, nil
	}
	return "", fmt.Errorf("op %q, expected one of %s", clip(word), joined(ops, " "))
}

// joined returns names with a separator between them.
func joined[T ~string](names []T, between string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return strings.Join(list, between)
}

// Writes reports whether the operation tests a writer, not a reader.
func (op Op) Writes() bool { return op.row().writes }

// Drawn returns what shows a wrong answer to the operation: "blob", the bits of the blob in the request; "expected",
// the bits or the text that the writer must write; "text", the text of the request; "log", the same, line by line;
// "request", its words; or "nothing".
func (op Op) Drawn() string { return cmp.Or(op.row().drawn, "blob") }

// encodes reports whether the input of an operation is a stack and a machine.
func (op Op) encodes() bool {
	_, ok := op.row().in.(stackInput)
	return ok
}
