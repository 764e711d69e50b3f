/*
 * constants.c: functions behind constants that look like the first instruction of a
 * function of variable arguments, in assembler, so that no compiler decides about
 * it. Each case is an outer function that calls an inner one, which calls hook; before
 * the inner one stand constants, and what loads them. The names of the cases
 * whose stack was walked right are printed.
 */
#include "lwsbt.h"

long sys_write(int fd, const void *p, size_t n);
void sys_exit(int code) __attribute__((noreturn));
extern char __executable_start[], etext[];
void hook(void);

/* What the assembler below has of a case. */
extern const struct test {
	void (*outer)(void);
	const char *after_inner, *after_outer;	/* the addresses after their calls */
	char name[20];
} tests[], tests_end[];

static const struct test *test;
static struct lwsbt_capture_ctx ctx;

__asm__(
	".syntax unified\n.text\n"
	".section .rodata.tests, \"a\"\n.balign 4\n.globl tests, tests_end\ntests:\n.text\n"

	/* begins a case: the outer function */
	".macro outer name, value\n"
	"	.balign 4\n	.thumb_func\n"
	"10:	push {r4, lr}\n	bl 30f\n11:	pop {r4, pc}\n"
	"	.section .rodata.tests\n	.word 10b + 1, 31f, 11b\n"
	"12:	.ascii \"\\name \\value\"\n	.space 20 - (. - 12b)\n	.text\n"
	".endm\n"

	/* ends it: the inner function, which first lowers the stack pointer by n bytes */
	".macro inner n, lowers:vararg\n"
	"	.thumb_func\n"
	"30:	\\lowers\n	push {r4, lr}\n	bl hook\n"
	"31:	pop {r4}\n	pop {r3}\n	add sp, #\\n\n	bx r3\n"
	".endm\n"

	/* a constant, the first of four before the inner function */
	".irp value, 0xb408, 0xb40c, 0xb40e, 0xb40f, 0xb081, 0xb082, 0xb083, 0xb084\n"
	"	outer ldr, \\value\n"
	"	ldr r3, 20f\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20000000 + \\value, 0x20000000, 0x20000000, 0x20000000\n"
	"	inner 0\n"

	/* the same as far off as can be, the last of two */
	"	outer far, \\value\n"
	"	.balign 4\n	ldr r3, 20f\n	.rept 509\n	nop\n	.endr\n"
	"	.word 0x20000000\n"
	"20:	.word 0x20000000 + \\value\n"
	"	inner 0\n"

	/* a constant before an inner function that does lower the stack pointer first */
	"	outer both, \\value\n"
	"	ldr r3, 20f\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20000000 + \\value\n"
	"	inner 16, push {r0-r3}\n"
#if __ARM_ARCH_ISA_THUMB == 2
	"	outer ldr.w, \\value\n"
	"	.balign 4\n	ldr.w r8, 20f\n	.rept 2046\n	nop\n	.endr\n"
	"20:	.word 0x20000000 + \\value\n"
	"	inner 0\n"

	/* both words of a pair */
	"	outer ldrd, \\value\n"
	"	ldrd r2, r3, 20f\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20000000, 0x20000000 + \\value\n"
	"	inner 0\n"
	"	outer ldrd2, \\value\n"
	"	ldrd r2, r3, 20f\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20000000 + \\value, 0x20000000\n"
	"	inner 0\n"

	/* a pair that adr has the address of */
	"	outer adr, \\value\n"
	"	adr r3, 20f\n	ldrd r2, r3, [r3]\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20000000, 0x20000000 + \\value\n"
	"	inner 0\n"

	/* vldr s0, [pc, #4]; of no Cortex-M3, but nothing executes it */
	"	outer vldr, \\value\n"
	"	.balign 4\n	.inst.w 0xed9f0a01\n	bx lr\n	nop\n"
	"20:	.word 0x20000000 + \\value\n"
	"	inner 0\n"
#endif
	".endr\n"

	/* an address of code that looks like push {r4, lr}, within a function; where that would
	 * have saved lr there is a return address */
	"	outer within, 0x1b510\n"
	"	.thumb_func\n"
	"30:	push {r4, lr}\n	sub sp, #16\n	ldr r3, 20f\n	ldr r3, 21f\n	str r3, [sp, #4]\n	b 22f\n"
	"	.balign 4\n20:	.word 0x1b510\n21:	.word 31f + 1\n"
	"22:	bl hook\n"
	"31:	add sp, #16\n	pop {r4, pc}\n"

	/* what looks like a push of lr within a function: an address of read-only data, and, as far
	 * as it goes, the second half of an instruction, and the table of a switch */
	".macro within what, looks\n"
	"	outer within, \\what\n"
	"	.thumb_func\n"
	"30:	push {r4, lr}\n	sub sp, #16\n	ldr r3, 19f\n	b 18f\n	.balign 4\n19:	.word 31f + 1\n"
	"18:	str r3, [sp, #8]\n	str r3, [sp, #12]\n"	/* where that would have saved lr */
	"	\\looks\n"
	"22:	bl hook\n"
	"31:	add sp, #16\n	pop {r4, pc}\n"
	".endm\n"
	"	within data, \"ldr r3, 20f; b 22f; .balign 4; 20: .word 0x9b570\"\n"
	"	within offset, \"ldr r3, 20f; b 22f; .balign 4; 20: .word 0xffffb570\"\n"
#if __ARM_ARCH_ISA_THUMB == 2
	"	within mla, \"b 22f; .inst.w 0xfb07b505\"\n"	/* mla r5, r7, r5, r11 */
	"	within mla2, \"b 22f; .inst.w 0xfb07b505; .inst.w 0xfb07b505\"\n"
	"	within tbb, \"movs r3, 0; tbb [pc, r3]; 20: .byte (22f - 20b) / 2, 0xb5, 0x70, 0xb5, 0x70, 0xb5\"\n"
	"	within tbh, \"movs r3, 0; tbh [pc, r3, lsl 1]; 20: .hword (22f - 20b) / 2, 0xb570, 0xb570\"\n"
	"	within words, \"movs r3, 0; adr r2, 20f; ldr r3, [r2, r3, lsl 2]; add r3, r2; bx r3; .balign 4; 20: .word 22f - 20b + 1, 0xb571, 0xb571\"\n"
	"	within aligned, \"nop; movs r3, 0; adr r2, 20f; ldr r3, [r2, r3, lsl 2]; add r3, r2; bx r3; .balign 4; 20: .word 22f - 20b + 1, 0xb571, 0xb571\"\n"
#endif
	/* addresses before a function that look like mov lr, r11: as where r8 to r11 are saved */
	"	outer after, moves\n	push {r1-r7, lr}\n	ldr r3, 20f\n	bx lr\n	.balign 4\n20:	.word 0x846de\n	inner 0\n"

	/* a push that looks like an address of code, behind a constant that is one */
	"	outer after, address\n	push {r1-r7, lr}\n	ldr r3, 20f\n	bx lr\n	.balign 4\n20:	.word hook\n"
	"	.thumb_func\n"
	"30:	push {r0, r1, r4, lr}\n	movs r1, r0\n	bl hook\n"
	"31:	pop {r1, r2, r4, pc}\n"

	/* a short function before the inner one: its place is no part of that */
	"	outer after, bl\n	sub sp, #12\n	bl hook\n	inner 0\n"
	"	outer after, blx\n	sub sp, #12\n	blx r3\n	inner 0\n"
#if __ARM_ARCH_ISA_THUMB == 2
	"	outer after, b.w\n	sub sp, #12\n	add sp, #12\n	b.w hook\n	inner 0\n"
	"	outer after, ldr.w\n	sub sp, #12\n	add sp, #12\n	ldr pc, [sp], #4\n	inner 0\n"
	"	outer after, ldmia.w\n	sub sp, #12\n	add sp, #12\n	pop {r8, pc}\n	inner 0\n"
#endif

	/* the instructions that these constants look like */
	"	outer real, push1\n	inner 4, push {r3}\n"
	"	outer real, push2\n	inner 8, push {r2, r3}\n"
	"	outer real, push3\n	inner 12, push {r1-r3}\n"
	"	outer real, push4\n	inner 16, push {r0-r3}\n"
	"	outer real, sub1\n	inner 4, sub sp, #4\n"
	"	outer real, sub2\n	inner 8, sub sp, #8\n"
	"	outer real, sub3\n	inner 12, sub sp, #12\n"
	"	outer real, sub4\n	inner 16, sub sp, #16\n"

	/* one of them behind a constant that looks like an ldr of it */
	"	outer real, push4-ldr\n"
	"	ldr r3, 20f\n	bx lr\n	.balign 4\n"
	"20:	.word 0x20004800\n"
	"	inner 16, push {r0-r3}\n"

	/* one of them behind the table of a switch that looks like it */
	"	outer real, push4-table\n"
	"	bx r3\n	.balign 4\n	.word 0x20004800\n"
	"	inner 16, push {r0-r3}\n"
	/* the table of a switch at addresses that look like push {..., lr} */
	"	.balign 0x10000\n	.space 0xb510\n"
	"	outer table, 0xb5\n"
	"	.thumb_func\n"
	"30:	push {r4, lr}\n	sub sp, #16\n	b 33f\n	.balign 4\n"
	"	.rept 4\n	.word 33f + 1\n	.endr\n"
	"33:	bl hook\n"
	"31:	add sp, #16\n	pop {r4, pc}\n"
	"	.rept 16\n	nop\n	.endr\n"
	".section .rodata.tests\ntests_end:\n.text\n");

__attribute__((noinline)) void hook(void)
{
	uintptr_t pcs[10];
	size_t n, length = 0;

	n = lwsbt_capture_thumb(pcs, 10, 0, &ctx);
	/* hook, inner, outer, main, _start */
	if (n != 5 || pcs[1] != (uintptr_t)test->after_inner || pcs[2] != (uintptr_t)test->after_outer)
		return;
	while (test->name[length] != 0)
		length++;
	sys_write(1, test->name, length);
	sys_write(1, "\n", 1);
}

int main(void)
{
	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 4096;
	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	for (test = tests; test < tests_end; test++)
		test->outer();
	sys_exit(0);
}
