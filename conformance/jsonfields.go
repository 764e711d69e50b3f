package conformance

import (
	"slices"
	"strings"
)

// fieldsOf returns words of BTP/1 as JSON, so that nobody needs a parser of them: those of the answer to op or, of a
// writer, of its request. Numbers are strings; lists are arrays.
//
//	marks                  {"wide": ["0"], "wrap": [], …}
//	hline, format          {"verb": "begin", "number": "3", "keys": [{"name": "t", "value": "81"}]}; values have their escapes
//	scan                   {"items": [{"kind": "m", "offset": "11", "length": "11"}]}
//	log                    {"items": [{"kind", "offset", "length", "boot", "dump", "size", "pcs", "user"}]}; "reject" is true
//	pline, vline           {"flags": "0", …, "items": [{"path": "0:142", "live": "3", "bytes": "96"}]}; {"event": "alloc", …}
//	dumps                  {"dumps": [{"dump": "1", …, "paths": [{"path", "live", "bytes"}]}]}; paths in any order
//	name, offsets, others  {"list": ["af2f64e9"]}
func fieldsOf(op Op, text string) map[string]any {
	words := strings.Split(text, " ")
	out := map[string]any{}
	switch op {
	case opMarks:
		addFields(out, "", words)
	case opHline, opFormat:
		keys := []any{}
		for _, w := range words[min(2, len(words)):] {
			name, value, _ := strings.Cut(w, "=")
			keys = append(keys, map[string]any{"name": name, "value": value})
		}
		out["verb"], out["number"], out["keys"] = words[0], words[min(1, len(words)-1)], keys
	case opScan, opLog:
		out["items"] = items(op, words)
	case opDumps:
		dumps := []any{}
		for _, item := range items(op, words) {
			if item := item.(map[string]any); item["dump"] != nil {
				item["paths"] = []any{}
				dumps = append(dumps, item)
			} else {
				d := dumps[len(dumps)-1].(map[string]any)
				d["paths"] = append(d["paths"].([]any), item)
			}
		}
		out["dumps"] = dumps
	case opPline, opVline, opPencode, opVencode:
		head := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, ";") })
		if head < 0 {
			head = len(words)
		}
		addFields(out, "", words[:head])
		out["items"] = items(op, words[head:])
	default:
		list := words[len(words)-1]
		addFields(out, "", words[:len(words)-1]) // shift= and code= of offsets and addresses
		out["list"] = splitList(list)
	}
	return out
}

func items(op Op, words []string) []any {
	list := []any{}
	for _, w := range words {
		if w == "-" {
			continue
		}
		item := map[string]any{}
		addFields(item, map[Op]string{opVline: "event", opVencode: "event", opScan: "place", opLog: "place"}[op], strings.Split(w, ";"))
		list = append(list, item)
	}
	return list
}

// addFields adds KEY=VALUE words. A word without a key is a path, or what first says it is; any further one is a mark.
func addFields(to map[string]any, first string, words []string) {
	for i, w := range words {
		key, value, found := strings.Cut(w, "=")
		switch {
		case !found && i == 0 && first == "place":
			kind, place, _ := strings.Cut(w, "@")
			to["kind"] = kind
			to["offset"], to["length"], _ = strings.Cut(place, "+")
		case !found && i == 0 && first != "":
			to[first] = w
		case !found && strings.Contains(w, ":"):
			to["path"] = w
		case !found:
			to[w] = true
		case slices.Contains([]string{"pcs", "user", "missing", "blocks", "ever", "est", "wide", "wrap", "zero", "lossy", "code"}, key):
			to[key] = splitList(value)
		default:
			to[key] = value
		}
	}
}

func splitList(text string) []string {
	if text == "-" {
		return []string{}
	}
	return strings.Split(text, ",")
}
