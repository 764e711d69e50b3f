/*
 * Call stacks by rules. The unwinder finds for each frame the module, its table,
 * the entry, and runs that: some 300 ns a frame. What comes of it depends on
 * the return address alone, and is two words of the stack and where the caller's
 * frame begins. So it is found once for each return address, packed into 64 bits,
 * and kept.
 */
#include <string.h>

#include "preload.h"

#define WORD sizeof(uintptr_t)

unsigned walk_check;
static unsigned long checked, differed, asked; /* asked: stacks that the unwinder made */

#ifdef WALKS

/* ---------------------------------------------------------------- the rules kept */

/*
 * A rule in 64 bits:
 *
 *   63    61 60              33 32          17 16          1  0
 *  | kind   | cfa, signed 28   | ra, signed 16| fp, signed 16|0|
 */
static inline uint64_t pack(struct rule r)
{
	return (uint64_t)r.kind << 61 | (uint64_t)(r.cfa & 0xfffffff) << 33 |
		(uint64_t)(uint16_t)r.ra << 17 | (uint64_t)(uint16_t)r.fp << 1;
}

static inline enum rule_kind kind_of(uint64_t p) { return (enum rule_kind)(p >> 61); }
static inline intptr_t cfa_of(uint64_t p) { return (intptr_t)((int64_t)(p << 3) >> 36); }
static inline intptr_t ra_of(uint64_t p) { return (int16_t)(p >> 17); }
static inline intptr_t fp_of(uint64_t p) { return (int16_t)(p >> 1); }

/* A return address and its rule, without a lock: key is the one in the other, so
 * that halves of two entries do not pass for one. */
struct kept {
	uint64_t key, rule;
};

#define KEPT_BITS (sizeof(uintptr_t) > 4 ? 14 : 11)
static struct kept *kept;
static uint64_t salt; /* of the modules' epoch: an old entry is nobody's */

void walk_init(void)
{
	kept = pages(sizeof *kept << KEPT_BITS);
}

void walk_forget(void)
{
	__atomic_fetch_add(&salt, 0x9e3779b97f4a7c15u, __ATOMIC_RELEASE);
}

static uint64_t find_rule(uintptr_t pc, uint64_t key, struct kept *k)
{
	/* A module that is not listed was loaded since: the table is asked again. */
	uintptr_t table;

	if (!modules_table(pc, &table)) {
		modules_check();
		modules_table(pc, &table);
	}
	struct rule r = {.kind = RULE_NONE};
	if (table)
		/* The call is before the return address, and may be the last of its
		 * function. */
		r = cfi_rule(pc - 1, table);
	if (r.cfa >= 1 << 27 || r.cfa < -(1 << 27))
		r.kind = RULE_OTHER;
	uint64_t p = pack(r);
	if (k) {
		__atomic_store_n(&k->key, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&k->rule, p, __ATOMIC_RELAXED);
		__atomic_store_n(&k->key, key ^ p, __ATOMIC_RELEASE);
	}
	return p;
}

static inline struct kept *kept_at(uintptr_t pc)
{
	return &kept[(uint32_t)(pc * 0x9e3779b1u) >> (32 - KEPT_BITS)];
}

static inline uint64_t rule_at(uintptr_t pc, uint64_t now_salt)
{
	uint64_t key = (uint64_t)pc ^ now_salt;
	struct kept *k = kept_at(pc);
	uint64_t rule = __atomic_load_n(&k->rule, __ATOMIC_RELAXED);

	if (LIKELY((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ rule) == key))
		return rule;
	return find_rule(pc, key, k);
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

/* ---------------------------------------------------------------- the last stack */

/*
 * The last stack of the thread, outermost frame first. From one allocation to the
 * next most of a stack stays as it is. What a walk finds from a frame outwards
 * depends on the frame's pc, sp and fp, and on the words that it reads. So a walk that
 * comes to a frame that was there the last time, and finds all words of the frames
 * around it as they were, need not go on. That costs a comparison per frame, and
 * none waits for the one before.
 */
#define KEEP 40		/* frames */
#define LOOK 34		/* frames of a whole walk, so that a stack can become less deep */
_Static_assert(LOOK > FRAMES && KEEP > LOOK, "room to either side");

struct word {
	uintptr_t at, value;
};

static __thread struct {
	uint64_t salt;
	unsigned n;
	bool whole;		/* frame 0 is the program's outermost */
	uintptr_t pc[KEEP], sp[KEEP], fp[KEEP];
	uintptr_t ra_at[KEEP];	/* where the pc of the next frame outwards was read */
	uint64_t hash[KEEP];	/* of frames 0 to this one: see stack_hash */
	bool by_fp[KEEP];	/* what comes of it depends on fp */
	uint8_t others[KEEP];	/* where the frame's words end in other */
	struct word other[KEEP / 2]; /* what else was read and counts */
} last __attribute__((tls_model("initial-exec")));

/* bare returns a return address without its signature, if it has one. */
static inline uintptr_t bare(uintptr_t word)
{
#if defined(__aarch64__)
	register uintptr_t x30 __asm__("x30") = word;
	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return word;
#endif
}

static inline uintptr_t word_at(uintptr_t at) { return *(const uintptr_t *)at; }

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

/* ---------------------------------------------------------------- places */

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

/* settle makes the last stack, whose innermost depth frames are stack id, that of a
 * place. */
static void settle(struct place *p, unsigned depth, stack_id id)
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

/* check holds every so many stacks against the unwinder's. */
static void check(const uintptr_t *pcs, unsigned n, uintptr_t pc)
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

static __attribute__((noinline)) stack_id walk_new(const struct regs *from, uint64_t now_salt,
	struct place *place)
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

#else

void walk_init(void) {}
void walk_forget(void) {}

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
