/*
 * capture_prologue.h: walks a stack by reading the prologues of its functions.
 *
 * A return address is in some function. Read from its first instruction on, its prologue says
 * by how much the function lowers the stack pointer, and where it saves the return address to its
 * caller and the caller's frame pointer. Reading ends where the return address is saved and
 * control goes elsewhere: a function that has called another has been there.
 *
 *      higher   |                      |
 *      entry -> | return address saved |  <- entry + ra
 *               | frame pointer saved  |  <- entry + fp
 *               | locals               |
 *      sp    -> |                      |  =  entry + sp, where sp < 0
 *
 * The start of the function is looked up in a table, if there is one. Otherwise the nearest
 * instruction before the return address that saves a return address is taken for a part of its
 * prologue. If what it saved is no return address, the walk ends.
 *
 *   capture_prologue.h  struct prologue, what instructions do to it, reading
 *   capture_rules.h     the cache: what was read, by return address (struct lwsbt_rule)
 *   capture_frame.h     a frame, and what code says of it
 *   capture_walk.h      from a frame to its caller, up to the last
 *
 * With LWSBT_CAPTURE_TABLE_ONLY there always is a table, and the code for the search is left
 * out: 1,150 to 1,310 bytes of Thumb code.
 *
 * A port to a machine is one file, capture_MACHINE.c. It includes capture_code.h, to which it adds
 * after_call; defines constants; includes this header; defines functions; and ends with the
 * capture function, which calls walk. The smallest is capture_aarch64.c.
 *
 * Constants, all of them:
 *
 *   STEP          the size of the smallest instruction in bytes
 *   MODE          the bits of a return address that are no part of the address
 *   CALLS         bit 0 of a return address to code that decode reads
 *   REGISTERS     how many registers constants are loaded to, at most 32
 *   DELAY         1 if a branch is executed with the instruction after it
 *   RA, FP        the registers of return address and frame pointer
 *
 * Functions, all of them:
 *
 *   decode        reads the instruction at an address into a struct prologue, by save_ra,
 *                 save_fp, set_fp, store, load_const and add_reg, and returns its length in
 *                 bytes; for an instruction that does not matter, only that
 *   saves_ra      reports whether the instruction at an address saves the return
 *                 address
 *   begin         returns where the prologue begins that this instruction is a part of
 *
 * Macros, where a machine needs more; capture_thumb.c has all:
 *
 *   PLAIN(at)     reports whether the instruction at an address is one of STEP bytes that does
 *                 not matter, faster than decode
 *   MAY_SAVE_RA(ctx, at)
 *                 reports the same as saves_ra or, where that takes long, more often
 *   OWN_SEARCH    the port defines search, too: it returns where the function begins that a
 *                 call is in, or 0
 *   OTHER_MODES   the port defines other_mode, too: it reports whether a saved return address is
 *                 that of a call by code that decode cannot read
 *   EXCEPTIONS    the port defines cross, too, which replaces a frame whose return address is
 *                 the mark of an exception by the interrupted function, and takes that; and
 *                 ends_soon and ends_late, which tell what the interrupted function leaves
 */
#ifndef CAPTURE_PROLOGUE_H
#define CAPTURE_PROLOGUE_H

/* What is known in struct prologue. */
enum {
	HAS_RA = 1,	/* ra is */
	HAS_FP = 2,	/* fp is */
	SETS_FP = 4,	/* frame is: the function has a frame pointer */
	FLOW = 8,	/* the last instruction branches, calls or returns */
	DYNAMIC = 16,	/* sp has become another register, or been lowered by one */
	BEHIND = 32	/* the prologue was read: what lowers sp by a register is alloca */
};

struct prologue {
	intptr_t sp;		/* the stack pointer, less what it was at entry */
	intptr_t ra;		/* where the return address is saved, less the same */
	intptr_t fp;		/* where the caller's frame pointer is */
	intptr_t frame;		/* the function's own frame pointer, less the same */
	unsigned has;
	uintptr_t start;	/* the address of its first instruction */
	uint32_t known;		/* the registers that constants were loaded to */
#if REGISTERS > 0
	intptr_t value[REGISTERS];
#endif
};

/* decode reads nothing at or after end but constants, and these within ctx. */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p);
#ifdef LWSBT_CAPTURE_TABLE_ONLY
#define saves_ra(ctx, at) 0
#else
static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
#endif

/* How far a search for a prologue goes, in bytes of code: interpreters have functions
 * over 64 KiB. */
#define FAR 0x40000

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

/* A register is stored. */
UNUSED static void store(struct prologue *p, unsigned reg, intptr_t off)
{
	if (reg == RA)
		save_ra(p, off);
	if (reg == FP)
		save_fp(p, off);
}

INLINE void set_fp(struct prologue *p, intptr_t off)
{
	if (!(p->has & SETS_FP))
		p->frame = p->sp + off;
	p->has |= SETS_FP;
}

#if REGISTERS > 0

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
	if (p->has & BEHIND)
		p->has |= sign < 0 ? DYNAMIC : 0;
	else if (!has_const(p, reg))
		p->has |= DYNAMIC;
	else
		p->sp += sign * p->value[reg];
}

#endif

/* read_prologue reads from start on, up to end, and returns where it ended. */
static uintptr_t read_prologue(const struct lwsbt_capture_ctx *ctx, uintptr_t start,
	uintptr_t end, struct prologue *p)
{
	p->sp = 0;
	p->has = 0;
	p->known = 0;
	p->start = start;
	while (start < end) {
#ifdef PLAIN
		/* Most instructions do nothing that matters. */
		if (PLAIN(start)) {
			start += STEP;
			continue;
		}
#endif
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

/* Reports whether the next function may begin at address at. */
#ifndef MAY_SAVE_RA
#define MAY_SAVE_RA(ctx, at) saves_ra(ctx, at)
#endif

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
	p->has |= BEHIND;
	if (ctx->code_hi < end)
		end = ctx->code_hi;
	while (at < end && !(p->has & DYNAMIC) && in_code(ctx, at, STEP) &&
	       (at < pc || !MAY_SAVE_RA(ctx, at)))
		at += decode(ctx, at, end, p);
	return (p->has & DYNAMIC) != 0;
}

#include "capture_rules.h"
#include "capture_frame.h"
#include "capture_walk.h"

#endif
