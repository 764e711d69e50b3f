/*
 * measure.c: how many instructions an allocation of 12 frames costs, beyond those
 * of malloc and free. Under -icount shift=0, an instruction takes 1 ns, and the
 * 25 MHz timer counts one of 40.
 */
#include "board.h"

#include <stdlib.h>

#include "lwsbt.h"

extern struct lwsbt_heap lwsbt_wrapped;
void *__real_malloc(size_t size);
void __real_free(void *p);

#define NOINLINE __attribute__((noinline))
#define FRAMES 12
#define TIMES 200

static unsigned frames;

/* One function for each frame, so that no two return addresses are alike. */
#define DOWN(n, m) \
	NOINLINE static unsigned down##n(unsigned way) \
	{ \
		unsigned r = down##m(way); \
		__asm__ volatile("" : "+r"(r)); \
		return r + n; \
	}

NOINLINE static unsigned down0(unsigned way)
{
	void *volatile p;
	struct lwsbt_stack s;

	switch (way) {
	case 0:
		p = __real_malloc(100);
		__real_free(p);
		break;
	case 1:
		p = malloc(100);
		free(p);
		break;
	case 2:
		p = malloc(100);
		if (lwsbt_meta_parse(&lwsbt_wrapped, &s, p) == LWSBT_OK)
			frames = s.depth;
		free(p);
		break;
	case 3:
		s.depth = (uint32_t)lwsbt_wrapped.capture(s.pc, FRAMES, 0, &lwsbt_wrapped.ctx);
		__asm__ volatile("" : : "r"(&s) : "memory");
		break;
	}
	return 0;
}

/* and instructions, main and reset */
DOWN(1, 0) DOWN(2, 1) DOWN(3, 2) DOWN(4, 3) DOWN(5, 4) DOWN(6, 5) DOWN(7, 6) DOWN(8, 7)

static void put_number(uint32_t v)
{
	char text[10];
	unsigned n = sizeof text;

	do
		text[--n] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	board_put(text + n, sizeof text - n);
}

NOINLINE static uint32_t instructions(unsigned way)
{
	uint32_t begin = board_ticks(), i;

	for (i = 0; i < TIMES; i++)
		down8(way);
	return (board_ticks() - begin) * 40 / TIMES;
}

static void line(const char *name, size_t len, uint32_t v)
{
	board_put(name, len);
	put_number(v);
	board_put("\n", 1);
}

#define LINE(name, v) line(name, sizeof name - 1, v)

int main(void)
{
	uint32_t plain, traced;

	lwsbt_wrapped.ctx.lo = (uintptr_t)board_stack_lo;
	lwsbt_wrapped.ctx.hi = (uintptr_t)board_stack_hi;
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)board_code_lo;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)board_code_hi;
	if (lwsbt_functions.count > 0)
		lwsbt_wrapped.ctx.functions = &lwsbt_functions;
	instructions(1);
	plain = instructions(0);
	traced = instructions(1);
	instructions(2);
	LINE("frames ", frames);
	LINE("malloc and free ", plain);
	LINE("with metadata ", traced);
	LINE("instructions per allocation ", traced - plain);
	LINE("of these, capture ", instructions(3));
	return 0;
}
