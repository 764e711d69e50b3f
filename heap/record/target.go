//go:build linux

package record

import (
	"bufio"
	"context"
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

	"golang.org/x/sys/unix"
)

// Target is the program to run, or the interpreter of a script.
type Target struct {
	Path    string
	Script  string // the script to run, if Path is its interpreter
	machine elf.Machine
	class   elf.Class
	order   elf.Data
	loader  string
	musl    bool
	// Hint says what may be the reason if nothing is recorded, or is "".
	Hint string
	// Warning is the reason why the program cannot be recorded, or "".
	Warning string
}

// FindTarget looks at a program before it runs with arguments.
func FindTarget(name string, args ...string) (*Target, error) {
	if name == "" {
		return nil, fail(BadArgument, "the name of the program is empty")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return nil, fail(NotFound, "%s: no such program", name)
		}
		return nil, fail(NotRunnable, "%w", err)
	}
	t := &Target{Path: path}
	for range 4 { // a script's interpreter may be a script
		interpreter, err := scriptInterpreter(t.Path)
		if err != nil {
			return nil, err
		}
		if interpreter == "" {
			break
		}
		if t.Script == "" {
			t.Script = t.Path
		}
		t.Path = interpreter
	}
	info, err := os.Stat(t.Path)
	if err != nil && t.Script != "" {
		err = fmt.Errorf("%s: its interpreter %w", t.Script, err)
	}
	if err != nil {
		return nil, err
	}
	t.read()
	if program := loaded(path, args); t.loader == "" && program != "" {
		return FindTarget(program)
	}
	if err := t.runsHere(); err != nil {
		return nil, err
	}
	if t.Warning == "" && gainsPrivileges(info) {
		t.Warning = "is setuid or setgid: the loader ignores preloaded libraries then; run it as its owner"
	}
	if t.Warning == "" && os.Getuid() != 0 && hasCapabilities(t.Path) {
		t.Warning = "has file capabilities: the loader ignores preloaded libraries then; run it as root, or a copy of it"
	}
	return t, nil
}

// loaded returns the program that the dynamic linker at path is to load, as in "ld.so ./prog", "" if path
// is no dynamic linker.
func loaded(path string, args []string) string {
	if base := filepath.Base(path); !strings.HasPrefix(base, "ld-") && !strings.HasPrefix(base, "ld.so") && !strings.HasPrefix(base, "ld64.so") {
		return ""
	}
	withValue := []string{"--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"}
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(withValue, args[i]):
			i++
		case args[i] == "--" && i+1 < len(args):
			return args[i+1]
		case !strings.HasPrefix(args[i], "--"):
			return args[i]
		}
	}
	return ""
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
		return "", fail(Unusable, "%s: no interpreter after #!", path)
	}
	return fields[0], nil
}

func (t *Target) read() {
	f, err := elf.Open(t.Path)
	if err != nil {
		t.Warning = fmt.Sprintf("is not an ELF file that can be read (%v)", elfError(err))
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
		t.Warning = "is a static program: it has no loader to preload a library"
		return
	}
	t.loader = loader
	libraries, _ := f.ImportedLibraries()
	for _, l := range libraries {
		if strings.HasPrefix(l, "libasan.") {
			t.Hint = "was built with AddressSanitizer, which accepts a preloaded library only with ASAN_OPTIONS=verify_asan_link_order=0"
		}
	}
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
func (t *Target) runsHere() error {
	if t.machine == elf.EM_NONE {
		return nil
	}
	here, known := machines[runtime.GOARCH]
	emulators, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	if known && !slices.Contains(here[:], t.machine) && len(emulators) == 0 {
		return fail(Unusable, "%s is a program for %s, and this machine is %s: record it where it runs, with a library made by btrecord library",
			t.Path, strings.TrimPrefix(t.machine.String(), "EM_"), strings.TrimPrefix(here[0].String(), "EM_"))
	}
	if t.loader == "" || len(emulators) > 0 {
		return nil
	}
	if _, err := os.Stat(t.loader); err != nil {
		return fail(Unusable, "%s (%s) cannot run here: its loader is missing: %w", t.Path, t.describe(), err)
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

// hasCapabilities reports whether a file gives capabilities to the process that executes it.
func hasCapabilities(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}

// compilers lists the compilers that may build a library for the target, the best first.
func (t *Target) compilers() []string {
	native := t.machine == machines[runtime.GOARCH][0] && (t.class == elf.ELFCLASS64) == (strconv.IntSize == 64)
	switch {
	case t.musl && native:
		return []string{"musl-gcc -nodefaultlibs"} // its children may be programs of glibc, which cannot load musl
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

func (t *Target) describe() string {
	libc := "glibc"
	if t.musl {
		libc = "musl"
	}
	return fmt.Sprintf("%s, %s", strings.TrimPrefix(t.machine.String(), "EM_"), libc)
}

// findLibrary builds the library for the target with the first compiler that succeeds.
func (t *Target) findLibrary(ctx context.Context) (string, error) {
	err := fail(Failed, "no C compiler is known for its machine (%s); see btrecord library", t.describe())
	for i, cc := range t.compilers() {
		path, e := cachedLibrary(ctx, cc)
		if e == nil {
			return path, nil
		}
		if i == 0 || !errors.Is(e, exec.ErrNotFound) {
			err = e
		}
	}
	return "", err
}

// Library returns the path of the library to preload: file, or if that is "", one that is built by
// a compiler of the target.
func (t *Target) Library(ctx context.Context, file string) (path string, err error) {
	if file == "" {
		path, err = t.findLibrary(ctx)
	} else if path, err = filepath.Abs(file); err == nil {
		err = t.checkLibrary(path)
	}
	if err == nil && strings.ContainsAny(path, " :") {
		err = fail(Unusable, "%s: the loader cannot preload a library with a space or colon in its path; XDG_CACHE_HOME=DIR names another directory", path)
	}
	return path, err
}

// elfError returns an error of reading an ELF file in words for users.
func elfError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends early")
	}
	return err
}

// checkLibrary returns an error if a library does not fit the target.
func (t *Target) checkLibrary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fail(Unusable, "%s: %w, expected a library that btrecord library built", path, elfError(err))
	}
	defer f.Close()
	if f.Machine != t.machine || f.Class != t.class || f.Data != t.order {
		return fail(Unusable, "%s is for %v, and %s for %v", path, f.Machine, t.Path, t.machine)
	}
	symbols, _ := f.DynamicSymbols()
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == LibrarySymbol }) {
		return fail(Unusable, "%s: of another version, expected a library that btrecord library of this version built", path)
	}
	return nil
}
