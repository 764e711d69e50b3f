/*
 * capture_s390x.c: walks the back chain of s390x code that is compiled with
 * -mbackchain.
 *
 *   sp -> | back chain | ... | registers of the function called, from r6 on, at 48 |
 *
 * A function stores its return address, r14, in the frame of its caller, at 112.
 */
#include "capture_code.h"

#if defined(__s390x__)

#define R14 112u

static NOINLINE size_t walk_chain(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t sp)
{
	uintptr_t up, ra;
	size_t n = 0;

	while (n < max && stack_word(ctx, sp, &up) && up > sp &&
	       stack_word(ctx, up + R14, &ra) && after_call(ctx, ra)) {
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		sp = up;
	}
	return n;
}

/* A function of its own, since only one that calls has a frame. */
NOINLINE size_t lwsbt_capture_s390x(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t sp;
	size_t n;

	if (!ctx)
		return 0;
	__asm__ volatile("lgr %0, %%r15" : "=r"(sp));
	n = walk_chain(pcs, max, skip, ctx, sp);
	__asm__ volatile("" : "+r"(n));	/* no tail call */
	return n;
}

#endif
