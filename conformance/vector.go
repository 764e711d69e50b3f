package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
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

	OpBare       Op = "bare"        // bits of a stack alone, to frames
	OpBareEncode Op = "bare-encode" // frames to such bits
	OpMarks      Op = "marks"       // blob to the marks of its values
	OpScan       Op = "scan"        // text to the positions of its records
	OpLog        Op = "log"         // text to its records, read according to its headers

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

// Ops lists all operations.
func Ops() []Op {
	return []Op{OpDecode, OpEncode, OpEnd, OpSalvage, OpMline, OpBline, OpFormat, OpBare, OpBareEncode, OpMarks,
		OpScan, OpUser, OpUserEncode, OpEline, OpEventEncode, OpHline, OpLog,
		OpPline, OpVline, OpDumps, OpPencode, OpVencode, OpName, OpOffsets, OpAddresses}
}

// kind describes the input and the answer of an operation.
type kind struct {
	text   bool   // the input is text, else bytes
	answer string // verb of BTP/1's answer
	words  bool   // the answer is stored as words
	in     string // if not "", the input is words, which follow this word in `in:`
}

// kinds holds the kind of each operation. The input of encoding and format is values, of the others data.
var kinds = map[Op]kind{
	OpDecode: {answer: "ok"}, OpEnd: {answer: "ok"}, OpSalvage: {answer: "part"}, OpUser: {answer: "ok"},
	OpMline: {answer: "ok", text: true}, OpBline: {answer: "ok", text: true}, OpEline: {answer: "ok", text: true},
	OpBare: {answer: "bare", words: true}, OpMarks: {answer: "marks", words: true},
	OpScan: {answer: "found", text: true, words: true}, OpHline: {answer: "head", text: true, words: true},
	OpLog:    {answer: "records", text: true, words: true},
	OpEncode: {answer: "blob"}, OpUserEncode: {answer: "blob"}, OpEventEncode: {answer: "blob"}, OpBareEncode: {answer: "bits"}, OpFormat: {answer: "text"},
	OpPline: {answer: "paths", text: true, words: true}, OpVline: {answer: "events", text: true, words: true},
	OpDumps:   {answer: "dumps", text: true, words: true},
	OpPencode: {answer: "text", in: "paths"}, OpVencode: {answer: "text", in: "events"}, OpName: {answer: "name", in: "path", words: true},
	OpOffsets: {answer: "offsets", in: "addresses", words: true}, OpAddresses: {answer: "addresses", in: "frames", words: true},
}

// inWords returns the words that `in:` may begin with, except for a stack.
func inWords() []string {
	words := []string{"head"}
	for _, op := range Ops() {
		if word := kinds[op].in; word != "" {
			words = append(words, word)
		}
	}
	return words
}

// encodes reports whether the input of an operation is a stack and a machine.
func (op Op) encodes() bool {
	return op == OpEncode || op == OpUserEncode || op == OpEventEncode || op == OpBareEncode
}

// isPathOp reports whether op is an operation on call paths.
func isPathOp(op Op) bool {
	return op == OpPline || op == OpVline || op == OpDumps || kinds[op].in != ""
}

// Value is a stack in vectors and BTP/1.
type Value struct {
	Size uint64
	PCs  []uint64 // innermost first
	User []UserField
}

// UserField is a user field, as in Part II of SPEC.md.
type UserField struct {
	Tag   uint8
	Value uint64
}

// String returns the value in the form of vectors and BTP/1: size=N pcs=….
func (v Value) String() string {
	text := "size=" + strconv.FormatUint(v.Size, 10) + " pcs=" + formatPCs(v.PCs)
	for i, f := range v.User {
		text += []string{",", " user="}[b2i(i == 0)] + fmt.Sprintf("%d:%x", f.Tag, f.Value)
	}
	return text
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Equal reports whether v and w have the same size, frames and user fields.
func (v Value) Equal(w Value) bool {
	return v.Size == w.Size && slices.Equal(v.PCs, w.PCs) && slices.Equal(v.User, w.User)
}

// parseUser reads TAG:HEX,TAG:HEX.
func parseUser(text string) ([]UserField, error) {
	var fields []UserField
	for _, word := range strings.Split(text, ",") {
		tag, value, ok := strings.Cut(word, ":")
		t, err := strconv.ParseUint(tag, 10, 4)
		v, err2 := strconv.ParseUint(value, 16, 64)
		if !ok || err != nil || err2 != nil || t == 0 || fmt.Sprintf("%d:%x", t, v) != word {
			return nil, fmt.Errorf("user: %q, expected TAG:VALUE, decimal and hex", clip(word))
		}
		fields = append(fields, UserField{uint8(t), v})
	}
	return fields, nil
}

// formatPCs returns addresses in hexadecimal, separated by commas, or "-" if there are none.
func formatPCs(pcs []uint64) string {
	if len(pcs) == 0 {
		return "-"
	}
	var b []byte
	for i, pc := range pcs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, pc, 16)
	}
	return string(b)
}

func parsePCs(text string) ([]uint64, error) {
	if text == "-" {
		return nil, nil
	}
	words := strings.Split(text, ",")
	pcs := make([]uint64, 0, len(words))
	for _, word := range words {
		pc, err := strconv.ParseUint(word, 16, 64)
		if err != nil || strconv.FormatUint(pc, 16) != word {
			return nil, fmt.Errorf("pcs: %q, expected a 64-bit address in lower-case hex without 0x or leading zeros", word)
		}
		pcs = append(pcs, pc)
	}
	return pcs, nil
}

func parseSize(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("size: %q, expected a decimal number below 2^64", text)
	}
	return n, nil
}

// parseValue reads "size=N pcs=LIST", optionally followed by " user=LIST".
func parseValue(text string) (v Value, err error) {
	size, pcs, ok := strings.Cut(text, " ")
	pcs, user, hasUser := strings.Cut(pcs, " ")
	if hasUser {
		list, ok := strings.CutPrefix(user, "user=")
		if !ok {
			return Value{}, fmt.Errorf("%q, expected size=N pcs=LIST and perhaps user=LIST", clip(text))
		}
		if v.User, err = parseUser(list); err != nil {
			return Value{}, err
		}
	}
	size, okSize := strings.CutPrefix(size, "size=")
	pcs, okPCs := strings.CutPrefix(pcs, "pcs=")
	if !ok || !okSize || !okPCs {
		return Value{}, fmt.Errorf("%q, expected size=N pcs=LIST", clip(text))
	}
	if v.Size, err = parseSize(size); err != nil {
		return Value{}, err
	}
	v.PCs, err = parsePCs(pcs)
	return v, err
}

// Head holds the keys that apply to a whole file.
type Head struct {
	Source, Library, Compiler, Options, Platform string
	// AnySpill reports that the spill bits of recorded blobs depend on the encoder's
	// compiler.
	AnySpill bool
	machine  string
}

// Evidence is the observed answer of an implementation. It is never an expectation.
type Evidence struct {
	Name string // such as lws-x86_64
	Answer
}

// Vector is one record of a .btv file.
type Vector struct {
	ID      string // unique in a Set; begins with the platform of the head, if it has one
	Clauses []string
	Musts   []string // requirements of these clauses that it tests, such as BT-TEXT-2.3
	Ops     []Op
	Why     string
	Control string
	Differs Differs

	HasMachine bool
	Machine    codec.Machine
	Search     codec.Search
	Word       int // 32 or 64
	Lenient    bool

	In      *Value   // input of the encoder
	Words   string   // other words that are the input of a writer, such as a header; see WordsOf
	WordsOf string   // kind of Words: head, or kind.in
	Bits    *BitText // the blob from `bits:`, nil if there is none
	Blob    []byte   // from hex or bits; nil if there is neither
	Digits  []string // a ~p# or ~v# line from `digits:`, without lead-in and CRC
	Line    string   // ~m# text of Blob, if written
	Text    *string  // text for mline and bline; the result of format
	Want    *Answer  // nil if Blob or Text is the whole expectation
	Notes   []Evidence

	Head *Head
	File string
	Row  int // line of File at which the record begins
}

// Has reports whether op is among the vector's operations.
func (v *Vector) Has(op Op) bool { return slices.Contains(v.Ops, op) }

// Place returns the vector's file and line, as "FILE:LINE".
func (v *Vector) Place() string { return v.File + ":" + strconv.Itoa(v.Row) }

// Rejects reports whether the vector must be rejected.
func (v *Vector) Rejects() bool { return v.Want != nil && v.Want.Outcome == Reject }

// Group returns the part of the ID before its first slash.
func (v *Vector) Group() string {
	group, _, _ := strings.Cut(v.ID, "/")
	return group
}
