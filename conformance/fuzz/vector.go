package fuzz

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// Vector returns the finding as a record of a .btv file with this ID, and the vector that it is.
func (x *Finding) Vector(id string) (text string, v *conformance.Vector, err error) {
	r, want := &x.Request, &x.Want
	var b strings.Builder
	line := func(key, format string, args ...any) { fmt.Fprintf(&b, key+": "+format+"\n", args...) }
	line("id", "%s", id)
	line("clause", "%s", x.Clause)
	line("op", "%s", r.Op)
	accepted := want.Outcome == conformance.OK
	data := false // the answer is not in want:
	switch {
	case isText(r.Op) || isBlob(r.Op):
		if r.Word == 32 {
			line("word", "32")
		}
		if r.Lenient {
			line("reading", "lenient")
		}
		switch {
		case isText(r.Op):
			b.WriteString(textLines(r.Data))
		case strings.HasPrefix(x.Form(), "X"):
			line("hex", "%s", words.Hex(r.Data))
		default:
			line("hex", "%s  # %s", words.Hex(r.Data), x.Form())
		}
	case r.Op == "format":
		data = true
		switch {
		case r.In != nil:
			line("in", "%s", r.In.String())
		case r.Words != "":
			line("in", "head %s", r.Words)
		default:
			line("hex", "%s", words.Hex(r.Data))
		}
		if accepted {
			b.WriteString(textLines(want.Data))
		}
	case r.In != nil:
		data = true
		line("machine", "%v", r.Machine)
		line("search", "%v", r.Search)
		line("in", "%s", r.In.String())
		if accepted {
			line("hex", "%s", words.Hex(want.Data))
		}
	default:
		data = r.Op == "pencode" || r.Op == "vencode"
		of := map[conformance.Op]string{"pencode": "paths", "vencode": "events", "name": "path",
			"offsets": "addresses", "addresses": "frames"}[r.Op]
		line("in", "%s %s", of, r.Words)
	}
	switch {
	case want.Outcome == conformance.Reject:
		line("want", "reject %s", want.Reason)
	case !data:
		line("want", "%s", want.Describe(r.Op))
	}
	list, err := conformance.Parse("found.btv", []byte("btv 1\n\n"+b.String()))
	if err != nil {
		return b.String(), nil, err
	}
	return b.String(), list[0], nil
}

// textLines returns the keys of a text, one for each line. Lines that have a form follow it, as a comment.
func textLines(data []byte) (out string) {
	for l := range strings.Lines(string(data)) {
		if form := textForm([]byte(l)); form != l {
			form = strconv.QuoteToASCII(form)
			out += "# " + form[1:len(form)-1] + "\n"
		}
		q, err := json.Marshal(l)
		if err != nil || !utf8.ValidString(l) {
			q = []byte(hex.EncodeToString([]byte(l)))
		}
		out += "text: " + string(q) + "\n"
	}
	return cmp.Or(out, "text: \"\"\n")
}
