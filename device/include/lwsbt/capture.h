/*
 * lwsbt/capture.h: call stacks. See lwsbt.h. docs/notes/capture.md describes which function to use.
 */
#ifndef LWSBT_INCLUDE_CAPTURE_H
#define LWSBT_INCLUDE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table of the program's functions, sorted by address, for capture functions that
 * read code. It is optional: `btcore functable` makes it from the ELF file.
 */
struct lwsbt_functions {
	const uint32_t *start;	/* first address of each function, less base */
	size_t count;
	uintptr_t base;
	uintptr_t end;		/* first address after the last function */
};

/* lwsbt_function_table returns the table that `btcore functable` has written into the linked
 * program, or NULL before that, and without -DLWSBT_FUNCTIONS_MAX. It is in capture_functions.c. */
const struct lwsbt_functions *lwsbt_function_table(void);

/*
 * An entry of the cache of prologue readers, by return address. With the cache, a frame seen
 * before takes about 60 instructions instead of 640 or more. The program provides an array of
 * entries, initialized with zeros; several threads may share it. Clear it when code is loaded
 * or replaced.
 */
struct lwsbt_rule {
	uintptr_t check, rule;	/* internal */
};

/* The memory that a capture function may read. */
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
 * A capture function stores at most max return addresses of the calling thread's
 * stack to pcs, the innermost first, without the first skip addresses. It returns
 * their number. With a skip of 0, pcs[0] is the return address of the capture
 * function, which is in the function that called it.
 *
 * It reads no stack outside ctx->lo to ctx->hi, and no code outside code_lo to
 * code_hi, if these are known. It ends at the first frame that it cannot unwind,
 * and never faults on a corrupted stack within these limits. Addresses have their mode
 * bits cleared (bit 0 of Thumb). It allocates nothing, unless its description
 * says so. ctx may be NULL: then nothing is known.
 */
typedef size_t (*lwsbt_capture_fn)(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx);

/* Capture functions, with the method of each. docs/notes/capture.md describes which to use. */
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

/* LWSBT_CAPTURE is the capture function of the machine that needs no compiler options; on x86, that of frame
 * pointers. */
#if defined(__thumb__)
#define LWSBT_CAPTURE lwsbt_capture_thumb
#elif defined(__arm__)
#define LWSBT_CAPTURE lwsbt_capture_arm
#elif defined(__aarch64__)
#define LWSBT_CAPTURE lwsbt_capture_aarch64
#elif defined(__riscv)
#define LWSBT_CAPTURE lwsbt_capture_riscv
#elif defined(__mips__)
#define LWSBT_CAPTURE lwsbt_capture_mips
#elif defined(__powerpc__) && !defined(__powerpc64__)
#define LWSBT_CAPTURE lwsbt_capture_ppc
#elif defined(__s390x__)
#define LWSBT_CAPTURE lwsbt_capture_s390x
#elif defined(__XTENSA_WINDOWED_ABI__)
#define LWSBT_CAPTURE lwsbt_capture_xtensa
#elif defined(__x86_64__) || defined(__i386__)
#define LWSBT_CAPTURE lwsbt_capture_fp
#endif

#ifdef __cplusplus
}
#endif

#endif
