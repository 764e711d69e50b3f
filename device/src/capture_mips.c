/*
 * capture_mips.c: walks the stack of MIPS code, o32 and n64, of either byte order,
 * by reading prologues. Callers that are MIPS16 or microMIPS code, whose return
 * addresses are odd, are recorded, and end the walk.
 */
#include "capture_code.h"

#if defined(__mips__)

#define STEP 4u
#define MODE 1u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 1
#define RA 31u
#define FP 30u
#define OTHER_MODES
#include "capture_prologue.h"

enum { AT = 1, SP = 29 };

/*
 *  31    26 25 21 20 16 15            0
 * |   op   | rs  | rt  |   immediate   |
 *                      | rd  |  |funct |   if op is 0
 *                       15 11     5   0
 */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rs = field(w, 21, 5), rt = field(w, 16, 5), rd = field(w, 11, 5);
	intptr_t imm = extend(w, 16);

	int known = has_const(p, rs), known_rt = has_const(p, rt);

	(void)ctx;
	(void)end;
	/* What an instruction writes is no longer known: rd, or rt of immediates and loads. */
	if (w >> 26 == 0)
		p->known &= ~((uint32_t)1 << rd);
	else if ((w >> 26 >= 0x08 && w >> 26 <= 0x0f) || w >> 26 == 0x18 || w >> 26 == 0x19 ||
		 (w >> 26 >= 0x20 && w >> 26 <= 0x27) || w >> 26 == 0x37)
		p->known &= ~((uint32_t)1 << rt);
	switch (w >> 26) {
	case 0:
		switch (field(w, 0, 6)) {
		case 8: case 9:				/* jr, jalr */
			p->has |= FLOW;
			break;
		case 0x21: case 0x2d: case 0x25:	/* addu, daddu, or: move has rt 0 */
			if (rd == FP && rs == SP && rt == 0)
				set_fp(p, 0);
			else if (rd == SP && rs == SP)
				add_reg(p, rt, 1);
			else if (rd == SP)
				p->has |= DYNAMIC;
			else if (rs == SP && known_rt)	/* a far place in the frame */
				load_const(p, rd, p->sp + p->value[rt]);
			break;
		case 0x24:				/* and: aligned */
			if (rd == SP)
				p->has |= DYNAMIC;
			break;
		case 0x23: case 0x2f:			/* subu, dsubu */
			if (rd == SP && rs == SP)
				add_reg(p, rt, -1);
			else if (rd == SP)
				p->has |= DYNAMIC;
			break;
		}
		break;
	case 0x01: case 0x02: case 0x03:		/* bltz and others, j, jal */
	case 0x04: case 0x05: case 0x06: case 0x07:	/* beq, bne, blez, bgtz */
	case 0x14: case 0x15: case 0x16: case 0x17:	/* the same, likely */
	case 0x1d:					/* jalx */
		p->has |= FLOW;
		break;
	case 0x11:					/* bc1f, bc1t */
		if (rs == 8)
			p->has |= FLOW;
		break;
	case 0x09: case 0x19:				/* addiu, daddiu */
		if (rt == SP && rs == SP) {
			if (imm < 0)
				p->sp += imm;
		} else if (rt == SP) {
			p->has |= DYNAMIC;
		} else if (rt == FP && rs == SP) {
			set_fp(p, imm);
		} else if (rs == 0) {
			load_const(p, rt, imm);
		} else if (known) {
			load_const(p, rt, p->value[rs] + imm);
		}
		break;
	case 0x0d:					/* ori */
		if (rs == 0)
			load_const(p, rt, imm & 0xffff);
		else if (known)
			load_const(p, rt, p->value[rs] | (imm & 0xffff));
		break;
	case 0x0f:					/* lui */
		load_const(p, rt, (intptr_t)(int32_t)(w << 16));
		break;
	case 0x2b: case 0x3f:				/* sw, sd */
		/* A 32-bit register is saved by sw, a 64-bit one by sd; beyond 32 KiB from
		 * sp, by way of at. */
		if ((w >> 26 == 0x3f) != (WORD == 8))
			break;
		if (rs == AT && has_const(p, AT))
			imm += p->value[AT] - p->sp;
		else if (rs != SP)
			break;
		store(p, rt, imm);
		break;
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code32(at) >> 16;

	if (h == (WORD == 8 ? 0xffbf : 0xafbf))
		return 1;
	/* by way of at, which addu at, sp, at has just set */
	return h == (WORD == 8 ? 0xfc3f : 0xac3f) && in_code(ctx, at - 4, 4) &&
		(code32(at - 4) & 0xfffffff3) == 0x03a10821;
}

/* Reports whether the function goes elsewhere, without a call. */
static int jumps(uint32_t w)
{
	return w >> 26 == 2 || w >> 16 == 0x1000 ||	/* j, b, jr */
		(w >> 26 == 0 && field(w, 0, 6) == 8);
}

/* Reports whether w is addu, subu, daddu or dsubu sp, sp, REG: frames of over 32 KiB. */
static int lowers_by_reg(uint32_t w)
{
	w &= 0xffe0ffff;
	return w == 0x03a0e821 || w == 0x03a0e823 || w == 0x03a0e82d || w == 0x03a0e82f;
}

/*
 * The stack pointer is lowered before, by addiu or daddiu, perhaps in several
 * steps, and after a branch; constants may be loaded before that. So the beginning
 * is taken to be after the nearest call, or the nearest jump before which the stack
 * pointer is not yet lowered, and its delay slot.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back;
	uint32_t w;
	int lowered = 0;

	for (back = 4; back <= 160 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if (w >> 26 == 3 || w >> 16 == 0x0411 || (w >> 26 == 0 && field(w, 0, 6) == 9) ||
		    (lowered && jumps(w))) {
			back -= back > 4 ? 4 : 0;	/* jal, bal, jalr */
			break;
		}
		lowered |= ((w >> 16 == 0x27bd || w >> 16 == 0x67bd) && (w & 0x8000)) ||
			lowers_by_reg(w);
	}
	return at - back + 4;
}

#endif

/* Odd return addresses are those of MIPS16 and microMIPS code. */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h;

	if (!(pc & 1))
		return 0;
	pc--;
	if (pc - ctx->code_lo < 8 || !in_code(ctx, pc - 8, 8))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xf8ff) == 0xe8c0)			/* MIPS16: jalrc */
		return 1;
	h = code16(pc - 4);
	if ((h & 0xf8ff) == 0xe840)			/* MIPS16: jalr, delay slot */
		return 1;
	if ((h & 0xffe0) == 0x45c0 || (h & 0xffe0) == 0x45e0)	/* microMIPS: jalr16, jalrs16 */
		return 1;
	if ((code16(pc - 6) & 0xf800) == 0x1800)	/* MIPS16: jal, jalx */
		return 1;
	if ((code16(pc - 6) & 0xfc00) == 0x7400)	/* microMIPS: jals */
		return 1;
	h = code16(pc - 8) & 0xfc00;
	return h == 0xf400 || h == 0xf000 ||		/* microMIPS: jal, jalx */
		(code16(pc - 6) & 0xefff) == 0x0f3c;	/* jalr, jalr.hb */
}

NOINLINE size_t lwsbt_capture_mips(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* ra among what this changes, so that it is saved */
	__asm__ volatile("move %0, $29\n\tmove %1, $30" : "=&r"(f.sp), "=r"(f.fp) : : "$31", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_mips);
}

#endif
