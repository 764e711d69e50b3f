// Package query answers questions about a fleet: which call paths leak in a build, what changed
// between two builds, what the heap of a device contained. DuckDB runs the SQL in the directory sql
// on the Parquet files of a store, ClickHouse on its tables.
//
//	dumps → devices, timeline
//	      → steady → builds
//	               + facts → top, growth
//	               → compared + facts → Diff
//	      → moments + facts → Judge: rows of judged and judged_devices, which are stored
//	                          └→ weighed → evidence → found → Leaks
package query

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/store"
)

//go:embed sql/*.sql
var files embed.FS

// text returns the SQL in a file. Pairs replace the texts in braces: {path} by what follows "{path}".
func text(name string, pairs ...string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(pairs...).Replace(strings.TrimRight(strings.TrimSpace(string(b)), ";"))
}

// DB answers questions about a store. Several goroutines may use it at the same time.
type DB struct {
	clickhouse *clickhouse.Store // nil for DuckDB
	part       int               // devices whose facts an engine brings at once

	store *store.Store
	db    *sql.DB
	temp  string // directory for data that does not fit in memory

	versions sync.Mutex
	version  versioned

	judging sync.Mutex
	damage  sync.Mutex
	checked map[string]error // by name of a file: what is wrong with it, nil if its checksum is right

	quarantined []string
}

// ErrNoDump is returned for a build or a device without dumps.
var ErrNoDump = errors.New("no dump")

// Engine limits DuckDB.
type Engine struct {
	Threads int
	Memory  int64 // bytes; for more, it uses the directory of temporary files
}

// DefaultEngine is two processors and 1.5 GB.
var DefaultEngine = Engine{2, 1_500_000_000}

// Open opens a store for queries, with the default engine.
func Open(ctx context.Context, s *store.Store) (*DB, error) { return DefaultEngine.Open(ctx, s) }

// Open opens a store for queries. DuckDB can read only the files of the store, and cannot use the network.
func (e Engine) Open(ctx context.Context, s *store.Store) (*DB, error) {
	temp, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	settings := []string{
		fmt.Sprintf("set memory_limit = '%dB'", e.Memory), fmt.Sprintf("set threads = %d", e.Threads), "set TimeZone = 'UTC'", "set preserve_insertion_order = false",
		"set temp_directory = " + quote(temp), "set max_temp_directory_size = '8GB'",
		"set autoinstall_known_extensions = false", "set autoload_known_extensions = false", "set allow_community_extensions = false",
		"set allowed_directories = [" + quote(s.Dir()+string(filepath.Separator)) + "]",
		"set enable_external_access = false", "set lock_configuration = true",
	}
	macros := strings.Split(text("duckdb"), ";\n")
	first := true
	c, err := duckdb.NewConnector("", func(e driver.ExecerContext) error {
		if !first { // these settings belong to the database, not to the connection
			return nil
		}
		first = false
		for _, q := range append(macros, settings...) {
			if _, err := e.ExecContext(ctx, q, nil); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("query: %w", err), os.RemoveAll(temp))
	}
	d := &DB{store: s, db: sql.OpenDB(c), temp: temp, part: devicesPerQuery, checked: map[string]error{}}
	d.db.SetMaxOpenConns(4)
	if err := d.db.PingContext(ctx); err != nil {
		d.Close()
		return nil, fmt.Errorf("query: %w", err)
	}
	return d, nil
}

// Close closes the database, not the store.
func (d *DB) Close() error {
	if d.clickhouse != nil {
		return nil
	}
	return errors.Join(d.db.Close(), os.RemoveAll(d.temp))
}

// Scope selects the dumps that a question is about.
type Scope struct {
	Builds []string  // all builds if empty
	Since  time.Time // dumps received at this time or later; the zero Time is no limit
	Device string    // "" for all
	copies bool      // with the second copies of uploads
}

// Tables of the store that a question reads.
var (
	onlyDumps = []string{store.Dumps}
	allTables = []string{store.Dumps, store.Facts, store.Paths, store.Frames}
	ofJudge   = []string{store.Dumps, store.Facts}
	ofLeaks   = []string{store.Dumps, store.Paths, store.Frames, store.JudgedPaths, store.JudgedDevices}
)

// with calls do with a session on the files of a scope that belong to some tables: the session has
// no others. If compaction deletes a file meanwhile, with calls do again with the files that replaced it;
// if a file is damaged, or is missing in three snapshots, without it.
func (d *DB) with(ctx context.Context, o Scope, tables []string, do func(*session) error) (err error) {
	if d.clickhouse != nil {
		return do(d.remote(ctx, o))
	}
	for i := range 3 {
		if err = d.try(ctx, o, tables, i == 2, do); err == nil || !gone(err) {
			return err
		}
	}
	return err
}

// gone reports whether the cause of an error is that a file does not exist.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "No files found") || strings.Contains(err.Error(), "No such file")
}

// try calls do once. Missing files are damaged if this is the last try.
func (d *DB) try(ctx context.Context, o Scope, tables []string, last bool, do func(*session) error) error {
	day := ""
	if !o.Since.IsZero() {
		day = o.Since.UTC().Format(time.DateOnly)
	}
	list, err := d.store.Snapshot(ctx, day)
	if err != nil {
		return err
	}
	d.damage.Lock()
	d.quarantined = list[store.Quarantined]
	maps.DeleteFunc(d.checked, func(name string, err error) bool {
		return err != nil && slices.Contains(d.quarantined, store.Quarantined+name)
	})
	d.damage.Unlock()
	maps.DeleteFunc(list, func(table string, _ []string) bool { return !slices.Contains(tables, table) })
	d.without(list)
	if err := d.verify(ctx, list, last); err != nil {
		return err
	}
	d.without(list)
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	s := &session{engine: local{tx}, scope: o, labels: ofLabels(ctx)}
	s.from = func(table string) string {
		if len(list[table]) == 0 {
			return empty(table)
		}
		return "select * from read_parquet(" + d.list(list[table]...) + ", hive_partitioning = false) where true"
	}
	for _, table := range tables {
		if _, err := tx.ExecContext(ctx, "create temp view "+table+" as "+s.table(table, "")); err != nil {
			return err
		}
	}
	return do(s)
}

// empty returns the rows of a table without files.
func empty(table string) string {
	kinds := map[reflect.Kind]string{reflect.String: "varchar", reflect.Int64: "bigint", reflect.Int32: "integer", reflect.Float64: "double", reflect.Bool: "boolean",
		reflect.Slice: "varchar[]", reflect.Map: "map(varchar, varchar)"}
	var columns []string
	for _, c := range store.Columns(table) {
		kind := kinds[c.Kind]
		if c.Time {
			kind = "timestamptz"
		}
		columns = append(columns, "null::"+kind+` as "`+c.Name+`"`)
	}
	return "select " + strings.Join(columns, ", ") + " where false"
}

// paths returns the paths of files of the store.
func (d *DB) paths(names []string) (list []string) {
	for _, n := range names {
		list = append(list, filepath.Join(d.store.Dir(), filepath.FromSlash(n)))
	}
	return list
}

// list returns files of the store as a list in SQL.
func (d *DB) list(names ...string) string {
	list := d.paths(names)
	for i := range list {
		list[i] = quote(list[i])
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// quote returns s as a string literal of DuckDB.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
