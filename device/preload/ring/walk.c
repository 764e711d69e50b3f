/*
 * Call stacks. A frame is left by the rule of its return address, from the tables of
 * its module; where there is none, by the frame pointer, if what it points to looks like
 * a frame. Nothing is read outside the thread's stack but pages that were checked in
 * the same walk.
 *
 * Three things are kept, so that most stacks need no walk: the rule of each return address;
 * the thread's last stack, since from one allocation to the next most of a stack stays as
 * it is; and places where the thread allocated before.
 */
#include <string.h>

#include "../../src/capture_code.h"
#undef WORD
#undef INLINE
#undef NOINLINE
#define INLINE static inline __attribute__((always_inline))
#include "preload.h"

/* lwsbt_in_code reports whether n bytes of code can be read: see capture_code.h. */
int lwsbt_in_code(uintptr_t at, uintptr_t n)
{
	return readable(at) && readable(at + n - 1);
}

void walk_begin(struct own *o)
{
	o->before = 0;
	o->last.n = 0;
	for (unsigned i = 0; i < RING_PLACES; i++) {
		o->place[i].words = 0;
		o->place[i].next = 0;
	}
}

/* This counts unloads: of another salt, what is kept is void. */
static uintptr_t salt = 1;

void walk_forget(void)
{
	__atomic_fetch_add(&salt, 1, __ATOMIC_RELEASE);
}

#ifdef WALKS

/* ---------------------------------------------------------------- rules */

/*
 * A rule in 64 bits:
 *
 *   63    61 60              33 32          17 16          1  0
 *  | kind   | cfa, signed 28   | ra, signed 16| fp, signed 16|0|
 */
static uint64_t pack(struct rule r)
{
	return (uint64_t)r.kind << 61 | (uint64_t)(r.cfa & 0xfffffff) << 33 |
		(uint64_t)(uint16_t)r.ra << 17 | (uint64_t)(uint16_t)r.fp << 1;
}

INLINE enum rule_kind kind_of(uint64_t p) { return (enum rule_kind)(p >> 61); }
INLINE intptr_t cfa_of(uint64_t p) { return (intptr_t)((int64_t)(p << 3) >> 36); }
INLINE intptr_t ra_of(uint64_t p) { return (int16_t)(p >> 17); }
INLINE intptr_t fp_of(uint64_t p) { return (int16_t)(p >> 1); }

/* A return address and its rule, of all threads: key is the one in the other, so that
 * halves of two entries do not pass for one. */
static struct kept {
	uint64_t key, rule;
} *kept;

#define KEPT_BITS (sizeof(uintptr_t) > 4 ? 14 : 11)

bool walk_start(void)
{
	kept = pages(sizeof *kept << KEPT_BITS);
	return kept;
}

INLINE uint64_t key_of(uintptr_t pc, uint64_t now_salt)
{
	return pc ^ now_salt * 0x9e3779b97f4a7c15u;
}

INLINE struct kept *kept_at(uintptr_t pc)
{
	return &kept[(uint32_t)(pc * 0x9e3779b1u) >> (32 - KEPT_BITS)];
}

/* find_rule returns the packed rule of pc, and keeps it, if it is of a module. before:
 * pc is a return address; the call is before it, and may be the last of its function. */
static NOINLINE uint64_t find_rule(struct own *o, uintptr_t pc, uint64_t key, bool before)
{
	struct module m;
	struct rule r = {.kind = RULE_NONE};

	if (!module_at(pc - before, &m))
		return pack(r);
	bool told = module_tell(o, &m);
	if (m.table)
		r = cfi_rule(pc - before, &m);
	if (r.cfa >= 1 << 27 || r.cfa < -(1 << 27))
		r.kind = RULE_OTHER;
	uint64_t p = pack(r);
	if (before && told) {
		struct kept *k = kept_at(pc);
		__atomic_store_n(&k->key, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&k->rule, p, __ATOMIC_RELEASE);
		__atomic_store_n(&k->key, key ^ p, __ATOMIC_RELEASE);
	}
	return p;
}

INLINE uint64_t rule_at(struct own *o, uintptr_t pc, uint64_t now_salt)
{
	uint64_t key = key_of(pc, now_salt);
	struct kept *k = kept_at(pc);
	uint64_t rule = __atomic_load_n(&k->rule, __ATOMIC_ACQUIRE);

	if (LIKELY((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ rule) == key))
		return rule;
	return find_rule(o, pc, key, true);
}

/* ---------------------------------------------------------------- reading */

INLINE uintptr_t word_at(uintptr_t at) { return *(const uintptr_t *)at; }

/* reach has memory from sp on checked up to at, and reports whether all of it can be
 * read. hi is where what was checked so far ends. */
#define FAR ((uintptr_t)1 << 20)

static bool reach(uintptr_t sp, uintptr_t *hi, uintptr_t at)
{
	if (at - sp > FAR || (at > *hi && at - *hi > FAR))
		return false;
	for (; *hi < at; *hi += PAGE)
		if (!readable(*hi))
			return false;
	return true;
}

INLINE uintptr_t page_end(uintptr_t sp)
{
	return (sp | (PAGE - 1)) + 1;
}

/* ---------------------------------------------------------------- the last stack */

/*
 * What a walk finds from a frame outwards depends on the frame's pc, sp and fp, and on
 * the words that it reads. So a walk that comes to a frame that was there the last time,
 * and finds all words of the frames around it as they were, need not go on. That
 * costs a comparison per frame, and none waits for the one before.
 *
 * unchanged returns how many of the outermost n frames are as they were, once the
 * innermost of these is known to be.
 */
static unsigned unchanged(const struct last *l, unsigned n)
{
	uintptr_t differ = 0;
	unsigned i, k;

	for (i = 1; i < n; i++)
		differ |= stripped(word_at(l->ra_at[i])) ^ l->pc[i - 1];
	for (k = 0; k < l->others[n - 1]; k++)
		differ |= word_at(l->other[k].at) ^ l->other[k].value;
	if (LIKELY(!differ))
		return n;
	for (i = k = 0; i < n; i++) {
		if (i && stripped(word_at(l->ra_at[i])) != l->pc[i - 1])
			return i;
		for (; k < l->others[i]; k++)
			if (word_at(l->other[k].at) != l->other[k].value)
				return i;
	}
	return n;
}

/* ---------------------------------------------------------------- signal frames */

#if defined(__x86_64__)
#define SIG_SP 160
#define SIG_FP 120
#define SIG_PC 168
#elif defined(__aarch64__)
/* rt_sigframe: siginfo (128), ucontext: flags, link, stack (24), mask (128), then
 * sigcontext aligned to 16: fault_address, regs[31], sp, pc. */
#define SIG_REGS (128 + 176 + 8)
#define SIG_FP (SIG_REGS + 29 * 8)
#define SIG_RA (SIG_REGS + 30 * 8)
#define SIG_SP (SIG_REGS + 31 * 8)
#define SIG_PC (SIG_REGS + 32 * 8)
#endif

/* ---------------------------------------------------------------- the walk */

/* Where a frame pointer points, its caller's stands, and beside it the return address. */
#if defined(__riscv)
#define LINK_FP (-2 * (intptr_t)WORD)
#define LINK_RA (-(intptr_t)WORD)
#define LINK_CFA 0
#else
#define LINK_FP 0
#define LINK_RA ((intptr_t)WORD)
#define LINK_CFA (2 * WORD)
#endif

struct walk {
	struct walked *w;
	struct own *o;
	uint64_t salt;
	uintptr_t pc, sp, fp, ra;
	uintptr_t hi;		/* what is between sp and here can be read */
	bool foreign;		/* not on the thread's stack: hi is not the end of it */
	bool plain;		/* no frame so far that the next walk could not join */
	unsigned m;		/* the outermost frames of the last stack that may be joined */
};

/* in reports whether the word at an address can be read; it must be on the stack above sp. */
INLINE bool in(struct walk *k, uintptr_t at)
{
	if (LIKELY(at >= k->sp && at <= k->hi - WORD))
		return at % WORD == 0;
	return at >= k->sp && at % WORD == 0 && k->foreign && reach(k->sp, &k->hi, at + WORD);
}

static struct step *next_step(struct walk *k)
{
	struct step *s = &k->w->step[k->w->n++];

	*s = (struct step){.pc = k->pc, .sp = k->sp, .fp = k->fp};
	return s;
}

/* go_to has the walk go on at another stack pointer. */
static void go_to(struct walk *k, uintptr_t sp)
{
	k->sp = sp;
	k->foreign = !on_stack(sp);
	k->hi = k->foreign ? page_end(sp) : self.hi;
}

/* by_rule leaves a frame by its rule, and returns RING_END_OUTERMOST if it could, or why
 * it could not. */
static inline unsigned by_rule(struct walk *k, struct step *s, uint64_t r)
{
	uintptr_t cfa;

	if (kind_of(r) == RULE_SP)
		cfa = k->sp + (uintptr_t)cfa_of(r);
	else {
		s->by_fp = true;
		cfa = k->fp + (uintptr_t)cfa_of(r);
		if (UNLIKELY(kind_of(r) == RULE_AT_FP)) {
			s->cfa_at = cfa;
			if (!in(k, cfa)) {
				s->cfa_at = 0;
				return RING_END_UNREADABLE;
			}
			cfa = word_at(cfa);
		}
	}
	if (UNLIKELY(cfa < k->sp || cfa % 4 || (cfa == k->sp && !ra_of(r) && !k->ra)))
		return RING_END_UNKNOWN;
	uintptr_t pc = stripped(k->ra);
	if (ra_of(r)) {
		uintptr_t at = cfa + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
		if (UNLIKELY(!in(k, at)))
			return RING_END_UNREADABLE;
		s->ra_at = at;
		pc = stripped(word_at(at));
	}
	if (fp_of(r)) {
		s->by_fp |= fp_of(r) == FP_AT_FP;
		uintptr_t at = fp_of(r) == FP_AT_FP ? k->fp : cfa + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
		if (UNLIKELY(!in(k, at)))
			return RING_END_UNREADABLE;
		s->fp_at = at;
		k->fp = word_at(at);
	}
	k->ra = 0;
	k->pc = pc;
	k->sp = cfa;
	return RING_END_OUTERMOST;
}

/* returns_to reports whether ra is a return address, as far as can be seen: it is behind a
 * call. Those of code that was made at run time need not be. */
static bool returns_to(uintptr_t ra, bool chained)
{
	struct lwsbt_capture_ctx code = {.code_lo = ra - 8, .code_hi = UINTPTR_MAX};
	struct module m;

	if (ra < PAGE || !readable(ra - 8) || !readable(ra))
		return false;
	return module_at(ra - 1, &m) ? after_call(&code, ra) : chained;
}

/* by_fp leaves a frame for which there is no rule. The outermost one has no frame pointer,
 * as the psABIs want it. */
static unsigned by_fp(struct walk *k, struct step *s, bool *ended)
{
	uintptr_t fp = k->fp, up, ra;

	s->by_fp = true;
	*ended = !fp;
	if (!fp)
		return RING_END_OUTERMOST;
	if (fp % WORD || !in(k, fp + (uintptr_t)LINK_FP) || !in(k, fp + (uintptr_t)LINK_RA))
		return RING_END_UNKNOWN;
	s->ra_at = fp + (uintptr_t)LINK_RA;
	ra = stripped(word_at(s->ra_at));
	up = word_at(fp + (uintptr_t)LINK_FP);
	if (!returns_to(ra, up > fp && in(k, up)))
		return RING_END_UNKNOWN;
	s->fp_at = fp + (uintptr_t)LINK_FP;
	k->pc = ra;
	k->fp = up;
	k->sp = fp + LINK_CFA;
	return RING_END_OUTERMOST;
}

#ifdef SIG_PC
/* by_signal goes on where a signal came in. The handler may have had a stack of its own.
 * pc is not behind a call there: its rule is that of pc itself. */
static unsigned by_signal(struct walk *k, bool *ended)
{
	k->plain = false;
	k->m = 0;
	if (!in(k, k->sp + SIG_PC))
		return RING_END_UNREADABLE;
	k->pc = word_at(k->sp + SIG_PC);
	k->fp = word_at(k->sp + SIG_FP);
#ifdef SIG_RA
	k->ra = word_at(k->sp + SIG_RA);
#endif
	go_to(k, word_at(k->sp + SIG_SP));
	if (!on_stack(k->sp) && !readable(k->sp))
		return RING_END_UNREADABLE;
	if (k->w->n == RING_DEPTH)
		return RING_END_DEPTH;
	struct step *s = next_step(k);
	uint64_t r = find_rule(k->o, k->pc, 0, false);
	switch (kind_of(r)) {
	case RULE_SP: case RULE_FP: case RULE_AT_FP:
		return by_rule(k, s, r);
	case RULE_END:
		*ended = true;
		return RING_END_OUTERMOST;
	default:
		return by_fp(k, s, ended);
	}
}
#endif

/* join reports whether the frame that the walk is at was there the last time, and all
 * around it. */
INLINE bool join(struct walk *k)
{
	const struct last *l = &k->o->last;
	unsigned m = k->m;

	while (m && l->sp[m - 1] < k->sp)
		m--;
	if (m && l->sp[m - 1] == k->sp && l->pc[m - 1] == k->pc && (!l->by_fp[m - 1] || l->fp[m - 1] == k->fp)) {
		unsigned same = unchanged(l, m);
		if (LIKELY(same == m)) {
			k->w->joined = m;
			k->w->end = l->end;
			return true;
		}
		m = same;
	}
	k->m = m;
	return false;
}

static void walk_frames(struct walk *k)
{
	struct walked *w = k->w;
	bool ended = false;

	w->n = w->joined = 0;
	w->end = RING_END_OUTERMOST;
	while (!ended) {
		unsigned end = RING_END_OUTERMOST;
		if (UNLIKELY(k->pc < PAGE))
			break;
		if (join(k))
			break;
		if (w->n == RING_DEPTH) {
			w->end = RING_END_DEPTH;
			k->plain = false;
			break;
		}
		struct step *s = next_step(k);
		uint64_t r = rule_at(k->o, k->pc, k->salt);
		switch (kind_of(r)) {
		case RULE_SP: case RULE_FP: case RULE_AT_FP:
			end = by_rule(k, s, r);
			break;
		case RULE_END:
			ended = true;
			break;
		case RULE_SIGNAL:
#ifdef SIG_PC
			end = by_signal(k, &ended);
			break;
#endif
		case RULE_OTHER: case RULE_NONE:
			end = by_fp(k, s, &ended);
			break;
		}
		if (UNLIKELY(end != RING_END_OUTERMOST)) {
			w->end = (uint8_t)end;
			/* As the next one will, if its words are the same. */
			k->plain &= end == RING_END_UNKNOWN && s == &w->step[w->n - 1];
			ended = true;
		}
	}
	w->again = k->plain;
	w->top = k->hi;
}

/* remember puts the steps behind the frames that they joined. */
static void remember(struct last *l, const struct walked *w)
{
	unsigned n = w->joined, others = n ? l->others[n - 1] : 0;
	bool fits = true;

	for (unsigned i = w->n; i-- > 0; n++) {
		const struct step *s = &w->step[i];
		bool fp_counts = n && l->by_fp[n - 1]; /* of the next frame outwards */

		l->pc[n] = s->pc;
		l->sp[n] = s->sp;
		l->fp[n] = s->fp;
		l->ra_at[n] = s->ra_at;
		l->by_fp[n] = s->by_fp || (fp_counts && !s->fp_at);
		if (UNLIKELY(others + 3 > OTHERS)) {
			fits = false;
			others = 0;
		}
		if (UNLIKELY(s->cfa_at))
			l->other[others++] = (struct word){s->cfa_at, word_at(s->cfa_at)};
		if (s->fp_at && fp_counts)
			l->other[others++] = (struct word){s->fp_at, l->fp[n - 1]};
		if (!n && s->ra_at) /* the outermost frame's return address, which was none */
			l->other[others++] = (struct word){s->ra_at, word_at(s->ra_at)};
		l->others[n] = (uint16_t)others;
	}
	l->n = n;
	l->end = w->end;
	if (w->top > l->top || !w->joined)
		l->top = w->top;
	if (!fits)
		l->salt = 0; /* not to be joined */
}

/* ---------------------------------------------------------------- places */

/*
 * Stacks that the thread had, by where on the stack the allocator was called and by
 * the innermost frames. A loop allocates at the same places again and again, and the
 * stack is the same if all words that a walk would read are. These are at
 * sp + at[i] words; the first ones have the stack's pcs, but for the
 * innermost; behind these stand pairs, the second of which says what the first has:
 * the address of sp + so many words. The place that followed the last one the time
 * before is looked at first.
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
		    (kind_of(r) != RULE_SP && kind_of(r) != RULE_FP))
			break;
		sp = (kind_of(r) == RULE_SP ? sp : fp) + (uintptr_t)cfa_of(r);
		uintptr_t at = sp + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
		uintptr_t fp_at = sp + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
		if (at - from->sp > limit || fp_at - from->sp > limit + WORD || (fp_of(r) && fp_at - from->sp > limit))
			break;
		pc = stripped(word_at(at));
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
		if (stripped(sp[p->at[i]]) != pcs[i])
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

static NOINLINE void walk_new(struct own *o, const struct regs *from, uint64_t now_salt, unsigned place, struct stack *s)
{
	struct walked *w = &o->walked;
	struct last *l = &o->last;
	struct walk k = {.w = w, .o = o, .salt = now_salt, .pc = from->pc, .fp = from->fp, .plain = true};

	go_to(&k, from->sp);
	/* Words of another stack that was there are not to be read. */
	if (l->salt == now_salt && l->foreign == k.foreign &&
	    (!k.foreign || (l->top >= k.hi && reach(k.sp, &k.hi, l->top))))
		k.m = l->n;
	l->foreign = k.foreign;
	walk_frames(&k);
	if (UNLIKELY(w->n + w->joined > RING_DEPTH)) {
		go_to(&k, from->sp);
		k.pc = from->pc;
		k.fp = from->fp;
		k.ra = k.m = 0;
		walk_frames(&k);
	}
	*s = (struct stack){.place = RING_PLACE_NONE, .frames = true, .kept = w->joined, .more = w->n, .end = w->end};
	if (LIKELY(w->again)) {
		l->salt = now_salt;
		remember(l, w);
		s->pcs = l->pc + w->joined;
		if (settle(&o->place[place], l))
			s->place = place;
	} else {
		l->n = 0;
		s->steps = w->step;
	}
}

static NOINLINE void walk_elsewhere(struct own *o, const struct regs *from, uint64_t now_salt, struct stack *s)
{
	uintptr_t hi = on_stack(from->sp) ? self.hi : page_end(from->sp);
	unsigned place = place_of(from, now_salt, hi);

	o->place[o->before].next = (uint8_t)place;
	o->before = (uint8_t)place;
	if (UNLIKELY(!here(&o->place[place], from, now_salt, hi))) {
		walk_new(o, from, now_salt, place, s);
		return;
	}
	s->place = place;
	s->frames = false;
}

void walk(struct own *o, const struct regs *from, struct stack *s)
{
	uint64_t now_salt = __atomic_load_n(&salt, __ATOMIC_ACQUIRE);
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

#else

/* ---------------------------------------------------------------- other machines */

#if defined(__mips__)
#define CAPTURE lwsbt_capture_mips
#elif defined(__thumb__)
#define CAPTURE lwsbt_capture_thumb
#elif defined(__arm__)
#define CAPTURE lwsbt_capture_arm
#elif defined(__s390x__)
#define CAPTURE lwsbt_capture_s390x
#elif defined(__powerpc__) && !defined(__powerpc64__)
#define CAPTURE lwsbt_capture_ppc
#endif

bool walk_start(void) { return true; }

/* walk reads the stack by the code of its functions, or by their back chain. It sees the
 * library's own frames as well. */
void walk(struct own *o, const struct regs *from, struct stack *s)
{
	uint64_t now_salt = __atomic_load_n(&salt, __ATOMIC_ACQUIRE);
	struct last *l = &o->last;
	uintptr_t *pcs = l->sp, sp = (uintptr_t)__builtin_frame_address(0);
	unsigned n = 0, at = 0, same = 0;
#ifdef CAPTURE
	bool stack = on_stack(sp);
	struct lwsbt_capture_ctx ctx = {.lo = (sp & ~(uintptr_t)15) - 4096, .hi = stack ? self.hi : page_end(sp),
		.code_lo = 4096, .code_hi = UINTPTR_MAX};
	n = (unsigned)CAPTURE(pcs, RING_DEPTH, 0, &ctx);
#endif
	while (at < n && pcs[at] != from->pc)
		at++;
	if (at == n) {
		pcs[0] = from->pc;
		at = 0;
		n = 1;
	}
	/* Outermost first, behind what was so the last time. */
	unsigned had = l->salt == now_salt ? l->n : 0, depth = n - at;
	while (same < had && same < depth && l->pc[same] == pcs[n - 1 - same])
		same++;
	for (unsigned i = same; i < depth; i++) {
		struct module m;
		l->pc[i] = pcs[n - 1 - i];
		if (module_at(l->pc[i] - 1, &m))
			module_tell(o, &m);
	}
	l->n = depth;
	l->salt = now_salt;
	*s = (struct stack){.place = RING_PLACE_NONE, .frames = true, .kept = same, .more = depth - same,
		.end = depth == RING_DEPTH ? RING_END_DEPTH : RING_END_UNKNOWN, .pcs = l->pc + same};
}

#endif
