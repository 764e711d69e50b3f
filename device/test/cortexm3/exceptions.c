/*
 * exceptions.c: a Cortex-M whose SysTick interrupts it anywhere, and captures the stack. Each
 * function is called from one place only, so that what is on the stack is known from the
 * function that was interrupted. A line has the addresses of a stack; no interrupted
 * address is printed twice.
 *
 * With PROCESS, main runs on the process stack.
 */
#include <stddef.h>
#include <stdint.h>

#include "lwsbt.h"

#define NOINLINE __attribute__((noinline))
#define SYSTICK_CTRL (*(volatile uint32_t *)0xe000e010)
#define SYSTICK_LOAD (*(volatile uint32_t *)0xe000e014)
#define SYSTICK_NOW (*(volatile uint32_t *)0xe000e018)
#define ICSR (*(volatile uint32_t *)0xe000ed04)
#define CPACR (*(volatile uint32_t *)0xe000ed88)

extern char stack_top[], code_end[];
int main(void);
void reset(void);
void tick(void);

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
	(uintptr_t)stack_top, (uintptr_t)reset, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (uintptr_t)tick,
};

static uint64_t process[512];
static struct lwsbt_rule rules[64];
static struct lwsbt_capture_ctx ctx = { .rules = rules, .code_hi = (uintptr_t)code_end };
static uint8_t seen[8192];
static volatile int last, more = 4000;
static volatile unsigned state = 1;
static uintptr_t pcs[32];

/* So the tick comes at another instruction. */
NOINLINE static unsigned wait(unsigned n)
{
	while (n-- > 0)
		state = state * 5 + 1;
	return state;
}

static void put(const char *text)
{
	register const char *r1 __asm__("r1") = text;
	register int r0 __asm__("r0") = 4;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

NOINLINE static void put_stack(size_t n)
{
	static char line[32 * 9 + 2];
	char *p = line;
	size_t i;
	int shift;

	for (i = 0; i < n; i++) {
		for (shift = 28; shift >= 0; shift -= 4)
			*p++ = "0123456789abcdef"[pcs[i] >> shift & 15];
		*p++ = ' ';
	}
	*p++ = '\n';
	*p = 0;
	put(line);
}

/* The handler's own function, and the handler: which keeps nothing of the interrupted. */
NOINLINE static void inner(volatile int *a)
{
	size_t n = lwsbt_capture_thumb(pcs, 32, 0, &ctx);

	if (n < 3 || !(seen[pcs[2] / 8 % 8192] >> (pcs[2] / 2 % 4) & 1)) {
		if (n >= 3)
			seen[pcs[2] / 8 % 8192] |= (uint8_t)(1u << (pcs[2] / 2 % 4));
		put_stack(n);
	}
	*a += 1;
}

void tick(void)
{
	volatile int a[3];

	a[0] = 0;

	inner(a);
	if (--more <= 0)
		SYSTICK_CTRL = 0;
	/* again in 40 to 200 instructions, not at once */
	state = state * 1664525u + 1013904223u;
	SYSTICK_LOAD = 2 + ((state >> 16) & 3);
	SYSTICK_NOW = 0;
	ICSR = 1 << 25;
}

/* ---------------------------------------------------------- what is interrupted */

NOINLINE static int leaf_plain(int a) { return a * 3 + last; }

NOINLINE static int leaf_frame(int a)
{
	volatile int array[8];
	int i;

	for (i = 0; i < 8; i++)
		array[i] = a + i;
	return array[a & 7];
}

NOINLINE static int leaf_early(const int *p, int n)
{
	int sum = 0;

	if (!p)
		return -1;
	while (n-- > 0)
		sum += p[n];
	return sum;
}

#ifdef __ARM_FP
static volatile float factor = 1.5f;
#endif

NOINLINE static int middle(int a)
{
	int values[3] = {a, a + 1, a + 2};
	int r = leaf_early(a & 1 ? values : NULL, 3);

#ifdef __ARM_FP
	factor = factor * 1.25f + (float)a;
#endif
	return r + a;
}

NOINLINE static int many(int a, int b, int c, int d, int e, int f)
{
	int r = middle(a ^ e);

	last = f;
	return r + a * b + c * d + e * f;
}

NOINLINE static int moving(int n)
{
	volatile char *p = __builtin_alloca((size_t)(n & 31) + 8);

	p[n & 7] = (char)n;
	return leaf_frame(n) + p[n & 7];
}

NOINLINE static int branch(int a)
{
	if (a < 0)
		return a + 1;
	if ((a & 3) == 0)
		return moving(a) + 1;
	return leaf_plain(a) - last;
}

NOINLINE static int outer(int a)
{
	int r = branch(a - 1);

	r += many(a, r, 3, 4, a - 5, 6);
	wait((unsigned)a & 7);
	return r;
}

int main(void)
{
	int i;

	ctx.functions = lwsbt_function_table();
	SYSTICK_LOAD = 3;
	SYSTICK_NOW = 0;
	SYSTICK_CTRL = 7;
	for (i = 0; more > 0; i++)
		last = outer(i);
	put("end\n");
	return 0;
}

__attribute__((noreturn)) static void leave(void)
{
	for (;;)
		__asm__ volatile("movs r0, #0x18\n ldr r1, =0x20026\n bkpt 0xab" ::: "r0", "r1");
}

void reset(void)
{
#ifdef __ARM_FP
	CPACR |= 0xf << 20;
#endif
	ctx.hi = (uintptr_t)stack_top;
	ctx.lo = ctx.hi - 4096;
#ifdef PROCESS
	ctx.irq_hi = ctx.hi;
	ctx.irq_lo = ctx.lo;
	ctx.lo = (uintptr_t)process;
	ctx.hi = (uintptr_t)(process + 512);
	__asm__ volatile("msr psp, %0\n movs r0, #2\n msr control, r0\n isb" : : "r"(process + 512) : "r0", "memory");
#else
	(void)process;
#endif
	main();
	leave();
}
