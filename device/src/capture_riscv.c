/*
 * capture_riscv.c: walks the stack of RISC-V code, of 32 and 64 bits, with or
 * without compressed instructions, by reading prologues; those that call
 * __riscv_save_N (-msave-restore) as well.
 */
#include "capture_code.h"

#if defined(__riscv)

#define STEP 2u
#define MODE 0u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 0
#define RA 1u
#define FP 8u	/* s0 */
#include "capture_prologue.h"

enum { ZERO = 0, SP = 2 };

/* The register has another value than a known constant. */
static void forget(struct prologue *p, unsigned rd)
{
	p->known &= ~((uint32_t)1 << rd);
}

/* rd = rs + imm */
static void add_imm(struct prologue *p, unsigned rd, unsigned rs, intptr_t imm)
{
	if (rd == SP && rs == SP)
		p->sp += imm < 0 ? imm : 0;	/* up: an epilogue */
	else if (rd == SP)
		p->has |= DYNAMIC;
	else if (rd == FP && rs == SP)
		set_fp(p, imm);
	else if (rs == ZERO)
		load_const(p, rd, imm);
	else if (has_const(p, rs))
		load_const(p, rd, p->value[rs] + imm);
	else
		forget(p, rd);
}

static void add(struct prologue *p, unsigned rd, unsigned rs, unsigned rt, int sign)
{
	if (rd != SP)
		forget(p, rd);
	else if (rs == SP)
		add_reg(p, rt, sign);
	else if (rt == SP && sign > 0)
		add_reg(p, rs, sign);
	else
		p->has |= DYNAMIC;
}

/* rd = rs << n */
static void shift(struct prologue *p, unsigned rd, unsigned rs, unsigned n)
{
	if (has_const(p, rs))
		load_const(p, rd, (intptr_t)((uintptr_t)p->value[rs] << n % (8 * WORD)));
	else
		forget(p, rd);
}

static void decode16(uint32_t h, struct prologue *p)
{
	unsigned rd = field(h, 7, 5), rs = field(h, 2, 5);
	intptr_t imm6 = extend(field(h, 12, 1) << 5 | rs, 6);

	switch ((h & 3) << 3 | h >> 13) {
	case 0x02: case 0x03:				/* c.lw, c.ld */
		forget(p, 8 + field(h, 2, 3));
		return;
	case 0x0c:					/* c.sub, c.and and others */
		forget(p, 8 + field(h, 7, 3));
		return;
	case 0x12: case 0x13:				/* c.lwsp, c.ldsp */
		forget(p, rd);
		return;
	case 0x00:					/* c.addi4spn */
		forget(p, 8 + field(h, 2, 3));
		if (field(h, 2, 3) == FP - 8 && h != 0)
			set_fp(p, (intptr_t)(field(h, 11, 2) << 4 | field(h, 7, 4) << 6 |
				field(h, 6, 1) << 2 | field(h, 5, 1) << 3));
		return;
	case 0x08:					/* c.addi */
		add_imm(p, rd, rd, imm6);
		return;
	case 0x0a:					/* c.li */
		load_const(p, rd, imm6);
		return;
	case 0x0b:					/* c.addi16sp, c.lui */
		if (rd == SP)
			add_imm(p, SP, SP, extend(field(h, 12, 1) << 9 | field(h, 6, 1) << 4 |
				field(h, 5, 1) << 6 | field(h, 3, 2) << 7 | field(h, 2, 1) << 5, 10));
		else
			load_const(p, rd, imm6 * 4096);
		return;
	case 0x09:					/* c.addiw, or c.jal */
#if __riscv_xlen == 32
		p->has |= FLOW;
#else
		if (rd != SP)
			add_imm(p, rd, rd, imm6);
#endif
		return;
	case 0x0d: case 0x0e: case 0x0f:		/* c.j, c.beqz, c.bnez */
		p->has |= FLOW;
		return;
	case 0x10:					/* c.slli */
		shift(p, rd, rd, field(h, 12, 1) << 5 | rs);
		return;
	case 0x14:
		if (rs == 0)				/* c.jr, c.jalr, c.ebreak */
			p->has |= FLOW;
		else if (field(h, 12, 1))		/* c.add */
			add(p, rd, rd, rs, 1);
		else					/* c.mv */
			add_imm(p, rd, rs, 0);
		return;
#if __riscv_xlen == 32
	case 0x16:					/* c.swsp */
		store(p, rs, (intptr_t)(field(h, 9, 4) << 2 | field(h, 7, 2) << 6));
		return;
#else
	case 0x17:					/* c.sdsp */
		store(p, rs, (intptr_t)(field(h, 10, 3) << 3 | field(h, 7, 3) << 6));
		return;
#endif
	}
}

/* Store of a whole register: sw or sd. */
#define STORE_RA (__riscv_xlen == 32 ? 0x2023u : 0x3023u)

static void decode32(uint32_t w, struct prologue *p)
{
	unsigned rd = field(w, 7, 5), rs = field(w, 15, 5);

	switch (w & 0x7f) {
	case 0x13: case 0x1b:				/* addi, addiw */
		if (field(w, 12, 3) == 0)
			add_imm(p, rd, rs, extend(w >> 20, 12));
		else if (rd == SP)
			p->has |= DYNAMIC;		/* andi: aligned */
		else if (field(w, 12, 3) == 1)		/* slli */
			shift(p, rd, rs, field(w, 20, 6));
		else
			forget(p, rd);
		return;
	case 0x03: case 0x17: case 0x3b:		/* loads, auipc, addw and others */
		forget(p, rd);
		return;
	case 0x37:					/* lui */
		load_const(p, rd, (intptr_t)(int32_t)(w & 0xfffff000));
		return;
	case 0x33:					/* add, sub */
		if ((w & 0xbe007000) == 0)
			add(p, rd, rs, field(w, 20, 5), (w & 0x40000000) ? -1 : 1);
		else
			forget(p, rd);
		return;
	case 0x23:
		if ((w & 0x707f) == STORE_RA && rs == SP)
			store(p, field(w, 20, 5), extend(field(w, 25, 7) << 5 | rd, 12));
		return;
	case 0x63: case 0x67: case 0x6f:		/* branches, jalr, jal */
		p->has |= FLOW;
		return;
	}
}

static uint32_t code_at(uintptr_t at)
{
	return code16(at) | code16(at + 2) << 16;	/* may lie at an odd halfword */
}

static uintptr_t jal_target(uintptr_t at, uint32_t w)
{
	return at + (uintptr_t)extend(field(w, 31, 1) << 20 | field(w, 12, 8) << 12 |
		field(w, 20, 1) << 11 | field(w, 21, 10) << 1, 21);
}

/*
 * saved_by returns the address of the routine that saves registers for the
 * function, if the instruction at address at calls one, and 0 otherwise:
 * jal t0, or auipc of t0 or t1, and jalr t0 by that. *n is the length of the call.
 */
static uintptr_t saved_by(uintptr_t at, uintptr_t room, unsigned *n)
{
	uint32_t w;

	w = code16(at) & 0xfff;
	if (room < 4 || (w != 0x2ef && w != 0x297 && w != 0x317))
		return 0;
	w = code_at(at);
	*n = 4;
	if ((w & 0xfff) == 0x2ef)
		return jal_target(at, w);
	if (room < 8 || (code_at(at + 4) & 0xfffff) != ((w & 0xf80) << 8 | 0x2e7))
		return 0;
	*n = 8;
	return at + (uintptr_t)(intptr_t)(int32_t)(w & 0xfffff000) +
		(uintptr_t)extend(code_at(at + 4) >> 20, 12);
}

static unsigned decode1(uintptr_t at, uintptr_t end, struct prologue *p)
{
	if ((code16(at) & 3) != 3) {
		decode16(code16(at), p);
		return 2;
	}
	if (end - at >= 4)
		decode32(code_at(at), p);
	return 4;
}

/* Reads the routine at address at, up to its return by t0. It jumps ahead. */
static void read_routine(const struct lwsbt_capture_ctx *ctx, uintptr_t at, struct prologue *p)
{
	unsigned n;
	uint32_t w;

	for (n = 0; n < 40 && in_code(ctx, at, 4); n++) {
		w = code_at(at);
		if ((w & 0xfff) == 0x6f)			/* j */
			at = jal_target(at, w);
		else if ((w & 0xe003) == 0xa001)		/* c.j */
			at += (uintptr_t)extend(field(w, 12, 1) << 11 | field(w, 11, 1) << 4 |
				field(w, 9, 2) << 8 | field(w, 8, 1) << 10 | field(w, 7, 1) << 6 |
				field(w, 6, 1) << 7 | field(w, 3, 3) << 1 | field(w, 2, 1) << 5, 12);
		else
			at += decode1(at, ctx->code_hi, p);
		if (p->has & FLOW)
			break;
	}
	p->has &= ~(unsigned)FLOW;
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	unsigned n;
	uintptr_t routine = saved_by(at, end - at, &n);

	if (routine == 0)
		return decode1(at, end, p);
	read_routine(ctx, routine, p);
	return n;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

/*
 * second reports whether the halfword at address at is the second of an instruction. One
 * whose bits 0 and 1 are not both set ends an instruction, whichever half it is;
 * others begin one, or are the second of one, in turns.
 */
static int second(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n = 0;

	while (n < 64 && in_code(ctx, at - 2 * (n + 1), 2) && (code16(at - 2 * (n + 1)) & 3) == 3)
		n++;
	return n % 2 != 0;
}

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);
	unsigned n;

	/* c.swsp ra, or c.sdsp ra */
	if ((h & 0xe07f) == (__riscv_xlen == 32 ? 0xc006 : 0xe006))
		return !second(ctx, at);
	if (!in_code(ctx, at, 8))
		return 0;
	if ((h & 0x7f) == 0x23)				/* sw, sd ra, n(sp) */
		return (code_at(at) & 0x01fff07f) == (0x00110000 | STORE_RA) && !second(ctx, at);
	return saved_by(at, 8, &n) != 0 && !second(ctx, at);
}

/* Reports whether the instruction at address at lowers the stack pointer. */
static int lowers_sp(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if ((h & 0xff83) == 0x7101 || (h & 0xff83) == 0x1101)
		return (h & 0x1000) != 0;		/* c.addi16sp, c.addi sp */
	return h == 0x0113 && in_code(ctx, at, 4) && (code16(at + 2) & 0x800f) == 0x8001;
}

/* Reports whether what follows the instruction at address at is not executed after it,
 * or after a call, which stands in no prologue: c.jr, c.jalr, c.j, c.jal; jal, jalr. */
static int leaves(uintptr_t at)
{
	uint32_t h = code16(at);

	return ((h & 0xe07f) == 0x8002 && h != 0x9002) || (h & 0xe003) == 0xa001 || (h & 0x7f) == 0x6f ||
		(h & 0x707f) == 0x67 || (__riscv_xlen == 32 && (h & 0xe003) == 0x2001);
}

/* Reports whether the instruction at address at loads a constant: lui or c.lui, li or c.li. */
static int loads(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	return (h & 0x7f) == 0x37 || (h & 0xc003) == 0x4001 ||
		((h & 0x707f) == 0x13 && in_code(ctx, at, 4) && (code_at(at) & 0xf8000) == 0);
}

/* The stack pointer is lowered before the return address is stored, or, in functions of
 * variable arguments, before the routine that stores it is called. Constants for that may be
 * loaded before. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	int lowered = 0;

	for (back = 2; back <= 100 && in_code(ctx, at - back, 2); back += 2) {
		if (second(ctx, at - back))
			continue;
		if (leaves(at - back) || (lowered && saves_ra(ctx, at - back)))
			break;
		if (lowers_sp(ctx, at - back) ? !lowered++ : lowered && loads(ctx, at - back))
			first = at - back;
	}
	return first;
}

#endif

NOINLINE size_t lwsbt_capture_riscv(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* ra among what this changes, so that it is saved */
	__asm__ volatile("mv %0, sp\n\tmv %1, s0" : "=&r"(f.sp), "=r"(f.fp) : : "ra", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_riscv);
}

#endif
