package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Op is what is asked of a testee; the names are those of BTP/1 and `op:`.
type Op string

const (
	OpDecode  Op = "decode"  // blob to stack
	OpEncode  Op = "encode"  // stack to blob
	OpEnd     Op = "end"     // memory that ends with a blob, to stack
	OpSalvage Op = "salvage" // blob cut at its end, to the frames that are whole
	OpMline   Op = "mline"   // ~m# text to stack
	OpBline   Op = "bline"   // ~b# text to stack
	OpFormat  Op = "format"  // stack to ~b# text, or blob to ~m# text
)

// Ops lists all operations.
func Ops() []Op {
	return []Op{OpDecode, OpEncode, OpEnd, OpSalvage, OpMline, OpBline, OpFormat}
}

// Value is a stack as the wire formats of this package write it.
type Value struct {
	Size uint64
	PCs  []uint64 // innermost first
}

func (v Value) String() string {
	return "size=" + strconv.FormatUint(v.Size, 10) + " pcs=" + formatPCs(v.PCs)
}

// Equal says whether both are the same stack.
func (v Value) Equal(w Value) bool { return v.Size == w.Size && slices.Equal(v.PCs, w.PCs) }

// formatPCs writes addresses in hexadecimal with commas between; "-" for none.
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

// parseValue reads "size=N pcs=LIST".
func parseValue(text string) (v Value, err error) {
	size, pcs, ok := strings.Cut(text, " ")
	size, okSize := strings.CutPrefix(size, "size=")
	pcs, okPCs := strings.CutPrefix(pcs, "pcs=")
	if !ok || !okSize || !okPCs {
		return Value{}, fmt.Errorf("%q, expected size=N pcs=LIST", text)
	}
	if v.Size, err = parseSize(size); err != nil {
		return Value{}, err
	}
	v.PCs, err = parsePCs(pcs)
	return v, err
}

// Head is what holds for a whole file.
type Head struct {
	Source, Library, Compiler, Options, Platform string
	// AnySpill: the spill bits of recorded blobs are whatever the encoder's
	// compiler made of them.
	AnySpill bool
	machine  string
}

// Evidence is what an implementation was seen to make of a vector; it is never
// a standard to hold others to.
type Evidence struct {
	Name string // such as lws-x86_64
	Answer
}

// Vector is one record of a .btv file.
type Vector struct {
	ID      string // unique in a Set; with the platform before it where the head has one
	Clauses []string
	Ops     []Op
	Why     string
	Twin    string
	Differs Differs

	HasMachine bool
	Machine    codec.Machine
	Search     codec.Search
	Word       int // 32 or 64
	Lenient    bool

	In    *Value   // what was given to the encoder
	Bits  *BitText // the blob bit by bit, if written so
	Blob  []byte   // from hex or bits; nil if neither is there
	Line  string   // ~m# text of Blob, if written
	Text  *string  // text for mline and bline; the result of format
	Want  *Answer  // nil where Blob or Text is all there is to expect
	Notes []Evidence

	Head *Head
	File string
	Row  int // line of File that the record begins at
}

// Has says whether op is among the vector's operations.
func (v *Vector) Has(op Op) bool { return slices.Contains(v.Ops, op) }

// Place is file and line.
func (v *Vector) Place() string { return v.File + ":" + strconv.Itoa(v.Row) }

// Rejects says whether the vector is to be rejected.
func (v *Vector) Rejects() bool { return v.Want != nil && v.Want.Outcome == Reject }

// Group is the first part of the ID.
func (v *Vector) Group() string {
	group, _, _ := strings.Cut(v.ID, "/")
	return group
}
