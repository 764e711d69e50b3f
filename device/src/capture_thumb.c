/*
 * capture_thumb.c: walks the stack of Thumb and Thumb-2 code (Cortex-M, and Arm
 * in Thumb state) by reading prologues.
 */
#include "capture_code.h"

#if defined(__thumb__)

#define STEP 2u
#define MODE 1u
#define CALLS 1u
#define REGISTERS 16u
#define DELAY 0
#define RA 14u
#define FP 7u	/* of Thumb code */
#include "capture_prologue.h"

/* Of Armv6-M, bl alone has two halfwords, but for barriers and accesses of special registers.
 * Armv8-M's baseline, which calls itself Thumb, has movw and movt. */
#if __ARM_ARCH_ISA_THUMB == 1 && !defined(__ARM_ARCH_8M_BASE__)
#define THUMB2 0
#else
#define THUMB2 1
#endif

/* What the instructions of a prologue do, and what their constant is. */
enum {
	NOTHING, BRANCHES, PUSHES, STORES, LOWERS, LOWERS_BY, RAISES_BY, MAKES_FP, MOVES_SP,
	LOADS, LOADS_TOP, FROM_CODE
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
	{0xf800, 0x4800, FROM_CODE, WORDS8},	/* ldr Rt, [pc, #imm8 * 4] */
	{0xffff, 0x466f, MAKES_FP, NONE},	/* mov r7, sp */
	{0xff87, 0x4685, MOVES_SP, NONE},	/* mov sp, Rm */
	{0xff00, 0x4600, NOTHING, NONE},	/* other mov */
	{0xfe00, 0xb400, PUSHES, NONE},		/* push; bit 8: and lr */
	{0xff80, 0xb080, LOWERS, WORDS7},	/* sub sp, #imm7 * 4 */
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
	{0xffff, 0xf8df, FROM_CODE, NONE},	/* ldr Rt, [pc, #imm12] */
	{0xff00, 0xf800, NOTHING, NONE},	/* other loads and stores */
	{0xfbff, 0xf1ad, LOWERS, MODIFIED},	/* sub.w sp, sp, #const */
	{0xfbff, 0xf2ad, LOWERS, IMM12},	/* subw sp, sp, #imm12 */
	{0xfbff, 0xf10d, MAKES_FP, MODIFIED},	/* add.w r7, sp, #const */
	{0xfbff, 0xf20d, MAKES_FP, IMM12},	/* addw r7, sp, #imm12 */
	{0xfbef, 0xf04f, LOADS, MODIFIED},	/* mov.w Rd, #const */
	{0xfbf0, 0xf240, LOADS, IMM16},		/* movw */
	{0xfbf0, 0xf2c0, LOADS_TOP, IMM16},	/* movt */
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

/* push of the registers in list, of which lr is bit 14: the highest comes to the
 * highest address */
static void push(struct prologue *p, uint32_t list)
{
	unsigned reg;

	for (reg = RA; list != 0; list &= ~((uint32_t)1 << reg--)) {
		if (!(list >> reg & 1))
			continue;
		p->sp -= 4;
		store(p, reg, 0);
	}
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	const struct form *f = forms;
	uint32_t h = code16(at), h2 = 0, v;
	unsigned rd = field(h, 8, 3), rm = field(h, 3, 4), n = 2;

	/* Most are none of these: mov, add, cmp; stores, loads, add Rd, sp */
	if (h < 0x4400 || (h >= 0x5000 && h < 0xaf00))
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
		if (!THUMB2)
			return n;
		f += WIDE;
		rd = field(h2, 8, 4);
		rm = h2 & 0xf0f0 ? REGISTERS : h2 & 15;
	}
	while ((h & f->mask) != f->bits)
		f++;
	v = f->constant == NONE ? 0 : constant(f->constant, h, h2);
	if (!THUMB2)
		n = 2;
	switch (f->does) {
	case BRANCHES:
		p->has |= FLOW;
		break;
	case PUSHES:
		push(p, n == 4 ? h2 & 0x7fff : (h & 0xff) | (h & 0x100) << 6);
		break;
#if THUMB2
	case STORES:
		if ((h2 & 0xf00) == 0xd00) {	/* pre-indexed, down */
			p->sp -= (intptr_t)v - 4;
			push(p, (uint32_t)1 << (h2 >> 12) & 0x7fff);
		}
		break;
#endif
	case LOWERS:
		if (n == 2 || rd == 13 || f->constant == WORDS)
			p->sp -= (intptr_t)v;
		break;
	case LOWERS_BY:
	case RAISES_BY:
		if (n == 2 || rd == 13)
			add_reg(p, rm, f->does == LOWERS_BY ? -1 : 1);
		break;
	case MAKES_FP:
		if (n == 2 || rd == FP)
			set_fp(p, (intptr_t)v);
		break;
	case MOVES_SP:
		p->has |= DYNAMIC;
		break;
#if THUMB2
	case LOADS:
		load_const(p, rd, (intptr_t)v);
		break;
	case LOADS_TOP:
		p->value[rd] = (intptr_t)(((uint32_t)p->value[rd] & 0xffff) | v << 16);
		break;
#endif
	case FROM_CODE:
		at = ((at + 4) & ~(uintptr_t)3) + (n == 4 ? h2 & 0xfff : v);
		if (in_code(ctx, at, 4))
			load_const(p, n == 4 ? h2 >> 12 : rd, (intptr_t)code32(at));
		break;
	}
	return n;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

/*
 * second reports whether the halfword at address at, 0xb5xx, is the second of an
 * instruction. One below 0xe800 ends an instruction, whichever half it is; those
 * from there on begin one, or are the second of one, in turns. Constants before
 * a function upset this; only b.w, and loads and stores of r11, can end so.
 */
static int second(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n = 0;

	if (!in_code(ctx, at - 2, 2) || code16(at - 2) >= 0xf900)
		return 0;
	while (n < 64 && in_code(ctx, at - 2 * (n + 1), 2) && code16(at - 2 * (n + 1)) >= 0xe800)
		n++;
	return n % 2 != 0;
}

/* Reports whether at address at stands what is in no prologue before lr is saved: bx, pop
 * with pc, b; a call, or b.w. One of variable arguments pops its return address to another
 * register than lr. */
static int ends(uintptr_t at)
{
	uint32_t h = code16(at), h2 = code16(at + 2);

	if (THUMB2 && ((h == 0xe8bd && (h2 & 0x8000)) || (h == 0xf85d && h2 >> 12 == 15)))
		return 1;			/* ldmia sp!, with pc; ldr pc, [sp], #n */
	return (h & 0xff07) == 0x4700 || h >> 8 == 0xbd || h >> 11 == 0x1c ||
		(h >> 11 == 0x1e && (h2 & 0x9000) == 0x9000);
}

/* How far back from the instruction that saves the return address others of its prologue
 * are, in bytes. */
#define PROLOGUE 40

/*
 * pushes_high reports whether the push with lr at address at saves another register in
 * it. Of Armv6-M, push cannot name r8 to r11: they are moved to others first, of
 * which lr may be one, after it was saved. Other instructions may stand between.
 */
static int pushes_high(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back;
	uint32_t h;

	for (back = 2; back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if ((h & 0xffc7) == 0x46c6)	/* mov lr, r8 to r15 */
			return 1;
		if (h >> 9 == 0x5a || ends(at - back))	/* another push */
			break;
	}
	return 0;
}

/* How far ahead of it an instruction loads a constant, in bytes. */
#define LITERAL (THUMB2 ? 4096u : 1024u)

/*
 * is_constant reports whether the halfword at address at is of a constant: whether an
 * instruction before it loads its word. Constants stand behind a function, right
 * before the next. One may itself look like such an instruction: so in doubt, what
 * loads must not be loaded.
 */
static int is_constant(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int doubt)
{
	uintptr_t word = at & ~(uintptr_t)3, load, from;
	uint32_t h, size;

	for (load = word - 4; word - load <= LITERAL && in_code(ctx, load, 4); load -= 2) {
		h = code16(load);
		from = 4 * (h & 0xff);
		size = 4;
#if THUMB2
		if (h == 0xf8df) {			/* ldr Rt, [pc, #imm12] */
			from = code16(load + 2) & 0xfff;
		} else if ((h & 0xfbbf) == 0xe99f) {	/* ldrd, vldr: [pc, #imm8 * 4] */
			from = 4 * (code16(load + 2) & 0xff);
			size = 8;			/* of one word or two */
		} else if (h >> 11 == 0x14 && !second(ctx, load)) {
			size = 8;			/* adr Rd, [pc, #imm8 * 4]: for an ldrd */
		} else
#endif
		if (h >> 11 != 9)			/* ldr Rt, [pc, #imm8 * 4] */
			continue;
		if (word - ((load + 4) & ~(uintptr_t)3) - from < size &&
		    !(doubt && is_constant(ctx, load, 0)))
			return 1;
	}
	return 0;
}

/*
 * is_address reports whether the word at address at is one of code or constants, not two
 * instructions: those of a switch are near, and odd; of others, is_constant is asked.
 */
static int is_address(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t to;

	if (at % 4 != 0 || !in_code(ctx, at, 4))
		return 0;
	to = code32(at);
	return in_code(ctx, to, 1) &&
		((to % 2 != 0 && to - at + 4096 < 8192) || is_constant(ctx, at, 1));
}

/* Of the constants within a function, those that look like a push and are addresses are
 * recognised. To look up all would take long. */
static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if (h >> 8 == 0xb5)		/* push, and lr */
		return !is_address(ctx, at) && !(THUMB2 && second(ctx, at)) && !pushes_high(ctx, at);
	if (!THUMB2)
		return 0;
	if ((h != 0xe92d && h != 0xf84d) || !in_code(ctx, at, 4))
		return 0;
	/* stmdb sp!, with lr, neither sp nor pc; str lr, [sp, #-n]! */
	return h == 0xe92d ? (code16(at + 2) & 0xe000) == 0x4000 : (code16(at + 2) & 0xff00) == 0xed00;
}

/*
 * A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them: push {rN-r3}, or sub sp, #4 to #16. Other instructions may
 * stand between that and its push of lr, but none that ends a function, and no constant
 * of the function before.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t h;

	for (back = 2; back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if (h == 0xb40f || h == 0xb40e || h == 0xb40c || h == 0xb408 ||
		    (h >= 0xb081 && h <= 0xb084)) {
			/* a word that at is in is no constant: tables, too, look like loads */
			if ((at - back) / 4 != at / 4 && is_constant(ctx, at - back, 1))
				break;
			first = at - back;
		} else if (ends(at - back))
			break;
	}
	return first;
}

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
