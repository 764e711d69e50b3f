package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
)

// What is there so far is shown while a live log goes on.
func TestStatusOfALiveLog(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, true))
	s := &session{c: topCommand()}
	s.Follow, s.files = true, []string{log}
	if err := s.check(0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var terminal ending
	terminal.at, terminal.end = "4 dumps", cancel
	s.status.w = &terminal
	var err error
	if s.reader, err = s.Open(ctx, s.files, nil, heaplog.Refresh(1)); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.out = logflags.Outcome{Flags: &s.Flags, Reader: s.reader}
	if err := s.readDumps(); err != nil {
		t.Fatal(err)
	}
	const clear, want = "\r\x1b[K", "4 dumps, 20,886 → 57,800 bytes; Ctrl-C prints the report"
	if got := terminal.String(); !strings.HasSuffix(got, clear+want+clear) || strings.Count(got, want) != 1 || !strings.HasPrefix(got, clear+"no dump yet") {
		t.Errorf("got %q", got)
	}
	none := status{}
	none.show("x")
	if none.shown != "" {
		t.Error("shown without a terminal")
	}
}

// ending is a buffer that calls end once a text is written to it.
type ending struct {
	bytes.Buffer
	at  string
	end func()
}

func (e *ending) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(e.at)) {
		e.end()
	}
	return e.Buffer.Write(p)
}
