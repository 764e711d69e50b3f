package report_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
)

// chromium is one browser for all tests of the package, or the reason why there is none.
var chromium = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(5*time.Minute), chromedp.WindowSize(1000, 800))...)
		ctx, cancel := chromedp.NewContext(ctx)
		stopChromium = func() { cancel(); stop() }
		_, err = chromedp.Run(ctx, chromedp.Sleep(0))
		return ctx, err
	}
	return nil, errors.New("no chromium")
})

var stopChromium = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stopChromium()
	os.Exit(code)
}

// browser opens a page in a new tab of headless Chromium. Whatever the page says to the
// console, an exception or a breach of its Content-Security-Policy, fails the test.
func browser(t *testing.T, url string) context.Context {
	t.Helper()
	if os.Getenv("LWSBT_FULL") == "" {
		t.Skip("LWSBT_FULL is not set: no page is shown in Chromium")
	}
	parent, err := chromium()
	if parent == nil {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, timeout := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(timeout)
	do(t, ctx, chromedp.Sleep(0)) // opens the tab
	if err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %+v", ev.ExceptionDetails)
		case *log.EventEntryAdded:
			t.Errorf("console: %s %s", ev.Entry.Level, ev.Entry.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate(url))
	return ctx
}

// do runs an action and returns its value.
func do[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eval runs a script in the page and returns its value.
func eval[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	return do(t, ctx, chromedp.Evaluate[T](script))
}

func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	do(t, ctx, chromedp.Click(selector))
}

func press(t *testing.T, ctx context.Context, keys string) {
	t.Helper()
	do(t, ctx, chromedp.KeyEvent(keys))
}

// text returns the text of an element as it is shown: what is hidden is not in it.
func text(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	return eval[string](t, ctx, `(() => { const e = document.querySelector(`+"`"+selector+"`"+`);
		return !e ? "(none)" : e.getClientRects().length ? e.innerText : ""; })()`)
}

func wantText(t *testing.T, ctx context.Context, selector string, want ...string) {
	t.Helper()
	got := text(t, ctx, selector)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: no %q in %q", selector, w, got)
		}
	}
}

// width returns how much of the graph's width the frame of a function takes, in percent.
func width(t *testing.T, ctx context.Context, name string) int {
	t.Helper()
	out := eval[float64](t, ctx, `(() => { const all = document.getElementById("flame").getBoundingClientRect().width;
		const f = [...document.querySelectorAll(".frame")].find(f => f.ariaLabel.startsWith(`+"`"+name+", `"+`));
		return f ? 100 * f.getBoundingClientRect().width / all : 0; })()`)
	return int(out + .5)
}

func TestFlameGraph(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{Title: "sensor", Subtitle: "serial.log", Notes: []string{"2 lines were lost."}})))
	wantText(t, ctx, "h1", "sensor")
	wantText(t, ctx, "#subtitle", "serial.log")
	wantText(t, ctx, "#notes", "2 lines were lost.")
	wantText(t, ctx, "#summary", "dump 4: 1,424 bytes in 5 allocations.")
	// 400 and 1,024 of 1,424 bytes.
	for name, want := range map[string]int{"all": 100, "main": 100, "parse": 28, "strdup_url": 28, "ring_init": 72} {
		if got := width(t, ctx, name); got != want {
			t.Errorf("%s takes %d%% of the width, want %d%%", name, got, want)
		}
	}
	// By allocations: 4 and 1 of 5.
	click(t, ctx, "#weight")
	if got := width(t, ctx, "strdup_url"); got != 80 {
		t.Errorf("by allocations, strdup_url takes %d%%, want 80%%", got)
	}
	click(t, ctx, "#weight")
	// Zoom to parse, and back.
	eval[any](t, ctx, `[...document.querySelectorAll(".frame")].find(f => f.innerText === "parse").click()`)
	if got := width(t, ctx, "parse"); got != 100 {
		t.Errorf("zoomed, parse takes %d%%", got)
	}
	if got := width(t, ctx, "ring_init"); got != 0 {
		t.Errorf("zoomed to parse, ring_init is still there, %d%%", got)
	}
	press(t, ctx, "\x1b")
	if got := width(t, ctx, "ring_init"); got != 72 {
		t.Errorf("after Escape, ring_init takes %d%%", got)
	}
	// Search: what is found is marked, and its share said.
	if id := eval[string](t, ctx, `document.dispatchEvent(new KeyboardEvent("keydown", {key: "/"})); document.activeElement.id`); id != "search" {
		t.Errorf("'/' leads to %q", id)
	}
	press(t, ctx, "parse")
	wantText(t, ctx, "#found", "28.1% under frames that match")
	hits := eval[int](t, ctx, `document.querySelectorAll(".frame.hit").length`)
	if hits != 1 {
		t.Errorf("%d frames are marked, want 1", hits)
	}
	press(t, ctx, "\x1b\x1b") // out of the field, and back to all
	// Inverted, the innermost frames stand on top.
	press(t, ctx, "i")
	tops := eval[string](t, ctx, `[...document.querySelectorAll(".frame")].filter(f => f.style.top === "19px").map(f => f.innerText).join(",")`)
	if tops != "ring_init,strdup_url" {
		t.Errorf("inverted, the top row is %q", tops)
	}
}

// With the arrow keys from frame to frame, and Enter to zoom.
func TestKeyboard(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	do(t, ctx, chromedp.Focus(".frame"))
	for _, step := range []struct{ key, want string }{
		{"ArrowDown", "main"}, {"ArrowDown", "ring_init"}, {"ArrowRight", "parse"}, {"ArrowDown", "strdup_url"}, {"ArrowUp", "parse"}, {"ArrowLeft", "ring_init"},
	} {
		got := eval[string](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "`+step.key+`", bubbles: true})); document.activeElement.innerText`)
		if got != step.want {
			t.Errorf("%s goes to %q, want %q", step.key, got, step.want)
		}
	}
	wantText(t, ctx, "#about", "ring_init", "src/a.c:", "1,024 bytes, 71.9%")
	press(t, ctx, "\r")
	if got := width(t, ctx, "ring_init"); got != 100 {
		t.Errorf("after Enter, ring_init takes %d%%", got)
	}
}

// A script that the page does not hash is not run: the policy is in force.
func TestPolicy(t *testing.T) {
	page := pageOf(t, leak, report.Options{})
	added := strings.Replace(string(page), `<script id="data"`, `<script>document.title = "foreign"</script><script id="data"`, 1)
	if added == string(page) {
		t.Fatal("nothing was added")
	}
	parent, err := chromium()
	if parent == nil {
		t.Skip(err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	defer cancel()
	do(t, ctx, chromedp.Navigate(writePage(t, []byte(added))))
	if title := do(t, ctx, chromedp.Title()); title != "heap" {
		t.Errorf("a foreign script ran: the title is %q", title)
	}
	wantText(t, ctx, "#summary", "dump 4") // the page's own did
}

// A frame of a diff is as wide as its gains and losses together.
func TestDiff(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{}))+"#dump=3&base=2")
	wantText(t, ctx, "#summary", "dump 4: 1,424 bytes", "compared with dump 3: −4,900 bytes, 100 gained and 5,000 lost")
	for name, want := range map[string]int{"main": 100, "read_file": 98, "strdup_url": 2, "ring_init": 0} {
		if got := width(t, ctx, name); got != want {
			t.Errorf("%s takes %d%%, want %d%%", name, got, want)
		}
	}
	click(t, ctx, "#tab-table")
	wantText(t, ctx, "tbody", "+100", "−5,000")
}

func TestTable(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{}))+"#tab=table")
	first := eval[string](t, ctx, `document.querySelector("tbody tr").innerText`)
	if want := "1,024\t71.9%\t1,024\t71.9%\tring_init src/a.c:"; !strings.HasPrefix(strings.Join(strings.Fields(first), " "), strings.Join(strings.Fields(want), " ")) {
		t.Errorf("the first row is %q, want %q", first, want)
	}
	eval[any](t, ctx, `[...document.querySelectorAll("th button")].find(b => b.innerText.startsWith("cumulative")).click()`)
	first = eval[string](t, ctx, `document.querySelector("tbody tr").innerText`)
	if !strings.Contains(first, "main") {
		t.Errorf("by cumulative bytes, the first row is %q", first)
	}
}

func TestGrowth(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{}))+"#tab=growth")
	wantText(t, ctx, ".tabpanel", "1 call path grew in every dump.")
	row := eval[string](t, ctx, `[...document.querySelectorAll("tbody tr")][1].innerText`)
	for _, want := range []string{"+100", "400", "yes", "strdup_url"} {
		if !strings.Contains(row, want) {
			t.Errorf("the first call path is %q, no %q in it", row, want)
		}
	}
	wantText(t, ctx, "#timeline", "Dumps: select one to see it")
	eval[any](t, ctx, `document.querySelectorAll("#timeline g")[0].dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	wantText(t, ctx, "#summary", "dump 1: 6,124 bytes in 3 allocations.")
}

// Names that hold markup, quotes, line ends or escapes are shown as text and do no harm.
func TestHostileNames(t *testing.T) {
	stacks := []stack{{append([]string{"main"}, hostile...), []profile.Value{v(100, 1), v(200, 1)}}}
	page := pageOf(t, stacks, report.Options{Title: hostile[0], Subtitle: hostile[1], Notes: hostile})
	for _, tab := range []string{"flame", "table", "growth"} {
		ctx := browser(t, writePage(t, page)+"#tab="+tab)
		do(t, ctx, chromedp.Sleep(100*time.Millisecond))
		title := do(t, ctx, chromedp.Title())
		elements := eval[int](t, ctx, `document.querySelectorAll("img, iframe").length`)
		if title != hostile[0] || elements != 0 {
			t.Errorf("%s: the title is %q, %d elements of images or frames", tab, title, elements)
		}
		wantText(t, ctx, "h1", `</script><script>document.title="owned"</script>`)
		wantText(t, ctx, "#notes", `<img src=x onerror=`, `"quoted" & 'single'`, `line one\nline two`, `\x1b[31mred`, `right\u202eto left`)
		wantText(t, ctx, ".tabpanel", map[string]string{"flame": `</script>`, "table": `"quoted" & 'single'`, "growth": `line one\nline two`}[tab])
	}
}

// The page asks for nothing: not one request but the file itself.
func TestNoRequests(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	n := eval[int](t, ctx, `performance.getEntriesByType("resource").length`)
	if n != 0 {
		t.Errorf("%d requests", n)
	}
}

// In print, controls are gone and the graph is there.
func TestPrint(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	do(t, ctx, chromedp.Func(emulatePrint))
	if got := text(t, ctx, ".bar"); strings.TrimSpace(got) != "" {
		t.Errorf("controls in print: %q", got)
	}
	if got := width(t, ctx, "ring_init"); got != 72 {
		t.Errorf("in print, ring_init takes %d%%", got)
	}
}

// Dark and light differ on the screen: pixels of a corner, by the eye of a screenshot.
func TestDarkAndLight(t *testing.T) {
	page := writePage(t, pageOf(t, leak, report.Options{}))
	for theme, dark := range map[string]bool{"light": false, "dark": true} {
		ctx := browser(t, page+"#theme="+theme)
		png := do(t, ctx, chromedp.CaptureScreenshot())
		if sum := cornerBrightness(t, png); sum < 100 != dark {
			t.Errorf("%s: the corner has brightness %d of 255", theme, sum)
		}
		if dir := os.Getenv("LWSBT_SCREENSHOTS"); dir != "" {
			if err := os.WriteFile(dir+"/report-"+theme+".png", png, 0o666); err != nil {
				t.Error(err)
			}
		}
	}
}

// Stacks deeper than a browser's own are drawn, in both directions.
func TestDeepStack(t *testing.T) {
	deep := 4000
	if os.Getenv("LWSBT_FULL") != "" {
		deep = 20000
	}
	var funcs []string
	for i := range deep {
		funcs = append(funcs, "f"+strconv.Itoa(i))
	}
	ctx := browser(t, writePage(t, pageOf(t, []stack{{funcs, []profile.Value{v(10, 1)}}}, report.Options{})))
	wantText(t, ctx, "#summary", "10 bytes in 1 allocation")
	if got := eval[int](t, ctx, `document.querySelectorAll(".frame").length`); got != deep+1 {
		t.Errorf("%d frames are drawn, want %d", got, deep+1)
	}
	press(t, ctx, "i")
	if got := eval[string](t, ctx, `document.querySelectorAll(".frame")[1].textContent`); got != "f0" {
		t.Errorf("inverted, the first frame is %q", got)
	}
	if got := eval[string](t, ctx, `(() => { const s = document.getElementById("search"); s.value = "^f`+strconv.Itoa(deep-1)+`$"; s.dispatchEvent(new Event("input")); return document.getElementById("found").textContent; })()`); !strings.HasPrefix(got, "100.0%") {
		t.Errorf("found: %q", got)
	}
}
