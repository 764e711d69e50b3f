package report_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
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
	needFull(t)
	parent, err := chromium()
	if parent == nil {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, timeout := context.WithTimeout(ctx, 2*time.Minute)
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

func needFull(t *testing.T) {
	t.Helper()
	cmdtest.Long(t)
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

// click clicks with the mouse on the first element that a selector matches.
func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	at := eval[[]float64](t, ctx, `(() => { const e = document.querySelector(`+"`"+selector+"`"+`); if (!e) return [];
		e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	if len(at) != 2 {
		t.Fatalf("no element %s to click on", selector)
	}
	do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
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

// frame is a frame of the flame graph as it is drawn, in pixels of the canvas.
type frame struct {
	Name     string
	Row      int
	X, Y, W  float64
	All      float64 // width of the canvas
	Selector string
}

// frames returns the frames of the flame graph that are laid out.
func frames(t *testing.T, ctx context.Context) []frame {
	t.Helper()
	return eval[[]frame](t, ctx, `page.flame.rows.flatMap((row, i) => row.map(f => ({Name: f.node.rest ? "rest" : f.node.key < 0 ? "all" : page.m.sites[f.node.key][0],
		Row: i, X: f.x, Y: (i + .5) * 20, W: f.w, All: page.flame.width})))`)
}

// width returns how much of the graph's width the frame of a function takes, in percent.
func width(t *testing.T, ctx context.Context, name string) int {
	t.Helper()
	for _, f := range frames(t, ctx) {
		if f.Name == name {
			return int(100*f.W/f.All + .5)
		}
	}
	return 0
}

// clickFrame clicks on the frame of a function with the mouse.
func clickFrame(t *testing.T, ctx context.Context, name string, options ...chromedp.MouseOption) {
	t.Helper()
	for _, f := range frames(t, ctx) {
		if f.Name == name {
			clickCanvas(t, ctx, f.X+f.W/2, f.Y, options...)
			return
		}
	}
	t.Fatalf("no frame of %s", name)
}

func clickCanvas(t *testing.T, ctx context.Context, x, y float64, options ...chromedp.MouseOption) {
	t.Helper()
	at := eval[[]float64](t, ctx, `(() => { const c = document.querySelector("#panel .flame canvas"); c.scrollIntoView({block: "nearest"}); const r = c.getBoundingClientRect(); return [r.x, r.y]; })()`)
	do(t, ctx, chromedp.MouseClickXY(at[0]+x, at[1]+y, options...))
}
