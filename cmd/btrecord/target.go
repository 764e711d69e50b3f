//go:build linux

package main

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// target is the program that is to run, or the interpreter of a script.
type target struct {
	path    string
	machine elf.Machine
	class   elf.Class
	musl    bool
	// warning says why nothing of it can be recorded, "" if it can.
	warning string
}

// findTarget looks at a program before it runs.
func findTarget(name string) (*target, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usagef("%s: no such program", name)
		}
		return nil, err
	}
	t := &target{path: path}
	for range 4 { // a script's interpreter may be a script
		interpreter, err := scriptInterpreter(t.path)
		if err != nil {
			return nil, err
		}
		if interpreter == "" {
			break
		}
		t.path = interpreter
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return nil, err
	}
	t.read()
	if t.warning == "" && gainsPrivileges(info) {
		t.warning = "is setuid or setgid: the loader ignores preloaded libraries then; run it as its owner"
	}
	return t, nil
}

// scriptInterpreter returns what runs a script, "" if path is none.
func scriptInterpreter(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil // what may be run, but not read
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", nil
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", cli.Usagef("%s: no interpreter after #!", path)
	}
	return fields[0], nil
}

func (t *target) read() {
	f, err := elf.Open(t.path)
	if err != nil {
		t.warning = fmt.Sprintf("is no ELF file that can be read (%v)", err)
		return
	}
	defer f.Close()
	t.machine, t.class = f.Machine, f.Class
	loader := ""
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, min(p.Filesz, 4096))
			if _, err := p.ReadAt(text, 0); err == nil {
				loader = strings.TrimRight(string(text), "\x00")
			}
		}
	}
	if loader == "" {
		t.warning = "is a static program: it has no loader to preload a library"
		return
	}
	t.musl = strings.Contains(loader, "ld-musl")
}

func gainsPrivileges(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	return info.Mode()&fs.ModeSetuid != 0 && int(st.Uid) != os.Getuid() ||
		info.Mode()&fs.ModeSetgid != 0 && int(st.Gid) != os.Getgid()
}

// compilers lists what may build a library for the target, the best first.
func (t *target) compilers() []string {
	native := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_386: "386", elf.EM_AARCH64: "arm64",
		elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64", elf.EM_MIPS: "mips"}[t.machine] == runtime.GOARCH
	switch {
	case t.musl && native:
		return []string{"musl-gcc"}
	case t.musl:
		return nil
	case native:
		return []string{"cc", "gcc", "clang"}
	}
	var list []string
	if t.machine == elf.EM_386 && runtime.GOARCH == "amd64" {
		list = append(list, "gcc -m32")
	}
	prefixes := map[elf.Machine][]string{elf.EM_386: {"i686-linux-gnu"}, elf.EM_X86_64: {"x86_64-linux-gnu"},
		elf.EM_AARCH64: {"aarch64-linux-gnu"}, elf.EM_ARM: {"arm-linux-gnueabihf", "arm-linux-gnueabi"},
		elf.EM_RISCV: {"riscv64-linux-gnu"}, elf.EM_MIPS: {"mips-linux-gnu", "mipsel-linux-gnu"}}[t.machine]
	for _, p := range prefixes {
		list = append(list, p+"-gcc")
	}
	return list
}

func (t *target) describe() string {
	libc := "glibc"
	if t.musl {
		libc = "musl"
	}
	return fmt.Sprintf("%s, %s", strings.TrimPrefix(t.machine.String(), "EM_"), libc)
}

// findLibrary builds the library for the target by the first compiler that can.
func (t *target) findLibrary(cc string) (string, error) {
	list := t.compilers()
	if cc != "" {
		list = []string{cc}
	}
	err := cli.Failedf("no C compiler is known for its machine (%s); see --cc and --library", t.describe())
	for i, cc := range list {
		path, e := cachedLibrary(cc)
		if e == nil {
			return path, nil
		}
		if i == 0 || !errors.Is(e, exec.ErrNotFound) {
			err = e
		}
	}
	return "", err
}

// checkLibrary reports why a library does not fit the target.
func (t *target) checkLibrary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return cli.Usagef("%s: %w", path, err)
	}
	defer f.Close()
	if f.Machine != t.machine || f.Class != t.class {
		return cli.Usagef("%s is for %v, and %s for %v", path, f.Machine, t.path, t.machine)
	}
	return nil
}
