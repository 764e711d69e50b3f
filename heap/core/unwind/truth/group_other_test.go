//go:build !unix

package truth

import "os/exec"

// endWithChildren does nothing: there are no process groups to end.
func endWithChildren(*exec.Cmd) {}
