/*
 * capture_walk.h: from a frame (capture_frame.h) to its caller, by its prologue (capture_prologue.h) or by the
 * cache (capture_rules.h).
 */

#ifdef EXCEPTIONS
static int cross(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t mark, struct taken *t);
static int ends_soon(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e);
static int ends_late(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e);
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
			next = find_rule(ctx, ra);
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

#ifdef EXCEPTIONS

/* resume replaces f, which was interrupted anywhere, by its caller. */
NOINLINE static int resume(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	struct end e;

	if (ends_soon(ctx, f, &e) && land(ctx, f, e.sp, e.lr, e.fp, t))
		return 1;
	return f->kind == INTERRUPTED && ends_late(ctx, f, &e) && land(ctx, f, e.sp, e.lr, e.fp, t);
}

#endif

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
