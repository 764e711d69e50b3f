package conformance

import (
	"strings"
	"testing"
)

// Every field has a clause, and the words that name its sentence are in it.
func TestClausesOfFields(t *testing.T) {
	for op, fields := range clauseOfField {
		for field, text := range fields {
			_, words, _ := strings.Cut(text, " ")
			if id, sentence := ClauseOf(op, field); !strings.Contains(strings.ToLower("| "+sentence), strings.ToLower(words)) {
				t.Errorf("%s %q: %s has no sentence with %q", op, field, id, words)
			}
		}
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		op        Op
		want, got string
		field     string
		at        string // of got
	}{
		{opDecode, "ok size=1 pcs=1", "ok size=1 pcs=1", "", ""},
		{opDecode, "ok size=1 pcs=1,2", "ok size=1 pcs=1,3", "pcs", "3"},
		{opDecode, "ok size=1 pcs=1", "ok size=2 pcs=1", "size", "2 pcs=1"},
		{opDecode, "ok size=1 pcs=1", "reject length", "outcome", "reject length"},
		{opVline, "events flags=0 seq=0 t=1 thread=1 next=0 alloc;n=0;t=5;thread=1;path=00000001;size=1",
			"events flags=0 seq=0 t=1 thread=1 next=0 alloc;n=0;t=6;thread=1;path=00000001;size=1", "t", "6;thread=1;path=00000001;size=1"},
		{opPline, "paths flags=0 dump=0 seq=0 0:1/2;live=1;bytes=2", "paths flags=0 dump=0 seq=0 0:1/3;live=1;bytes=2", "path", "3;live=1;bytes=2"},
		{opPline, "paths flags=0 dump=0 seq=0 0:1;def 0:2;def", "paths flags=0 dump=0 seq=0 0:1;def", "less", ""},
		{opDumps, "dumps dump=1;boot=1;missing=0,1,2", "dumps dump=1;boot=1;missing=0,1,3", "missing bytes", "3"},
		{opDumps, "dumps dump=1;boot=1;missing=0,-,- 0:1;live=1;bytes=1 0:2;live=2;bytes=2",
			"dumps dump=1;boot=1;missing=0,-,- 0:2;live=2;bytes=2 0:1;live=1;bytes=1;peak=5", "peak", ";peak=5 0:2;live=2;bytes=2"},
		{opHline, "head begin 3 t=1", "head begin 4 t=1", "number", "4 t=1"},
		{opLog, "records m@0+3;boot=0;dump=-;reject", "records m@0+4;boot=0;dump=-;reject", "place", "4;boot=0;dump=-;reject"},
	} {
		field, _, at := FirstDifference(c.op, c.want, c.got)
		if c.op == opDumps {
			c.got = sortedDumps(c.got)
		}
		if field != c.field || field != "" && c.got[at:] != c.at {
			t.Errorf("%s, %s: %q at %q, want %q at %q", c.op, c.got, field, c.got[at:], c.field, c.at)
		}
	}
}
