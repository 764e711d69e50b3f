/*
 * Stacks that need no walk, since the thread allocated at the same place before.
 */
#include "walk.h"

#ifdef WALKS

#define INLINE static inline __attribute__((always_inline))

/*
 * Stacks of the thread, by the stack pointer of the allocation and the innermost frames. A
 * loop allocates at the same places again and again. The stack is the same if all words that
 * a walk would read are the same. These words are at sp + at[i] words. The first of them
 * hold the pcs of the stack, except for the innermost. Pairs follow: the word at the first
 * of a pair holds the address sp + the second, in words. The place that came after the
 * last one the time before is tried first.
 */
#define PLACE_FRAMES 4

/* place_of returns where the stack may be kept. It reads some frames only, and need not be
 * right: here finds out. */
static unsigned place_of(const struct regs *from, uint64_t now_salt, uintptr_t hi)
{
	uintptr_t pc = from->pc, sp = from->sp, fp = from->fp, limit = hi - from->sp - WORD;
	uint64_t h = sp;

	for (unsigned i = 0;; i++) {
		h = (h ^ pc) * 0x9e3779b97f4a7c15u;
		if (i == PLACE_FRAMES - 1)
			break;
		const struct kept *k = kept_at(pc);
		uint64_t r = __atomic_load_n(&k->rule, __ATOMIC_RELAXED);
		if ((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ r) != key_of(pc, now_salt) ||
		    (kind_of(r) != RING_RULE_SP && kind_of(r) != RING_RULE_FP))
			break;
		sp = (kind_of(r) == RING_RULE_SP ? sp : fp) + (uintptr_t)cfa_of(r);
		uintptr_t at = sp + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
		uintptr_t fp_at = sp + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
		if (at - from->sp > limit || fp_at - from->sp > limit + WORD || (fp_of(r) && fp_at - from->sp > limit))
			break;
		pc = bare(word_at(at));
		fp = fp_of(r) ? word_at(fp_at) : fp;
	}
	return (unsigned)(h >> 59);
}
_Static_assert(RING_PLACES == 1u << (64 - 59), "the bits of the hash");

/* here reports whether the stack is that which the place has. */
INLINE bool here(const struct place *p, const struct regs *r, uint64_t now_salt, uintptr_t hi)
{
	if (p->pc != r->pc || p->sp != r->sp || p->salt != (uint32_t)now_salt || !p->words ||
	    (UNLIKELY(p->by_fp) && p->fp != r->fp))
		return false;
	const uintptr_t *sp = (const uintptr_t *)r->sp, *pcs = p->pcs;
	unsigned n = p->frames;
	if (UNLIKELY((uintptr_t)(sp + p->far + 1) > hi) &&
	    (on_stack(r->sp) || !reach(r->sp, &hi, (uintptr_t)(sp + p->far + 1))))
		return false;
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
static uint16_t words_from(uintptr_t sp, uintptr_t at)
{
	at -= sp;
	return at % WORD || at / WORD > UINT16_MAX ? 0 : (uint16_t)(at / WORD);
}

/* settle makes the last stack that of a place, and reports whether it could. */
static bool settle(struct place *p, const struct last *l)
{
	unsigned n = l->n, k = 0, far = 0;
	uintptr_t sp = l->sp[n - 1];

	p->words = 0;
	/* Words of the outermost frame say that there is no other: not looked at here. */
	if (!l->salt || l->others[0] || n < 2 || n - 1 + 2u * (l->others[n - 1] - l->others[0]) > PLACE_WORDS)
		return false;
	for (unsigned i = 1; i < n; i++) {
		p->pcs[k] = l->pc[i - 1];
		p->at[k++] = words_from(sp, l->ra_at[i]);
	}
	for (unsigned i = l->others[0]; i < l->others[n - 1]; i++) {
		p->at[k++] = words_from(sp, l->other[i].at);
		p->at[k++] = words_from(sp, l->other[i].value);
	}
	/* None of a caller's is at sp itself: 0 is a word that does not fit. */
	for (unsigned i = 0; i < k; i++) {
		if (!p->at[i])
			return false;
		if (i < n - 1 || (i - (n - 1)) % 2 == 0)
			far = p->at[i] > far ? p->at[i] : far;
	}
	p->pc = l->pc[n - 1];
	p->sp = sp;
	p->fp = l->fp[n - 1];
	p->by_fp = l->by_fp[n - 1];
	p->salt = (uint32_t)l->salt;
	p->frames = (uint16_t)(n - 1);
	p->far = (uint16_t)far;
	p->words = (uint16_t)k;
	return true;
}

static NOINLINE void walk_elsewhere(struct own *o, const struct regs *from, uint64_t now_salt, struct stack *s)
{
	uintptr_t hi = on_stack(from->sp) ? self.hi : page_end(from->sp);
	unsigned place = place_of(from, now_salt, hi);

	o->place[o->before].next = (uint8_t)place;
	o->before = (uint8_t)place;
	if (UNLIKELY(!here(&o->place[place], from, now_salt, hi))) {
		if (walk_new(o, from, now_salt, s) && settle(&o->place[place], &o->last))
			s->place = place;
		return;
	}
	s->place = place;
	s->frames = false;
}

void walk(struct own *o, const struct regs *from, struct stack *s)
{
	uint64_t now_salt = __atomic_load_n(&walk_salt, __ATOMIC_ACQUIRE);
	unsigned next = o->place[o->before].next;
	uintptr_t hi = LIKELY(from->sp - self.lo < self.hi - self.lo) ? self.hi : page_end(from->sp);

	if (UNLIKELY(!here(&o->place[next], from, now_salt, hi))) {
		walk_elsewhere(o, from, now_salt, s);
		return;
	}
	o->before = (uint8_t)next;
	s->place = next;
	s->frames = false;
}

#endif
