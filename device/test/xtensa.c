/*
 * xtensa.c: windows of Xtensa's ABI in memory, by hand from the manual, and what the walk
 * finds of them. Runs on any machine: words are of its size.
 */
#include <stdio.h>

#include "../src/capture_xtensa.h"

static uintptr_t memory[64];

/* The return address of a call of n (1 to 3: of 4, 8 or 12 registers). */
static uintptr_t call(unsigned n, uintptr_t ra) { return (uintptr_t)n << 30 | (ra & 0x3fffffff); }

/* Stores what a window overflow stores below sp: the caller's a0 and a1. */
static void spill(size_t sp, uintptr_t a0, size_t up)
{
	memory[sp - 4] = a0;
	memory[sp - 3] = (uintptr_t)&memory[up];
}

static int check(const char *name, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx,
	uintptr_t a0, uintptr_t sp, const uintptr_t *want, size_t n)
{
	uintptr_t pcs[8];
	size_t i, got = walk_windows(pcs, max, skip, ctx, 0x400d1000, a0, sp);

	for (i = 0; i < got && i < n && pcs[i] == want[i]; i++)
		;
	if (got == n && i == n)
		return 0;
	printf("%s: %zu frames, expected %zu; frame %zu differs\n", name, got, n, i);
	return 1;
}

int main(void)
{
	/* inner (sp 8) was called from 400d2003 of middle (sp 16) by call8, that from 40081005 of outer
	 * (sp 32) by call4, that from 400d4009 of a task's first function (sp 48) by call12. */
	const uintptr_t all[] = { 0x400d2003, 0x40081005, 0x400d4009 };
	const uintptr_t a0 = call(2, 0x400d2003), sp = (uintptr_t)&memory[8];
	struct lwsbt_capture_ctx ctx = { (uintptr_t)memory, (uintptr_t)(memory + 64), 0, 0, NULL, NULL, 0, 0, 0 };
	int bad = 0;

	spill(8, call(1, 0x40081005), 16);
	spill(16, call(3, 0x400d4009), 32);
	spill(32, 0, 48);
	bad += check("whole", 8, 0, &ctx, a0, sp, all, 3);
	bad += check("at most 2", 2, 0, &ctx, a0, sp, all, 2);
	bad += check("less the first", 8, 1, &ctx, a0, sp, all + 1, 2);
	bad += check("first function", 8, 0, &ctx, 0, sp, all, 0);
	memory[16 - 3] = (uintptr_t)&memory[4];	/* below */
	bad += check("stack pointer goes back", 8, 0, &ctx, a0, sp, all, 2);
	memory[16 - 3] = (uintptr_t)&memory[16]; /* the same */
	bad += check("stack pointer stays", 8, 0, &ctx, a0, sp, all, 2);
	memory[16 - 3] = (uintptr_t)(memory + 1000);
	bad += check("stack pointer beyond the stack", 8, 0, &ctx, a0, sp, all, 3);
	memory[16 - 3] = (uintptr_t)&memory[32] + 1;
	bad += check("stack pointer not aligned", 8, 0, &ctx, a0, sp, all, 3);
	memory[16 - 3] = (uintptr_t)&memory[32];
	ctx.code_lo = 0x400d0000;
	ctx.code_hi = 0x400e0000;
	bad += check("an address that is no code", 8, 0, &ctx, a0, sp, all, 1);
	ctx.code_lo = ctx.code_hi = 0;
	ctx.lo = (uintptr_t)&memory[14];
	bad += check("limits of the stack", 8, 0, &ctx, a0, sp, all, 1);
	bad += check("a stack pointer of 0", 8, 0, &ctx, a0, 0, all, 1);
	return bad != 0;
}
