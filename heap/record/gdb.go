//go:build linux

package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gdb calls functions in a process, through GDB's machine interface.
type gdb struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what GDB writes, closed at its end
	pid   int
	token int
}

// Time limits for GDB.
const (
	attachLimit = 2 * time.Minute // it reads the symbols of the program
	callLimit   = 20 * time.Second
	breakLimit  = 5 * time.Second // until a thread calls malloc
)

// stopProcess stops a process in a thread that can call the dynamic linker.
func stopProcess(pid int) (*gdb, error) {
	before := waitsFor(pid)
	g, err := startGDB(pid)
	if err != nil {
		return nil, err
	}
	if err = g.canCall(); err == nil {
		err = g.safe(before)
	}
	if err != nil {
		g.close()
		return nil, fail(NotRecorded, "process %d: %w", pid, err)
	}
	return g, nil
}

// startGDB stops a process.
func startGDB(pid int) (*gdb, error) {
	args := []string{"-nx", "-q", "--interpreter=mi2"}
	for _, set := range []string{"confirm off", "auto-load no", "auto-solib-add off", "debuginfod enabled off", "unwindonsignal on", "language c"} {
		args = append(args, "-iex", "set "+set)
	}
	g := &gdb{cmd: exec.Command("gdb", args...), lines: make(chan string, 64), pid: pid}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not interrupted by the terminal
	in, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fail(NotRecorded, "--pid needs gdb, which is not installed")
		}
		return nil, fail(NotRecorded, "gdb: %w", err)
	}
	g.in = in
	go func() {
		defer close(g.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			g.lines <- s.Text()
		}
	}()
	if _, err := g.do(attachLimit, "-target-attach %d", pid); err != nil {
		g.close()
		hint := ""
		if strings.Contains(err.Error(), "not permitted") {
			hint = "; /proc/sys/kernel/yama/ptrace_scope may forbid it: try as root"
		}
		return nil, fail(NotRecorded, "cannot attach to process %d: %w%s", pid, err, hint)
	}
	return g, nil
}

// close resumes the process, and ends GDB.
func (g *gdb) close() {
	g.do(callLimit, "-target-detach")
	g.in.Close()
	end := time.AfterFunc(5*time.Second, func() { g.cmd.Process.Kill() })
	defer end.Stop()
	for range g.lines {
	}
	g.cmd.Wait()
}

// do sends GDB a command, and returns its result.
func (g *gdb) do(limit time.Duration, format string, args ...any) (result string, err error) {
	g.token++
	token := strconv.Itoa(g.token)
	if _, err := fmt.Fprintf(g.in, token+format+"\n", args...); err != nil {
		return "", fmt.Errorf("gdb ended: %w", err)
	}
	line, err := g.wait(limit, token+"^")
	if err != nil {
		return "", err
	}
	if text, ok := strings.CutPrefix(line, "error,msg="); ok {
		return "", errors.New(strings.TrimSuffix(cString(text), "."))
	}
	_, result, _ = strings.Cut(line, ",")
	return result, nil
}

// wait returns the rest of the next line that begins with prefix. After the limit, GDB is
// interrupted, and undoes a call in the process.
func (g *gdb) wait(limit time.Duration, prefix string) (string, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	late := false
	for {
		select {
		case line, ok := <-g.lines:
			if !ok {
				return "", errors.New("gdb ended")
			}
			rest, ok := strings.CutPrefix(line, prefix)
			switch {
			case ok && late:
				return "", fmt.Errorf("no answer within %v", limit)
			case ok:
				return rest, nil
			}
		case <-timeout.C:
			if late {
				g.cmd.Process.Kill()
				return "", fmt.Errorf("gdb did not answer within %v", limit)
			}
			late = true
			g.cmd.Process.Signal(os.Interrupt)
			timeout.Reset(10 * time.Second)
		}
	}
}

// cString returns the text of a C string, which may be followed by more.
func cString(s string) string {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return s
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted
	}
	return text
}

// call evaluates a C expression in the process, and returns the value as GDB prints it.
func (g *gdb) call(format string, args ...any) (string, error) {
	result, err := g.do(callLimit, "-data-evaluate-expression %s", strconv.Quote(fmt.Sprintf(format, args...)))
	if err != nil {
		return "", err
	}
	return cString(strings.TrimPrefix(result, "value=")), nil
}

// number calls a function of the library, which returns an int.
func (g *gdb) number(handle, function string, argument int) (int, error) {
	text, err := g.call(`((int(*)(int))((void*(*)(void*,const char*))dlsym)((void*)%s,"%s"))(%d)`, handle, function, argument)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", function, err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: gdb answered %q, expected a number", function, text)
	}
	return n, nil
}

// oldGDB is the error of a GDB that does not know all registers of the processor, such as GDB 13
// with AMX, when it writes one: Linux rejects register sets of another size.
const oldGDB = "Couldn't write extended state status"

// canCall returns an error if GDB cannot write the registers of x86. A call would fail after GDB
// has changed some of them, and harm the process. It inverts the flag PE of MXCSR twice, since GDB
// does not write a value that a register already has. Other machines have no such register.
func (g *gdb) canCall() error {
	for range 2 {
		if _, err := g.do(callLimit, "-gdb-set var $mxcsr = (int)$mxcsr ^ 0x20"); err != nil && strings.Contains(err.Error(), oldGDB) {
			return fmt.Errorf("gdb cannot call functions on this processor (%w): a newer gdb may", err)
		}
	}
	return nil
}

var threadRE = regexp.MustCompile(`id="(\d+)",target-id="[^"]*?(?:LWP|process) (\d+)`)

// safe selects a thread that can call the dynamic linker: a thread that waits in the kernel, as it
// did before, but not for a lock; or for a semaphore, a condition or the end of a thread; otherwise the
// next thread that calls one of calls. Other threads may hold locks of the allocator or of the dynamic
// linker.
func (g *gdb) safe(before map[int]string) error {
	threads, err := g.do(callLimit, "-thread-info")
	if err != nil {
		return err
	}
	now := waits(g.pid)
	if thread := waiting(threads, g.pid, before, now); thread != "" {
		_, err = g.do(callLimit, "-thread-select %s", thread)
		return err
	}
	if g.waitsForEvent(threads) {
		return nil
	}
	err = g.next()
	if thread := waiting(threads, g.pid, now, waits(g.pid)); err != nil && thread != "" { // after the process was resumed
		_, err = g.do(callLimit, "-thread-select %s", thread)
	}
	return err
}

// events match functions that wait for what is no lock; locks match functions that may hold one.
var (
	events = regexp.MustCompile(`func="[^"]*(sem_\w*wait|pthread_cond_\w*wait|pthread_\w*join|pthread_barrier_wait)`)
	locks  = regexp.MustCompile(`func="[^"]*(malloc|calloc|realloc|free|_int_|_dl_|dlopen|dlsym|dlclose|dl_iterate_phdr|mutex_lock|lll_lock)`)
)

// waitsForEvent selects a thread that waits in one of events, if there is one.
func (g *gdb) waitsForEvent(threads string) bool {
	if _, err := g.do(attachLimit, `-interpreter-exec console "sharedlibrary lib(c|dl|pthread)[.-]"`); err != nil {
		return false
	}
	for n, m := range threadRE.FindAllStringSubmatch(threads, -1) {
		if n == 20 {
			break
		}
		if _, err := g.do(callLimit, "-thread-select %s", m[1]); err != nil {
			continue
		}
		frames, err := g.do(callLimit, "-stack-list-frames 0 30")
		if err == nil && events.MatchString(frames) && !locks.MatchString(frames) {
			return true
		}
	}
	return false
}

// waiting returns GDB's number of a thread in the same wait as before, "" if there is none. It
// prefers the first thread of the process.
func waiting(threads string, pid int, before, now map[int]string) (thread string) {
	for _, m := range threadRE.FindAllStringSubmatch(threads, -1) {
		tid, _ := strconv.Atoi(m[2])
		if now[tid] != "" && now[tid] == before[tid] && (thread == "" || tid == pid) {
			thread = m[1]
		}
	}
	return thread
}

// calls are functions that a thread does not call while it holds one of these locks.
var calls = []string{"malloc", "epoll_wait", "poll", "select", "read", "write", "clock_nanosleep"}

// next stops the process when a thread calls one of calls, and selects this thread.
func (g *gdb) next() error {
	if _, err := g.do(attachLimit, `-interpreter-exec console "sharedlibrary"`); err != nil {
		return err
	}
	for _, name := range calls {
		g.do(callLimit, "-break-insert -t %s", name) // if there is one
	}
	if _, err := g.do(callLimit, "-exec-continue"); err != nil {
		return err
	}
	_, err := g.wait(breakLimit, "*stopped,")
	if _, err := g.do(callLimit, "-break-delete"); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("each thread is busy or waits for a lock, and none called %s within %v: try again", strings.Join(calls, ", "), breakLimit)
	}
	return nil
}

// waits returns, by thread, the system call in which the thread waits, with arguments and registers,
// as the kernel writes it. It leaves out threads that run or wait for a lock.
func waits(pid int) map[int]string {
	list := map[int]string{}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, d := range tasks {
		tid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
		number, _, _ := strings.Cut(string(text), " ")
		switch n, err := strconv.Atoi(number); {
		case err != nil || n < 0:
		case n == unix.SYS_FUTEX || n == 240 || n == 422: // and that of 32-bit programs
		default:
			list[tid] = string(text)
		}
	}
	return list
}

// waitsFor returns the threads that stay in one system call for 20 ms, longer than a lock is held.
// It tries for 400 ms until it finds one.
func waitsFor(pid int) map[int]string {
	before := waits(pid)
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		now := waits(pid)
		for tid, text := range before {
			if now[tid] != text {
				delete(before, tid)
			}
		}
		if len(before) > 0 {
			break
		}
		before = now
	}
	return before
}

// load makes the process load a library from memory that it creates, which ends with the process: nothing is
// left behind, however btrecord ends. It returns the handle.
func (g *gdb) load(library string) (handle string, err error) {
	text, err := os.ReadFile(library)
	if err != nil {
		return "", err
	}
	if _, err := g.do(attachLimit, "-interpreter-exec console \"sharedlibrary lib(c|dl)[.-]\""); err != nil {
		return "", err
	}
	name, err := g.call(`((int(*)(const char*,unsigned))memfd_create)("lwsbt.so",1)`) // MFD_CLOEXEC
	fd, notNumber := strconv.Atoi(name)
	if err != nil || notNumber != nil || fd < 0 {
		return "", fmt.Errorf("it cannot make memory for the library (memfd_create: %s, %w)", name, err)
	}
	defer g.call(`((int(*)(int))close)(%d)`, fd)
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", g.pid, fd), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "", err
	}
	// GDB opens the file, too: /proc/self would be its own. The dynamic linker loads no name twice: it gets
	// another one for each library that was loaded so.
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", g.pid))
	again := strings.Repeat("./", bytes.Count(maps, []byte("memfd:lwsbt.so")))
	handle, err = g.call(`((void*(*)(const char*,int))dlopen)("/proc/%d/%sfd/%d",2)`, g.pid, again, fd)
	if err != nil {
		return "", fmt.Errorf("dlopen: %w", err)
	}
	if handle != "0x0" {
		return handle, nil
	}
	why, err := g.call(`((char*(*)(void))dlerror)()`)
	if _, text, ok := strings.Cut(why, " "); err == nil && ok {
		return "", fail(Failed, "the process cannot load the library: %s", cString(text))
	}
	return "", fail(Failed, "the process cannot load the library %s", library)
}
