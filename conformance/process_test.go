package conformance

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// killSelf ends this process by a signal. Go's runtime handles signals, so killSelf first
// replaces this process by a shell, which does not.
func killSelf(name string) {
	syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + name + " $$"}, os.Environ())
}

// testees starts this test binary as a testee that misbehaves.
func testees(t *testing.T, how string, timeout time.Duration) Starter {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Process([]string{"/usr/bin/env", testeeVar + "=" + how, "GORACE=atexit_sleep_ms=0", self}, timeout)
}

// If a testee fails on one blob, the run reports that vector with the right outcome, and asks
// all others.
func TestMisbehaviour(t *testing.T) {
	set := parseSet(t, "id: before\nclause: BT-BLOB-2\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n\n"+
		"id: trigger\nclause: BT-FIELD-4\nop: decode\nhex: 0002\nwant: reject truncated\n\n"+
		"id: after\nclause: BT-BLOB-2\nop: decode\nhex: 00100005\nwant: reject length\n")
	// Vectors that must pass are answered within this time, also on a slow machine.
	const short = 5 * time.Second
	cases := []misbehaviour{
		{"segfault", Crash, "crash SIGSEGV"},
		{"abort", Crash, "crash SIGABRT"},
		{"exit", Crash, "crash: ended with exit code 3"},
		{"early end", Crash, "crash: ended with exit code 0 before it answered"},
		{"closes its output", Crash, "crash SIGKILL"},
		{"leaves a child behind", Hang, "hang: no answer in "},
		{"flushes at the end only", Hang, "hang: no answer in " + short.String() + ", and none in 2s more; one came when its input was closed: flush"},
		{"answers late", Hang, "hang: no answer in " + short.String() + "; it came "},
		{"hang", Hang, "hang"},
		{"garbage", Protocol, `protocol "segmentation fault?": expected ok `},
		{"wrong id", Protocol, `protocol "ok 9999 size=0 pcs=-": id "9999", expected `},
		{"half a line", Protocol, `protocol "ok " without a line end`},
		{"endless line", Protocol, "protocol a line of more than 1 MiB"},
		{"answers twice", Protocol, `protocol "reject`},
		{"wrong verb", Protocol, `protocol "blob `},
		{"bad value", Protocol, `protocol "ok `},
		{"skips", Skip, ""},
		{"wrong every other time", OK, "ok size=7 pcs=-"},
		{"slow", Reject, ""},
		{"late hello", Reject, ""},
	}
	runs := make([]func() (*Report, error), len(cases))
	for i, c := range cases {
		timeout := time.Minute
		if c.outcome == Hang {
			timeout = short
		}
		ctx, start := t.Context(), testees(t, c.how, timeout)
		runs[i] = sync.OnceValues(func() (*Report, error) { return Run(ctx, set, start, Options{Seed: 3}) })
		if c.outcome == Hang {
			go runs[i]() // these wait while other tests run
		}
	}
	t.Parallel()
	for i, c := range cases {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			report, err := runs[i]()
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) != 3 {
				t.Fatalf("%d results, want 3", len(report.Results))
			}
			for i := range report.Results {
				c.check(t, i, &report.Results[i])
			}
			if c.how == "answers twice" && !report.Failed() {
				t.Error("passed, want a protocol error")
			}
			if c.how == "segfault" && !strings.Contains(report.Results[1].Failure.Got, "about to fall") {
				t.Errorf("got %q, want its last words", report.Results[1].Failure.Got)
			}
		})
	}
}

// misbehaviour describes the fault of a testee, and the expected result of vector 1.
type misbehaviour struct {
	how     string
	outcome Outcome
	got     string // beginning of Failure.Got; "" if the vector passes
}

// check checks the result of vector i. All vectors except vector 1 pass.
func (c misbehaviour) check(t *testing.T, i int, r *Result) {
	t.Helper()
	if c.how == "answers twice" && (i == 1 && r.Status == Pass || i != 1 && r.Status == Fail && r.Outcome == Protocol) {
		return // the surplus answer may come before the answer to the next request
	}
	want := Pass
	switch {
	case i == 1 && c.outcome == Skip:
		want = Skipped
	case i == 1 && c.got != "":
		want = Fail
	}
	if r.Status != want {
		t.Errorf("%s: %s (%+v), want %s", r.ID, r.Status, r.Failure, want)
		return
	}
	if want != Fail {
		return
	}
	if r.Outcome != c.outcome || !strings.HasPrefix(r.Failure.Got, c.got) {
		t.Errorf("%s: %s, got %q; want %s, %q", r.ID, r.Outcome, r.Failure.Got, c.outcome, c.got)
	}
	if unstable := c.how == "wrong every other time"; r.Failure.Unstable != unstable {
		t.Errorf("unstable %v, want %v", r.Failure.Unstable, unstable)
	}
}

// A testee that does not start causes an error, not a result.
func TestTesteeDoesNotStart(t *testing.T) {
	set := parseSet(t, "id: a\nclause: BT-BLOB-2\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n")
	for _, c := range []struct{ how, want string }{
		{"no hello", `asked "hello btp=1": crash: ended with exit code 0`},
		{"wrong hello", `"hi there", expected hello btp=1 name=`},
		{"hello of another op", `hello: op "divine", expected one of decode`},
	} {
		_, err := Run(t.Context(), set, testees(t, c.how, time.Minute), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.how, err, c.want)
		}
	}
	_, err := Run(t.Context(), set, Process([]string{"/no/such/program"}, time.Minute), Options{})
	if err == nil || !strings.Contains(err.Error(), "testee /no/such/program does not start") {
		t.Errorf("got %v, want that it does not start", err)
	}
}

// The testee of lws's tool, with tools that behave like it in part.
func TestLwsTool(t *testing.T) {
	t.Parallel()
	cmdtest.Need(t, "python3")
	set := parseSet(t, "id: accept\nclause: BT-BLOB-2\nop: decode\nhex: 205d0199442e80d0a48029e485d018a506bac00015\n"+
		"want: ok size=7520 pcs=406651,406852,406c1b,406294\n\n"+
		"id: reject\nclause: BT-BLOB-2\nop: decode\nhex: 00100005\nwant: reject length\n")
	for _, c := range []struct {
		name, script string
		accept       string // Got of the first vector; "" if it is to pass
		reject       string
	}{
		{"right", `grep -q IF0B && echo 'a log line' && echo '~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294 '`, "", ""},
		{"says nothing", `exit 1`, "reject not-decoded", ""},
		{"always the same", `echo '~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294'`, "", "ok size=7520 pcs=406651,406852,406c1b,406294"},
		{"falls", `kill -SEGV $$`, "crash SIGSEGV", "crash SIGSEGV"},
		{"hangs", `sleep 600`, "hang", "hang"},
		{"writes another form", `echo '~b#size: seven'`, `protocol "wrote`, `protocol "wrote`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if c.name == "hangs" {
				limit = 300 * time.Millisecond
			}
			start := Process([]string{"python3", "example/lwstool.py", "/bin/sh", "-c", c.script}, limit)
			report, err := Run(t.Context(), set, start, Options{Written: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{c.accept, c.reject} {
				r := report.Results[i]
				switch {
				case want == "" && r.Status != Pass:
					t.Errorf("%s: %s (%+v), want pass", r.ID, r.Status, r.Failure)
				case want != "" && (r.Status != Fail || !strings.HasPrefix(r.Failure.Got, want)):
					t.Errorf("%s: %s (%+v), want %q", r.ID, r.Status, r.Failure, want)
				}
			}
		})
	}
}

func parseSet(t *testing.T, records string) *Set {
	t.Helper()
	vectors, err := Parse("test.btv", []byte("btv 1\n\n"+records))
	if err != nil {
		t.Fatal(err)
	}
	set := &Set{}
	if err := set.Add(vectors...); err != nil {
		t.Fatal(err)
	}
	if err := set.Check(); err != nil {
		t.Fatal(err)
	}
	return set
}
