package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// hostile is a name that an attacker could choose.
const hostile = `<script>alert(1)</script>"'&`

// serve serves the pages of a simulated fleet. One device and one function have hostile
// names.
func serve(t *testing.T, devices int) (url string, fleet simulate.Fleet) {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fleet = simulate.Default()
	fleet.Devices = devices
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
	if err := s.PutFrames(t.Context(), hostile, now, []store.Frame{{Build: hostile, Address: "0x10", Function: hostile, File: hostile, Line: 1}}); err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := httptest.NewServer(New(db, slog.New(slog.NewTextHandler(t.Output(), nil))))
	t.Cleanup(h.Close)
	return h.URL, fleet
}

func get(t *testing.T, url string, status int) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
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
		"/":                                         {"1.4.3", short(leaks), "<svg class=\"trend\"", "&lt;script&gt;"},
		"/build/" + leaks:                           {"Leaks", "Largest call paths", "40 devices", `"/devices?build=` + leaks, `"/diff?to=` + leaks},
		"/build/" + leaks + "/heap":                 {"heap per device", short(leaks)},
		"/build/" + escaped:                         {"&lt;script&gt;"},
		"/build/" + escaped + "/heap":               {"heap per device"},
		"/diff?from=" + other:                       {"<select name=\"from\">", "1.4.3"},
		"/diff?from=" + other + "&to=" + leaks:      {"bytes per device on", "Flame graph of the difference", "No call path changed", "call paths with a difference that may be random"},
		"/diff/heap?from=" + other + "&to=" + leaks: {"heap per device", short(leaks)},
		"/devices":                                  {"sim-00", "rel=\"next\""},
		"/devices?from=200":                         {"rel=\"prev\"", "&lt;script&gt;"},
		"/devices?from=0&build=" + leaks:            {"sim-000003"},
		"/v1/openapi.yaml":                          {"openapi: 3.0.3"},
		"/device/sim-000003":                        {"<svg class=\"chart\"", "What grew"},
		"/device/" + escaped:                        {"&lt;script&gt;"},
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
	}
	for _, path := range []string{"/nope", "/build/none", "/device/none", "/build/none/heap", "/diff?from=none&to=" + leaks, "/style.css"} {
		get(t, url+path, 404)
	}
	for _, path := range []string{"/devices?from=-3", "/devices?from=x", "/diff?from=" + leaks + "&to=" + leaks} {
		get(t, url+path, 400)
	}
	if resp, err := http.Post(url+"/", "text/plain", nil); err != nil || resp.StatusCode != 405 {
		t.Errorf("POST: %v %v", resp, err)
	}
	var answer struct {
		Builds []struct {
			Build   string
			Devices int64
			Trend   []float64
		}
	}
	if err := json.Unmarshal([]byte(get(t, url+"/v1/builds", 200)), &answer); err != nil || len(answer.Builds) != fleet.Builds+1 {
		t.Fatalf("%v, %d builds", err, len(answer.Builds))
	}
	for _, b := range answer.Builds {
		if b.Build != hostile && (b.Devices != 40 || len(b.Trend) != fleet.Days) {
			t.Errorf("%+v, want 40 devices and %d days", b, fleet.Days)
		}
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
		if b.Build != hostile && (b.Dumps != 3*200/fleet.Builds || len(b.Trend) != 3) {
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
	day := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	list := []query.Build{{Build: "b", First: day.AddDate(0, 0, 1)}, {Build: "c", First: day.AddDate(0, 0, 2)}, {Build: "a", First: day}}
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"", "", "b", "c"}, {"", "b", "a", "b"}, {"", "a", "b", "a"}, {"a", "", "a", "c"}, {"c", "", "c", "b"}, {"a", "b", "a", "b"},
	} {
		if from, to := pair(list, c.from, c.to); from != c.wantFrom || to != c.wantTo {
			t.Errorf("%q to %q: %q to %q, want %q to %q", c.from, c.to, from, to, c.wantFrom, c.wantTo)
		}
	}
	if from, to := pair(list[:1], "", ""); from != "" || to != "b" {
		t.Errorf("one build: %q to %q", from, to)
	}
	if from, to := pair(nil, "", ""); from != "" || to != "" {
		t.Errorf("no build: %q to %q", from, to)
	}
}

// Paths that grow slowly, or slow down, are folded; leaks never are.
func TestFold(t *testing.T) {
	short, long := 100.0, 2.0*year
	list := []query.Leak{{Path: 1, Verdict: profile.Leaking, Hours: &long}, {Path: 2, Verdict: profile.Probably}, {Path: 3, Verdict: profile.Grows, Hours: &short},
		{Path: 4, Verdict: profile.Grows, Hours: &long}, {Path: 5, Verdict: profile.Grows}, {Path: 6, Verdict: profile.Grows, Hours: &short, Slowing: true}}
	near, far := fold(list)
	if len(near) != 3 || len(far) != 3 || near[2].Path != 3 || far[0].Path != 4 {
		t.Errorf("%+v, folded %+v", near, far)
	}
}

// A histogram has the number of devices in each column, without the largest 1 %.
func TestHistogram(t *testing.T) {
	list := make([]float64, 100)
	for i := range list {
		list[i] = float64(i % 12)
	}
	slices.Sort(list)
	list[99] = 1e6
	got := string(histogram(list, "rate", mean))
	if n := strings.Count(got, "<rect"); n != columns || !strings.Contains(got, "devices by rate, 0 to 11") || strings.Count(got, "<title>9 devices</title>") != 4 || strings.Count(got, "<title>8 devices</title>") != 7 {
		t.Errorf("%d columns: %s", n, got)
	}
	if got := histogram([]float64{1, 2}, "rate", mean); got != "<span></span>" {
		t.Errorf("two devices: %s", got)
	}
	if got := histogram([]float64{5, 5, 5}, "rate", mean); strings.Count(string(got), "<rect") != 1 {
		t.Errorf("equal rates: %s", got)
	}
}

// Concurrent requests wait for one answer, even if the first request is cancelled.
func TestCache(t *testing.T) {
	p := &Pages{cache: map[string]*cached{}}
	n := 0
	begun, end := make(chan bool), make(chan bool)
	answer := func(ctx context.Context) (any, error) {
		n++
		close(begun)
		<-end
		return n, ctx.Err()
	}
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := p.cached(ctx, "k", answer); first <- err }()
	<-begun
	stop()
	if err := <-first; err != context.Canceled {
		t.Errorf("%v", err)
	}
	second := make(chan any)
	go func() { v, _ := p.cached(t.Context(), "k", answer); second <- v }()
	close(end)
	if v := <-second; v != 1 {
		t.Errorf("%v, want the first answer", v)
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
	url, fleet := serve(t, 1000)
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
		for i, width := range []int64{1440, 1024, 390, 390} {
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
