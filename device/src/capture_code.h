/*
 * capture_code.h: what capture backends read, and nothing beyond: words of the
 * stack and instructions of the program, both within the limits of a
 * struct lwsbt_capture_ctx. Included by each backend; all functions are static.
 */
#ifndef CAPTURE_CODE_H
#define CAPTURE_CODE_H

#include "lwsbt.h"
#include "options.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))
#else
#define INLINE static inline
#define UNUSED
#define NOINLINE
#endif

#define WORD sizeof(uintptr_t)

/* The stack word at address at, if it is aligned and within the limits. */
UNUSED static int stack_word(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t *word)
{
	if (at % WORD != 0 || at < ctx->lo || at >= ctx->hi || ctx->hi - at < WORD)
		return 0;
	*word = *(const uintptr_t *)at;
	return 1;
}

/* Reports whether the n bytes at address at are code that may be read. A program of
 * several modules names a function of its own for it. */
#ifdef LWSBT_IN_CODE
int LWSBT_IN_CODE(uintptr_t at, uintptr_t n);
#define in_code(ctx, at, n) ((void)(ctx), LWSBT_IN_CODE(at, n))
#define CODE_GOES_ON(ctx, at) in_code(ctx, at, 2)
#else
/* Reports whether there is code at address at, which is within the limits; modules have gaps. */
#define CODE_GOES_ON(ctx, at) 1
INLINE int in_code(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t n)
{
	return at >= ctx->code_lo && at < ctx->code_hi && ctx->code_hi - at >= n;
}
#endif

INLINE uint32_t code16(uintptr_t at)
{
	return *(const uint16_t *)at;
}

INLINE uint32_t code32(uintptr_t at)
{
	return *(const uint32_t *)at;
}

/* v sign-extended from its lowest n bits, 1 to 32. */
INLINE intptr_t extend(uint32_t v, unsigned n)
{
	uint32_t sign = (uint32_t)1 << (n - 1);

	v &= (sign << 1) - 1;
	return (intptr_t)(int32_t)((v ^ sign) - sign);
}

/* Bits lo to lo + n - 1 of v. */
INLINE uint32_t field(uint32_t v, unsigned lo, unsigned n)
{
	return v >> lo & (((uint32_t)1 << n) - 1);
}

/*
 * after_call reports whether pc, without mode bits, is the address after a call
 * instruction within the code. A return address is; most words that lie on a
 * stack for other reasons are not.
 */
#if defined(__thumb__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h;

	/* No function begins with a call. */
	if (pc % 2 != 0 || !in_code(ctx, pc - 4, 4))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xff87) == 0x4780)	/* blx Rm; with bits 0 to 2, blxns */
		return 1;
	/*
	 * bl:  11110 s imm10, 11 j1 1 j2 imm11
	 * blx: 11110 s imm10, 11 j1 0 j2 imm10 0 (to Arm code)
	 * A branch with link has bits 15, 14 and 12 of its second half set (0xd000):
	 * b.w has not bit 14, and j1 (bit 13) may be either. blx has not bit 12.
	 */
#if defined(__ARM_ARCH_ISA_ARM)
	if ((h & 0xd001) == 0xc000)
		h |= 0xd000;
#endif
	return (h & 0xd000) == 0xd000 && (code16(pc - 4) & 0xf800) == 0xf000;
}

#elif defined(__arm__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	if ((w & 0x0ffffff0) == 0x012fff30 || (w & 0x0f000000) == 0x0b000000)
		return 1;			/* blx Rm; bl */
	if ((w & 0xfe000000) == 0xfa000000)	/* blx to Thumb code */
		return 1;
	/* mov lr, pc; then bx Rm, or ldr pc, or mov pc: before Armv5 */
	return pc - ctx->code_lo >= 8 && (code32(pc - 8) & 0x0fffffff) == 0x01a0e00f;
}

#elif defined(__aarch64__)

/* ra without its pointer authentication code, if it has one: xpaclri, which is a
 * hint, and does nothing on processors that have no such codes. */
UNUSED static uintptr_t strip_pac(uintptr_t ra)
{
	register uintptr_t x30 __asm__("x30") = ra;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	/* bl; blr, blraa, blraaz, blrab, blrabz */
	return (w & 0xfc000000) == 0x94000000 || (w & 0xfefff000) == 0xd63f0000;
}

#elif defined(__riscv)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h, w;

	if (pc % 2 != 0 || pc - ctx->code_lo < 2 || !in_code(ctx, pc - 2, 2))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xf07f) == 0x9002 && h != 0x9002)	/* c.jalr; not c.ebreak */
		return 1;
#if __riscv_xlen == 32
	if ((h & 0xe003) == 0x2001)			/* c.jal */
		return 1;
#endif
	if (pc - ctx->code_lo < 4)
		return 0;
	w = code16(pc - 4) | h << 16;
	return (w & 0x0fff) == 0x00ef || (w & 0x7fff) == 0x00e7; /* jal ra; jalr ra */
}

#elif defined(__mips__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	/* A call returns behind its delay slot. */
	if (pc % 4 != 0 || pc - ctx->code_lo < 8 || !in_code(ctx, pc - 8, 8))
		return 0;
	w = code32(pc - 8);
	switch (w >> 26) {
	case 0:
		return (w & 0x3f) == 9 && field(w, 11, 5) == 31; /* jalr */
	case 1:
		return field(w, 20, 1) == 1;	/* bltzal, bgezal, bal, and likely */
	case 3:
	case 0x1d:
		return 1;			/* jal, jalx */
	}
	return 0;
}

#elif defined(__powerpc__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	/* bl, bcl, bclrl, bcctrl: branches with the link bit, 0 */
	return (w & 1) == 1 && (w >> 26 == 18 || w >> 26 == 16 ||
		(w >> 26 == 19 && ((w & 0x7fe) == 0x020 || (w & 0x7fe) == 0x420)));
}

#elif defined(__s390x__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	if (pc % 2 != 0 || pc - ctx->code_lo < 2 || !in_code(ctx, pc - 2, 2))
		return 0;
	if ((code16(pc - 2) & 0xfff0) == 0x0de0)	/* basr %r14,Rn */
		return 1;
	if (pc - ctx->code_lo >= 6 && code16(pc - 6) == 0xc0e5)	/* brasl %r14 */
		return 1;
	return pc - ctx->code_lo >= 4 && code16(pc - 4) == 0xa7e5; /* bras %r14 */
}

#elif defined(__i386__) || defined(__x86_64__)

INLINE uint32_t code8(uintptr_t at)
{
	return *(const uint8_t *)at;
}

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uintptr_t room = pc - ctx->code_lo;
	unsigned n, modrm, length;

	if (pc < ctx->code_lo || pc > ctx->code_hi)
		return 0;
	if (room >= 5 && code8(pc - 5) == 0xe8)		/* call rel32 */
		return 1;
	for (n = 2; n <= 7 && n <= room; n++) {		/* call r/m: ff /2 */
		if (code8(pc - n) != 0xff || (code8(pc - n + 1) & 0x38) != 0x10)
			continue;
		modrm = code8(pc - n + 1);
		length = 2;
		if (modrm < 0xc0 && (modrm & 7) == 4)
			length += modrm < 0x40 && n > 2 && (code8(pc - n + 2) & 7) == 5 ? 5u : 1u;
		if (modrm >= 0x40 && modrm < 0x80)
			length += 1;
		else if ((modrm >= 0x80 && modrm < 0xc0) || (modrm < 0x40 && (modrm & 7) == 5))
			length += 4;
		if (length == n)
			return 1;
	}
	return 0;
}

#else
#define NO_CALLS	/* capture functions that need after_call are left out */
#endif

/* A return address without its authentication code. */
#if defined(__aarch64__)
#define stripped strip_pac
#else
#define stripped(ra) (ra)
#endif

#endif
