/*
 * capture_prologue.h: walks a stack by reading the prologues of its functions.
 *
 * A return address lies in some function. Its prologue says by how much the
 * function lowered the stack pointer, and where it saved the return address to
 * its own caller and the caller's frame pointer. From its first instruction on,
 * instructions are read until the return address is saved and control goes
 * elsewhere: a function that has called another has been there.
 *
 *      higher   |                      |
 *      entry -> | return address saved |  <- entry + ra
 *               | frame pointer saved  |  <- entry + fp
 *               | locals               |
 *      sp    -> |                      |  =  entry + sp, where sp < 0
 *
 * Where the function starts is looked up in a table, if there is one. Else the
 * nearest instruction before the return address that saves a return address is
 * taken for a part of its prologue.
 *
 * With LWSBT_CAPTURE_TABLE_ONLY there always is a table, and what is needed without
 * is left out: some 300 bytes of Thumb code.
 *
 * A backend says how instructions are read. Before it includes this header, it
 * includes capture_code.h and defines:
 *
 *   STEP          the size of the smallest instruction in bytes
 *   MODE          the bits of a return address that are no part of the address
 *   REGISTERS     how many registers constants are loaded to, at most 32
 *   DELAY         1 if a branch is executed with the instruction after it
 *   struct prologue, whose members are told below, and
 *   decode        reads the instruction at an address into a struct prologue, and
 *                 returns its length in bytes
 *   saves_ra      reports whether the instruction at an address saves the return
 *                 address
 *   begin         returns where the prologue begins of which that is a part
 *   returns_to    returns what a saved return address is: NOT_RETURN, RETURN, or
 *                 OTHER_MODE, that of a call by code that decode can't read
 */
#ifndef CAPTURE_PROLOGUE_H
#define CAPTURE_PROLOGUE_H

/* What is known in struct prologue. */
enum {
	HAS_RA = 1,	/* ra is */
	HAS_FP = 2,	/* fp is */
	SETS_FP = 4,	/* frame is: the function has a frame pointer */
	FLOW = 8,	/* the last instruction branches, calls or returns */
	DYNAMIC = 16	/* sp has become, or been restored from, another register */
};

struct prologue {
	intptr_t sp;		/* the stack pointer, less what it was at entry */
	intptr_t ra;		/* where the return address is saved, less the same */
	intptr_t fp;		/* where the caller's frame pointer is */
	intptr_t frame;		/* the function's own frame pointer, less the same */
	unsigned has;
	uint32_t known;		/* the registers that constants were loaded to */
	intptr_t value[REGISTERS];
};

enum { NOT_RETURN, RETURN, OTHER_MODE };

/* decode reads nothing at or after end but constants, and these within ctx. */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p);
#ifdef LWSBT_CAPTURE_TABLE_ONLY
#define saves_ra(ctx, at) 0
#else
static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
#endif
static int returns_to(const struct lwsbt_capture_ctx *ctx, uintptr_t ra);

/* How far a search for a prologue goes, in bytes of code, and how many
 * instructions that look like one are tried. */
#define FAR 0x10000
#define TRIES 3

/* A function on the stack, of which pc is the next instruction to execute. */
struct frame {
	uintptr_t pc, sp, fp;
	int kind;	/* of pc: RETURN or OTHER_MODE */
};

/* The first that stores decides: later ones save the same register for other
 * reasons. off is where, relative to the stack pointer. */
INLINE void save_ra(struct prologue *p, intptr_t off)
{
	if (!(p->has & HAS_RA))
		p->ra = p->sp + off;
	p->has |= HAS_RA;
}

INLINE void save_fp(struct prologue *p, intptr_t off)
{
	if (!(p->has & HAS_FP))
		p->fp = p->sp + off;
	p->has |= HAS_FP;
}

INLINE void set_fp(struct prologue *p, intptr_t off)
{
	if (!(p->has & SETS_FP))
		p->frame = p->sp + off;
	p->has |= SETS_FP;
}

UNUSED static void load_const(struct prologue *p, unsigned reg, intptr_t value)
{
	p->known |= (uint32_t)1 << reg;
	p->value[reg] = value;
}

/* Reports whether the constant in a register is known. */
UNUSED static int has_const(const struct prologue *p, unsigned reg)
{
	return reg < REGISTERS && (p->known >> reg & 1);
}

/* sp += the constant in a register, times sign. */
UNUSED static void add_reg(struct prologue *p, unsigned reg, int sign)
{
	if (!has_const(p, reg))
		p->has |= DYNAMIC;
	else
		p->sp += sign < 0 ? -p->value[reg] : p->value[reg];
}

/* read_prologue reads from start on, up to end, and returns where it ended. */
static uintptr_t read_prologue(const struct lwsbt_capture_ctx *ctx, uintptr_t start,
	uintptr_t end, struct prologue *p)
{
	p->sp = 0;
	p->has = 0;
	p->known = 0;
	while (start < end) {
		p->has &= ~(unsigned)FLOW;
		start += decode(ctx, start, end, p);
		if (!(p->has & FLOW))
			continue;
		if (DELAY && start < end)
			start += decode(ctx, start, end, p);
		if (p->has & HAS_RA)
			break;
	}
	return start;
}

/*
 * moves_sp reports whether the function whose prologue ended at address at gives
 * its stack pointer other than constant values: alloca and arrays of variable
 * length do. Asked only where frame pointer and stack pointer disagree.
 * It is still the same function up to pc, and from there on up to end, or, where end
 * is not known, to the next that saves a return address.
 * What p says of sp is no longer true after it.
 */
static int moves_sp(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t pc,
	uintptr_t end, struct prologue *p)
{
	if (ctx->code_hi < end)
		end = ctx->code_hi;
	while (at < end && !(p->has & DYNAMIC) && (at < pc || !saves_ra(ctx, at)))
		at += decode(ctx, at, end, p);
	return (p->has & DYNAMIC) != 0;
}

/* caller replaces f by its caller, as the prologue that begins at start has it. */
static int caller(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	uintptr_t end)
{
	struct prologue p;
	uintptr_t at, entry, other, ra, fp = f->fp;
	unsigned has;
	int kind;

	at = read_prologue(ctx, start, f->pc, &p);
	has = p.has;
	if (!(p.has & HAS_RA))
		return 0;
	/* Lowered by what is not known, and no frame pointer */
	if ((p.has & (DYNAMIC | SETS_FP)) == DYNAMIC)
		return 0;
	entry = f->sp - (uintptr_t)p.sp;
	if (p.has & SETS_FP) {
		other = f->fp - (uintptr_t)p.frame;
		if (other != entry && other > f->sp && other <= ctx->hi &&
		    moves_sp(ctx, at, f->pc, end, &p))
			entry = other;
	}
	/* Every function that calls has a frame: so the walk ends. */
	if (entry <= f->sp || entry > ctx->hi ||
	    !stack_word(ctx, entry + (uintptr_t)p.ra, &ra))
		return 0;
#if defined(__aarch64__)
	ra = strip_pac(ra);
#endif
	kind = returns_to(ctx, ra);
	if (kind == NOT_RETURN)
		return 0;
	if ((has & HAS_FP) && !stack_word(ctx, entry + (uintptr_t)p.fp, &fp))
		return 0;
	f->pc = ra & ~(uintptr_t)MODE;
	f->sp = entry;
	f->fp = fp;
	f->kind = kind;
	return 1;
}

/* The function at address at, by the table: its start, and *end. 0: none. */
static uintptr_t look_up(const struct lwsbt_functions *t, uintptr_t at, uintptr_t *end)
{
	size_t lo = 0, hi = t->count, mid;

	if (at < t->base || at >= t->end)
		return 0;
	at -= t->base;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (t->start[mid] <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return 0;
	*end = lo < t->count ? t->base + t->start[lo] : t->end;
	return t->base + t->start[lo - 1];
}

/* up replaces f by its caller. */
static int up(const struct lwsbt_capture_ctx *ctx, struct frame *f)
{
	uintptr_t at, end, start;
#ifndef LWSBT_CAPTURE_TABLE_ONLY
	unsigned tries = 0;
#endif

	if (f->kind != RETURN)
		return 0;
	/* The call, not what follows it: that may be another function. */
	at = f->pc - STEP;
	if (ctx->functions) {
		start = look_up(ctx->functions, at, &end);
		return start != 0 && start >= ctx->code_lo && caller(ctx, f, start, end);
	}
#ifndef LWSBT_CAPTURE_TABLE_ONLY
	end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR;
	while (tries < TRIES && at - end >= STEP) {
		at -= STEP;
		if (!saves_ra(ctx, at))
			continue;
		if (caller(ctx, f, begin(ctx, at), f->pc + FAR))
			return 1;
		tries++;
	}
#endif
	return 0;
}

/*
 * walk stores the return addresses of the functions above f, which is the
 * capture function itself: start is its first instruction.
 */
static size_t walk(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start)
{
	struct prologue p;
	size_t n = 0;
	uintptr_t entry, at;
	int more;

	if (!ctx)
		return 0;
	/* This function is known to have no frame pointer that differs from its stack
	 * pointer, and to be before its first branch no longer. */
	start &= ~(uintptr_t)MODE;
	read_prologue(ctx, start, start + FAR, &p);
	entry = f->sp - (uintptr_t)p.sp;
	at = entry + (uintptr_t)p.ra;
	if (!(p.has & HAS_RA) || !stack_word(ctx, at, &f->pc))
		return 0;
	if ((p.has & HAS_FP) && !stack_word(ctx, entry + (uintptr_t)p.fp, &f->fp))
		return 0;
	f->sp = entry;
#if defined(__aarch64__)
	f->pc = strip_pac(f->pc);
#endif
	f->kind = returns_to(ctx, f->pc);
	f->pc &= ~(uintptr_t)MODE;
	for (more = 1; more && n < max; more = n < max && up(ctx, f)) {
		if (skip > 0)
			skip--;
		else
			pcs[n++] = f->pc;
	}
	return n;
}

#endif
