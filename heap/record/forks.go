//go:build linux

package record

import (
	"slices"
)

// With Inherited, the recording of a child begins with the blocks that the parent had at the
// fork. The parent's record of the fork comes first; the image of the child has its stamp.

// fork holds the live blocks of a process immediately before a fork.
type fork struct {
	stamp uint64
	live  liveTable
}

// maxForks is the most forks whose heap is kept. A child that records nothing never takes it.
const maxForks = 16

// mark keeps a copy of the live blocks for the child of a fork.
func (p *process) mark(stamp uint64) {
	if !p.begun {
		return
	}
	if len(p.forks) == maxForks {
		p.forks = slices.Delete(p.forks, 0, 1)
	}
	p.forks = append(p.forks, fork{stamp, p.live.clone()})
}

// copy copies the modules of the parent process. It returns the blocks that were live at the
// fork with this stamp, if they were kept, and copies their call paths.
func (p *process) copy(from *process, stamp uint64) (live liveTable) {
	p.modules = from.modules.clone()
	i := slices.IndexFunc(from.forks, func(f fork) bool { return f.stamp == stamp })
	if i >= 0 {
		p.tree, live = from.tree.clone(), from.forks[i].live
		from.forks = slices.Delete(from.forks, i, i+1)
	}
	return live
}

// inherit records the blocks that the process has from its parent.
func (p *process) inherit(live *liveTable) {
	if live.n == 0 {
		return
	}
	for b := range live.all {
		p.begin(b, nil, p.key.pid, 0)
	}
	if !p.config.Events {
		p.dump("fork", 0, false)
	}
}
