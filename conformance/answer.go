package conformance

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Outcome is what became of a question.
type Outcome string

const (
	OK       Outcome = "ok"       // a value, right or wrong
	Reject   Outcome = "reject"   // the input was refused
	Crash    Outcome = "crash"    // the testee ended before it answered
	Hang     Outcome = "hang"     // no answer in time
	Skip     Outcome = "skip"     // the testee does not do such
	Protocol Outcome = "protocol" // what it said is not BTP/1
)

// Answer is what a testee made of a request, or what a vector wants.
type Answer struct {
	Outcome Outcome
	Value   Value  // decode, end, mline, bline; of salvage the frames
	Depth   int    // salvage: frames that the blob announces
	Data    []byte // encode, format
	Reason  string // of a rejection; "" if none was given
	Bit     int    // of a rejection: where; -1 if not said
	Signal  string // of a crash: SIGSEGV, or EXIT-3 where it ended by itself
	Text    string // any further words: of a rejection, a skip, a broken line
}

// Describe returns the answer to op in the words of `want:`.
func (a Answer) Describe(op Op) string {
	switch a.Outcome {
	case OK:
		switch op {
		case OpEncode:
			return "blob " + hex.EncodeToString(a.Data)
		case OpFormat:
			return "text " + strconv.Quote(string(a.Data))
		case OpSalvage:
			return fmt.Sprintf("part depth=%d pcs=%s", a.Depth, formatPCs(a.Value.PCs))
		}
		return "ok " + a.Value.String()
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

// Trouble reports whether a testee crashed, hung or broke the protocol.
func (a Answer) Trouble() bool {
	return a.Outcome == Crash || a.Outcome == Hang || a.Outcome == Protocol
}

// same reports whether two answers to one request are one answer.
func (a Answer) same(b Answer) bool {
	return a.Outcome == b.Outcome && a.Value.Equal(b.Value) && a.Depth == b.Depth &&
		string(a.Data) == string(b.Data) && a.Reason == b.Reason && a.Signal == b.Signal
}

// parseWant reads the value of `want:`; evidence may also say that an
// implementation crashed, hung or does not do such.
func parseWant(text string, evidence bool) (Answer, error) {
	word, rest, _ := strings.Cut(text, " ")
	a := Answer{Outcome: Outcome(word), Bit: -1}
	switch {
	case word == "ok":
		var err error
		a.Value, err = parseValue(rest)
		return a, err
	case word == "part":
		a.Outcome = OK
		depth, pcs, _ := strings.Cut(rest, " ")
		depth, okDepth := strings.CutPrefix(depth, "depth=")
		pcs, okPCs := strings.CutPrefix(pcs, "pcs=")
		n, err := strconv.Atoi(depth)
		if !okDepth || !okPCs || err != nil || n < 0 || n > 32 {
			return a, fmt.Errorf("%q, expected part depth=0..32 pcs=LIST", text)
		}
		a.Depth = n
		a.Value.PCs, err = parsePCs(pcs)
		return a, err
	case word == "reject":
		if !isReason(rest) {
			return a, fmt.Errorf("reason %q, expected one of %s", rest, strings.Join(reasons(), " "))
		}
		a.Reason = rest
		return a, nil
	case evidence && word == "crash" && rest != "":
		a.Signal = rest
		return a, nil
	case evidence && (text == "hang" || text == "skip"):
		return a, nil
	case evidence:
		return a, fmt.Errorf("%q, expected ok, reject REASON, part, crash SIGNAL, hang or skip", text)
	}
	return a, fmt.Errorf("%q, expected ok size=N pcs=LIST, reject REASON or part depth=N pcs=LIST", text)
}

// wantText is what parseWant reads.
func (a Answer) wantText(op Op) string {
	switch a.Outcome {
	case Reject:
		return "reject " + a.Reason
	case Crash:
		return "crash " + a.Signal
	case Hang, Skip:
		return string(a.Outcome)
	}
	return a.Describe(op)
}
