/*
 * Call stacks by others: the compiler's unwinder, and the code of functions. And
 * where a thread's stack is.
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

#if defined(UNWINDS) || defined(PROLOGUES)
static void outermost_first(uintptr_t *pcs, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		uintptr_t pc = pcs[i];
		pcs[i] = pcs[n - 1 - i];
		pcs[n - 1 - i] = pc;
	}
}
#endif

/* ---------------------------------------------------------------- the unwinder */

#ifdef UNWINDS

struct unwound {
	uintptr_t *pcs, from;
	unsigned n;
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

unsigned unwind(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	struct unwound u = {pcs, pc, 0};

	_Unwind_Backtrace(unwound, &u);
	outermost_first(pcs, u.n);
	return u.n;
}

#else

unsigned unwind(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	(void)pcs, (void)pc;
	return 0;
}

#endif

/* ---------------------------------------------------------------- the stack */
#if defined(__GLIBC__)
extern void *__libc_stack_end __attribute__((weak));
#endif

/* The kernel keeps so much below the first thread's stack free of mappings. */
#define GAP ((uintptr_t)128 << 20)

void stack_limits(void)
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
		self.lo = self.hi - GAP;
		errno = e;
		return;
	}
#endif
	if (!pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &lo, &size)) {
			self.lo = (uintptr_t)lo;
			self.hi = self.lo + size;
			if (getpid() == (pid_t)self.tid) /* it grows */
				self.lo = self.hi - GAP;
		}
		pthread_attr_destroy(&attr);
	}
	errno = e;
}

bool readable(uintptr_t page)
{
	unsigned char there;
	int e = errno;
	bool ok = mincore((void *)page, 1, &there) == 0;

	errno = e;
	return ok;
}

/* ---------------------------------------------------------------- prologues */
#ifdef PROLOGUES

/* prologues reads the stack by the code of its functions: of machines whose
 * programs often have no tables. It sees our own frames as well. */
static unsigned prologues(uintptr_t pcs[FRAMES], uintptr_t pc)
{
	uintptr_t all[FRAMES + 12];
	struct lwsbt_capture_ctx ctx = {.code_lo = 4096, .code_hi = UINTPTR_MAX};
	size_t n, at = 0;
	unsigned k = 0;

	if (!self.hi)
		stack_limits();
	ctx.lo = ((uintptr_t)all & ~(uintptr_t)15) - 4096; /* the backend's frame */
	ctx.hi = self.hi;
	if (self.hi <= ctx.lo)
		return 0;
	n = PROLOGUES(all, FRAMES + 12, 0, &ctx);
	while (at < n && all[at] != pc)
		at++;
	while (at < n && k < FRAMES)
		pcs[k++] = all[at++];
	outermost_first(pcs, k);
	return k;
}

void longer(uintptr_t pcs[FRAMES], unsigned *n, uintptr_t pc)
{
	uintptr_t more[FRAMES];
	unsigned m = *n < FRAMES ? prologues(more, pc) : 0;

	if (m > *n)
		memcpy(pcs, more, (*n = m) * sizeof *pcs);
}

#endif
