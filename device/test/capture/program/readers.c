/*
 * readers.c: what readers of "Getting the call stack without a frame pointer" met
 * on MIPS, in assembler, so that no compiler decides about it. Each function calls
 * the next one, the last calls hook; the address after each call has a label.
 */
#include "lwsbt.h"

#include <stdio.h>

extern char __executable_start[], etext[];
extern char after_gp_first[], after_two_steps[], after_delay_slot[], after_large[], after_late[];
int gp_first(int a);
int hook(int a);

static uintptr_t pcs[40];
static size_t n;
static struct lwsbt_capture_ctx ctx;

__asm__(
	".set noreorder\n.set nomacro\n.set noat\n.text\n"

	/* 19: $gp is set up before the stack pointer is lowered */
	".globl gp_first\n.type gp_first, @function\n.ent gp_first\ngp_first:\n"
	"	lui $28, 0xfc0\n	addiu $28, $28, 30028\n	addu $28, $28, $25\n"
	"	addiu $sp, $sp, -32\n	sw $31, 28($sp)\n"
	"	jal two_steps\n	nop\n"
	"after_gp_first:\n	lw $31, 28($sp)\n	jr $31\n	addiu $sp, $sp, 32\n.end gp_first\n"
	".size gp_first, .-gp_first\n"

	/* 3: more than one adjustment of the stack pointer */
	".type two_steps, @function\n.ent two_steps\ntwo_steps:\n"
	"	addiu $sp, $sp, -16\n	sw $4, 8($sp)\n	addiu $sp, $sp, -24\n	sw $31, 20($sp)\n"
	"	addiu $sp, $sp, -8\n	jal delay_slot\n	nop\n"
	"after_two_steps:\n	addiu $sp, $sp, 8\n	lw $31, 20($sp)\n	jr $31\n	addiu $sp, $sp, 40\n"
	".end two_steps\n.size two_steps, .-two_steps\n"

	/* the return address is saved in the delay slot of a branch */
	".type delay_slot, @function\n.ent delay_slot\ndelay_slot:\n"
	"	addiu $sp, $sp, -40\n	bnez $4, 1f\n	sw $31, 36($sp)\n	addiu $4, $4, 1\n"
	"1:	jal large\n	nop\n"
	"after_delay_slot:\n	lw $31, 36($sp)\n	jr $31\n	addiu $sp, $sp, 40\n"
	".end delay_slot\n.size delay_slot, .-delay_slot\n"

	/* a frame over 32 KiB */
	".type large, @function\n.ent large\nlarge:\n"
	"	lui $8, 1\n	addiu $sp, $sp, -32\n	ori $8, $8, 0x2340\n	sw $31, 28($sp)\n"
	"	subu $sp, $sp, $8\n	jal late\n	nop\n"
	"after_large:\n	lui $8, 1\n	ori $8, $8, 0x2340\n	addu $sp, $sp, $8\n	lw $31, 28($sp)\n"
	"	jr $31\n	addiu $sp, $sp, 32\n.end large\n.size large, .-large\n"

	/* a way out before the prologue */
	".type late, @function\n.ent late\nlate:\n"
	"	beqz $4, 1f\n	nop\n	addiu $sp, $sp, -24\n	sw $31, 20($sp)\n"
	"	jal hook\n	nop\n"
	"after_late:\n	lw $31, 20($sp)\n	jr $31\n	addiu $sp, $sp, 24\n"
	"1:	jr $31\n	nop\n.end late\n.size late, .-late\n"
	".globl after_gp_first, after_two_steps, after_delay_slot, after_large, after_late\n"
	".set reorder\n.set macro\n.set at\n");

/* 10, 14: return addresses that are no multiple of 4, on the stack */
__attribute__((noinline)) static void misaligned(uintptr_t *word, uintptr_t v)
{
	uintptr_t saved = *word;

	*word = v;
	n = lwsbt_capture_mips(pcs, 40, 0, &ctx);
	*word = saved;
}

int hook(int a)
{
	uintptr_t *word, ra = (uintptr_t)__builtin_return_address(0);
	unsigned i;

	ctx.lo = (uintptr_t)&word - 4096;
	n = lwsbt_capture_mips(pcs, 40, 0, &ctx);
	for (i = 1; i <= 6 && i < n; i++) {
		static const char *const after[] = {after_late, after_large, after_delay_slot, after_two_steps, after_gp_first};

		if (i < 6)
			printf("%s\n", pcs[i] == (uintptr_t)after[i - 1] ? "found" : "wrong");
		else
			printf("main %s\n", pcs[i] > ctx.code_lo ? "reached" : "wrong");
	}
	/* the return address in the frame of late */
	for (word = (uintptr_t *)__builtin_frame_address(0); (uintptr_t)word < ctx.hi; word++)
		if (*word == (uintptr_t)after_large)
			break;
	for (i = 1; i < 4; i++) {
		misaligned(word, (uintptr_t)after_large + i);
		printf("misaligned by %u: %s\n", i, n == 3 && pcs[2] == ra ? "ended" : "wrong");
	}
	misaligned(word, 0x9e032d1f);
	printf("not code: %s\n", n == 3 ? "ended" : "wrong");
	return a + 1;
}

int main(void)
{
	int (*volatile first)(int) = gp_first;

	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	first(1);
	return 0;
}
