/*
 * lwsbt_zephyr.c: the port to Zephyr (3.1 and later), and printk as the output.
 */
#include "lwsbt_zephyr.h"

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

extern char __text_region_start[], __text_region_end[]; /* of Zephyr's linker scripts */

static struct k_spinlock mutex;
static k_spinlock_key_t key;

static void lock(void *arg)
{
	k_spinlock_key_t k = k_spin_lock(&mutex);

	(void)arg;
	key = k;
}

static void unlock(void *arg)
{
	(void)arg;
	k_spin_unlock(&mutex, key);
}

static int in_interrupt(void *arg)
{
	(void)arg;
	return k_is_in_isr();
}

static void stack(void *arg, struct lwsbt_capture_ctx *ctx)
{
	const struct k_thread *t = k_current_get();

	(void)arg;
	ctx->lo = t->stack_info.start;
	ctx->hi = t->stack_info.start + t->stack_info.size;
}

/* A byte for each thread, so that one that preempts another inside the library is recorded, too.
 * Where two share a byte, one of their allocations may have no metadata, which is counted. */
static unsigned char guards[61];

static unsigned char *guard(void *arg)
{
	(void)arg;
	return &guards[((uintptr_t)k_current_get() >> 4) % sizeof guards];
}

static uint64_t now(void *arg)
{
	(void)arg;
	return k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
}

static uintptr_t thread(void *arg)
{
	(void)arg;
	return (uintptr_t)k_current_get();
}

const struct lwsbt_port lwsbt_zephyr_port = {
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
	printk("%.*s", (int)len, text);
}

static const struct lwsbt_out console = { put, NULL };

#if defined(CONFIG_LWSBT_WRAP)

extern struct lwsbt_heap lwsbt_wrapped;	/* of wrap.c */

void lwsbt_zephyr_begin(const char *name)
{
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)__text_region_start;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)__text_region_end;
	lwsbt_head_boot(&console, name, LWSBT_NONE, LWSBT_NONE);
}

void lwsbt_zephyr_dump(const char *why)
{
	static uint32_t number;

	lwsbt_dump(&lwsbt_wrapped, &console, number++, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
}

#elif defined(CONFIG_LWSBT_LISTENER)

#include <zephyr/sys/heap_listener.h>

extern struct k_heap _system_heap;		/* that of k_malloc */
extern struct lwsbt_capture_ctx lwsbt_hook_ctx;	/* of hooks.c */
void lwsbt_hook_allocated(const void *p, size_t size);
void lwsbt_hook_freed(const void *p);

const struct lwsbt_out lwsbt_hook_out = { put, NULL };

static void allocated(uintptr_t heap, void *p, size_t size)
{
	(void)heap;
	lwsbt_hook_allocated(p, size);
}

static void freed(uintptr_t heap, void *p, size_t size)
{
	(void)heap;
	(void)size;
	lwsbt_hook_freed(p);
}

static HEAP_LISTENER_ALLOC_DEFINE(on_allocated, HEAP_ID_FROM_POINTER(&_system_heap.heap), allocated);
static HEAP_LISTENER_FREE_DEFINE(on_freed, HEAP_ID_FROM_POINTER(&_system_heap.heap), freed);

void lwsbt_zephyr_begin(const char *name)
{
	lwsbt_hook_ctx.code_lo = (uintptr_t)__text_region_start;
	lwsbt_hook_ctx.code_hi = (uintptr_t)__text_region_end;
	lwsbt_head_boot(&console, name, LWSBT_NONE, LWSBT_NONE);
	heap_listener_register(&on_allocated);
	heap_listener_register(&on_freed);
}

#endif
