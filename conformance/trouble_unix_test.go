//go:build unix

package conformance

import (
	"os"
	"syscall"
)

// alive reports whether a process exists and is not a zombie.
func alive(p *os.Process) bool { return p.Signal(syscall.Signal(0)) == nil }
