//go:build linux

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// executable finds that a process executed a program that is not recorded: a static one, or
// one that runs as another user. A program that is recorded has an image of its own.
type executable struct {
	path  string    // of the recorded program, as the kernel has it
	other string    // another program that the process runs
	since time.Time // of other
}

// startTime is the longest time that a recorded program needs for its first record.
const startTime = time.Second

// begin takes the program that is recorded. name is its path in the process, which may have
// another root directory. The process may run another program by now, or run this one by an
// emulator or by the dynamic linker.
func (e *executable) begin(pid int, name string) {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	base := filepath.Base(path)
	if strings.HasSuffix(strings.TrimSuffix(path, " (deleted)"), name) || strings.HasPrefix(base, "qemu") || strings.HasPrefix(base, "ld") {
		e.path = path
	} else {
		e.path = name
	}
}

// look looks at the program of a process.
func (e *executable) look(pid int, now time.Time) {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	switch {
	case err != nil || e.unrecorded(now): // gone, or known
	case path == e.path || path == e.path+" (deleted)":
		e.other = ""
	case path != e.other:
		e.other, e.since = path, now
	}
}

// unrecorded reports whether the process runs another program, which is not recorded.
func (e *executable) unrecorded(now time.Time) bool {
	return e.other != "" && now.Sub(e.since) > startTime
}
