package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// LwsTool starts a testee that runs the stock decoder tool of lws, unmodified: one process for
// each record, with the ~m# line on its stdin and the ~b# line on its stdout. word is the word
// size of the machine that the tool runs on. The tool gives no reasons for rejections, and
// reads base64 leniently.
func LwsTool(argv []string, word int, timeout time.Duration) Starter {
	return func(ctx context.Context) (Testee, error) {
		if _, err := exec.LookPath(argv[0]); err != nil {
			return nil, fmt.Errorf("testee %s does not start: %w", argv[0], startError(err))
		}
		return &lwsTool{ctx, argv, word, timeout}, nil
	}
}

type lwsTool struct {
	ctx     context.Context
	argv    []string
	word    int
	timeout time.Duration
}

func (t *lwsTool) Hello() Hello {
	return Hello{Name: t.argv[0], Version: "unknown", Ops: []Op{OpDecode, OpMline}, word32: t.word == 32}
}

func (t *lwsTool) Close() error { return nil }

func (t *lwsTool) Ask(requests []Request) ([]Answer, error) {
	var answers []Answer
	for _, r := range requests {
		a, err := t.ask(r)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
		if a.Trouble() {
			break
		}
	}
	return answers, nil
}

func (t *lwsTool) ask(r Request) (Answer, error) {
	var line string
	switch {
	case r.Word != t.word || r.Op == OpMline && !r.Lenient:
		return Answer{Outcome: Skip, Text: "not supported by the tool"}, nil
	case r.Op == OpMline:
		line = string(r.Data)
	default:
		line = "~m#" + base64.StdEncoding.EncodeToString(r.Data)
	}
	out, said, err := runLimited(t.ctx, t.argv, strings.NewReader(line+"\n"), t.timeout)
	var exit *exec.ExitError
	switch {
	case errors.Is(err, errNoEnd):
		return Answer{Outcome: Hang, Bit: -1, Text: err.Error()}, nil
	case errors.Is(err, errMuch):
		return Answer{Outcome: Protocol, Bit: -1, Text: err.Error() + " for one record"}, nil
	case err != nil && !errors.As(err, &exit):
		return Answer{}, fmt.Errorf("testee %s: %w", t.argv[0], err)
	}
	if exit != nil {
		if how := howEnded(exit.ProcessState); strings.HasPrefix(how, "SIG") {
			return Answer{Outcome: Crash, Bit: -1, Signal: how, Text: said}, nil
		}
	}
	return toolAnswer(out), nil
}

var decodedForm = regexp.MustCompile(`^~b#size: ([0-9]+),((?: 0x[0-9a-fA-F]+)*)[ \t\r]*$`)

// toolAnswer finds the ~b# line in the tool's output. If there is none, the tool rejected the record.
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

// limited stores up to most bytes that are written to it, and calls full when there are more.
// (It does not embed a bytes.Buffer, whose ReadFrom has no limit.)
type limited struct {
	b    bytes.Buffer
	most int
	over bool
	full func()
}

func (l *limited) String() string { return l.b.String() }

func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.b.Len(); len(p) > room {
		if !l.over {
			l.over = true
			l.full()
		}
		l.b.Write(p[:room])
		return len(p), nil
	}
	return l.b.Write(p)
}

var (
	errMuch  = errors.New("more than 1 MiB of output")
	errNoEnd = errors.New("no end")
)

// runLimited runs a program on in and returns its output, of which there may be 1
// MiB, and the last that it wrote to stderr. It and what it started in its process
// group are killed at the limit, when it writes more, and when ctx is done.
func runLimited(ctx context.Context, argv []string, in io.Reader, limit time.Duration) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &limited{most: maxLine, full: cancel}
	errs := &tail{}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = 5 * time.Second // time to read its output
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err = cmd.Run(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended, but a process that it started holds its output open
	}
	switch {
	case out.over:
		err = errMuch
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w in %v", errNoEnd, limit)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return out.String(), errs.lines(), startError(err)
}

// startError returns the reason why a program does not start, without the program's name. It
// returns any other error unchanged.
func startError(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err
}
