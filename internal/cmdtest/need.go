package cmdtest

import (
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Need skips the test unless the programs are installed. It ignores empty names. Options may
// follow a name. A cross compiler must also find its C library, which Debian only recommends
// to install with it.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if why := missing(p); why != "" {
			t.Skip(why)
		}
	}
}

var (
	cross = regexp.MustCompile(`-linux-(gnu(eabihf)?|musl)-gcc$|^arm-none-eabi-gcc$`)
	tried sync.Map // by compiler with options: result of missing
)

// missing returns the missing part of a program, "" if nothing is missing.
func missing(program string) string {
	argv := strings.Fields(program)
	if len(argv) == 0 {
		return ""
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return argv[0] + " is not installed"
	}
	if !cross.MatchString(argv[0]) {
		return ""
	}
	if why, ok := tried.Load(program); ok {
		return why.(string)
	}
	c := exec.Command(argv[0], append(argv[1:], "-fsyntax-only", "-x", "c", "-")...)
	c.Stdin = strings.NewReader("#include <stdlib.h>\n")
	why := ""
	if c.Run() != nil {
		why = argv[0] + " has no C library"
	}
	tried.Store(program, why)
	return why
}
