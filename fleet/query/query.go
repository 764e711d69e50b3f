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
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/store"
)

//go:embed sql/*.sql
var files embed.FS

// text returns the SQL in a file.
func text(name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return strings.TrimRight(strings.TrimSpace(string(b)), ";")
}

// DB answers questions about a store. Several goroutines may use it at the same time.
type DB struct {
	clickhouse *clickhouse.Store // nil for DuckDB
	part       int               // devices whose series ClickHouse brings at once

	store *store.Store
	db    *sql.DB
	temp  string // directory for data that does not fit in memory, and for files of a bucket
	dir   string // directory of the store's files, or of their copies from a bucket

	versions sync.Mutex
	version  versioned

	judging sync.Mutex
	copying sync.Mutex
	damage  sync.Mutex
	damaged map[string]bool // names of files that cannot be read
	checked map[string]bool // names of files whose checksums are right

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

// Open opens a store for queries. DuckDB can read only the files of the store, and cannot use the network. Files of a bucket are copied to
// this machine when they are first needed; Close deletes the copies.
func (e Engine) Open(ctx context.Context, s *store.Store) (*DB, error) {
	temp, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	dir := s.Dir()
	if dir == "" {
		dir = filepath.Join(temp, "bucket")
	}
	settings := []string{
		fmt.Sprintf("set memory_limit = '%dB'", e.Memory), fmt.Sprintf("set threads = %d", e.Threads), "set TimeZone = 'UTC'", "set preserve_insertion_order = false",
		"set temp_directory = " + quote(temp), "set max_temp_directory_size = '8GB'",
		"set autoinstall_known_extensions = false", "set autoload_known_extensions = false", "set allow_community_extensions = false",
		"set allowed_directories = [" + quote(dir+string(filepath.Separator)) + "]",
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
	d := &DB{store: s, db: sql.OpenDB(c), temp: temp, dir: dir}
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

// session answers one question. Its queries refer to the tables of the store.
type session struct {
	engine
	dialect string // of the names of SQL files that only this engine runs
}

// engine runs SQL.
type engine interface {
	query(ctx context.Context, q string) (*sql.Rows, error)
	// define makes the rows of a query a table for later queries.
	define(ctx context.Context, name, q string) error
	drop(names ...string)
	// facts returns the facts of each of these devices, and perhaps of others, in the order of the names of the
	// devices. A slice is valid until the next one.
	facts(ctx context.Context, devices [][]moment) iter.Seq2[[]store.Fact, error]
}

// local is DuckDB, with views of the files of a snapshot.
type local struct {
	conn   *sql.Conn
	builds []string // of the scope
	files  []string // of facts
}

func (l local) query(ctx context.Context, q string) (*sql.Rows, error) {
	return l.conn.QueryContext(ctx, q)
}

func (l local) exec(ctx context.Context, q string) error {
	_, err := l.conn.ExecContext(ctx, q)
	return err
}

func (l local) define(ctx context.Context, name, q string) error {
	return l.exec(ctx, "create or replace temp table "+name+" as "+q)
}

func (l local) drop(names ...string) {
	for _, n := range names {
		l.exec(context.Background(), "drop table if exists "+n)
	}
}

// facts reads the files without DuckDB, which takes eight times as long to sort and group rows that are sorted in
// each file.
func (l local) facts(context.Context, [][]moment) iter.Seq2[[]store.Fact, error] {
	return store.ByDevice(l.builds, l.files)
}

// Scope selects the dumps that a question is about.
type Scope struct {
	Builds []string  // all builds if empty
	Since  time.Time // dumps received at this time or later; the zero Time is no limit
	Device string    // "" for all
	copies bool      // with the second copies of uploads

	counted bool // only facts of the dumps of the scope, for questions that do not join them
}

// Tables of the store that a question reads.
var (
	onlyDumps = []string{store.Dumps}
	allTables = []string{store.Dumps, store.Facts, store.Paths, store.Frames}
	ofJudge   = []string{store.Dumps, store.Facts, store.JudgedDevices}
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

// try calls do once, and again without damaged files; missing ones are damaged if this is the last try.
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
	d.quarantined = list.Quarantined
	maps.DeleteFunc(d.damaged, func(name string, _ bool) bool { return slices.Contains(list.Quarantined, "quarantine/"+name) })
	d.damage.Unlock()
	for name, files := range list.Tables() {
		if !slices.Contains(tables, name) {
			*files = nil
		}
	}
	d.without(list)
	if err := d.copy(ctx, list); err != nil {
		return err
	}
	if err := d.verify(ctx, list); err != nil {
		return err
	}
	d.without(list)
	err = d.ask(ctx, list, o, tables, do)
	if err == nil || ctx.Err() != nil || gone(err) && !last || errors.Is(err, store.ErrSchema) || !d.examine(ctx, list, last) {
		return err
	}
	d.without(list)
	return d.ask(ctx, list, o, tables, do)
}

// ask calls do with a session on the files of a snapshot, which are of these tables.
func (d *DB) ask(ctx context.Context, list *store.Snapshot, o Scope, tables []string, do func(*session) error) error {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	l := local{conn, o.Builds, d.paths(list.Facts)}
	if len(list.Dumps) > 0 {
		if err := l.checkSchema(ctx, d.list(list.Dumps...)); err != nil {
			return err
		}
	}
	ofBuilds := " where true"
	if len(o.Builds) > 0 {
		ofBuilds = " where build in (" + strings.Join(quoted(o.Builds), ", ") + ")"
	}
	where := ofBuilds
	if o.Device != "" {
		where += " and device = " + quote(o.Device)
	}
	since := where
	if !o.Since.IsZero() {
		since += fmt.Sprintf(" and received >= make_timestamp(%d::bigint)", o.Since.UnixMicro())
	}
	labels := ofLabels(ctx)
	since += labels
	if !o.copies {
		since += once
	}
	ofDumps := ""
	if o.counted || labels != "" {
		ofDumps = counted
	}
	drop := ""
	for _, v := range []struct {
		name, where, empty string
		files              []string
	}{
		{store.Dumps, since, noDumps, list.Dumps}, {store.Facts, where + ofDumps, noFacts, list.Facts},
		{store.Paths, ofBuilds, noPaths, list.Paths}, {store.Frames, ofBuilds, noFrames, list.Frames},
		{store.JudgedPaths, ofBuilds, noJudged, list.JudgedPaths}, {store.JudgedDevices, ofBuilds, noJudgedDevices, list.JudgedDevices},
	} {
		if !slices.Contains(tables, v.name) {
			continue
		}
		drop += "drop view if exists " + v.name + ";"
		from := v.empty
		if len(v.files) > 0 {
			from = "select * from (" + v.empty + " union all by name " + "from read_parquet(" + d.list(v.files...) + ", hive_partitioning = false, union_by_name = true))" + v.where // files of schema 1 have fewer columns
		}
		if err := l.exec(ctx, "create or replace temp view "+v.name+" as "+from); err != nil {
			return err
		}
	}
	defer l.exec(context.WithoutCancel(ctx), drop)
	return do(&session{engine: l})
}

// ofLabels returns the condition for the dumps with the labels of a context, "" for all. Labels need no quotes.
func ofLabels(ctx context.Context) (where string) {
	l := store.LabelsOf(ctx)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		where += " and labels['" + name + "'] = '" + l[name] + "'"
	}
	return where
}

// checkSchema returns an error if a file of dumps, and so its batch, is of another schema.
func (l local) checkSchema(ctx context.Context, files string) error {
	var name string
	var schema []byte
	err := l.conn.QueryRowContext(ctx, fmt.Sprintf("select file_name, value from parquet_kv_metadata(%s) where key = %s::blob and value not in (%s::blob, %s::blob) limit 1",
		files, quote(store.SchemaKey), quote(store.Schema), quote(store.Earlier))).Scan(&name, &schema)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return store.CheckSchema(name, string(schema))
}

// once leaves out the second copy of an upload that two servers stored, until compaction removes
// it. The copy has its own boots, so a join with dumps leaves out its facts, too.
const once = " qualify received = min(received) over (partition by device, upload)"

// counted leaves out the facts of such a copy.
const counted = " and (device, boot, dump) in (select device, boot, dump from dumps)"

// Definitions of the views if there are no files.
const (
	noDumps = `select '' as build, '' as fw, '' as device, 0::bigint as boot, 0::bigint as dump, make_timestamp(0) as time, 0::bigint as uptime_us,
		make_timestamp(0) as received, 0::bigint as bytes, 0::bigint as count, true as complete, 0.0::double as lost, '' as why, 0::bigint as heap_size,
		0::bigint as heap_free, 0::bigint as heap_largest, 0::bigint as heap_minimum, '' as heaps, map([]::varchar[], []::varchar[]) as labels, '' as upload where false`
	noFacts = `select '' as build, '' as device, 0::bigint as path, 0::bigint as boot, 0::bigint as dump, make_timestamp(0) as time, 0::bigint as count,
		0::bigint as bytes, true as complete, 0.0::double as lost where false`
	noPaths  = `select '' as build, 0::bigint as path, ['']::varchar[] as addresses where false`
	noFrames = `select '' as build, '' as address, 0::int as "index", '' as function, '' as file, 0::int as line, '' as missing where false`
	noJudged = `select '' as build, '' as device, 0::bigint as path, 0::bigint as judged_at, 0::bigint as boots, 0::bigint as seen, 0.0::double as weight,
		0.0::double as shape, 0.0::double as rate, 0.0::double as err, 0::bigint as since, 0.0::double as net, 0.0::double as swing, 0.0::double as level,
		0.0::double as early, 0.0::double as late, 0.0::double as jump, 0.0::double as grown where false`
	noJudgedDevices = `select '' as build, '' as device, 0::bigint as judged_at, 0::bigint as rule, 0::bigint as boot, 0::bigint as dump,
		0::bigint as boots, true as timed, 0.0::double as ended, 0.0::double as longest, 0.0::double as uptime, 0::bigint as free,
		'' as heap, 0::bigint as heap_left, 0.0::double as heap_rate, 0::bigint as heaps where false`
)

// ForgetCopies deletes the copies of the files of a bucket.
func (d *DB) ForgetCopies() error {
	if d.clickhouse != nil || d.store.Dir() != "" {
		return nil
	}
	d.copying.Lock()
	defer d.copying.Unlock()
	return os.RemoveAll(d.dir)
}

// copy copies the files of a bucket that have not been copied yet, several at a time. Files of a store never change.
func (d *DB) copy(ctx context.Context, list *store.Snapshot) error {
	if d.store.Dir() != "" {
		return nil
	}
	d.copying.Lock()
	defer d.copying.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, n := range list.Files() {
		to := d.paths([]string{n})[0]
		if _, err := os.Stat(to); err == nil {
			continue
		}
		group.Go(func() error {
			data, err := d.store.Read(ctx, n)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return fmt.Errorf("query: %w", err)
			}
			if err := os.WriteFile(to+".part", data, 0o600); err != nil {
				return fmt.Errorf("query: %w", err)
			}
			return os.Rename(to+".part", to)
		})
	}
	return group.Wait()
}

// paths returns the names of files of the store on this machine.
func (d *DB) paths(names []string) (list []string) {
	for _, n := range names {
		list = append(list, filepath.Join(d.dir, filepath.FromSlash(n)))
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

// quote returns s as a string literal in SQL.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func quoted(list []string) (all []string) {
	for _, s := range list {
		all = append(all, quote(s))
	}
	return all
}

// tables defines tables by the SQL files with their names.
func (s *session) tables(ctx context.Context, names ...string) error {
	for _, n := range names {
		file := n
		if _, err := files.Open("sql/" + n + s.dialect + ".sql"); err == nil {
			file += s.dialect
		}
		if err := s.define(ctx, n, text(file)); err != nil {
			return fmt.Errorf("query %s: %w", n, err)
		}
	}
	return nil
}

// want defines the table wanted, which holds the call paths whose frames are needed.
func (s *session) want(ctx context.Context, paths []int64) error {
	var b strings.Builder
	for i, p := range paths {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, p)
	}
	return s.define(ctx, "wanted", "select distinct path from paths where path in ("+b.String()+")")
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
