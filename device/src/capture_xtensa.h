/*
 * capture_xtensa.h: the walk of capture_xtensa.c, for its test on other machines.
 */
#ifndef CAPTURE_XTENSA_H
#define CAPTURE_XTENSA_H

#include "capture_code.h"

/* walk_windows stores return addresses: a0 is that of the function whose stack pointer is
 * sp, and pc is in its code. Stacks grow downward, and a task's first function has a return
 * address of 0. */
UNUSED static size_t walk_windows(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t pc, uintptr_t a0, uintptr_t sp)
{
	const uintptr_t quarter = pc & 0xc0000000u;
	uintptr_t up;
	size_t n = 0;

	while (n < max && (a0 & 0xc0000000u) != 0) {
		const uintptr_t ra = (a0 & 0x3fffffffu) | quarter;

		if (ctx->code_hi != 0 && (ra < ctx->code_lo || ra >= ctx->code_hi))
			break;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (sp < 4 * WORD || !stack_word(ctx, sp - 4 * WORD, &a0) ||
		    !stack_word(ctx, sp - 3 * WORD, &up) || up <= sp)
			break;
		sp = up;
	}
	return n;
}

#endif
