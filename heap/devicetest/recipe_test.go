package devicetest

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// docBlock returns a block of docs/device.md in a language, n = 0 for the first.
func docBlock(t *testing.T, language string, n int) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "\n```"+language+"\n")
	block, ok := "", false
	if n+1 < len(blocks) {
		block, _, ok = strings.Cut(blocks[n+1], "\n```\n")
	}
	if !ok {
		t.Fatalf("docs/device.md has no block of %s", language)
	}
	return block + "\n"
}

// stacksOption selects stacks in front of the blocks instead of the profile of docs/device.md.
const stacksOption = "-ULWSBT_WRAP_NODES"

// A user is a directory of a new user: the two files, the board's, and a program with the code of docs/device.md.
type user struct {
	dir string
}

const recipeApp = `#include <stdlib.h>
#include "board.h"
#define uart_write board_put
#define uptime_us board_us
DOCUMENT
void *volatile kept;
__attribute__((noinline)) static void leak(size_t n) { kept = malloc(n); }
__attribute__((noinline)) static void work(size_t n) { leak(n); free(malloc(n + 1)); kept = 0; }
int main(void)
{
	lwsbt_wrap_begin("firmware", "1.2");
	for (unsigned i = 0; i < 8; i++) {
		while (board_us() < 50000 * (i + 1))
			;
		work(77);
		lwsbt_wrap_dump("timer");
	}
	board_exit();
}
`

func newUser(t *testing.T) user {
	t.Helper()
	u := user{t.TempDir()}
	for _, path := range []string{"device/amalgamation/lwsbt.c", "device/amalgamation/lwsbt.h", "examples/firmware/mps2.c",
		"examples/firmware/mps2.ld", "examples/firmware/board.h"} {
		data, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		u.write(t, filepath.Base(path), string(data))
	}
	code := docBlock(t, "c", 0)
	if n := strings.Count(strings.ReplaceAll(code, "\n\n", "\n"), "\n") + 2; n > 12 {
		t.Errorf("%d lines in a user's program, want at most 12", n)
	}
	u.write(t, "app.c", strings.Replace(recipeApp, "DOCUMENT", code, 1))
	return u
}

func (u user) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// build runs the document's compile line with more options, and returns firmware.elf.
func (u user) build(t *testing.T, options string) string {
	t.Helper()
	command := docBlock(t, "sh", 0)
	const yours = "YOUR_FILES_AND_OPTIONS"
	if strings.Count(command, yours) != 1 {
		t.Fatalf("no %s in %q", yours, command)
	}
	board := " -nostartfiles --specs=nano.specs --specs=nosys.specs -T mps2.ld -Wl,--no-warnings mps2.c app.c "
	u.run(t, strings.Replace(command, yours, options+board, 1))
	return filepath.Join(u.dir, "firmware.elf")
}

func (u user) run(t *testing.T, command string) {
	t.Helper()
	sh := exec.Command("sh", "-e", "-c", command)
	sh.Dir = u.dir
	if out, err := sh.CombinedOutput(); err != nil || len(out) > 0 {
		if bytes.Contains(out, []byte("nano.specs")) {
			t.Skip("newlib is not installed")
		}
		t.Fatalf("%v\n%s", err, out)
	}
}

// libraries are the objects of lwsbt.c by the options of crash tests, compiled once for all.
var libraries = map[string]string{}

// buildCrash is build with crash lines, own for the options of the program, which are not those of lwsbt.c.
func (u user) buildCrash(t *testing.T, options, own string) string {
	t.Helper()
	options += " -DLWSBT_CRASH -DLWSBT_CRASH_HANDLER=HardFault_Handler "
	command := docBlock(t, "sh", 0)
	if libraries[options] == "" {
		object := filepath.Join(commands, fmt.Sprintf("lwsbt%d.o", len(libraries)))
		compile, _, _ := strings.Cut(command, " -Wl,--wrap")
		u.run(t, compile+" lwsbt.c -c -o "+object+" "+options)
		libraries[options] = object
	}
	board := " -nostartfiles --specs=nano.specs --specs=nosys.specs -T mps2.ld -Wl,--no-warnings mps2.c app.c "
	u.run(t, strings.NewReplacer("lwsbt.c", libraries[options], "YOUR_FILES_AND_OPTIONS", options+own+board).Replace(command))
	return filepath.Join(u.dir, "firmware.elf")
}

// The recipe of docs/device.md, as it is written there, on a Cortex-M3: each dump has the blocks of the leak with
// their whole stack, and its time.
func TestRecipe(t *testing.T) {
	cmdtest.Need(t, boards[0].tools...)
	u := newUser(t)
	for _, c := range []struct {
		name, options, boot, begin, leaf string
	}{
		{"stacks", stacksOption, "~h#boot prog=firmware w=32 fw=1.2 code=", " n=1 b=77 u=1 why=timer\n", "[leak "},
		{"stacks, tiny", stacksOption + " -DLWSBT_TINY", "~h#boot prog=firmware w=32 code=", " why=timer\n", "[leak "},
		{"stacks, tiny, optimized as one", stacksOption + " -DLWSBT_TINY -flto", "~h#boot prog=firmware w=32 code=", " why=timer\n", "[leak "},
		{"as written", "", "~h#boot prog=firmware w=32 fw=1.2 code=", " k=paths l=0 why=timer\n", "[leak "},
		{"profile, tiny", "-DLWSBT_TINY", "~h#boot prog=firmware w=32 code=", " k=paths l=0 why=timer\n", "[leak "},
	} {
		t.Run(c.name, func(t *testing.T) {
			elf := u.build(t, c.options)
			uart := emulate(t, boards[0].qemu, elf)
			uart = regexp.MustCompile(` build=[0-9a-f]{40}`).ReplaceAll(uart, nil) // TestRecipeBuildAndHeap
			begin := regexp.MustCompile(`(?m)^~h#begin 0( t=[1-9]\d*)?(.*\n)`).FindSubmatch(uart)
			timed := !strings.Contains(c.options, "TINY")
			if !bytes.HasPrefix(uart, []byte(c.boot)) || begin == nil || string(begin[2]) != c.begin || (len(begin[1]) > 0) != timed {
				t.Errorf("the log is %q", uart)
			}
			right := 0
			for it := range recording.Items(uart) {
				if it.User != nil && it.User.Check() == codec.CheckRight {
					right++
				}
			}
			if want := 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8; timed && c.options == stacksOption && right != want {
				t.Errorf("%d records have a check that is right, want %d", right, want)
			}
			got := stacks(t, uart, elf)
			if len(got) != 1 || !strings.HasPrefix(got[0], "8 616 "+c.leaf) || !regexp.MustCompile(`\[leak .* work .* main `).MatchString(got[0]) {
				t.Errorf("the log is %q, read as %q, want 8 blocks of 77 bytes of leak, work and main", uart, got)
			}
		})
	}
}

// buildID returns the GNU build ID of an ELF file, in hexadecimal.
func buildID(t *testing.T, path string) string {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) != 36 {
		t.Fatalf("a note of %d bytes: %v", len(note), err)
	}
	return hex.EncodeToString(note[16:])
}

// The boot line has the build ID of the ELF file if the linker made one, and each dump has what the port says of the
// heap: with stacks, with a profile, and optimized as one, where the compiler makes a calloc of malloc and memset.
func TestRecipeBuildAndHeap(t *testing.T) {
	cmdtest.Need(t, boards[0].tools...)
	u := newUser(t)
	const port = "const struct lwsbt_port lwsbt_wrap_port = { .time = now };"
	app, err := os.ReadFile(filepath.Join(u.dir, "app.c"))
	if err != nil || bytes.Count(app, []byte(port)) != 1 {
		t.Fatalf("%v: app.c has no %q", err, port)
	}
	text := strings.Replace(string(app), port, `static int numbers(void *arg, struct lwsbt_numbers *n)
{
	(void)arg;
	n->size = 40000, n->free = 30000, n->largest = 20000, n->least = 10000;
	return 1;
}
const struct lwsbt_port lwsbt_wrap_port = { .time = now, .numbers = numbers };`, 1)
	u.write(t, "app.c", strings.Replace(text, "work(77);", "work(77); kept = calloc(3, 4); free(kept); kept = 0;", 1))
	for _, c := range []struct{ name, options string }{
		{"stacks", "-Wl,--build-id " + stacksOption},
		{"profile", "-Wl,--build-id"},
		{"optimized as one", "-Wl,--build-id -flto " + stacksOption},
		{"without a build ID", "-Wl,--build-id=none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			elf := u.build(t, c.options)
			uart := string(emulate(t, boards[0].qemu, elf))
			boot, _, _ := strings.Cut(uart, "\n")
			want, id := "", buildID(t, elf)
			if id != "" {
				want = " build=" + id
			}
			if got := regexp.MustCompile(` build=\w*`).FindString(boot); got != want || strings.Contains(boot, " text=") != (id == "") {
				t.Errorf("the boot line is %q, want build ID %q, or else the hash of the code", boot, id)
			}
			heaps := regexp.MustCompile(`(?m)^~h#begin \d+ .*\n~h#heap size=40000 free=30000 largest=20000 min=10000\n`).FindAllString(uart, -1)
			if len(heaps) != 8 {
				t.Errorf("%d dumps begin with the numbers of the heap, want 8: %q", len(heaps), uart)
			}
			if got := stacks(t, []byte(uart), elf); len(got) != 1 || !strings.HasPrefix(got[0], "8 616 [leak ") {
				t.Errorf("the log is read as %q, want 8 blocks of leak", got)
			}
		})
	}
}

// Without build IDs, the hash of the code tells which of two ELF files ran, in any order, and that another ran.
func TestRecipeTextHash(t *testing.T) {
	cmdtest.Need(t, boards[0].tools...)
	var elfs, logs []string
	for _, more := range []string{"", "__attribute__((noinline)) static void first(void) { kept = malloc(5); free(kept); kept = 0; }\n"} {
		u := newUser(t)
		app, err := os.ReadFile(filepath.Join(u.dir, "app.c"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(app), "int main", more+"int main", 1)
		if more != "" {
			text = strings.Replace(text, "		work(77);", "		first(); work(77);", 1)
		}
		u.write(t, "app.c", text)
		elfs = append(elfs, u.build(t, "-Wl,--build-id=none"))
		logs = append(logs, string(emulate(t, boards[0].qemu, elfs[len(elfs)-1])))
	}
	for i, log := range logs {
		for _, c := range []struct {
			elfs  []string
			wrong bool
		}{{elfs, false}, {[]string{elfs[1], elfs[0]}, false}, {elfs[1-i : 2-i], true}} {
			exes := []heaplog.Option{heaplog.Stream(strings.NewReader(log), "uart")}
			for _, e := range c.elfs {
				exes = append(exes, heaplog.Exe(e))
			}
			r, err := heaplog.Open(t.Context(), exes...)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range r.Dumps() {
				if err != nil {
					t.Fatal(err)
				}
			}
			if notes := fmt.Sprint(r.Summary().Notes); strings.Contains(notes, "code with the hash ") != c.wrong {
				t.Errorf("log %d, files %v: the notes are %q", i, c.elfs, notes)
			}
			r.Close()
		}
	}
}

// A linker script with names of its own: the vector table gives the limits of a Cortex-M's stack, and what newlib asks
// of any script those of the code. Where nothing does, the code ends at a constant whose section the script does not name.
func TestRecipeOwnScript(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	u := newUser(t)
	script, err := os.ReadFile(filepath.Join(u.dir, "mps2.ld"))
	if err != nil {
		t.Fatal(err)
	}
	own := string(script)
	for _, name := range []string{"_stext", "_etext", "_estack"} {
		if !strings.Contains(own, name+" = ") {
			t.Fatalf("mps2.ld has no %s", name)
		}
		own = strings.ReplaceAll(own, name, "my"+name)
	}
	main, err := os.ReadFile(filepath.Join(u.dir, "mps2.c"))
	if err != nil {
		t.Fatal(err)
	}
	u.write(t, "mps2.c", strings.NewReplacer("_stext", "my_stext", "_etext", "my_etext", "_estack", "my_estack").Replace(string(main)))
	for _, c := range []struct{ name, code, options, leaf string }{
		{"limits of newlib's script", "	.init_array : { KEEP(*(.init_array)) __init_array_end = .; } > flash\n	.ARM.exidx", "", `^8 616 \[leak .* work .* main `},
		{"no limit of the code", "	.ARM.exidx", stacksOption, `^8 616 \[leak .* work .* main `},
		{"no limit of the code, a profile", "	.ARM.exidx", "", `^8 616 \[leak .* work .* main `},
	} {
		t.Run(c.name, func(t *testing.T) {
			u.write(t, "mps2.ld", strings.Replace(own, "	.ARM.exidx", c.code, 1))
			elf := u.build(t, c.options)
			uart := emulate(t, boards[0].qemu, elf)
			if bytes.Contains(uart, []byte("+0")) {
				t.Errorf("the log is %q", uart)
			}
			if got := stacks(t, uart, elf); len(got) != 1 || !regexp.MustCompile(c.leaf).MatchString(got[0]) {
				t.Errorf("the log is read as %q, want %s", got, c.leaf)
			}
		})
	}
}

var update = flag.Bool("update", false, "write what the commands print into docs/device.md")

// From an empty directory to the named leak, by the commands and the code of docs/device.md; and what it shows of
// the example is what the commands print.
func TestSession(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	btheap, err := btheap()
	if err != nil {
		t.Fatal(err)
	}
	run := func(elf string) (uart, report string) {
		// instructions are the clock, so that the rate does not depend on the host's load
		uart = string(emulate(t, strings.Replace(boards[0].qemu, "-nographic", "-nographic -icount shift=6", 1), elf))
		log := filepath.Join(t.TempDir(), "serial.log")
		if err := os.WriteFile(log, []byte(uart), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(btheap, "leaks", "-q", "-s", "-e", elf, log).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return uart, string(out)
	}
	for _, options := range []string{"", stacksOption} {
		_, report := run(newUser(t).build(t, options))
		if !regexp.MustCompile(`(?s)1 leak \(\d+ %\) in 8 dumps.*1 → 8 blocks, 77 → 616 bytes.*\n +leak app.c:\d+\n +work app.c:\d+\n +main app.c:`).MatchString(report) {
			t.Errorf("options %q: the report is %s", options, report)
		}
	}

	// The times differ from one run to another, and the build ID with the folder of the sources.
	vary := func(s string) string {
		return regexp.MustCompile(`( t=| build=)[0-9a-f]+`).ReplaceAllString(s, "${1}…")
	}
	uart, report := run(build(t, boards[0].tools, "mps2-paths", t.TempDir()))
	lines := strings.SplitAfter(uart, "\n")
	want := "$ cat serial.log\n" + strings.Join(lines[:6], "") + "…\n$ btheap leaks -s -e firmware.elf serial.log\n" + report
	doc, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), "<!-- session: go test ./heap/devicetest -run Session -update -->\n```text\n")
	shown, after, end := strings.Cut(rest, "```\n")
	if !ok || !end {
		t.Fatal("docs/device.md has no session")
	}
	if *update {
		if err := os.WriteFile("../../docs/device.md", []byte(before+"<!-- session: go test ./heap/devicetest -run Session -update -->\n```text\n"+want+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if vary(shown) != vary(want) {
		t.Errorf("docs/device.md shows\n%s\nwant\n%s", vary(shown), vary(want))
	}
}

// stacks returns the paths of the last dump of a log: blocks, bytes and functions.
func stacks(t *testing.T, log []byte, elf string) (paths []string) {
	t.Helper()
	r, err := heaplog.Open(t.Context(), heaplog.Stream(bytes.NewReader(log), "uart"), heaplog.Exe(elf))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.New(d)
		if err != nil {
			t.Fatal(err)
		}
		paths = nil
		for _, row := range p.Top(profile.Bytes, 10) {
			paths = append(paths, fmt.Sprint(row.Value().Count, row.Value().Bytes, row.Stack()))
		}
	}
	return paths
}
