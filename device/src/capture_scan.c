/*
 * capture_scan.c: takes for a return address each word of the stack that is an
 * address after a call. It needs nothing of the code but the code, and no frame
 * stops it; but what calls that have long returned left on the stack is taken as
 * well. For a stack that all other backends give up on.
 */
#include "capture_code.h"

#ifndef NO_CALLS

NOINLINE size_t lwsbt_capture_scan(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t word, at = (uintptr_t)&word;
	size_t n = 0;

	if (!ctx)
		return 0;
	for (at -= at % WORD; n < max && stack_word(ctx, at, &word); at += WORD) {
#if defined(__thumb__)
		word--;		/* the mode bit, which after_call wants clear */
#endif
		word = stripped(word);
		if (!after_call(ctx, word))
			continue;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = word;
	}
	return n;
}

#endif
