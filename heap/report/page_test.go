package report_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
)

func write(t *testing.T, p *profile.Profile, o report.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, p, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
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
	click(t, ctx, "#count")
	if got := width(t, ctx, "strdup_url"); got != 80 {
		t.Errorf("by allocations, strdup_url takes %d%%, want 80%%", got)
	}
	click(t, ctx, "#bytes")
	// Zoom to parse, and back.
	clickFrame(t, ctx, "parse")
	if got := width(t, ctx, "parse"); got != 100 {
		t.Errorf("zoomed, parse takes %d%%", got)
	}
	if got := width(t, ctx, "ring_init"); got != 0 {
		t.Errorf("zoomed to parse, ring_init is still there, %d%%", got)
	}
	wantText(t, ctx, "#about", "parse", "src/a.c:", "400 bytes", "4 allocations", "28.1% of all bytes", "+300 since dump 1")
	click(t, ctx, "#out")
	if got := width(t, ctx, "ring_init"); got != 72 {
		t.Errorf("zoomed out, ring_init takes %d%%", got)
	}
	clickFrame(t, ctx, "parse")
	press(t, ctx, "\x1b")
	if got := width(t, ctx, "ring_init"); got != 72 {
		t.Errorf("after Escape, ring_init takes %d%%", got)
	}
	// Inverted, the innermost frames are on top.
	press(t, ctx, "i")
	var tops []string
	for _, f := range frames(t, ctx) {
		if f.Row == 1 {
			tops = append(tops, f.Name)
		}
	}
	if got := strings.Join(tops, ","); got != "ring_init,strdup_url" {
		t.Errorf("inverted, the top row is %q", got)
	}
}

// The pixels of a frame have its color over its width: the graph is drawn, not only laid out.
func TestPixels(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	const read = `(() => { const c = document.querySelector("#panel .flame canvas"), row = c.getContext("2d").getImageData(0, 46, c.width, 1).data;
		const at = x => [...row.slice(4 * (x * c.width | 0), 4 * (x * c.width | 0) + 4)].join(); return [at(.3) === at(.6), at(.85) === at(.97), at(.6) === at(.97), at(.6)]; })()`
	got := eval[[]any](t, ctx, read) // ring_init takes 72 %, parse the rest
	if got[0] != true || got[1] != true || got[2] != false || got[3] == "0,0,0,0" {
		t.Errorf("row 2 of the canvas: %v, want two colors", got)
	}
}

// Search marks what matches and says its share; "only these" leaves out the rest.
func TestSearch(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	if id := eval[string](t, ctx, `document.dispatchEvent(new KeyboardEvent("keydown", {key: "/"})); document.activeElement.id`); id != "search" {
		t.Errorf("'/' leads to %q", id)
	}
	press(t, ctx, "parse")
	do(t, ctx, chromedp.Sleep(50*time.Millisecond))
	wantText(t, ctx, "#found", "28.1% in call paths that match")
	if hits := eval[int](t, ctx, `page.hits.reduce((a, b) => a + b, 0)`); hits != 1 {
		t.Errorf("%d functions are marked, want 1", hits)
	}
	eval[any](t, ctx, `document.activeElement.blur()`)
	click(t, ctx, "#only")
	wantText(t, ctx, "#summary", "400 bytes in 4 allocations")
	if got := width(t, ctx, "strdup_url"); got != 100 {
		t.Errorf("of paths with parse only, strdup_url takes %d%%", got)
	}
	if got := eval[string](t, ctx, `location.hash`); got != "#search=parse&only=1" {
		t.Errorf("the address ends with %q", got)
	}
	eval[any](t, ctx, `(() => { const s = document.getElementById("search"); s.value = "no such function ("; s.dispatchEvent(new Event("input")); })()`)
	do(t, ctx, chromedp.Sleep(100*time.Millisecond))
	wantText(t, ctx, "#panel", "No call path matches the filter.")
	wantText(t, ctx, "#found", "0.0%", "not a regular expression")
}

// The tooltip is where the pointer is, and within the window.
func TestTooltip(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	for _, f := range frames(t, ctx) {
		if f.Name != "strdup_url" { // at the right edge
			continue
		}
		at := eval[[]float64](t, ctx, `(() => { const r = document.querySelector("#panel .flame canvas").getBoundingClientRect(); return [r.x, r.y]; })()`)
		x, y := at[0]+f.X+f.W-5, at[1]+f.Y
		do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y))
		wantText(t, ctx, "#tip", "strdup_url", "src/a.c:", "400 bytes", "4 allocations", "28.1% of all bytes", "+300 since dump 1")
		box := eval[[]float64](t, ctx, `(() => { const r = document.getElementById("tip").getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom, innerWidth, innerHeight]; })()`)
		if box[0] < 0 || box[1] > box[4] || box[2] < 0 || box[3] > box[5] {
			t.Errorf("the tooltip reaches out of the window: %v", box)
		}
		if x < box[0]-30 || x > box[1]+30 || y < box[2]-30 || y > box[3]+30 {
			t.Errorf("the tooltip is far from the pointer at %v, %v: %v", x, y, box)
		}
		return
	}
	t.Fatal("no frame of strdup_url")
}

// With the arrow keys from frame to frame, Enter to zoom, Shift and Enter to the callers.
func TestKeyboard(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	eval[any](t, ctx, `document.querySelector("#panel .flame canvas").focus()`)
	for _, step := range []struct{ key, want string }{
		{"ArrowDown", "main"}, {"ArrowDown", "ring_init"}, {"ArrowRight", "parse"}, {"ArrowDown", "strdup_url"}, {"ArrowDown", "strdup_url"}, {"ArrowUp", "parse"}, {"ArrowLeft", "ring_init"},
	} {
		eval[any](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "`+step.key+`", bubbles: true}))`)
		if got := strings.Fields(text(t, ctx, "#about b"))[0]; got != step.want {
			t.Errorf("%s goes to %q, want %q", step.key, got, step.want)
		}
	}
	wantText(t, ctx, "#about", "ring_init", "src/a.c:", "1,024 bytes", "71.9%")
	press(t, ctx, "\r")
	if got := width(t, ctx, "ring_init"); got != 100 {
		t.Errorf("after Enter, ring_init takes %d%%", got)
	}
	eval[any](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", shiftKey: true, bubbles: true}))`)
	wantText(t, ctx, ".side", "ring_init", "CALLERS", "no callees")
	press(t, ctx, "1")
	if got := eval[string](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").innerText`); got != "Flame graph" {
		t.Errorf("the key 1 leads to %q", got)
	}
	eval[any](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").focus()`)
	eval[any](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}))`)
	if got := eval[string](t, ctx, `document.activeElement.innerText`); got != "Functions" {
		t.Errorf("right of the flame graph is %q", got)
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
	wantText(t, ctx, "#summary", "dump 4: 1,424 bytes", "compared with dump 3: −1,300 bytes, 100 gained and 1,400 lost")
	for name, want := range map[string]int{"main": 100, "read_file": 93, "strdup_url": 7, "ring_init": 0} {
		if got := width(t, ctx, name); got != want {
			t.Errorf("%s takes %d%%, want %d%%", name, got, want)
		}
	}
	click(t, ctx, "#tab-functions")
	wantText(t, ctx, "tbody", "+100", "−1,400")
}

// drag presses the mouse at a fraction of the timeline, moves and releases it at another.
func drag(t *testing.T, ctx context.Context, from, to float64, options ...chromedp.MouseOption) {
	t.Helper()
	r := eval[[]float64](t, ctx, `(() => { const r = document.querySelector(".timeline").getBoundingClientRect(); return [r.x + 62, r.width - 76, r.y + 60]; })()`)
	left := func(p *[]chromedp.MouseOption) []chromedp.MouseOption { return append(*p, chromedp.ButtonType("left")) }
	all := left(&options)
	do(t, ctx, chromedp.MouseEvent(chromedp.MousePressed, r[0]+from*r[1], r[2], all...))
	for i := range 5 {
		do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, r[0]+(from+(to-from)*float64(i+1)/5)*r[1], r[2], all...))
	}
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseReleased, r[0]+to*r[1], r[2], all...))
}

// A click on the timeline chooses the moment, a drag the difference; so do the keys.
func TestTimeline(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	drag(t, ctx, 0, 0)
	wantText(t, ctx, "#summary", "dump 1: 2,524 bytes in 3 allocations.")
	drag(t, ctx, 0.68, 1)
	wantText(t, ctx, "#summary", "dump 4: 1,424 bytes", "compared with dump 3: −1,300 bytes")
	drag(t, ctx, 1, 0.3) // backwards it is the same difference
	wantText(t, ctx, "#summary", "dump 4", "compared with dump 2: +200 bytes")
	drag(t, ctx, 0.33, 0.33)
	wantText(t, ctx, "#summary", "dump 2: 1,224 bytes in 3 allocations.")
	key := func(k string, shift bool) {
		eval[any](t, ctx, `document.querySelector(".timeline").dispatchEvent(new KeyboardEvent("keydown", {key: "`+k+`", shiftKey: `+strconv.FormatBool(shift)+`, bubbles: true}))`)
	}
	key("End", false)
	key("ArrowLeft", true)
	wantText(t, ctx, "#summary", "dump 4", "compared with dump 3")
	if got := eval[string](t, ctx, `document.querySelector(".timeline").getAttribute("aria-valuetext")`); got != "dump 4: 1,424 bytes in 5 allocations; compared with dump 3: 2,724 bytes in 5 allocations" {
		t.Errorf("a screen reader hears %q", got)
	}
	click(t, ctx, "#peak")
	wantText(t, ctx, "#summary", "dump 3: 2,724 bytes")
	wantText(t, ctx, ".timeline", "peak 2.7 KiB")
}

// Boots stand one after the other over time; an incomplete dump is marked; a boot can be
// looked at alone. What the page opens on is the last complete dump.
func TestBoots(t *testing.T) {
	ctx := browser(t, writePage(t, write(t, firmware.profile(t), report.Options{})))
	wantText(t, ctx, ".timeline", "boot 1", "boot 2", "1 h", "peak")
	if n := eval[int](t, ctx, `document.querySelectorAll(".dot.bad").length`); n != 1 {
		t.Errorf("%d incomplete dumps are marked, want 1", n)
	}
	wantText(t, ctx, "#summary", "dump 20 of boot 2", "4.78 h")
	eval[any](t, ctx, `(() => { const b = document.getElementById("boot"); b.value = 1; b.dispatchEvent(new Event("change")); })()`)
	wantText(t, ctx, "#summary", "dump 20 of boot 1")
	if got := text(t, ctx, ".timeline"); strings.Contains(got, "boot 2") {
		t.Errorf("the timeline of boot 1: %q", got)
	}
	drag(t, ctx, 0.49, 0.49)
	wantText(t, ctx, "#summary", "dump 10 of boot 1", "137 min")
}

// The sandwich: who calls a function above, what it calls below, and both by keyboard.
func TestSandwich(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	clickFrame(t, ctx, "parse", chromedp.ButtonModifiers(chromedp.ModifierShift))
	wantText(t, ctx, ".side", "parse", "400 bytes", "CALLERS", "CALLEES")
	labels := eval[[]string](t, ctx, `[...document.querySelectorAll(".side canvas")].map(c => c.getAttribute("aria-label"))`)
	if !slices.Equal(labels, []string{"callers of parse", "callees of parse"}) {
		t.Errorf("the graphs are %q", labels)
	}
	if got := eval[string](t, ctx, `location.hash`); !strings.HasPrefix(got, "#tab=functions&fn=") {
		t.Errorf("the address ends with %q", got)
	}
	click(t, ctx, ".side button")
	if got := text(t, ctx, ".side"); got != "" {
		t.Errorf("closed, it shows %q", got)
	}
}

func TestFunctions(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{}))+"#tab=functions")
	row := func() string {
		return strings.Join(strings.Fields(eval[string](t, ctx, `document.querySelector("tbody tr").innerText`)), " ")
	}
	if got := row(); !strings.HasPrefix(got, "ring_initsrc/a.c") || !strings.HasSuffix(got, "1,024 71.9% 1,024 71.9% 1 1") {
		t.Errorf("the first row is %q", got)
	}
	sort := func(name string) {
		eval[any](t, ctx, `[...document.querySelectorAll("th button")].find(b => b.innerText.startsWith("`+name+`")).click()`)
	}
	sort("Total bytes")
	if got := row(); !strings.HasPrefix(got, "main") {
		t.Errorf("by total bytes, the first row is %q", got)
	}
	sort("Function")
	if got := row(); !strings.HasPrefix(got, "main") {
		t.Errorf("by name, the first row is %q", got)
	}
	sort("Function")
	if got := row(); !strings.HasPrefix(got, "strdup_url") {
		t.Errorf("by name, downwards, the first row is %q", got)
	}
	wantText(t, ctx, "#panel", "4 functions")
	eval[any](t, ctx, `document.querySelector("tbody tr td:last-child").click()`)
	wantText(t, ctx, ".side", "strdup_url", "400 bytes", "CALLERS")
}

// The leaks are the first tab. A row opens its call path in the graph.
func TestLeaks(t *testing.T) {
	ctx := browser(t, writePage(t, write(t, firmware.profile(t), report.Options{Leaks: sampleLeaks})))
	if got := eval[string](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").innerText`); got != "Leaks" {
		t.Errorf("the page opens on %q", got)
	}
	wantText(t, ctx, "#panel", "1 leak in 39 dumps of 2 boots over 9.25 h", "exhausted in 3 days", "left out: dump 11",
		"leak", "+13,184 bytes per hour (13,064 to 13,304)", "dup_header", "src/upload.c:85", "← ", "9 → 161 blocks, 3,708 → 66,332 bytes", hostile[1])
	if n := eval[int](t, ctx, `document.querySelectorAll(".leaks li").length`); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	click(t, ctx, ".leaks .link")
	if got := eval[string](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").innerText`); got != "Flame graph" {
		t.Errorf("the row leads to %q", got)
	}
	if got := width(t, ctx, "dup_header"); got != 100 {
		t.Errorf("dup_header takes %d%% of the graph", got)
	}
	wantText(t, ctx, "#about b", "dup_header")
}

// Costs beside live memory: chosen, they are drawn, and the timeline leads back.
func TestCostsInBrowser(t *testing.T) {
	ever := profileOf(t, []stack{{[]string{"strdup_url", "parse", "main"}, []profile.Value{v(4000, 40)}}, {[]string{"scratch", "main"}, []profile.Value{v(1000, 2)}}})
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{Costs: []report.Cost{{Name: "allocated", About: "ever allocated"}}, CostValues: ever})))
	choose := func(value string) {
		eval[any](t, ctx, `(() => { const c = document.getElementById("cost"); c.value = "`+value+`"; c.dispatchEvent(new Event("change")); })()`)
	}
	choose("0")
	wantText(t, ctx, "#summary", "allocated: 5,000 bytes in 42 allocations; ever allocated.")
	if got := width(t, ctx, "scratch"); got != 20 {
		t.Errorf("scratch takes %d%%, want 20%%", got)
	}
	choose("leaked")
	wantText(t, ctx, "#summary", "leaked: 300 bytes in 3 allocations")
	if got := width(t, ctx, "strdup_url"); got != 100 {
		t.Errorf("of what leaked, strdup_url takes %d%%, want 100%%", got)
	}
	drag(t, ctx, 0, 0)
	wantText(t, ctx, "#summary", "dump 1: 2,524 bytes")
}

// Of many rows only those in sight are elements; scrolled to the end, the last is there.
func TestVirtualTable(t *testing.T) {
	var stacks []stack
	for n := range 5000 {
		stacks = append(stacks, stack{[]string{"f" + strconv.Itoa(n)}, []profile.Value{v(uint64(10000-n), 1)}})
	}
	ctx := browser(t, writePage(t, pageOf(t, stacks, report.Options{}))+"#tab=functions")
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	wantText(t, ctx, "tbody", "f0")
	if n := eval[int](t, ctx, `document.querySelectorAll("tbody tr").length`); n > 80 {
		t.Errorf("%d rows are elements", n)
	}
	click(t, ctx, "td.name button") // beside the callers, some columns are hidden: the others take all of the width
	if gap := eval[float64](t, ctx, `document.querySelector(".table").getBoundingClientRect().right - Math.max(...[...document.querySelectorAll("th")].map(e => e.getBoundingClientRect().right))`); gap > 20 {
		t.Errorf("the columns leave %v pixels of the table empty", gap)
	}
	eval[any](t, ctx, `document.querySelector(".table").scrollTop = 1e9`)
	do(t, ctx, chromedp.Sleep(100*time.Millisecond))
	wantText(t, ctx, "tbody", "f4999")
	if got := eval[string](t, ctx, `document.querySelector(".table table").getAttribute("aria-rowcount") + " " + [...document.querySelectorAll("tbody tr[aria-rowindex]")].pop().getAttribute("aria-rowindex")`); got != "5001 5001" {
		t.Errorf("rows for screen readers, and the last one: %s", got)
	}
}

// A view sent as an address is the same view.
func TestAddress(t *testing.T) {
	url := writePage(t, write(t, firmware.profile(t), report.Options{}))
	const view = "#dump=30&base=25&weight=count&group=line&invert=1&search=lws&module=libwebsockets.so.19&boot=2&theme=dark"
	ctx := browser(t, url+view)
	if got := eval[string](t, ctx, `page.set({}), location.hash`); got != view {
		t.Errorf("the address %q becomes %q", view, got)
	}
	wantText(t, ctx, "#summary", "dump 11 of boot 2", "compared with dump 6", "Incomplete: ")
	// What no page can have is left out, and does no harm.
	eval[any](t, ctx, `location.hash = "#tab=none&dump=99&base=-3&weight=x&group=__proto__&module=nowhere&boot=7&fn=12345&zoom=99999999^3~0-1&cost=constructor"`)
	do(t, ctx, chromedp.Sleep(50*time.Millisecond))
	wantText(t, ctx, "#summary", "dump 20 of boot 2")
	eval[any](t, ctx, `location.hash = "#tab=functions&fn=12345"`)
	do(t, ctx, chromedp.Sleep(50*time.Millisecond))
	wantText(t, ctx, "#panel", "functions")
}

// Names that hold markup, quotes, line ends or escapes are shown as text and do no harm.
func TestHostileNames(t *testing.T) {
	stacks := []stack{{append([]string{"main"}, hostile...), []profile.Value{v(100, 1), v(200, 1), v(300, 1)}}}
	page := pageOf(t, stacks, report.Options{Title: hostile[0], Subtitle: hostile[1], Notes: hostile})
	for _, tab := range []string{"flame", "functions", "functions&fn=1"} {
		ctx := browser(t, writePage(t, page)+"#tab="+tab)
		do(t, ctx, chromedp.Sleep(100*time.Millisecond))
		title := do(t, ctx, chromedp.Title())
		elements := eval[int](t, ctx, `document.querySelectorAll("img, iframe").length`)
		if title != hostile[0] || elements != 0 {
			t.Errorf("%s: the title is %q, %d elements of images or frames", tab, title, elements)
		}
		wantText(t, ctx, "h1", `</script><script>document.title="owned"</script>`)
		wantText(t, ctx, "#notes", `<img src=x onerror=`, `"quoted" & 'single'`, `line one\nline two`, `\x1b[31mred`, `right\u202eto left`)
		if tab == "flame" {
			clickFrame(t, ctx, hostile[0])
			wantText(t, ctx, "#about", `</script>`)
		} else {
			wantText(t, ctx, "#panel", map[string]string{"functions": `"quoted" & 'single'`, "functions&fn=1": "<img src=x"}[tab])
		}
	}
}

// The page asks for nothing: not one request but the file itself.
func TestNoRequests(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	if n := eval[int](t, ctx, `performance.getEntriesByType("resource").length`); n != 0 {
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
	page := writePage(t, write(t, firmware.profile(t), report.Options{Title: "sensord"}))
	for theme, dark := range map[string]bool{"light": false, "dark": true} {
		ctx := browser(t, page+"#theme="+theme)
		png := do(t, ctx, chromedp.CaptureScreenshot())
		if sum := cornerBrightness(t, png); sum < 100 != dark {
			t.Errorf("%s: the corner has brightness %d of 255", theme, sum)
		}
		click(t, ctx, "#theme")
		if sum := cornerBrightness(t, do(t, ctx, chromedp.CaptureScreenshot())); sum < 100 == dark {
			t.Errorf("%s, switched: the corner has brightness %d of 255", theme, sum)
		}
	}
}

// Nothing reaches out of a window that becomes 390 pixels wide, not even before the charts are drawn again, and
// no number of a table is cut.
func TestNarrow(t *testing.T) {
	url := writePage(t, write(t, firmware.profile(t), report.Options{Title: "sensord", Leaks: sampleLeaks, Map: sampleMap()}))
	for _, tab := range []string{"leaks", "flame", "functions", "functions&fn=0", "map"} {
		ctx := browser(t, url+"#tab="+tab)
		do(t, ctx, chromedp.EmulateViewport(390, 844))
		for _, when := range []string{"at once", "later"} {
			if w := eval[[]int](t, ctx, `[document.documentElement.scrollWidth, innerWidth]`); w[0] > 390 || w[1] != 390 {
				t.Errorf("%s, %s: %d pixels wide in a window of %d", tab, when, w[0], w[1])
			}
			do(t, ctx, chromedp.Sleep(150*time.Millisecond))
		}
		if w := eval[int](t, ctx, `document.querySelector(".timeline svg").clientWidth`); w > 390 {
			t.Errorf("%s: the chart is still %d pixels wide", tab, w)
		}
		if cut := eval[[]string](t, ctx, `[...document.querySelectorAll(".table td.num")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)`); len(cut) > 0 {
			t.Errorf("%s: cut numbers: %q", tab, cut)
		}
	}
}

// Stacks deeper than a browser's own are drawn, in both directions.
func TestDeepStack(t *testing.T) {
	deep := 20000
	var funcs []string
	for i := range deep {
		funcs = append(funcs, "f"+strconv.Itoa(i))
	}
	ctx := browser(t, writePage(t, pageOf(t, []stack{{funcs, []profile.Value{v(10, 1)}}}, report.Options{})))
	wantText(t, ctx, "#summary", "10 bytes in 1 allocation")
	if got := eval[int](t, ctx, `page.flame.rows.length`); got != deep+1 {
		t.Errorf("%d rows, want %d", got, deep+1)
	}
	eval[any](t, ctx, `document.querySelector(".flame").scrollTop = 1e9`)
	do(t, ctx, chromedp.Sleep(100*time.Millisecond))
	clickCanvas(t, ctx, 100, eval[float64](t, ctx, `document.querySelector(".flame").clientHeight`)-8)
	wantText(t, ctx, "#about b", "f0") // the innermost, at the lower end
	press(t, ctx, "i")
	if got := frames(t, ctx)[1].Name; got != "f0" {
		t.Errorf("inverted, the first frame is %q", got)
	}
	eval[any](t, ctx, `page.set({search: "^f`+strconv.Itoa(deep-1)+`$"})`)
	wantText(t, ctx, "#found", "100.0%")
}

// With as many call paths as a page holds, it stays fluent.
func TestManyPathsAreFluent(t *testing.T) {
	needFull(t)
	many := sample{paths: 110_000, dumps: 2, deepest: 40, calls: 3}
	page := write(t, many.profile(t), report.Options{})
	ctx := browser(t, writePage(t, page))
	t.Logf("%d bytes, %d nodes, %d frames laid out", len(page), eval[int](t, ctx, `page.m.n`), len(frames(t, ctx)))
	const measure = `(action, n) => { const list = []; for (let i = 0; i < n; i++) { const t = performance.now(); action(i); list.push(performance.now() - t); } return list.sort((a, b) => a - b)[n >> 1]; }`
	for _, m := range []struct {
		what, action string
		most         float64 // ms, generously: a shared processor draws without a graphics card
	}{
		{"draw", `() => page.flame.draw()`, 50},
		{"tooltip", `i => { const c = document.querySelector("#panel .flame canvas"), r = c.getBoundingClientRect(); c.dispatchEvent(new PointerEvent("pointermove", {clientX: r.x + 20 + 37 * i, clientY: r.y + 30 + i * 11})); }`, 100},
		{"zoom", `i => { page.flame.show(page.flame.rows[1 + i][0].node); }`, 300},
		{"another dump", `i => page.set({now: i % 2})`, 1500},
		{"invert", `i => page.set({invert: i % 2 === 0})`, 3000},
		{"functions", `i => page.set({tab: "functions", fn: String(i)})`, 3000},
	} {
		got := eval[float64](t, ctx, `(`+measure+`)(`+m.action+`, 5)`)
		t.Logf("%s: %.1f ms", m.what, got)
		if got > m.most {
			t.Errorf("%s takes %.0f ms, expected at most %.0f", m.what, got, m.most)
		}
	}
}

// screenshots writes pictures of the sample into the directory that LWSBT_SCREENSHOTS
// names, for whoever wants to look at the page.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("LWSBT_SCREENSHOTS")
	if dir == "" {
		t.Skip("LWSBT_SCREENSHOTS is not set")
	}
	url := writePage(t, write(t, firmware.profile(t), report.Options{Title: "sensord 2.4.1", Subtitle: "serial.log, dump 1 to dump 20", Leaks: sampleLeaks}))
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			for name, view := range map[string]string{"leaks": "tab=leaks", "flame": "tab=flame", "inverted": "tab=flame&invert=1", "diff": "tab=flame&dump=39&base=31", "functions": "tab=functions&fn=8"} {
				ctx := browser(t, url+"#"+view+"&theme="+theme)
				do(t, ctx, chromedp.EmulateViewport(width, 900))
				do(t, ctx, chromedp.Sleep(200*time.Millisecond))
				file := dir + "/" + name + "-" + strconv.FormatInt(width, 10) + "-" + theme + ".png"
				if err := os.WriteFile(file, do(t, ctx, chromedp.CaptureScreenshot()), 0o666); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Back in the browser returns to the view before, and not to each letter of a search.
func TestBack(t *testing.T) {
	ctx := browser(t, writePage(t, write(t, firmware.profile(t), report.Options{Leaks: sampleLeaks})))
	shown := func() string {
		do(t, ctx, chromedp.Sleep(100*time.Millisecond))
		return eval[string](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").id + " " + document.getElementById("search").value`)
	}
	if got := shown(); got != "tab-leaks " {
		t.Fatalf("the page opens with %q", got)
	}
	click(t, ctx, ".leaks .link")
	if got := shown(); got != "tab-flame " {
		t.Fatalf("a click on a leak leads to %q", got)
	}
	eval[any](t, ctx, `document.getElementById("search").focus()`)
	press(t, ctx, "lws")
	if got := shown(); got != "tab-flame lws" {
		t.Fatalf("after a search, the page has %q", got)
	}
	for _, want := range []string{"tab-flame ", "tab-leaks "} {
		eval[any](t, ctx, `history.back()`)
		if got := shown(); got != want {
			t.Errorf("Back leads to %q, want %q", got, want)
		}
	}
}

// Escape clears the search, also while it is typed.
func TestEscapeInSearch(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	eval[any](t, ctx, `document.getElementById("search").focus()`)
	press(t, ctx, "parse")
	do(t, ctx, chromedp.Sleep(50*time.Millisecond))
	press(t, ctx, "\x1b")
	if got := eval[string](t, ctx, `document.getElementById("search").value + location.hash + document.activeElement.id`); got != "" && got != "#" {
		t.Errorf("after Escape, the search, address and focus are %q", got)
	}
}

// The list of keys opens by "?" and has each key that the page knows.
func TestKeyList(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	press(t, ctx, "?")
	wantText(t, ctx, "#help", "Keys", "search", "bytes or allocations", "dark or light", "Shift and Enter")
	press(t, ctx, "w") // not for the page below
	if got := eval[string](t, ctx, `location.hash`); got != "" && got != "#" {
		t.Errorf("below the list, a key led to %q", got)
	}
	press(t, ctx, "\x1b")
	if eval[bool](t, ctx, `document.getElementById("help").open`) {
		t.Error("Escape does not close the list")
	}
}

// A graph that is zoomed has the whole one above it, in which a click zooms elsewhere.
func TestMinimap(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{})))
	const hidden = `document.querySelector(".minimap").hidden`
	if !eval[bool](t, ctx, hidden) {
		t.Error("there is a map of a graph that is whole")
	}
	clickFrame(t, ctx, "parse")
	if eval[bool](t, ctx, hidden) {
		t.Fatal("there is no map of a graph that is zoomed")
	}
	// Row 2, in the left: ring_init, which takes 72 %.
	eval[any](t, ctx, `(() => { const c = document.querySelector(".minimap canvas"), r = c.getBoundingClientRect();
		c.dispatchEvent(new MouseEvent("click", {clientX: r.left + r.width * .3, clientY: r.top + 7, bubbles: true})); })()`)
	if got := width(t, ctx, "ring_init"); got != 100 {
		t.Errorf("after a click on the map, ring_init takes %d%%, want 100%%", got)
	}
}

// The style sheet that other pages may use is that of the page, with the same dark theme.
func TestStyle(t *testing.T) {
	page := string(pageOf(t, leak, report.Options{}))
	light, dark, _ := strings.Cut(report.Style(), "@media screen and (prefers-color-scheme: dark) { :root {")
	dark = strings.TrimSpace(strings.TrimRight(dark, "}\n "))
	if len(light) < 1000 || !strings.Contains(page, light) || len(dark) < 200 || !strings.Contains(page, dark) {
		t.Errorf("the page does not have the style sheet of %d bytes with the dark theme of %d", len(light), len(dark))
	}
}
