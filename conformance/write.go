package conformance

import (
	"bytes"
	"fmt"
	"strings"
)

// AppendBTV appends a .btv file with this head and these vectors to dst. It removes the head's
// platform from the IDs. Parsing the file gives the same vectors.
func AppendBTV(dst []byte, h *Head, vectors []*Vector) []byte {
	b := bytes.NewBuffer(dst)
	fmt.Fprintln(b, firstLine)
	put := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s: %s\n", key, value)
		}
	}
	put("source", h.Source)
	put("library", h.Library)
	put("compiler", h.Compiler)
	put("options", h.Options)
	put("platform", h.Platform)
	put("machine", h.machine)
	if h.AnySpill {
		put("spill", "any")
	}
	for _, v := range vectors {
		b.WriteByte('\n')
		v.write(put)
	}
	return b.Bytes()
}

// clauseWords lists the clauses of the vector, each with the requirements that the vector tests.
func (v *Vector) clauseWords() string {
	var words []string
	for _, id := range v.Clauses {
		plain := true
		for _, m := range v.Musts {
			if clauseOf(m) == id {
				words, plain = append(words, m), false
			}
		}
		if plain {
			words = append(words, id)
		}
	}
	return strings.Join(words, " ")
}

func (v *Vector) write(put func(key, value string)) {
	h := v.Head
	put("id", strings.TrimPrefix(v.ID, h.Platform+"/"))
	put("clause", v.clauseWords())
	ops := make([]string, len(v.Ops))
	for i, op := range v.Ops {
		ops[i] = string(op)
	}
	put("op", strings.Join(ops, " "))
	put("why", v.Why)
	put("control", v.Control)
	put("differs", v.Differs.String())
	word := 64
	if v.HasMachine {
		word = v.Machine.Word()
		if v.Machine.String() != h.machine {
			put("machine", v.Machine.String())
		}
	}
	if v.Search != 0 {
		put("search", v.Search.String())
	}
	if v.Word != word {
		put("word", fmt.Sprint(v.Word))
	}
	if v.Lenient {
		put("reading", "lenient")
	}
	if v.In != nil {
		put("in", v.In.String())
	}
	if v.Words != "" {
		put("in", v.WordsOf+" "+v.Words)
	}
	if v.Bits != nil {
		for _, line := range v.Bits.Lines {
			put("bits", line)
		}
	}
	if v.Blob != nil && (v.Bits == nil || !bytes.Equal(v.Blob, v.Bits.Blob())) {
		put("hex", formatHex(v.Blob))
	}
	put("line", v.Line)
	for _, line := range v.Digits {
		put("digits", line)
	}
	if v.Text != nil && v.Digits == nil {
		put("text", quoteText(*v.Text))
	}
	op := v.Ops[0]
	if v.Want != nil {
		switch k := kinds[op]; {
		case op == OpPencode && v.Want.Words != "":
			op = OpPline
		case op == OpVencode && v.Want.Words != "":
			op = OpVline
		case op.encodes() || k.answer == "text":
			op = OpDecode
		}
		put("want", v.Want.wantText(op))
	}
	for _, e := range v.Notes {
		put("want["+e.Name+"]", e.wantText(op))
	}
}
