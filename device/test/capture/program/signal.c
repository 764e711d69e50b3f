/*
 * signal.c: captures the stack in a signal handler. The signal is that of an
 * instruction of f3 which traps, so that nobody called what is interrupted.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lwsbt.h"

#define NOINLINE __attribute__((noinline))

extern char __executable_start[], etext[];
size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);

static struct lwsbt_capture_ctx ctx;
static struct lwsbt_rule rules[32];
static volatile int zero;

NOINLINE int h2(int a)
{
	static uintptr_t pcs[64];
	size_t n;

	ctx.lo = (uintptr_t)__builtin_frame_address(0) - 8192;
	/* the second time by the cache */
	BACKEND(pcs, 64, 0, &ctx);
	n = BACKEND(pcs, 64, 0, &ctx);
	for (size_t i = 0; i < n; i++)
		printf("%llx\n", (unsigned long long)pcs[i]);
	fflush(stdout);
	return a + zero;
}

NOINLINE int h1(int a)
{
	volatile char array[40];

	array[0] = (char)a;
	return h2(a) + array[0];
}

NOINLINE void handler(int number)
{
	int r = h1(number);

	_exit(r == -1);
}

NOINLINE int f3(int a)
{
	volatile char array[100];

	array[a] = 1;
	if (zero == 0)
		*(volatile int *)(uintptr_t)(8 + zero) = 1; /* traps */
	return array[0] + a;
}

NOINLINE int f2(int a)
{
	volatile char array[300];

	array[a] = 2;
	return f3(a) + array[a];
}

NOINLINE int f1(int a) { return f2(a + 1) + zero; }

int main(void)
{
	struct sigaction action = {.sa_handler = handler};

	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
	ctx.rules = rules;
	ctx.rule_count = sizeof rules / sizeof *rules;
	sigaction(SIGSEGV, &action, NULL);
	return f1(zero);
}
