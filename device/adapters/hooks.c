/*
 * hooks.c: an event (~e#) for each allocation and free that a system reports to hooks:
 * ESP-IDF's CONFIG_HEAP_USE_HOOKS, Zephyr's heap listeners. Blocks get no metadata, so there
 * are no dumps of the device; btheap makes them from the events. Nothing is allocated.
 *
 *   -DLWSBT_HOOK_CAPTURE=lwsbt_capture_thumb   the capture function
 *   -DLWSBT_HOOK_PORT=board_port               a const struct lwsbt_port: of it guard,
 *                                              in_interrupt, stack, time and thread are called
 *   -DLWSBT_HOOK_SKIP=3                        innermost frames to leave out: those of the system
 *
 * The program defines lwsbt_hook_out. What a hook allocates itself, and what interrupts
 * allocate, is not reported; lwsbt_hook_skipped counts it.
 */
#include "lwsbt.h"

#ifndef LWSBT_HOOK_CAPTURE
#define LWSBT_HOOK_CAPTURE lwsbt_capture_fp
#endif
#ifndef LWSBT_HOOK_SKIP
#define LWSBT_HOOK_SKIP 1
#endif
#ifndef LWSBT_HOOK_PORT
#define LWSBT_HOOK_PORT lwsbt_hook_port
#endif

extern const struct lwsbt_out lwsbt_hook_out;	/* where lines go */
extern const struct lwsbt_port LWSBT_HOOK_PORT;

void lwsbt_hook_allocated(const void *p, size_t size);
void lwsbt_hook_freed(const void *p);

struct lwsbt_capture_ctx lwsbt_hook_ctx;	/* limits of code, for the capture function */
uint32_t lwsbt_hook_skipped;

static unsigned char inside;	/* for a port without guard */

static void event(enum lwsbt_event_kind kind, const void *p, size_t size)
{
	const struct lwsbt_port *port = &LWSBT_HOOK_PORT;
	unsigned char *guard = port->guard ? port->guard(port->arg) : &inside;
	struct lwsbt_event e = { kind, (uintptr_t)p, 0, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE };
	struct lwsbt_stack s;
	uint8_t blob[LWSBT_EVENT_MAX];
	uintptr_t pcs[LWSBT_HEAP_DEPTH];
	size_t i, n = 0;

	if (!p)
		return;
	if (*guard || (port->in_interrupt && port->in_interrupt(port->arg))) {
		lwsbt_hook_skipped++;
		return;
	}
	*guard = 1;
	if (kind == LWSBT_ALLOCATED) {
		struct lwsbt_capture_ctx ctx = lwsbt_hook_ctx;

		if (port->stack)
			port->stack(port->arg, &ctx);
		n = LWSBT_HOOK_CAPTURE(pcs, LWSBT_HEAP_DEPTH, LWSBT_HOOK_SKIP, &ctx);
	}
	s.size = size;
	s.end = 0;
	s.depth = (uint32_t)n;
	for (i = 0; i < n; i++)
		s.pc[i] = pcs[i];
	if (port->time)
		e.time = port->time(port->arg);
	if (port->thread)
		e.thread = port->thread(port->arg);
	n = lwsbt_encode_event(blob, sizeof blob, &s, &e, LWSBT_SEARCH_BEST);
	if (n > 0 && n <= sizeof blob)
		lwsbt_line_event(&lwsbt_hook_out, blob, n);
	*guard = 0;
}

void lwsbt_hook_allocated(const void *p, size_t size)
{
	event(LWSBT_ALLOCATED, p, size);
}

void lwsbt_hook_freed(const void *p)
{
	event(LWSBT_FREED, p, 0);
}
