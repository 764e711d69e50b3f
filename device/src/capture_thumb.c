/*
 * capture_thumb.c: walks the stack of Thumb and Thumb-2 code (Cortex-M, and Arm
 * in Thumb state) by reading prologues.
 */
#include "capture_code.h"

#if defined(__thumb__)

#define STEP 2u
#define MODE 1u
#define REGISTERS 16u
#define DELAY 0
#include "capture_prologue.h"

enum { FP = 7, LR = 14 };	/* r7 is the frame pointer of Thumb code */

static unsigned ones(uint32_t v)
{
	unsigned n = 0;

	for (; v != 0; v &= v - 1)
		n++;
	return n;
}

/* The constant of i:imm3:imm8 in the halves of a 32-bit instruction. No prologue
 * has the patterns that repeat a byte. */
static intptr_t modified(uint32_t h, uint32_t h2)
{
	uint32_t v = field(h2, 0, 8), r = field(h, 10, 1) << 4 | field(h2, 12, 3) << 1 | v >> 7;

	if (r < 8)
		return (intptr_t)v;
	v |= 0x80;
	return (intptr_t)(v >> r | v << (32 - r));
}

/* push of the registers in list, of which lr is bit 14 */
static void push(struct prologue *p, uint32_t list)
{
	p->sp -= 4 * (intptr_t)ones(list);
	if (list & 1u << FP)
		save_fp(p, 4 * (intptr_t)ones(list & ((1u << FP) - 1)));
	if (list & 1u << LR)
		save_ra(p, 4 * (intptr_t)ones(list & ((1u << LR) - 1)));
}

static void store(struct prologue *p, uint32_t reg, intptr_t off)
{
	if (reg == LR)
		save_ra(p, off);
	if (reg == FP)
		save_fp(p, off);
}

static void literal(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uint32_t off,
	uint32_t reg, struct prologue *p)
{
	at = ((at + 4) & ~(uintptr_t)3) + off;
	if (in_code(ctx, at, 4))
		load_const(p, reg, (intptr_t)code32(at));
}

static void decode16(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uint32_t h,
	struct prologue *p)
{
	switch (h >> 8) {
	case 0xb4:			/* push */
	case 0xb5:			/* push, and lr */
		push(p, (h & 0xff) | (h & 0x100) << 6);
		return;
	case 0xb0:			/* sub sp, sp, #imm7 * 4 */
		if (h & 0x80)
			p->sp -= 4 * (intptr_t)(h & 0x7f);
		return;
	case 0xaf:			/* add r7, sp, #imm8 * 4 */
		set_fp(p, 4 * (intptr_t)(h & 0xff));
		return;
	case 0x44:			/* add sp, Rm */
		if ((h & 0x87) == 0x85)
			add_reg(p, field(h, 3, 4), 1);
		return;
	case 0x46:			/* mov r7, sp; mov sp, Rm */
		if (h == 0x466f)
			set_fp(p, 0);
		else if ((h & 0x87) == 0x85)
			p->has |= DYNAMIC;
		return;
	case 0x47:			/* bx, blx */
	case 0xb1: case 0xb3: case 0xb9: case 0xbb: /* cbz, cbnz */
	case 0xbd:			/* pop, and pc */
		p->has |= FLOW;
		return;
	}
	if (h >> 11 == 0x9)		/* ldr Rt, [pc, #imm8 * 4] */
		literal(ctx, at, 4 * (h & 0xff), field(h, 8, 3), p);
	else if (h >> 12 == 0xd || h >> 11 == 0x1c) /* b<c>, svc, b */
		p->has |= FLOW;
}

static void decode32(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uint32_t h, uint32_t h2,
	struct prologue *p)
{
	uint32_t rd = field(h2, 8, 4), imm12;

	if (h >> 11 == 0x1e && (h2 & 0x8000)) {	/* branches; not msr, mrs and hints */
		if ((h2 & 0x5000) != 0 || (h & 0x380) != 0x380)
			p->has |= FLOW;
		return;
	}
	imm12 = field(h, 10, 1) << 11 | field(h2, 12, 3) << 8 | (h2 & 0xff);
	switch (h >> 11 == 0x1e ? h & 0xfbff : h) {	/* less i, bit 10 */
	case 0xe92d:			/* stmdb sp!, {...} */
		push(p, h2);
		return;
	case 0xe8bd:			/* ldmia sp!, {..., pc} */
		if (h2 & 0x8000)
			p->has |= FLOW;
		return;
	case 0xe8d0: case 0xe8d1: case 0xe8d2: case 0xe8d3: /* tbb, tbh */
	case 0xe8df:
		p->has |= FLOW;
		return;
	case 0xf84d:			/* str Rt, [sp, #-imm8]! */
		if ((h2 & 0xf00) == 0xd00) {
			p->sp -= (intptr_t)(h2 & 0xff);
			store(p, h2 >> 12, 0);
		}
		return;
	case 0xf8cd:			/* str Rt, [sp, #imm12] */
		store(p, h2 >> 12, (intptr_t)(h2 & 0xfff));
		return;
	case 0xe96d:			/* strd Rt, Rt2, [sp, #-imm8 * 4]! */
		p->sp -= 4 * (intptr_t)(h2 & 0xff);
		store(p, h2 >> 12, 0);
		store(p, rd, 4);
		return;
	case 0xe9cd:			/* strd Rt, Rt2, [sp, #imm8 * 4] */
		store(p, h2 >> 12, 4 * (intptr_t)(h2 & 0xff));
		store(p, rd, 4 * (intptr_t)(h2 & 0xff) + 4);
		return;
	case 0xf8df:			/* ldr Rt, [pc, #imm12] */
		literal(ctx, at, h2 & 0xfff, h2 >> 12, p);
		return;
	case 0xebad:			/* sub sp, sp, Rm */
	case 0xeb0d:			/* add sp, sp, Rm */
		if (rd == 13)
			add_reg(p, (h2 & 0xf0f0) ? REGISTERS : h2 & 15, h == 0xebad ? -1 : 1);
		return;
	case 0xf1ad:			/* sub.w sp, sp, #const */
		if (rd == 13)
			p->sp -= modified(h, h2);
		return;
	case 0xf2ad:			/* subw sp, sp, #imm12 */
		if (rd == 13)
			p->sp -= (intptr_t)imm12;
		return;
	case 0xf10d:			/* add.w r7, sp, #const */
		if (rd == FP)
			set_fp(p, modified(h, h2));
		return;
	case 0xf20d:			/* addw r7, sp, #imm12 */
		if (rd == FP)
			set_fp(p, (intptr_t)imm12);
		return;
	case 0xf04f:			/* mov.w Rd, #const */
		load_const(p, rd, modified(h, h2));
		return;
	}
	if ((h & 0xffbf) == 0xed2d) {	/* vpush: imm8 counts words, also of doubles */
		p->sp -= 4 * (intptr_t)(h2 & 0xff);
		return;
	}
	imm12 |= (h & 15) << 12;
	if ((h & 0xfbf0) == 0xf240)	/* movw */
		load_const(p, rd, (intptr_t)imm12);
	else if ((h & 0xfbf0) == 0xf2c0 && has_const(p, rd)) /* movt */
		p->value[rd] = (p->value[rd] & 0xffff) | (intptr_t)(imm12 << 16);
	else if ((h2 & 0xff80) == 0x0d00 && (h & 0xffe0) == 0xeba0)
		p->has |= DYNAMIC;	/* sub sp, Rn, Rm */
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t h = code16(at);

	if (h < 0xe800) {
		decode16(ctx, at, h, p);
		return 2;
	}
	if (end - at >= 4)
		decode32(ctx, at, h, code16(at + 2), p);
	return 4;
}

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

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if (h >> 8 == 0xb5)		/* push, and lr */
		return !second(ctx, at);
	if ((h != 0xe92d && h != 0xf84d) || !in_code(ctx, at, 4))
		return 0;
	/* stmdb sp!, with lr, neither sp nor pc; str lr, [sp, #-n]! */
	return h == 0xe92d ? (code16(at + 2) & 0xe000) == 0x4000 : (code16(at + 2) & 0xff00) == 0xed00;
}

/*
 * A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them: push {rN-r3}, or sub sp, #4 to #16. Other instructions may
 * stand between that and its push of lr, but none that ends a function.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t h;

	for (back = 2; back <= 20 && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if (h == 0xb40f || h == 0xb40e || h == 0xb40c || h == 0xb408 ||
		    (h >= 0xb081 && h <= 0xb084))
			first = at - back;
		else if (h == 0x4770 || h >> 8 == 0xbd || h >> 11 == 0x1c)
			break;		/* bx lr, pop with pc, b */
	}
	return first;
}

static int returns_to(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	return (ra & 1) && after_call(ctx, ra - 1) ? RETURN : NOT_RETURN;
}

NOINLINE size_t lwsbt_capture_thumb(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* lr among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, r7" : "=&r"(f.sp), "=r"(f.fp) : : "lr", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_thumb);
}

#endif
