package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// BTP/1, the protocol between the runner and a testee: lines of words with one
// blank between. README.md has all of it.

const helloRequest = "hello btp=1"

// Line is the request in BTP/1, without its line end.
func (r Request) Line(id string) string {
	head := string(r.Op) + " " + id + " "
	switch r.Op {
	case OpEncode:
		return head + "machine=" + r.Machine.String() + " search=" + r.Search.String() + " " + r.In.String()
	case OpFormat:
		if r.In != nil {
			return head + r.In.String()
		}
		return head + "blob=" + formatHex(r.Data)
	}
	out := head + formatHex(r.Data)
	switch r.Op {
	case OpDecode, OpEnd:
		out += " word=" + strconv.Itoa(r.Word)
	case OpMline:
		if r.Lenient {
			out += " reading=lenient"
		} else {
			out += " reading=strict"
		}
		out += " word=" + strconv.Itoa(r.Word)
	}
	return out
}

// parseRequest reads a request line, but for hello and quit. ok is false if the
// operation is none that BTP/1 has, which a testee may well be asked.
func parseRequest(line string) (id string, r Request, ok bool, err error) {
	words := strings.Split(line, " ")
	if len(words) < 2 || words[1] == "" {
		return "", r, false, fmt.Errorf("%q, expected OP ID and what the operation needs", clip(line))
	}
	op, err := parseOp(words[0])
	if err != nil {
		return words[1], r, false, nil
	}
	r = Request{Op: op, Word: 64, Machine: codec.MachineExact64}
	args := words[2:]
	switch op {
	case OpEncode:
		err = r.parseEncode(args)
	case OpFormat:
		err = r.parseFormat(args)
	default:
		err = r.parseData(args)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op, err)
	}
	return words[1], r, true, err
}

func (r *Request) parseEncode(args []string) error {
	if len(args) < 3 {
		return errors.New("too few words, expected machine=M [search=S] size=N pcs=LIST")
	}
	options, value := args[:len(args)-2], args[len(args)-2:]
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
	if len(args) == 1 {
		text, ok := strings.CutPrefix(args[0], "blob=")
		if !ok {
			return fmt.Errorf("%q, expected blob=HEX or size=N pcs=LIST", clip(args[0]))
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
		case word == "word=32" && r.Op != OpSalvage && r.Op != OpBline:
			r.Word = 32
		case word == "word=64" && r.Op != OpSalvage && r.Op != OpBline:
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

// Line is the answer to a request for op with this id, without its line end.
func (a Answer) Line(op Op, id string) string {
	switch a.Outcome {
	case OK:
		switch op {
		case OpEncode:
			return "blob " + id + " " + formatHex(a.Data)
		case OpFormat:
			return "text " + id + " " + formatHex(a.Data)
		case OpSalvage:
			return fmt.Sprintf("part %s depth=%d pcs=%s", id, a.Depth, formatPCs(a.Value.PCs))
		}
		return "ok " + id + " " + a.Value.String()
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

// ParseAnswer reads the line, without its end, that a testee answered to the
// request for op with this id. An error says what was expected.
func ParseAnswer(line string, op Op, id string) (a Answer, err error) {
	a.Bit = -1
	verb, rest, _ := strings.Cut(line, " ")
	got, rest, _ := strings.Cut(rest, " ")
	want := map[Op]string{OpEncode: "blob", OpFormat: "text", OpSalvage: "part"}[op]
	if want == "" {
		want = "ok"
	}
	switch verb {
	case "ok", "reject", "blob", "text", "part", "skip":
	default:
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
	switch want {
	case "ok":
		a.Value, err = parseValue(rest)
	case "part":
		a, err = parseWant("part "+rest, false)
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
	a.Reason = reason
	word, after, _ := strings.Cut(rest, " ")
	if text, ok := strings.CutPrefix(word, "bit="); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("bit=%q, expected a number", clip(text))
		}
		a.Bit, rest = n, after
	}
	a.Text = rest
	return nil
}

// Line is the answer to hello, without its line end.
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
	return strings.Join(words, " ")
}

// ParseHello reads the line that a testee answered to hello.
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
		default:
			return h, fmt.Errorf("hello: %q, expected name= version= ops= or machines=", clip(word))
		}
	}
	if len(h.Ops) == 0 {
		return h, fmt.Errorf("%q without ops, expected the likes of ops=decode,encode", clip(line))
	}
	return h, nil
}
