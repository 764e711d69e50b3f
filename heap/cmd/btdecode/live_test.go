//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// process returns the command as a process that is not started.
func process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// within waits for text in a buffer and returns how long that took.
func within(t *testing.T, b *cmdtest.Buffer, text string, since time.Time) time.Duration {
	t.Helper()
	for time.Since(since) < time.Minute {
		if strings.Contains(b.String(), text) {
			return time.Since(since)
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%q never came; got %q", text, b.String())
	return 0
}

// limit is how late a line may be, beside what cat takes. The median of eleven is held to
// it, in the best of several rounds, since the machine that tests run on may be busy.
const limit = 100 * time.Millisecond

// median returns how long a process takes to write what it reads, a line.
func median(t *testing.T, in io.Writer, out *cmdtest.Buffer, what, line, want string) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 11 {
		start := time.Now()
		fmt.Fprintf(in, "%s %d %s\n", what, i, line)
		took = append(took, within(t, out, fmt.Sprintf("%s %d %s\n", what, i, want), start))
	}
	slices.Sort(took)
	t.Logf("%s: median %v, latest %v", what, took[5], took[10])
	return took[5]
}

// Records, and the lines of a panic, come out of a pipe as they come in; an
// interrupt ends with the summary.
func TestLivePipe(t *testing.T) {
	exe, log := example(t)
	first := ""
	for l := range strings.Lines(log) {
		if strings.HasPrefix(l, "~b#") {
			first = l
			break
		}
	}
	pc := strings.Fields(first)[4] // a frame of the program
	cat := exec.Command("cat")
	var copied cmdtest.Buffer
	cat.Stdout = &copied
	toCat, err := cat.StdinPipe()
	if err == nil {
		err = cat.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Wait()
	defer toCat.Close()
	for _, c := range []struct {
		name string
		args []string
		head string // what is there at the beginning
	}{
		{"plain", []string{"--passthrough"}, ""},
		{"with symbols, the base inferred from what is there", []string{"--passthrough", "-e", exe}, onlyEncoded(log)},
	} {
		cmd := process(c.args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out, errs cmdtest.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		io.WriteString(in, c.head) // less than a pipe holds: it is there at once
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		io.WriteString(in, "first line\n")
		within(t, &out, "first line\n", start)
		for round := range 10 {
			what := fmt.Sprintf("%s, round %d", strings.Fields(c.name)[0], round)
			most := limit + 10*median(t, toCat, &copied, what, readmeLine, readmeLine)
			if took := median(t, in, &out, what, readmeLine, readmeDecoded); took <= most {
				break
			} else if round == 9 {
				t.Errorf("%s: lines came after %v, more than %v", c.name, took, most)
			}
		}
		if c.head != "" {
			io.WriteString(in, "Backtrace: "+pc+":0x3ffb1234\n")
			within(t, &out, "Backtrace: "+pc+":0x3ffb1234\n   0  "+pc+" ", time.Now())
			if !strings.Contains(out.String()[strings.Index(out.String(), "Backtrace:"):], "heaplog.c:") {
				t.Errorf("%s: no line for the panic: %s", c.name, errs.String())
			}
		}
		io.WriteString(in, "~m#AAA=\n")
		within(t, &out, "[unreadable", time.Now())
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v; %s", c.name, err, errs.String())
			}
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			t.Fatalf("%s: an interrupt does not end it", c.name)
		}
		if !strings.Contains(errs.String(), "1 record unreadable") {
			t.Errorf("%s: no summary: %q", c.name, errs.String())
		}
	}
}

// A log that begins late is read as one that is there: nothing is printed before it.
func TestLateBegin(t *testing.T) {
	exe, log := example(t)
	want, note, _ := command(onlyEncoded(log), "-e", exe)
	var out, errs cmdtest.Buffer
	code := run([]string{"-e", exe}, &lateReader{Reader: strings.NewReader(onlyEncoded(log))}, &out, &errs)
	if code != 0 || out.String() != want || errs.String() != note || !strings.Contains(note, "load base 0x") {
		t.Errorf("exit code %d, %d bytes, want %d\n%s%s", code, len(out.String()), len(want), errs.String(), note)
	}
}

// lateReader is a reader whose first Read waits.
type lateReader struct {
	io.Reader
	read bool
}

func (l *lateReader) Read(p []byte) (int, error) {
	if !l.read {
		l.read = true
		time.Sleep(300 * time.Millisecond)
	}
	return l.Reader.Read(p)
}

// A reader that goes away, and an interrupt, leave no temporary file.
func TestNothingIsLeft(t *testing.T) {
	exe, log := example(t)
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "out")
	t.Setenv("TMPDIR", dir)
	t.Setenv(asCommand, "1")
	path := os.Args[0]
	run := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.Stdin = strings.NewReader(strings.Repeat(onlyEncoded(log), 500))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
		for _, d := range []string{dir, filepath.Dir(target)} {
			left, err := os.ReadDir(d)
			if left = slices.DeleteFunc(left, func(f os.DirEntry) bool { return f.Name() == filepath.Base(target) }); err != nil || len(left) > 0 {
				t.Errorf("%s leaves %v, %v", script, left, err)
			}
		}
	}
	run(path + " -q -e " + exe + " | head -1 >/dev/null")
	run("(cat; sleep 0.6) | timeout -s INT 0.5 " + path + " -q -e " + exe + " >/dev/null; true")
	run("(cat; sleep 0.6) | timeout -s INT 0.5 " + path + " -q -F jsonl -o " + target + "; true")
	if text, err := os.ReadFile(target); err != nil || len(text) == 0 {
		t.Errorf("an interrupt loses what was decoded: %d bytes, %v", len(text), err)
	}
}

// A serial port, here the other end of a pseudo terminal.
func TestSerial(t *testing.T) {
	cmdtest.Need(t, "socat")
	dev := filepath.Join(t.TempDir(), "tty")
	cmd := exec.Command("socat", "pty,raw,echo=0,link="+dev, "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for range 6000 {
		if _, err := os.Stat(dev); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var out, errs cmdtest.Buffer
	bt := process("--passthrough", "--serial", dev+":115200")
	bt.Stdout, bt.Stderr = &out, &errs
	if err := bt.Start(); err != nil {
		t.Fatal(err)
	}
	for range 60 { // what comes before the port is open may be lost
		io.WriteString(in, "boot "+readmeLine+"\r\n")
		for range 100 {
			if strings.Contains(out.String(), "boot "+readmeDecoded+"\r\n") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if out.String() != "" {
			break
		}
	}
	within(t, &out, "boot "+readmeDecoded+"\r\n", time.Now())
	bt.Process.Signal(os.Interrupt)
	if err := bt.Wait(); err != nil {
		t.Errorf("%v; %s", err, errs.String())
	}
	if _, errs, code := command("", "--serial", "/no/such/port"); code != 2 || !strings.Contains(errs, "--serial /no/such/port") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// Lines of panics, as the three systems print them, and lines that are none.
func TestPanicAddrs(t *testing.T) {
	for line, want := range map[string]string{
		"Backtrace: 0x400d1234:0x3ffb1230 0x400d5678:0x3ffb1250 |<-CORRUPTED": "[400d1234 400d5678]",
		"[    1.5] sched_dumpstack: backtrace| 0: 0x08001234 0x08005678":      "[8001234 8005678]",
		"[CPU0] dump_stack: backtrace: 0x0800123c":                            "[800123c]",
		"E:      #0 : ra: 0x80001234":                                         "[80001234]",
		"[00:00:01.000] <err> os:      0: fp: 0x80003f40   ra: 0x800012a4 ":   "[800012a4]",
		"#3  0x0000555555555155 in main ()":                                   "[555555555155]",
		"E: Faulting instruction address (r15/pc): 0x00001a2c":                "[1a2c]",
		"PC      : 0x400d1234  PS      : 0x00060030":                          "[400d1234]",
		"MEPC    : 0x420070e6  RA      : 0x420070da  SP      : 0x3fc8f4f0":    "[420070e6 420070da]",
		"abort() was called at PC 0x400d1234 on core 0":                       "[400d1234]",
		"  epc1=0x40220c0c epc2=0x00000000 epc3=0x00000000 excvaddr=0x0000":   "[40220c0c]",
		"3ffffdb0:  40242ffc 3ffefe20 00000020 40242f20":                      "[40242ffc 40242f20]",
		"PC   : 080012AC": "[80012ac]",
		"HardFault: PC = 0x08001234, LR = 0x08005679": "[8001234 8005679]",
		"./app(serve+0x12)[0x5581c0de1234]":           "[5581c0de1234]",
		"crash at 0800abcd, code 3":                   "[800abcd]",
		"I (12) heap: at 0x3ffb0000 len 0x00030000":   "[]",
		"wifi: 0x400d1234":                            "[]",
		"no address at all, backtrace: none":          "[]",
	} {
		if got := fmt.Sprintf("%x", panicAddrs(nil, []byte(line), regexp.MustCompile(`^crash at (\w+)`))); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// A log that is cut off counts as far as it was read, and that is said.
func TestDamagedLog(t *testing.T) {
	z := gzipOf(t, strings.Repeat("x "+readmeLine+"\n", 20_000))
	cut := filepath.Join(t.TempDir(), "cut.log.gz")
	if err := os.WriteFile(cut, z[:len(z)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{cut}, {"-F", "jsonl", cut}} {
		out, errs, code := command("", args...)
		if code != 1 || len(out) == 0 || !strings.Contains(errs, "cut.log.gz: gzip: the data ends early") || !strings.Contains(errs, "records before that") {
			t.Errorf("%v: exit code %d, %d bytes, %s", args, code, len(out), errs)
		}
	}
}

// Flags that would change nothing are refused.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		errs string
		args []string
	}{
		{"--color has no effect here", []string{"-F", "jsonl", "--color", "always"}}, {`--format "folded", expected text, jsonl`, []string{"-F", "folded"}},
		{"--follow and --serial are two ways", []string{"--follow", "--serial", "/dev/x"}}, {`"1k", expected DEVICE:BAUD`, []string{"--serial", "/dev/x:1k"}},
		{`--hide "": expected a regular expression`, []string{"--hide", ""}}, {`--hide "(": error parsing regexp`, []string{"--hide", "("}},
	} {
		if out, errs, code := command(readmeLine, c.args...); code != 2 || out != "" || !strings.Contains(errs, c.errs) || !strings.Contains(errs, "Try 'btdecode --help'") {
			t.Errorf("%v: exit code %d, %q, %q, want %q", c.args, code, out, errs, c.errs)
		}
	}
}

// A log in a FIFO, or a shell's <(…), is read once, also where a log is read twice: what
// was read is not lost.
func TestPipeAsArgument(t *testing.T) {
	exe, log := example(t)
	for _, args := range [][]string{{}, {"-e", exe}, {"--passthrough", "-e", exe}, {"-s", "-e", exe}} {
		regular := tempFile(t, "log", log)
		want, _, code := command("", append(args, regular)...)
		if code != 0 || want == "" {
			t.Fatalf("%v: exit code %d", args, code)
		}
		path := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				io.WriteString(f, log)
				f.Close()
			}
		}()
		cmd := process(append(args, path)...)
		var out, errs cmdtest.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		ends(t, cmd, 0)
		if out.String() != want {
			t.Errorf("%v: %d bytes, of a file %d; %s", args, len(out.String()), len(want), errs.String())
		}
	}
}

// interrupted runs the command on input that does not end, interrupts it after a while and
// returns what it printed and its exit code. If it had not begun by then, so that the
// signal ended the process or it did not print want, that is done again with a longer while.
func interrupted(t *testing.T, input, want string, args ...string) (out, errs string, code int) {
	t.Helper()
	for pause := 300 * time.Millisecond; ; pause *= 3 {
		cmd := process(args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, input)
		var o, e cmdtest.Buffer
		cmd.Stdout, cmd.Stderr = &o, &e
		ends(t, cmd, pause)
		out, errs, code = o.String(), e.String(), cmd.ProcessState.ExitCode()
		if code >= 0 && strings.Contains(out, want) {
			return out, errs, code
		}
		if pause > 20*time.Second {
			t.Errorf("%v: %v after %v, %q", args, cmd.ProcessState, pause, errs)
			return out, errs, code
		}
	}
}

// ends starts a process, interrupts it after a while unless that is 0, and fails if it
// does not end.
func ends(t *testing.T, cmd *exec.Cmd, pause time.Duration) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if pause > 0 {
		time.Sleep(pause)
		cmd.Process.Signal(os.Interrupt)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		<-done
		t.Errorf("%v does not end", cmd.Args[1:])
	}
}

// One interrupt ends the reading of what has no record and no end, too.
func TestInterruptedWithoutRecords(t *testing.T) {
	sparse := tempFile(t, "log", "")
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Skip(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{sparse, "/dev/zero", fifo} {
		for _, args := range [][]string{{path}, {"-F", "jsonl", path}} {
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				interrupted(t, "", "", args...)
			})
		}
	}
	interrupted(t, "", "", "--maps", fifo, readmeLine) // nobody writes the map
}

// Where the output is appended to the log that is read, it would be read again, and so on.
func TestOutputIsNotRead(t *testing.T) {
	path := tempFile(t, "log", strings.Repeat(readmeLine+"\n", 1000))
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{path}, {"--passthrough", path}, {"--follow", path}, {"-F", "jsonl", path}, {}} {
		cmd := process(args...)
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		var errs cmdtest.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &errs
		ends(t, cmd, 0)
		if after, err := os.Stat(path); err != nil || after.Size() != before.Size() {
			t.Fatalf("%v: the log has %d bytes, %d before: %v", args, after.Size(), before.Size(), err)
		}
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(errs.String(), "is the same file as the input") {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// What an interrupt leaves unread is reported, unless the log has no end but that.
func TestInterruptedBeforeTheEnd(t *testing.T) {
	log := tempFile(t, "log", readmeLine+"\n")
	sparse := tempFile(t, "sparse", readmeLine+"\n")
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{sparse}, 1, []string{sparse}},
		{[]string{"-F", "jsonl", sparse}, 1, []string{sparse}},
		{[]string{"--hide", "x", sparse}, 1, []string{sparse}},
		{[]string{log, sparse, log}, 1, []string{sparse, log}},
		{[]string{"--follow", "-F", "jsonl", log}, 0, nil},
		{[]string{"--follow", log}, 0, nil},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			_, errs, code := interrupted(t, "", "7520", c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %q", code, c.code, errs)
			}
			if n := strings.Count(errs, "interrupted before its end"); n != len(c.says) {
				t.Errorf("%d logs are said to be interrupted, want %d: %q", n, len(c.says), errs)
			}
			for _, path := range c.says {
				if !strings.Contains(errs, path+": "+"interrupted before its end") {
					t.Errorf("%q, expected %s to be interrupted", errs, path)
				}
			}
		})
	}
}
