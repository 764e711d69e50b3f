/*
 * Crash lines: at a fault of a Cortex-M or a 32-bit RISC-V, the registers and the stacks, as a core dump of Zephyr in
 * lines that its tools read, and btcore. Options:
 *
 *   -DLWSBT_CRASH_HANDLER=HardFault_Handler   another name of the handler
 *   -DLWSBT_CRASH_NEXT=freertos_risc_v_trap_handler   of a RISC-V: what takes interrupts and environment calls
 *   -DLWSBT_CRASH_TASKS=8                     tasks that lwsbt_crash_task can note; 0 by default
 *   -DLWSBT_CRASH_MOST=4096                   bytes of a stack whose end is not known
 *   -DLWSBT_CRASH_STACK=512                   bytes of the handler's stack
 *
 * A line has up to 32 bytes of the dump. In front of the mark are the number of the line from 0 on and a
 * CRC-16 (0x1021, at first 0xffff) of number and bytes, so that a lost line costs its own bytes alone. Zephyr's
 * reader skips what is in front of the mark.
 *
 *   #CD:BEGIN#
 *   NNNNCCCC#CD:5a450200...
 *   #CD:END#
 *
 * The dump, little-endian:
 *
 *   "ZE" | 2 (version) | machine: 3 Cortex-M, 4 RISC-V | 5 (log2 of 32 bits), 0 | reason, 4 bytes
 *   'A'  | version 2, 3 | size | registers
 *   'T'  | version 0x4254 | size | 1 if there are tasks, count, 20 (size of a task) | tasks | state
 *   'M'  | 1 (version) | start, end | bytes                     ... for each stack, and the rest of memory
 *
 *   registers   Cortex-M: r0-r3, r12, lr, pc, xpsr, sp, r4-r11; RISC-V: x0-x31, pc
 *   a task      its control block, stack pointer, 12 bytes of its name
 *   state       control block of the current task or 0; then msp, psp, EXC_RETURN; or mcause, mtval, mstatus
 *
 * The stack pointer of the current task is that of the registers, or of a Cortex-M in an interrupt psp. Other tasks
 * have theirs saved, at the first word of the control block, with the other registers above it.
 */
#include <stddef.h>
#include <string.h>

#include "lwsbt.h"
#include "../src/internal.h"

#ifndef LWSBT_CRASH_HANDLER
#define LWSBT_CRASH_HANDLER lwsbt_crash_handler
#endif
#ifndef LWSBT_CRASH_TASKS
#define LWSBT_CRASH_TASKS 0
#endif
#ifndef LWSBT_CRASH_MOST
#define LWSBT_CRASH_MOST 4096
#endif
#ifndef LWSBT_CRASH_STACK
#define LWSBT_CRASH_STACK 512
#endif
#define CRASH_TEXT_(x) #x
#define CRASH_TEXT(x) CRASH_TEXT_(x)

/* What the handler, which is assembly, uses is kept under its name by the linker's optimizer. */
#define CRASH_USED __attribute__((used, visibility("hidden")))

CRASH_USED uint32_t lwsbt_crash_saved[33];
CRASH_USED uint64_t lwsbt_crash_stack[LWSBT_CRASH_STACK / 8];
CRASH_USED void lwsbt_crash_fault(void);
void LWSBT_CRASH_HANDLER(void);

/* -------------------------------------------------------------------- lines */

#define CRASH_LINE 32

static struct {
	uint8_t bytes[2 + CRASH_LINE];	/* number of the line, data */
	uint16_t number, used;
} crash_line;

static void crash_text(const char *s)
{
	lwsbt_crash_port.out.put(lwsbt_crash_port.out.arg, s, strlen(s));
}

static void crash_digits(unsigned byte)
{
	static const char hex[] = "0123456789abcdef";
	const char text[2] = { hex[byte >> 4 & 15], hex[byte & 15] };

	lwsbt_crash_port.out.put(lwsbt_crash_port.out.arg, text, 2);
}

static void crash_end_line(void)
{
	uint32_t crc;
	unsigned n = crash_line.used + 2u;

	if (n == 2)
		return;
	crash_line.bytes[0] = (uint8_t)(crash_line.number >> 8);
	crash_line.bytes[1] = (uint8_t)crash_line.number;
	crc = lwsbt_crc16(0xffff, crash_line.bytes, n);
	crash_digits(crash_line.bytes[0]);
	crash_digits(crash_line.bytes[1]);
	crash_digits(crc >> 8);
	crash_digits(crc);
	crash_text("#CD:");
	for (unsigned i = 2; i < n; i++)
		crash_digits(crash_line.bytes[i]);
	crash_text("\n");
	crash_line.number++;
	crash_line.used = 0;
}

static void crash_put(const void *data, size_t len)
{
	for (const uint8_t *p = data; len > 0; len--) {
		crash_line.bytes[2 + crash_line.used++] = *p++;
		if (crash_line.used == CRASH_LINE)
			crash_end_line();
	}
}

static void crash_word(uint32_t v) { crash_put(&v, 4); } /* both machines are little-endian */

static void crash_block(char id, unsigned version, size_t size)
{
	const uint8_t head[5] = { (uint8_t)id, (uint8_t)version, (uint8_t)(version >> 8), (uint8_t)size, (uint8_t)(size >> 8) };

	crash_put(head, id == 'M' ? 3 : 5);
}

static void crash_memory(uint32_t start, uint32_t end)
{
	if (start >= end)
		return;
	crash_block('M', 1, 0);
	crash_word(start);
	crash_word(end);
	crash_put((const void *)(uintptr_t)start, end - start);
}

/* ------------------------------------------------------------------- stacks */

/* crash_ram returns the memory that holds size bytes at p, or NULL. */
static const struct lwsbt_range *crash_ram(uint32_t p, uint32_t size)
{
	for (unsigned i = 0; i < lwsbt_crash_port.ram_count; i++) {
		const struct lwsbt_range *r = &lwsbt_crash_port.ram[i];

		if (p >= r->start && p <= r->end && r->end - p >= size)
			return r;
	}
	return NULL;
}

/* crash_stack_of writes the stack from sp to its end; 0 if it is not known. */
static void crash_stack_of(uint32_t sp, uint32_t end)
{
	const struct lwsbt_range *r = crash_ram(sp &= ~(uint32_t)3, 0);

	if (!r)
		return;
	if (end <= sp || end > r->end)
		end = r->end - sp > LWSBT_CRASH_MOST ? sp + LWSBT_CRASH_MOST : (uint32_t)r->end;
	crash_memory(sp, end);
}

/* A crash: the stack pointer of its registers, that of the current task or 0, the end of main's stack, and the last
 * words of block T. */
struct lwsbt_crashed {
	uint32_t sp, task_sp, main_end;
	uint32_t state[4];
};

#if LWSBT_CRASH_TASKS
static struct lwsbt_crash_note {
	const uint32_t *task;
	uint32_t sp, start, end;
	const char *name;
} crash_tasks[LWSBT_CRASH_TASKS];

#define CRASH_EACH(t) (struct lwsbt_crash_note *t = crash_tasks; t < crash_tasks + LWSBT_CRASH_TASKS; t++) if (t->task)

extern void *volatile pxCurrentTCB __attribute__((weak)); /* of FreeRTOS */
#define CRASH_CURRENT (&pxCurrentTCB ? (uint32_t)(uintptr_t)pxCurrentTCB : 0)
#else
#define CRASH_CURRENT 0
#endif

void lwsbt_crash_task(const void *task, const void *start, const void *end, const char *name)
{
#if LWSBT_CRASH_TASKS
	struct lwsbt_crash_note *to = NULL;

	for (unsigned i = 0; i < LWSBT_CRASH_TASKS; i++)
		if (crash_tasks[i].task == task || (!to && !crash_tasks[i].task))
			to = &crash_tasks[i];
	if (to) {
		to->task = end ? task : NULL;
		to->start = (uint32_t)(uintptr_t)start;
		to->end = (uint32_t)(uintptr_t)end;
		to->name = name;
	}
#else
	(void)task, (void)start, (void)end, (void)name;
#endif
}

static void crash_stacks(const struct lwsbt_crashed *c)
{
	uint8_t head[4] = { 0, 0, 20, 0 };
	uint32_t end = c->sp == c->task_sp ? 0 : c->main_end;

#if LWSBT_CRASH_TASKS
	for CRASH_EACH(t) {
		head[0] = 1;
		head[1]++;
		t->sp = crash_ram((uint32_t)(uintptr_t)t->task, 4) ? *t->task : 0;
		if ((uint32_t)(uintptr_t)t->task == c->state[0] && c->task_sp)
			t->sp = c->task_sp;
		if (t->sp == c->sp) /* also where it is below its stack */
			end = t->end;
	}
#endif
	crash_block('T', 0x4254, sizeof head + 20u * head[1] + sizeof c->state);
	crash_put(head, sizeof head);
#if LWSBT_CRASH_TASKS
	for CRASH_EACH(t) {
		char name[12];

		crash_put(&t->task, 8);
		strncpy(name, t->name, sizeof name);
		crash_put(name, sizeof name);
	}
#endif
	crash_put(c->state, sizeof c->state);
	crash_stack_of(c->sp, end);
#if LWSBT_CRASH_TASKS
	for CRASH_EACH(t)
		if (t->sp != c->sp)
			crash_stack_of(t->sp, t->end);
#endif
}

/* ------------------------------------------------------------------ machines */

static volatile uint32_t crash_reason;

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'

#define CRASH_MACHINE 3
#define CRASH_VERSION 2
#define CRASH_REGS 17
#define CRASH_SCB 0xe000ed00u

#if __ARM_FEATURE_CMSE == 3	/* of the secure state, which also takes faults of the other, on the stacks of that */
#define CRASH_OTHER_STACKS \
	"movs r1, #0x40\n\t" \
	"tst r0, r1\n\t" \
	"bne 2f\n\t" \
	"mrs r2, msp_ns\n\t" \
	"mrs r3, psp_ns\n\t" \
	"mrs r1, control_ns\n\t" \
	"lsl r1, r1, #1\n\t"	/* SPSEL, where bit 2 of EXC_RETURN is */ \
	"lsr r0, r0, #1\n\t"	/* and 1 for a thread */ \
	"and r0, r1\n" \
	"2:\n\t"
#define CRASH_NS(saved) ((saved)[3] & 0x40 ? 0 : 0x20000)	/* of the system registers of the other state */
#else
#define CRASH_OTHER_STACKS ""
#define CRASH_NS(saved) 0
#endif

/* Saved are the address of the frame that the processor has pushed, msp, psp, EXC_RETURN, r4 to r11. It takes no
 * instructions that a Cortex-M0 has not. */
__attribute__((naked)) void LWSBT_CRASH_HANDLER(void)
{
	__asm__ volatile(
		"cpsid i\n\t"
		"mrs r2, msp\n\t"
		"mrs r3, psp\n\t"
		"mov r0, lr\n\t"
		CRASH_OTHER_STACKS
		"movs r1, #4\n\t"
		"tst r0, r1\n\t"
		"mov r1, r2\n\t"
		"beq 1f\n\t"
		"mov r1, r3\n"
		"1:\n\t"
		"ldr r0, =lwsbt_crash_saved\n\t"
		"stmia r0!, {r1-r3}\n\t"
		"mov r1, lr\n\t"
		"stmia r0!, {r1, r4-r7}\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"mov r6, r10\n\t"
		"mov r7, r11\n\t"
		"stmia r0!, {r4-r7}\n\t"
#if __ARM_ARCH >= 8 && __ARM_ARCH_ISA_THUMB >= 2	/* the handler's stack is below the limit of main's */
		"movs r0, #0\n\t"
		"msr msplim, r0\n\t"
#endif
		"ldr r0, =lwsbt_crash_stack + " CRASH_TEXT(LWSBT_CRASH_STACK) "\n\t"
		"mov sp, r0\n\t"
		"bl lwsbt_crash_fault\n\t"
		".pool");
}

void lwsbt_crash(enum lwsbt_crash_reason reason)
{
	crash_reason = reason;
	__asm__ volatile("udf #0");
}

/* crash_state sets *c, and writes the registers. */
static void crash_state(struct lwsbt_crashed *c)
{
	const uint32_t *saved = lwsbt_crash_saved;
	uint32_t zero[8] = { 0 }, sp = saved[0];
	const uint32_t *frame = zero;	/* where the processor could not push it */
	const uint32_t *table = (const uint32_t *)(uintptr_t)*(const volatile uint32_t *)(CRASH_SCB + CRASH_NS(saved) + 8); /* VTOR */

	if ((sp & 3) == 0 && crash_ram(sp, 32)) {
		frame = (const uint32_t *)(uintptr_t)sp;
		sp += 32u + (saved[3] & 0x10 ? 0 : 72) + (frame[7] >> 9 & 1) * 4;
	}
	c->sp = sp;
	c->task_sp = saved[0] == saved[2] ? sp : saved[2];
	if (!c->main_end)
		c->main_end = *(const volatile uint32_t *)table;
	memcpy(c->state + 1, saved + 1, 12);
	crash_put(frame, 32);
	crash_word(sp);
	crash_put(saved + 4, 32);
}

/* Which fault it was, and of which address. A Cortex-M0 has none of these registers. */
static void crash_cause(void)
{
#if __ARM_ARCH_ISA_THUMB >= 2
	const volatile uint32_t *status = (const volatile uint32_t *)(CRASH_SCB + 0x28); /* read by words alone */

	crash_block('M', 1, 0);
	crash_word((uint32_t)(uintptr_t)status);
	crash_word((uint32_t)(uintptr_t)(status + 5));
	if (*status == 0)	/* else a bus error, which is of both states */
		status += CRASH_NS(lwsbt_crash_saved) / 4;
	for (unsigned i = 0; i < 5; i++)
		crash_word(status[i]);
#if __ARM_FEATURE_CMSE == 3
	status = (const volatile uint32_t *)(CRASH_SCB + 0xe4); /* of the border between the states */
	crash_block('M', 1, 0);
	crash_word((uint32_t)(uintptr_t)status);
	crash_word((uint32_t)(uintptr_t)(status + 2));
	crash_word(status[0]);
	crash_word(status[1]);
#endif
#endif
}

#elif defined(__riscv) && __riscv_xlen == 32

#define CRASH_MACHINE 4
#define CRASH_VERSION 3
#define CRASH_REGS 33

#ifdef LWSBT_CRASH_NEXT
#define CRASH_NEXT \
	"csrw mscratch, t0\n\t" \
	"csrr t0, mcause\n\t" \
	"bltz t0, 1f\n\t"	/* an interrupt */ \
	"addi t0, t0, -8\n\t"	/* an environment call, of mode U, S or M */ \
	"andi t0, t0, ~3\n\t" \
	"bnez t0, 2f\n" \
	"1:\n\t" \
	"csrr t0, mscratch\n\t" \
	"j " CRASH_TEXT(LWSBT_CRASH_NEXT) "\n" \
	"2:\n\t"
#else
#define CRASH_NEXT "csrw mscratch, t0\n\t"
#endif
#define CRASH_SAVE(n) "sw x" #n ", 4*" #n "(t0)\n\t"

__attribute__((naked, aligned(4))) void LWSBT_CRASH_HANDLER(void)
{
	__asm__ volatile(
		".option push\n\t"
		".option arch, +zicsr\n\t"
		CRASH_NEXT
		"la t0, lwsbt_crash_saved\n\t"
		CRASH_SAVE(1) CRASH_SAVE(2) CRASH_SAVE(3) CRASH_SAVE(4) CRASH_SAVE(6) CRASH_SAVE(7) CRASH_SAVE(8) CRASH_SAVE(9)
		CRASH_SAVE(10) CRASH_SAVE(11) CRASH_SAVE(12) CRASH_SAVE(13) CRASH_SAVE(14) CRASH_SAVE(15)
#ifndef __riscv_32e
		CRASH_SAVE(16) CRASH_SAVE(17) CRASH_SAVE(18) CRASH_SAVE(19) CRASH_SAVE(20) CRASH_SAVE(21) CRASH_SAVE(22)
		CRASH_SAVE(23) CRASH_SAVE(24) CRASH_SAVE(25) CRASH_SAVE(26) CRASH_SAVE(27) CRASH_SAVE(28) CRASH_SAVE(29)
		CRASH_SAVE(30) CRASH_SAVE(31)
#endif
		"csrr t1, mscratch\n\t"
		"sw t1, 4*5(t0)\n\t"
		"csrr t1, mepc\n\t"
		"sw t1, 4*32(t0)\n\t"
		"la sp, lwsbt_crash_stack + " CRASH_TEXT(LWSBT_CRASH_STACK) "\n\t"
		"j lwsbt_crash_fault\n\t"
		".option pop");
}

void lwsbt_crash(enum lwsbt_crash_reason reason)
{
	crash_reason = reason;
	__asm__ volatile("unimp");
}

void lwsbt_crash_begin(void)
{
	__asm__ volatile(".option push\n\t.option arch, +zicsr\n\tcsrw mtvec, %0\n\t.option pop" : : "r"(LWSBT_CRASH_HANDLER));
}

#define CRASH_CSR(to, name) \
	__asm__ volatile(".option push\n\t.option arch, +zicsr\n\tcsrr %0, " name "\n\t.option pop" : "=r"(to))

static void crash_state(struct lwsbt_crashed *c)
{
	uint32_t sp = lwsbt_crash_saved[2];

	c->sp = sp;
	c->task_sp = 0;		/* in an interrupt, that of the control block */
#if LWSBT_CRASH_TASKS
	for CRASH_EACH(t)
		if ((uint32_t)(uintptr_t)t->task == c->state[0] && sp <= t->end && (sp >= t->start || !crash_ram(sp, 0)))
			c->task_sp = sp;
#endif
	CRASH_CSR(c->state[1], "mcause");
	CRASH_CSR(c->state[2], "mtval");
	CRASH_CSR(c->state[3], "mstatus");
	crash_put(lwsbt_crash_saved, sizeof lwsbt_crash_saved);
}

static void crash_cause(void) { }

#else
#error "lwsbt: crash lines are for Cortex-M and 32-bit RISC-V"
#endif

void lwsbt_crash_fault(void)
{
	static uint8_t crashed;
	struct lwsbt_crashed c;
	const uint16_t head[] = { 'Z' | 'E' << 8, 2, CRASH_MACHINE, 5 };

	if (!crashed++) { /* else put or a read has faulted: no lines about the lines */
		c.state[0] = CRASH_CURRENT;
		c.main_end = (uint32_t)(uintptr_t)lwsbt_crash_port.stack_end;
		crash_text("\n#CD:BEGIN#\n");
		crash_put(head, sizeof head);
		crash_word(crash_reason);
		crash_block('A', CRASH_VERSION, 4 * CRASH_REGS);
		crash_state(&c);
		crash_stacks(&c);
		crash_cause();
		for (unsigned i = 0; lwsbt_crash_port.all && i < lwsbt_crash_port.ram_count; i++)
			crash_memory((uint32_t)lwsbt_crash_port.ram[i].start, (uint32_t)lwsbt_crash_port.ram[i].end);
		crash_end_line();
		crash_text("#CD:END#\n");
	}
	if (lwsbt_crash_port.end)
		lwsbt_crash_port.end(lwsbt_crash_port.out.arg);
	for (;;)
		;
}
