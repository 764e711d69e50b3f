package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// fixture is a server with a store.
type fixture struct {
	*Server
	w   *Writer
	url string
}

func serve(t testing.TB, spoolDir string, to *store.Store, tokens *Tokens) *fixture {
	t.Helper()
	spool, err := OpenSpool(spoolDir, 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	registry := prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	s := &Server{Spool: spool, Tokens: tokens, Limits: DefaultLimits, Log: log, Metrics: NewMetrics(registry, spool),
		Pages: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "page") })}
	s.Limits.Rate, s.Limits.Burst = 1e9, 1e9
	s.Writer = &Writer{Spool: spool, Store: to, DeleteDevice: to.DeleteDevice, Log: log, Metrics: s.Metrics, MaxUploads: 100, MaxFacts: 1 << 20}
	f := &fixture{Server: s, w: s.Writer}
	h := httptest.NewServer(s.Handler(registry))
	t.Cleanup(h.Close)
	f.url = h.URL
	return f
}

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// send sends an upload and returns status and answer.
func (f *fixture) send(t testing.TB, device string, body []byte, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("PUT", f.url+"/v1/dumps/"+device, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == 429 || resp.StatusCode == 507 {
		if resp.Header.Get("Retry-After") == "" {
			t.Errorf("status %d without Retry-After", resp.StatusCode)
		}
	}
	return resp.StatusCode, string(text)
}

// inStore returns the sums of bytes of the dumps and of the facts in a store, and the number
// of copies of each upload.
func inStore(t testing.TB, s *store.Store) (dumps, facts int64, uploads map[string]int) {
	t.Helper()
	list, err := s.Snapshot(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	uploads = map[string]int{}
	for i := range list[store.Dumps] {
		seen := map[string]bool{}
		for _, r := range rowsOf[store.Dump](t, s, list[store.Dumps][i]) {
			dumps += r.Bytes
			if u := r.Device + " " + r.Upload; !seen[u] {
				seen[u] = true
				uploads[u]++
			}
		}
		for _, r := range rowsOf[store.Fact](t, s, list[store.Facts][i]) {
			facts += r.Bytes
		}
	}
	return dumps, facts, uploads
}

// rowsOf returns the rows of a file of a store.
func rowsOf[T any](t testing.TB, s *store.Store, name string) []T {
	t.Helper()
	rows, err := store.Read[T](s, name)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func zst(b []byte) []byte {
	e, _ := zstd.NewWriter(nil)
	return e.EncodeAll(b, nil)
}

// health returns the answer of /healthz.
func (f *fixture) health(t testing.TB) (int, string) {
	t.Helper()
	resp, err := http.Get(f.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (f *fixture) flush(t testing.TB) {
	t.Helper()
	if err := f.w.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestUpload(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	want := int64(0)
	for i, c := range []struct {
		encoding string
		pack     func([]byte) []byte
	}{{"", bytes.Clone}, {"gzip", zip}, {"zstd", zst}, {"", zip}, {"", zst}} {
		device := fmt.Sprintf("d%d", i)
		log := fleettest.Log(device, "5ca1ab1e", 2, 30)
		for _, status := range []int{201, 200} { // the second time it is the same upload
			got, answer := f.send(t, device, c.pack(log), "Content-Encoding", c.encoding)
			var a Answer
			if err := json.Unmarshal([]byte(answer), &a); err != nil || got != status || a != (Answer{Dumps: 2, Paths: 30, Again: status == 200}) {
				t.Errorf("%s: status %d, %s %v", c.encoding, got, answer, err)
			}
		}
		for d := range 2 {
			_, n := fleettest.Held(d, 30)
			want += n
		}
	}
	f.flush(t)
	// The server still recognizes the upload after it is in the store.
	if got, _ := f.send(t, "d0", fleettest.Log("d0", "5ca1ab1e", 2, 30)); got != 200 {
		t.Errorf("status %d, want 200", got)
	}
	f.flush(t)
	dumps, facts, uploads := inStore(t, to)
	if dumps != want || facts != want || len(uploads) != 5 || f.Spool.Size() != 0 {
		t.Errorf("dumps of %d bytes, facts of %d, %d uploads, %d bytes in the spool; want %d", dumps, facts, len(uploads), f.Spool.Size(), want)
	}
	for _, path := range []string{"/healthz", "/metrics", "/"} {
		resp, err := http.Get(f.url + path)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v %v", path, resp, err)
		}
	}
}

// An upload of a ~h#boot alone begins a boot, each time a dump came between; the rest of the boot may be sent without it.
func TestBootAlone(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	boot := "I (12) ~h#boot dev=d1 build=b\x1b[0m\nI (13) wifi: on\n"
	for i, text := range []string{boot, boot, "~h#begin 0 t=1000000\n~b#size: 16, 0x8000100\n~h#end 0\n", "~h#begin 1 t=5000000\n~b#size: 20, 0x8000100\n~h#end 1\n",
		boot, "~h#begin 1 t=6000000\n~b#size: 24, 0x8000100\n~h#end 1\n"} {
		status, answer := f.send(t, "d1", []byte(text))
		if want := map[bool]string{true: `{"dumps":0,"paths":0}`, false: `{"dumps":1,"paths":1}`}[text == boot]; status != 201 || strings.TrimSpace(answer) != want {
			t.Fatalf("upload %d: status %d: %s, want %s", i, status, answer, want)
		}
		if i > 2 { // also if several are in a batch
			f.flush(t)
		}
	}
	list, err := to.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	boots := map[int64]string{}
	for _, name := range list[store.Dumps] {
		for _, d := range rowsOf[store.Dump](t, to, name) {
			boots[d.Boot] += fmt.Sprintf("%d:%d ", d.Dump, d.Bytes)
		}
	}
	if got := slices.Sorted(maps.Values(boots)); !slices.Equal(got, []string{"0:16 1:20 ", "0:24 "}) {
		t.Errorf("boots with dumps %q", got)
	}
	if n, err := f.Spool.Bad(); n != 0 || err != nil {
		t.Errorf("%d bad uploads, %v", n, err)
	}
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Malicious uploads are refused with a reason, and are not in the store.
func TestRefused(t *testing.T) {
	tokens, err := ReadTokens(strings.NewReader("device d1 "+hash("one")+"\nfleet "+hash("all")+"\nread "+hash("look")+"\n"), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, tokens)
	f.Limits.Body, f.Limits.Text, f.Limits.Ingest.Paths = 100_000, 1_000_000, 1000
	log := fleettest.Log("d1", "5ca1ab1e", 1, 20)
	bomb := bytes.Repeat([]byte("~p#AAAA"), 10_000_000)
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for _, c := range []struct {
		name, device string
		body         []byte
		header       []string
		status       int
	}{
		{"no token", "d1", log, nil, 401},
		{"wrong token", "d1", log, bearer("two"), 401},
		{"token of another device", "d2", log, bearer("one"), 401},
		{"token to read", "d1", log, bearer("look"), 401},
		{"the log is of another device", "d2", log, bearer("all"), 403},
		{"traversal", "..%2f..%2fetc", log, bearer("all"), 400},
		{"markup", "%3Cscript%3E", log, bearer("all"), 400},
		{"no dump", "d1", []byte("hello"), bearer("one"), 400},
		{"empty", "d1", nil, bearer("one"), 400},
		{"unknown encoding", "d1", log, append(bearer("one"), "Content-Encoding", "br"), 415},
		{"not gzip", "d1", log, append(bearer("one"), "Content-Encoding", "gzip"), 400},
		{"not zstd", "d1", log, append(bearer("one"), "Content-Encoding", "zstd"), 400},
		{"half of gzip", "d1", zip(log)[:200], append(bearer("one"), "Content-Encoding", "gzip"), 400},
		{"gzip in gzip", "d1", zip(zip(log)), append(bearer("one"), "Content-Encoding", "gzip"), 400},
		{"zstd in gzip, no encoding", "d1", zip(zst(log)), bearer("one"), 400},
		{"UTF-16", "d1", append([]byte("\xff\xfe"), bytes.ReplaceAll(log, []byte(""), []byte("\x00"))[1:]...), bearer("one"), 400},
		{"gzip bomb, no encoding", "d1", zip(bomb), bearer("one"), 413},
		{"a boot of another device at the end", "d1", append(bytes.Clone(log), "~h#boot dev=d2\n"...), bearer("one"), 403},
		{"a boot of another device alone", "d1", []byte("~h#boot dev=d2\n"), bearer("one"), 403},
		{"a boot with a long build alone", "d1", []byte("~h#boot build=" + strings.Repeat("x", 201) + "\n"), bearer("one"), 400},
		{"a boot after text", "d1", []byte("~h#end 0\n~h#boot\n"), bearer("one"), 400},
		{"gzip bomb", "d1", zip(bomb), append(bearer("one"), "Content-Encoding", "gzip"), 413},
		{"zstd bomb", "d1", zst(bomb), append(bearer("one"), "Content-Encoding", "zstd"), 413},
		{"large", "d1", bomb[:200_000], bearer("one"), 413},
		{"many paths", "d1", zip(fleettest.Log("d1", "b", 1, 20_000)), append(bearer("one"), "Content-Encoding", "gzip"), 413},
		{"a parameter that is not known", "d1?biuld=b", log, bearer("one"), 400},
		{"two builds in the URL", "d1?build=a&build=b", log, bearer("one"), 400},
		{"a build in the URL that is not escaped", "d1?build=%zz", log, bearer("one"), 400},
		{"long build", "d1?build=" + strings.Repeat("x", 201), log, bearer("one"), 400},
	} {
		if status, answer := f.send(t, c.device, c.body, c.header...); status != c.status || !strings.Contains(answer, "error") {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, answer)
		}
	}
	for _, path := range []string{"/", "/metrics"} {
		if resp, err := http.Get(f.url + path); err != nil || resp.StatusCode != 401 {
			t.Errorf("%s without a token: %v %v", path, resp, err)
		}
	}
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{{"POST", "/v1/dumps/d1", 405, "PUT"}, {"GET", "/v1/dumps/d1", 405, "PUT"}, {"POST", "/v1/builds", 405, "GET, HEAD"}, {"GET", "/v1/devices/%ff", 400, ""}, {"GET", "/?build=%ff", 400, ""}} {
		r, err := http.NewRequest(c.method, f.url+c.path, bytes.NewReader(log))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || resp.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %s, Allow: %q", c.method, c.path, resp.Status, resp.Header.Get("Allow"))
		}
	}
	if status, answer := f.send(t, "d1", log, "Authorization", "bearer one"); status != 201 {
		t.Errorf("the right token: %d %s", status, answer)
	}
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 1 {
		t.Errorf("%v, want one upload", uploads)
	}
}

func TestTokens(t *testing.T) {
	for _, text := range []string{"device d1", "fleet abc", "device ../x " + hash("x"), "all " + hash("x"), "fleet x " + hash("x"), "read " + hash("x") + "00", "read " + hash("x") + " Model=x", "delete " + hash("x") + " model=x"} {
		if _, err := ReadTokens(strings.NewReader("# ok\n\n"+text), "tokens"); err == nil || !strings.HasPrefix(err.Error(), "tokens:3: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	before, err := ReadTokens(strings.NewReader("\ufeffdevice d1 "+hash("one")+"\r\n\r\n"), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	after, err := ReadTokens(strings.NewReader("device d1 "+hash("two")), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	may := func(token string) bool { _, ok := before.may(token, "device", "d1"); return ok }
	if before.Replace(after); may("one") || !may("two") {
		t.Error("the tokens were not replaced")
	}
	token, sum := NewToken()
	if len(token) != 32 || sum != hash(token) {
		t.Error(token, sum)
	}
}

// A client that stops in the middle of an upload is cut off, and leaves nothing.
func TestSlowClient(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	h := HTTPServer(f.Handler(prometheus.NewRegistry()), f.Log)
	f.Limits.Receive = 200 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go h.Serve(l)
	defer h.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	log := fleettest.Log("d1", "b", 1, 20)
	fmt.Fprintf(c, "PUT /v1/dumps/d1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(log), log[:len(log)/2])
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 400 ")) || !bytes.Contains(text, []byte("Connection: close")) {
		t.Errorf("%q %v, want a closed connection", text, err)
	}
	if names, _ := f.Spool.Waiting(); len(names) != 0 {
		t.Errorf("%v in the spool", names)
	}
}

// Slow uploads of many devices leave all slots to others, and have to end in time.
func TestSlots(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	f.Limits.Uploads, f.Limits.Receive = 2, 10*time.Second
	var slow []net.Conn
	for i := range 16 {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "PUT /v1/dumps/slow%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n~", i)
		slow = append(slow, c)
	}
	all := func() *quota { f.mu.Lock(); defer f.mu.Unlock(); return f.quotas(&client{})[0] }
	held := func() int64 { q := all(); f.mu.Lock(); defer f.mu.Unlock(); return q.arriving }
	waitFor(t, func() bool { return held() >= 16 })
	if status, answer := f.send(t, "d2", fleettest.Log("d2", "b", 1, 5)); status != 201 || len(all().slots) != 0 {
		t.Errorf("while others send slowly: status %d, %s, %d slots", status, answer, len(all().slots))
	}
	for _, c := range slow { // all of them are refused when their time is over
		c.SetReadDeadline(time.Now().Add(time.Minute))
		head := make([]byte, 12)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		if s := string(head[9:]); s != "400" {
			t.Errorf("a slow upload gets %q", head)
		}
	}
	waitFor(t, func() bool { return held() == 0 })
}

// What arrives from one device has an eighth of the memory for it, from one address a quarter, and with one token a half.
func TestReceiving(t *testing.T) {
	s := &Server{Limits: Limits{Receiving: 1 << 20, Body: 1 << 20, Uploads: 16, Values: 1, Builds: 1}}
	var held []*body
	take := func(device, address, token string, n int64) error {
		b := &body{s: s, of: s.quotas(&client{device: device, address: address, token: token})}
		held = append(held, b)
		return b.take(n)
	}
	for i, c := range []struct {
		device, address, token string
		refused                string
	}{
		{"d1", "a1", "t1", ""}, {"d1", "a1", "t1", "device"}, {"d2", "a1", "t1", ""}, {"d3", "a1", "t1", "address"}, {"d3", "a2", "t1", ""},
		{"d4", "a2", "t1", ""}, {"d5", "a3", "t1", "token"}, {"d5", "a3", "t2", ""}, {"d6", "a3", "t2", ""}, {"d7", "a4", "t2", ""}, {"d8", "a4", "t3", ""}, {"d9", "a5", "t4", "server"},
	} {
		if err := take(c.device, c.address, c.token, 128<<10); (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("upload %d: %v, want one refused by the quota of the %q", i, err, c.refused)
		}
	}
	for _, b := range held {
		b.take(-b.taken)
	}
	for _, q := range s.quotas(&client{device: "d1", address: "a1", token: "t1"}) {
		if q.arriving != 0 {
			t.Errorf("%s: %d bytes after all", q.name, q.arriving)
		}
	}
}

// A client with the token of the fleet, which sends logs under many names and from many addresses, has half of the slots at
// most; one address a quarter.
func TestSlotsOfToken(t *testing.T) {
	s := &Server{Limits: DefaultLimits}
	ctx, stop := context.WithCancel(t.Context())
	got := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 60 {
		c := &client{device: fmt.Sprint("d", i), address: fmt.Sprint("a", i%10), token: "fleet"}
		if i >= 40 {
			c.address, c.token = "one", fmt.Sprint("t", i)
		}
		all.Go(func() {
			if _, err := s.slot(ctx, c); err == nil {
				mu.Lock()
				got[map[bool]string{true: "token", false: "address"}[c.token == "fleet"]]++
				mu.Unlock()
			}
		})
	}
	waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return got["token"] == 4 && got["address"] == 2 })
	for i := range 2 { // others have the rest
		if _, err := s.slot(t.Context(), &client{device: fmt.Sprint("other", i), address: fmt.Sprint("other", i), token: fmt.Sprint("other", i)}); err != nil {
			t.Error(err)
		}
	}
	stop()
	all.Wait()
	if got["token"] != 4 || got["address"] != 2 {
		t.Errorf("%v", got)
	}
}

// Without tokens, only names of this machine are answered: no name of another site that leads here.
func TestHost(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	for host, want := range map[string]int{"localhost": 200, "localhost:8470": 200, "127.0.0.1:1": 200, "[::1]:1": 200, "fleet.localhost": 200,
		"evil.example": 421, "localhost.evil.example": 421, "10.0.0.1": 421} {
		req, err := http.NewRequest("GET", f.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("host %q: status %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// A file of the spool that cannot be read is set aside, and the others are written.
func TestBadFileInSpool(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	for i := range 3 {
		id := fmt.Sprintf("d%d", i)
		if status, answer := f.send(t, id, fleettest.Log(id, "b", 1, 5)); status != 201 {
			t.Fatal(status, answer)
		}
	}
	names, err := f.Spool.Waiting()
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	if err := os.WriteFile(f.Spool.path("new", names[1]), []byte("no upload"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 2 {
		t.Errorf("%v, want two uploads", uploads)
	}
	if n, err := f.Spool.Bad(); n != 1 || err != nil {
		t.Errorf("%d bad uploads, %v, want one", n, err)
	}
	if _, text := f.health(t); !strings.Contains(text, "the directory bad of the spool, which could not be read: 1\n") {
		t.Errorf("/healthz says %q", text)
	}
	// What is no file is not opened: opening a pipe does not end.
	link, pipe := f.Spool.path("new", "0-1-link"), f.Spool.path("new", "0-1-pipe")
	if err := errors.Join(os.Symlink(link, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.flush(t)
	if n, err := f.Spool.Bad(); n != 3 || err != nil {
		t.Errorf("%d bad files, %v, want three", n, err)
	}
	// In a batch that was begun, too.
	if status, answer := f.send(t, "d4", fleettest.Log("d4", "b", 1, 5)); status != 201 {
		t.Fatal(status, answer)
	}
	if names, err = f.Spool.Waiting(); err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := f.Spool.begin(names); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Spool.path("batch", names[0]), []byte("no zstd"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.flush(t)
	if n, err := f.Spool.Bad(); n != 4 || err != nil {
		t.Errorf("%d bad uploads, %v, want four", n, err)
	}
	// It is accepted anew.
	if status, answer := f.send(t, "d4", fleettest.Log("d4", "b", 1, 5)); status != 201 {
		t.Error(status, answer)
	}
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 3 {
		t.Errorf("%v, want three uploads", uploads)
	}
}

// The server refuses uploads if a device sends too often, the spool is full, or the store
// fails. It loses nothing that it accepted.
func TestBackpressure(t *testing.T) {
	dir := t.TempDir()
	to := open(t, dir)
	f := serve(t, t.TempDir(), to, nil)
	f.Limits.Rate, f.Limits.Burst = 0.0001, 2
	for i, want := range []int{201, 201, 429} {
		if status, _ := f.send(t, "d1", fleettest.Log("d1", "b", i+1, 5)); status != want {
			t.Errorf("upload %d: status %d, want %d", i, status, want)
		}
	}
	f.Spool.limit = f.Spool.Size()
	if status, _ := f.send(t, "d2", fleettest.Log("d2", "b", 1, 5)); status != 429 {
		t.Errorf("full spool: status %d", status)
	}
	if status, text := f.health(t); status != 503 {
		t.Errorf("/healthz: status %d: %s", status, text)
	}
	if err := os.WriteFile(filepath.Join(dir, store.Facts), nil, 0o666); err != nil { // a file in place of a directory
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { f.w.Run(ctx, 5*time.Millisecond) })
	f.Spool.limit = 1 << 30
	waitFor(t, func() bool {
		_, text := f.health(t)
		return strings.Contains(text, "the store cannot be written since 20")
	})
	if err := os.Remove(filepath.Join(dir, store.Facts)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, text := f.health(t); return text == "ok\n" })
	stop()
	run.Wait()
	if status, _ := f.send(t, "d2", fleettest.Log("d2", "b", 1, 5)); status != 201 {
		t.Errorf("empty spool: status %d", status)
	}
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != 3 {
		t.Errorf("%v, want 3 uploads", uploads)
	}
}

// If the disk is full, the server answers 507, and loses nothing that it accepted.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("mounting a small file system: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	to := open(t, t.TempDir())
	f := serve(t, dir, to, nil)
	accepted := 0
	full := false
	for i := 0; i < 500 && !full; i++ {
		id := fmt.Sprintf("d%d", i)
		switch status, answer := f.send(t, id, fleettest.Log(id, "b", 1, 100)); status {
		case 201:
			accepted++
		case 507:
			full = true
		default:
			t.Fatalf("status %d: %s", status, answer)
		}
	}
	if !full || accepted == 0 {
		t.Fatalf("%d uploads accepted, full: %v", accepted, full)
	}
	if status, text := f.health(t); status != 503 {
		t.Errorf("/healthz: status %d: %s", status, text)
	}
	if err := f.w.Flush(t.Context()); err != nil && !store.Full(err) {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	f.flush(t)
	if _, _, uploads := inStore(t, to); len(uploads) != accepted {
		t.Errorf("%d uploads in the store, want %d", len(uploads), accepted)
	}
}

// The day of a dump is the server's, because the clock of a device may be wrong.
func TestClock(t *testing.T) {
	to := open(t, t.TempDir())
	f := serve(t, t.TempDir(), to, nil)
	log := bytes.Replace(fleettest.Log("d1", "b", 3, 4), []byte("~h#boot "), []byte("~h#boot epoch=86400000000 "), 1)
	if status, answer := f.send(t, "d1", log); status != 201 {
		t.Fatal(status, answer)
	}
	f.flush(t)
	list, err := to.Snapshot(t.Context(), time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly))
	if err != nil || len(list[store.Dumps]) != 1 {
		t.Errorf("%v %v, want a file of today", list, err)
	}
}

// Two servers write to one store, and one receives an upload that the other has accepted.
func TestTwoServers(t *testing.T) {
	to := open(t, t.TempDir())
	a, b := serve(t, t.TempDir(), to, nil), serve(t, t.TempDir(), to, nil)
	want := int64(0)
	for i := range 10 {
		id := fmt.Sprintf("d%d", i)
		log := fleettest.Log(id, "b", 1, 10)
		f := []*fixture{a, b}[i%2]
		if status, answer := f.send(t, id, log); status != 201 {
			t.Fatal(status, answer)
		}
		_, n := fleettest.Held(0, 10)
		want += n
	}
	if status, _ := b.send(t, "d0", fleettest.Log("d0", "b", 1, 10)); status != 201 {
		t.Error(status)
	}
	var both sync.WaitGroup
	for _, f := range []*fixture{a, b} {
		both.Go(func() { f.flush(t) })
	}
	both.Wait()
	for i := range 4 { // a compaction needs four files
		id := fmt.Sprintf("e%d", i)
		if status, _ := a.send(t, id, fleettest.Log(id, "b", 1, 10)); status != 201 {
			t.Error(status)
		}
		a.flush(t)
		_, n := fleettest.Held(0, 10)
		want += n
	}
	if err := to.Compact(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	dumps, facts, uploads := inStore(t, to)
	if dumps != want || facts != want || len(uploads) != 14 {
		t.Errorf("dumps of %d bytes, facts of %d, %d uploads; want %d", dumps, facts, len(uploads), want)
	}
}

// Only one server can use a spool.
func TestSpoolLock(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(dir, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSpool(dir, 1, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("%v", err)
	}
	s.Close()
	if s, err = OpenSpool(dir, 1, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	s.Close()
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it takes too long")
		}
	}
}

// BenchmarkIngest sends dumps of 163 call paths over HTTP. Each is on disk before the server
// answers. It reports dumps per second and bytes per fact in the store.
func BenchmarkIngest(b *testing.B) {
	dir := b.TempDir()
	to := open(b, filepath.Join(dir, "store"))
	f := serve(b, filepath.Join(dir, "spool"), to, nil)
	logs := make([][]byte, b.N)
	for i := range logs {
		logs[i] = zip(fleettest.Log(fmt.Sprintf("d%d", i), "b", 1, 163))
	}
	b.ResetTimer()
	var clients sync.WaitGroup
	next := make(chan int)
	for range 8 {
		clients.Go(func() {
			for i := range next {
				if status, answer := f.send(b, fmt.Sprintf("d%d", i), logs[i], "Content-Encoding", "gzip"); status != 201 {
					b.Error(status, answer)
				}
			}
		})
	}
	for i := range logs {
		next <- i
	}
	close(next)
	clients.Wait()
	f.flush(b)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "dumps/s")
	b.StopTimer()
	if _, _, uploads := inStore(b, to); len(uploads) != b.N {
		b.Errorf("%d uploads, want %d", len(uploads), b.N)
	}
	size := int64(0)
	filepath.Walk(filepath.Join(dir, "store"), func(_ string, info os.FileInfo, _ error) error {
		if !info.IsDir() {
			size += info.Size()
		}
		return nil
	})
	b.ReportMetric(float64(size)/float64(b.N*163), "bytes/fact")
}
