package fuzz

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/conformance"
)

// Generator makes up requests: half by a model of the format, half by mutation of vectors. It asks only
// what BTP/1 allows, what the testee offers, and what SPEC.md decides. The same source gives the
// same requests.
type Generator struct {
	*maker
	hello conformance.Hello
	ops   []conformance.Op // each as often as it is to be asked
	seeds map[conformance.Op][]seed
}

// seed is a request of a vector.
type seed struct {
	r    conformance.Request
	form string
}

// weights lists how often operations are asked: those with more state more often.
var weights = map[conformance.Op]int{"dumps": 16, "log": 10, "pline": 9, "hline": 7,
	"vline": 7, "scan": 5, "marks": 3, "name": 2, "end": 2}

// NewGenerator returns a Generator for a testee that says h of itself, of requests for ops; if there are
// none, of all that it offers.
func NewGenerator(src rand.Source, h conformance.Hello, ops ...conformance.Op) (*Generator, error) {
	set, err := conformance.Builtin()
	if err != nil {
		return nil, err
	}
	g := &Generator{maker: newMaker(src), hello: h, seeds: map[conformance.Op][]seed{}}
	for _, v := range set.Vectors {
		for _, op := range v.Ops {
			if r := v.Request(op, h); g.fits(&r) && (isText(op) || isBlob(op) || legal(&r)) {
				g.seeds[op] = append(g.seeds[op], seed{r, form(&r)})
			}
		}
	}
	for _, op := range h.Ops {
		if len(g.seeds[op]) > 0 && (len(ops) == 0 || slices.Contains(ops, op)) {
			g.ops = append(g.ops, slices.Repeat([]conformance.Op{op}, max(4, weights[op]))...)
		}
	}
	return g, nil
}

// Use makes up the next requests from another source.
func (g *Generator) Use(src rand.Source) { g.maker = newMaker(src) }

// Next returns a request; ok is false if nothing can be asked.
func (g *Generator) Next() (r conformance.Request, ok bool) {
	for tries := 0; len(g.ops) > 0 && tries < 1000; tries++ {
		op := pick(g.maker, g.ops...)
		if r, ok = g.modelled(op); !ok {
			r, ok = g.mutated(op)
		}
		if ok && g.fits(&r) {
			return r, true
		}
	}
	return r, false
}

// drop leaves out an operation from now on.
func (g *Generator) drop(op conformance.Op) {
	g.ops = slices.DeleteFunc(g.ops, func(o conformance.Op) bool { return o == op })
}

// fits reports whether a request may be asked.
func (g *Generator) fits(r *conformance.Request) bool {
	if len(r.Data) > 20000 || len(r.Words) > 20000 || !g.hello.Offers(*r) {
		return false
	}
	if r.Word == 64 && len(g.hello.Machines) > 0 && !slices.ContainsFunc(g.hello.Machines, func(m codec.Machine) bool { return m.Word() == 64 }) {
		r.Word = 32
	}
	return !isOpen(r)
}

// isOpen reports whether SPEC.md leaves the answer to a request open.
func isOpen(r *conformance.Request) bool {
	if r.Op != "log" && r.Op != "dumps" && r.Op != "scan" {
		return len(r.Data) > 4095 && (r.Op == "pline" || r.Op == "hline") // BT-PLINE-3, BT-LIM-4
	}
	for it := range recording.Items(r.Data) {
		if !it.Found() {
			continue
		}
		rest := r.Data[int(it.Offset)+it.Extent():]
		spaces := len(rest) - len(bytes.TrimLeft(rest, " \t"))
		switch kind := it.Text[1]; {
		case kind == 'h' && it.Extent()+spaces > 4090, strings.IndexByte("bp", kind) >= 0 && it.Extent() > 4090: // BT-LIM-4, BT-PLINE-3
			return true
		case r.Op == "scan":
		case (kind == 'm' || kind == 'e') && it.Lenient: // strict or lenient is the reader's choice
			return true
		}
	}
	return false
}

// modelled makes up half of the requests that there is a model for. A third of them break a rule.
func (g *Generator) modelled(op conformance.Op) (r conformance.Request, ok bool) {
	g.log = logState{}
	r = conformance.Request{Op: op, Word: pick(g.maker, 64, 64, 32), Lenient: op == "mline" && g.chance(50)}
	if op == "marks" || op == "log" || op == "dumps" {
		r.Word = 64
	}
	if g.chance(50) {
		return r, false
	}
	text := g.model(&r)
	if text == "" {
		return r, false
	}
	if g.chance(33) {
		text = g.mutate(text, text, op)
	}
	return withForm(r, text)
}

// mutated changes a request of a vector.
func (g *Generator) mutated(op conformance.Op) (conformance.Request, bool) {
	base := pick(g.maker, g.seeds[op]...)
	r, text := base.r, base.form
	if len(text) > 8000 {
		return r, false
	}
	if isText(op) && g.chance(20) { // the text as it is: nothing is repaired
		r.Data = []byte(g.bytes(g.bytes(string(r.Data))))
		return r, true
	}
	for range 1 + g.few() {
		text = g.mutate(text, pick(g.maker, g.seeds[op]...).form, op)
	}
	if isBlob(op) && op != "marks" && g.chance(15) {
		r.Word = pick(g.maker, 32, 64)
	}
	r.Lenient = r.Lenient != (op == "mline" && g.chance(10))
	out, ok := withForm(r, text)
	if out.In != nil && out.Op != "format" && g.chance(30) && len(g.hello.Machines) > 0 {
		out.Machine, out.Search = pick(g.maker, g.hello.Machines...), pick(g.maker, codec.SearchLws, codec.SearchBest)
	}
	return out, ok
}

var digitRuns = regexp.MustCompile(`[0-9a-f]+`)

// mutate makes one change of a form.
func (m *maker) mutate(text, other string, op conformance.Op) string {
	sep := pick(m, "\n", " ", ";", ",", "/")
	if strings.Count(text, "\n") > 2 && m.chance(40) {
		sep = "\n"
	}
	parts, theirs := strings.Split(text, sep), strings.Split(other, sep)
	at, from := m.IntN(len(parts)), m.IntN(len(theirs))
	switch m.IntN(9) {
	case 0, 1: // a number
		all := digitRuns.FindAllStringIndex(text, -1)
		if len(all) == 0 {
			return text
		}
		p := pick(m, all...)
		old := text[p[0]:p[1]]
		n := m.dec()
		if strings.ContainsAny(old, "abcdef") || m.chance(30) {
			n = m.hex()
		}
		if v, err := strconv.ParseUint(old, 10, 64); err == nil && m.chance(50) {
			n = strconv.FormatUint(v+uint64(m.IntN(5))-2, 10)
		}
		return text[:p[0]] + n + text[p[1]:]
	case 2: // a part less
		return strings.Join(slices.Delete(parts, at, at+1), sep)
	case 3: // a part twice, or often
		n := pick(m, 1, 1, 1, 1, 1, 1, 1, pick(m, 2, 15, 16, 31, 63, 255, 256))
		parts[at] = strings.Repeat(parts[at]+sep, n) + parts[at]
	case 4: // parts change places
		k := m.IntN(len(parts))
		parts[at], parts[k] = parts[k], parts[at]
	case 5: // a part of another request
		parts[at] += sep + theirs[from]
	case 6: // the end of another request
		parts = append(parts[:at], theirs[from:]...)
	case 7: // a part that the model makes up
		switch {
		case op == "log" || op == "dumps" || op == "scan":
			return m.insert(text)
		case op == "hline":
			k := pick(m, headerKeys...)
			return text + " " + k + "=" + m.escaped(m.value(k))
		case isBlob(op):
			return text + " " + pick(m, m.junk(30), "U"+strconv.Itoa(1+m.IntN(15))+":"+m.hex(), "L"+m.hex(), "n"+strconv.Itoa(m.IntN(60)))
		}
		return m.bytes(text)
	case 8:
		return m.bytes(text)
	}
	return strings.Join(parts, sep)
}

// bytes changes a byte of a text.
func (m *maker) bytes(text string) string {
	b := []byte(text)
	at := m.IntN(len(b) + 1)
	insert := m.chance(30)
	if insert || at == len(b) {
		return string(slices.Insert(b, at, pick(m, []byte(" ~#=%+,0x19aAzZ\n\r\t\f\x1b/-_mbehpv&g")...)))
	}
	switch m.IntN(3) {
	case 0:
		b[at] ^= 1 << m.IntN(8)
	case 1:
		b = slices.Delete(b, at, at+1)
	case 2:
		if strings.IndexByte(digitChars, b[at]) >= 0 {
			b[at] = digitChars[m.IntN(64)]
		}
	}
	return string(b)
}
