/*
 * Call stacks, frame by frame, up to the first frame that the thread's last stack has, too.
 * The rule of a return address, from the tables of its module, leads to the caller. Without a
 * rule, the frame pointer leads there, if it points to memory that looks like a frame. Outside
 * the thread's stack, a walk reads only pages that it has checked.
 */
#include <string.h>

#include "capture_code.h"
#undef WORD
#undef INLINE
#undef NOINLINE
#define INLINE static inline __attribute__((always_inline))
#include "walk.h"

#ifdef WALKS

/* ---------------------------------------------------------------- the last stack */

/*
 * The frames outwards from a frame depend on its pc, sp and fp, and on the words that the
 * walk reads. So a walk stops at a frame of the last stack if all words of the frames
 * further out are unchanged. This takes a comparison per frame, and the comparisons do not
 * depend on each other.
 *
 * unchanged returns how many of the outermost n frames are unchanged, if the innermost of
 * them is.
 */
static unsigned unchanged(const struct last *l, unsigned n)
{
	uintptr_t differ = 0;
	unsigned i, k;

	for (i = 1; i < n; i++)
		differ |= bare(word_at(l->ra_at[i])) ^ l->pc[i - 1];
	for (k = 0; k < l->others[n - 1]; k++)
		differ |= word_at(l->other[k].at) ^ l->other[k].value;
	if (LIKELY(!differ))
		return n;
	for (i = k = 0; i < n; i++) {
		if (i && bare(word_at(l->ra_at[i])) != l->pc[i - 1])
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

/* A frame pointer points to the caller's frame pointer; the return address is beside it. */
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
	uintptr_t hi;		/* memory from sp to here can be read */
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

/* is_kept reports whether the rule of a return address is known already. */
static bool is_kept(const struct walk *k, uintptr_t pc)
{
	const struct kept *e = kept_at(pc);

	return (e->key ^ e->rule) == key_of(pc, k->salt);
}

/* by_rule leaves a frame by its rule, and returns RING_END_OUTERMOST if it could, or why
 * it could not. */
static inline unsigned by_rule(struct walk *k, struct step *s, uint64_t r)
{
	uintptr_t cfa;

	if (kind_of(r) == RING_RULE_SP)
		cfa = k->sp + (uintptr_t)cfa_of(r);
	else {
		s->by_fp = true;
		cfa = k->fp + (uintptr_t)cfa_of(r);
		if (UNLIKELY(kind_of(r) == RING_RULE_AT_FP)) {
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
	uintptr_t pc = bare(k->ra);
	if (ra_of(r)) {
		uintptr_t at = cfa + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
		if (UNLIKELY(!in(k, at)))
			return RING_END_UNREADABLE;
		s->ra_at = at;
		pc = bare(word_at(at));
		if (UNLIKELY(by_code(r)) && !is_kept(k, pc) && !returns_to(pc, false))
			return RING_END_UNKNOWN;
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
	ra = bare(word_at(s->ra_at));
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
/* by_signal goes on at the interrupted instruction. The signal handler may have its own
 * stack. No call precedes the interrupted pc, so the rule is looked up at pc itself. */
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
	case RING_RULE_SP: case RING_RULE_FP: case RING_RULE_AT_FP:
		return by_rule(k, s, r);
	case RING_RULE_END:
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
		case RING_RULE_SP: case RING_RULE_FP: case RING_RULE_AT_FP:
			end = by_rule(k, s, r);
			break;
		case RING_RULE_END:
			ended = true;
			break;
		case RING_RULE_SIGNAL:
#ifdef SIG_PC
			end = by_signal(k, &ended);
			break;
#endif
		case RING_RULE_OTHER: case RING_RULE_NONE:
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

NOINLINE bool walk_new(struct own *o, const struct regs *from, uint64_t now_salt, struct stack *s)
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
		return true;
	}
	l->n = 0;
	s->steps = w->step;
	return false;
}

#endif
