package conformance

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

const cHead = `/*
 * The vectors of SPEC.md as C arrays, for tests without a parser. Written by "btconform list --c".
 * Operations and words are those of BTP/1 (conformance/BTP.md).
 */
#ifndef LWSBT_VECTORS_H
#define LWSBT_VECTORS_H

#include <stddef.h>
#include <stdint.h>

struct lwsbt_bytes {
	const unsigned char *data;
	size_t size;
};

struct lwsbt_vector {
	const char *id, *op;
	const char *why;		/* the mistake that it catches, or a remark */
	const char *reason;		/* of a rejection; NULL: it is accepted */
	const char *machine, *search;	/* of encoders, else NULL */
	unsigned char word, lenient;	/* of the request: 32 or 64, 0 or 1 */
	struct lwsbt_bytes in;		/* what is read; of format, a blob. data is NULL if there is none */
	const char *in_words;		/* other input, NULL if there is none */
	/* The stack that a reader returns or a writer is given. */
	uint64_t size;			/* bytes */
	size_t depth;			/* entries of pcs, innermost first */
	const uint64_t *pcs;
	size_t fields;			/* user fields: pairs of tag and value */
	const uint64_t *user;
	struct lwsbt_bytes out;		/* what a writer writes; data is NULL if there is none */
	const char *out_words;		/* other answers, NULL if there are none */
};

`

// WriteC writes the vectors as a C header with an array, an element for each operation.
func (s *Set) WriteC(w io.Writer) error {
	out := &cWriter{Writer: bufio.NewWriter(w)}
	out.WriteString(cHead)
	var elements strings.Builder
	hello := Hello{Machines: codec.Machines()}
	for _, v := range s.Vectors {
		for _, op := range v.Ops {
			elements.WriteString(out.element(newCheck(v, op, hello)))
		}
	}
	fmt.Fprintf(out, "\nstatic const struct lwsbt_vector lwsbt_vectors[] = {\n%s};\n\n#endif\n", elements.String())
	return out.Flush()
}

// cWriter writes the arrays that elements of lwsbt_vectors refer to.
type cWriter struct {
	*bufio.Writer
	arrays int
}

// element returns the element of a check.
func (w *cWriter) element(c check) string {
	r, a := c.asked, c.expected()
	e := fmt.Sprintf("\t{ .id = %s, .op = %s, .why = %s", cText(c.v.ID), cText(string(c.Op)), cText(c.v.Why))
	add := func(field, value string) {
		if value != "NULL" && value != "0" {
			e += ", ." + field + " = " + value
		}
	}
	stack := r.In
	if c.v.Rejects() {
		add("reason", cText(c.v.Want.Reason))
	} else {
		switch {
		case c.out.verb == stackOutput.verb:
			stack = &a.Value
		case c.out.data && a.Words == "":
			add("out", w.bytes(a.Data))
		default:
			add("out_words", w.text(cmp.Or(a.Words, c.out.write(a))))
		}
	}
	if _, writes := c.in.(stackInput); writes {
		add("machine", cText(r.Machine.String()))
		add("search", cText(r.Search.String()))
	}
	if in, reads := c.in.(bytesInput); reads {
		add("word", strconv.Itoa(r.word()))
		add("lenient", strconv.Itoa(b2i(in.reading && r.Lenient)))
	}
	switch {
	case r.Words != "":
		add("in_words", w.text(r.Words))
	case r.In == nil:
		add("in", w.bytes(r.Data))
	}
	if stack != nil {
		add("size", cNumber(stack.Size))
		add("depth", strconv.Itoa(len(stack.PCs)))
		add("pcs", w.numbers(stack.PCs))
		var user []uint64
		for _, f := range stack.User {
			user = append(user, uint64(f.Tag), f.Value)
		}
		add("fields", strconv.Itoa(len(stack.User)))
		add("user", w.numbers(user))
	}
	return e + " },\n"
}

// array writes an array and returns its name.
func (w *cWriter) array(of, list string) string {
	w.arrays++
	fmt.Fprintf(w, "static const %s a%d[] = {%s};\n", of, w.arrays, list)
	return fmt.Sprintf("a%d", w.arrays)
}

func (w *cWriter) bytes(data []byte) string {
	list := make([]string, max(1, len(data)))
	list[0] = "0" // an array of C has an element
	for i, b := range data {
		list[i] = strconv.Itoa(int(b))
	}
	return fmt.Sprintf("{ %s, %d }", w.array("unsigned char", strings.Join(list, ",")), len(data))
}

func (w *cWriter) numbers(values []uint64) string {
	if len(values) == 0 {
		return "NULL"
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = cNumber(v)
	}
	return w.array("uint64_t", strings.Join(list, ","))
}

// text returns words as a literal, or as an array if they are longer than a literal may be in C99.
func (w *cWriter) text(words string) string {
	if len(words) < 4000 {
		return cText(words)
	}
	list := make([]string, 0, len(words)+1)
	for _, b := range []byte(words) {
		list = append(list, strconv.Itoa(int(b)))
	}
	return w.array("char", strings.Join(append(list, "0"), ","))
}

func cNumber(v uint64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("UINT64_C(0x%x)", v)
}

// cText returns a string literal, in ASCII and without trigraphs.
func cText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\?`, c) >= 0 {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
