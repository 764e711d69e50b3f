package devicetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// A script has the order of the sections of a system's linker script, and its symbols.
type script struct {
	name, vectors, vectorsName, stack string
	data, bss                         string // sections
	code                              string // from where to where the code goes, as -Wl,--defsym
	defsym                            string // for what the system's adapter does
	orphans                           string // --orphan-handling of the system
}

var scripts = []script{
	{"newlib", ".vectors", "vectors", "_stack", ".data", ".bss", "__executable_start:etext", "", "place"},
	{"cmsis", ".vectors", "__Vectors", "__StackTop", ".data", ".bss", "__Vectors:__etext", "", "place"},
	{"stm32cube", ".isr_vector", "g_pfnVectors", "_estack", ".data", ".bss", "g_pfnVectors:_sidata", "", "place"},
	{"pico", ".vectors", "__VECTOR_TABLE", "__StackTop", ".data", ".bss", "__flash_binary_start:__flash_binary_end", "", "place"},
	{"esp-idf", ".vectors", "_vector_table", "stack_top", ".dram0.data", ".dram0.bss", "_stext:_etext",
		"stack_top=0x20010000,lwsbt_stack_hi=stack_top,lwsbt_stack_lo=_heap_start", "warn"},
	{"zephyr", ".vectors", "_vector_table", "stack_top", "datas", "bss", "__text_region_start:__rodata_region_end",
		"stack_top=0x20010000,lwsbt_stack_hi=stack_top", "warn"},
	{"nuttx", ".vectors", "_vectors", "stack_top", ".data", ".bss", "_stext:_eronly",
		"stack_top=0x20010000,lwsbt_stack_hi=stack_top", "place"},
}

// With the linker scripts of seven systems, as they are: the firmware links without a warning; its variables have their
// initial values; the limits are those of the script, by which a stack is captured up to main; and the notes in the
// ELF file take no flash, and can be read. Systems that warn of sections that their script does not name have
// adapters, which need no notes.
func TestScripts(t *testing.T) {
	cmdtest.Need(t, "arm-none-eabi-gcc", "qemu-system-arm", "arm-none-eabi-size")
	for _, options := range []string{"", "-DLWSBT_WRAP_NODES=64 -DLWSBT_WRAP_ENTRIES=20"} {
		library := filepath.Join(t.TempDir(), "lwsbt.o")
		args := strings.Fields(scriptFlags + " -c ../../device/amalgamation/lwsbt.c -o " + library + " " + options)
		if out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, s := range scripts {
			t.Run(strings.TrimSpace(s.name+" "+options), func(t *testing.T) {
				var sizes [2]string
				for i, notes := range []bool{true, false} {
					elf := s.link(t, notes, library)
					size, err := exec.Command("arm-none-eabi-size", "-B", elf).Output()
					if err != nil {
						t.Fatal(err)
					}
					sizes[i] = strings.Join(strings.Fields(strings.Split(string(size), "\n")[1])[:3], " ")
					s.check(t, elf, notes)
				}
				if sizes[0] != sizes[1] {
					t.Errorf("with notes, the size is %s, without %s", sizes[0], sizes[1])
				}
			})
		}
	}
}

// ownScript is a linker script of a RISC-V, and ownStart the start of its programs, with no name that a system has.
const ownScript = `ENTRY(boot)
MEMORY { flash (rx) : ORIGIN = 0x80000000, LENGTH = 1M
 ram (rwx) : ORIGIN = 0x80100000, LENGTH = 256K }
SECTIONS {
 .text : { *(.boot) *(.text .text.*) } > flash
 .rodata : { *(.rodata .rodata.* .srodata .srodata.*) } > flash
 .data : ALIGN(8) { my_data = .; *(.data .data.* .sdata .sdata.*) . = ALIGN(8); my_data_end = .; } > ram AT > flash
 my_load = LOADADDR(.data);
 .bss (NOLOAD) : ALIGN(8) { my_bss = .; *(.sbss .sbss.* .bss .bss.* COMMON) . = ALIGN(8); my_bss_end = .; } > ram
 my_heap = .; my_top = ORIGIN(ram) + LENGTH(ram);
}
`

const ownStart = `#include <stddef.h>
#include <stdint.h>
extern uint32_t my_data[], my_data_end[], my_load[], my_bss[], my_bss_end[];
extern char my_heap[];
int main(void);
__attribute__((noreturn, used)) void begin(void)
{
	uint32_t *p, *from = my_load;

	for (p = my_data; p < my_data_end; p++)
		*p = *from++;
	for (p = my_bss; p < my_bss_end; p++)
		*p = 0;
	main();
	for (;;)
		;
}
__attribute__((section(".boot"), naked)) void boot(void) { __asm__("la sp, my_top\n\tj begin"); }
void *sbrk(ptrdiff_t n)
{
	static char *end = my_heap;

	end += n;
	return end - n;
}
`

// With a linker script of no known name, a RISC-V has whole stacks, too.
func TestOwnScriptRISCV(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[1].tools...)
	u := newUser(t)
	virt, err := os.ReadFile("../../examples/firmware/virt.c")
	if err != nil {
		t.Fatal(err)
	}
	u.write(t, "virt.c", string(virt))
	u.write(t, "own.ld", ownScript)
	u.write(t, "start.c", ownStart)
	for _, options := range []string{"", "-DLWSBT_WRAP_NODES=64 -DLWSBT_WRAP_ENTRIES=20"} {
		gcc := exec.Command("riscv64-unknown-elf-gcc", strings.Fields("-march=rv32imac -mabi=ilp32 -mcmodel=medany --specs=picolibc.specs -nostartfiles -T own.ld -Os -g -Wall -Wextra -Werror "+
			"-ffunction-sections -fdata-sections -Wl,--gc-sections,--no-warnings -DLWSBT_WRAP -Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc -o firmware.elf start.c app.c virt.c lwsbt.c "+options)...)
		gcc.Dir = u.dir
		if out, err := gcc.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		elf := filepath.Join(u.dir, "firmware.elf")
		if got := stacks(t, emulate(t, boards[1].qemu, elf), elf); len(got) != 1 || !regexp.MustCompile(`^8 616 \[leak .* work .* main `).MatchString(got[0]) {
			t.Errorf("options %q: the log is read as %q", options, got)
		}
	}
}

// A script of a Cortex-M that has the vector table in a section of its own, constants among the code, and no symbols of
// their limits: the linker places constants that it does not name behind the table.
func TestOwnScriptVectors(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	u := newUser(t)
	text, err := os.ReadFile(filepath.Join(u.dir, "mps2.ld"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "\t.text : {")
	_, after, end := strings.Cut(rest, "\t.ARM.exidx")
	if !ok || !end {
		t.Fatal("mps2.ld has other sections")
	}
	u.write(t, "mps2.ld", before+"\t.isr : { KEEP(*(.vectors)) } > flash\n\t.text : { *(.text .text.* .rodata .rodata.*) } > flash\n\t.ARM.exidx"+after)
	elf := u.build(t, "-Wl,--build-id=none")
	if got := stacks(t, emulate(t, boards[0].qemu, elf), elf); len(got) != 1 || !regexp.MustCompile(`^8 616 \[leak .* work .* main `).MatchString(got[0]) {
		t.Errorf("the log is read as %q", got)
	}
}

var ordinary = regexp.MustCompile("orphan section `(\\.debug_\\w+|\\.comment|\\.ARM\\.attributes|lwsbt_limit|lwsbt_text_limit)'")

const scriptFlags = "-mcpu=cortex-m3 -mthumb -Os -g -Wall -Wextra -Werror -ffunction-sections -fdata-sections -DLWSBT_WRAP -I../../device/amalgamation"

func (s script) link(t *testing.T, notes bool, library string) string {
	t.Helper()
	elf := filepath.Join(t.TempDir(), "app.elf")
	lo, hi, _ := strings.Cut(s.code, ":")
	args := strings.Fields(scriptFlags + " -nostartfiles --specs=nano.specs --specs=nosys.specs ../../device/test/scripts/app.c " + library +
		" -DSTACK=" + s.stack + " -DVECTORS=\"" + s.vectors + "\" -DVECTORS_NAME=" + s.vectorsName +
		" -T ../../device/test/scripts/" + s.name + ".ld -o " + elf +
		" -Wl,--gc-sections,--no-warn-rwx-segments,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc")
	link := "-Wl,--defsym=app_data_load=LOADADDR(" + s.data + "),--defsym=app_data=ADDR(" + s.data + "),--defsym=app_data_end=ADDR(" + s.data + ")+SIZEOF(" + s.data +
		"),--defsym=app_bss=ADDR(" + s.bss + "),--defsym=app_bss_end=ADDR(" + s.bss + ")+SIZEOF(" + s.bss + ")"
	for _, d := range strings.Split(s.defsym, ",") {
		if d != "" {
			link += ",--defsym=" + d
		}
	}
	orphans := s.orphans
	if notes {
		args = append(args, "-DNOTES")
		link += ",--defsym=app_code_lo=" + lo + ",--defsym=app_code_hi=" + hi
		orphans = "place"
	}
	args = append(args, link+",--orphan-handling="+orphans)
	out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput()
	if bytes.Contains(out, []byte("nano.specs")) {
		t.Skip("newlib is not installed")
	}
	for line := range strings.Lines(string(out)) {
		// functions of newlib that nosys.specs has not; sections that any program has, and that are not loaded
		if ordinary.MatchString(line) {
			continue
		}
		if !strings.Contains(line, "is not implemented and will always fail") && !strings.Contains(line, "in function `_") &&
			!strings.Contains(line, "note: the message above does not take linker garbage collection into account") &&
			(err != nil || strings.Contains(line, "lwsbt") || strings.Contains(line, "overlap")) {
			t.Errorf("the linker says: %s", line)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return elf
}

func (s script) check(t *testing.T, elf string, notes bool) {
	t.Helper()
	uart := emulate(t, boards[0].qemu, elf)
	got := stacks(t, uart, elf)
	if len(got) != 1 || !regexp.MustCompile(`^1 77 \[leak .* work .* main `).MatchString(got[0]) {
		t.Errorf("the log is %q, read as %q, want 77 bytes of leak, work and main", uart, got)
	}
	file, err := symbol.Open(elf, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	layout, err := file.Layout()
	if err != nil || len(layout.Code) != 1 || (layout.Shift == 1) != notes || (layout.Firmware == "2.5") != notes {
		// without notes, the code is that of the executable segments
		t.Errorf("notes are %+v: %v", layout, err)
	}
}
