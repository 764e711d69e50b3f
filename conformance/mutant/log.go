package mutant

import (
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// log lists the records of a recording, with what they say. (BT-REC-1, BT-REC-2,
// BT-HEAD-4)
func (b impl) log(text string) conformance.Answer {
	plain := impl{}
	var found []string
	boot, open, word, fields := 0, "-", 64, false
	for _, place := range strings.Fields(plain.scan(text).Words) {
		var kind rune
		var at, n int
		if _, err := fmt.Sscanf(place, "%c@%d+%d", &kind, &at, &n); err != nil {
			break // none
		}
		record := text[at : at+n]
		if kind == 'h' {
			head, err := plain.hline(record)
			if err != nil {
				continue
			}
			words := strings.Split(head.Words, " ")
			switch words[0] {
			case "boot":
				boot++
				if !b.has("log-boot-keeps-dump") {
					open, fields = "-", false
				}
				if w := number(words, "w"); w != "" || !b.has("log-boot-keeps-word") {
					word = 64
					if w == "32" && !b.has("log-ignores-word") {
						word = 32
					}
				}
			case "begin":
				open = words[1]
				u := number(words, "u")
				fields = u == "1" || b.has("log-any-user-fields") && u != "" || b.has("log-nonzero-user-fields") && u != "" && u != "0"
				if b.has("log-user-fields-as-written") && !strings.Contains(record, "u=1") {
					fields = false
				}
			case "end":
				if words[1] == open || !b.has("log-end-by-number") {
					open, fields = "-", fields && b.has("log-end-keeps-user-fields")
				}
			case "map", "load", "lost", "total":
				if b.has("log-header-ends-dump") {
					open, fields = "-", false
				}
			}
			continue
		}
		of := open
		if kind == 'e' && !b.has("log-event-in-dump") {
			of = "-"
		}
		v, err := plain.logged(kind, record, word, fields || b.has("log-always-user-fields"))
		item := fmt.Sprintf("%s;boot=%d;dump=%s;", place, boot, of)
		if err != nil {
			item += "reject"
		} else {
			item += strings.ReplaceAll(v.String(), " ", ";")
		}
		found = append(found, item)
	}
	if len(found) == 0 {
		return words("-")
	}
	return words("%s", strings.Join(found, " "))
}

// number returns the value of the first key of that name, without leading zeros; "" if
// there is none.
func number(words []string, name string) string {
	for _, word := range words[2:] {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			if value = strings.TrimLeft(value, "0"); value == "" {
				return "0"
			}
			return value
		}
	}
	return ""
}

// logged reads a record.
func (b impl) logged(kind rune, record string, word int, fields bool) (conformance.Value, error) {
	switch kind {
	case 'b':
		return b.parseDecoded(record)
	case 'e':
		return b.eline(record, word)
	}
	blob, err := b.parseLine(record, false)
	switch {
	case err != nil:
		return conformance.Value{}, err
	case fields:
		return b.user(blob, word, false)
	}
	return b.decode(blob, word)
}
