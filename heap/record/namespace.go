//go:build linux

package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hostPID returns the PID here of a process that calls itself pid, which its own PID namespace may
// have given it. The process began its image at a stamp. If there are other namespaces and the process is not
// found, it has ended; the result is a negative number then.
func (r *Recorder) hostPID(pid, parent uint32, image uint64) int {
	if !r.namespaces && (r.root == 0 || parent != 0 && !r.forksElsewhere() && !r.older(int(pid))) {
		return int(pid)
	}
	r.namespaces = r.root != 0
	if !r.namespaces || r.hasMemory(int(pid)) {
		return int(pid)
	}
	if host := r.findHost(int(pid), image); host != 0 {
		return host
	}
	if unix.Kill(int(pid), 0) == unix.ESRCH {
		return int(pid) // of this namespace, most likely
	}
	r.unknown++
	return -r.unknown
}

// findHost returns the PID here of a process that has the memory, and that its own namespace calls
// pid, 0 if there is none. Several namespaces may have such a process: it prefers one that is
// not recorded so far, and of these the one that was started closest to the image.
func (r *Recorder) findHost(pid int, image uint64) (host int) {
	var boot unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	now := r.memory.clock.start.Add(time.Duration(r.memory.clock.micros(image)) * time.Microsecond)
	began := time.Duration(boot.Nano()) - time.Since(now)
	distance := time.Duration(0)
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		p, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || innermostPID(p) != pid || !r.hasMemory(p) {
			continue
		}
		d := (began - startOf(p)).Abs()
		if r.outputs[p] != nil {
			d += 1 << 50 // 13 days
		}
		if host == 0 || d < distance {
			host, distance = p, d
		}
	}
	return host
}

// startOf returns when a process was started, since the boot of the machine.
func startOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseInt(fields[19], 10, 64)
	return time.Duration(ticks) * (time.Second / 100) // USER_HZ
}

// older reports whether a process is older than the recorder: it is none that was recorded as a child
// then. A clone with CLONE_NEWPID gives a child that calls itself 1.
func (r *Recorder) older(pid int) bool {
	began := startOf(pid)
	return pid != r.root && began != 0 && began < startOf(os.Getpid())
}

// forksElsewhere reports whether a recorded process has children in another PID namespace.
func (r *Recorder) forksElsewhere() bool {
	here, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	for _, p := range r.processes {
		there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", p.host))
		if err == nil && there != here {
			return true
		}
	}
	return false
}

// innermostPID returns the PID that a process has in its own PID namespace, 0 if it is this one.
func innermostPID(host int) int {
	pids := statusField(host, "NSpid")
	if len(pids) < 2 {
		return 0
	}
	pid, _ := strconv.Atoi(pids[len(pids)-1])
	return pid
}

// hasMemory reports whether a process maps the memory.
func (r *Recorder) hasMemory(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err == nil && bytes.Contains(text, fmt.Appendf(nil, "/memfd:%s%d ", memoryName, os.Getpid()))
}
