/*
 * Call stacks by rules, frame by frame, as far as they differ from the thread's last
 * one.
 */
#include <string.h>

#include "walk.h"

unsigned walk_check;
static unsigned long checked, differed, asked; /* asked: stacks that the unwinder made */

#ifdef WALKS

__thread struct last last;

/* unchanged returns how many of the outermost n frames are as they were, once the
 * innermost of these is known to be. */
static unsigned unchanged(unsigned n)
{
	uintptr_t differ = 0;
	unsigned i, k;

	for (i = 1; i < n; i++)
		differ |= bare(word_at(last.ra_at[i])) ^ last.pc[i - 1];
	for (k = 0; k < last.others[n - 1]; k++)
		differ |= word_at(last.other[k].at) ^ last.other[k].value;
	if (LIKELY(!differ))
		return n;
	for (i = k = 0; i < n; i++) {
		if (i && bare(word_at(last.ra_at[i])) != last.pc[i - 1])
			return i;
		for (; k < last.others[i]; k++)
			if (word_at(last.other[k].at) != last.other[k].value)
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

/* A frame of a walk, and where its words were read; 0: they were not. */
struct step {
	uintptr_t pc, sp, fp, cfa_at, ra_at, fp_at;
	bool by_fp;
};

struct walked {
	unsigned n;		/* steps, innermost first */
	unsigned joined;	/* then come so many frames of the last stack */
	bool again;		/* may be what the next walk joins */
	bool ended;		/* at the program's outermost frame */
	bool other;		/* at what only the unwinder knows */
	bool untabled;		/* at a frame for which there is no table */
	struct step step[LOOK];
};

static void walk_rules(struct walked *w, const struct regs *from, uint64_t now_salt, unsigned m)
{
	uintptr_t pc = from->pc, sp = from->sp, fp = from->fp, ra = 0, hi = self.hi;
	bool loose = sp < self.lo || sp >= hi;
	unsigned n = 0;

	w->joined = 0;
	w->again = w->ended = w->other = w->untabled = false;
	if (UNLIKELY(loose)) {
		hi = (sp | 4095) + 1;
		m = 0;
	}
	bool plain = !loose; /* no frame so far that the next walk could not join */
/* IN wants the word at a on the stack above sp. */
#define IN(a) \
	while (UNLIKELY((a) < sp || (a) > hi - WORD)) { \
		if (!loose || (a) < sp || (a) - sp > 65536 || !readable(hi)) \
			goto out; \
		hi += 4096; \
	}
	while (n < LOOK) {
		if (UNLIKELY(pc < 4096)) {
			w->ended = true;
			break;
		}
		while (m && last.sp[m - 1] < sp)
			m--;
		if (m && last.sp[m - 1] == sp && last.pc[m - 1] == pc &&
		    (!last.by_fp[m - 1] || last.fp[m - 1] == fp)) {
			unsigned same = unchanged(m);
			if (LIKELY(same == m)) {
				w->joined = m;
				w->ended = last.whole;
				break;
			}
			m = same;
		}
		struct step *s = &w->step[n++];
		*s = (struct step){.pc = pc, .sp = sp, .fp = fp};
		uint64_t r = rule_at(pc, now_salt);
		uintptr_t cfa;
		switch (kind_of(r)) {
		case RULE_SP:
			cfa = sp + (uintptr_t)cfa_of(r);
			break;
		case RULE_FP:
			s->by_fp = true;
			cfa = fp + (uintptr_t)cfa_of(r);
			break;
		case RULE_AT_FP:
			s->by_fp = true;
			s->cfa_at = fp + (uintptr_t)cfa_of(r);
			IN(s->cfa_at)
			cfa = word_at(s->cfa_at);
			break;
#ifdef SIG_PC
		case RULE_SIGNAL:
			plain = false;
			m = 0;
			IN(sp + SIG_PC)
			pc = word_at(sp + SIG_PC);
			fp = word_at(sp + SIG_FP);
#ifdef SIG_RA
			ra = word_at(sp + SIG_RA);
#endif
			sp = word_at(sp + SIG_SP);
			/* The handler may have had a stack of its own. Where the signal came,
			 * pc is not behind a call: its rule is that of pc itself. */
			loose = sp < self.lo || sp >= self.hi;
			hi = loose ? (sp | 4095) + 1 : self.hi;
			if (n == LOOK)
				goto out;
			s = &w->step[n++];
			*s = (struct step){.pc = pc, .sp = sp, .fp = fp};
			r = find_rule(pc + 1, 0, NULL);
			if (kind_of(r) == RULE_SP)
				cfa = sp + (uintptr_t)cfa_of(r);
			else if (kind_of(r) == RULE_FP)
				cfa = fp + (uintptr_t)cfa_of(r);
			else {
				w->other = kind_of(r) != RULE_END && kind_of(r) != RULE_NONE;
				goto out;
			}
			break;
#else
		case RULE_SIGNAL:
#endif
		case RULE_OTHER:
			w->other = true;
			goto out;
		case RULE_NONE:
			w->untabled = true;
			w->ended = true;
			goto done;
		default:
			w->ended = true;
			goto done;
		}
		if (UNLIKELY(cfa < sp || cfa % 4))
			break;
		if (ra_of(r)) {
			s->ra_at = cfa + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
			IN(s->ra_at)
			pc = bare(word_at(s->ra_at));
		} else {
			pc = bare(ra);
			ra = 0;
			if (!pc) {
				w->ended = true;
				break;
			}
		}
		if (fp_of(r)) {
			s->by_fp |= fp_of(r) == FP_AT_FP;
			s->fp_at = fp_of(r) == FP_AT_FP ? fp : cfa + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
			IN(s->fp_at)
			fp = word_at(s->fp_at);
		}
		if (UNLIKELY(sp == cfa && !ra_of(r)))
			goto out;
		sp = cfa;
	}
done:
	w->again = plain && (w->ended || w->joined || n == LOOK);
#ifdef PROLOGUES
	w->again &= !w->untabled; /* it will be made longer */
#endif
out:
	w->n = n;
#undef IN
}

/* remember puts the steps behind the frames that they joined. */
static void remember(const struct walked *w)
{
	unsigned n = w->joined, others = n ? last.others[n - 1] : 0;
	bool fits = true;

	for (unsigned i = w->n; i-- > 0; n++) {
		const struct step *s = &w->step[i];
		bool fp_counts = n && last.by_fp[n - 1]; /* of the next frame outwards */

		last.pc[n] = s->pc;
		last.sp[n] = s->sp;
		last.fp[n] = s->fp;
		last.ra_at[n] = s->ra_at;
		last.hash[n] = stack_hash(n ? last.hash[n - 1] : 0, s->pc);
		last.by_fp[n] = s->by_fp || (fp_counts && !s->fp_at);
		if (UNLIKELY(s->cfa_at && fits && (fits = others < KEEP / 2)))
			last.other[others++] = (struct word){s->cfa_at, word_at(s->cfa_at)};
		if (s->fp_at && fp_counts && fits && (fits = others < KEEP / 2))
			last.other[others++] = (struct word){s->fp_at, last.fp[n - 1]};
		/* the outermost frame's return address, which was none */
		if (!n && w->ended && s->ra_at && fits && (fits = others < KEEP / 2))
			last.other[others++] = (struct word){s->ra_at, word_at(s->ra_at)};
		last.others[n] = (uint8_t)others;
	}
	last.n = n;
	last.whole = w->ended;
	if (!fits)
		last.salt = ~last.salt; /* not to be joined */
}

void check(const uintptr_t *pcs, unsigned n, uintptr_t pc)
{
#ifdef UNWINDS
	static unsigned since;
	uintptr_t want[FRAMES];

	if (__atomic_add_fetch(&since, 1, __ATOMIC_RELAXED) % walk_check)
		return;
	unsigned m = unwind(want, pc);
	__atomic_fetch_add(&checked, 1, __ATOMIC_RELAXED);
	if (m == n && !memcmp(want, pcs, n * sizeof *pcs))
		return;
	if (__atomic_fetch_add(&differed, 1, __ATOMIC_RELAXED) > 9)
		return;
	char line[64];
	for (unsigned i = 0; i < n || i < m; i++) {
		char *p = put_hex(line, i < n ? pcs[i] : 0);
		p = put_text(p, i < n && i < m && pcs[i] == want[i] ? " = " : " != ");
		*put_hex(p, i < m ? want[i] : 0) = 0;
		say("stack differs: ", line);
	}
#else
	(void)pcs, (void)n, (void)pc;
#endif
}

stack_id walk_new(const struct regs *from, uint64_t now_salt, struct place *place)
{
	struct walked w;
	uintptr_t own[FRAMES], *pcs = own;
	uint64_t hash = 0;
	unsigned n;

	if (UNLIKELY(!self.hi))
		stack_limits();
	if (UNLIKELY(last.salt != now_salt))
		last.n = 0;
	walk_rules(&w, from, now_salt, last.n);
	/* What it joined may be too little, if not to the outermost frame, or too much. */
	if (UNLIKELY(w.joined && (w.n + w.joined > KEEP || (!last.whole && w.n + w.joined < FRAMES))))
		walk_rules(&w, from, now_salt, 0);
	if (LIKELY(w.again)) {
		last.salt = now_salt;
		remember(&w);
		n = last.n;
		hash = last.hash[n - 1];
		pcs = last.pc;
		if (UNLIKELY(n > FRAMES)) {
			hash = stack_hash_less(hash, last.hash[n - FRAMES - 1]);
			pcs += n - FRAMES;
			n = FRAMES;
		}
	} else {
		n = w.n < FRAMES ? w.n : FRAMES;
		for (unsigned i = 0; i < n; i++)
			own[i] = w.step[n - 1 - i].pc;
		last.n = 0;
	}
	if (UNLIKELY(w.other && n < FRAMES)) {
		unsigned m = unwind(own, from->pc);
		__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
		if (m)
			n = m;
	}
	if (UNLIKELY(walk_check))
		check(pcs, n, from->pc);
#ifdef PROLOGUES
	if (UNLIKELY(w.untabled))
		longer(own, &n, from->pc);
#endif
	if (UNLIKELY(pcs == own))
		for (unsigned i = 0; i < n; i++)
			hash = stack_hash(hash, own[i]);
	stack_id id = stack_intern(pcs, n, hash);
	if (pcs != own)
		settle(place, n, id);
	return id;
}

#else

stack_id walk(const struct regs *from)
{
	uintptr_t pcs[FRAMES];
	unsigned n = unwind(pcs, from->pc);
	uint64_t hash = 0;

	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	if (!n)
		pcs[n++] = from->pc;
#ifdef PROLOGUES
	longer(pcs, &n, from->pc);
#endif
	for (unsigned i = 0; i < n; i++)
		hash = stack_hash(hash, pcs[i]);
	return stack_intern(pcs, n, hash);
}

#endif

void walk_report(void)
{
	char line[96], *p = line;

	if (!walk_check)
		return;
	p = put_dec(put_text(p, "checked="), checked);
	p = put_dec(put_text(p, " differed="), differed);
	p = put_dec(put_text(p, " asked="), asked);
	*p = 0;
	say("stacks: ", line);
}
