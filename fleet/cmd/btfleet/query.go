package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// question holds the flags and the state of the commands that query a store.
type question struct {
	store rowsFlag
	since string
	json  bool
	rows  int

	db    *query.DB
	scope query.Scope
}

// command adds the flags of all queries to a command. ask writes the answer. rows is the default of --rows: 0
// for an answer that is always whole, -1 for a page, which has no --json either.
func (q *question) command(c *cobra.Command, rows int, ask func(c *cobra.Command, args []string) error) *cobra.Command {
	q.store.add(c)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&q.since, "since", "", "only dumps received since `TIME`: 2026-06-01, or 7d, 12h before now")
	if rows > 0 {
		f.IntVarP(&q.rows, "rows", "n", rows, "list `N` rows, 0 for all")
	}
	if rows >= 0 {
		f.BoolVar(&q.json, "json", false, "write JSON")
	}
	cli.AddFlags(c, "Question", f)
	c.RunE = func(c *cobra.Command, args []string) error {
		if q.rows < 0 {
			return cli.Usagef("-n %d, expected a number of rows", q.rows)
		}
		var err error
		if q.scope.Since, err = query.ParseSince(q.since, time.Now()); err != nil {
			return cli.Usagef("--since %v", err)
		}
		if q.db, err = q.store.db(c.Context()); err != nil {
			return err
		}
		defer q.db.Close()
		err = failure(ask(c, args))
		if list := q.db.Damaged(); len(list) > 0 && err == nil {
			return cli.Shortf("the answer leaves out what is in damaged files of the store: %s", cli.Printable(strings.Join(list, ", ")))
		}
		return err
	}
	return c
}

// failure sets the exit code of an error of DuckDB or of the store.
func failure(err error) error {
	var coded *cli.Error
	if err == nil || errors.As(err, &coded) || errors.Is(err, query.ErrNoDump) || cli.ClosedPipe(err) {
		return err
	}
	return cli.Failedf("%s", cli.Printable(err.Error()))
}

// empty tells that there are no rows.
func (q *question) empty(c *cobra.Command, rows int) {
	if rows == 0 {
		where := "the store " + q.store.where
		if q.store.clickhouse != "" {
			where = "ClickHouse" // its URL may have a password
		}
		fmt.Fprintf(c.ErrOrStderr(), "btfleet: no dump in %s\n", cli.Printable(where))
	}
}

// one sets the build of the scope.
func (q *question) one(c *cobra.Command, name string) error {
	if name == "" {
		return cli.Usagef("--build is needed (btfleet builds)")
	}
	b, err := q.find(c, name)
	q.scope.Builds = []string{b}
	return err
}

// find returns the build with a name given by the user.
func (q *question) find(c *cobra.Command, name string) (string, error) {
	b, err := q.db.Find(c.Context(), name)
	if errors.Is(err, query.ErrBuild) {
		err = cli.Usagef("%s", cli.Printable(err.Error()))
	}
	return b, err
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

// writeStack writes the frames of a path, indented, the innermost first.
func writeStack(w io.Writer, stack []query.Frame) {
	for _, f := range stack {
		fmt.Fprintf(w, "    %s\n", cli.Printable(f.String()))
	}
}

// bytesOf formats a number of bytes; a negative number is not known, and printed as "-".
func bytesOf(v float64) string {
	if v < 0 {
		return "-"
	}
	return cli.Number(int64(v + 0.5))
}

// signed formats a difference in bytes.
func signed(v float64) string {
	if v < 0 {
		return "-" + bytesOf(-v)
	}
	return "+" + bytesOf(v)
}

// hours formats a time in hours.
func hours(h float64) string {
	switch {
	case h < 1:
		return cli.Count(int64(h*60), "minute")
	case h < 48:
		return cli.Count(int64(h+0.5), "hour")
	}
	return cli.Number(int64(h/24+0.5)) + " days"
}

// when formats a time of the server, UTC.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// write writes a table that fits the terminal.
func write(w io.Writer, t *cli.Table) error {
	t.Width = cli.Width(w)
	return t.Write(w)
}
