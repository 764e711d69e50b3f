package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// addFlags adds flags to a group of those of a command.
func addFlags(c *cobra.Command, group string, add func(f *pflag.FlagSet)) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(f)
	cli.AddFlags(c, group, f)
}

// labelFlag is a flag that may be given several times.
type labelFlag struct{ store.Labels }

func (l *labelFlag) String() string { return "" }
func (l *labelFlag) Type() string   { return "label" }

// question holds the flags and the state of the commands that query a store.
type question struct {
	store    rowsFlag
	since    string
	build    string
	needsOne bool   // --build is needed
	fail     string // --fail-over, as given
	limit    uint64
	json     bool
	rows     int
	labels   labelFlag
	db       *query.DB
	scope    query.Scope
	notes    io.Writer // standard error
	falls    error     // why the answer falls short; the command ends with it after it has printed the answer
}

// answer returns a command that gets an answer, and prints it or writes it as JSON. rows is the default of --rows: 0 for
// an answer that is always whole, -1 for one that is not a list, and has no --json either.
func answer[T any](q *question, c *cobra.Command, rows int, get func(ctx context.Context, args []string) (T, error), print func(w io.Writer, a T) error) *cobra.Command {
	q.store.add(c)
	addFlags(c, "Query", func(f *pflag.FlagSet) {
		f.StringVar(&q.since, "since", "", "only dumps received since `TIME`: 2026-06-01, or 7d, 12h before now")
		f.Var(&q.labels, "label", "only dumps with a label, `NAME=VALUE`; several times for several labels")
		if rows > 0 {
			f.IntVarP(&q.rows, "rows", "n", rows, "list `N` rows, 0 for all")
		}
		if rows >= 0 {
			f.BoolVar(&q.json, "json", false, "write JSON")
		}
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		c.SetContext(store.WithLabels(c.Context(), q.labels.Labels))
		if err := q.open(c); err != nil {
			return err
		}
		defer q.db.Close()
		a, err := get(c.Context(), args)
		if w := c.OutOrStdout(); err == nil && q.json {
			err = writeJSON(w, a)
		} else if err == nil {
			err = print(w, a)
		}
		return q.end(err)
	}
	return c
}

// open checks the flags, and opens the rows.
func (q *question) open(c *cobra.Command) (err error) {
	q.notes = c.ErrOrStderr()
	if q.rows < 0 {
		return cli.Usagef("-n %d, expected a number of rows", q.rows)
	}
	if q.needsOne && q.build == "" {
		return cli.Usagef("--build is needed (btfleet builds)")
	}
	if q.scope.Since, err = query.ParseSince(q.since, time.Now()); err != nil {
		return cli.Usagef("--since %w", err)
	}
	if q.db, err = q.store.db(c.Context()); err != nil {
		return err
	}
	if q.build != "" {
		q.scope.Builds, err = q.find(c.Context(), q.build)
	}
	if err != nil {
		err = q.end(err)
		q.db.Close()
	}
	return err
}

// end returns the error of the command: an answer without damaged files falls short.
func (q *question) end(err error) error {
	list := q.db.Damaged()
	if len(list) == 0 || q.falls != nil || err != nil && !errors.Is(err, query.ErrNoDump) && !errors.Is(err, query.ErrBuild) {
		return cmp.Or(failure(err), q.falls)
	}
	reason := ""
	if err != nil {
		reason = err.Error() + "; "
	}
	return cli.Shortf("%sthe answer leaves out what is in damaged files of the store: %s", reason, strings.Join(list, ", "))
}

// addBuild adds the flag --build.
func (q *question) addBuild(c *cobra.Command, needed bool, usage string) *cobra.Command {
	q.needsOne = needed
	addFlags(c, "Query", func(f *pflag.FlagSet) {
		f.StringVar(&q.build, "build", "", usage+"`BUILD` ID, its beginning, or a firmware version")
	})
	return c
}

// addFailOver adds the flag --fail-over.
func (q *question) addFailOver(c *cobra.Command, usage string, parse func(string) (uint64, error)) *cobra.Command {
	addFlags(c, "Query", func(f *pflag.FlagSet) {
		f.Func("fail-over", usage, func(s string) (err error) {
			q.fail = s
			q.limit, err = parse(s)
			return err
		})
	})
	return c
}

// failure sets the exit code of an error of DuckDB or of the store.
func failure(err error) error {
	var coded *cli.Error
	if err == nil || errors.As(err, &coded) || errors.Is(err, query.ErrNoDump) || cli.ClosedPipe(err) {
		return err
	}
	return cli.Failedf("%s", oneLine(err))
}

// oneLine returns the message of an error, which DuckDB writes in several lines, without the query that it repeats.
func oneLine(err error) string {
	reason, _, _ := strings.Cut(err.Error(), "\n\nLINE")
	return strings.Join(strings.Fields(reason), " ")
}

// empty tells that there are no rows.
func (q *question) empty(rows int) {
	if rows == 0 {
		where := "the store " + q.store.where
		if q.store.clickhouse != "" {
			where = "ClickHouse" // its URL may have a password
		}
		fmt.Fprintf(q.notes, "btfleet: no dump in %s\n", cli.Printable(where))
	}
}

// find returns the builds with these names, which the user gave.
func (q *question) find(ctx context.Context, names ...string) (builds []string, err error) {
	for _, name := range names {
		b, err := q.db.Find(ctx, name)
		if errors.Is(err, query.ErrBuild) {
			return nil, cli.Usagef("%w", err)
		} else if err != nil {
			return nil, err
		}
		if slices.Contains(builds, b) {
			return nil, cli.Usagef("%s are one build", strings.Join(names, " and "))
		}
		builds = append(builds, b)
	}
	return builds, nil
}

// cut returns the first q.rows rows, or all if q.rows is 0.
func cut[T any](q *question, list []T) []T {
	if q.rows > 0 && len(list) > q.rows {
		return list[:q.rows]
	}
	return list
}

// writeJSON writes a value, indented.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// write writes a table that fits the terminal. Columns whose heading begins with > are aligned to the right.
func write(w io.Writer, head []string, rows [][]string) error {
	return writeTable(w, cli.Width(w), head, rows)
}

func writeTable(w io.Writer, width int, head []string, rows [][]string) error {
	t := &cli.Table{Head: slices.Clone(head), Right: make([]bool, len(head)), Rows: rows, Width: width}
	for i := range head {
		t.Head[i], t.Right[i] = strings.CutPrefix(head[i], ">")
	}
	return t.Write(w)
}
