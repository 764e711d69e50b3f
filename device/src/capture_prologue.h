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
 * What is found out is a rule, which depends on code alone: so it can be cached by the
 * return address (struct lwsbt_rule).
 *
 * With LWSBT_CAPTURE_TABLE_ONLY there always is a table, and what is needed without
 * is left out: 680 to 910 bytes of Thumb code.
 *
 * A backend says how instructions are read. Before it includes this header, it
 * includes capture_code.h and defines:
 *
 *   STEP          the size of the smallest instruction in bytes
 *   MODE          the bits of a return address that are no part of the address
 *   CALLS         bit 0 of a return address to code that decode reads
 *   REGISTERS     how many registers constants are loaded to, at most 32
 *   DELAY         1 if a branch is executed with the instruction after it
 *   DOUBTFUL      0 if what saves_ra finds is an instruction, no constant between
 *                 functions; 1 if not defined
 *   RA, FP        the registers of return address and frame pointer
 *
 * and after it, these functions:
 *
 *   decode        reads the instruction at an address into a struct prologue, and
 *                 returns its length in bytes
 *   saves_ra      reports whether the instruction at an address saves the return
 *                 address
 *   begin         returns where the prologue begins of which that is a part
 *   other_mode    only with OTHER_MODES: reports whether a saved return address is
 *                 that of a call by code that decode can't read
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

/* What a word of the stack is: no return address, that of a call, or that of a call
 * by code that decode can't read. FIRST is the frame of the capture function. */
enum { NOT_RETURN, RETURN, OTHER_MODE, FIRST };

/* decode reads nothing at or after end but constants, and these within ctx. */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p);
#ifdef LWSBT_CAPTURE_TABLE_ONLY
#define saves_ra(ctx, at) 0
#else
static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
#endif
#ifdef OTHER_MODES
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra);
#else
#define other_mode(ctx, ra) 0
#endif
#ifndef DOUBTFUL
#define DOUBTFUL 1
#endif

/* How far a search for a prologue goes, in bytes of code: interpreters have functions
 * over 64 KiB. And how many instructions that look like one are tried; after a
 * return address that cannot be one, no other is, unless DOUBTFUL. */
#define FAR 0x40000
#define TRIES 3

/* A function on the stack, of which pc is the next instruction to execute. */
struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t rule;	/* what the cache has of pc, or 0 */
	int kind;	/* of pc */
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
		p->sp += sign * p->value[reg];
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
	while (at < end && !(p->has & DYNAMIC) && in_code(ctx, at, STEP) &&
	       (at < pc || !saves_ra(ctx, at)))
		at += decode(ctx, at, end, p);
	return (p->has & DYNAMIC) != 0;
}

/* The return address of what nobody called: start-up code sets it to 0, a Cortex-M to
 * all ones. */
#define OUTERMOST(ra) ((ra) + 1 <= 1)

static int returns_to(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	if ((ra & 1) == CALLS && after_call(ctx, ra - CALLS))
		return RETURN;
	return other_mode(ctx, ra) ? OTHER_MODE : NOT_RETURN;
}

/* ----------------------------------------------------------------- the cache */

/*
 * A rule is where a function's caller left things, in words:
 *
 *   31                    16 15            8 7             0
 *  | entry, above sp         | fp, below    | ra, below     |
 *  |                         | entry, or 0  | entry         |
 *
 * NO_RULE is that of a function that no caller can be told of. One that moves its stack
 * pointer at run time has none: the cache does not know it.
 *
 * A rule is in one of PROBES places from where the key's hash points to. It has the key
 * xor the hash of the rule for a check: so what two threads wrote at a time is
 * taken for none.
 *
 * The key is the return address, with its mode bit. That of the capture function
 * itself is its start, but for bit 0, which return addresses do not have so.
 */
#define HASH 0x9e3779b1u
#define ENTRY(rule) ((rule) >> 16)
#define BELOW_FP(rule) ((rule) >> 8 & 0xff)
#define BELOW_RA(rule) ((rule) & 0xff)
#define NO_RULE 1u
#define PROBES 8

#if LWSBT_CACHE
#define RULE_COUNT(ctx) (ctx)->rule_count
#else
#define RULE_COUNT(ctx) 0u
#endif

/* Each access is one of the machine's, as others may write at the time. */
#define SHARED(word) (*(volatile uintptr_t *)&(word))

/* The n-th place of a key. */
INLINE struct lwsbt_rule *place(const struct lwsbt_capture_ctx *ctx, uintptr_t key, unsigned n)
{
	return ctx->rules + ((((uint32_t)key * HASH >> 16) + n) & (RULE_COUNT(ctx) - 1));
}

/* recall returns the rule of a key, or 0. */
INLINE uintptr_t recall(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	struct lwsbt_rule *r;
	uintptr_t rule;
	unsigned n;

	for (n = 0; RULE_COUNT(ctx) != 0 && n < PROBES; n++) {
		r = place(ctx, key, n);
		rule = SHARED(r->rule);
		if (rule == 0)
			break;
		if ((SHARED(r->check) ^ rule * HASH) == key)
			return rule;
	}
	return 0;
}

/* remember takes the first place that is free, or one of those taken. */
static void remember(const struct lwsbt_capture_ctx *ctx, uintptr_t key, uintptr_t rule)
{
	struct lwsbt_rule *r;
	unsigned n;

	if (RULE_COUNT(ctx) == 0 || rule == 0)
		return;
	for (n = 0; n < PROBES && SHARED(place(ctx, key, n)->rule) != 0; n++)
		;
	r = place(ctx, key, n < PROBES ? n : (unsigned)(key >> 4) % PROBES);
	SHARED(r->rule) = rule;
	SHARED(r->check) = key ^ rule * HASH;
}

/* The rule of a prologue, or 0 if there is none: all that it says lies between the
 * stack pointer and its value at entry. */
static uintptr_t rule_of(const struct prologue *p)
{
	uintptr_t entry = -(uintptr_t)p->sp / WORD, ra = -(uintptr_t)p->ra / WORD,
		fp = p->has & HAS_FP ? -(uintptr_t)p->fp / WORD : 0;

	if ((p->sp | p->ra) % (intptr_t)WORD != 0 || entry > 0xffff || ra > 0xff || fp > 0xff ||
	    ra == 0 || ra > entry || fp > entry || (p->has & HAS_FP && -(uintptr_t)p->fp != fp * WORD))
		return 0;
	return entry << 16 | fp << 8 | ra;
}

/* What a walk fills in: n counts up from -skip to max, and from 0 on pcs[n] is stored. */
struct taken {
	uintptr_t *pcs;
	size_t n, max;
};

INLINE void take(struct taken *t, uintptr_t pc)
{
	if (t->n < t->max)
		t->pcs[t->n] = pc;
	t->n++;
}

/*
 * by_rules replaces f by its caller, takes that, and goes on as long as the cache has a
 * rule: which then is known to be of a return address. f->sp must lie on the stack.
 */
static void by_rules(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t entry, ra, next, sp = f->sp, fp = f->fp, rule = f->rule;
	int kind;

	while (RULE_COUNT(ctx) != 0 && rule != 0 && t->n != t->max) {
		entry = sp + ENTRY(rule) * WORD;
		/* Every function that calls has a frame: so the walk ends. */
		if (entry <= sp || entry > ctx->hi)
			break;
		ra = stripped(*(const uintptr_t *)(entry - BELOW_RA(rule) * WORD));
		next = (ra & 1) == CALLS ? recall(ctx, ra) : 0;
		kind = next != 0 ? RETURN : returns_to(ctx, ra);
		if (kind == NOT_RETURN && f->kind != FIRST) {
			if (!DOUBTFUL || OUTERMOST(ra))
				f->kind = NOT_RETURN;
			break;
		}
		if (BELOW_FP(rule) != 0)
			fp = *(const uintptr_t *)(entry - BELOW_FP(rule) * WORD);
		sp = entry;
		rule = next;
		f->kind = kind;
		f->pc = ra & ~(uintptr_t)MODE;
		take(t, f->pc);
	}
	f->sp = sp;
	f->fp = fp;
	f->rule = rule;
}

/* leave replaces f by its caller, if its function was entered with a stack pointer of
 * entry, and takes that. */
static int leave(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	const struct prologue *p, unsigned has, int certain, struct taken *t)
{
	uintptr_t ra, fp = f->fp;
	int kind;

	if (entry <= f->sp || entry > ctx->hi || entry % WORD != 0 ||
	    !stack_word(ctx, entry + (uintptr_t)p->ra, &ra) ||
	    ((has & HAS_FP) && !stack_word(ctx, entry + (uintptr_t)p->fp, &fp)))
		return 0;
	ra = stripped(ra);
	kind = returns_to(ctx, ra);
	if (kind == NOT_RETURN && f->kind != FIRST) {
		if (certain && (!DOUBTFUL || OUTERMOST(ra)))
			f->kind = NOT_RETURN;
		return 0;
	}
	f->pc = ra & ~(uintptr_t)MODE;
	f->sp = entry;
	f->fp = fp;
	f->kind = kind;
	f->rule = kind == RETURN ? recall(ctx, ra) : 0;
	take(t, f->pc);
	return 1;
}

/*
 * caller replaces f by its caller, as the prologue that begins at start has it. The rule
 * is cached if it follows from code alone: if this is the function, as certain as
 * can be without the stack.
 */
static int caller(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	uintptr_t end, int certain, struct taken *t)
{
	struct prologue p;
	uintptr_t at, entry, other, rule = NO_RULE;
	unsigned has;

	at = read_prologue(ctx, start, f->pc, &p);
	has = p.has;
	/* Lowered by what is not known, and no frame pointer */
	if (!(has & HAS_RA) || (has & (DYNAMIC | SETS_FP)) == DYNAMIC)
		has = 0;
	else
		rule = rule_of(&p);
	entry = f->sp - (uintptr_t)p.sp;
	if (has & SETS_FP) {
		other = f->fp - (uintptr_t)p.frame;
		if (other <= f->sp || other > ctx->hi)
			other = entry;
		if ((other != entry || (certain && RULE_COUNT(ctx) != 0)) && moves_sp(ctx, at, f->pc, end, &p)) {
			rule = 0;
			entry = other;
		}
	}
	if (certain)
		remember(ctx, f->pc | CALLS, rule);
	return (has & HAS_RA) && leave(ctx, f, entry, &p, has, certain, t);
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

/* up replaces f by its caller, and takes it. */
static int up(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t at, end, start;
#ifndef LWSBT_CAPTURE_TABLE_ONLY
	unsigned tries = 0;
#endif

	/* The table says no more than the rule did. */
	if (f->kind != RETURN || (f->rule != 0 && ctx->functions))
		return 0;
	/* The call, not what follows it: that may be another function. */
	at = f->pc - STEP;
	if (ctx->functions) {
		start = look_up(ctx->functions, at, &end);
		return start != 0 && start >= ctx->code_lo && caller(ctx, f, start, end, 1, t);
	}
#ifndef LWSBT_CAPTURE_TABLE_ONLY
	end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR;
	while (tries < TRIES && f->kind == RETURN && at - end >= STEP && in_code(ctx, at - STEP, STEP)) {
		at -= STEP;
		if (!saves_ra(ctx, at))
			continue;
		if (caller(ctx, f, begin(ctx, at), f->pc + FAR, tries == 0, t))
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
	struct taken t = {pcs, 0 - skip, max};
	struct prologue p;
	uintptr_t word, key = start ^ 1;

	if (!ctx || !stack_word(ctx, f->sp, &word))
		return 0;
	f->kind = FIRST;
	f->pc = start;
	f->rule = recall(ctx, key);
	if (f->rule == 0) {
		/* This function is known to have no frame pointer that differs from its
		 * stack pointer, and to be before its first branch no longer. */
		start &= ~(uintptr_t)MODE;
		read_prologue(ctx, start, start + FAR, &p);
		if (!(p.has & HAS_RA) || !leave(ctx, f, f->sp - (uintptr_t)p.sp, &p, p.has, 1, &t))
			return 0;
		remember(ctx, key, rule_of(&p));
	}
	do
		by_rules(ctx, f, &t);
	while (t.n != max && up(ctx, f, &t));
	return t.n <= max ? t.n : 0;
}

#endif
