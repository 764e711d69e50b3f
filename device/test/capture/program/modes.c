/*
 * modes.c: a caller in MIPS16 or microMIPS code (OTHER), which capture_mips cannot
 * read: it is recorded, and the walk ends there.
 */
#include "lwsbt.h"

#include <stdio.h>

extern char __executable_start[], etext[];

__attribute__((OTHER)) int other(int a);
int below(int a);
int hook(int a);

__attribute__((OTHER, noinline)) int other(int a)
{
	return below(a) + 3;
}

__attribute__((noinline)) int below(int a)
{
	return hook(a) + 1;
}

__attribute__((noinline)) int hook(int a)
{
	static struct lwsbt_capture_ctx ctx;
	static uintptr_t pcs[40];
	size_t n;
	uintptr_t start = (uintptr_t)other & ~(uintptr_t)1;

	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 4096;
	ctx.hi = ctx.lo + 8192;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	n = lwsbt_capture_mips(pcs, 40, 0, &ctx);
	printf("%u frames, the last %s, of an odd function: %u\n", (unsigned)n,
		n == 3 && pcs[2] > start && pcs[2] < start + 60 ? "in other" : "elsewhere",
		(unsigned)((uintptr_t)other & 1));
	return a + 1;
}

int main(void)
{
	int (*volatile first)(int) = other;

	return first(1) == 6 ? 0 : 1;
}
