/*
 * forms.c: functions in assembler of forms that compilers make and searches for a
 * prologue have missed. Each calls the next one, the last calls hook. The address
 * after each call has a label, after_NAME.
 */
#include "lwsbt.h"

#include <stdio.h>
#include <stdlib.h>

extern char __executable_start[], etext[];
size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);
int hook(int a);

#define FUNCTION(name) ".globl " #name ", after_" #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name) ".size " #name ", .-" #name "\n"

#if defined(__mips__)
#define FORMS FORM(delay_of_jr) FORM(delay_of_b) FORM(large) FORM(outer)
__asm__(
	".set noreorder\n.set nomacro\n.set noat\n.text\n"

	/* a switch: the return address is saved in the delay slot of its jump */
	FUNCTION(delay_of_jr)
	"	lui $8, %hi(1f)\n	addiu $sp, $sp, -40\n	addiu $8, $8, %lo(1f)\n	jr $8\n	sw $31, 36($sp)\n	nop\n"
	"1:	jal delay_of_b\n	nop\n"
	"after_delay_of_jr:\n	lw $31, 36($sp)\n	jr $31\n	addiu $sp, $sp, 40\n" END(delay_of_jr)

	FUNCTION(delay_of_b)
	"	addiu $sp, $sp, -48\n	b 1f\n	sw $31, 44($sp)\n	nop\n"
	"1:	jal large\n	nop\n"
	"after_delay_of_b:\n	lw $31, 44($sp)\n	jr $31\n	addiu $sp, $sp, 48\n" END(delay_of_b)

	FUNCTION(large)
	"	addiu $sp, $sp, -32\n	sw $31, 28($sp)\n	.fill 30000, 4, 0\n	jal outer\n	nop\n"
	"after_large:\n	lw $31, 28($sp)\n	jr $31\n	addiu $sp, $sp, 32\n" END(large)

	/* not called: what a search finds before outer */
	FUNCTION(decoy)
	"	addiu $sp, $sp, -32\n	sw $31, 28($sp)\n	jal hook\n	nop\n	lw $31, 28($sp)\n	jr $31\n	addiu $sp, $sp, 32\n" END(decoy)

	FUNCTION(outer)
	"	addiu $sp, $sp, -24\n	sw $31, 20($sp)\n	jal hook\n	nop\n"
	"after_outer:\n	lw $31, 20($sp)\n	jr $31\n	addiu $sp, $sp, 24\n" END(outer)
	".set reorder\n.set macro\n.set at\n");

#elif defined(__riscv)
#define FORMS FORM(constant_first) FORM(overwritten) FORM(after_noreturn) FORM(large) FORM(outer)
__asm__(
	".option push\n.option norelax\n.text\n"

	/* the constant for a large frame is loaded before the stack pointer is lowered */
	FUNCTION(constant_first)
	"	lui t1, 0x12\n	addi sp, sp, -32\n	sd ra, 24(sp)\n	addi t1, t1, 16\n	sub sp, sp, t1\n"
	"	call overwritten\n"
	"after_constant_first:\n	lui t1, 0x12\n	addi t1, t1, 16\n	add sp, sp, t1\n	ld ra, 24(sp)\n	addi sp, sp, 32\n	ret\n"
	END(constant_first)

	/* alloca of what a register has that a constant was loaded to before; its way out is
	 * elsewhere */
	"leave_overwritten:\n	addi sp, s0, -48\n	ld ra, 40(sp)\n	ld s0, 32(sp)\n	addi sp, sp, 48\n	ret\n"
	FUNCTION(overwritten)
	"	addi sp, sp, -48\n	sd ra, 40(sp)\n	sd s0, 32(sp)\n	addi s0, sp, 48\n	li a5, 64\n	add a5, a5, a5\n"
	"	sub sp, sp, a5\n	call after_noreturn\n"
	"after_overwritten:\n	j leave_overwritten\n" END(overwritten)

	/* saved by a routine, right after a function that does not return */
	".type stops, @function\nstops:\n	addi sp, sp, -64\n	mv a0, a1\n	call abort\n" END(stops)
	FUNCTION(after_noreturn)
	"	call t0, __riscv_save_0\n	call large\n"
	"after_after_noreturn:\n	tail __riscv_restore_0\n" END(after_noreturn)

	FUNCTION(large)
	"	addi sp, sp, -32\n	sd ra, 24(sp)\n	.fill 30000, 4, 0x00000013\n	call outer\n"
	"after_large:\n	ld ra, 24(sp)\n	addi sp, sp, 32\n	ret\n" END(large)

	/* not called: what a search finds before outer */
	FUNCTION(decoy)
	"	addi sp, sp, -32\n	sd ra, 24(sp)\n	call hook\n	ld ra, 24(sp)\n	addi sp, sp, 32\n	ret\n" END(decoy)

	FUNCTION(outer)
	"	addi sp, sp, -16\n	sd ra, 8(sp)\n	call hook\n"
	"after_outer:\n	ld ra, 8(sp)\n	addi sp, sp, 16\n	ret\n" END(outer)
	".option pop\n");

#elif defined(__aarch64__)
#define FORMS FORM(large) FORM(outer)
__asm__(
	".text\n" FUNCTION(large)
	"	stp x29, x30, [sp, #-32]!\n	.fill 30000, 4, 0xd503201f\n	bl outer\n"
	"after_large:\n	ldp x29, x30, [sp], #32\n	ret\n" END(large)

	/* not called: what a search finds before outer */
	FUNCTION(decoy)
	"	sub sp, sp, #48\n	stp x29, x30, [sp, #32]\n	bl hook\n	ldp x29, x30, [sp, #32]\n	add sp, sp, #48\n	ret\n" END(decoy)

	FUNCTION(outer)
	"	stp x29, x30, [sp, #-16]!\n	bl hook\n"
	"after_outer:\n	ldp x29, x30, [sp], #16\n	ret\n" END(outer));
#endif

#define FORM(name) int name(int a); extern char after_##name[];
FORMS
#undef FORM

static const struct {
	const char *name;
	const char *after;
} forms[] = {
#define FORM(name) {#name, after_##name},
	FORMS
#undef FORM
};

enum { COUNT = sizeof forms / sizeof *forms };

static uintptr_t pcs[40], above[4096];
static size_t n;
static struct lwsbt_capture_ctx ctx;

int hook(int a)
{
	uintptr_t *word = (uintptr_t *)__builtin_frame_address(0), *top = (uintptr_t *)ctx.hi, caller;
	unsigned i, k = 0;

	ctx.lo = (uintptr_t)word - 4096;
	n = BACKEND(pcs, 40, 0, &ctx);
	for (i = COUNT; i-- > 0;)
		printf("%s %s\n", forms[i].name, n > COUNT - i && pcs[COUNT - i] == (uintptr_t)forms[i].after ? "found" : "missing");
	printf("main %s\n", n > COUNT + 1 ? "found" : "missing");
	/* The return address of outer is none, and above it lies what once was one: as at
	 * the end of a task's stack. */
	caller = (uintptr_t)forms[COUNT - 2].after;
	while (word < top && *word != caller)
		word++;
	if (top - word > 4096)
		top = word + 4096;
	for (; word + k < top; k++) {
		above[k] = word[k];
		word[k] = k == 0 ? 0x1235 : (uintptr_t)forms[0].after;
	}
	n = BACKEND(pcs, 40, 0, &ctx);
	while (k-- > 0)
		word[k] = above[k];
	printf("end of the stack %s\n", n == 2 ? "found" : "missed");
	return a + 1;
}

int main(void)
{
#define FORM(name) name,
	static int (*const functions[])(int) = {FORMS};
#undef FORM

	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 256;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	return functions[0](1) < 0;
}
