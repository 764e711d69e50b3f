package conformance

import (
	"cmp"
	"slices"
	"strings"
)

// clauseOfField lists the clause that decides a field of an answer, as [FirstDifference] names it, and words
// of the sentence or table row of it. "" is for all other fields of the operation.
var clauseOfField = map[Op]map[string]string{
	opDumps: {"dump": "BT-HEAD-4 A dump is opened", "boot": "BT-REC-1 begins a boot", "open": "BT-HEAD-4 as complete only",
		"nobase": "BT-DUMP-3 is not complete if", "missing lines": "BT-DUMP-4 **Lines**", "missing blocks": "BT-DUMP-4 **Blocks**",
		"missing bytes": "BT-DUMP-4 **Blocks**", "path": "BT-NAME-2 as those of the same path", "est": "BT-DUMP-5 scale each entry",
		"more": "BT-DUMP-2 are those of the entries", "": "BT-DUMP-2 add up the values"},
	opPline: {"flags": "BT-PLINE-1 | flags", "dump": "BT-PLINE-1 | dump", "seq": "BT-PLINE-1 | sequence", "unit": "BT-PLINE-1 | unit",
		"path": "BT-ENTRY-1 take path and reference", "def": "BT-ENTRY-1 a definition", "live": "BT-ENTRY-4 live blocks, and a number",
		"bytes": "BT-ENTRY-4 live blocks, and a number", "blocks": "BT-ENTRY-4 The address of a block", "ever": "BT-ENTRY-4 | 2 ever",
		"peak": "BT-ENTRY-4 | 4 peak", "": "BT-ENTRY-1 An entry is"},
	opVline: {"flags": "BT-VLINE-1 | flags", "seq": "BT-VLINE-1 | sequence", "unit": "BT-VLINE-1 | unit", "next": "BT-VLINE-1 | next",
		"t": "BT-VLINE-4 is added to the time", "thread": "BT-VLINE-4 the thread from here on", "n": "BT-VLINE-4 A block's number",
		"old": "BT-VLINE-4 | 2 moved", "path": "BT-VLINE-4 path number a of the table", "size": "BT-VLINE-4 | 0 allocated | 0",
		"addr": "BT-VLINE-4 An address is a number", "count": "BT-VLINE-4 so many events", "": "BT-VLINE-4 An item is"},
	opLog: {"boot": "BT-REC-1 begins a boot", "dump": "BT-HEAD-4 as closed by", "user": "BT-REC-2 read them there", "size": "BT-REC-1 read their blobs",
		"pcs": "BT-REC-1 read their blobs", "reject": "BT-REC-2 as if they had no user", "": "BT-TEXT-3 go on right behind"},
	opScan:  {"": "BT-TEXT-3 go on right behind"},
	opHline: {"verb": "BT-HEAD-1 A header is", "number": "BT-HEAD-1 number: decimal", "": "BT-HEAD-1 escapes of any byte"},
	opMarks: {"lossy": "BT-LOSS-3 report exactly", "wide": "BT-LOSS-2 count over 32", "": "BT-LOSS-2 report these"},
	opName:  {"": "BT-NAME-1 compute names"}, opOffsets: {"": "BT-CODE-2 look up addresses so"}, opAddresses: {"": "BT-CODE-2 for an offset"},
	opPencode: {"": "BT-PLINE-3 write every entry"}, opVencode: {"": "BT-VLINE-4 An item is"},
	opSalvage: {"size": "BT-SALV-1 yield the size", "depth": "BT-SALV-1 yield the depth", "": "BT-SALV-1 yield the frames"},
	opUser:    {"user": "BT-UF-3 the tags are"}, opEline: {"user": "BT-UF-3 the tags are"},
}

// ClauseOf returns the clause that decides a field of the answers to op, as [FirstDifference] names it, and
// its sentence or table row about it; "" if there is none.
func ClauseOf(op Op, field string) (id, sentence string) {
	id, words, _ := strings.Cut(cmp.Or(clauseOfField[op][field], clauseOfField[op][""]), " ")
	c := BuiltinSpec().Clause(id)
	if c == nil {
		return "", ""
	}
	var all []string
	for _, p := range c.paragraphs { // list items, without the words that introduce the list
		if m := listItem.FindString(p); m != "" {
			all = append(all, strings.TrimPrefix(p, m))
		}
	}
	for _, s := range slices.Concat(all, c.Sentences(), c.rows) {
		if strings.Contains(strings.ToLower(s), strings.ToLower(words)) {
			return id, strings.Trim(s, "| ")
		}
	}
	return id, c.Sentences()[0]
}
