package cmdtest

import (
	"os/exec"
	"path/filepath"
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

// NeedToRun skips the test unless this machine runs the programs of the compiler: many kernels
// for x86-64 cannot run those of i686.
func NeedToRun(t testing.TB, compiler string) {
	t.Helper()
	Need(t, compiler)
	program := filepath.Join(t.TempDir(), "program")
	c := exec.Command(compiler, "-static", "-o", program, "-x", "c", "-")
	c.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	if err := exec.Command(program).Run(); err != nil {
		t.Skipf("programs of %s do not run here: %v", compiler, err)
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
