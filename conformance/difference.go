package conformance

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Request returns the request of the vector for op, as a testee is asked that says h of itself.
func (v *Vector) Request(op Op, h Hello) Request {
	c := newCheck(v, op, h)
	return c.asked
}

// Compare compares an answer with the right one as the runner does, the reasons of rejections
// aside. It returns the name of what differs first, "" if nothing does: an outcome ("crash",
// "accepts length", "rejects") or a field as in [FirstDifference].
func (r *Request) Compare(want, got Answer) (field string) {
	o := r.Op.row()
	switch {
	case got.Outcome == Skip:
		return ""
	case got.Trouble():
		return string(got.Outcome)
	case want.Outcome != got.Outcome && got.Outcome == OK:
		return "accepts " + want.Reason
	case want.Outcome != got.Outcome:
		return "rejects"
	case got.Outcome == Reject:
		return ""
	case o.says != nil:
		if o.says(r.Words, string(got.Data)) != "" {
			return "says"
		}
		return ""
	case r.Op == opDumps:
		if right, _ := sameDumps(want.Words, roundedAs(want.Words, got.Words)); right {
			return ""
		}
	}
	field, _, _ = FirstDifference(r.Op, want.Describe(r.Op), got.Describe(r.Op))
	return field
}

// roundedAs returns got with the estimates of want, where these differ by rounding alone. (BT-DUMP-5)
func roundedAs(want, got string) string {
	w, g := strings.Split(sortedDumps(want), " "), strings.Split(sortedDumps(got), " ")
	for i := range min(len(w), len(g)) {
		a, x, _ := strings.Cut(w[i], ";est=")
		b, y, found := strings.Cut(g[i], ";est=")
		if !found || a != b {
			continue
		}
		x1, x2, _ := strings.Cut(x, ",")
		y1, y2, _ := strings.Cut(y, ",")
		if near(x1, y1) && near(x2, y2) {
			g[i] = w[i]
		}
	}
	return strings.Join(g, " ")
}

func near(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	d := math.Abs(x - y)
	return err == nil && err2 == nil && (d <= 1 || d <= 1e-9*x)
}

// FirstDifference compares two answers to op, in the words of `want:`. It returns the name of the
// first field that differs, and where the difference begins in each text. The field is "" if
// the answers are equal, and "outcome" if their kinds differ. Otherwise it is that of BTP/1, such as
// size, pcs or live; of what has no name there: path, event, place, verb, number, key, "missing lines",
// "missing blocks" and "missing bytes", and "less" or "more" if an answer ends early or goes on.
func FirstDifference(op Op, want, got string) (field string, inWant, inGot int) {
	if want == got {
		return "", 0, 0
	}
	if op == opDumps {
		want, got = sortedDumps(want), sortedDumps(got)
	}
	w, g := strings.Split(want, " "), strings.Split(got, " ")
	for i := 0; ; i++ {
		switch {
		case i == len(w) && i == len(g):
			return "", 0, 0
		case i == len(w):
			return "more", len(want), inGot
		case i == len(g):
			return "less", inWant, len(got)
		case w[i] != g[i]:
			field, at := fieldOf(op, i, w[i], g[i])
			return field, inWant + at, inGot + at
		}
		inWant, inGot = inWant+len(w[i])+1, inGot+len(g[i])+1
	}
}

// fieldOf returns the name of the first field in which word n of two answers differs, and where in
// the words the difference begins.
func fieldOf(op Op, n int, want, got string) (field string, at int) {
	if n == 0 {
		return "outcome", 0
	}
	w, g := strings.Split(want, ";"), strings.Split(got, ";")
	for i := 0; ; i++ {
		switch {
		case i == len(w):
			field, _, _ = strings.Cut(g[i], "=")
			return field, len(want)
		case i == len(g):
			field, _, _ = strings.Cut(w[i], "=")
			return field, len(got)
		case w[i] != g[i]:
			same := 0
			for same < min(len(w[i]), len(g[i])) && w[i][same] == g[i][same] {
				same++
			}
			key, _, named := strings.Cut(w[i], "=")
			other, _, _ := strings.Cut(g[i], "=")
			switch {
			case !named:
				key = unnamed(op, n)
			case op == opHline:
				key = "key"
			case key != other: // one of them is missing
			case key == "missing":
				key = "missing " + []string{"lines", "blocks", "bytes"}[min(2, strings.Count(w[i][:same], ","))]
			}
			return key, at + same
		}
		at += len(w[i]) + 1
	}
}

// unnamed returns what word n of an answer is if it has no key.
func unnamed(op Op, n int) string {
	switch op {
	case opHline:
		return []string{"", "verb", "number"}[min(n, 2)]
	case opVline:
		return "event"
	case opScan, opLog:
		return "place"
	case opPline, opDumps:
		return "path"
	}
	return fmt.Sprint(op)
}

// Failure returns the failure of a testee that answers the vector's request for op with a.
func (v *Vector) Failure(op Op, a Answer, again Repeat) *Result {
	c := newCheck(v, op, Hello{})
	res := &Result{ID: v.ID, Op: op, File: v.File, Row: v.Row, Clauses: v.Clauses, Status: Fail, Outcome: a.Outcome, Vector: v,
		Failure: &Failure{Variant: variant{}.String(), Request: c.asked.Describe(), Want: c.want(), Got: c.got(a), Data: c.asked.Data, Answer: a}}
	res.Failure.Again = again.Command(res, 0)
	return res
}
