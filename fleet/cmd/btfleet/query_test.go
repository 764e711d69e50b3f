package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// ask runs the command, and returns its exit code and its output.
func ask(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// leaky returns a copy of a store with a small fleet whose build 1.4.1 leaks on every third device.
func leaky(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(leakyStore())); err != nil {
		t.Fatal(err)
	}
	return dir
}

// leakyDir is the directory of that store, which TestMain deletes.
var leakyDir string

// leakyStore writes that store, once.
var leakyStore = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		panic(err)
	}
	leakyDir = dir
	s, err := store.Open(dir)
	if err != nil {
		panic(err)
	}
	f := simulate.Default()
	f.Devices, f.Builds, f.Paths, f.Leak.Build, f.Leak.Share, f.Leak.Rate = 300, 2, 30, 1, 0.33, 500
	if _, _, err := f.Store(context.Background(), s); err != nil {
		panic(err)
	}
	db, err := query.Open(context.Background(), s)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if err := db.Judge(context.Background()); err != nil {
		panic(err)
	}
	return dir
})

func TestQuestions(t *testing.T) {
	dir := leaky(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		want string // in standard output, or in standard error if the code is not 0 or 1
	}{
		{"builds", []string{"builds"}, 0, "1.4.1"},
		{"leaks", []string{"leaks", "--build", "1.4.1"}, 0, "1 leak in build"},
		{"no leaks", []string{"leaks", "--build", "1.4.0"}, 0, "no leak found in build"},
		{"over the rate", []string{"leaks", "--build", "1.4.1", "--fail-over", "64/h"}, 1, "code+0x4275"},
		{"below the rate", []string{"leaks", "--build", "1.4.1", "--fail-over", "1K/h"}, 0, "code+0x4275"},
		{"diff", []string{"diff", "1.4.0", "1.4.1"}, 0, "grown"},
		{"diff over the size", []string{"diff", "1.4.0", "1.4.1", "--fail-over", "1K"}, 1, "grown"},
		{"diff back", []string{"diff", "1.4.1", "1.4.0", "--fail-over", "1K"}, 0, "shrunk"},
		{"top", []string{"top", "--build", "1.4.1", "-n", "1"}, 0, "code+0x"},
		{"unknown build", []string{"leaks", "--build", "9"}, 2, "none of 2 builds"},
		{"ambiguous", []string{"leaks", "--build", ""}, 2, "--build"},
		{"one build", []string{"diff", "1.4.1", "1.4.1"}, 2, "are one build"},
		{"bad time", []string{"builds", "--since", "yesterday"}, 2, "expected a date"},
		{"bad rate", []string{"leaks", "--build", "1.4.1", "--fail-over", "64"}, 2, "expected bytes per hour"},
		{"bad rows", []string{"top", "--build", "1.4.1", "-n", "-1"}, 2, "expected a number of rows"},
		{"later", []string{"builds", "--since", "2026-06-07", "--json"}, 0, `"dumps": 150`},
	} {
		code, stdout, stderr := ask(append(c.args, "--store", dir)...)
		out := stdout
		if c.code > 1 {
			out = stderr
		}
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.name, code, c.code, c.want, stdout, stderr)
		}
		if strings.ContainsAny(stdout, "\x1b\a") {
			t.Errorf("%s: control characters in %q", c.name, stdout)
		}
		if strings.Contains(stdout, `"`) {
			continue
		}
		for line := range strings.Lines(stdout) {
			if n := len([]rune(line)) - 1; n > 80 {
				t.Errorf("%s: a line of %d columns: %s", c.name, n, line)
			}
		}
	}
}

// An error names what is wrong, and what was expected.
func TestMessages(t *testing.T) {
	dir, empty := leaky(t), t.TempDir()
	file := filepath.Join(empty, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string // in standard error
	}{
		{"builds --store " + dir + "/none", 2, "--store " + dir + "/none: no such directory; btfleet serve or ingest makes it"},
		{"builds --store " + file, 2, "--store " + file + ": not a directory"},
		{"diff 1.4.1", 2, "expected btfleet diff [flags] BEFORE AFTER"},
		{"builds extra", 2, "expected btfleet builds [flags]"},
		{"ingest " + t.TempDir() + " --store " + empty + "/s", 2, "no file in /"},
		{"ingest " + empty + "/nofile --store " + empty + "/s", 2, "btfleet: " + empty + "/nofile: no such file"},
		{"serve --write-every 0 --store " + empty + "/s", 2, "expected more than 0"},
		{"builds --store " + empty, 0, "no dump in the store " + empty},
		{"leaks --build 1 --store " + empty, 2, "build 1: there is no dump of any build"},
		{"leaks --store " + dir, 2, "--build is needed (btfleet builds)"},
		{"top --store " + dir, 2, "--build is needed (btfleet builds)"},
		{"builds --store gs://x", 2, "gs://x: no such directory"},
		{"builds --clickhouse http://u:secret@127.0.0.1:1/fleet", 3, "ClickHouse http://127.0.0.1:1/fleet: dial tcp 127.0.0.1:1"},
		{"builds --clickhouse ftp://x", 2, "--clickhouse: expected a URL such as http://HOST:8123/DATABASE"},
		{"demo --devices 3 --store " + dir, 2, "it has dumps, expected an empty store"},
		{"serve --listen 127.0.0.1:99999 --store " + empty + "/s --spool " + empty + "/p", 3, "--listen 127.0.0.1:99999: "},
		{"token", 2, "expected btfleet token {device NAME | fleet | read | delete} [LABEL...]"},
		{"token all", 2, "expected device NAME, fleet, read or delete"},
		{"compact --keep-days -1 --store " + dir, 2, `--keep-days "-1": expected a number from 0`},
		{"serve --keep-size x --store " + empty + "/s", 2, `--keep-size "x": expected a number of bytes`},
		{"leaks --build 1.4.1 --fail-over 64 --store " + dir, 2, `--fail-over "64": expected bytes per hour, such as 64/h or 1K/h`},
	} {
		code, _, stderr := ask(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "secret") || strings.Contains(stderr, "LINE 1") {
			t.Errorf("%s: exit code %d, want %d with %q\n%s", c.args, code, c.code, c.want, stderr)
		}
	}
}

// If all that a question asks for is in a damaged file, the file is named.
func TestDamaged(t *testing.T) {
	dir := leaky(t)
	files, err := filepath.Glob(dir + "/facts/*/simulated-1-*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("no Parquet"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"leaks --build 1.4.1", "leaks --build 1.4.1 --fail-over 64/h", "top --build 1.4.1"} {
		if code, out, errs := ask(append(strings.Fields(args), "--store", dir)...); code != 1 || !strings.Contains(errs, "no dump; ") || !strings.Contains(errs, "facts/day=2026-06-01/simulated-1-0.parquet") {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errs)
		}
	}
	f := simulate.Default()
	w := httptest.NewRecorder()
	pagesOf(t, dir).ServeHTTP(w, httptest.NewRequest("GET", "/v1/builds/"+f.BuildID(1), nil))
	if w.Code != 404 || !strings.Contains(w.Body.String(), "damaged file") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func openDB(ctx context.Context, s *store.Store, tables *clickhouse.Store) (*query.DB, error) {
	return (&rowsFlag{threads: 2, memory: 1 << 30}).openDB(ctx, s, tables)
}

// pagesOf returns the pages of the store in a directory.
func pagesOf(t *testing.T, dir string) *page.Pages {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openDB(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return page.New(db, slog.New(slog.DiscardHandler))
}

// alike reports whether two values of JSON are equal, but for the rounding of sums, whose order varies.
func alike(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 1e-9*math.Abs(a)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, alike)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, alike)
	}
	return reflect.DeepEqual(a, b)
}

// --json writes the values of the API's answers.
func TestJSONIsTheAPI(t *testing.T) {
	dir := leaky(t)
	h := pagesOf(t, dir)
	f := simulate.Default()
	for _, c := range []struct{ args, path, field string }{
		{"builds", "/v1/builds", "builds"},
		{"leaks --build 1.4.1", "/v1/builds/" + f.BuildID(1), "leaks"},
		{"top --build 1.4.1 -n 50", "/v1/builds/" + f.BuildID(1), "top"},
		{"diff 1.4.0 1.4.1", "/v1/diff?from=" + f.BuildID(0) + "&to=" + f.BuildID(1), "diff"},
	} {
		code, stdout, stderr := ask(append(strings.Fields(c.args), "--json", "--store", dir)...)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		var got, want any
		if err := errors.Join(json.Unmarshal([]byte(stdout), &got), json.Unmarshal(w.Body.Bytes(), &want)); code != 0 || err != nil {
			t.Errorf("%s: exit code %d, %v: %s", c.args, code, err, stderr)
			continue
		}
		if c.field != "" {
			want = want.(map[string]any)[c.field]
		}
		// These are of the page only.
		switch list, _ := want.([]any); c.field {
		case "leaks":
			for _, r := range want.(map[string]any)["rows"].([]any) {
				delete(r.(map[string]any), "curves")
			}
		case "builds":
			for _, b := range list {
				for _, key := range []string{"trend", "status", "ran"} {
					delete(b.(map[string]any), key)
				}
			}
		}
		if want == nil || !alike(got, want) {
			t.Errorf("%s: %.300s\nAPI: %.300v", c.args, stdout, want)
		}
	}
}

func TestQuestionsJSON(t *testing.T) {
	dir := leaky(t)
	_, stdout, stderr := ask("leaks", "--store", dir, "--build", "1.4.1", "--json")
	var l query.Leaks
	if err := json.Unmarshal([]byte(stdout), &struct {
		Devices *int64
		Rows    *[]struct {
			Verdict string
			Path    string
			Share   float64
			Rate    float64
			Stack   []query.Frame
		}
	}{Devices: &l.Devices}); err != nil || l.Devices != 150 {
		t.Errorf("%v, %d devices: %s%s", err, l.Devices, stdout, stderr)
	}
	for _, want := range []string{`"verdict": "leak"`, `"address": "code+0x4275"`, `"rate": 49`} {
		if !strings.Contains(stdout, want) && !strings.Contains(stdout, strings.Replace(want, "49", "50", 1)) {
			t.Errorf("no %s in %.800s", want, stdout)
		}
	}
}

// untimed stores dumps without uptimes.
type untimed struct{ *store.Store }

func (s untimed) Put(ctx context.Context, b *store.Batch) error {
	for i := range b.Dumps {
		b.Dumps[i].Uptime = -1
	}
	return s.Store.Put(ctx, b)
}

// A leak without uptimes has no rate, which may be over any limit.
func TestFailOverWithoutUptimes(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := simulate.Default()
	f.Devices, f.Paths, f.Days, f.Leak.Share = 50, 40, 10, 0.5
	if _, _, err := f.Store(t.Context(), untimed{s}); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := ask("leaks", "--store", dir, "--build", "1.4.3", "--fail-over", "1M/h"); code != 1 || !strings.Contains(errs, "rate of a leak is not known") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}
