/*
 * capture_arm.c: walks the stack of 32-bit Arm code, in Arm state, by reading
 * prologues. A caller in Thumb state is recorded, and ends the walk.
 */
#include "capture_code.h"

#if defined(__arm__) && !defined(__thumb__)

#define STEP 4u
#define MODE 1u
#define CALLS 0u
#define REGISTERS 16u
#define DELAY 0
#define RA 14u
#define FP 11u
#define OTHER_MODES	/* Thumb */
#include "capture_prologue.h"

static unsigned ones(uint32_t v)
{
	unsigned n = 0;

	for (; v != 0; v &= v - 1)
		n++;
	return n;
}

/* An 8-bit constant, rotated right by twice bits 8 to 11. */
static intptr_t rotated(uint32_t w)
{
	uint32_t v = w & 0xff, r = 2 * field(w, 8, 4);

	return (intptr_t)(r == 0 ? v : v >> r | v << (32 - r));
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rn = field(w, 16, 4), rd = field(w, 12, 4);
	uintptr_t literal;
	uint32_t list;

	(void)end;
	if ((w & 0xff800000) == 0x1a800000)	/* bne back: a loop that probes a large frame */
		return 4;
	/* Branches of any condition; to pc: bx, blx, ldr, ldm, mov */
	if ((w & 0x0e000000) == 0x0a000000 || (w & 0x0fffffd0) == 0x012fff10 ||
	    (w & 0x0c10f000) == 0x0410f000 || (w & 0x0e108000) == 0x08108000 ||
	    (w & 0x0deff000) == 0x01a0f000)
		p->has |= FLOW;
	if (w >> 28 != 0xe)
		return 4;
	if ((w & 0xffff0000) == 0xe92d0000) {			/* stmdb sp!, {...} */
		list = w & 0xffff;
		p->sp -= 4 * (intptr_t)ones(list);
		if (list & 1u << FP)
			save_fp(p, 4 * (intptr_t)ones(list & ((1u << FP) - 1)));
		if (list & 1u << RA)
			save_ra(p, 4 * (intptr_t)ones(list & ((1u << RA) - 1)));
	} else if ((w & 0xffff0000) == 0xe52d0000) {		/* str Rd, [sp, #-imm12]! */
		p->sp -= (intptr_t)(w & 0xfff);
		store(p, rd, 0);
	} else if ((w & 0xffff0000) == 0xe58d0000) {		/* str Rd, [sp, #imm12] */
		store(p, rd, (intptr_t)(w & 0xfff));
	} else if ((w & 0xffff00f0) == 0xe16d00f0) {		/* strd Rd, [sp, #-imm8]! */
		p->sp -= (intptr_t)(field(w, 8, 4) << 4 | (w & 15));
		store(p, rd, 0);
		store(p, rd + 1, 4);
	} else if ((w & 0xffff00f0) == 0xe1cd00f0) {		/* strd Rd, [sp, #imm8] */
		store(p, rd, (intptr_t)(field(w, 8, 4) << 4 | (w & 15)));
		store(p, rd + 1, (intptr_t)(field(w, 8, 4) << 4 | (w & 15)) + 4);
	} else if ((w & 0xffbf0e00) == 0xed2d0a00) {		/* vpush; imm8 counts words */
		p->sp -= 4 * (intptr_t)(w & 0xff);
	} else if ((w & 0xfffff000) == 0xe24dd000) {		/* sub sp, sp, #const */
		p->sp -= rotated(w);
	} else if ((w & 0xfffff000) == 0xe28db000) {		/* add fp, sp, #const */
		set_fp(p, rotated(w));
	} else if (w == 0xe1a0b00d) {				/* mov fp, sp */
		set_fp(p, 0);
	} else if ((w & 0xfffff000) == 0xe24cb000) {		/* sub fp, ip, #const: */
		if (!(p->has & SETS_FP))			/* ip is sp at entry (APCS) */
			p->frame = -rotated(w);
		p->has |= SETS_FP;
	} else if ((w & 0xfffffff0) == 0xe04dd000 || (w & 0xfffffff0) == 0xe08dd000) {
		add_reg(p, w & 15, (w & 0x00800000) ? 1 : -1);	/* sub, add sp, sp, Rm */
	} else if ((w & 0xfffff000) == 0xe28dd000) {		/* add sp, sp, #const: an epilogue */
		return 4;
	} else if (w == 0xe1a0d00b || (w & 0xfffff000) == 0xe24bd000) {
		return 4;		/* mov sp, fp; sub sp, fp, #const: an epilogue */
	} else if ((w & 0x0c00f000) == 0x0000d000 && (w & 0x0e000090) != 0x00000090 &&
		   field(w, 23, 2) != 2) {
		p->has |= DYNAMIC;				/* other arithmetic into sp */
	} else if ((w & 0xffeff000) == 0xe1a0d000 || (w & 0x0fe0f000) == 0x03c0d000 ||
		   (w & 0xffe0f07f) == 0xe7c0d01f) {
		p->has |= DYNAMIC;		/* mov sp, Rm; bic sp, Rn, #; bfc sp, # */
	} else if ((w & 0xfff00000) == 0xe3000000) {		/* movw */
		load_const(p, rd, (intptr_t)(rn << 12 | (w & 0xfff)));
	} else if ((w & 0xfff00000) == 0xe3400000) {		/* movt */
		if (has_const(p, rd))
			p->value[rd] = (p->value[rd] & 0xffff) | (intptr_t)((rn << 12 | (w & 0xfff)) << 16);
	} else if ((w & 0xffff0000) == 0xe3a00000) {		/* mov Rd, #const */
		load_const(p, rd, rotated(w));
	} else if ((w & 0xffff0000) == 0xe3e00000) {		/* mvn Rd, #const */
		load_const(p, rd, ~rotated(w));
	} else if ((w & 0xffff0000) == 0xe59f0000) {		/* ldr Rd, [pc, #imm12] */
		literal = at + 8 + (w & 0xfff);
		if (in_code(ctx, literal, 4))
			load_const(p, rd, (intptr_t)code32(literal & ~(uintptr_t)3));
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t w = code32(at);

	(void)ctx;
	/* stmdb sp!, with lr; str lr, [sp, #-n]! */
	return (w & 0xffff6000) == 0xe92d4000 || (w & 0xfffff000) == 0xe52de000;
}

/* A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them; other instructions may stand between. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t w;

	for (back = 4; back <= 40 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if (w == 0xe92d000f || w == 0xe92d000e || w == 0xe92d000c || w == 0xe52d3004 ||
		    w == 0xe24dd004 || w == 0xe24dd008 || w == 0xe24dd00c || w == 0xe24dd010)
			first = at - back;
		else if ((w & 0xfe000000) == 0xea000000 || (w & 0xffffffd0) == 0xe12fff10 ||
			 (w & 0xfe108000) == 0xe8108000 || (w & 0xfc10f000) == 0xe410f000)
			break;		/* b, bl, bx, blx, ldm and ldr of pc */
	}
	return first;
}

#endif

/* Reports whether ra is that of a call by Thumb code: blx Rm, bl, blx */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	uint32_t h;

	if (ra % 2 == 0 || !in_code(ctx, ra - 5, 4))
		return 0;
	h = code16(ra - 3);
	return (h & 0xff87) == 0x4780 || ((h & 0xc000) == 0xc000 && code16(ra - 5) >> 11 == 0x1e);
}

NOINLINE size_t lwsbt_capture_arm(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* lr among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, r11" : "=&r"(f.sp), "=r"(f.fp) : : "lr", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_arm);
}

#endif
