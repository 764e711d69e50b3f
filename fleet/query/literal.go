package query

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
)

// quote returns a string literal.
func (s *session) quote(text string) string {
	if s.dialect != "" {
		return clickhouse.Quote(text)
	}
	return quote(text)
}

// literal returns a query with these rows of numbers: int64 and float64, as in the first row.
func (s *session) literal(rows [][]any, columns ...string) string {
	var b strings.Builder
	into := strings.Join(columns, ", ")
	if s.dialect != "" {
		b.WriteString("select * from values('")
		for i, c := range columns {
			kind := "Float64"
			if _, ok := rows[0][i].(int64); ok {
				kind = "Int64"
			}
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %s", c, kind)
		}
		b.WriteString("', ")
	} else {
		b.WriteString("select * from (values ")
	}
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range row {
			b.WriteByte("(,"[min(j, 1)])
			switch v := v.(type) {
			case int64:
				b.WriteString(strconv.FormatInt(v, 10))
			case float64:
				b.WriteString(strconv.FormatFloat(v, 'e', -1, 64)) // with an exponent, it is no decimal
			}
		}
		b.WriteByte(')')
	}
	b.WriteByte(')')
	if s.dialect == "" {
		fmt.Fprintf(&b, " v(%s)", into)
	}
	return b.String()
}
