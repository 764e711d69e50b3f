//go:build linux

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// executed finds the programs that recorded processes execute, and that are not recorded. The
// library writes a record before a program is executed. If the new program is recorded, its first
// record has the same PID and a later stamp.
type executed struct {
	waiting map[uint32]*execution // by PID: not recorded so far
	images  map[uint32]uint64     // by PID: the stamp of the latest program that is recorded
	missed  map[missed]int        // how many processes executed a program that is not recorded
}

// execution is a program that a process executed.
type execution struct {
	path   string // as the process gave it
	root   bool   // by the first process
	stamp  uint64 // of before
	began  time.Time
	host   int    // the PID here, negative if it is not known
	reason string // why it is not recorded, once it is known
}

// missed is a program that is not recorded. root: the first process executed it.
type missed struct {
	path, reason string
	root         bool
}

func newExecuted() executed {
	return executed{map[uint32]*execution{}, map[uint32]uint64{}, map[missed]int{}}
}

// executes handles a record of kindExec by process p.
func (r *Recorder) executes(p *process, rec *record) {
	e, pid, stamp := &r.executed, uint32(rec.words[1]), rec.words[3]
	path, _ := text(rec.words[4:], rec.pathBytes())
	if path == "" { // it failed
		delete(e.waiting, pid)
		return
	}
	e.ends(pid) // an earlier process of this PID
	if image, ok := e.images[pid]; !ok || r.memory.clock.before(image, stamp) {
		x := &execution{path: path, stamp: stamp, began: time.Now(), host: int(pid)}
		if pid == p.key.pid {
			x.host, x.root = p.host, p.host == r.root
		}
		e.waiting[pid] = x
	}
}

// begins handles the first record of a program.
func (r *Recorder) begins(key processKey) {
	r.executed.images[key.pid] = key.image
	if x := r.executed.waiting[key.pid]; x != nil && !r.memory.clock.before(key.image, x.stamp) {
		delete(r.executed.waiting, key.pid)
	}
}

// look finds out why programs are not recorded while they run.
func (e *executed) look(now time.Time) {
	for _, x := range e.waiting {
		if x.reason == "" && now.Sub(x.began) > startTime {
			x.reason = whyNotFile(x.host, x.path)
		}
	}
}

// ends counts the program of a process if it is not recorded.
func (e *executed) ends(pid uint32) {
	x := e.waiting[pid]
	if x == nil {
		return
	}
	if x.reason == "" {
		x.reason = whyNotFile(x.host, x.path)
	}
	e.missed[missed{x.path, x.reason, x.root}]++
	delete(e.waiting, pid)
}

// notes returns what is to be said of programs that were not recorded. Programs that
// just start are not among them. root is an error if the first process executed such a program.
func (e *executed) notes() (list []string, root error) {
	for pid, x := range e.waiting {
		if x.reason != "" || !Running(x.host) {
			e.ends(pid)
		}
	}
	for m, n := range e.missed {
		if m.root {
			root = fmt.Errorf("the program executed %s, which is not recorded: %s", m.path, m.reason)
			continue
		}
		list = append(list, fmt.Sprintf("%s executed %s, which is not recorded: %s", printable.Count(uint64(n), "process"), m.path, m.reason))
	}
	return slices.Sorted(slices.Values(list)), root
}

// whyNotFile returns the reason why a program is not recorded that a process executed by a path. The
// process may have ended.
func whyNotFile(pid int, path string) string {
	file := path
	if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && strings.Contains(path, "/") && !filepath.IsAbs(path) {
		file = filepath.Join(dir, path)
	}
	t, err := FindTarget(file)
	switch {
	case err == nil && t.Warning != "":
		return "it " + t.Warning
	case Running(pid):
		return whyNot(pid)
	}
	return "it has another size of words, or a root directory without /proc, where it cannot open the library, or did not load it"
}
