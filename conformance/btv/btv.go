// Package btv reads the form of vectors: files of records, whose keys are an input of a decoder or
// encoder and the answer that the specification demands. README.md describes the form. The meaning
// of operations, of inputs and of answers in words is for package conformance.
package btv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Head holds the keys that apply to a whole file.
type Head struct {
	Source, Library, Compiler, Options, Platform string
	Machine                                      string // of records that name none
	// AnySpill reports that the spill bits of recorded blobs depend on the encoder's
	// compiler.
	AnySpill bool
}

// Observed is what an implementation was observed to answer. It is never an expectation.
type Observed struct {
	Name string // such as lws-x86_64
	Text string // in the form of want:
}

// Vector is one record of a file.
type Vector struct {
	ID      string // unique in a set; begins with the platform of the head, if it has one
	Clauses []string
	Musts   []string // requirements of these clauses that it tests, such as BT-TEXT-2.3
	OpNames []string
	Why     string
	Control string
	Differs Differs

	HasMachine bool
	Machine    codec.Machine
	Search     codec.Search
	Word       int // 32 or 64
	Lenient    bool

	InText   string  // words of `in:`; "" if there is none
	Bits     *Bits   // the blob from `bits:`, nil if there is none
	Blob     []byte  // from hex or bits; nil if there is neither
	Digits   []byte  // a ~p# or ~v# line from `digits:`, without lead-in and CRC
	Line     string  // ~m# text of Blob, if written
	Text     *string // nil if there is none
	WantText string  // words of `want:`; "" if there is none
	Observed []Observed

	Head *Head
	File string
	Row  int // line of File at which the record begins

	rows map[string]int // of keys
}

// Place returns the vector's file and line, as "FILE:LINE".
func (v *Vector) Place() string { return v.File + ":" + strconv.Itoa(v.Row) }

// Fault returns an error at the line of the key, or at the first line of the record if key is "".
func (v *Vector) Fault(key string, err error) error {
	if row, ok := v.rows[key]; ok {
		return &ParseError{v.File, row, err.Error()}
	}
	return &ParseError{v.File, v.Row, v.ID + ": " + err.Error()}
}

// Input returns the text or the blob of the vector.
func (v *Vector) Input() []byte {
	if v.Text != nil {
		return []byte(*v.Text)
	}
	return v.Blob
}

// Group returns the part of the ID before its first slash.
func (v *Vector) Group() string {
	group, _, _ := strings.Cut(v.ID, "/")
	return group
}

// ClauseOf returns the clause of a requirement.
func ClauseOf(must string) string {
	id, _, _ := strings.Cut(must, ".")
	return id
}

// ParseError is an error in a vector file, a file of known failures, or a line of BTP/1. It
// has the place of the error, and a message with the expectation.
type ParseError struct {
	File string
	Row  int // from 1
	Msg  string
}

// Error returns "FILE:ROW: MESSAGE".
func (e *ParseError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Row, e.Msg) }

// sortMusts sorts requirements by their clauses, in the order of clauses.
func sortMusts(musts, clauses []string) {
	slices.SortStableFunc(musts, func(a, b string) int {
		return slices.Index(clauses, ClauseOf(a)) - slices.Index(clauses, ClauseOf(b))
	})
}
