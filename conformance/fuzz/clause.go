package fuzz

import (
	"regexp"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

var clauseID = regexp.MustCompile(`BT-[A-Z0-9]+-[0-9]+`)

// name names the clause that decides a finding: that of the codec's rejection; else that of the field that differs.
func (x *Finding) name() {
	if x.Want.Outcome == conformance.Reject {
		if list := clauseID.FindAllString(x.Want.Text, -1); len(list) > 0 {
			x.Clause, x.Certain = list[len(list)-1], true
			return
		}
	}
	if x.Clause, _ = conformance.ClauseOf(x.Request.Op, x.Field); x.Clause == "" {
		x.Clause = clauseOfStack(&x.Request, x.Field)
	}
}

// clauseOfStack returns the clause about a field of the answers of Part I.
func clauseOfStack(r *conformance.Request, field string) string {
	switch {
	case field == "size":
		return "BT-SIZE-1"
	case field == "pcs":
		return "BT-DELTA-1"
	case field == "rejects" || !r.Op.Writes():
		return "BT-REJ-1"
	case r.Op == "format":
		return "BT-TEXT-1"
	case r.Machine.Lossy():
		return "BT-MACH-1"
	case r.Search == codec.SearchBest:
		return "BT-SRCH-2"
	}
	return "BT-SRCH-1"
}
