package forms

import (
	"bytes"
	"strconv"
	"strings"
)

// query is the state of an answer of Prometheus' query or query_range, in JSON of one or several lines: objects
// with the labels of a metric, and pairs of a time and a value.
type query struct {
	depth  int  // of braces; 0 outside of an answer
	metric bool // in the labels of a metric
	key    string
	name   string   // of the metric
	labels []string // the values of the others
	at     float64  // the time before a value, 0 if there is none
}

// queryStart begins the first line of an answer. It may be long.
const queryStart = `{"status":"success","data":{"resultType":`

// answers reports whether a line is of an answer, and puts its values.
func (l *Levels) answers(b []byte) bool {
	q := &l.query
	if q.depth == 0 {
		if !bytes.Contains(b, []byte(`"resultType"`)) {
			return false
		}
		*q = query{depth: 1 - bytes.Count(b[:1], []byte("{"))}
	}
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '{':
			if q.depth++; q.key == "metric" {
				q.metric, q.name, q.labels = true, "", nil
			}
		case c == '}':
			q.metric = false
			if q.depth--; q.depth <= 0 {
				return true
			}
		case c == '"':
			n := bytes.IndexByte(b[i+1:], '"')
			if n < 0 {
				return true
			}
			l.queryText(string(b[i+1:i+1+n]), bytes.HasPrefix(bytes.TrimLeft(b[i+n+2:], " "), []byte(":")))
			i += n + 1
		case isDigit(c) && !q.metric:
			k := i
			for k < len(b) && (isDigit(b[k]) || b[k] == '.') {
				k++
			}
			q.at, _ = strconv.ParseFloat(string(b[i:k]), 64)
			i = k - 1
		}
		i++
	}
	return true
}

// queryText takes a text of an answer: a key, the value of a label, or a value.
func (l *Levels) queryText(text string, key bool) {
	q := &l.query
	switch {
	case key:
		q.key = text
	case q.metric && q.key == "__name__":
		q.name = text
	case q.metric:
		q.labels = append(q.labels, text)
	case q.at > 0:
		c := l.classify([]byte(q.name))
		if !c.hit {
			c = &class{hit: true, why: "no metric of memory"}
		}
		l.order++
		l.put(&stamped{wall: moment{dateTime, q.at}}, identity{context: strings.Join(q.labels, " "), words: "column " + q.name, cell: true},
			&field{[]byte(q.name), []byte(text), nil, c, 0})
		q.at = 0
	}
}
