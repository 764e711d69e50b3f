package capture

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/device/tools/functions"
)

// A realProgram is one that others wrote: its sources are Debian's, and .ci/sources
// fetches them. real/NAME.c drives it.
type realProgram struct {
	name    string
	files   string   // in the directory of sources: a pattern
	without []string // patterns of some that are left out
	flags   []string
	order   string // a macro for the byte order, of 1234 or 4321
}

var realPrograms = []realProgram{
	{name: "cjson", files: "cjson/cJSON*.c"},
	{name: "duktape", files: "duktape/src/duktape.c"},
	{name: "expat", files: "expat/expat/lib/xml*.c", without: f("xmltok_impl.c xmltok_ns.c"),
		flags: f("-DXML_POOR_ENTROPY -DXML_NS -DXML_DTD -DXML_CONTEXT_BYTES=1024 -DHAVE_MEMMOVE"), order: "BYTEORDER"},
	{name: "lua", files: "lua5.4/src/*.c", without: f("lua.c luac.c")},
	{name: "sqlite3", files: "sqlite3/sqlite3.c",
		flags: f("-DSQLITE_OS_OTHER=1 -DSQLITE_THREADSAFE=0 -DSQLITE_TEMP_STORE=3 -DSQLITE_OMIT_LOAD_EXTENSION")},
	{name: "zlib", files: "zlib/*.c", without: f("gzclose.c gzlib.c gzread.c gzwrite.c")},
}

// realLevels are those that real programs are compiled at.
var realLevels = f("-O0 -O2 -Os")

// realMachines returns those of a backend that real programs can be built for: they need a C
// library.
func (b backend) realMachines() []machine {
	var list []machine
	for _, name := range b.machines {
		m := machineOf(name)
		if !m.bare || m.newlib() {
			list = append(list, m)
		}
	}
	return list
}

// newlib reports whether newlib is the C library of the machine's programs.
func (m machine) newlib() bool { return m.bare && m.gcc[0] == "arm-none-eabi-gcc" }

// realBackends are those that real programs are measured with; where they read a table,
// with it as well.
func realBackends() []backend {
	return slices.DeleteFunc(slices.Clone(backends), func(b backend) bool { return b.trusts || b.report || b.table })
}

// hooked names the functions that are places of captures.
var hooked = f("malloc calloc realloc free memcpy memmove memset memcmp strlen strcmp strncmp")

// cacheDir returns the directory that sources and compiled programs are in.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "lwsbt")
}

// sourcesDir returns the directory that .ci/sources writes to.
func sourcesDir() string {
	if dir := os.Getenv("LWSBT_SOURCES"); dir != "" {
		return dir
	}
	return filepath.Join(cacheDir(), "sources")
}

// sources returns the files of a program, or what is missing.
func (p realProgram) sources() ([]string, string) {
	dir := sourcesDir()
	files, _ := filepath.Glob(filepath.Join(dir, p.files))
	files = slices.DeleteFunc(files, func(s string) bool {
		return slices.ContainsFunc(p.without, func(pattern string) bool {
			out, _ := filepath.Match(pattern, filepath.Base(s))
			return out
		})
	})
	if len(files) == 0 {
		return nil, fmt.Sprintf("no %s in %s: .ci/sources fetches it, or set LWSBT_SOURCES", p.files, dir)
	}
	return files, ""
}

// A realJob is a program for a machine, with the backends that capture its stacks.
type realJob struct {
	machine machine
	backend backend // with a table as well, where it reads one
	clang   bool
	level   string
	program realProgram
	dir     string // device/
}

func (j realJob) String() string {
	return fmt.Sprintf("%s %s %s %s", j.program.name, j.backend.name, j.machine.name, j.level)
}

// reads reports whether a backend reads a table of functions.
func (b backend) reads() bool {
	return slices.ContainsFunc(backends, func(o backend) bool { return o.name == b.name && o.table })
}

// run returns what was captured without the table, and with it.
func (j realJob) run() (plain, table count, err error) {
	dir, err := os.MkdirTemp("", "real")
	if err != nil {
		return plain, table, err
	}
	defer os.RemoveAll(dir)
	exe := filepath.Join(dir, "program")
	if err := j.build(dir, exe); err != nil {
		return plain, table, err
	}
	if j.backend.reads() {
		if _, err := functions.Patch(exe); err != nil {
			return plain, table, err
		}
	}
	out, stderr, runErr := j.machine.execute(exe, 10*time.Minute)
	symbols, err := readSymbols(exe)
	if err != nil {
		return plain, table, err
	}
	plain, table, err = checkReal(out, symbols)
	if runErr != nil {
		plain.fatal = fmt.Sprintf("%v: %v %s", j, runErr, bytes.TrimSpace(stderr))
		return plain, table, nil
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", j, err)
	}
	return plain, table, err
}

// flags returns the options that all code is compiled with. The unwinder, which tells
// the true stack, needs its tables.
func (j realJob) flags() []string {
	return slices.Concat(f("-std=gnu99 -g0 -w -fno-builtin -fno-stack-protector -funwind-tables -fasynchronous-unwind-tables "+j.level), j.backend.flags)
}

func (j realJob) build(dir, exe string) error {
	files, missing := j.program.sources()
	if missing != "" {
		return errors.New(missing)
	}
	compiler := j.machine.gcc
	if j.clang {
		compiler = j.machine.clang
	}
	test := filepath.Join(j.dir, "test", "capture", "real")
	base := filepath.Dir(files[0])
	// Included by expat, and all of it is in flags.
	if err := os.WriteFile(filepath.Join(dir, "expat_config.h"), nil, 0o666); err != nil {
		return err
	}
	flags := slices.Concat(j.flags(), j.program.flags, []string{"-I" + base, "-I" + test, "-I" + dir})
	for _, name := range hooked {
		flags = append(flags, "-D"+name+"=hook_"+name)
	}
	if j.program.order != "" {
		flags = append(flags, "-D"+j.program.order+"=__BYTE_ORDER__")
	}
	var objects []string
	for _, file := range append(files, filepath.Join(test, j.program.name+".c")) {
		object, err := j.compile(dir, compiler, flags, file)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	src := filepath.Join(j.dir, "src")
	flags = append(j.flags(), "-I"+filepath.Join(j.dir, "include"), "-I"+test, "-DLWSBT_FUNCTIONS_MAX=8000", "-DBACKEND=lwsbt_capture_"+j.backend.name)
	library := []string{filepath.Join(test, "real.c"), filepath.Join(src, "capture_"+j.backend.name+".c"), filepath.Join(src, "capture_functions.c")}
	link := f("-static -lm -o")
	if j.machine.newlib() {
		library = append(library, filepath.Join(test, "newlib.c"), filepath.Join(j.dir, "test", "capture", "program", "sys.c"))
		link = f("--specs=nosys.specs -nostartfiles -lm -o")
	} else {
		flags = append(flags, "-DSTACK_END")
	}
	if j.backend.reads() {
		flags = append(flags, "-DTABLE")
	}
	for _, file := range library {
		object := filepath.Join(dir, filepath.Base(file)+".o")
		if err := j.tool(dir, compiler[0], slices.Concat(compiler[1:], flags, []string{"-c", file, "-o", object})); err != nil {
			return err
		}
		objects = append(objects, object)
	}
	return j.tool(dir, j.machine.gcc[0], slices.Concat(j.machine.gcc[1:], objects, link, []string{exe}))
}

// compile returns the object of a file of the program, which it keeps for the next time.
func (j realJob) compile(dir string, compiler, flags []string, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	args := slices.DeleteFunc(slices.Concat(compiler, flags), func(a string) bool { return a == "-I"+dir })
	key := sha256.Sum256(append([]byte(strings.Join(args, " ")+file), text...))
	object := filepath.Join(cacheDir(), "objects", fmt.Sprintf("%x.o", key[:16]))
	if _, err := os.Stat(object); err == nil {
		return object, nil
	}
	if err := os.MkdirAll(filepath.Dir(object), 0o777); err != nil {
		return "", err
	}
	made := filepath.Join(dir, filepath.Base(file)+".o")
	if err := j.tool(dir, compiler[0], slices.Concat(compiler[1:], flags, []string{"-c", file, "-o", made})); err != nil {
		return "", err
	}
	o, err := os.ReadFile(made)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(made+".part", o, 0o666); err != nil {
		return "", err
	}
	if err := os.Rename(made+".part", object); err != nil {
		return made, nil // another file system: it is compiled each time
	}
	return object, nil
}

func (j realJob) tool(dir, name string, args []string) error {
	return job{machine: j.machine, backend: j.backend, level: j.level}.tool(dir, name, args)
}

// checkReal reads what a program printed: see real/real.c.
func checkReal(out []byte, symbols *symbolTable) (plain, table count, err error) {
	var truth []frame
	ended := false
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		if len(words) == 0 {
			continue
		}
		var pcs []uint64
		for _, w := range words[1:] {
			pc, err := strconv.ParseUint(w, 16, 64)
			if err != nil {
				return plain, table, err
			}
			pcs = append(pcs, pc)
		}
		switch words[0] {
		case "t":
			truth = nil
			for _, pc := range pcs {
				truth = append(truth, frame{pc, symbols.name(pc)})
				if symbols.name(pc) == "main" {
					break
				}
			}
			if len(truth) == 0 || truth[len(truth)-1].name != "main" {
				// The unwinder stopped in a function of the C library that has no tables.
				truth = nil
			}
		case "c":
			if truth != nil {
				plain.compareToEnd(truth, pcs, symbols)
			}
		case "f":
			if truth != nil {
				table.compareToEnd(truth, pcs, symbols)
			}
		case "!c":
			plain.differing++
		case "!f":
			table.differing++
		case "e":
			ended = true
		}
	}
	if err := scanner.Err(); err != nil {
		return plain, table, err
	}
	switch {
	case !ended:
		err = errors.New("the program did not end")
	case plain.captures == 0:
		err = errors.New("the program captured nothing")
	}
	return plain, table, err
}

// starting names what calls main.
var starting = f("hlt __libc_start_call_main __libc_start_main __libc_start_main_impl generic_start_main _start __start __wrap_main _mainCRTStartup")

// compareToEnd adds a capture as compare does; frames beyond main that do not start the
// program are wrong, too.
func (c *count) compareToEnd(truth []frame, got []uint64, symbols *symbolTable) {
	c.compare(truth, got, symbols)
	beyond := false
	for _, pc := range got {
		name := symbols.name(pc)
		if beyond && name != "" && !slices.Contains(starting, name) {
			c.wrong++
			c.beyond++
			if c.beyond == 1 && c.worst == "" {
				c.worst = fmt.Sprintf(" beyond main: %s:%x of %x", name, pc, got)
			}
		}
		beyond = beyond || name == "main"
	}
}
