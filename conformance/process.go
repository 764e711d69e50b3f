package conformance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTime is the time limit for a program to answer hello; emulators and interpreters start
// slowly.
const startTime = 20 * time.Second

// endTime is the time limit for a program to exit after its input or output was closed.
const endTime = 2 * time.Second

// Process returns a Starter for a program that speaks BTP/1. The timeout counts from the answer to the
// request before; of the first of a batch, from when it was written. If the program crashes, hangs or
// writes a line that is not BTP/1, that is the answer to the oldest request without an answer;
// the program is then started again for the next request. When ctx is done, the process group
// of the program is killed.
func Process(argv []string, timeout time.Duration) Starter {
	return func(ctx context.Context) (Testee, error) {
		p := &process{ctx: ctx, argv: argv, timeout: timeout}
		return p, p.start()
	}
}

type process struct {
	ctx     context.Context
	argv    []string
	timeout time.Duration
	hello   Hello
	next    int // id of the next request

	cmd    *exec.Cmd // nil if none is running
	stdin  io.WriteCloser
	stdout io.ReadCloser
	lines  chan string // of its output; closed at the end
	stop   chan struct{}
	broken error // reason why lines ended, nil at end of file; valid once lines is closed
	stderr *tail
	silent bool // after a hang, the program wrote nothing more
}

func (p *process) Hello() Hello { return p.hello }

func (p *process) start() error {
	cmd := exec.CommandContext(p.ctx, p.argv[0], p.argv[1:]...)
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = time.Second
	p.stderr = &tail{}
	cmd.Stderr = p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("testee %s does not start: %w", p.argv[0], startError(err))
	}
	p.cmd, p.stdin, p.stdout, p.broken = cmd, stdin, stdout, nil
	p.lines, p.stop = make(chan string, 64), make(chan struct{})
	go p.read(stdout, p.lines, p.stop)
	go io.WriteString(stdin, helloRequest+"\n") // if this fails, no answer comes
	hello, trouble := p.answerLine(startTime)
	if trouble != nil {
		p.end(0)
		return fmt.Errorf("testee %s, asked %q: %s", p.argv[0], helloRequest, trouble.Describe(opDecode))
	}
	h, err := ParseHello(hello)
	if err != nil {
		p.end(0)
		return fmt.Errorf("testee %s: %w", p.argv[0], err)
	}
	p.hello = h
	return nil
}

var errFlood = errors.New("a line of more than 1 MiB")

// read sends the lines of a program's output to lines until the output ends or stop is closed.
func (p *process) read(out io.Reader, lines chan<- string, stop <-chan struct{}) {
	defer close(lines)
	r := bufio.NewReaderSize(out, maxLine)
	for {
		raw, err := r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				p.broken = errFlood
			} else if len(raw) > 0 {
				p.broken = fmt.Errorf("%q without a line end", clip(string(raw)))
			}
			return
		}
		select {
		case lines <- strings.TrimRight(string(raw), "\r\n"):
		case <-stop:
			return
		}
	}
}

// answerLine waits for a line. If none comes, it ends the program and returns a crash, a hang
// or a protocol violation as the answer.
func (p *process) answerLine(timeout time.Duration) (string, *Answer) {
	select { // usually the line is available already, and a timer takes time
	case line, ok := <-p.lines:
		return p.orEnd(line, ok)
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		return p.orEnd(line, ok)
	case <-timer.C:
		text := "no answer in " + timeout.String() + p.lateness()
		p.end(0)
		return "", &Answer{Outcome: Hang, Bit: -1, Text: text}
	}
}

// lateness waits for a late answer, then closes the program's input, and returns what was observed. After a
// program wrote nothing for that long, later hangs are not examined in this way.
func (p *process) lateness() string {
	if p.silent {
		return ""
	}
	patience, since := min(endTime, p.timeout), time.Now()
	comes := func() bool {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case _, ok := <-p.lines:
			return ok
		case <-timer.C:
			return false
		}
	}
	if comes() {
		return fmt.Sprintf("; it came %.1f s later (see --timeout)", max(0.1, time.Since(since).Seconds()))
	}
	p.stdin.Close()
	if comes() {
		return fmt.Sprintf(", and none in %v more; one came when its input was closed: flush the output after each line", patience)
	}
	p.silent = true
	return fmt.Sprintf(", and none in %v more", patience)
}

func (p *process) orEnd(line string, ok bool) (string, *Answer) {
	if ok {
		return line, nil
	}
	broken := p.broken
	if errors.Is(broken, errFlood) {
		p.end(0)
		return "", &Answer{Outcome: Protocol, Bit: -1, Text: broken.Error()}
	}
	how := p.end(endTime)
	if broken != nil && !strings.HasPrefix(how, "SIG") {
		return "", &Answer{Outcome: Protocol, Bit: -1, Text: broken.Error() + ", then the end of its output"}
	}
	return "", &Answer{Outcome: Crash, Bit: -1, Signal: how, Text: p.stderr.lines()}
}

// end waits for the program to end, kills it after patience, and returns how it ended. It
// always returns: if a process that the program started holds the output open, end closes
// the output.
func (p *process) end(patience time.Duration) string {
	if p.cmd == nil {
		return ""
	}
	p.stdin.Close()
	close(p.stop)
	cmd, stdout := p.cmd, p.stdout
	timer := time.AfterFunc(patience, func() {
		killGroup(cmd)
		stdout.Close()
	})
	for range p.lines { // Wait must not be called before the reader is done with the pipe
	}
	p.cmd.Wait() // ignore the error: ProcessState has the result
	timer.Stop()
	how := howEnded(p.cmd.ProcessState)
	p.cmd = nil
	return how
}

// howEnded returns the name of a signal, or EXIT- and the exit status.
func howEnded(state *os.ProcessState) string {
	if state == nil {
		return "UNKNOWN"
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return signalName(ws.Signal())
	}
	return "EXIT-" + strconv.Itoa(state.ExitCode())
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
		syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
		syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGTERM: "SIGTERM",
		syscall.SIGTRAP: "SIGTRAP",
	}
	if name := names[s]; name != "" {
		return name
	}
	return "SIGNAL-" + strconv.Itoa(int(s))
}

func (p *process) Close() error {
	p.end(endTime)
	return nil
}

// Ask writes all requests, and reads the answers one by one. It returns at least one answer;
// it stops early if it had to end the program.
func (p *process) Ask(requests []Request) ([]Answer, error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return nil, err
		}
	}
	var text bytes.Buffer
	first := p.next
	for i, r := range requests {
		text.WriteString(r.Line(strconv.Itoa(first + i)))
		text.WriteByte('\n')
	}
	p.next += len(requests)
	stdin, written := p.stdin, make(chan struct{})
	go func() {
		stdin.Write(text.Bytes())
		close(written)
	}()
	defer func() { <-written }() // the program has read all requests, or the pipe is closed

	answers := make([]Answer, 0, len(requests))
	for i, r := range requests {
		line, trouble := p.answerLine(p.timeout)
		if trouble != nil {
			return append(answers, *trouble), nil
		}
		a, err := ParseAnswer(line, r.Op, strconv.Itoa(first+i))
		if err != nil {
			p.end(0)
			return append(answers, Answer{Outcome: Protocol, Bit: -1, Text: fmt.Sprintf("%q: %v", clip(line), err)}), nil
		}
		answers = append(answers, a)
	}
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C: // all requests are answered, but not all were read
		p.end(0)
		answers[len(answers)-1] = Answer{Outcome: Protocol, Bit: -1, Text: "an answer before the request was read"}
	}
	return answers, nil
}

// tail stores the end of the text that a program wrote to stderr.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 2048; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

// lines returns the last three nonempty lines, joined by "; ". The last line of a Python
// traceback names the exception, the lines before it the place.
func (t *tail) lines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last []string
	for line := range strings.Lines(string(t.buf)) {
		if line = strings.TrimSpace(line); line != "" {
			last = append(last, clip(line))
		}
	}
	return strings.Join(last[max(0, len(last)-3):], "; ")
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
