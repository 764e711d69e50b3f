package clickhouse

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Store is the tables of a database. Several goroutines may use it at the same time.
type Store struct {
	db       *sql.DB
	database string
	where    string // URL without the password
	password string
}

// settings of all requests: the SQL of package query is that of DuckDB.
var settings = map[string]any{
	"prefer_column_name_to_alias": 1, "join_use_nulls": 1,
	// The rows of a key are of one day.
	"do_not_merge_across_partitions_select_final": 1,
	"max_query_size": 16 << 20,
}

// Open returns the tables of the database of a URL, without connecting to it:
//
//	http://USER:PASSWORD@HOST:8123/DATABASE
//	https://HOST:8443/DATABASE?max_execution_time=60
//
// Parameters of the URL are settings of ClickHouse. The user and the password are those of the URL, else
// CLICKHOUSE_USER and CLICKHOUSE_PASSWORD of the environment.
func Open(where string) (*Store, error) {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Contains(strings.Trim(u.Path, "/"), "/") {
		return nil, errors.New("expected a URL such as http://HOST:8123/DATABASE or https://USER:PASSWORD@HOST:8443/DATABASE")
	}
	o := &ch.Options{Protocol: ch.HTTP, Settings: ch.Settings{}, DialTimeout: 10 * time.Second, ReadTimeout: 10 * time.Minute, MaxOpenConns: 8}
	port := "8123"
	if u.Scheme == "https" {
		port, o.TLS = "8443", &tls.Config{MinVersion: tls.VersionTLS12}
	}
	o.Addr = []string{net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))}
	o.Auth.Database = cmp.Or(strings.Trim(u.Path, "/"), "default")
	o.Auth.Username = cmp.Or(u.User.Username(), os.Getenv("CLICKHOUSE_USER"), "default")
	password, _ := u.User.Password()
	o.Auth.Password = cmp.Or(password, os.Getenv("CLICKHOUSE_PASSWORD"))
	for name, value := range settings {
		o.Settings[name] = value
	}
	for name, values := range u.Query() {
		if name == "user" || name == "password" || name == "database" {
			return nil, fmt.Errorf("parameter %s: expected it in USER:PASSWORD@HOST/DATABASE", name)
		}
		o.Settings[name] = values[0]
	}
	db := ch.OpenDB(o)
	return &Store{db: db, database: o.Auth.Database, where: (&url.URL{Scheme: u.Scheme, Host: o.Addr[0], Path: "/" + o.Auth.Database}).String(), password: o.Auth.Password}, nil
}

// Close closes the connections.
func (s *Store) Close() error { return s.db.Close() }

// Error returns an error with the place of the database, and without its password.
func (s *Store) Error(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	text := err.Error()
	var e *ch.Exception
	var refused *net.OpError
	switch {
	case errors.As(err, &e):
		text = e.Message
		if e.Code == 60 || e.Code == 81 { // UNKNOWN_TABLE, UNKNOWN_DATABASE
			text += " (btfleet clickhouse schema prints the tables)"
		}
	case errors.As(err, &refused):
		return fmt.Errorf("ClickHouse %s: %w", s.where, refused)
	}
	if s.password != "" {
		text = strings.ReplaceAll(text, s.password, "***")
		text = strings.ReplaceAll(text, url.QueryEscape(s.password), "***")
	}
	return fmt.Errorf("ClickHouse %s: %s", s.where, text)
}

// URL returns the URL of the database, without user and password.
func (s *Store) URL() string { return s.where }

// Table returns the name of a table in SQL.
func (s *Store) Table(name string) string { return QuoteName(s.database) + "." + QuoteName(name) }

// Query runs a query. The caller must close the rows.
func (s *Store) Query(ctx context.Context, q string) (*sql.Rows, error) {
	r, err := s.db.QueryContext(ctx, q)
	return r, s.Error(err)
}

// Check returns an error if the server does not answer or has no tables.
func (s *Store) Check(ctx context.Context) error {
	for _, t := range store.Tables {
		rows, err := s.Query(ctx, "select 1 from "+s.Table(t)+" limit 0")
		if err != nil {
			return err
		}
		rows.Close()
	}
	return nil
}

// Put writes a batch, the dumps last: facts without their dump do not count. A repeated Put of the same
// rows changes nothing.
func (s *Store) Put(ctx context.Context, b *store.Batch) error {
	day := b.Day.UTC().Truncate(24 * time.Hour)
	if err := insert(ctx, s, store.Paths, b.Paths, day); err != nil {
		return s.Error(err)
	}
	if err := insert(ctx, s, store.Facts, b.Facts, day); err != nil {
		return s.Error(err)
	}
	return s.Error(insert(ctx, s, store.Dumps, b.Dumps, day))
}

// PutJudged stores judgements. They replace earlier ones of their devices.
func (s *Store) PutJudged(ctx context.Context, j *store.Judgements) error {
	day := time.Now().UTC().Truncate(24 * time.Hour)
	if err := insert(ctx, s, store.JudgedPaths, j.Paths, day); err != nil {
		return s.Error(err)
	}
	return s.Error(insert(ctx, s, store.JudgedDevices, j.Devices, day))
}

// DeleteDevice deletes the rows of a device.
func (s *Store) DeleteDevice(ctx context.Context, device string) error {
	for _, t := range []string{store.Facts, store.Dumps, store.JudgedPaths, store.JudgedDevices} {
		q := "alter table " + t + " delete where device = " + Quote(device) + " settings mutations_sync = 2"
		if _, err := s.db.ExecContext(ctx, q); err != nil {
			return s.Error(err)
		}
	}
	return nil
}

// PutFrames stores the functions of addresses of builds.
func (s *Store) PutFrames(ctx context.Context, _ time.Time, rows []store.Frame) error {
	return s.Error(insert(ctx, s, store.Frames, rows))
}

// insert writes rows of a table, with the values that follow their columns.
func insert[T any](ctx context.Context, s *Store, name string, rows []T, more ...any) (err error) {
	if len(rows) == 0 {
		return nil
	}
	columns := store.Columns(name)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tx.Rollback()
		}
	}()
	stmt, err := tx.PrepareContext(ctx, "insert into "+name)
	if err != nil {
		return err
	}
	values := make([]any, len(columns), len(columns)+len(more))
	for i := range rows {
		r := reflect.ValueOf(&rows[i]).Elem()
		for j, c := range columns {
			if values[j] = r.Field(j).Interface(); c.Time {
				values[j] = time.UnixMicro(r.Field(j).Int()).UTC()
			}
		}
		if _, err := stmt.ExecContext(ctx, append(values, more...)...); err != nil {
			return err
		}
	}
	return tx.Commit()
}
