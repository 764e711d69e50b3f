//go:build unix

package truth

import (
	"os/exec"
	"syscall"
)

// endWithChildren kills the whole process group of cmd when its context ends, since gdb
// would leave the stopped program behind.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
