package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// This file implements BTP/1, the protocol between the runner and a testee: lines of words
// separated by single spaces. README.md describes it.

const helloRequest = "hello btp=1"

// Line returns the request in BTP/1, without its line end.
func (r Request) Line(id string) string {
	head := string(r.Op) + " " + id + " "
	switch {
	case r.Op.encodes():
		return head + "machine=" + r.Machine.String() + " search=" + r.Search.String() + " " + r.In.String()
	case r.Op == OpFormat && r.In != nil:
		return head + r.In.String()
	case r.Op == OpFormat && r.Words != "":
		return head + "head " + r.Words
	case r.Op == OpFormat && r.Event:
		return head + "event=" + formatHex(r.Data)
	case r.Op == OpFormat:
		return head + "blob=" + formatHex(r.Data)
	}
	if kinds[r.Op].in != "" {
		return head + r.Words
	}
	out := head + formatHex(r.Data)
	switch r.Op {
	case OpDecode, OpEnd, OpUser, OpEline, OpSalvage, OpBare:
		out += " word=" + strconv.Itoa(r.word())
	case OpMline:
		if r.Lenient {
			out += " reading=lenient"
		} else {
			out += " reading=strict"
		}
		out += " word=" + strconv.Itoa(r.word())
	}
	return out
}

// parseRequest reads a request line other than hello and quit. ok is false if the operation is
// not in BTP/1; that is not an error, since runners of later versions may ask it.
func parseRequest(line string) (id string, r Request, ok bool, err error) {
	words := strings.Split(line, " ")
	if len(words) < 2 || words[1] == "" {
		return "", r, false, fmt.Errorf("%q, expected OP ID and what the operation needs", clip(line))
	}
	if strings.ContainsFunc(words[1], func(c rune) bool { return c <= ' ' || c > '~' }) { // it is repeated in the answer
		return "", r, false, fmt.Errorf("ID %q, expected printable ASCII", clip(words[1]))
	}
	op, err := parseOp(words[0])
	if err != nil {
		return words[1], r, false, nil
	}
	r = Request{Op: op, Word: 64, Machine: codec.MachineExact64}
	args := words[2:]
	switch op {
	case OpEncode, OpUserEncode, OpEventEncode, OpBareEncode:
		err = r.parseEncode(args)
	case OpFormat:
		err = r.parseFormat(args)
	case OpPencode, OpVencode, OpName, OpOffsets, OpAddresses:
		r.Words = strings.Join(args, " ")
		err = checkWords(op, r.Words)
	default:
		err = r.parseData(args)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op, err)
	}
	return words[1], r, true, err
}

func (r *Request) parseEncode(args []string) error {
	at := slices.IndexFunc(args, func(w string) bool { return strings.HasPrefix(w, "size=") })
	if at < 0 {
		return errors.New("no size, expected machine=M [search=S] size=N pcs=LIST")
	}
	options, value := args[:at], args[at:]
	machine := false
	for _, word := range options {
		key, text, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "machine":
			r.Machine, err = codec.ParseMachine(text)
			machine = true
		case "search":
			r.Search, err = codec.ParseSearch(text)
		default:
			err = fmt.Errorf("%q, expected machine=M or search=S", clip(word))
		}
		if err != nil {
			return err
		}
	}
	if !machine {
		return errors.New("no machine, expected machine=M")
	}
	v, err := parseValue(strings.Join(value, " "))
	r.In = &v
	return err
}

func (r *Request) parseFormat(args []string) error {
	if len(args) > 1 && args[0] == "head" {
		r.Words = strings.Join(args[1:], " ")
		return nil
	}
	if len(args) == 1 {
		text, ok := strings.CutPrefix(args[0], "blob=")
		if !ok {
			text, r.Event = strings.CutPrefix(args[0], "event=")
		}
		if !ok && !r.Event {
			return fmt.Errorf("%q, expected blob=HEX, event=HEX, head and words, or size=N pcs=LIST", clip(args[0]))
		}
		var err error
		r.Data, err = parseHex(text)
		return err
	}
	v, err := parseValue(strings.Join(args, " "))
	r.In = &v
	return err
}

func (r *Request) parseData(args []string) error {
	if len(args) == 0 {
		return errors.New("nothing, expected bytes in hex")
	}
	var err error
	if r.Data, err = parseHex(args[0]); err != nil {
		return err
	}
	for _, word := range args[1:] {
		switch {
		case word == "word=32" && hasWord(r.Op):
			r.Word = 32
		case word == "word=64" && hasWord(r.Op):
			r.Word = 64
		case word == "reading=strict" && r.Op == OpMline:
			r.Lenient = false
		case word == "reading=lenient" && r.Op == OpMline:
			r.Lenient = true
		default:
			return fmt.Errorf("%q, expected word=32, word=64 or, of mline, reading=strict or reading=lenient", clip(word))
		}
	}
	return nil
}

// hasWord reports whether requests for op contain the word size.
func hasWord(op Op) bool {
	switch op {
	case OpDecode, OpEnd, OpMline, OpUser, OpEline, OpSalvage, OpBare:
		return true
	}
	return false
}

// Line returns the answer to a request for op with this ID, without a line end.
func (a Answer) Line(op Op, id string) string {
	switch a.Outcome {
	case OK:
		verb := kinds[op].answer + " " + id + " "
		switch {
		case op == OpBareEncode:
			return verb + strconv.Itoa(a.Bits) + " " + formatHex(a.Data)
		case op.encodes() || kinds[op].answer == "text":
			return verb + formatHex(a.Data)
		case op == OpSalvage:
			return verb + a.part()
		case kinds[op].words:
			return verb + a.Words
		}
		return verb + a.Value.String()
	case Reject:
		out := "reject " + id + " " + a.Reason
		if a.Bit >= 0 {
			out += " bit=" + strconv.Itoa(a.Bit)
		}
		if a.Text != "" {
			out += " " + a.Text
		}
		return out
	}
	return strings.TrimRight("skip "+id+" "+a.Text, " ")
}

// ParseAnswer reads the line, without its line end, that a testee answered to the request for
// op with this ID. An error states the expectation.
func ParseAnswer(line string, op Op, id string) (a Answer, err error) {
	a.Bit = -1
	verb, rest, _ := strings.Cut(line, " ")
	got, rest, _ := strings.Cut(rest, " ")
	want := kinds[op].answer
	switch verb {
	case "ok", "reject", "blob", "text", "part", "bits", "skip":
	default:
		if answersWords(verb) {
			break
		}
		return a, fmt.Errorf("expected %s %s …, reject %s REASON or skip %s", want, id, id, id)
	}
	if got != id {
		return a, fmt.Errorf("id %q, expected %s, the oldest without an answer", clip(got), id)
	}
	switch verb {
	case "skip":
		a.Outcome, a.Text = Skip, rest
		return a, nil
	case "reject":
		a.Outcome = Reject
		return a, a.parseReject(rest)
	case want:
	default:
		return a, fmt.Errorf("%s, expected %s, reject or skip to %s", verb, want, op)
	}
	a.Outcome = OK
	switch {
	case want == "ok":
		a.Value, err = parseValue(rest)
	case want == "part":
		err = a.parsePart(rest)
	case want == "bits":
		n, data, _ := strings.Cut(rest, " ")
		if a.Bits, err = strconv.Atoi(n); err != nil || a.Bits < 0 {
			return a, fmt.Errorf("%q, expected the number of bits and bytes in hex", clip(rest))
		}
		a.Data, err = parseHex(data)
	case kinds[op].words:
		a.Words = rest
	default:
		a.Data, err = parseHex(rest)
	}
	return a, err
}

// parseReject reads REASON [bit=N] [any words].
func (a *Answer) parseReject(rest string) error {
	reason, rest, _ := strings.Cut(rest, " ")
	if reason == "" {
		return errors.New("no reason, expected reject ID REASON")
	}
	if len(reason) > maxReason {
		return fmt.Errorf("reason %q, expected a word of up to %d bytes", clip(reason), maxReason)
	}
	a.Reason = reason
	word, after, _ := strings.Cut(rest, " ")
	if text, ok := strings.CutPrefix(word, "bit="); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("bit=%q, expected a number", clip(text))
		}
		a.Bit, rest = n, after
	}
	if len(rest) > maxText {
		rest = strings.ToValidUTF8(rest[:maxText], "") + "..."
	}
	a.Text = rest
	return nil
}

// maxReason and maxText limit the words of a rejection, in bytes, because they are printed for
// each vector that fails.
const maxReason, maxText = 64, 400

// Line returns the answer to hello, without a line end.
func (h Hello) Line() string {
	words := []string{"hello", "btp=1", "name=" + h.Name, "version=" + h.Version}
	ops := make([]string, len(h.Ops))
	for i, op := range h.Ops {
		ops[i] = string(op)
	}
	machines := make([]string, len(h.Machines))
	for i, m := range h.Machines {
		machines[i] = m.String()
	}
	words = append(words, "ops="+strings.Join(ops, ","))
	if len(machines) > 0 {
		words = append(words, "machines="+strings.Join(machines, ","))
	}
	searches := make([]string, len(h.Searches))
	for i, s := range h.Searches {
		searches[i] = s.String()
	}
	if len(searches) > 0 {
		words = append(words, "searches="+strings.Join(searches, ","))
	}
	return strings.Join(words, " ")
}

// ParseHello reads a testee's answer to hello.
func ParseHello(line string) (h Hello, err error) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "hello" || words[1] != "btp=1" {
		return h, fmt.Errorf("%q, expected hello btp=1 name=… version=… ops=…", clip(line))
	}
	for _, word := range words[2:] {
		key, text, _ := strings.Cut(word, "=")
		switch key {
		case "name":
			h.Name = text
		case "version":
			h.Version = text
		case "ops":
			for _, name := range strings.Split(text, ",") {
				op, err := parseOp(name)
				if err != nil {
					return h, fmt.Errorf("hello: %w", err)
				}
				h.Ops = append(h.Ops, op)
			}
		case "machines":
			for _, name := range strings.Split(text, ",") {
				m, err := codec.ParseMachine(name)
				if err != nil {
					return h, fmt.Errorf("hello: %w", err)
				}
				h.Machines = append(h.Machines, m)
			}
		case "searches":
			for _, name := range strings.Split(text, ",") {
				s, err := codec.ParseSearch(name)
				if err != nil {
					return h, fmt.Errorf("hello: %w", err)
				}
				h.Searches = append(h.Searches, s)
			}
		default:
			return h, fmt.Errorf("hello: %q, expected name= version= ops= machines= or searches=", clip(word))
		}
	}
	if len(h.Ops) == 0 {
		return h, fmt.Errorf("%q without ops, expected ops=OP,OP such as ops=decode,encode", clip(line))
	}
	return h, nil
}
