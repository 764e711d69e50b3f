/*
 * capture_thumb.c: walks the stack of Thumb and Thumb-2 code (Cortex-M, and Arm
 * in Thumb state) by reading prologues.
 */
#include "capture_code.h"

#if defined(__thumb__)

#define STEP 2u
#define MODE 1u
#define CALLS 1u
#define REGISTERS 0	/* constants are looked for where they are used */
#define DELAY 0
#define RA 14u
#define FP 7u	/* of Thumb code */
#define OWN_SEARCH
#define MAY_SAVE_RA(ctx, at) may_save_ra(code16(at))
#define PLAIN(at) plain(code16(at))
/* A Cortex-M enters a handler with a mark in lr, and what it interrupted on a stack. */
#if LWSBT_EXCEPTIONS && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define EXCEPTIONS
#endif
#ifdef __ARM_ARCH_ISA_ARM
#define OTHER_MODES	/* Arm */
#endif

/* Reports whether an instruction is one of most, which matter not: mov, add, cmp, of r0 to r7;
 * stores, loads, adr, add Rd, sp */
INLINE int plain(uint32_t h)
{
	return h < 0x4400 || h - 0x4800 < 0x6700;
}

/* Reports whether an instruction may save lr, by its first halfword. */
INLINE int may_save_ra(uint32_t h)
{
	return h >> 8 == 0xb5 || h == 0xe92d || h == 0xf84d;
}

#include "capture_prologue.h"

/* Of Armv6-M, bl alone has two halfwords, but for barriers and accesses of special registers.
 * Armv8-M's baseline, which calls itself Thumb, has movw and movt. */
#if __ARM_ARCH_ISA_THUMB == 1
#define THUMB1 1
#else
#define THUMB1 0
#endif
#if THUMB1 && !defined(__ARM_ARCH_8M_BASE__)
#define THUMB2 0
#else
#define THUMB2 1
#endif

/* What the instructions of a prologue do, and what their constant is. */
enum {
	NOTHING, BRANCHES, PUSHES, STORES, LOWERS, LOWERS_BY, RAISES_BY, MAKES_FP, MOVES_SP
};
enum { NONE, WORDS7, WORDS8, WORDS, BYTES8, MODIFIED, IMM12, IMM16 };

/*
 * The instructions that matter, by their first halfword: (halfword & mask) == bits.
 * The first that matches counts.
 */
static const struct form {
	uint16_t mask, bits;
	uint8_t does, constant;
} forms[] = {
	{0xfe00, 0xb400, PUSHES, NONE},		/* push; bit 8: and lr */
	{0xff80, 0xb080, LOWERS, WORDS7},	/* sub sp, #imm7 * 4 */
	{0xffff, 0x466f, MAKES_FP, NONE},	/* mov r7, sp */
	{0xffff, 0x46bd, NOTHING, NONE},	/* mov sp, r7: an epilogue */
	{0xff87, 0x4685, MOVES_SP, NONE},	/* mov sp, Rm */
	{0xff00, 0x4600, NOTHING, NONE},	/* other mov */
	{0xf500, 0xb100, BRANCHES, NONE},	/* cbz, cbnz */
	{0xff80, 0xd180, NOTHING, NONE},	/* bne back: a loop that probes a large frame */
	{0xf000, 0xd000, BRANCHES, NONE},	/* b<c>, svc */
	{0xf800, 0xe000, BRANCHES, NONE},	/* b */
	{0xff00, 0xbd00, BRANCHES, NONE},	/* pop, and pc */
	{0xff00, 0x4700, BRANCHES, NONE},	/* bx, blx */
	{0xff00, 0xaf00, MAKES_FP, WORDS8},	/* add r7, sp, #imm8 * 4 */
	{0xff87, 0x4485, RAISES_BY, NONE},	/* add sp, Rm */
	{0, 0, NOTHING, NONE},
#if THUMB2
	{0xffff, 0xe92d, PUSHES, NONE},		/* stmdb sp!, {...} */
	{0xffff, 0xf84d, STORES, BYTES8},	/* str Rt, [sp, #-imm8]! */
	{0xff00, 0xf800, NOTHING, NONE},	/* other loads and stores */
	{0xfbff, 0xf1ad, LOWERS, MODIFIED},	/* sub.w sp, sp, #const */
	{0xfbff, 0xf2ad, LOWERS, IMM12},	/* subw sp, sp, #imm12 */
	{0xfbff, 0xf10d, MAKES_FP, MODIFIED},	/* add.w r7, sp, #const */
	{0xfbff, 0xf20d, MAKES_FP, IMM12},	/* addw r7, sp, #imm12 */
	{0xffbf, 0xed2d, LOWERS, WORDS},	/* vpush: counted in words, also of doubles */
	{0xffff, 0xebad, LOWERS_BY, NONE},	/* sub sp, sp, Rm */
	{0xffff, 0xeb0d, RAISES_BY, NONE},	/* add sp, sp, Rm */
	{0xfff0, 0xe8d0, BRANCHES, NONE},	/* tbb, tbh */
	{0, 0, NOTHING, NONE}
#endif
};
#define WIDE 15		/* the first form of two halfwords */

/* The constant of an instruction; a modified one that repeats a byte is in no
 * prologue. */
static uint32_t constant(unsigned kind, uint32_t h, uint32_t h2)
{
#if THUMB2
	uint32_t v = field(h, 10, 1) << 11 | field(h2, 12, 3) << 8 | (h2 & 0xff), r = v >> 7;
#else
	(void)h2;
#endif

	switch (kind) {
	case WORDS7:
		return 4 * (h & 0x7f);
	case WORDS8:
		return 4 * (h & 0xff);
#if THUMB2
	case WORDS:
		return 4 * (h2 & 0xff);
	case BYTES8:
		return h2 & 0xff;
	case IMM12:
		return v;
	case IMM16:
		return v | (h & 15) << 12;
	case MODIFIED:
		if (r < 8)
			return v & 0xff;
		v = (v & 0xff) | 0x80;
		return v >> r | v << (32 - r);
#endif
	}
	return 0;
}

/* The size of the registers in list, on the stack. */
INLINE intptr_t size_of(uint32_t list)
{
	intptr_t n = 0;

	for (; list != 0; list &= list - 1)
		n += 4;
	return n;
}

/* push of the registers in list, of which lr is bit 14: the highest comes to the
 * highest address */
INLINE void push(struct prologue *p, uint32_t list)
{
	if (list >> RA & 1)
		save_ra(p, -4);
	p->sp -= size_of(list);
	if (list >> FP & 1)
		save_fp(p, size_of(list & ((1u << FP) - 1)));
}

/* The length of the instruction that begins with a halfword. */
INLINE uintptr_t length(uint32_t h)
{
	return h >= 0xe800 ? 4 : 2;
}

/*
 * constant_in returns the constant that the instructions from where p starts to address at leave in
 * register reg, for frames that are too large for others: from memory, or by movw and
 * movt. If there is none, p is DYNAMIC.
 */
NOINLINE static uint32_t constant_in(const struct lwsbt_capture_ctx *ctx, struct prologue *p,
	uintptr_t at, unsigned reg)
{
	uintptr_t from, start;
	uint32_t h, h2, v = 0;
	int found = 0;

	for (start = p->start; start < at; start += length(h)) {
		h = code16(start);
		h2 = 0;
		from = 4 * (h & 0xff);
		if (h >> 11 != 9 || field(h, 8, 3) != reg) {
			if (!THUMB2 || h < 0xf000 || at - start < 4)
				continue;
			h2 = code16(start + 2);
			if ((h & 0xfbef) == 0xf04f && field(h2, 8, 4) == reg) {		/* mov.w */
				v = constant(MODIFIED, h, h2);
				found = 1;
			}
			if ((h & 0xfb70) == 0xf240 && field(h2, 8, 4) == reg) {	/* movw, movt */
				v = h & 0x80 ? (v & 0xffff) | constant(IMM16, h, h2) << 16 : constant(IMM16, h, h2);
				found = 1;
			}
			if (h != 0xf8df || h2 >> 12 != reg)	/* ldr.w Rt, [pc, #imm12] */
				continue;
			from = h2 & 0xfff;
		}
		from += (start + 4) & ~(uintptr_t)3;
		found = in_code(ctx, from, 4);
		if (found)
			v = code32(from);
	}
	if (!found)
		p->has |= DYNAMIC;
	return v;
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	const struct form *f = forms;
	uint32_t h = code16(at), h2 = 0, v;
	unsigned rd = 0, rm = field(h, 3, 4), n = 2;

	if (plain(h))
		return n;
	if (h >= 0xe800) {
		n = 4;
		if (end - at < 4)
			return n;
		h2 = code16(at + 2);
		if (h >> 11 == 0x1e && (h2 & 0x8000)) {
			/* branches; not msr, mrs and hints */
			if ((h2 & 0x5000) != 0 || (h & 0x380) != 0x380)
				p->has |= FLOW;
			return n;
		}
		/* loads and stores but of one register, and floating point, matter not */
		if (!THUMB2 || (h >> 9 == 0x7c && h != 0xf84d))
			return n;
		f += WIDE;
		rd = field(h2, 8, 4);
		rm = h2 & 0xf0f0 ? 16u : h2 & 15;
	}
	while ((h & f->mask) != f->bits)
		f++;
	v = f->constant == NONE ? 0 : constant(f->constant, h, h2);
	switch (f->does) {
	case BRANCHES:
		p->has |= FLOW;
		break;
#if THUMB2
	case STORES:
		if ((h2 & 0xf00) != 0xd00)	/* not pre-indexed, down */
			break;
		p->sp -= (intptr_t)v - 4;
		h2 = (uint32_t)1 << (h2 >> 12);
#endif
		/* fall through */
	case PUSHES:
		push(p, n == 4 ? h2 & 0x7fff : (h & 0xff) | (h & 0x100) << 6);
		break;
	case LOWERS:
		if (n == 2 || rd == 13 || f->constant == WORDS)
			p->sp -= (intptr_t)v;
		break;
	case LOWERS_BY:
	case RAISES_BY:
		if (n == 4 && rd != 13)
			break;
		if (p->has & BEHIND) {
			p->has |= f->does == LOWERS_BY ? DYNAMIC : 0;
			break;
		}
		v = constant_in(ctx, p, at, rm);
		p->sp += (intptr_t)(f->does == LOWERS_BY ? 0 - v : v);
		break;
	case MAKES_FP:
		if (n == 2 || rd == FP)
			set_fp(p, (intptr_t)v);
		break;
	case MOVES_SP:
		p->has |= DYNAMIC;
		break;
	}
	return n;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY
#include "capture_thumb_search.h"
#endif

#ifdef OTHER_MODES

/* Reports whether ra is that of a call by Arm code: bl, blx */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	uint32_t w;

	if (ra % 4 != 0 || !in_code(ctx, ra - 4, 4))
		return 0;
	w = code32(ra - 4);
	return (w & 0x0ffffff0) == 0x012fff30 || (w & 0xfe000000) == 0xfa000000;
}

#endif

#ifdef EXCEPTIONS
#include "capture_exception.h"
#endif

NOINLINE size_t lwsbt_capture_thumb(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* lr among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, r7" : "=&r"(f.sp), "=r"(f.fp) : : "lr", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_thumb);
}

#endif
