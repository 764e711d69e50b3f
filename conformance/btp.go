package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// This file implements BTP/1, the protocol between the runner and a testee: lines of words
// separated by single spaces. README.md describes it.

const helloRequest = "hello btp=1"

// maxLine limits the length of a BTP/1 line, in bytes. The text of a blob of 65,535 bytes fits
// in hexadecimal, with space to spare.
const maxLine = 1 << 20

// Line returns the request in BTP/1, without its line end.
func (r Request) Line(id string) string {
	return string(r.Op) + " " + id + " " + r.Op.row().in.line(&r)
}

// ParseRequest reads a request line other than hello and quit. ok is false if the operation is
// not in BTP/1; that is not an error, since runners of later versions may ask it.
func ParseRequest(line string) (id string, r Request, ok bool, err error) {
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
	if err = op.row().in.parse(&r, words[2:]); err != nil {
		err = fmt.Errorf("%s: %w", op, err)
	}
	return words[1], r, true, err
}

// ParseAnswer reads the line, without its line end, that a testee answered to the request for
// op with this ID. An error states the expectation.
func ParseAnswer(line string, op Op, id string) (a Answer, err error) {
	a.Bit = -1
	verb, rest, _ := strings.Cut(line, " ")
	got, rest, _ := strings.Cut(rest, " ")
	want := op.row().out
	switch {
	case verb != "reject" && verb != "skip" && outputOf(verb) == nil:
		return a, fmt.Errorf("expected %s %s …, reject %s REASON or skip %s", want.verb, id, id, id)
	case got == "" && rest != "":
		return a, fmt.Errorf("two spaces, expected one between words")
	case got != id:
		return a, fmt.Errorf("id %q, expected %s, the oldest without an answer", clip(got), id)
	case verb == "skip":
		a.Outcome, a.Text = Skip, rest
		return a, nil
	case verb == "reject":
		a.Outcome = Reject
		return a, a.parseReject(rest)
	case verb != want.verb:
		return a, fmt.Errorf("%s, expected %s, reject or skip to %s", verb, want.verb, op)
	}
	a.Outcome = OK
	return a, want.parse(&a, rest)
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
			h.Ops, err = parseList(text, parseOp)
		case "machines":
			h.Machines, err = parseList(text, codec.ParseMachine)
		case "searches":
			h.Searches, err = parseList(text, codec.ParseSearch)
		default:
			return h, fmt.Errorf("hello: %q, expected name= version= ops= machines= or searches=", clip(word))
		}
		if err != nil {
			return h, fmt.Errorf("hello: %w", err)
		}
	}
	if len(h.Ops) == 0 {
		return h, fmt.Errorf("%q without ops, expected ops=OP,OP such as ops=decode,encode", clip(line))
	}
	return h, nil
}

// parseList reads names with commas between them.
func parseList[T any](text string, parse func(string) (T, error)) (list []T, err error) {
	for _, name := range strings.Split(text, ",") {
		x, err := parse(name)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}
