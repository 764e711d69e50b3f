package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// output is the form of the answers to an operation.
type output struct {
	verb  string
	data  bool                               // the answer is bytes, which `want:` cannot have
	write func(a Answer) string              // the words of BTP/1 after the ID
	parse func(a *Answer, text string) error // the reverse of write
	show  func(a Answer) string              // the words of a report; nil if they are those of write
	json  func(op Op, a Answer) jsonValue
}

var stackOutput = output{verb: "ok",
	write: func(a Answer) string { return a.Value.String() },
	parse: func(a *Answer, text string) (err error) { a.Value, err = parseValue(text); return err },
	json:  func(op Op, a Answer) jsonValue { return jsonStack(&a.Value) }}

var blobOutput = output{verb: "blob", data: true,
	write: func(a Answer) string { return words.Hex(a.Data) },
	parse: func(a *Answer, text string) (err error) { a.Data, err = words.ParseHex(text); return err },
	json:  func(op Op, a Answer) jsonValue { return jsonBytes(a.Data, false) }}

var textOutput = output{verb: "text", data: true, write: blobOutput.write, parse: blobOutput.parse,
	show: func(a Answer) string { return strconv.Quote(string(a.Data)) },
	json: func(op Op, a Answer) jsonValue {
		if a.Words != "" { // lines of any form
			return jsonValue{Fields: fieldsOf(op, a.Words)}
		}
		return jsonBytes(a.Data, true)
	}}

var partOutput = output{verb: "part", write: Answer.part, parse: (*Answer).parsePart,
	json: func(op Op, a Answer) jsonValue {
		v := jsonStack(&a.Value)
		v.Depth = &a.Depth
		if !a.Sized {
			v.Size = nil
		}
		return v
	}}

// dumpsOutput has the paths of each dump in any order.
var dumpsOutput = func() output {
	o := wordsOutput("dumps")
	o.show = func(a Answer) string { return sortedDumps(a.Words) }
	return o
}()

// wordsOutput is the form of answers that are stored as words.
func wordsOutput(verb string) output {
	return output{verb: verb,
		write: func(a Answer) string { return a.Words },
		parse: func(a *Answer, text string) error { a.Words = text; return nil },
		json:  func(op Op, a Answer) jsonValue { return jsonValue{Fields: fieldsOf(op, a.Words)} }}
}

// outputOf returns the form of answers with this verb, or nil.
func outputOf(verb string) *output {
	at := slices.IndexFunc(operations, func(o *operation) bool { return o.out.verb == verb })
	if at < 0 {
		return nil
	}
	return &operations[at].out
}

// part returns a salvaged stack in words.
func (a Answer) part() string {
	size := "-"
	if a.Sized {
		size = strconv.FormatUint(a.Value.Size, 10)
	}
	return fmt.Sprintf("depth=%d size=%s pcs=%s", a.Depth, size, formatPCs(a.Value.PCs))
}

// parsePart reads "depth=N size=N pcs=LIST". The size is - if it was cut off.
func (a *Answer) parsePart(text string) (err error) {
	list := strings.Split(text, " ")
	bad := fmt.Errorf("%q, expected part depth=0..32 size=N pcs=LIST, - for a size that is cut", clip(text))
	if len(list) != 3 {
		return bad
	}
	depth, okDepth := strings.CutPrefix(list[0], "depth=")
	size, okSize := strings.CutPrefix(list[1], "size=")
	pcs, okPCs := strings.CutPrefix(list[2], "pcs=")
	n, err := strconv.Atoi(depth)
	if !okDepth || !okSize || !okPCs || err != nil || n < 0 || n > 32 {
		return bad
	}
	a.Depth = n
	if a.Sized = size != "-"; a.Sized {
		if a.Value.Size, err = parseSize(size); err != nil {
			return err
		}
	}
	a.Value.PCs, err = parsePCs(pcs)
	return err
}
