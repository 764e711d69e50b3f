//go:build linux

package record

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Request is a user's request to a running recorder, for one process.
type Request string

// Requests.
const (
	On   Request = "on"   // record from now on, beginning with no blocks
	Off  Request = "off"  // write a dump and record no more
	Dump Request = "dump" // write a dump now
)

// memoryRequest is a program's request for the descriptor of the memory, which it cannot open: the
// answer is a byte with the descriptor.
const memoryRequest Request = "memory"

// socketName returns the name of a recorder's abstract socket, which leaves no file behind.
func socketName(recorder int) string { return fmt.Sprintf("@lwsbt.%d", recorder) }

// accept accepts requests until the socket is closed.
func (r *Recorder) accept() {
	for {
		conn, err := r.control.Accept()
		if err != nil {
			return
		}
		go r.serve(conn.(*net.UnixConn))
	}
}

// serve answers one request: a line "dump 1234" is answered by a line "ok …" or "error …".
func (r *Recorder) serve(conn *net.UnixConn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if !mayControl(conn) {
		fmt.Fprintln(conn, "error another user records this process")
		return
	}
	var request Request
	var pid int
	_, err := fmt.Fscanf(io.LimitReader(conn, 64), "%s %d\n", &request, &pid)
	if err == nil && request == memoryRequest {
		conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(r.memory.file.Fd())), nil)
		return
	}
	if err != nil || request != On && request != Off && request != Dump {
		fmt.Fprintln(conn, "error expected on, off or dump, and a PID")
		return
	}
	answer := make(chan string, 1)
	r.call(func() { answer <- r.answer(request, pid) })
	fmt.Fprintln(conn, <-answer)
}

// mayControl reports whether the peer runs as the same user or as root.
func mayControl(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	allowed := false
	raw.Control(func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		allowed = err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Getuid())
	})
	return allowed
}

// Control sends a request to the recorder of a process, and returns the answer. The error is
// the reason why the request was not executed.
func Control(pid int, r Request) (answer string, err error) {
	conn, recorder, err := dialRecorder(pid)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "%s %d\n", r, pid)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("process %d: its recorder, process %d, did not answer: %w", pid, recorder, err)
	}
	line = strings.TrimSuffix(line, "\n")
	if text, ok := strings.CutPrefix(line, "ok "); ok {
		return text, nil
	}
	return "", fmt.Errorf("process %d: %s", pid, strings.TrimPrefix(line, "error "))
}

// dialRecorder connects to the recorder of a process: the memory that both share bears
// its PID in its name. Memory of recorders that ended may be left.
func dialRecorder(pid int) (conn net.Conn, recorder int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if os.IsNotExist(err) {
		return nil, 0, fmt.Errorf("no process %d", pid)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("process %d: %w", pid, err)
	}
	err = fmt.Errorf("process %d is not recorded by btrecord", pid)
	for line := range strings.Lines(string(text)) {
		_, name, _ := strings.Cut(line, "/memfd:"+memoryName)
		number, _, _ := strings.Cut(name, " ")
		n, notNumber := strconv.Atoi(number)
		if notNumber != nil || n <= 0 || n == recorder {
			continue
		}
		recorder = n
		conn, failure := net.Dial("unix", socketName(n))
		if failure == nil {
			return conn, n, nil
		}
		err = fmt.Errorf("process %d: its recorder, process %d, does not answer: %w", pid, n, failure)
	}
	return nil, 0, err
}

// Recorded returns the PID of the process that records pid now, 0 if none does.
func Recorded(pid int) int {
	conn, recorder, err := dialRecorder(pid)
	if err != nil {
		return 0
	}
	conn.Close()
	return recorder
}

const memoryName = "lwsbt."

// answer executes a request and returns the answer.
func (r *Recorder) answer(request Request, pid int) string {
	r.round()
	if request != Dump {
		return r.turn(request == On)
	}
	for _, p := range r.processes {
		if p.host == pid && p.begun {
			blocks, bytes := p.dump("request", p.time(r.memory.now()), false)
			return fmt.Sprintf("ok dump %d, %s, %s", p.dumps-1, printable.Count(blocks, "allocation"), printable.Count(bytes, "byte"))
		}
	}
	if !r.on {
		return "error the recording is off"
	}
	return "error it has not allocated anything since it is recorded"
}

// turn switches the recording on or off. Switching on begins a new boot, because the events
// in between are not known.
func (r *Recorder) turn(on bool) string {
	if on == r.on {
		return map[bool]string{true: "ok it is on already", false: "ok it is off already"}[on]
	}
	r.on = on
	r.memory.setRecording(on)
	if on {
		for _, p := range r.processes {
			if !p.idle {
				p.boot(p.clock.now)
			}
		}
		return "ok on"
	}
	for r.round() > 0 {
	}
	for _, p := range r.processes {
		if p.idle {
			continue
		}
		p.finish("off", p.time(r.memory.now()))
		p.begun = false
	}
	return "ok off"
}
