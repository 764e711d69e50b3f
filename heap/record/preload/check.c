/*
 * Each stack held against that of the compiler's unwinder: only in libraries built with
 * LWSBT_CHECK, for tests. The unwinder ends where there is no table.
 */
#ifdef LWSBT_CHECK
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "preload.h"

static unsigned long checked, differed, less, more; /* less: frames than the unwinder */
static int busy;
static uintptr_t want[RING_DEPTH], got[RING_DEPTH];
static unsigned wants, gots;

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
	uintptr_t pc = (uintptr_t)_Unwind_GetIP(c);

	if (!pc || wants == RING_DEPTH)
		return _URC_END_OF_STACK;
	if (wants || pc == *(uintptr_t *)arg)
		want[wants++] = pc;
	return _URC_NO_REASON;
}

static void say(void)
{
	char line[100];

	if (differed > 5)
		return;
	for (unsigned i = 0; i < gots || i < wants; i++) {
		int n = snprintf(line, sizeof line, "stack differs: %#lx %#lx\n", i < gots ? (long)got[i] : 0, i < wants ? (long)want[i] : 0);
		(void)!write(2, line, (size_t)n);
	}
}

void check(const struct own *o, const struct stack *s, uintptr_t pc)
{
	while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		;
	wants = gots = 0;
	_Unwind_Backtrace(frame, &pc);
	if (s->frames) {
		for (unsigned i = s->more; i-- > 0;)
			got[gots++] = s->pcs ? s->pcs[i] : s->steps[s->more - 1 - i].pc;
		for (unsigned i = s->kept; i-- > 0;)
			got[gots++] = o->last.pc[i];
	} else {
		const struct place *p = &o->place[s->place];
		got[gots++] = p->pc;
		for (unsigned i = p->frames; i-- > 0;)
			got[gots++] = p->pcs[i];
	}
	unsigned n = gots < wants ? gots : wants;
	checked++;
	if (memcmp(got, want, n * sizeof *got) || (gots < wants && s->frames && s->end == RING_END_OUTERMOST)) {
		differed++;
		say();
	} else if (gots < wants)
		less++;
	else if (gots > wants)
		more++;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static __attribute__((destructor)) void report(void)
{
	char line[100];
	int n = snprintf(line, sizeof line, "stacks: checked=%lu differed=%lu less=%lu more=%lu\n", checked, differed, less, more);

	(void)!write(2, line, (size_t)n);
}
#else
typedef int nothing; /* a file has a declaration */
#endif
