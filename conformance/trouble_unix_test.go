//go:build unix

package conformance

import (
	"os"
	"syscall"
)

// alive reports whether a process is there, a zombie not counted.
func alive(p *os.Process) bool { return p.Signal(syscall.Signal(0)) == nil }
