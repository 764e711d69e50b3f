/*
 * real.c: captures stacks of a real program where it calls malloc, memcpy, strlen
 * and some others, by a backend and by the compiler's unwinder, and prints both:
 *
 *   t PC...   what _Unwind_Backtrace found, from the hook on
 *   c PC...   what the backend found, without a table of functions
 *   f PC...   the same, with it
 *   !c, !f    the same with a cache differ
 *   e         the end
 *
 * A call path is captured once: its first captures by caller and stack pointer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "lwsbt.h"
#include "real.h"

#define NOINLINE __attribute__((noinline))

/* Limits of code span read-only data. */
extern char __executable_start[];
#ifdef __arm__
extern char __exidx_start[];
#define code_end __exidx_start
#else
extern char etext[];
#define code_end etext
#endif
#ifdef STACK_END
extern void *__libc_stack_end;
#endif
size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);

enum { DEPTH = 200, SEEN = 1 << 16, MAX = 2000 };

static struct lwsbt_capture_ctx ctx, with_table, cached, cached_table;
static struct lwsbt_rule rules[256], rules_table[256];
static uintptr_t truth[DEPTH], pcs[DEPTH], again[DEPTH];
static size_t depth;
static uint32_t seen[SEEN];
static unsigned captures;
static int on;

int main(void);

static _Unwind_Reason_Code step(struct _Unwind_Context *c, void *arg)
{
	uintptr_t pc = (uintptr_t)_Unwind_GetIP(c);

	(void)arg;
	if (depth == DEPTH || pc == 0)
		return _URC_END_OF_STACK;
	truth[depth++] = pc;
	/* What calls main may have no tables, and the unwinder take others for them. */
	return (uintptr_t)_Unwind_GetRegionStart(c) >> 1 == (uintptr_t)main >> 1 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void print(char kind, const uintptr_t *list, size_t n)
{
	size_t i;

	putchar(kind);
	for (i = 0; i < n; i++)
		printf(" %llx", (unsigned long long)list[i]);
	putchar('\n');
}

NOINLINE static void capture(char kind, const struct lwsbt_capture_ctx *plain, const struct lwsbt_capture_ctx *cache)
{
	size_t n = BACKEND(pcs, DEPTH, 2, plain), m = BACKEND(again, DEPTH, 2, cache);

	print(kind, pcs, n);
	if (n != m || memcmp(pcs, again, n * sizeof *pcs) != 0)
		printf("!%c\n", kind);
}

static void end(void)
{
	puts("e");
	exit(0);
}

NOINLINE static void probe(void *ra)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	uint32_t key = (uint32_t)((uintptr_t)ra * 31 + sp) | 1, at = key * 0x9e3779b1u >> 16;

	if (!on)
		return;
	for (; seen[at] != 0; at = (at + 1) % SEEN)
		if (seen[at] == key)
			return;
	seen[at] = key;
	captures++;
	on = 0;
	ctx.lo = with_table.lo = cached.lo = cached_table.lo = sp - 4096;
	depth = 0;
	_Unwind_Backtrace(step, NULL);
	print('t', truth + 1, depth - 1);
	capture('c', &ctx, &cached);
#ifdef TABLE
	capture('f', &with_table, &cached_table);
#endif
	if (captures == MAX)
		end();
	on = 1;
}

#define PROBE() probe(__builtin_return_address(0))
#define HOOK(type, name, parameters, arguments) \
	type hook_##name parameters; \
	NOINLINE type hook_##name parameters \
	{ \
		type (*volatile real) parameters = name; \
		type result; \
		PROBE(); \
		result = real arguments; \
		return result; \
	}

HOOK(void *, malloc, (size_t n), (n))
HOOK(void *, calloc, (size_t k, size_t n), (k, n))
HOOK(void *, realloc, (void *p, size_t n), (p, n))
HOOK(void *, memcpy, (void *to, const void *from, size_t n), (to, from, n))
HOOK(void *, memmove, (void *to, const void *from, size_t n), (to, from, n))
HOOK(void *, memset, (void *p, int c, size_t n), (p, c, n))
HOOK(int, memcmp, (const void *a, const void *b, size_t n), (a, b, n))
HOOK(size_t, strlen, (const char *s), (s))
HOOK(int, strcmp, (const char *a, const char *b), (a, b))
HOOK(int, strncmp, (const char *a, const char *b, size_t n), (a, b, n))

void hook_free(void *p);
NOINLINE void hook_free(void *p)
{
	PROBE();
	free(p);
	__asm__ volatile("" : : : "memory");
}

int main(void)
{
#ifdef STACK_END
	ctx.hi = ((uintptr_t)__libc_stack_end + 15) & ~(uintptr_t)15;
#else
	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
#endif
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)code_end;
	cached = with_table = ctx;
	with_table.functions = lwsbt_function_table();
	cached_table = with_table;
	cached.rules = rules;
	cached_table.rules = rules_table;
	cached.rule_count = cached_table.rule_count = sizeof rules / sizeof *rules;
	on = 1;
	drive();
	on = 0;
	end();
}
