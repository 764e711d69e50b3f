package query

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// OpenClickHouse answers questions from the tables of ClickHouse. Close does not close them.
func OpenClickHouse(s *clickhouse.Store) *DB { return &DB{clickhouse: s, part: 2000} }

// remote runs the SQL of one question in ClickHouse. It creates nothing there: each query begins with the
// definitions that it refers to.
type remote struct {
	store   *clickhouse.Store
	scope   Scope
	labels  string // condition for dumps
	size    int    // of a part, in devices
	defined []definition
}

type definition struct{ name, query string }

// remote returns a session on the tables of ClickHouse.
func (d *DB) remote(ctx context.Context, o Scope) *session {
	device := ""
	if o.Device != "" {
		device = " and device = " + clickhouse.Quote(o.Device)
	}
	r := &remote{store: d.clickhouse, scope: o, labels: ofLabels(ctx), size: d.part}
	r.defined = r.base(device)
	return &session{engine: r, dialect: ".clickhouse"}
}

// base defines the tables of the store, with the rows of the scope, of some devices.
func (r *remote) base(devices string) []definition {
	where := " where true"
	if len(r.scope.Builds) > 0 {
		var list []string
		for _, b := range r.scope.Builds {
			list = append(list, clickhouse.Quote(b))
		}
		where += " and build in (" + strings.Join(list, ", ") + ")"
	}
	days, received, ofDumps := "", "", ""
	if r.scope.counted || r.labels != "" {
		ofDumps = counted
	}
	if since := r.scope.Since; !since.IsZero() {
		days = " and day >= " + clickhouse.Quote(since.UTC().Format(time.DateOnly))
		received = fmt.Sprintf(" and received >= fromUnixTimestamp64Micro(%d)", since.UnixMicro())
	}
	from := func(table, where string) definition {
		return definition{table, "select * from " + r.store.Table(table) + where}
	}
	return []definition{
		// A row that was written again is not counted twice; paths and frames are read as sets.
		from(store.Dumps, " final"+where+days+devices+received+r.labels+once),
		from(store.Facts, " final"+where+days+devices+ofDumps),
		from(store.Paths, where+days),
		from(store.Frames, where),
		from(store.JudgedPaths, " final"+where),
		from(store.JudgedDevices, " final"+where),
	}
}

// facts asks for the facts of some devices at a time: neither the server nor this process must hold those of all.
// The table has them in this order.
func (r *remote) facts(ctx context.Context, devices [][]moment) iter.Seq2[[]store.Fact, error] {
	return func(yield func([]store.Fact, error) bool) {
		for some := range slices.Chunk(devices, r.size) {
			p := &remote{store: r.store, scope: r.scope, labels: r.labels}
			p.defined = p.base(fmt.Sprintf(" and device >= %s and device <= %s", clickhouse.Quote(some[0][0].Device), clickhouse.Quote(some[len(some)-1][0].Device)))
			if more, err := p.each(ctx, yield); err != nil || !more {
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// each yields the facts of each device.
func (r *remote) each(ctx context.Context, yield func([]store.Fact, error) bool) (more bool, err error) {
	rows, err := r.query(ctx, text("series.clickhouse"))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var facts []store.Fact
	for rows.Next() {
		var device string
		var paths, boots, dumps, counts, bytes []int64
		if err := rows.Scan(&device, &paths, &boots, &dumps, &counts, &bytes); err != nil {
			return false, err
		}
		facts = facts[:0]
		for i := range paths {
			facts = append(facts, store.Fact{Device: device, Path: paths[i], Boot: boots[i], Dump: dumps[i], Count: counts[i], Bytes: bytes[i]})
		}
		if !yield(facts, nil) {
			return false, nil
		}
	}
	return true, rows.Err()
}

func (r *remote) define(_ context.Context, name, q string) error {
	r.drop(name)
	r.defined = append(r.defined, definition{name, q})
	return nil
}

func (r *remote) drop(names ...string) {
	r.defined = slices.DeleteFunc(r.defined, func(d definition) bool { return slices.Contains(names, d.name) })
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

// percentiles are the macros of sql/duckdb.sql in ClickHouse.
var percentiles = strings.NewReplacer("p05(", "quantileExactInclusive(0.05)(", "p50(", "quantileExactInclusive(0.5)(", "p95(", "quantileExactInclusive(0.95)(", "p98(", "quantileExactInclusive(0.98)(")
