package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// Op is an operation; the names are those of BTP/1 and `op:`.
type Op string

const (
	OpDecode  Op = "decode"  // blob to stack
	OpEncode  Op = "encode"  // stack to blob
	OpEnd     Op = "end"     // memory that ends with a blob, to stack
	OpSalvage Op = "salvage" // truncated blob to its complete frames
	OpMline   Op = "mline"   // ~m# text to stack
	OpBline   Op = "bline"   // ~b# text to stack
	OpFormat  Op = "format"  // stack to ~b# text, blob to ~m# or ~e# text, header to ~h# text

	OpMarks Op = "marks" // blob to the marks of its values
	OpScan  Op = "scan"  // text to the positions of its records
	OpLog   Op = "log"   // text to its records, read according to its headers

	OpUser        Op = "user"         // blob to stack and user fields
	OpUserEncode  Op = "user-encode"  // stack and user fields to blob
	OpEline       Op = "eline"        // ~e# text to stack and user fields
	OpEventEncode Op = "event-encode" // stack and user fields to the blob of an event
	OpHline       Op = "hline"        // ~h# text to a header

	OpPline     Op = "pline"     // ~p# text to its entries
	OpVline     Op = "vline"     // ~v# text to its events
	OpDumps     Op = "dumps"     // text to its dumps of call paths
	OpPencode   Op = "pencode"   // entries to ~p# lines
	OpVencode   Op = "vencode"   // events to a ~v# line
	OpName      Op = "name"      // path to its name
	OpOffsets   Op = "offsets"   // addresses to frames
	OpAddresses Op = "addresses" // frames to addresses
)

// operation is all that the runner knows of an operation.
type operation struct {
	Op
	in  input
	out output
	ask func(*Request) (Answer, error) // the codec's answer

	// offers reports whether a testee with the operation supports the request. nil: always.
	offers func(h *Hello, r *Request) bool

	writes bool // a clause about writers, not readers, applies
	drawn  Drawing

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
	{Op: OpDecode, in: bytesInput{word: true}, out: stackOutput, ask: codecDecode,
		blob: blobItself, placed: true, spillBits: fieldSpills, at32: stackAt32},
	encoder(OpEncode, codecEncode),
	{Op: OpEnd, in: bytesInput{word: true}, out: stackOutput, ask: codecEnd,
		blob: blobAtEnd, spillBits: endSpills, at32: stackAt32},
	{Op: OpSalvage, in: bytesInput{word: true}, out: partOutput, ask: codecSalvage,
		blob: blobItself, spillBits: salvageSpills, at32: salvageAt32},
	{Op: OpMline, in: bytesInput{text: true, word: true, reading: true}, out: stackOutput, ask: codecMline, drawn: DrawnText,
		blob: blobOfLine, placed: true, at32: stackAt32},
	{Op: OpBline, in: bytesInput{text: true}, out: stackOutput, ask: codecBline, drawn: DrawnText},
	{Op: OpFormat, in: formatInput{}, offers: offersText, out: textOutput, ask: codecFormat, writes: true, drawn: DrawnExpected,
		expect: expectText},

	{Op: OpMarks, in: bytesInput{}, out: wordsOutput("marks"), ask: codecMarks,
		blob: blobItself, placed: true, spillBits: writtenSpills},
	{Op: OpScan, in: bytesInput{text: true}, out: wordsOutput("found"), ask: codecScan, drawn: DrawnText},

	{Op: OpUser, in: bytesInput{word: true}, out: stackOutput, ask: codecUser,
		blob: blobItself, placed: true, spillBits: writtenSpills},
	encoder(OpUserEncode, codecUserEncode),
	{Op: OpEline, in: bytesInput{text: true, word: true}, out: stackOutput, ask: codecEline, drawn: DrawnText},
	encoder(OpEventEncode, codecEventEncode),
	{Op: OpHline, in: bytesInput{text: true}, out: wordsOutput("head"), ask: codecHline, drawn: DrawnText},
	{Op: OpLog, in: bytesInput{text: true}, out: wordsOutput("records"), ask: codecLog, drawn: DrawnLog},

	{Op: OpPline, in: bytesInput{text: true}, out: wordsOutput("paths"), ask: codecPline, drawn: DrawnText, digits: pathDigits},
	{Op: OpVline, in: bytesInput{text: true}, out: wordsOutput("events"), ask: codecVline, drawn: DrawnText, digits: eventDigits},
	{Op: OpDumps, in: bytesInput{text: true}, out: dumpsOutput, ask: codecDumps, drawn: DrawnLog, compare: compareDumps},
	{Op: OpPencode, in: wordsInput{of: "paths", orWant: true, before: "max=240 ", check: checks(parsePencode)}, out: textOutput, ask: codecPencode,
		writes: true, drawn: NotDrawn, compare: compareLines, expect: expectWords, says: samePaths, digits: pathDigits},
	{Op: OpVencode, in: wordsInput{of: "events", orWant: true, check: checks(words.ParseEventLine)}, out: textOutput, ask: codecVencode,
		writes: true, drawn: NotDrawn, compare: compareLines, expect: expectWords, says: sameEvents, digits: eventDigits},
	{Op: OpName, in: wordsInput{of: "path", check: checks(words.ParsePath)}, out: wordsOutput("name"), ask: codecName,
		writes: true, drawn: DrawnRequest},
	{Op: OpOffsets, in: wordsInput{of: "addresses", check: checks(words.ParseAddresses)}, out: wordsOutput("offsets"), ask: codecOffsets,
		writes: true, drawn: DrawnRequest},
	{Op: OpAddresses, in: wordsInput{of: "frames", check: checks(words.ParseOffsets)}, out: wordsOutput("addresses"), ask: codecAddresses,
		drawn: DrawnRequest},
}

func encoder(op Op, ask func(*Request) (Answer, error)) *operation {
	return &operation{Op: op, in: stackInput{}, offers: offersStack, out: blobOutput, ask: ask, writes: true, drawn: DrawnExpected,
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

// Drawing says what a report shows of a wrong answer.
type Drawing uint8

const (
	DrawnBlob     Drawing = iota // the bits of the blob in the request
	DrawnExpected                // the bits or the text that the writer must write
	DrawnText                    // the text of the request
	DrawnLog                     // the same, line by line
	DrawnRequest                 // the words of the request
	NotDrawn
)

// Drawn returns what shows a failure of the operation.
func (op Op) Drawn() Drawing { return op.row().drawn }

// encodes reports whether the input of an operation is a stack and a machine.
func (op Op) encodes() bool {
	_, ok := op.row().in.(stackInput)
	return ok
}
