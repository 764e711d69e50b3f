package report_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/heap/report"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The parts of the script that need no browser, in node: testdata/page.test.js.
func TestScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	if err := exec.Command(node, "--test", "--version").Run(); err != nil {
		t.Skip("node has no --test")
	}
	scripts, err := filepath.Abs("assets/js")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(node, "--test", "--test-reporter=tap", "testdata/page.test.js")
	c.Env = append(os.Environ(), "SCRIPTS="+scripts)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "\n# pass ") || strings.Contains(string(out), "\n# pass 0\n") {
		t.Errorf("node ran no test:\n%s", out)
	}
}

// Every view keeps to WCAG 2.1 AA as far as axe-core can tell, in both themes and in a
// narrow window. Contrast on the canvas is tested in testdata/page.test.js.
func TestAccessible(t *testing.T) {
	needFull(t)
	script := cmdtest.Axe(t)
	url := writePage(t, write(t, firmware.profile(t), report.Options{Title: "sensord", Subtitle: "serial.log", Notes: []string{"2 lines were lost."}, Leaks: sampleLeaks, Map: sampleMap()}))
	for _, view := range []string{"tab=leaks", "tab=flame&dump=39&base=31&search=lws", "tab=functions&fn=0&dump=30", "tab=map"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range map[string][]int64{"light": {1280}, "dark": {1280, 390}}[theme] {
				ctx := browser(t, url+"#"+view+"&theme="+theme)
				do(t, ctx, chromedp.EmulateViewport(width, 900))
				eval[any](t, ctx, script+"; 0")
				found := do(t, ctx, chromedp.Evaluate[json.RawMessage](`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
					.then(r => ({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary).join("; "))}))`, chromedp.EvalAwaitPromise))
				var result struct {
					Passes     int
					Violations []string
				}
				if err := json.Unmarshal(found, &result); err != nil {
					t.Fatal(err)
				}
				if result.Passes < 15 {
					t.Errorf("%s: only %d rules passed", view, result.Passes)
				}
				for _, v := range result.Violations {
					t.Errorf("%s, %s, %d pixels: %s", view, theme, width, v)
				}
			}
		}
	}
}
