/*
 * capture_fp.c: walks the stack by frame pointers, of code that is compiled with
 * -fno-omit-frame-pointer. A function without one is left out, as long as it
 * does not use the register for something else. Nothing on machines where that is not
 * fixed, such as Arm.
 */
#include "capture_code.h"

/*
 * Where the caller's frame pointer and the return address lie, from where the
 * frame pointer points to:
 *
 *   x86, AArch64:  fp -> | caller's fp | return address |
 *   RISC-V:              | caller's fp | return address | <- fp
 */
#if defined(__riscv)
#define BELOW (2 * WORD)
#else
#define BELOW 0u
#endif

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__riscv)

static NOINLINE size_t walk_fp(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t fp)
{
	uintptr_t up, ra;
	size_t n = 0;

	while (n < max && stack_word(ctx, fp - BELOW, &up) &&
	       stack_word(ctx, fp - BELOW + WORD, &ra)) {
#if defined(__aarch64__)
		ra = strip_pac(ra);
#endif
		if (ctx->code_hi != 0 && !after_call(ctx, ra))
			break;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (up <= fp)		/* each frame lies above the one before */
			break;
		fp = up;
	}
	return n;
}

/* A function of its own, since only one that calls has a whole frame. */
NOINLINE size_t lwsbt_capture_fp(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	size_t n;

	if (!ctx)
		return 0;
	n = walk_fp(pcs, max, skip, ctx, (uintptr_t)__builtin_frame_address(0));
	__asm__ volatile("" : "+r"(n));	/* no tail call */
	return n;
}

#endif
