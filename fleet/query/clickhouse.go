package query

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// OpenClickHouse answers questions from the tables of ClickHouse. Close does not close them.
func OpenClickHouse(s *clickhouse.Store) *DB { return &DB{clickhouse: s, part: devicesPerQuery} }

// remote runs the SQL of one question in ClickHouse. It creates nothing there: each query begins with the
// definitions that it refers to.
type remote struct {
	store   *clickhouse.Store
	defined []definition
}

type definition struct{ name, query string }

// remote returns a session on the tables of ClickHouse.
func (d *DB) remote(ctx context.Context, o Scope) *session {
	r := &remote{store: d.clickhouse}
	s := &session{engine: r, scope: o, labels: ofLabels(ctx)}
	s.from = func(table string) string {
		q := "select * from " + d.clickhouse.Table(table)
		if table != store.Paths && table != store.Frames { // these are read as sets
			q += " final" // a row that was written again is not counted twice
		}
		if q += " where true"; !o.Since.IsZero() && (table == store.Dumps || table == store.Facts || table == store.Paths) {
			q += " and day >= " + clickhouse.Quote(o.Since.UTC().Format(time.DateOnly))
		}
		return q
	}
	for _, table := range store.Tables {
		r.defined = append(r.defined, definition{table, s.table(table, "")})
	}
	return s
}

func (r *remote) quote(text string) string { return clickhouse.Quote(text) }

func (r *remote) define(_ context.Context, name, q string) error {
	r.defined = slices.DeleteFunc(r.defined, func(d definition) bool { return d.name == name })
	r.defined = append(r.defined, definition{name, q})
	return nil
}

func (r *remote) query(ctx context.Context, q string) (*sql.Rows, error) {
	return r.store.Query(ctx, r.complete(q))
}

// complete returns a query with what it refers to.
func (r *remote) complete(q string) string {
	var b strings.Builder
	for i, d := range r.defined {
		b.WriteString(map[bool]string{true: "with\n", false: ",\n"}[i == 0])
		fmt.Fprintf(&b, "%s as (\n%s\n)", clickhouse.QuoteName(d.name), withoutComments(d.query))
	}
	q = withoutComments(q)
	if rest, ok := strings.CutPrefix(q, "with\n"); ok {
		b.WriteString(",\n" + rest)
	} else {
		b.WriteString("\n" + q)
	}
	return percentiles.Replace(b.String())
}

var comments = regexp.MustCompile(`(?m)^--.*\n`)

func withoutComments(q string) string {
	return strings.TrimSpace(comments.ReplaceAllString(q+"\n", ""))
}

// percentiles are the macros of sql/duckdb.sql that ClickHouse has by other names.
var percentiles = strings.NewReplacer("p05(", "quantileExactInclusive(0.05)(", "p50(", "quantileExactInclusive(0.5)(", "p95(", "quantileExactInclusive(0.95)(", "p98(", "quantileExactInclusive(0.98)(")
