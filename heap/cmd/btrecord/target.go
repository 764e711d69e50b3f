//go:build linux

package main

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// target is the program to run, or the interpreter of a script.
type target struct {
	path    string
	script  string // the script to run, if path is its interpreter
	machine elf.Machine
	class   elf.Class
	order   elf.Data
	loader  string
	musl    bool
	// warning is the reason why the program cannot be recorded, or "".
	warning string
}

// findTarget looks at a program before it runs.
func findTarget(name string) (*target, error) {
	if name == "" {
		return nil, cli.BadArgsf("the name of the program is empty")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return nil, failed(notFound, "%s: no such program", name)
		}
		return nil, failed(notRunnable, "%w", err)
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
		if t.script == "" {
			t.script = t.path
		}
		t.path = interpreter
	}
	info, err := os.Stat(t.path)
	if err != nil && t.script != "" {
		err = fmt.Errorf("%s: its interpreter %w", t.script, err)
	}
	if err != nil {
		return nil, err
	}
	t.read()
	if err := t.runsHere(); err != nil {
		return nil, err
	}
	if t.warning == "" && gainsPrivileges(info) {
		t.warning = "is setuid or setgid: the loader ignores preloaded libraries then; run it as its owner"
	}
	return t, nil
}

// scriptInterpreter returns the interpreter of a script, "" if path is not a script.
func scriptInterpreter(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil // the file may be executable but not readable
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
		t.warning = fmt.Sprintf("is not an ELF file that can be read (%v)", elfError(err))
		return
	}
	defer f.Close()
	t.machine, t.class, t.order = f.Machine, f.Class, f.Data
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
	t.loader = loader
	t.musl = strings.Contains(loader, "ld-musl")
}

// machines lists, by GOARCH, the machine of this system, and another one whose programs run on it.
var machines = map[string][2]elf.Machine{
	"amd64": {elf.EM_X86_64, elf.EM_386}, "386": {elf.EM_386}, "arm64": {elf.EM_AARCH64, elf.EM_ARM}, "arm": {elf.EM_ARM},
	"riscv64": {elf.EM_RISCV}, "mips": {elf.EM_MIPS}, "mipsle": {elf.EM_MIPS}, "mips64": {elf.EM_MIPS}, "mips64le": {elf.EM_MIPS},
	"ppc64": {elf.EM_PPC64, elf.EM_PPC}, "ppc64le": {elf.EM_PPC64}, "s390x": {elf.EM_S390}, "loong64": {elf.EM_LOONGARCH},
}

// crossCompilers are the compilers of other machines, as Debian names them.
var crossCompilers = map[elf.Machine][]string{
	elf.EM_386: {"i686-linux-gnu-gcc"}, elf.EM_X86_64: {"x86_64-linux-gnu-gcc"}, elf.EM_AARCH64: {"aarch64-linux-gnu-gcc"},
	elf.EM_ARM: {"arm-linux-gnueabihf-gcc", "arm-linux-gnueabi-gcc"}, elf.EM_RISCV: {"riscv64-linux-gnu-gcc"}, elf.EM_MIPS: {"mips-linux-gnu-gcc"},
}

// runsHere returns an error with the reason if the kernel cannot run the target. It
// returns nil if it cannot tell.
func (t *target) runsHere() error {
	if t.machine == elf.EM_NONE {
		return nil
	}
	here, known := machines[runtime.GOARCH]
	emulators, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	if known && !slices.Contains(here[:], t.machine) && len(emulators) == 0 {
		cc := "CC"
		if list := t.compilers(); len(list) > 0 {
			cc = list[0]
		}
		return cli.Usagef("%s is a program for %s, and this machine is %s: record it where it runs, with a library made by btrecord library --cc %s",
			t.path, strings.TrimPrefix(t.machine.String(), "EM_"), strings.TrimPrefix(here[0].String(), "EM_"), cc)
	}
	if t.loader == "" || len(emulators) > 0 {
		return nil
	}
	if _, err := os.Stat(t.loader); err != nil {
		return cli.Usagef("%s (%s) cannot run here: its loader is missing: %w", t.path, t.describe(), err)
	}
	return nil
}

func gainsPrivileges(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	return info.Mode()&fs.ModeSetuid != 0 && int(st.Uid) != os.Getuid() ||
		info.Mode()&fs.ModeSetgid != 0 && int(st.Gid) != os.Getgid()
}

// compilers lists the compilers that may build a library for the target, the best first.
func (t *target) compilers() []string {
	native := t.machine == machines[runtime.GOARCH][0] && (t.class == elf.ELFCLASS64) == (strconv.IntSize == 64)
	switch {
	case t.musl && native:
		return []string{"musl-gcc"}
	case t.musl:
		return nil
	case native:
		return []string{"cc", "gcc", "clang"}
	case t.machine == elf.EM_386 && runtime.GOARCH == "amd64":
		return []string{"gcc -m32", "i686-linux-gnu-gcc"}
	case t.machine == elf.EM_MIPS && t.order == elf.ELFDATA2LSB:
		return []string{"mipsel-linux-gnu-gcc"}
	}
	return crossCompilers[t.machine]
}

func (t *target) describe() string {
	libc := "glibc"
	if t.musl {
		libc = "musl"
	}
	return fmt.Sprintf("%s, %s", strings.TrimPrefix(t.machine.String(), "EM_"), libc)
}

// findLibrary builds the library for the target with the first compiler that succeeds.
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

// elfError returns an error of reading an ELF file in words for users.
func elfError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends early")
	}
	return err
}

// checkLibrary returns an error if a library does not fit the target.
func (t *target) checkLibrary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return cli.Usagef("%s: %w, expected a library that btrecord library built", path, elfError(err))
	}
	defer f.Close()
	if f.Machine != t.machine || f.Class != t.class || f.Data != t.order {
		return cli.Usagef("%s is for %v, and %s for %v", path, f.Machine, t.path, t.machine)
	}
	symbols, _ := f.DynamicSymbols()
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == record.LibrarySymbol }) {
		return cli.Usagef("%s: of another version, expected a library that btrecord library of this version built", path)
	}
	return nil
}
