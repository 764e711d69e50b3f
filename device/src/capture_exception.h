/*
 * capture_exception.h: crosses exceptions of a Cortex-M. A handler is entered with a
 * mark in lr (EXC_RETURN), after the processor has saved, on the stack that was in use:
 *
 *   higher  | where the function's stack was  |
 *           | 4 bytes, if bit 9 of xpsr is set|
 *           | 18 words of floating point      |  if bit 4 of the mark is clear
 *      +28  | xpsr                            |
 *      +24  | pc                              |
 *      +20  | lr                              |
 *           | r0 to r3, r12                   |
 *
 * Bit 2 of the mark is set if that was the process stack. Not crossed are exceptions between
 * the security states of Armv8-M.
 */
#define OF_LR 20u
#define OF_PC 24u
#define OF_XPSR 28u

/* The number of the exception that is handled; 0 if none is. */
INLINE uint32_t ipsr(void)
{
	uint32_t v;

	__asm__ volatile("mrs %0, ipsr" : "=r"(v));
	return v;
}

INLINE uintptr_t psp(void)
{
	uintptr_t v;

	__asm__ volatile("mrs %0, psp" : "=r"(v));
	return v;
}

/*
 * cross replaces f, a handler that was entered with a stack pointer of entry, by the function
 * that was interrupted. It takes an address within the instruction that comes next: that
 * less 1 is in the instruction, as it is of return addresses.
 */
NOINLINE static int cross(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t mark, struct taken *t)
{
	uintptr_t pc, xpsr;

	if (mark < 0xffffff80u || (mark & 2) != 0 || ipsr() == 0)
		return 0;
	f->sp = entry;
	if (mark & 4) {
		f->sp = psp();
		f->lo = ctx->lo;
		f->hi = ctx->hi;
	}
	if (!frame_word(f, f->sp + OF_XPSR, &xpsr) || !frame_word(f, f->sp + OF_PC, &pc) ||
	    !frame_word(f, f->sp + OF_LR, &f->lr) || !in_code(ctx, pc, 2) || pc % 2 != 0 ||
	    (xpsr >> 24 & 1) == 0)
		return 0;
	f->sp += (mark & 16 ? 32 : 104) + (xpsr >> 7 & 4);
	f->pc = pc;
	f->rule = 0;
	f->kind = INTERRUPTED;
	take(t, pc + STEP);
	return 1;
}

/* pop takes the registers in list off the stack; e->lr is the new pc, if that is among them. */
static int pop(const struct frame *f, struct end *e, uint32_t list)
{
	unsigned reg;
	uintptr_t word;

	for (reg = 0; reg < 16; reg++) {
		if (!(list >> reg & 1))
			continue;
		if (!frame_word(f, e->sp, &word))
			return 0;
		e->sp += 4;
		if (reg == FP)
			e->fp = word;
		if (reg >= RA)
			e->lr = word;
	}
	return 1;
}

/* How many instructions a function may be from its return. */
#define NEAR 16

/*
 * returns_soon follows the instructions from where f was interrupted, and reports whether they
 * lead straight to the return. If so, e has what it leaves. So epilogues are crossed, and functions
 * that save nothing, wherever they begin.
 */
static int returns_soon(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e)
{
	uintptr_t at = f->pc;
	uint32_t h, h2;
	unsigned n;

	e->sp = f->sp;
	e->fp = f->fp;
	e->lr = f->lr;
	for (n = 0; n < NEAR && in_code(ctx, at, 4); n++, at += length(h)) {
		h = code16(at);
		h2 = code16(at + 2);
		if (h == 0x4770)						/* bx lr */
			return 1;
		if (h >> 9 == 0x5e) {						/* pop */
			if (!pop(f, e, (h & 0xff) | (h & 0x100) << 7))
				return 0;
			if (h & 0x100)
				return 1;
		} else if (h >> 7 == 0x160) {					/* add sp, #imm7 * 4 */
			e->sp += 4 * (h & 0x7f);
		} else if (h == 0x46bd) {					/* mov sp, r7 */
			e->sp = e->fp;
		} else if (h >> 8 == 0x37) {					/* adds r7, #imm8 */
			e->fp += h & 0xff;
		} else if (h == 0xe8bd || (h == 0xf85d && (h2 & 0xfff) == 0xb04)) {
			if (!pop(f, e, h == 0xe8bd ? h2 : 1u << (h2 >> 12)))	/* pop.w, ldr Rt, [sp], #4 */
				return 0;
			if (h == 0xe8bd ? h2 >> 15 : h2 >> 12 == 15)
				return 1;
		} else if ((h == 0xf10d && (h2 & 0xff00) == 0x0d00) || (h == 0xf107 && (h2 & 0xff00) == 0x0700)) {
			*(h == 0xf10d ? &e->sp : &e->fp) += h2 & 0xff;		/* add.w sp or r7 */
		} else if ((h & 0xffbf) == 0xecbd) {				/* vpop */
			e->sp += 4 * (h2 & 0xff);
		} else if (h >= 0xf800 && h < 0xf900 && h != 0xf84d) {		/* loads and stores */
			continue;
		} else if (!plain(h) && (h & 0xff00) != 0x4600) {
			return 0;						/* nor mov */
		}
	}
	return 0;
}

/* Reports whether there is a return from start to where f was interrupted: the end, perhaps, of the function
 * that begins at start. */
static int ends_before(const struct frame *f, uintptr_t start)
{
#ifdef LWSBT_CAPTURE_TABLE_ONLY
	(void)f, (void)start;
#else
	for (; start < f->pc; start += length(code16(start)))
		if (ends(start) && code16(start) >> 11 != 0x1c)
			return 1;
#endif
	return 0;
}

/* ends_as fills e for a function that begins at start, or may. certain is set if it does. */
NOINLINE static int ends_as(const struct lwsbt_capture_ctx *ctx, const struct frame *f, uintptr_t start,
	uintptr_t end, int certain, struct end *e)
{
	struct prologue p;
	uintptr_t at = read_prologue(ctx, start, f->pc, &p);
	int by_fp;

	e->sp = entry_of(ctx, f, &p, at, end, &by_fp);
	e->fp = f->fp;
	e->lr = f->lr;
	if (e->sp < f->sp || e->sp > f->hi ||
	    ((p.has & HAS_FP) && !frame_word(f, e->sp + (uintptr_t)p.fp, &e->fp)) ||
	    ((p.has & HAS_RA) && !frame_word(f, e->sp + (uintptr_t)p.ra, &e->lr)))
		return 0;
	return certain || e->lr == f->lr;
}

/* ends_soon fills e if f is about to return. */
NOINLINE static int ends_soon(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e)
{
	return returns_soon(ctx, f, e) && e->sp >= f->sp && e->sp <= f->hi;
}

/*
 * ends_late fills e by what the prologue of f has done so far, which is known if it is known where the
 * function begins. Without a table, it is where the last call was made in the same function, or no return
 * is in between; or if what it saved is still in lr.
 */
NOINLINE static int ends_late(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e)
{
	uintptr_t end = 0, start = start_of(ctx, f->pc, &end), last = (f->lr & ~(uintptr_t)MODE) - STEP, of_last;
	int certain = 1;

	if (start == 0)
		return 0;
	if (!ctx->functions && ends_before(f, start)) {
		of_last = in_code(ctx, last, STEP) ? start_of(ctx, last, &end) : 0;
		certain = of_last == start;
	}
	return ends_as(ctx, f, start, end, certain, e);
}
