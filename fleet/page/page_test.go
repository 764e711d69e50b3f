package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// hostile is a name that an attacker could choose.
const hostile = `<script>alert(1)</script>"'&`

// serve serves the pages of a simulated fleet. One device and one function have hostile
// names.
func serve(t *testing.T, devices int) (url string, fleet simulate.Fleet) {
	t.Helper()
	url, fleet, _, _ = serveStore(t, devices)
	return url, fleet
}

func serveStore(t *testing.T, devices int) (url string, fleet simulate.Fleet, s *store.Store, p *Pages) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fleet = simulate.Default()
	fleet.Devices, fleet.Paths = devices, 30
	if _, _, err := fleet.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	b := &store.Batch{Name: "hostile", Day: now,
		Paths: []store.Path{{Build: hostile, Path: 1, Addresses: []string{"0x10"}}}}
	for i := range 9 {
		d := store.Dump{Build: hostile, FW: hostile, Device: hostile, Boot: 1, Dump: int64(i), Received: now.UnixMicro() + int64(i)*3_600_000_000,
			Uptime: int64(i) * 3_600_000_000, Bytes: int64(i) * 100, Count: int64(i), Complete: true, Why: hostile, HeapSize: -1, HeapFree: -1, HeapLargest: -1, HeapMinimum: -1, Upload: "u"}
		b.Dumps = append(b.Dumps, d)
		b.Facts = append(b.Facts, store.Fact{Build: hostile, Device: hostile, Boot: 1, Dump: int64(i), Path: 1, Count: int64(i) + 1, Bytes: int64(i)*100 + 1, Complete: true})
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.PutFrames(t.Context(), now, []store.Frame{{Build: hostile, Address: "0x10", Function: hostile, File: hostile, Line: 1}}); err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	p = New(db, slog.New(slog.NewTextHandler(t.Output(), nil)))
	h := httptest.NewServer(p)
	t.Cleanup(h.Close)
	return h.URL, fleet, s, p
}

func get(t *testing.T, url string, status int) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusAccepted { // on a busy machine: it is still being computed
		return get(t, url, status)
	}
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s: status %d, want %d: %v\n%s", url, resp.StatusCode, status, err, text)
	}
	return string(text)
}

// Each page shows its contents, and escapes the names of devices and functions.
func TestPages(t *testing.T) {
	url, fleet := serve(t, 200)
	leaks, other := fleet.BuildID(fleet.Leak.Build), fleet.BuildID(0)
	escaped := "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27&"
	for path, want := range map[string][]string{
		"/":                                         {"1.4.3", Short(leaks), "<svg class=\"trend\"", "&lt;script&gt;"},
		"/build/" + leaks:                           {"Leaks", "Largest call paths", "40 devices", `"/devices?build=` + leaks, `"/diff?to=` + leaks},
		"/build/" + leaks + "/heap":                 {"heap per device", Short(leaks)},
		"/build/" + escaped:                         {"&lt;script&gt;"},
		"/build/" + escaped + "/heap":               {"heap per device"},
		"/diff?from=" + other:                       {"<select name=\"from\">", "1.4.3"},
		"/diff?from=" + other + "&to=" + leaks:      {"bytes per device on", "Flame graph of the difference", "No call path changed", "call paths with a difference that may be random"},
		"/diff/heap?from=" + other + "&to=" + leaks: {"heap per device", Short(leaks)},
		"/devices":                                  {"sim-00", "rel=\"next\""},
		"/devices?from=200":                         {"rel=\"prev\"", "&lt;script&gt;"},
		"/devices?from=0&build=" + leaks:            {"sim-000003"},
		"/devices?q=IM-00017":                       {"sim-000170", "sim-000179", `value="IM-00017"`},
		"/devices?q=nobody":                         {"No device has this in its name"},
		"/build/" + leaks + "?q=" + fmt.Sprintf("%x", fleet.Leak.Path*37+0x4000): {fmt.Sprintf("code+%#x", fleet.Leak.Path*37+0x4000), "bytes per device by hours since the boot", "days since the first dump"},
		"/rollout?from=" + other + "&to=" + leaks:                                {"stop:", "<td class=\"n\">10 %</td>", "Known until", fmt.Sprintf("code+%#x: ", fleet.Leak.Path*37+0x4000)},
		"/v1/openapi.yaml":   {"openapi: 3.0.3"},
		"/device/sim-000003": {"<svg class=\"chart\"", "What grew"},
		"/device/" + escaped: {"&lt;script&gt;"},
	} {
		text := get(t, url+path, 200)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q", path, w)
			}
		}
		if strings.Contains(text, hostile) || strings.Contains(text, "<script>alert") {
			t.Errorf("%s: a name is markup", path)
		}
		if i := strings.Index(text, "%!"); i >= 0 {
			t.Errorf("%s: bad format: %.40s", path, text[i:])
		}
	}
	for path, not := range map[string]string{"/devices?q=IM-00017": "sim-000003", "/build/" + leaks + "?q=nobody": "code+"} {
		if text := get(t, url+path, 200); strings.Contains(text, not) {
			t.Errorf("%s has %s", path, not)
		}
	}
	for _, path := range []string{"/nope", "/build/none", "/device/none", "/build/none/heap", "/diff?from=none&to=" + leaks, "/style.css"} {
		get(t, url+path, 404)
	}
	for _, path := range []string{"/devices?from=-3", "/devices?from=x", "/diff?from=" + leaks + "&to=" + leaks} {
		get(t, url+path, 400)
	}
	// Unknown parameters are not new questions to the cache; the page of a form has another answer than the API.
	for _, path := range []string{"/?x=1", "/build/" + leaks + "?x=1", "/v1/builds?n=5", "/v1/devices?n=-1", "/device/sim-000003?from=1", "/diff/heap?x=1",
		"/devices?since=1d&since=2d", "/?a;b", "/v1/diff?from=" + other} {
		if text := get(t, url+path, 400); !strings.Contains(text, "parameter") && !strings.Contains(text, "from and to") && !strings.Contains(text, "semicolon") {
			t.Errorf("%s: %s", path, text)
		}
	}
	get(t, url+"/diff", 200)
	get(t, url+"/v1/diff", 400)
	if resp, err := http.Post(url+"/", "text/plain", nil); err != nil || resp.StatusCode != 404 {
		t.Errorf("POST: %v %v", resp, err)
	}
	var answer struct {
		Builds []struct {
			Build   string
			Devices int64
			Trend   []float64
			Ran     []int64
		}
		Days []time.Time
	}
	if err := json.Unmarshal([]byte(get(t, url+"/v1/builds", 200)), &answer); err != nil || len(answer.Builds) != fleet.Builds+1 {
		t.Fatalf("%v, %d builds", err, len(answer.Builds))
	}
	for _, b := range answer.Builds {
		// All builds have the same days; on the last, only the hostile build has a dump.
		n := fleet.Days
		if b.Build != hostile && (len(answer.Days) <= n || b.Devices != 40 || len(b.Trend) != len(answer.Days) || b.Trend[n] != -1 || b.Trend[0] < 1 || len(b.Ran) != len(answer.Days) || b.Ran[0] != 40 || b.Ran[n] != 0) {
			t.Errorf("%+v, want 40 devices and %d days", b, n)
		}
	}
}

// Flame graphs link back, equal time windows are one question, and the form of the time window keeps the build.
func TestWindowOfRequest(t *testing.T) {
	url, fleet, _, p := serveStore(t, 40)
	leaks, other := fleet.BuildID(fleet.Leak.Build), fleet.BuildID(0)
	since := fleet.Start.Format(time.DateOnly)
	for path, q := range map[string]string{"/build/" + leaks: "since=" + since, "/diff": "from=" + other + "&since=" + since + "&to=" + leaks} {
		back := path + "?" + strings.ReplaceAll(q, "&", "&amp;")
		if text := get(t, url+path+"/heap?"+q, 200); !strings.Contains(text, `<a href="`+back+`">`) {
			t.Errorf("the flame graph does not link to %s", back)
		}
	}
	get(t, url+"/devices?since=12h", 200)
	n := p.answers.last.Len()
	for _, q := range []string{"since=720m", "since=12h&build=", "from=&since=0.5d"} {
		get(t, url+"/devices?"+q, 200)
	}
	if p.answers.last.Len() != n {
		t.Errorf("%d answers to one question", p.answers.last.Len()-n+1)
	}
	if get(t, url+"/devices?since=13h", 200); p.answers.last.Len() != n+1 {
		t.Error("another time window has the same answer")
	}
	if text := get(t, url+"/devices?build=a%C2%A0b", 200); !strings.Contains(text, "<input type=\"hidden\" name=\"build\" value=\"a\u00a0b\">") {
		t.Errorf("the form has another build: %s", text)
	}
}

// The time window is that of --since, and each link of a page keeps it. Each simulated device
// sends one dump per day.
func TestWindow(t *testing.T) {
	url, fleet := serve(t, 200)
	leaks, other := fleet.BuildID(fleet.Leak.Build), fleet.BuildID(0)
	since := fleet.Start.AddDate(0, 0, fleet.Days-3).Format(time.DateOnly)
	type answer struct {
		Builds []struct {
			Build string
			Dumps int
			Trend []float64
		}
		Dumps []any
	}
	ask := func(path string) (a answer) {
		if err := json.Unmarshal([]byte(get(t, url+path, 200)), &a); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return a
	}
	for _, b := range ask("/v1/builds?since=" + since).Builds {
		if b.Build != hostile && (b.Dumps != 3*200/fleet.Builds || len(b.Trend) < 4 || b.Trend[2] < 1 || b.Trend[3] != -1) {
			t.Errorf("the last three days: %+v", b)
		}
	}
	if list := ask("/v1/builds?since=12h").Builds; len(list) != 1 || list[0].Build != hostile {
		t.Errorf("builds of the last 12 hours: %+v", list)
	}
	if list := ask("/v1/devices/sim-000003?since=" + since).Dumps; len(list) != 3 {
		t.Errorf("%d dumps of a device in three days", len(list))
	}
	href := regexp.MustCompile(`href="(/[^"]*)"`)
	for _, path := range []string{"/?", "/build/" + leaks + "?", "/diff?from=" + other + "&to=" + leaks + "&", "/devices?from=100&", "/devices?build=" + leaks + "&", "/device/sim-000003?"} {
		text, links := get(t, url+path+"since="+since, 200), 0
		for _, m := range href.FindAllStringSubmatch(text, -1) {
			if links++; !strings.HasPrefix(m[1], "/style-") && !strings.Contains(m[1], "since="+since) {
				t.Errorf("%s: %s has no time window", path, m[1])
			}
		}
		if links < 5 || !strings.Contains(text, `<option value="`+since+`" selected>`) {
			t.Errorf("%s: %d links, or no time window", path, links)
		}
	}
	text := get(t, url+"/diff?from="+other+"&to="+leaks, 200)
	for _, name := range []string{"from", "to"} {
		if !strings.Contains(text, `<input type="hidden" name="`+name+`"`) {
			t.Errorf("the form of the time window loses %q", name)
		}
	}
	if text := get(t, url+"/build/"+leaks+"?since=12h", 404); !strings.Contains(text, `<select name="since">`) {
		t.Errorf("no other time window can be chosen: %s", text)
	}
	get(t, url+"/build/"+leaks+"/heap?since="+since, 200)
	for _, path := range []string{"/?since=x", "/build/" + leaks + "/heap?since=x", "/v1/devices?since=-1d"} {
		get(t, url+path, 400)
	}
}

// The form to compare builds never offers one build twice.
func TestPair(t *testing.T) {
	list := []query.Build{{Build: "c"}, {Build: "b"}, {Build: "a"}} // the newest first
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"", "", "b", "c"}, {"", "b", "c", "b"}, {"", "c", "b", "c"}, {"a", "", "a", "c"}, {"c", "", "c", "b"}, {"a", "b", "a", "b"},
	} {
		if from, to := pair(list, c.from, c.to); from != c.wantFrom || to != c.wantTo {
			t.Errorf("%q to %q: %q to %q, want %q to %q", c.from, c.to, from, to, c.wantFrom, c.wantTo)
		}
	}
	if from, to := pair(list[:1], "", ""); from != "" || to != "c" {
		t.Errorf("one build: %q to %q", from, to)
	}
	if from, to := pair(nil, "", ""); from != "" || to != "" {
		t.Errorf("no build: %q to %q", from, to)
	}
}

// Paths that grow slowly, or slow down, are folded; leaks never are.
func TestFold(t *testing.T) {
	short, long := 100.0, 2.0*year
	list := []query.Leak{{Path: 1, Verdict: query.Leaking, Hours: &long}, {Path: 2, Verdict: query.Probably}, {Path: 3, Verdict: query.Grows, Hours: &short},
		{Path: 4, Verdict: query.Grows, Hours: &long}, {Path: 5, Verdict: query.Grows}, {Path: 6, Verdict: query.Grows, Hours: &short, Slowing: true}}
	near, far := fold(list)
	if len(near) != 3 || len(far) != 3 || near[2].Path != 3 || far[0].Path != 4 {
		t.Errorf("%+v, folded %+v", near, far)
	}
}

// The line of a long name may be broken between its parts, which are escaped.
func TestBreakable(t *testing.T) {
	if got := breakable("a::b<c_d>(e,f) x/y.c:1"); got != "a::<wbr>b&lt;<wbr>c_<wbr>d&gt;(<wbr>e,<wbr>f) x/<wbr>y.c:1" {
		t.Error(got)
	}
}

// A number is cut, and texts that begin alike are not.
func TestShort(t *testing.T) {
	for in, want := range map[string]string{"b1441d254bd86cd7": "b1441d254bd8", "release-2026.11.1": "release-2026.11.1", "1.4.2": "1.4.2", "5ca1ab1e": "5ca1ab1e",
		"\u202e\n": `\u202e\n`, strings.Repeat("ü", 50): strings.Repeat("ü", 40)} {
		if got := Short(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Concurrent requests wait for one answer, even if the first request is cancelled. An answer is computed again for
// other rows; meanwhile requests get the earlier one. Errors are not kept.
func TestCache(t *testing.T) {
	c := newCache(2)
	n := 0
	begun, end := make(chan bool), make(chan bool)
	slow := func(ctx context.Context) (any, error) {
		n++
		begun <- true
		<-end
		return n, ctx.Err()
	}
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := c.get(ctx, "k", "1", 0, slow); first <- err }()
	<-begun
	stop()
	if err := <-first; err != context.Canceled {
		t.Errorf("%v", err)
	}
	second := make(chan any)
	go func() { e, _ := c.get(t.Context(), "k", "1", 0, slow); second <- e.data }()
	end <- true
	if v := <-second; v != 1 {
		t.Errorf("%v, want the first answer", v)
	}
	if e, err := c.get(t.Context(), "k", "1", time.Hour, slow); err != nil || e.data != 1 {
		t.Errorf("the same rows: %+v, %v", e, err)
	}
	go func() { <-begun }()
	if e, err := c.get(t.Context(), "k", "2", time.Millisecond, slow); err != nil || e.data != 1 || e.version != "1" {
		t.Errorf("other rows, no patience: %+v, %v", e, err)
	}
	go func() { end <- true }()
	if e, err := c.get(t.Context(), "k", "2", time.Hour, slow); err != nil || e.data != 2 {
		t.Errorf("other rows: %+v, %v", e, err)
	}
	bad := func(context.Context) (any, error) { return nil, errNotFound }
	if _, err := c.get(t.Context(), "bad", "1", 0, bad); err != errNotFound {
		t.Errorf("%v", err)
	}
	if e, err := c.get(t.Context(), "bad", "1", 0, func(context.Context) (any, error) { return 3, nil }); err != nil || e.data != 3 {
		t.Errorf("after an error: %+v, %v", e, err)
	}
	if c.get(t.Context(), "more", "1", 0, func(context.Context) (any, error) { return 4, nil }); c.last.Len() != 2 || c.last.Contains(keyOf(t.Context(), "k")) {
		t.Errorf("%d answers, want the 2 used last", c.last.Len())
	}
}

// The page of all builds tells which leak, and how fast. Rows that arrive later are shown without a restart, and of
// the builds only theirs is examined again.
func TestStatus(t *testing.T) {
	url, fleet, s, p := serveStore(t, 300)
	status := func() (m map[string]*Status) {
		var answer builds
		if err := json.Unmarshal([]byte(get(t, url+"/v1/builds", 200)), &answer); err != nil {
			t.Fatal(err)
		}
		m = map[string]*Status{}
		for _, b := range answer.Builds {
			m[b.Build.Build] = b.Status
		}
		return m
	}
	found := status()
	for i := range fleet.Builds {
		s := found[fleet.BuildID(i)]
		switch {
		case s == nil:
			t.Errorf("build %d: not known", i)
		case i != fleet.Leak.Build && (s.Verdict != "none" || s.Paths != 0 || s.Rate != nil):
			t.Errorf("build %d: %+v", i, s)
		case i == fleet.Leak.Build && (s.Verdict != "leak" || s.Paths != 1 || math.Abs(*s.Rate-fleet.Leak.Rate) > 20 || s.Grew < 2 || s.Grew > 4 || s.Hours == nil):
			t.Errorf("the leak: %+v", s)
		}
	}
	text := get(t, url+"/", 200)
	if strings.Count(text, `<span class="badge leak">leak</span>`) != 1 || strings.Count(text, `<span class="badge none">none</span>`) != 4 || !strings.Contains(text, " devices; the first heaps are full in") {
		t.Errorf("%s", text)
	}
	begin := func(build string) time.Time {
		e, _ := p.states.last.Peek(keyOf(t.Context(), build+"\x00"))
		return e.begin
	}
	before, now := begin(fleet.BuildID(0)), time.Now()
	batch := &store.Batch{Name: "later", Day: now, Dumps: []store.Dump{{Build: hostile, Device: "later", Upload: "later", Received: now.UnixMicro(), Complete: true, HeapFree: -1}}}
	if err := s.Put(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.read = time.Time{}
	p.mu.Unlock()
	text, old := get(t, url+"/devices?build="+neturl.QueryEscape(hostile), 200), begin(hostile)
	if !strings.Contains(text, ">later</bdi>") {
		t.Errorf("a device that arrived later is not shown: %s", text)
	}
	if found = status(); found[hostile] == nil || !begin(hostile).After(old) || !begin(fleet.BuildID(0)).Equal(before) {
		t.Errorf("%+v: not only the build with the new rows was examined again", found)
	}
}

// broken opens the folded parts of a page, and returns the words that are divided between two lines.
const broken = `(() => {
	document.querySelectorAll("details").forEach(d => d.open = true);
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let words = 0, broken = [];
	while (texts.nextNode()) for (const m of texts.currentNode.data.matchAll(/\w+/g)) {
		const r = document.createRange();
		r.setStart(texts.currentNode, m.index);
		r.setEnd(texts.currentNode, m.index + m[0].length);
		const tops = new Set([...r.getClientRects()].map(b => b.top));
		words += tops.size > 0;
		if (tops.size > 1) broken.push(m[0]);
	}
	return words > 50 ? broken.join(" ") : "too few words";
})()`

// theme sets the colour scheme that the user prefers.
func theme(name string) func(context.Context, *chromedp.Target) error {
	return func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}
}

// TestChromium opens the pages of a fleet in Chromium, in wide and narrow windows and in both
// themes. There must be no errors on the console, no word may be broken, the keyboard must work,
// and axe-core must find no violation of WCAG 2.1 AA.
func TestChromium(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "chromium")
	axe := cmdtest.Axe(t)
	url, fleet := serve(t, 200)
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1000, 800))...)
	defer stop()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	ctx, timeout := context.WithTimeout(ctx, 5*time.Minute)
	defer timeout()
	run := func(action chromedp.Action[any]) any {
		t.Helper()
		v, err := chromedp.Run(ctx, action)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if _, err := chromedp.Run(ctx, chromedp.Sleep(0)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %+v", ev.ExceptionDetails)
		case *log.EventEntryAdded:
			if !strings.Contains(ev.Entry.Text, "favicon") && !strings.HasSuffix(ev.Entry.URL, "/favicon.ico") {
				t.Errorf("console: %s %s", ev.Entry.Level, ev.Entry.Text)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	leaks := fleet.BuildID(fleet.Leak.Build)
	for _, page := range []string{"/", "/build/" + leaks, "/diff?from=" + fleet.BuildID(0) + "&to=" + leaks, "/devices", "/device/sim-000003"} {
		widths := []int64{1440, 390}
		if cmdtest.All() {
			widths = []int64{1440, 1024, 390, 390}
		}
		for i, width := range widths {
			name := []string{"light", "dark"}[i%2]
			if _, err := chromedp.Run(ctx, chromedp.Func(theme(name))); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 900)); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Run(ctx, chromedp.Navigate(url+page)); err != nil {
				t.Fatal(err)
			}
			run(chromedp.Evaluate[any](axe + "; 0"))
			found := run(chromedp.Evaluate[any](`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
				.then(r => r.passes.length + " " + r.violations.map(v => v.id + ": " + v.nodes.slice(0, 2).map(n => n.html).join("; ")).join("\n"))`, chromedp.EvalAwaitPromise))
			passes, violations := 0, ""
			fmt.Sscan(fmt.Sprint(found), &passes)
			_, violations, _ = strings.Cut(fmt.Sprint(found), " ")
			if passes < 10 || violations != "" {
				t.Errorf("%s, %d pixels: %d rules passed; %s", page, width, passes, violations)
			}
			if wide := run(chromedp.Evaluate[any](`document.documentElement.scrollWidth > innerWidth`)); wide != false {
				t.Errorf("%s is wider than %d pixels", page, width)
			}
			if n := run(chromedp.Evaluate[any](broken)); n != "" {
				t.Errorf("%s, %d pixels: broken words: %v", page, width, n)
			}
			if dark := run(chromedp.Evaluate[any](`getComputedStyle(document.documentElement).backgroundColor === "rgb(14, 18, 22)"`)); dark != (name == "dark") {
				t.Errorf("%s: dark %v in the %s theme", page, dark, name)
			}
		}
	}
	// Keyboard: Tab moves to the first build, Enter opens it.
	if _, err := chromedp.Run(ctx, chromedp.Navigate(url+"/")); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := chromedp.Run(ctx, chromedp.KeyEvent("\t")); err != nil {
			t.Fatal(err)
		}
		if run(chromedp.Evaluate[any](`(document.activeElement.getAttribute("href") || "").startsWith("/build/")`)) == true {
			break
		}
	}
	if _, err := chromedp.Run(ctx, chromedp.KeyEvent("\r")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); run(chromedp.Evaluate[any](`location.pathname.startsWith("/build/") && document.readyState === "complete"`)) != true; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("Enter opens no build")
		}
	}
}

// The pprof profile of a build has the bytes of its call paths.
func TestPprof(t *testing.T) {
	url, fleet := serve(t, 40)
	build := fleet.BuildID(0)
	var answer struct {
		Top []struct{ Mean float64 }
	}
	if err := json.Unmarshal([]byte(get(t, url+"/v1/builds/"+build, 200)), &answer); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.ParseData([]byte(get(t, url+"/build/"+build+"/heap.pb.gz", 200)))
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(p.SampleType, func(s *pprof.ValueType) bool { return s.Type == "inuse_space" && s.Unit == "bytes" })
	var values []float64
	for _, s := range p.Sample {
		values = append(values, float64(s.Value[k]))
	}
	slices.Sort(values)
	slices.Reverse(values)
	for i, h := range answer.Top[:10] {
		if math.Abs(values[i]-h.Mean) > 1 || len(p.Sample[i].Location) < 2 || p.Sample[i].Location[0].Line[0].Function.Name == "" {
			t.Errorf("sample %d: %v bytes, want %v", i, values[i], h.Mean)
		}
	}
}
