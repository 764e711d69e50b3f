/*
 * capture_ppc.c: walks the back chain of 32-bit PowerPC code. The ABI wants each
 * function that calls to keep it: no options are needed.
 *
 *   sp -> | back chain | place for the return address of the functions called |
 */
#include "capture_code.h"

#if defined(__powerpc__) && !defined(__powerpc64__)

NOINLINE size_t lwsbt_capture_ppc(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0), up, ra;
	size_t n = 0;

	if (!ctx)
		return 0;
	ra = (uintptr_t)__builtin_return_address(0);
	if (!stack_word(ctx, sp, &sp))		/* this function's own frame */
		return 0;
	for (; n < max; sp = up) {
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (!stack_word(ctx, sp, &up) || up <= sp ||
		    !stack_word(ctx, up + WORD, &ra) || !after_call(ctx, ra))
			break;
	}
	return n;
}

#endif
