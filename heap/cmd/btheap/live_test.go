package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/internal/logflags"
)

// What is there so far is shown while a live log goes on.
func TestStatusOfALiveLog(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, true))
	s := &session{c: topCommand()}
	s.Follow, s.files = true, []string{log}
	if err := s.check(); err != nil {
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
	if err := s.readDumps(allDumps); err != nil {
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

// live --json writes an object per dump, each valid by the schema.
func TestLiveJSON(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/btheap.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(device(t, 30, 0), "live", "--json", "--heap", "64K", "--fail-over", "1/h", "-")
	if code != 1 || !strings.Contains(errs, "1/h") && !strings.Contains(errs, "--fail-over") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var last map[string]any
	for i, line := range lines {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
		last = value.(map[string]any)
		if n, err := last["kept"].(json.Number).Int64(); err != nil || n != int64(i+1) {
			t.Errorf("line %d: %d dumps", i+1, n)
		}
	}
	if len(lines) < 30 || last["alarm"] == nil || last["exhaustion"] == nil || len(last["leaks"].([]any)) != 1 {
		t.Errorf("%d lines, the last: %v", len(lines), last)
	}
	delete(last, "alarm")
	if schema.Validate(any(last)) == nil {
		t.Error("the schema takes a line without alarm")
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
