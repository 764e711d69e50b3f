package fuzz

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// The form of a request is a text, which mutation and shrinking edit. What follows from the rest
// is not in it, and is computed when the form is made into a request: the CRC and base64 of lines,
// the length, padding, spill bits and depth of blobs.
//
//	blob       L406651 D0+3c9 D1-5*9 S1d60 U1:20 B0101: frames, size, user fields, bits
//	           d4, n9, n-: another depth than that of the frames, another length, no length
//	memory     X0aff and the form of a blob; X alone: bytes that no form gives
//	log, text  the text; in it ~m#(BLOB), ~e#(BLOB), ~p#(WORDS) and ~v#(WORDS) as BTP/1 has them,
//	           and ~p#{DIGITS}, ~v#{DIGITS} of lines that words cannot express
//	others     the words of BTP/1 behind the ID
//
// A value has *COUNT where the count is not that of its bits.

const digitChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

var (
	texts = []conformance.Op{"mline", "bline", "eline", "hline", "pline",
		"vline", "scan", "log", "dumps"}
	blobs = []conformance.Op{"decode", "end", "salvage", "marks", "user"}
)

func isText(op conformance.Op) bool { return slices.Contains(texts, op) }
func isBlob(op conformance.Op) bool { return slices.Contains(blobs, op) }

// form returns the form of a request.
func form(r *conformance.Request) string {
	switch {
	case isText(r.Op):
		return textForm(r.Data)
	case isBlob(r.Op):
		return blobForm(r.Data, r.Op)
	}
	_, words, _ := strings.Cut(r.Line("1"), " 1 ")
	return words
}

// withForm returns r with the input of a form; ok is false if it is none, or BTP/1 forbids it.
func withForm(r conformance.Request, text string) (out conformance.Request, ok bool) {
	switch {
	case isText(r.Op):
		r.Data, ok = textOf(text)
		return r, ok
	case isBlob(r.Op):
		r.Data, ok = blobOf(text)
		return r, ok
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || strings.Contains(" "+text+" ", "  ") {
		return r, false
	}
	_, out, _, err := conformance.ParseRequest(string(r.Op) + " 1 " + text)
	return out, err == nil && legal(&out)
}

// legal reports whether BTP/1 allows a request that parses.
func legal(r *conformance.Request) bool {
	switch r.Op {
	case "user-encode", "event-encode":
		for i, f := range r.In.User {
			if f.Tag > 6 || i > 0 && f.Tag <= r.In.User[i-1].Tag {
				return false
			}
		}
	case "encode":
		return len(r.In.User) == 0
	case "format": // any number, and escapes as a writer has them
		if r.Words != "" {
			text := number.ReplaceAllString(r.Words, "$1 1")
			h, ok := words.ParseHeader(text)
			return ok && words.Header(&h) == text
		}
		return r.In == nil || len(r.In.User) == 0
	case "pencode":
		_, list, _ := strings.Cut(r.Words, " ")
		p, err := words.ParsePathLine(list)
		return err == nil && p.Flags <= 7 && len(p.Entries) > 0 && p.String() == list
	case "name":
		p, err := words.ParsePath(r.Words)
		return err == nil && below27(p.Frames)
	case "addresses", "offsets": // ranges as BT-HEAD-6 has them
		_, code, _ := strings.Cut(r.Words, "code=")
		code, _, _ = strings.Cut(code, " ")
		_, ok := codec.ParseRanges(code)
		c, err := words.ParseOffsets(r.Words)
		return ok && (r.Op == "offsets" || err == nil && below27(c.List))
	case "vencode":
		l, err := words.ParseEventLine(r.Words)
		if err != nil || l.Flags > 1 || len(l.Events) == 0 || l.String() != r.Words {
			return false
		}
		next := l.Next
		for _, e := range l.Events {
			if e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
				if e.Number != next {
					return false
				}
				next++
			}
		}
	}
	return true
}

var number = regexp.MustCompile(`^([a-z]+) [0-9]+`)

func below27(frames []callpath.Frame) bool {
	return !slices.ContainsFunc(frames, func(f callpath.Frame) bool { return !f.Escaped && f.Value >= callpath.MaxOffset })
}

var (
	lineParts = regexp.MustCompile(`~[mepv]#(?:\([^()\n]*\)|\{[^{}\n]*\})`) // what a form has in another way than the text
	leadParts = regexp.MustCompile(`~[mepv]#[A-Za-z0-9+/]+={0,2}`)          // records and lines in a text
)

// textForm returns the form of a text.
func textForm(data []byte) string {
	if lineParts.Match(data) {
		return string(data)
	}
	return leadParts.ReplaceAllStringFunc(string(data), func(t string) string {
		for _, f := range partForms(t) {
			if back, ok := partOf(f); ok && back == t {
				return f
			}
		}
		return t
	})
}

// partForms returns the forms that a record or line may have.
func partForms(t string) (forms []string) {
	lead := t[:3]
	add := func(open, inner, end string) { forms = append(forms, lead+open+inner+end) }
	crc := 3
	switch lead {
	case "~m#", "~e#":
		if blob, err := base64.StdEncoding.Strict().DecodeString(t[3:]); err == nil {
			add("(", blobForm(blob, "user"), ")")
		}
		return forms
	case "~p#":
		if l, err := words.ReadPathLine([]byte(t)); err == nil {
			add("(", l.String(), ")")
		}
	case "~v#":
		crc = 6
		if l, err := words.ReadEventLine([]byte(t)); err == nil {
			add("(", l.String(), ")")
		}
	}
	if n := len(t) - crc; n >= 3 {
		add("{", t[3:n], "}")
	}
	return forms
}

// textOf is the reverse of textForm.
func textOf(text string) (data []byte, ok bool) {
	ok = true
	out := lineParts.ReplaceAllStringFunc(text, func(t string) string {
		part, good := partOf(t)
		ok = ok && good
		return part
	})
	return []byte(out), ok
}

// partOf is the reverse of partForms.
func partOf(f string) (part string, ok bool) {
	defer func() { // a writer panics on what no caller may ask of it
		if recover() != nil {
			ok = false
		}
	}()
	lead, inner := f[:3], f[4:len(f)-1]
	switch {
	case f[3] == '{':
		return string(callpath.AppendCRC([]byte(lead + inner))), strings.Trim(inner, digitChars) == ""
	case lead == "~m#" || lead == "~e#":
		blob, ok := blobOf(inner)
		return lead + base64.StdEncoding.EncodeToString(blob), ok
	case lead == "~p#":
		l, err := words.ParsePathLine(inner)
		if err != nil || l.Flags > 7 {
			return "", false
		}
		line, err := callpath.AppendLine(nil, l.Head, l.Entries)
		return string(line), err == nil
	}
	a := right(&conformance.Request{Op: "vencode", Words: inner})
	return string(a.Data), a.Outcome == conformance.OK
}
