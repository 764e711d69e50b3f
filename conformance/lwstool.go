package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// LwsTool runs the stock decoder tool of lws, unmodified: a process for each
// record, the ~m# line on its stdin, the ~b# line on its stdout. word is that of
// the machine the tool runs on. It knows no reasons, and reads leniently.
func LwsTool(argv []string, word int, timeout time.Duration) Starter {
	return func() (Testee, error) {
		if _, err := exec.LookPath(argv[0]); err != nil {
			return nil, fmt.Errorf("testee %s does not start: %w", argv[0], err)
		}
		return &lwsTool{argv, word, timeout}, nil
	}
}

type lwsTool struct {
	argv    []string
	word    int
	timeout time.Duration
}

func (t *lwsTool) Hello() Hello {
	return Hello{Name: t.argv[0], Version: "unknown", Ops: []Op{OpDecode, OpMline}, word32: t.word == 32}
}

func (t *lwsTool) Close() error { return nil }

func (t *lwsTool) Ask(requests []Request) ([]Answer, error) {
	answers := make([]Answer, len(requests))
	for i, r := range requests {
		a, err := t.ask(r)
		if err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

func (t *lwsTool) ask(r Request) (Answer, error) {
	var line string
	switch {
	case r.Word != t.word || r.Op == OpMline && !r.Lenient:
		return Answer{Outcome: Skip, Text: "not what the tool does"}, nil
	case r.Op == OpMline:
		line = string(r.Data)
	default:
		line = "~m#" + base64.StdEncoding.EncodeToString(r.Data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.argv[0], t.argv[1:]...)
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = time.Second
	var stdout bytes.Buffer
	stderr := &tail{}
	cmd.Stdin = strings.NewReader(line + "\n")
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return Answer{Outcome: Hang, Bit: -1, Text: fmt.Sprint("no end in ", t.timeout)}, nil
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Answer{}, fmt.Errorf("testee %s: %w", t.argv[0], err)
	}
	if how := howEnded(cmd); strings.HasPrefix(how, "SIG") {
		return Answer{Outcome: Crash, Bit: -1, Signal: how, Text: stderr.line()}, nil
	}
	return toolAnswer(stdout.String()), nil
}

var decodedForm = regexp.MustCompile(`^~b#size: ([0-9]+),((?: 0x[0-9a-fA-F]+)*)[ \t\r]*$`)

// toolAnswer finds the ~b# line; where there is none, the tool rejected.
func toolAnswer(out string) Answer {
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "~b#") {
			continue
		}
		m := decodedForm.FindStringSubmatch(line)
		if m == nil {
			return Answer{Outcome: Protocol, Bit: -1, Text: fmt.Sprintf("%q, expected ~b#size: N, 0x…", clip(line))}
		}
		pcs := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(m[2], " 0x"), " 0x", ","))
		if pcs == "" {
			pcs = "-"
		}
		v, err := parseValue("size=" + m[1] + " pcs=" + pcs)
		if err != nil {
			return Answer{Outcome: Protocol, Bit: -1, Text: fmt.Sprintf("%q: %v", clip(line), err)}
		}
		return Answer{Outcome: OK, Value: v}
	}
	return Answer{Outcome: Reject, Bit: -1}
}
