package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Outcome is the kind of an answer.
type Outcome string

const (
	OK       Outcome = "ok"       // a value, right or wrong
	Reject   Outcome = "reject"   // the input was refused
	Crash    Outcome = "crash"    // the program ended before it answered
	Hang     Outcome = "hang"     // no answer in time
	Skip     Outcome = "skip"     // the implementation does not support the request
	Protocol Outcome = "protocol" // the answer is not BTP/1
)

// Answer is a testee's answer to a request, or the answer that a vector expects.
type Answer struct {
	Outcome Outcome
	Value   Value  // decode, end, mline, bline; of salvage the frames
	Depth   int    // salvage: frames that the blob announces
	Sized   bool   // salvage: the size is complete
	Data    []byte // encode, format, pencode, vencode
	Words   string // marks, scan, hline, log, pline, dumps and others: the answer after its verb
	Reason  string // of a rejection; "" if none was given
	Bit     int    // of a rejection: bit=, or -1 if not given
	Signal  string // of a crash: signal, such as SIGSEGV, or EXIT-3 if the program exited
	Text    string // further words of a rejection, a skip or a protocol violation
}

// Describe returns the answer to op in the words of `want:`.
func (a Answer) Describe(op Op) string {
	switch a.Outcome {
	case OK:
		o := op.row().out
		if o.show != nil {
			return o.verb + " " + o.show(a)
		}
		return o.verb + " " + o.write(a)
	case Reject:
		out := "reject " + a.Reason
		if a.Reason == "" {
			out = "reject (no reason given)"
		}
		if a.Text != "" {
			out += " (" + a.Text + ")"
		}
		return out
	case Crash:
		how := "crash " + a.Signal
		if code, ok := strings.CutPrefix(a.Signal, "EXIT-"); ok {
			how = "crash: ended with exit code " + code + " before it answered"
		}
		if a.Text != "" {
			how += ": " + a.Text
		}
		return how
	case Hang:
		return strings.TrimSuffix("hang: "+a.Text, ": ")
	case Skip, Protocol:
		return strings.TrimRight(string(a.Outcome)+" "+a.Text, " ")
	}
	return string(a.Outcome)
}

// Trouble reports whether the implementation crashed, hung or violated the protocol.
func (a Answer) Trouble() bool {
	return a.Outcome == Crash || a.Outcome == Hang || a.Outcome == Protocol
}

// parseWant reads the value of `want:`. If observed is true, it also accepts crash, hang and
// skip.
func parseWant(text string, observed bool) (Answer, error) {
	word, rest, _ := strings.Cut(text, " ")
	a := Answer{Outcome: Outcome(word), Bit: -1}
	if o := outputOf(word); o != nil && !o.data {
		a.Outcome = OK
		return a, o.parse(&a, rest)
	}
	switch {
	case word == "reject":
		if !slices.Contains(codec.Reasons(), codec.Reason(rest)) {
			return a, fmt.Errorf("reason %q, expected one of %s", rest, joined(codec.Reasons(), " "))
		}
		a.Reason = rest
		return a, nil
	case observed && word == "crash" && rest != "":
		a.Signal = rest
		return a, nil
	case observed && (text == "hang" || text == "skip"):
		return a, nil
	case observed:
		return a, fmt.Errorf("%q, expected ok, reject REASON, part, crash SIGNAL, hang or skip", text)
	}
	return a, fmt.Errorf("%q, expected ok size=N pcs=LIST, reject REASON, part depth=N size=N pcs=LIST, or marks, "+
		"found, head, records, paths, events, dumps, name, offsets or addresses and words", clip(text))
}
