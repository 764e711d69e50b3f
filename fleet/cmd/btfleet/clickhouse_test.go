package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// runSQL runs statements that a command printed, by ClickHouse's HTTP interface.
func runSQL(t *testing.T, where, statements string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	to := "http://" + u.Host + "/?database=" + strings.Trim(u.Path, "/")
	for _, q := range strings.SplitAfter(statements, ";\n") {
		if strings.TrimSpace(q) == "" {
			continue
		}
		resp, err := http.Post(to, "", strings.NewReader(strings.TrimSuffix(q, ";\n")))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %s %v\n%s", q, resp.Status, err, text)
		}
	}
}

// printed returns what a command prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := ask(args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d, %s", args, code, errs)
	}
	return out
}

// number returns the number that ClickHouse answers.
func number(t *testing.T, tables *clickhouse.Store, what, from string) (n int) {
	t.Helper()
	r, err := tables.Query(t.Context(), "select toInt64("+what+") from "+from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Next() || r.Scan(&n) != nil {
		t.Fatalf("no number: %s", what)
	}
	return n
}

// Each command and each page has the same answer from a store and from the tables into which its files were
// loaded, twice.
func TestClickHouse(t *testing.T) {
	cmdtest.Long(t)
	ch := fleettest.ClickHouse(t)
	dir := leaky(t)
	for range 2 {
		runSQL(t, ch, printed(t, "clickhouse", "schema", "--keep-days", "3650"))
		for _, table := range []string{store.Paths, store.Facts, store.Dumps} { // as in store.md
			runSQL(t, ch, "insert into "+table+" select *, toDate(extract(_path, 'day=(.{10})')) from file('"+dir+"/"+table+"/*/*.parquet') settings use_hive_partitioning = 0;\n")
		}
	}
	for _, args := range [][]string{
		{"builds"}, {"leaks", "--build", "1.4.1"}, {"leaks", "--build", "1.4.0", "--json"}, {"diff", "1.4.0", "1.4.1"},
		{"top", "--build", "1.4.1", "--since", "2026-06-03"}, {"rollout", "1.4.0", "1.4.1"},
	} {
		want := printed(t, append(args, "--store", dir)...)
		if got := printed(t, append(args, "--clickhouse", ch)...); got != want || want == "" {
			t.Errorf("%v: %s", args, cmdtest.FirstDifference(got, want))
		}
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := clickhouse.Open(ch)
	if err != nil {
		t.Fatal(err)
	}
	db := query.OpenClickHouse(tables)
	builds, err := db.Builds(t.Context(), query.Scope{})
	if err != nil || len(builds) != 2 {
		t.Fatal(builds, err)
	}
	log := slog.New(slog.DiscardHandler)
	page := func(t *testing.T, tables *clickhouse.Store, path string) string {
		db, err := openDB(t.Context(), s, tables)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		h := page.New(db, log)
		var w *httptest.ResponseRecorder
		for again := true; again; again = strings.Contains(w.Body.String(), "not examined yet") { // on a busy machine
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		}
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	for _, path := range []string{"/", "/build/" + builds[1].Build, "/diff?from=" + builds[0].Build + "&to=" + builds[1].Build, "/devices", "/device/sim-000001"} {
		want := page(t, nil, path)
		if got := page(t, tables, path); got != want {
			t.Errorf("%s: %s", path, cmdtest.FirstDifference(got, want))
		}
	}
}

// A log that grows, and is put in again by another run of the command, counts once.
func TestIngestGrowingLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	putGrowingLog(t, "--store", dir)
	dumps, _ := stored(t, dir)
	boots, last := map[int64]bool{}, int64(0)
	for _, d := range dumps {
		boots[d.Boot], last = true, max(last, d.Dump)
	}
	if len(boots) != 1 || len(dumps) != 4 || last != 3 {
		t.Errorf("%d boots, %d dumps, the last is %d: want 1, 4 and 3", len(boots), len(dumps), last)
	}
}

func putGrowingLog(t *testing.T, to ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "growing")
	log := fleettest.Log("growing", "b", 4, 3)
	for i, want := range []string{"1 dump of 1 device, 0 refused\n", "2 dumps of 1 device, 0 refused\n", "1 dump of 1 device, 0 refused\n"} {
		end := len(log)
		if i < 2 {
			end = bytes.Index(log, fmt.Appendf(nil, "~h#begin %d", 2*i+1))
		}
		if err := os.WriteFile(file, log[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := printed(t, append([]string{"ingest", file}, to...)...); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

// Files that are put in again count once. Names of functions are those of an ELF file.
func TestIngestClickHouse(t *testing.T) {
	cmdtest.Long(t)
	ch := fleettest.ClickHouse(t)
	runSQL(t, ch, printed(t, "clickhouse", "schema"))
	file := filepath.Join(t.TempDir(), "log")
	for d, paths := range []int{3, 5} {
		if err := os.WriteFile(file+fmt.Sprint(d), fleettest.Log(fmt.Sprint("d", d), "b", 4, paths), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "store")
	for i, want := range []string{"8 dumps of 2 devices, 0 refused\n", "0 dumps of 0 devices, 0 refused\n"} {
		if got := printed(t, "ingest", "--clickhouse", ch, "--store", dir, file+"0", file+"1", file+"0"); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	blocks := 0
	for d := range 4 {
		for _, paths := range []int{3, 5} {
			n, _ := fleettest.Held(d, paths)
			blocks += int(n)
		}
	}
	tables, err := clickhouse.Open(ch)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	if got := number(t, tables, "count()", "facts final"); got != 4*(3+5) {
		t.Errorf("%d facts, want %d", got, 4*(3+5))
	}
	if got := number(t, tables, "sum(count)", "facts final"); got != blocks {
		t.Errorf("%d blocks, want %d", got, blocks)
	}
	putGrowingLog(t, "--clickhouse", ch, "--store", filepath.Join(t.TempDir(), "store"))
	if got, want := number(t, tables, "count(distinct boot) * 100 + count() * 10 + max(dump)", "dumps final where device = 'growing'"), 143; got != want {
		t.Errorf("%d, want %d: one boot, four dumps, the last is 3", got, want)
	}
}

// Each upload that was acknowledged is in the tables once, although servers are killed.
func TestKillClickHouse(t *testing.T) {
	cmdtest.Long(t)
	ch := fleettest.ClickHouse(t)
	runSQL(t, ch, printed(t, "clickhouse", "schema"))
	kills := 5
	if cmdtest.All() {
		kills = 20
	}
	sent := kill(t, t.TempDir(), kills, "--clickhouse", ch)
	tables, err := clickhouse.Open(ch)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tables.Query(t.Context(), `select device, fw, toInt64(count()), (select toInt64(count()) from facts final) from dumps final group by device, fw`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]int{}
	dumps, facts := 0, 0
	for rows.Next() {
		var device, fw string
		var n int
		if err := rows.Scan(&device, &fw, &n, &facts); err != nil {
			t.Fatal(err)
		}
		found[device+" "+fw] = n
		dumps += n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if total := checkSent(t, sent, found, dumps, facts); total < kills {
		t.Errorf("only %d uploads", total)
	} else {
		t.Logf("%d uploads acknowledged, %d kills", total, kills)
	}
}

// Errors name the server, and not its password.
func TestClickHouseErrors(t *testing.T) {
	t.Setenv("CLICKHOUSE_PASSWORD", "environment")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"builds", "--clickhouse", "http://u:secret@127.0.0.1:1/fleet"}, 3, "ClickHouse http://127.0.0.1:1/fleet: dial tcp 127.0.0.1:1: connect: connection refused"},
		{[]string{"leaks", "--build", "1", "--clickhouse", "http://u:secret@127.0.0.1:1/fleet"}, 3, "connection refused"},
		{[]string{"builds", "--clickhouse", "https://127.0.0.1:1/fleet"}, 3, "ClickHouse https://127.0.0.1:1/fleet: dial tcp"},
		{[]string{"builds", "--clickhouse", "u:secret@127.0.0.1:1/fleet"}, 2, "expected a URL"},
		{[]string{"builds", "--clickhouse", "tcp://u:secret@127.0.0.1:1"}, 2, "expected a URL"},
		{[]string{"builds", "--clickhouse", "http://127.0.0.1:1/fleet?password=secret"}, 2, "parameter password"},
		{[]string{"ingest", "--clickhouse", "http://u:secret@127.0.0.1:1/fleet", "--store", t.TempDir(), os.DevNull}, 3, "connection refused"},
		{[]string{"serve", "--keep-days", "3", "--clickhouse", "http://127.0.0.1:1/fleet"}, 2, "--keep-days"},
		{[]string{"clickhouse", "schema", "--keep-days", "-1"}, 2, `--keep-days "-1": expected a number from 0`},
		{[]string{"clickhouse", "drop"}, 2, "expected schema"},
	} {
		code, out, errs := ask(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Contains(out+errs, "secret") || strings.Contains(out+errs, "environment") {
			t.Errorf("%v: exit code %d, %s%s, want %d, %s", c.args, code, out, errs, c.code, c.want)
		}
	}
}

// A user who may not read the tables, and a server without them, are named.
func TestClickHouseWithoutTables(t *testing.T) {
	cmdtest.Long(t)
	ch := fleettest.ClickHouse(t)
	if code, _, errs := ask("builds", "--clickhouse", ch); code != 3 || !strings.Contains(errs, "btfleet clickhouse schema") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := ask("builds", "--clickhouse", strings.Replace(ch, "default", "none", 1)); code != 3 || !strings.Contains(errs, "none") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
