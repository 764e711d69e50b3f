/* flto.c: captures by the table alone, where the compiler sees the whole program. It
 * prints how many functions the table has, and what was captured. */
#include <stdio.h>

#include "lwsbt.h"

#define NOINLINE __attribute__((noinline))

extern char __executable_start[], etext[];
size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);

static struct lwsbt_capture_ctx ctx;
static volatile int zero;

NOINLINE static int third(int a)
{
	uintptr_t pcs[40];
	size_t n, i;

	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 8192;
	n = BACKEND(pcs, 40, 0, &ctx);
	for (i = 0; i < n; i++)
		printf("%llx\n", (unsigned long long)pcs[i]);
	return a + zero;
}

NOINLINE static int second(int a)
{
	volatile char array[300];

	array[a] = 2;
	return third(a) + array[a];
}

NOINLINE static int first(int a)
{
	return second(a + 1) + zero;
}

int main(void)
{
	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	ctx.functions = lwsbt_function_table();
	printf("%u functions\n", ctx.functions ? (unsigned)ctx.functions->count : 0);
	return first(zero) < 0;
}
