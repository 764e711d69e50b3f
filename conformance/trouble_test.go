package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// script starts a shell script as a testee. The script answers hello, then runs body. Most
// bodies read a request into $line, and its ID into $2.
func script(body string, timeout time.Duration) Starter {
	return Process([]string{"/bin/sh", "-c", "read line; echo 'hello btp=1 name=sh version=1 ops=decode'\n" + body}, timeout)
}

// answered returns a loop that answers each request with answer.
func answered(answer string) string {
	return "while read line; do set -- $line; " + answer + "; done"
}

// plainSet returns n vectors of empty stacks with sizes 0 and 1.
func plainSet(t *testing.T, n int) *Set {
	t.Helper()
	records := ""
	for i := range n {
		hex := []string{"00100004", "00140004"}[i%2]
		records += fmt.Sprintf("id: v%d\nclause: BT-SIZE-1\nop: decode\nhex: %s\nwant: ok size=%d pcs=-\n\n", i, hex, i%2)
	}
	return parseSet(t, records)
}

// A run stops soon if the testee is badly broken, and the report states the reason.
func TestRunStopsWhenATesteeIsBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		stopped    string
		failures   int // reported as they occurred
		unasked    int // of 320, at least
		timeout    time.Duration
		workers    int
	}{
		{"writes 0x", answered("echo ok $2 size=0x0 pcs=-"), "10 answers in a row were a crash or not BTP/1, " +
			`the last one: protocol "ok`, 10, 310, time.Minute, 1},
		{"ends at each", "read line; exit 1", "10 answers in a row were a crash or not BTP/1, the last one: " +
			"crash: ended with exit code 1", 10, 310, time.Minute, 1},
		{"ends at every third", "read line; set -- $line; echo ok $2 size=0 pcs=-; read line; set -- $line; echo ok $2 size=1 pcs=-; " +
			"read line; exit 1", "the implementation crashed or broke the protocol 100 times", 40, 1, time.Minute, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			told := 0
			report, err := Run(t.Context(), plainSet(t, 320), script(c.body, c.timeout),
				Options{Workers: c.workers, Failed: func(*Result) { told++ }})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(report.Stopped, c.stopped) || (report.Stopped == "") != (c.stopped == "") {
				t.Errorf("stopped: %q, want %q", report.Stopped, c.stopped)
			}
			if told < c.failures || report.Counts.Fail < c.failures || !report.Failed() {
				t.Errorf("%d failures reported, %d counted, want %d or more", told, report.Counts.Fail, c.failures)
			}
			if report.Counts.Unasked < c.unasked {
				t.Errorf("%d results not asked, want %d or more, stopped %q", report.Counts.Unasked, c.unasked, report.Stopped)
			}
		})
	}
}

// An operation that hangs three times is dropped; all cases of the others are asked.
func TestHangingOperationIsDropped(t *testing.T) {
	t.Parallel()
	set := plainSet(t, 320)
	for i := range 20 {
		more := parseSet(t, fmt.Sprintf("id: f%d\nclause: BT-TEXT-2\nop: format\nin: size=0 pcs=-\ntext: \"~b#size: 0,\"\n", i))
		if err := set.Add(more.Vectors...); err != nil {
			t.Fatal(err)
		}
	}
	const body = `read line; echo hello btp=1 name=sh version=1 ops=decode,format
		while read line; do set -- $line; case $1 in format) echo text $2 7e622373697a653a20302c;; *) sleep 600;; esac; done`
	start := Process([]string{"/bin/sh", "-c", body}, 200*time.Millisecond)
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), set, start, Options{Workers: workers, Written: true})
			if err != nil {
				t.Fatal(err)
			}
			if report.Stopped != "" || !slices.Equal(report.Dropped, []Op{opDecode}) || !report.Failed() {
				t.Errorf("stopped %q, dropped %v, want decode dropped", report.Stopped, report.Dropped)
			}
			most := hangLimit + workers - 1 // each worker may wait for an answer
			if c := report.Counts; c.Pass != 20 || c.Fail < hangLimit || c.Fail > most || c.Unasked != 320-c.Fail {
				t.Errorf("%+v, want 20 passed, %d to %d failed, the rest not asked", c, hangLimit, most)
			}
		})
	}
}

// Failures in the file of known failures do not stop a run.
func TestKnownTroubleDoesNotStop(t *testing.T) {
	known, err := ParseKnown("known.txt", []byte("* crash https://example.org/1\n"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), plainSet(t, 15), script("read line; exit 1", time.Minute), Options{Known: known})
	if err != nil {
		t.Fatal(err)
	}
	if report.Stopped != "" || report.Counts.Known != 15 {
		t.Errorf("%+v, stopped %q", report.Counts, report.Stopped)
	}
}

// A testee that writes answers without reading requests is detected, and does not block the run.
func TestAnswersWithoutReading(t *testing.T) {
	cmdtest.Long(t)
	t.Parallel()
	const body = "i=0; while [ $i -lt 200 ]; do echo ok $i size=0 pcs=-; i=$((i+1)); done; sleep 600"
	// More requests than fit in a pipe.
	records := ""
	blob := strings.Repeat("00", 40000)
	for i := range 64 {
		records += fmt.Sprintf("id: v%d\nclause: BT-USER-1\nop: decode\nhex: 0010%s9c44\nwant: ok size=0 pcs=-\n\n", i, blob)
	}
	begin := time.Now()
	report, err := Run(t.Context(), parseSet(t, records), script(body, 5*time.Second), Options{Written: true})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range report.Results {
		found = found || r.Failure != nil && strings.Contains(r.Failure.Got, "an answer before the request was read")
	}
	if !found || time.Since(begin) > 5*time.Minute {
		t.Errorf("%+v after %v, want a breach of the protocol", report.Counts, time.Since(begin))
	}
}

// When the context is done, the testee is killed and Run returns, whatever it waits for.
func TestRunEndsWithItsContext(t *testing.T) {
	pidFile := t.TempDir() + "/pid"
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	go func() {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if text, _ := os.ReadFile(pidFile); len(text) > 0 {
				break
			}
		}
		cancelled = time.Now()
		cancel()
	}()
	_, err := Run(ctx, plainSet(t, 3), script("echo $$ > "+pidFile+"; sleep 600", 10*time.Minute), Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a cancelled context", err)
	}
	if took := time.Since(cancelled); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(pid); err == nil && alive(p) {
		t.Errorf("process %d still exists", pid)
	}
}

// Vectors that other vectors build on come first.
func TestSimpleFirst(t *testing.T) {
	var groups []string
	for _, v := range simpleFirst(builtinSet(t).Vectors) {
		if len(groups) == 0 || groups[len(groups)-1] != v.Group() {
			groups = append(groups, v.Group())
		}
	}
	if got := strings.Join(groups[:len(simple)], " "); got != strings.Join(simple, " ") {
		t.Errorf("groups %s, want %v first", got, simple)
	}
}
