/*
 * The least firmware with a heap, to measure what is linked of the library:
 * malloc and free wrapped, and a dump. With ALL, calloc and realloc too. With LWSBT_WRAP_NODES,
 * blocks are counted by call path, with SUMS the stacks of blocks are added up in dumps.
 */
#include <stdlib.h>

#include "lwsbt.h"

extern struct lwsbt_heap lwsbt_wrapped;
extern void uart_write(const char *text, size_t len);
extern char stack_lo[], stack_hi[], code_lo[], code_hi[];

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	uart_write(text, len);
}

static const struct lwsbt_out out = { put, NULL };
void *volatile kept;

#if defined(LWSBT_WRAP_NODES) || defined(SUMS)
static const struct lwsbt_range code = { (uintptr_t)code_lo, (uintptr_t)code_hi };
static const struct lwsbt_device device = { "firmware", 0, 0, 0, { &code, 1, LWSBT_CODE_SHIFT }, { 0, 0 } };
#endif
#ifdef LWSBT_WRAP_NODES
extern struct lwsbt_profile lwsbt_wrapped_profile;
static struct lwsbt_profile_dump state = { .lines = { .out = &out } };
#elif defined(SUMS)
static struct lwsbt_sum sums[LWSBT_SUMS];
static struct lwsbt_paths lines = { .out = &out, .code = &device.code };
#endif

int main(void)
{
	lwsbt_wrapped.ctx.lo = (uintptr_t)stack_lo;
	lwsbt_wrapped.ctx.hi = (uintptr_t)stack_hi;
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)code_lo;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)code_hi;
#ifdef LWSBT_WRAP_NODES
	lwsbt_wrapped_profile.code = device.code;
#endif
#if defined(LWSBT_WRAP_NODES) || defined(SUMS)
	lwsbt_head_device(&out, &device);
#else
	lwsbt_head_boot(&out, "firmware", LWSBT_NONE, LWSBT_NONE);
#endif
	kept = malloc(10);
#ifdef ALL
	kept = calloc(1, 2);
	kept = realloc(kept, 20);
#endif
	free(kept);
#ifdef LWSBT_WRAP_NODES
	lwsbt_profile_dump(&lwsbt_wrapped_profile, &state, 0, "request", LWSBT_SORT);
#elif defined(SUMS)
	lwsbt_dump_paths(&lwsbt_wrapped, &lines, sums, 0, "request", 0);
#else
	lwsbt_dump(&lwsbt_wrapped, &out, 0, "request", 0);
#endif
	return 0;
}
