package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/logs"
)

// What is there so far is shown before a live log is waited for.
func TestStatusOfALiveLog(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, true))
	f := &logs.Flags{Follow: true}
	if err := f.Check([]string{log}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := logs.Open(ctx, f, []string{log}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var terminal bytes.Buffer
	line := status{w: &terminal}
	r.Status = func(text string) {
		line.show(text)
		line.show(text) // the same is not written again
		if strings.HasPrefix(text, "4 dumps") {
			cancel()
		}
	}
	if _, err := r.Profile(0, nil); err != nil {
		t.Fatal(err)
	}
	line.show("")
	const clear, want = "\r\x1b[K", "4 dumps, 20,886 → 57,800 bytes; Ctrl-C prints the report"
	if got := terminal.String(); !strings.HasSuffix(got, clear+want+clear) || strings.Count(got, want) != 1 {
		t.Errorf("got %q", got)
	}
	none := status{}
	none.show("x")
	if none.shown != "" {
		t.Error("shown without a terminal")
	}
}
