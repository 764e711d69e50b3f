/*
 * Call stacks by rules. The unwinder finds for each frame the module, its table,
 * the entry, and runs that: some 300 ns a frame. What comes of it depends on
 * the return address alone, and is two words of the stack and where the caller's
 * frame begins. So it is found once for each return address, packed into 64 bits,
 * and kept.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "preload.h"

__thread struct thread self;

#define WORD sizeof(uintptr_t)

unsigned walk_check;
static unsigned long checked, differed, asked; /* asked: stacks that the unwinder made */

/* ---------------------------------------------------------------- the unwinder */

/* unwind asks the compiler's unwinder for the stack from the frame that returns
 * to from->pc. */
/* musl-gcc takes the unwinder of glibc's gcc, which wants what only glibc has; where
 * stacks are walked here, it can be done without. */
#if defined(__GLIBC__) || !defined(WALKS)
#define UNWINDS 1

struct unwound {
	uintptr_t *pcs, from;
	size_t n;
};

static _Unwind_Reason_Code unwound(struct _Unwind_Context *c, void *arg)
{
	struct unwound *u = arg;
	uintptr_t pc = (uintptr_t)_Unwind_GetIP(c);

	if (!pc || u->n == FRAMES)
		return _URC_END_OF_STACK;
	if (u->n || pc == u->from)
		u->pcs[u->n++] = pc;
	return _URC_NO_REASON;
}

static size_t unwind(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	struct unwound u = {pcs, pc, 0};

	_Unwind_Backtrace(unwound, &u);
	return u.n;
}

#else

static size_t unwind(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	(void)pcs, (void)pc;
	return 0;
}

#endif

/* ---------------------------------------------------------------- the stack */
#if defined(WALKS) || defined(PROLOGUES)

#if defined(__GLIBC__)
extern void *__libc_stack_end __attribute__((weak));
#endif

/* limits finds those of the thread's stack. */
static void limits(void)
{
	pthread_attr_t attr;
	void *lo;
	size_t size;
	int e = errno;

	self.lo = self.hi = 1; /* not again */
#if defined(__GLIBC__)
	/* Of the first thread, pthread_getattr_np would read a file. */
	if (getpid() == (pid_t)self.tid && &__libc_stack_end && __libc_stack_end) {
		/* Arguments and environment lie above; nothing of a walk does. */
		self.hi = (uintptr_t)__libc_stack_end + WORD;
		self.lo = self.hi - ((uintptr_t)1 << 30);
		errno = e;
		return;
	}
#endif
	if (!pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &lo, &size)) {
			self.lo = (uintptr_t)lo;
			self.hi = self.lo + size;
			if (getpid() == (pid_t)self.tid) /* it grows */
				self.lo = self.hi - ((uintptr_t)1 << (WORD > 4 ? 30 : 27));
		}
		pthread_attr_destroy(&attr);
	}
	errno = e;
}

#endif

/* ---------------------------------------------------------------- prologues */
#ifdef PROLOGUES

/* prologues reads the stack by the code of its functions: of machines whose
 * programs often have no tables. It sees our own frames as well. */
static size_t prologues(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	uintptr_t all[FRAMES + 12];
	struct lwsbt_capture_ctx ctx = {.code_lo = 4096, .code_hi = UINTPTR_MAX};
	size_t n, at = 0, k = 0;

	if (!self.hi)
		limits();
	ctx.lo = ((uintptr_t)all & ~(uintptr_t)15) - 4096; /* the backend's frame */
	ctx.hi = self.hi;
	if (self.hi <= ctx.lo)
		return 0;
	n = PROLOGUES(all, FRAMES + 12, 0, &ctx);
	while (at < n && all[at] != pc)
		at++;
	while (at < n && k < FRAMES)
		pcs[k++] = all[at++];
	return k;
}

/* longer takes the stack by prologues if it goes further than the n frames that
 * there are: where tables are missing, these end. */
static void longer(uintptr_t pcs[FRAMES], size_t *n, uintptr_t pc)
{
	uintptr_t more[FRAMES];
	size_t m = *n < FRAMES ? prologues(more, pc) : 0;

	if (m > *n)
		memcpy(pcs, more, (*n = m) * sizeof *pcs);
}

#endif

#ifdef WALKS

/* readable reports whether the page at an address is there: of stacks that the
 * program made itself no limit is known. */
static bool readable(uintptr_t page)
{
	unsigned char there;
	int e = errno;
	bool ok = mincore((void *)page, 1, &there) == 0;

	errno = e;
	return ok;
}

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
	struct rule r = {.kind = RULE_END};
	if (table)
		/* The call is before the return address, and may be the last of its
		 * function. */
		r = cfi_rule(pc - 1, table);
	if (r.kind == RULE_NONE)
		r.kind = RULE_END;
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

static inline uint64_t rule_at(uintptr_t pc, uint64_t now_salt)
{
	uint64_t key = (uint64_t)pc ^ now_salt;
	struct kept *k = &kept[(uint32_t)(pc * 0x9e3779b1u) >> (32 - KEPT_BITS)];
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

/* ---------------------------------------------------------------- the walk */

static size_t walk_rules(uintptr_t pcs[FRAMES], const struct regs *from, bool *other)
{
	uintptr_t pc = from->pc, sp = from->sp, fp = from->fp, ra = 0, hi = self.hi;
	uint64_t now_salt = __atomic_load_n(&salt, __ATOMIC_ACQUIRE);
	bool loose = sp < self.lo || sp >= hi;
	size_t n = 0;

	if (UNLIKELY(loose))
		hi = (sp | 4095) + 1;
/* IN wants the word at a on the stack above sp. */
#define IN(a) \
	while (UNLIKELY((a) < sp || (a) > hi - WORD)) { \
		if (!loose || (a) < sp || (a) - sp > 65536 || !readable(hi)) \
			return n; \
		hi += 4096; \
	}
	while (n < FRAMES) {
		if (UNLIKELY(pc < 4096))
			break;
		pcs[n++] = pc;
		uint64_t r = rule_at(pc, now_salt);
		uintptr_t cfa, at;
		switch (kind_of(r)) {
		case RULE_SP:
			cfa = sp + (uintptr_t)cfa_of(r);
			break;
		case RULE_FP:
			cfa = fp + (uintptr_t)cfa_of(r);
			break;
		case RULE_AT_FP:
			at = fp + (uintptr_t)cfa_of(r);
			IN(at)
			cfa = *(uintptr_t *)at;
			break;
#ifdef SIG_PC
		case RULE_SIGNAL:
			IN(sp + SIG_PC)
			pc = *(uintptr_t *)(sp + SIG_PC);
			fp = *(uintptr_t *)(sp + SIG_FP);
#ifdef SIG_RA
			ra = *(uintptr_t *)(sp + SIG_RA);
#endif
			sp = *(uintptr_t *)(sp + SIG_SP);
			/* The handler may have had a stack of its own. Where the signal came,
			 * pc is not behind a call: its rule is that of pc itself. */
			loose = sp < self.lo || sp >= self.hi;
			hi = loose ? (sp | 4095) + 1 : self.hi;
			if (n == FRAMES)
				return n;
			pcs[n++] = pc;
			r = find_rule(pc + 1, 0, NULL);
			if (kind_of(r) == RULE_SP)
				cfa = sp + (uintptr_t)cfa_of(r);
			else if (kind_of(r) == RULE_FP)
				cfa = fp + (uintptr_t)cfa_of(r);
			else {
				*other = kind_of(r) != RULE_END;
				return n;
			}
			break;
#else
		case RULE_SIGNAL:
#endif
		case RULE_OTHER:
			*other = true;
			return n;
		default:
			return n;
		}
		if (UNLIKELY(cfa < sp || cfa % 4))
			break;
		uintptr_t was = sp;
		if (ra_of(r)) {
			at = cfa + (uintptr_t)(ra_of(r) * (intptr_t)WORD);
			IN(at)
			pc = *(uintptr_t *)at;
		} else {
			pc = ra;
			ra = 0;
			if (!pc)
				break;
		}
		if (fp_of(r)) {
			at = fp_of(r) == FP_AT_FP ? fp : cfa + (uintptr_t)(fp_of(r) * (intptr_t)WORD);
			IN(at)
			fp = *(uintptr_t *)at;
		}
		sp = cfa;
		if (UNLIKELY(sp == was && !ra_of(r)))
			break;
#if defined(__aarch64__)
		/* a signed return address, without its signature */
		register uintptr_t x30 __asm__("x30") = pc;
		__asm__("hint #7" : "+r"(x30));
		pc = x30;
#endif
	}
#undef IN
	return n;
}

#ifdef UNWINDS
static void compare(const uintptr_t *pcs, size_t n, uintptr_t pc)
{
	uintptr_t want[FRAMES];
	size_t m = unwind(want, pc);

	__atomic_fetch_add(&checked, 1, __ATOMIC_RELAXED);
	if (m == n && !memcmp(want, pcs, n * sizeof *pcs))
		return;
	if (__atomic_fetch_add(&differed, 1, __ATOMIC_RELAXED) > 9)
		return;
	char line[64];
	for (size_t i = 0; i < n || i < m; i++) {
		char *p = put_hex(line, i < n ? pcs[i] : 0);
		p = put_text(p, i < n && i < m && pcs[i] == want[i] ? " = " : " != ");
		*put_hex(p, i < m ? want[i] : 0) = 0;
		say("stack differs: ", line);
	}
}
#endif

size_t walk(uintptr_t pcs[FRAMES], const struct regs *from)
{
	bool other = false;

	if (UNLIKELY(!self.hi))
		limits();
	size_t n = walk_rules(pcs, from, &other);
	if (UNLIKELY(other)) {
		size_t m = unwind(pcs, from->pc);
		__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
		if (m)
			n = m;
	}
#ifdef PROLOGUES
	longer(pcs, &n, from->pc);
#endif
#ifdef UNWINDS
	static unsigned since;
	if (UNLIKELY(walk_check) && __atomic_add_fetch(&since, 1, __ATOMIC_RELAXED) % walk_check == 0)
		compare(pcs, n, from->pc);
#endif
	return n;
}

#else

void walk_init(void) {}
void walk_forget(void) {}

size_t walk(uintptr_t pcs[FRAMES], const struct regs *from)
{
	size_t n = unwind(pcs, from->pc);

	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	if (!n)
		pcs[n++] = from->pc;
#ifdef PROLOGUES
	longer(pcs, &n, from->pc);
#endif
	return n;
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
