//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program and what it starts into a process group of their own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the program and what it started.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
