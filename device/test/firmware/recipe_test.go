package firmware

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	heaplog "github.com/lwsbt/lwsbt/heap/log"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// docBlock returns a block of docs/device.md in a language, n = 0 for the first.
func docBlock(t *testing.T, language string, n int) string {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/device.md")
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

// recipeBoard is what the recipe leaves to the user.
const recipeBoard = " -nostartfiles --specs=nano.specs --specs=nosys.specs -T examples/firmware/mps2.ld -Iexamples/firmware" +
	" examples/firmware/mps2.c -Wl,--no-warnings" +
	" -Wl,--defsym=stack_lo=board_stack_lo,--defsym=stack_hi=board_stack_hi" +
	",--defsym=code_lo=board_code_lo,--defsym=code_hi=board_code_hi"

const recipeApp = `#include <stdlib.h>
#include "board.h"
void heap_begin(void);
void dump_heap(void);
void uart_write(const char *text, size_t len) { board_put(text, len); }
void *volatile kept;
__attribute__((noinline)) static void leak(size_t n) { kept = malloc(n); }
__attribute__((noinline)) static void work(size_t n) { leak(n); kept = 0; }
int main(void)
{
	heap_begin();
	work(77);
	dump_heap();
	board_exit();
}
`

// The other recipe, of a profile, as it is written there.
func TestProfileRecipe(t *testing.T) {
	cmdtest.Need(t, boards[0].tools...)
	dir := t.TempDir()
	for name, text := range map[string]string{"dump.c": docBlock(t, "c", 1), "app.c": recipeApp} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.ReplaceAll(strings.Replace(docBlock(t, "sh", 0), "YOUR_FILES_AND_OPTIONS",
		"-DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180"+recipeBoard+" DIR/dump.c DIR/app.c", 1), "firmware.elf", "DIR/fw.elf")
	sh := exec.Command("sh", "-e", "-c", strings.ReplaceAll(script, "DIR", dir))
	sh.Dir = "../../.."
	if out, err := sh.CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("nano.specs")) {
			t.Skip("newlib is not installed")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	elf := filepath.Join(dir, "fw.elf")
	uart := emulate(t, boards[0].qemu, elf)
	if !bytes.HasPrefix(uart, []byte("~h#boot prog=firmware w=32 fw=1.2 code=")) {
		t.Errorf("the log is %q", uart)
	}
	got := stacks(t, uart, elf)
	if len(got) != 1 || !strings.HasPrefix(got[0], "1 77 [leak ") || !strings.Contains(got[0], " main ") {
		t.Errorf("the log is %q, read as %q, want 77 bytes of leak, work and main", uart, got)
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

// The recipe of docs/device.md, as it is written there, on a Cortex-M3: the dump has
// the block with its whole stack. With unwind tables in the library alone, the block
// has its caller, and no function of the library.
func TestRecipe(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	dir := t.TempDir()
	command, code := docBlock(t, "sh", 0), docBlock(t, "c", 0)
	for name, text := range map[string]string{"dump.c": code, "app.c": recipeApp} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const (
		yours         = "YOUR_FILES_AND_OPTIONS"
		unwindLibrary = "for f in device/src/*.c device/adapters/wrap.c; do arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -Idevice/include" +
			" -funwind-tables -DLWSBT_WRAP_CAPTURE=lwsbt_capture_unwind -c $f -o DIR/$(basename $f).o || exit 1; done\n"
	)
	if strings.Count(command, yours) != 1 {
		t.Fatalf("no %s in %q", yours, command)
	}
	if strings.Count(command, "firmware.elf\n") != 2 {
		t.Fatalf("no firmware.elf that is linked and patched in %q", command)
	}
	command = strings.ReplaceAll(command, "firmware.elf", "DIR/fw.elf")
	files := recipeBoard + " DIR/dump.c DIR/app.c"
	mixed := strings.Replace(command, "device/src/*.c device/adapters/wrap.c", "DIR/*.o", 1)
	if mixed == command {
		t.Fatalf("no sources in %q", command)
	}
	const fields = "~h#begin 0 n=1 b=77 u=1 why=request\n"
	for _, c := range []struct {
		name, script string
		depth        int // at least
		begin        string
	}{
		{"as written", strings.Replace(command, yours, files, 1), 3, fields},
		{"tiny", strings.Replace(command, yours, "-DLWSBT_TINY -flto "+files, 1), 3, "~h#begin 0 why=request\n"},
		{"unwind tables in the library alone", unwindLibrary + strings.Replace(mixed, yours, files+" -Wl,--defsym=__exidx_start=ADDR(.ARM.exidx),--defsym=__exidx_end=__exidx_start+SIZEOF(.ARM.exidx)", 1), 1, fields},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.depth == 1 && !cmdtest.Full() {
				t.Skip("LWSBT_FULL is not set")
			}
			sh := exec.Command("sh", "-c", strings.NewReplacer("DIR", dir, "\ngo run ", " &&\ngo run ", "(.ARM", "\\(.ARM", "exidx)", "exidx\\)").Replace(c.script))
			sh.Dir = "../../.."
			if out, err := sh.CombinedOutput(); err != nil {
				if bytes.Contains(out, []byte("nano.specs")) {
					t.Skip("newlib is not installed")
				}
				t.Fatalf("%v\n%s", err, out)
			}
			elf := filepath.Join(dir, "fw.elf")
			uart := string(emulate(t, boards[0].qemu, elf))
			if !strings.HasPrefix(uart, "~h#boot prog=firmware w=32\n"+c.begin+"~m#") || !strings.HasSuffix(uart, "\n~h#end 0 n=1 b=77\n") {
				t.Fatalf("the log is %q", uart)
			}
			blob, err := codec.ParseLine(nil, []byte(strings.Split(uart, "\n")[2]))
			if err != nil {
				t.Fatal(err)
			}
			var s codec.Stack
			if err := codec.Decode(&s, blob); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, pc := range s.PCs {
				out, err := exec.Command("arm-none-eabi-addr2line", "-f", "-e", elf, fmt.Sprintf("%#x", pc-1)).Output()
				if err != nil {
					t.Fatal(err)
				}
				name, _, _ := strings.Cut(string(out), "\n")
				names = append(names, name)
			}
			want := []string{"leak", "work", "main"}[:c.depth]
			if got := strings.Join(names, " "); !strings.HasPrefix(got+" ", strings.Join(want, " ")+" ") {
				t.Errorf("the stack is %q, want %q at its beginning", got, want)
			}
		})
	}
}
