/*
 * capture_rules.h: the cache of what capture_prologue.h has read. A rule depends on code alone.
 *
 * A rule is where a function's caller left things, in words:
 *
 *   31   30                16 15            8 7             0
 *  | by | entry, above sp    | fp, below    | ra, below     |
 *  | fp | or, by fp, above fp| entry, or 0  | entry         |
 *
 * By fp is the rule of a function that moves its stack pointer at run time. NO_RULE is that of
 * a function that no caller can be told of.
 *
 * A rule is in one of RULE_PROBES places from where the key's hash points to. It has the key
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
#define RULE_PROBES 8

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
NOINLINE static uintptr_t find_rule(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	struct lwsbt_rule *r;
	uintptr_t rule;
	uint32_t at = hash(key), end = at + RULE_PROBES;

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
	return RULE_COUNT(ctx) != 0 ? find_rule(ctx, key) : 0;
}

/* remember takes the first place that is free, or one of those taken. */
static void remember(const struct lwsbt_capture_ctx *ctx, uintptr_t key, uintptr_t rule)
{
	struct lwsbt_rule *r;
	unsigned n;

	if (RULE_COUNT(ctx) == 0 || rule == 0)
		return;
	for (n = 0; n < RULE_PROBES && SHARED(place(ctx, hash(key) + n)->rule) != 0; n++)
		;
	r = place(ctx, hash(key) + (n < RULE_PROBES ? n : (unsigned)(key >> 4) % RULE_PROBES));
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
