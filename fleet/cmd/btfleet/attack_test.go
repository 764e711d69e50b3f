package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// hostile is what a device sends that attacks the server or the readers of its pages.
type hostile struct {
	name  string
	query string // of the URL
	text  []byte
	// refused is set if the server does not accept it.
	refused bool
}

// growing returns a log of the build good with a dump of one path for each value, in blocks and bytes.
func growing(header, begin string, values ...[2]uint64) []byte {
	text := fmt.Appendf(nil, "~h#boot build=good%s\n", header)
	w := callpath.Writer{}
	for d, v := range values {
		text = fmt.Appendf(text, "~h#begin %d %s\n", d, strings.ReplaceAll(begin, "*", fmt.Sprint(d+1)))
		w.Dump = uint32(d)
		e := callpath.Entry{Live: v[0], Bytes: v[1]}
		e.Frames = []callpath.Frame{{Value: 0x100}, {Value: 0x2000}}
		var err error
		if text, err = w.Append(text, &e); err != nil {
			panic(err)
		}
		text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
	}
	return text
}

// attacks returns uploads of devices that attack.
func attacks() []hostile {
	steady := [][2]uint64{{2, 64}, {3, 96}, {4, 128}, {5, 160}}
	markup := "%3Cscript%3Ealert(1)%3C/script%3E%1B%5B31m%27%3B%20drop%20table%20dumps%3B--"
	builds := fmt.Appendf(nil, "")
	for i := range 2000 {
		builds = append(builds, bytes.Replace(growing("", "t=*", steady[0]), []byte("build=good"), fmt.Appendf(nil, "build=many%d", i), 1)...)
	}
	return []hostile{
		{name: "markup-in-the-header", text: growing(" fw="+markup+" dev=markup-in-the-header", "t=*3600000000 why="+markup, steady...)},
		{name: "markup-as-build", text: bytes.Replace(growing("", "t=*", steady...), []byte("build=good"), []byte("build="+markup), 1), refused: true},
		{name: "markup-as-printable-build", text: bytes.Replace(growing("", "t=*3600000000", steady...), []byte("build=good"), []byte("build=%3Cscript%3Ealert(1)%3C/script%3E'%22"), 1)},
		{name: "build-of-dots", text: bytes.Replace(growing("", "t=*", steady...), []byte("build=good"), []byte("build=.."), 1), refused: true},
		{name: "build-with-slashes", text: bytes.Replace(growing("", "t=*", steady...), []byte("build=good"), []byte("build=../../../etc"), 1)},
		{name: "fw-is-no-utf8", text: growing(" fw=%FF%FE%00", "t=*3600000000 why=%C3%28", steady...)},
		{name: "fw-in-the-url-is-no-utf8", query: "?fw=%ff%00", text: growing("", "t=*3600000000", steady...)},
		{name: "build-in-the-url-is-no-utf8", query: "?build=%ff%00%c0", text: bytes.Replace(growing("", "t=*3600000000", steady...), []byte(" build=good"), nil, 1), refused: true},
		{name: "build-is-no-utf8", text: bytes.Replace(growing("", "t=*", steady...), []byte("build=good"), []byte("build=%FF%FE"), 1), refused: true},
		{name: "long-build", text: bytes.Replace(growing("", "t=*", steady...), []byte("build=good"), []byte("build="+strings.Repeat("x", 70_000)), 1)},
		{name: "build-that-is-long-when-escaped", query: "?build=" + strings.Repeat("%2F", 128), text: bytes.Replace(growing("", "t=*", steady...), []byte(" build=good"), nil, 1), refused: true},
		{name: "long-fw", text: growing(" fw="+strings.Repeat("x", 70_000), "t=*3600000000", steady...)},
		{name: "long-why", text: growing("", "t=*3600000000 why="+strings.Repeat("x", 70_000), steady...)},
		{name: "huge-bytes", text: growing("", "t=*3600000000", [2]uint64{1, 1 << 63}, [2]uint64{1 << 62, 1<<64 - 1}, [2]uint64{1<<64 - 2, 1<<64 - 1}, [2]uint64{1, 8}), refused: true},
		{name: "huge-blocks", text: growing("", "t=*3600000000", [2]uint64{1<<63 - 1, 0}, [2]uint64{0, 1<<63 - 1}, [2]uint64{1, 8}), refused: true},
		{name: "bytes-of-a-large-heap", text: growing("", "t=*3600000000", [2]uint64{1 << 30, 1 << 40}, [2]uint64{1 << 31, 1 << 41}, [2]uint64{1 << 32, 1 << 42})},
		{name: "huge-uptime", text: growing("", "t=18446744073709551*15", steady...)},
		{name: "huge-epoch", text: growing(" epoch=18446744073709551615", "t=*3600000000", steady...)},
		{name: "epoch-that-overflows-with-the-uptime", text: growing(" epoch=9223372036854775807", "t=*3600000000", steady...)},
		{name: "clock-goes-back", text: growing("", "t=9*", append(steady, steady...)...)},
		{name: "huge-heap", text: bytes.ReplaceAll(growing("", "t=*3600000000", steady...), []byte("~h#end"), []byte("~h#heap size=18446744073709551615 free=18446744073709551615 largest=18446744073709551615 min=0\n~h#end"))},
		{name: "announces-more", text: growing("", "t=*3600000000 n=18446744073709551615 b=18446744073709551615 l=4294967295", steady...)},
		{name: "announces-less", text: growing("", "t=*3600000000 n=0 b=0 l=0", steady...)},
		{name: "dumps-of-equal-numbers", text: bytes.ReplaceAll(growing("", "t=*3600000000", append(steady, steady...)...), []byte("~h#begin 5"), []byte("~h#begin 1"))},
		{name: "many-builds", text: builds, refused: true},
		{name: "many-boots", text: append(growing("", "t=*3600000000", steady...), bytes.Repeat([]byte("~h#boot build=good\n"), 100_000)...)},
		{name: "dump-among-many-boots", text: append(bytes.Repeat([]byte("~h#boot build=good\n"), 100_000), growing("", "t=*3600000000", steady...)...)},
		{name: "long-line", text: append(bytes.Repeat([]byte("~p#A"), 900_000), growing("", "t=*3600000000", steady...)...)},
		{name: "begins-only", text: append(growing("", "t=*3600000000", steady...), bytes.Repeat([]byte("~h#begin 0\n"), 100_000)...), refused: true},
		{name: "binary", text: append(bytes.Repeat([]byte{0, 0xff, 0x1b, '\r', 0x80, '~'}, 100_000), growing("", "t=*3600000000", steady...)...)},
		{name: "a.b:c@d_e-f", text: growing("", "t=*3600000000", steady...)},
	}
}

// processor returns the processor time of the process.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Devices that attack do not end the server, stop the writing, hide the dumps of other devices, or
// write markup or control characters into a page or a terminal.
func TestAttacks(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	spool, err := server.OpenSpool(t.TempDir(), 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	registry := prometheus.NewRegistry()
	metrics := server.NewMetrics(registry, spool)
	db, err := openDB(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	handler := page.New(db, log)
	alerts := &watch{store: s, db: db, pages: handler, log: log, days: 7}
	w := &server.Writer{Spool: spool, Store: s, Log: log, Metrics: metrics, MaxUploads: 2000, MaxFacts: 1 << 20}
	h := httptest.NewServer((&server.Server{Spool: spool, Limits: server.DefaultLimits, Log: log, Metrics: metrics, Pages: handler}).Handler(registry))
	defer h.Close()
	for i := range 3 { // devices that do not attack
		resp := request(t, "PUT", h.URL+fmt.Sprintf("/v1/dumps/d%d", i), "", "", bytes.NewReader(fleettest.Log(fmt.Sprintf("d%d", i), "good", 8, 20)))
		if resp.StatusCode != http.StatusCreated {
			t.Fatal(resp.Status)
		}
	}
	for _, a := range attacks() {
		start := processor(t)
		resp := request(t, "PUT", h.URL+"/v1/dumps/"+a.name+a.query, "", "", bytes.NewReader(a.text))
		answer, _ := io.ReadAll(resp.Body)
		if a.refused != (resp.StatusCode/100 == 4) || !a.refused && resp.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s %.200s", a.name, resp.Status, answer)
		}
		if took := processor(t) - start; took > 10*time.Second {
			t.Errorf("%s: %v of processors", a.name, took)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatalf("%s: writing fails: %.300s", a.name, err)
		}
	}
	if err := s.Compact(t.Context(), 0); err != nil {
		t.Errorf("compaction: %v", err)
	}
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	alerts.url = hook.URL
	if err := alerts.pass(t.Context()); err != nil {
		t.Errorf("alerts: %v", err)
	}
	builds, err := db.Builds(t.Context(), query.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	const other = "<script>alert(1)</script>'\""
	paths := []string{"/", "/devices", "/metrics", "/diff", "/healthz", "/diff?from=good&to=" + url.QueryEscape(other),
		"/device/" + url.PathEscape("\x00"), "/device/..%2f..", "/build/" + url.PathEscape("\xff\x00"), "/devices?build=%ff%00", "/devices?from=-1", "/diff?from=%00&to=%ff"}
	for _, b := range builds {
		b := url.PathEscape(b.Build)
		paths = append(paths, "/build/"+b, "/build/"+b+"/heap", "/v1/builds/"+b)
	}
	for _, a := range attacks() {
		if !a.refused {
			paths = append(paths, "/device/"+a.name)
		}
	}
	for i, p := range paths {
		resp := request(t, "GET", h.URL+p, "", "", nil)
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 && (resp.StatusCode/100 != 4 || i < 6 || i >= 12) {
			t.Errorf("%q: %s %.300q", p, resp.Status, text)
		}
		if p != "/metrics" && strings.Contains(string(text), "<script>alert") || strings.ContainsAny(string(text), "\x1b\x00") || !utf8.Valid(text) {
			t.Errorf("%q: markup or control characters of a device", p)
		}
	}
	if list := db.Damaged(); len(list) > 0 {
		t.Errorf("damaged files: %q", list)
	}
	for _, args := range [][]string{{"builds"}, {"top", "--build", "good"}, {"leaks", "--build", "good"}, {"diff", "good", other}, {"builds", "--json"}} {
		code, out, errs := ask(append(args, "--store", dir)...)
		if code != 0 {
			t.Errorf("%q: exit code %d: %.300s", args, code, errs)
		}
		if strings.ContainsAny(out+errs, "\x1b\x00") || !utf8.ValidString(out+errs) {
			t.Errorf("%q: control characters of a device", args)
		}
	}
	devices, err := db.Devices(t.Context(), query.Scope{Builds: []string{"good"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, d := range devices {
		if d.Device == "d0" || d.Device == "d1" || d.Device == "d2" {
			good++
		}
	}
	if good != 3 {
		t.Errorf("%d of 3 devices that do not attack", good)
	}
	if strings.Contains(logged.String(), "\x1b") {
		t.Error("control characters in the log of the server")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "..", "etc*")); len(names) > 0 {
		t.Errorf("%q outside of the store", names)
	}
}
