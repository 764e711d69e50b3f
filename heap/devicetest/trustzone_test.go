package devicetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// releaseMemory gives the memory at 0x28000000 to the non-secure state of the Cortex-M33 of mps2-an505: the rest of a
// function in which table is its vector table.
const releaseMemory = `
	volatile uint32_t *mpc = (volatile uint32_t *)0x58008000;

	*(volatile uint32_t *)0xe000edd0 = 2; /* SAU: what it does not list is not secure */
	*(volatile uint32_t *)0xe000ed8c |= 3 << 10; /* NSACR: the FPU */
	for (unsigned i = 0; i <= mpc[4]; i++)
		mpc[6] = i, mpc[7] = 0xffffffff;
	*(volatile uint32_t *)0xe002ed08 = (uint32_t)(uintptr_t)table;
	__asm__ volatile("msr msp_ns, %0" : : "r"(table[0]));
`

// otherReset begins a program in the non-secure state, which also takes its hard faults (BFHFNMINS of AIRCR).
const otherReset = `
__attribute__((section(".secure"), used, noreturn)) static void secure_reset(void)
{
	const uint32_t *table = (const uint32_t *)vectors;
` + releaseMemory + `
	for (unsigned i = 0; i < 16; i++)
		((volatile uint32_t *)0x50080050)[i] = 0xffffffff; /* the peripherals, too */
	*(volatile uint32_t *)0xe000ed0c = 0x05fa0000 | 1 << 13;
	__asm__ volatile("bxns %0" : : "r"(table[1] & ~1u));
	__builtin_unreachable();
}
__attribute__((section(".secure_vectors"), used)) static const void *const secure_vectors[16] = {
	(const void *)0x38200000, (const void *)secure_reset,
};
`

// otherCalls is a program in the secure state whose handler takes the faults of the non-secure functions that it calls.
const otherCalls = `
#define OTHER __attribute__((section(".other"), used, noinline))
OTHER int store(int a)
{
	volatile int *to = (volatile int *)(CRASH == 1 ? 0xe0200000 : 0x38200000);

	*to = a;
	return *to + 1;
}
OTHER int fill(int a) { return store(a + 1) * 2; }
OTHER void program(void) { (void)fill(3); for (;;) ; }
OTHER void process(void)
{
	__asm__ volatile("msr psp, %0\n\tmovs r0, #2\n\tmsr control, r0\n\tisb" : : "r"(0x28080000) : "r0");
	program();
}
__attribute__((section(".other_vectors"), used)) const void *const other_vectors[16] __attribute__((aligned(128))) = {
	(const void *)0x28100000, (const void *)program,
};
int main(void)
{
	const uint32_t *table = (const uint32_t *)other_vectors;
	typedef void __attribute__((cmse_nonsecure_call)) fn(void);

	*(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* the FPU */
	__asm__ volatile("dsb\n\tisb");
` + releaseMemory + `
	((fn *)((uintptr_t)(CRASH == 2 ? process : program) & ~1u))();
}
`

// A crash in the non-secure state of a Cortex-M33, which its own handler takes, or that of the secure state, has its own
// stacks: in a thread on both stacks, and beyond an interrupt.
func TestCrashNonSecure(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	const options = "-mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16"
	place := func(t *testing.T, u user, name string, edits ...string) {
		text, err := os.ReadFile(filepath.Join(u.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		u.write(t, name, strings.NewReplacer(edits...).Replace(string(text)))
	}
	for _, c := range []struct{ name, options, own, stack, note string }{
		{"own handler, interrupt", "", "-DCRASH=2 -DRAM=0x28100000u", "scale filter tick ?? loop main reset", "data bus error at 0xe0200000"},
		{"own handler, no stack", "", "-DCRASH=3 -DRAM=0x28100000u", "", "the processor could not save the registers: the stack pointer was 0xcfff"},
		{"secure handler, bus error", " -mcmse", "-DCRASH=1 -DRAM=0x38200000u", "store fill program", "data bus error at 0xe0200000"},
		{"secure handler, process stack", " -mcmse", "-DCRASH=2 -DRAM=0x38200000u", "store fill program process", "access of non-secure code to secure memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUser(t)
			if strings.Contains(c.options, "-mcmse") {
				head, _, _ := strings.Cut(armCrash, "volatile float factor")
				u.write(t, "app.c", strings.NewReplacer("RAM + 0x40000 } }", "RAM + 0x40000 }, { 0x28000000, 0x28100000 } }", "ram_count = 1", "ram_count = 2").Replace(head)+otherCalls)
				place(t, u, "mps2.c", "0x40004", "0x50200")
				place(t, u, "mps2.ld", "ORIGIN = 0, ", "ORIGIN = 0x10000000, ", "0x20000000", "0x38200000", "MEMORY\n{", "MEMORY\n{\n\tother (rwx) : ORIGIN = 0x28000000, LENGTH = 1M",
					"\t.rodata : {", "\t.other : { KEEP(*(.other_vectors)) *(.other) } > other\n\t.rodata : {")
			} else {
				u.write(t, "app.c", strings.ReplaceAll(armCrash, "0xe0000000u", "0xd0000000u"))
				place(t, u, "mps2.c", "0x40004", "0x40200", "(const void *)halt,\n};", "(const void *)halt, [15] = (const void *)tick,\n};"+otherReset, "void HardFault_Handler", "void tick(void);\nvoid HardFault_Handler")
				place(t, u, "mps2.ld", "ORIGIN = 0, LENGTH = 4M", "ORIGIN = 0x28000000, LENGTH = 1M", "0x20000000", "0x28100000", "MEMORY\n{", "MEMORY\n{\n\tsecure (rx) : ORIGIN = 0x10000000, LENGTH = 64K",
					"SECTIONS\n{", "SECTIONS\n{\n\t.secure : { KEEP(*(.secure_vectors)) *(.secure) } > secure")
			}
			elf := u.buildCrash(t, options+c.options, c.own)
			stacks, notes := crashStacks(t, elf, emulate(t, strings.Replace(boards[0].qemu, "mps2-an385", "mps2-an505", 1), elf))
			if got := stacks["crashed"]; got != c.stack || !strings.Contains(notes, c.note) {
				t.Errorf("crashed: %q, want %q; %s", got, c.stack, notes)
			}
		})
	}
}
