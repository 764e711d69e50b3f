/*
 * lwsbt/capture.h: call stacks. See lwsbt.h, and docs/capture.md for which function to take.
 */
#ifndef LWSBT_INCLUDE_CAPTURE_H
#define LWSBT_INCLUDE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table of the program's functions, sorted by address, for backends that look
 * at code: made from the ELF file by a tool of tools/, and optional.
 */
struct lwsbt_functions {
	const uint32_t *start;	/* first address of each function, less base */
	size_t count;
	uintptr_t base;
	uintptr_t end;		/* past the last function */
};

/* lwsbt_function_table returns the table that tools/functable -patch has written into
 * the linked program, or NULL before that. It is in capture_functions.c. */
const struct lwsbt_functions *lwsbt_function_table(void);

/*
 * A cache of what prologue readers found out from code, by return address: with it,
 * a frame seen before takes some 80 instructions, not 640 and more. An array of these is the
 * program's, all zero at first, and may serve several threads. Where code is loaded or
 * replaced, zero it.
 */
struct lwsbt_rule {
	uintptr_t check, rule;	/* the library's */
};

/* What a capture function may read. */
struct lwsbt_capture_ctx {
	uintptr_t lo, hi;	/* the stack: lo <= address < hi; both 0 if unknown */
	uintptr_t code_lo, code_hi; /* code, and read-only data behind it; both 0 if unknown */
	const struct lwsbt_functions *functions; /* or NULL */
	struct lwsbt_rule *rules; /* the cache, or NULL */
	size_t rule_count;	/* of rules: a power of 2, at most 4096; or 0 */
	uintptr_t irq_lo, irq_hi; /* the stack of interrupts, where it is another: of a Cortex-M
				 * whose threads run on the process stack; both 0 if not */
};

/*
 * A capture function stores return addresses of the calling thread's stack to
 * pcs, the innermost first, at most max, leaving out the first skip. It returns
 * how many. With a skip of 0, pcs[0] is in the function that called the capture
 * function: the address to which it returns.
 *
 * It reads no stack outside ctx->lo to ctx->hi, and no code outside code_lo to
 * code_hi, where these are known; it ends where it cannot go on, and never
 * faults on a corrupted stack within these limits. Addresses have their mode
 * bits cleared (bit 0 of Thumb). It allocates nothing, unless its description
 * says so. ctx may be NULL: then nothing is known.
 */
typedef size_t (*lwsbt_capture_fn)(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx);

/* By what, in one line each; docs/capture.md says which to take. */
size_t lwsbt_capture_unwind(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* the compiler's unwinder */
size_t lwsbt_capture_fp(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* frame pointers */
size_t lwsbt_capture_mips(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_thumb(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_arm(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_scan(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* addresses after a call */
size_t lwsbt_capture_riscv(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_aarch64(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* prologues */
size_t lwsbt_capture_ppc(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */
size_t lwsbt_capture_xtensa(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* register windows; not tested on hardware */
size_t lwsbt_capture_s390x(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */

#ifdef __cplusplus
}
#endif

#endif
