/*
 * Stacks that need no walk: those of places where the thread allocated before.
 */
#include "walk.h"

#ifdef WALKS

/*
 * Stacks that the thread had, by where on the stack the allocator was called and by
 * the innermost frames. A loop allocates at the same places again and again, and the
 * stack is the same if all words that a walk would read are. These are at
 * sp + at[i] words; the first depth - 1 have the stack's pcs, but for the
 * innermost; behind these stand pairs, the second of which says what the first has:
 * the address of sp + so many words. The place that followed the last one the time
 * before is looked at first.
 */
#define PLACE_BITS 5
#define PLACE_FRAMES 4
#define PLACE_WORDS 38

static __thread struct place {
	uintptr_t pc, sp, fp;
	const uintptr_t *pcs;	/* the stack's */
	stack_id id;
	uint32_t salt;
	uint16_t next;		/* where the stack of the allocation after it was, in bytes
				 * from places */
	uint8_t frames, words;	/* of at: the first ones, and all; 0: an empty place */
	bool by_fp;
	uint16_t at[PLACE_WORDS];
} places[1 << PLACE_BITS] __attribute__((tls_model("initial-exec")));

/* The place of the last stack, in bytes from places. */
static __thread uint16_t before __attribute__((tls_model("initial-exec")));

/* place_of returns where the stack may be kept. What it reads need not be right, so it
 * is no walk: here finds out. */
static inline struct place *place_of(const struct regs *from, uint64_t now_salt)
{
	uintptr_t pc = from->pc, sp = from->sp, fp = from->fp;
	uint64_t h = sp;

	for (unsigned i = 0;; i++) {
		h = (h ^ pc) * HASH_FACTOR;
		if (i == PLACE_FRAMES - 1)
			break;
		const struct kept *k = kept_at(pc);
		uint64_t r = __atomic_load_n(&k->rule, __ATOMIC_RELAXED);
		if ((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ r) != (pc ^ now_salt) ||
		    (kind_of(r) != RULE_SP && kind_of(r) != RULE_FP))
			break;
		sp = (kind_of(r) == RULE_SP ? sp : fp) + (uintptr_t)cfa_of(r);
		uintptr_t at = sp + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
		uintptr_t fp_at = sp + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
		if (at - from->sp >= self.hi - from->sp || fp_at - from->sp >= self.hi - from->sp)
			break;
		pc = bare(word_at(at));
		fp = fp_of(r) ? word_at(fp_at) : fp;
	}
	return &places[h >> (64 - PLACE_BITS)];
}

/* here reports whether the stack is that which the place has. */
static inline bool here(const struct place *p, const struct regs *r, uint64_t now_salt)
{
	if (p->pc != r->pc || p->sp != r->sp || p->salt != (uint32_t)now_salt || !p->words ||
	    (UNLIKELY(p->by_fp) && p->fp != r->fp))
		return false;
	const uintptr_t *sp = (const uintptr_t *)r->sp, *pcs = p->pcs;
	unsigned n = p->frames;
	/* The innermost are those that differ, if any. */
	for (unsigned i = n; i-- > 0;)
		if (bare(sp[p->at[i]]) != pcs[i])
			return false;
	for (unsigned i = n; UNLIKELY(i < p->words); i += 2)
		if (sp[p->at[i]] != (uintptr_t)(sp + p->at[i + 1]))
			return false;
	return true;
}

/* words_from returns how many words an address is from sp on, 0 if that does not fit. */
static inline uint16_t words_from(uintptr_t sp, uintptr_t at)
{
	at -= sp;
	return at % WORD || at / WORD > UINT16_MAX ? 0 : (uint16_t)(at / WORD);
}

void settle(struct place *p, unsigned depth, stack_id id)
{
	unsigned n = last.n, first = n - depth, k = 0;
	uintptr_t sp = last.sp[n - 1];

	p->words = 0;
	/* Words of the outermost frame say that there is no other: not looked at here. */
	if (!id || (!first && last.others[0]) || depth < 2 ||
	    depth - 1 + 2u * (last.others[n - 1] - last.others[first]) > PLACE_WORDS)
		return;
	for (unsigned i = first + 1; i < n; i++)
		p->at[k++] = words_from(sp, last.ra_at[i]);
	for (unsigned i = last.others[first]; i < last.others[n - 1]; i++) {
		p->at[k++] = words_from(sp, last.other[i].at);
		p->at[k++] = words_from(sp, last.other[i].value);
	}
	/* None of a caller's is at sp itself: 0 is a word that does not fit. */
	for (unsigned i = 0; i < k; i++)
		if (!p->at[i])
			return;
	p->pc = last.pc[n - 1];
	p->sp = sp;
	p->fp = last.fp[n - 1];
	p->by_fp = last.by_fp[n - 1];
	p->salt = (uint32_t)last.salt;
	p->id = id;
	p->pcs = stack_get(id)->pcs;
	p->frames = (uint8_t)(depth - 1);
	p->words = (uint8_t)k;
}

static inline struct place *place_at(uint16_t bytes)
{
	return (struct place *)(void *)((char *)places + bytes);
}

static __attribute__((noinline)) stack_id walk_elsewhere(const struct regs *from, uint64_t now_salt)
{
	struct place *p = place_of(from, now_salt);

	uint16_t bytes = (uint16_t)((char *)p - (char *)places);

	place_at(before)->next = bytes;
	before = bytes;
	if (UNLIKELY(!here(p, from, now_salt)))
		return walk_new(from, now_salt, p);
	if (UNLIKELY(walk_check))
		check(stack_get(p->id)->pcs, stack_get(p->id)->depth, from->pc);
	return p->id;
}

stack_id walk(const struct regs *from)
{
	uint64_t now_salt = __atomic_load_n(&salt, __ATOMIC_ACQUIRE);
	uint16_t next = place_at(before)->next;
	const struct place *p = place_at(next);

	if (UNLIKELY(!here(p, from, now_salt)))
		return walk_elsewhere(from, now_salt);
	before = next;
	if (UNLIKELY(walk_check))
		check(stack_get(p->id)->pcs, stack_get(p->id)->depth, from->pc);
	return p->id;
}

#endif
