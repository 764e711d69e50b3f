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
 * taken for a part of its prologue. Where what that saved is no return address,
 * the walk ends.
 *
 * What is found out is a rule, which depends on code alone: so it can be cached by the
 * return address (struct lwsbt_rule).
 *
 * With LWSBT_CAPTURE_TABLE_ONLY there always is a table, and what is needed without
 * is left out: 1,150 to 1,310 bytes of Thumb code.
 *
 * A backend says how instructions are read. Before it includes this header, it
 * includes capture_code.h and defines:
 *
 *   STEP          the size of the smallest instruction in bytes
 *   MODE          the bits of a return address that are no part of the address
 *   CALLS         bit 0 of a return address to code that decode reads
 *   REGISTERS     how many registers constants are loaded to, at most 32
 *   DELAY         1 if a branch is executed with the instruction after it
 *   RA, FP        the registers of return address and frame pointer
 *
 * and after it, these functions:
 *
 *   decode        reads the instruction at an address into a struct prologue, and
 *                 returns its length in bytes
 *   saves_ra      reports whether the instruction at an address saves the return
 *                 address
 *   begin         returns where the prologue begins of which that is a part
 *   search        only with OWN_SEARCH, instead of saves_ra's use: returns where the
 *                 function begins that a call is in, or 0
 *   cross         only with EXCEPTIONS: replaces a frame whose return address is no
 *                 return address but the mark of an exception by the interrupted
 *                 function, and takes that
 *   resume        only with EXCEPTIONS: replaces the interrupted function by its caller
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

/* What a word of the stack is: no return address, that of a call, or that of a call
 * by code that decode can't read. FIRST is the frame of the capture function, INTERRUPTED
 * one that an exception interrupted: its pc follows no call. */
enum { NOT_RETURN, RETURN, OTHER_MODE, FIRST, INTERRUPTED };

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
#ifdef OTHER_MODES
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra);
#else
#define other_mode(ctx, ra) 0
#endif

/* How far a search for a prologue goes, in bytes of code: interpreters have functions
 * over 64 KiB. */
#define FAR 0x40000

/* A function on the stack, of which pc is the next instruction to execute. */
struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t lo, hi; /* the stack that sp is on */
	uintptr_t rule;	/* what the cache has of pc, or 0 */
#ifdef EXCEPTIONS
	uintptr_t lr;	/* of one that was interrupted */
#endif
	int kind;	/* of pc */
};

/* The word at address at of the stack that f is on, if it is aligned and within the limits. */
UNUSED static int frame_word(const struct frame *f, uintptr_t at, uintptr_t *word)
{
	if (at % WORD != 0 || at < f->lo || at >= f->hi || f->hi - at < WORD)
		return 0;
	*word = *(const uintptr_t *)at;
	return 1;
}

/* find_stack sets the limits of the stack that f->sp is on. */
INLINE int find_stack(const struct lwsbt_capture_ctx *ctx, struct frame *f)
{
	f->lo = ctx->lo;
	f->hi = ctx->hi;
#ifdef EXCEPTIONS
	if (f->sp - ctx->irq_lo < ctx->irq_hi - ctx->irq_lo) {
		f->lo = ctx->irq_lo;
		f->hi = ctx->irq_hi;
	}
#endif
	return f->lo < f->hi;
}

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
 *   31   30                16 15            8 7             0
 *  | by | entry, above sp    | fp, below    | ra, below     |
 *  | fp | or, by fp, above fp| entry, or 0  | entry         |
 *
 * By fp is the rule of a function that moves its stack pointer at run time. NO_RULE is that of
 * a function that no caller can be told of.
 *
 * A rule is in one of PROBES places from where the key's hash points to. It has the key
 * xor the hash of the rule for a check: so what two threads wrote at a time is
 * taken for none.
 *
 * The key is the return address, with its mode bit. That of the capture function
 * itself is the complement of its start.
 */
#define HASH 0x9e3779b1u
#define BY_FP(rule) ((rule) >> 31 & 1)
#define ENTRY(rule) ((rule) >> 16 & 0x7fff)
#define BELOW_FP(rule) ((rule) >> 8 & 0xff)
#define BELOW_RA(rule) ((rule) & 0xff)
#define NO_RULE 1u
#define PROBES 8

#if LWSBT_SPEED
#define RULE_COUNT(ctx) (ctx)->rule_count
#else
#define RULE_COUNT(ctx) 0u
#endif

/* Each access is one of the machine's, as others may write at the time. */
#define SHARED(word) (*(volatile uintptr_t *)&(word))

/* Where the places of a key begin: the n-th is at place(ctx, hash(key) + n). The highest bits
 * of the product depend on most bits of the key. */
INLINE uint32_t hash(uintptr_t key)
{
	return (uint32_t)key * HASH >> 20;
}

INLINE struct lwsbt_rule *place(const struct lwsbt_capture_ctx *ctx, uint32_t n)
{
	return ctx->rules + (n & (RULE_COUNT(ctx) - 1));
}

/* rule_at returns the rule in the n-th place if it is that of a key, or 0. */
INLINE uintptr_t rule_at(const struct lwsbt_capture_ctx *ctx, uint32_t n, uintptr_t key)
{
	struct lwsbt_rule *r = place(ctx, n);
	uintptr_t rule = SHARED(r->rule);

	return (SHARED(r->check) ^ rule * HASH) == key ? rule : 0;
}

/* find returns the rule of a key, or 0, in a cache that has entries. */
NOINLINE static uintptr_t find(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	struct lwsbt_rule *r;
	uintptr_t rule;
	uint32_t at = hash(key), end = at + PROBES;

	do {
		r = place(ctx, at);
		rule = SHARED(r->rule);
		if ((SHARED(r->check) ^ rule * HASH) == key)
			return rule;
	} while (rule != 0 && ++at != end);
	return 0;
}

/* recall returns the rule of a key, or 0. */
INLINE uintptr_t recall(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	return RULE_COUNT(ctx) != 0 ? find(ctx, key) : 0;
}

/* remember takes the first place that is free, or one of those taken. */
static void remember(const struct lwsbt_capture_ctx *ctx, uintptr_t key, uintptr_t rule)
{
	struct lwsbt_rule *r;
	unsigned n;

	if (RULE_COUNT(ctx) == 0 || rule == 0)
		return;
	for (n = 0; n < PROBES && SHARED(place(ctx, hash(key) + n)->rule) != 0; n++)
		;
	r = place(ctx, hash(key) + (n < PROBES ? n : (unsigned)(key >> 4) % PROBES));
	SHARED(r->rule) = rule;
	SHARED(r->check) = key ^ rule * HASH;
}

/* The rule of a prologue, or 0 if it does not fit: by_fp of one whose stack pointer moves,
 * from where its frame pointer points to. */
static uintptr_t rule_of(const struct prologue *p, int by_fp)
{
	intptr_t down = by_fp ? p->frame : p->sp;
	uintptr_t entry = -(uintptr_t)down / WORD, ra = -(uintptr_t)p->ra / WORD,
		fp = p->has & HAS_FP ? -(uintptr_t)p->fp / WORD : 0;

	if ((down | p->ra) % (intptr_t)WORD != 0 || entry > 0x7fff || ra > 0xff || fp > 0xff ||
	    ra == 0 || (!by_fp && (ra > entry || fp > entry)) ||
	    (p->has & HAS_FP && -(uintptr_t)p->fp != fp * WORD))
		return 0;
	return (uintptr_t)(by_fp != 0) << 31 | entry << 16 | fp << 8 | ra;
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

#ifdef EXCEPTIONS
static int cross(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t mark, struct taken *t);
static int resume(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t);
#else
#define cross(ctx, f, entry, mark, t) 0
#define resume(ctx, f, t) 0
#endif

/* land replaces f by its caller, to which the return address is ra, and takes that. */
static int land(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t ra, uintptr_t fp, struct taken *t)
{
	int kind;

	ra = stripped(ra);
	kind = returns_to(ctx, ra);
	if (kind == NOT_RETURN && f->kind != FIRST) {
		f->fp = fp;
		return cross(ctx, f, entry, ra, t);
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
 * by_rules replaces f by its caller, takes that, and goes on as long as the cache has a
 * rule: which then is known to be of a return address. f->sp must lie on the stack. It does not
 * set f->pc, which nobody reads while there is a rule.
 */
NOINLINE static void by_rules(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t entry, ra, next, sp = f->sp, fp = f->fp, rule = f->rule;
	size_t n = t->n;
	int missed = 0;

	while (LWSBT_SPEED && rule != 0 && n != t->max) {
		entry = (BY_FP(rule) ? fp : sp) + ENTRY(rule) * WORD;
		if (BY_FP(rule) && (entry % WORD != 0 || entry - sp < BELOW_RA(rule) * WORD ||
				    entry - sp < BELOW_FP(rule) * WORD))
			break;
		/* Every function that calls has a frame: so the walk ends. */
		if (entry <= sp || entry > f->hi)
			break;
		ra = stripped(*(const uintptr_t *)(entry - BELOW_RA(rule) * WORD));
		if (BELOW_FP(rule) != 0)
			fp = *(const uintptr_t *)(entry - BELOW_FP(rule) * WORD);
		next = rule_at(ctx, hash(ra), ra); /* the first place, of most rules: a call of find takes longer */
		if (next == 0)
			next = find(ctx, ra);
		if (next == 0) {
			missed = 1;
			break;
		}
		sp = entry;
		rule = next;
		if ((ptrdiff_t)n >= 0) /* else it is skipped */
			t->pcs[n] = ra & ~(uintptr_t)MODE;
		n++;
	}
	if (n != t->n)
		f->kind = RETURN;
	t->n = n;
	f->sp = sp;
	f->fp = fp;
	f->rule = rule;
	if (missed)
		(void)land(ctx, f, entry, ra, fp, t);
}

/* leave replaces f by its caller, if its function was entered with a stack pointer of
 * entry, and takes that. */
static int leave(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	const struct prologue *p, struct taken *t)
{
	uintptr_t ra, fp = f->fp;

	if (entry <= f->sp || entry > f->hi || entry % WORD != 0 ||
	    !frame_word(f, entry + (uintptr_t)p->ra, &ra) ||
	    ((p->has & HAS_FP) && !frame_word(f, entry + (uintptr_t)p->fp, &fp)))
		return 0;
	return land(ctx, f, entry, ra, fp, t);
}

/*
 * entry_of returns the stack pointer that the function of f was entered with, whose prologue p
 * was read up to address at; 0 if it can't be known. *by_fp is set if the function moves its
 * stack pointer. That is looked for only where the frame pointer says otherwise, or for the cache.
 */
NOINLINE static uintptr_t entry_of(const struct lwsbt_capture_ctx *ctx, const struct frame *f,
	struct prologue *p, uintptr_t at, uintptr_t end, int *by_fp)
{
	uintptr_t entry = f->sp - (uintptr_t)p->sp, other = f->fp - (uintptr_t)p->frame;
	intptr_t sp = p->sp;
	unsigned has = p->has;

	*by_fp = 0;
	if (!(has & SETS_FP))
		return has & DYNAMIC ? 0 : entry;
	if (other == entry && RULE_COUNT(ctx) == 0)
		return entry;
	*by_fp = moves_sp(ctx, at, f->pc, end, p);
	p->sp = sp;
	p->has = has;
	return *by_fp ? other : entry;
}

/*
 * caller replaces f by its caller, as the prologue that begins at start has it. The rule
 * follows from code alone, and is cached. What takes much of the stack is a function of its own, here
 * and below, so that no two of them take it at a time.
 */
NOINLINE static int caller(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	uintptr_t end, struct taken *t)
{
	struct prologue p;
	uintptr_t at, entry = 0, rule = NO_RULE;
	int by_fp;

	if (start != 0) {
		at = read_prologue(ctx, start, f->pc, &p);
		if (p.has & HAS_RA)
			entry = entry_of(ctx, f, &p, at, end, &by_fp);
		if (entry != 0)
			rule = rule_of(&p, by_fp);
	}
	remember(ctx, f->pc | CALLS, rule);
	return entry != 0 && leave(ctx, f, entry, &p, t);
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

#if !defined(LWSBT_CAPTURE_TABLE_ONLY) && !defined(OWN_SEARCH)

static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR;

	while (at - end >= STEP && in_code(ctx, at - STEP, STEP)) {
		at -= STEP;
		if (saves_ra(ctx, at))
			return begin(ctx, at);
	}
	return 0;
}

#endif

/* start_of returns where the function at address at begins, or 0, and where it may end. */
NOINLINE static uintptr_t start_of(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t *end)
{
	uintptr_t start;

	if (ctx->functions) {
		start = look_up(ctx->functions, at, end);
		return start >= ctx->code_lo ? start : 0;
	}
#ifdef LWSBT_CAPTURE_TABLE_ONLY
	return 0;
#else
	*end = at + FAR;
	return search(ctx, at);
#endif
}

/* up replaces f by its caller, and takes it. */
static int up(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t end = 0, start;

	if (f->kind == INTERRUPTED)
		return resume(ctx, f, t);
	/* Where there is a rule, the prologue says no more. */
	if (f->kind != RETURN || f->rule != 0)
		return 0;
	/* The call, not what follows it: that may be another function. */
	start = start_of(ctx, f->pc - STEP, &end);
	return caller(ctx, f, start, end, t);
}

/* first replaces f, the capture function itself, which begins at start, by its caller, and takes it. It
 * is known to have no frame pointer that differs from its stack pointer, and to be before its first
 * branch no longer than FAR. */
NOINLINE static int first(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	struct taken *t)
{
	struct prologue p;

	read_prologue(ctx, start & ~(uintptr_t)MODE, start + FAR, &p);
	if (!(p.has & HAS_RA) || !leave(ctx, f, f->sp - (uintptr_t)p.sp, &p, t))
		return 0;
	remember(ctx, ~start, rule_of(&p, 0));
	return 1;
}

/*
 * walk stores the return addresses of the functions above f, which is the
 * capture function itself: start is its first instruction.
 */
static size_t walk(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start)
{
	struct taken t = {pcs, 0 - skip, max};

	if (!ctx || !find_stack(ctx, f) || f->sp % WORD != 0 || f->sp - f->lo >= f->hi - f->lo)
		return 0;
	f->kind = FIRST;
	f->pc = start;
	f->rule = recall(ctx, ~start);
	if (f->rule == 0 && !first(ctx, f, start, &t))
		return 0;
	do
		by_rules(ctx, f, &t);
	while (t.n != max && up(ctx, f, &t));
	return t.n <= max ? t.n : 0;
}

#endif
