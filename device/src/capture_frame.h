/*
 * capture_frame.h: a frame of the stack, and what the code of its function says of it.
 */

/* What a word of the stack is: no return address, that of a call, or that of a call
 * by code that decode can't read. FIRST is the frame of the capture function, INTERRUPTED
 * one that an exception interrupted: its pc follows no call. */
enum { NOT_RETURN, RETURN, OTHER_MODE, FIRST, INTERRUPTED };

#ifdef OTHER_MODES
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra);
#else
#define other_mode(ctx, ra) 0
#endif

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

#ifdef EXCEPTIONS
/* What an interrupted function leaves to its caller. */
struct end {
	uintptr_t sp, fp, lr;
};
#endif

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

static int returns_to(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	if ((ra & 1) == CALLS && after_call(ctx, ra - CALLS))
		return RETURN;
	return other_mode(ctx, ra) ? OTHER_MODE : NOT_RETURN;
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
