/*
 * capture_aarch64.c: walks the stack of AArch64 code by reading prologues.
 */
#include "capture_code.h"

#if defined(__aarch64__)

#define STEP 4u
#define MODE 0u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 0
#define RA 30u
#define FP 29u
#include "capture_prologue.h"

enum { SP = 31 };

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rd = field(w, 0, 5), rn = field(w, 5, 5), shift;
	intptr_t imm;

	(void)ctx;
	(void)end;
	if ((w & 0x7c000000) == 0x14000000 || (w & 0xff000000) == 0x54000000 ||
	    (w & 0x7c000000) == 0x34000000 || (w & 0xfe000000) == 0xd6000000) {
		p->has |= FLOW;		/* b, bl; b.c; cbz, cbnz, tbz, tbnz; br, blr, ret */
		return 4;
	}
	if ((w & 0x3a400000) == 0x28000000 && rn == SP) {	/* stp */
		/* opc:2 101 V:1 0 mode:2 0 imm:7 Rt2 Rn Rt */
		shift = (w & 0x04000000) ? 2 + (w >> 30) : 2 + (w >> 31);
		imm = extend(w >> 15, 7) * ((intptr_t)1 << shift);
		if (field(w, 23, 2) == 3)			/* pre-indexed */
			p->sp += imm;
		if (field(w, 23, 2) == 3 || field(w, 23, 2) == 1)
			imm = 0;				/* or post-indexed */
		if (!(w & 0x04000000)) {
			store(p, rd, imm);
			store(p, field(w, 10, 5), imm + ((intptr_t)1 << shift));
		}
	} else if ((w & 0xffe00fe0) == 0xf8000fe0) {		/* str Xt, [sp, #imm9]! */
		p->sp += extend(w >> 12, 9);
		store(p, rd, 0);
	} else if ((w & 0xffe00fe0) == 0xfc000fe0) {		/* str Dt, [sp, #imm9]! */
		p->sp += extend(w >> 12, 9);
	} else if ((w & 0xffc003e0) == 0xf90003e0) {		/* str Xt, [sp, #imm12 * 8] */
		store(p, rd, (intptr_t)field(w, 10, 12) * 8);
	} else if ((w & 0x7f800000) == 0x11000000 || (w & 0x7f800000) == 0x51000000) {
		/* add, sub Rd, Rn, #imm12, or shifted left by 12 */
		imm = (intptr_t)field(w, 10, 12) * ((w & 0x00400000) ? 4096 : 1);
		if (w & 0x40000000)
			imm = -imm;
		if (rd == SP && rn == SP)
			p->sp += imm < 0 ? imm : 0;
		else if (rd == SP)
			p->has |= DYNAMIC;
		else if (rd == FP && rn == SP)
			set_fp(p, imm);
	} else if ((w & 0xffe0fc00) == 0xcb206000 && rd == SP) {
		if (rn == SP)
			add_reg(p, field(w, 16, 5), -1);	/* sub sp, sp, Xm */
		else
			p->has |= DYNAMIC;
	} else if ((w & 0xff80001f) == 0x9200001f) {
		p->has |= DYNAMIC;				/* and sp, Xn, #: aligned */
	} else if ((w & 0x1f800000) == 0x12800000) {		/* movn, movz, movk */
		shift = 16 * field(w, 21, 2);
		imm = (intptr_t)field(w, 5, 16) << shift;
		switch (field(w, 29, 2)) {
		case 0:
			load_const(p, rd, ~imm);
			break;
		case 2:
			load_const(p, rd, imm);
			break;
		case 3:
			if (has_const(p, rd))
				p->value[rd] = (p->value[rd] & ~((intptr_t)0xffff << shift)) | imm;
			break;
		}
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t w = code32(at);

	(void)ctx;
	return (w & 0xfe407fff) == 0xa8007bfd ||	/* stp x29, x30, [sp...] */
		(w & 0xfe4003ff) == 0xa80003fe ||	/* stp x30, Xt2, [sp...] */
		(w & 0xfe407fe0) == 0xa8007be0 ||	/* stp Xt, x30, [sp...] */
		(w & 0xffe00fff) == 0xf8000ffe ||	/* str x30, [sp, #-n]! */
		(w & 0xffc003ff) == 0xf90003fe;		/* str x30, [sp, #n] */
}

/* The stack pointer is lowered before, by sub or by a store of other registers;
 * no jump stands between. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t w;

	for (back = 4; back <= 80 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if ((w & 0xff8003ff) == 0xd10003ff ||		/* sub sp, sp, #n */
		    (w & 0xffe0ffff) == 0xcb2063ff ||		/* sub sp, sp, Xm */
		    (w & 0x3bc003e0) == 0x298003e0 ||		/* stp ..., [sp, #-n]! */
		    (w & 0xfbe00fe0) == 0xf8000fe0 ||		/* str ..., [sp, #-n]! */
		    (w & 0x7f800000) == 0x52800000)		/* a constant, for sub */
			first = at - back;
		else if ((w & 0x7c000000) == 0x14000000 || (w & 0xfe000000) == 0xd6000000)
			break;					/* b, bl, br, blr, ret */
	}
	return first;
}

#endif

NOINLINE size_t lwsbt_capture_aarch64(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* x30 among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, x29" : "=&r"(f.sp), "=r"(f.fp) : : "x30", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_aarch64);
}

#endif
