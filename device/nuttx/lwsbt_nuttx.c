/*
 * lwsbt_nuttx.c: the port to NuttX (10.3 and later, flat build), and stdout as the output.
 */
#include "lwsbt_nuttx.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include <nuttx/arch.h>
#include <nuttx/clock.h>
#include <nuttx/irq.h>
#include <nuttx/sched.h>

extern struct lwsbt_heap lwsbt_wrapped;	/* of wrap.c */
extern uint8_t _stext[], _etext[];	/* of NuttX's linker scripts */

static irqstate_t flags;

static void lock(void *arg)
{
	irqstate_t f = enter_critical_section();

	(void)arg;
	flags = f;
}

static void unlock(void *arg)
{
	(void)arg;
	leave_critical_section(flags);
}

static int in_interrupt(void *arg)
{
	(void)arg;
	return up_interrupt_context();
}

static void stack(void *arg, struct lwsbt_capture_ctx *ctx)
{
	const struct tcb_s *t = nxsched_self();

	(void)arg;
	ctx->lo = (uintptr_t)t->stack_base_ptr;
	ctx->hi = ctx->lo + t->adj_stack_size;
}

/* A byte for each task, so that one that preempts another inside the library is recorded, too.
 * Where two share a byte, one of their allocations may have no metadata, which is counted. */
static unsigned char guards[61];

static unsigned char *guard(void *arg)
{
	(void)arg;
	return &guards[(unsigned)nxsched_self()->pid % sizeof guards];
}

static uint64_t now(void *arg)
{
	(void)arg;
	return (uint64_t)TICK2USEC(clock_systime_ticks());
}

static uintptr_t thread(void *arg)
{
	(void)arg;
	return (uintptr_t)nxsched_self()->pid;
}

const struct lwsbt_port lwsbt_nuttx_port = {
	.lock = lock,
	.unlock = unlock,
	.guard = guard,
	.in_interrupt = in_interrupt,
	.stack = stack,
	.time = now,
	.thread = thread,
};

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	fwrite(text, 1, len, stdout);
}

static const struct lwsbt_out console = { put, NULL };

void lwsbt_nuttx_begin(const char *name)
{
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)_stext;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)_etext;
	lwsbt_head_boot(&console, name, LWSBT_NONE, LWSBT_NONE);
}

void lwsbt_nuttx_dump(const char *why)
{
	static uint32_t number;
	struct mallinfo info;

	lwsbt_dump(&lwsbt_wrapped, &console, number++, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
	info = mallinfo();
	printf("~h#heap size=%ju free=%ju largest=%ju\n", (uintmax_t)info.arena, (uintmax_t)info.fordblks, (uintmax_t)info.mxordblk);
}
