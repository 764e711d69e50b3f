package query

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// session answers one question. Its queries refer to the tables of the store.
type session struct {
	engine
	from   func(table string) string // the rows of a table of the store, as a query that ends with a condition
	scope  Scope
	labels string // condition for dumps
}

// engine runs SQL in the words of sql/duckdb.sql.
type engine interface {
	query(ctx context.Context, q string) (*sql.Rows, error)
	// define makes the rows of a query a table for later queries of the session.
	define(ctx context.Context, name, q string) error
	quote(text string) string
}

// local is DuckDB, in a transaction that ends with the session: nothing that it defines stays.
type local struct{ tx *sql.Tx }

func (l local) query(ctx context.Context, q string) (*sql.Rows, error) {
	return l.tx.QueryContext(ctx, q)
}

func (l local) define(ctx context.Context, name, q string) error {
	_, err := l.tx.ExecContext(ctx, "create or replace temp table "+name+" as "+q)
	return err
}

func (l local) quote(text string) string { return quote(text) }

// table returns the rows of a table of the store that are in the scope, with another condition.
func (s *session) table(name, more string) string {
	q := s.from(name) + more
	if len(s.scope.Builds) > 0 {
		q += " and build in (" + s.quoted(s.scope.Builds) + ")"
	}
	if s.scope.Device != "" && (name == store.Dumps || name == store.Facts) {
		q += " and device = " + s.quote(s.scope.Device)
	}
	switch name {
	case store.Dumps:
		if !s.scope.Since.IsZero() {
			q += fmt.Sprintf(" and received >= fromUnixTimestamp64Micro(%d)", s.scope.Since.UnixMicro())
		}
		if q += s.labels; !s.scope.copies {
			q += once
		}
	case store.Facts:
		if s.labels != "" {
			q += counted
		}
	}
	return q
}

// once leaves out the second copy of an upload that two servers stored, until compaction removes
// it. The copy has its own boots, so a join with dumps leaves out its facts, too.
const once = " qualify received = min(received) over (partition by device, upload)"

// counted leaves out the facts of other dumps.
const counted = " and (device, boot, dump) in (select device, boot, dump from dumps)"

// ofLabels returns the condition for the dumps with the labels of a context, "" for all. Labels need no quotes.
func ofLabels(ctx context.Context) (where string) {
	l := store.LabelsOf(ctx)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		where += " and labels['" + name + "'] = '" + l[name] + "'"
	}
	return where
}

// facts yields the facts of each of these devices that has any, in the order of their names.
func (s *session) facts(ctx context.Context, devices []string) iter.Seq2[[]store.Fact, error] {
	return func(yield func([]store.Fact, error) bool) {
		rows, err := s.query(ctx, text("series", "{facts}", s.table(store.Facts, " and device in ("+s.quoted(devices)+")")))
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var device string
			var columns [5]numbers
			if err := rows.Scan(&device, &columns[0], &columns[1], &columns[2], &columns[3], &columns[4]); err != nil {
				yield(nil, err)
				return
			}
			facts := make([]store.Fact, 0, len(columns[0]))
			for i, path := range columns[0] {
				facts = append(facts, store.Fact{Device: device, Path: path, Boot: columns[1][i], Dump: columns[2][i], Count: columns[3][i], Bytes: columns[4][i]})
			}
			if !yield(facts, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// numbers are an array of SQL, none negative, as the text "[1, 2]": a driver returns one value much faster than many.
type numbers []int64

// Scan implements sql.Scanner.
func (n *numbers) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%T: expected a text of numbers", v)
	}
	*n = make(numbers, 0, 1+strings.Count(text, ","))
	for i := 0; i < len(text); i++ {
		x, begin := int64(0), i
		for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			x = 10*x + int64(text[i]-'0')
		}
		if i > begin {
			*n = append(*n, x)
		}
		if i < len(text) && !strings.ContainsRune("[], ", rune(text[i])) {
			return fmt.Errorf("%q in a text of numbers, at byte %d", text[i], i)
		}
	}
	return nil
}

// quoted returns a list of string literals.
func (s *session) quoted(list []string) string {
	var all []string
	for _, text := range list {
		all = append(all, s.quote(text))
	}
	return strings.Join(all, ", ")
}

// tables defines tables by the SQL files with their names.
func (s *session) tables(ctx context.Context, names ...string) error {
	for _, n := range names {
		if err := s.define(ctx, n, text(n)); err != nil {
			return fmt.Errorf("query %s: %w", n, err)
		}
	}
	return nil
}

// values are a row of a literal: of a path.
type values struct {
	path   int64
	values []float64
}

// literal returns a query with rows of numbers, whose columns are path and these.
func literal(list []values, columns ...string) string {
	var b strings.Builder
	b.WriteString("select toInt64(tupleElement(r, 1)) as path")
	for i, c := range columns {
		fmt.Fprintf(&b, ", tupleElement(r, %d) as %s", i+2, c)
	}
	b.WriteString(" from (select arrayJoin([")
	for i, row := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%d", row.path)
		for _, v := range row.values {
			b.WriteString("," + strconv.FormatFloat(v, 'e', -1, 64)) // with an exponent, it is no decimal
		}
		b.WriteByte(')')
	}
	return b.String() + "]) as r) v"
}

// numbered returns numbers with commas between them.
func numbered(list []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// ask returns the rows of a query about a scope, after tables that it needs.
func ask[T any](ctx context.Context, d *DB, o Scope, of []string, q string, tables ...string) (list []T, err error) {
	err = d.with(ctx, o, of, func(s *session) error {
		if err := s.tables(ctx, tables...); err != nil {
			return err
		}
		list, err = rows[T](ctx, s, q)
		return err
	})
	return list, err
}

// rows returns the rows of a query. The columns of the query are the first fields of T, in order.
func rows[T any](ctx context.Context, s *session, q string) (list []T, err error) {
	r, err := s.query(ctx, q)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	into := make([]any, len(columns))
	for r.Next() {
		var row T
		for i := range into {
			into[i] = reflect.ValueOf(&row).Elem().Field(i).Addr().Interface()
		}
		if err := r.Scan(into...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, r.Err()
}
