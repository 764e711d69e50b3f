/*
 * The least firmware with a heap, to measure what is linked of the library:
 * malloc and free wrapped, and a dump. With ALL, calloc and realloc too.
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

int main(void)
{
	lwsbt_wrapped.ctx.lo = (uintptr_t)stack_lo;
	lwsbt_wrapped.ctx.hi = (uintptr_t)stack_hi;
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)code_lo;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)code_hi;
	lwsbt_head_boot(&out, "firmware", LWSBT_NONE, LWSBT_NONE);
	kept = malloc(10);
#ifdef ALL
	kept = calloc(1, 2);
	kept = realloc(kept, 20);
#endif
	free(kept);
	lwsbt_dump(&lwsbt_wrapped, &out, 0, "request", 0);
	return 0;
}
