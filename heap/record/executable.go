//go:build linux

package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// executable finds that a process executed a program that is not recorded: a static one, or
// one that runs as another user. A program that is recorded has an image of its own.
type executable struct {
	path   string    // of the recorded program, as the kernel has it
	other  string    // another program that the process runs
	since  time.Time // of other
	reason string    // why it is not recorded, once it is known
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
	if errors.Is(err, fs.ErrPermission) && gainedPrivileges(pid) {
		var comm []byte
		comm, err = os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		path = strings.TrimSuffix(string(comm), "\n")
	}
	switch {
	case err != nil: // gone
	case e.unrecorded(now):
		if e.reason == "" {
			e.reason = whyNot(pid)
		}
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

// whyNot returns the reason why the program that a process runs is not recorded.
func whyNot(pid int) string {
	if gainedPrivileges(pid) {
		return "it gained privileges as it started (setuid, setgid or file capabilities): the loader ignores preloaded libraries then"
	}
	proc := fmt.Sprintf("/proc/%d/", pid)
	t := &Target{Path: proc + "exe"}
	if t.read(); t.loader == "" && t.Warning != "" {
		return "it " + t.Warning
	}
	return "it runs as another user, has none of the variables of btrecord in its environment, or cannot open the files that they name"
}

// gainedPrivileges reports whether the loader of a process ignores the environment: the kernel says
// so in its auxiliary vector, which nobody else can read if the user of btrecord is not root. Then the
// process has another user or more capabilities than btrecord, which only exec can give.
func gainedPrivileges(pid int) bool {
	const secure = 23 // AT_SECURE
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		user, capabilities := rights(pid)
		_, own := rights(os.Getpid())
		return user >= 0 && (user != os.Geteuid() || capabilities&^own != 0)
	}
	const word = int(unsafe.Sizeof(uintptr(0)))
	for ; len(text) >= 2*word; text = text[2*word:] {
		if pair := (*[2]uintptr)(unsafe.Pointer(&text[0])); pair[0] == secure {
			return pair[1] != 0
		}
	}
	return false
}

// rights returns the effective user of a process, -1 if it has ended, and its permitted capabilities.
func rights(pid int) (user int, capabilities uint64) {
	user = -1
	if ids, set := statusField(pid, "Uid"), statusField(pid, "CapPrm"); len(ids) == 4 && len(set) == 1 {
		user, _ = strconv.Atoi(ids[1])
		capabilities, _ = strconv.ParseUint(set[0], 16, 64)
	}
	return user, capabilities
}
