/*
 * measure.c: how many instructions an allocation of 12 frames costs, and its free,
 * beyond those of malloc and free themselves. Under -icount shift=0, an instruction takes 1 ns, and the
 * 25 MHz timer counts one of 40.
 */
#include "board.h"

#include <stdlib.h>

#include "lwsbt.h"

void *__real_malloc(size_t size);
void __real_free(void *p);

#define NOINLINE __attribute__((noinline))

#ifdef PAD
/* Moves the code that follows by PAD bytes; link with -u pad. Addresses are hashed, so their values matter. */
#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x
void pad(void);
void pad(void) { __asm__ volatile(".space " STRING(PAD)); }
#endif

#define FRAMES 12
#define TIMES 200

static unsigned frames;
static void *blocks[TIMES];

enum { REAL_MALLOC, MALLOC, PARSE, CAPTURE };

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
	static unsigned i;
	struct lwsbt_stack s;

	switch (way) {
	case REAL_MALLOC:
		blocks[i++ % TIMES] = __real_malloc(100);
		break;
	case MALLOC:
		blocks[i++ % TIMES] = malloc(100);
		break;
	case PARSE:
#ifdef LWSBT_WRAP_NODES /* the stack is not in front of the block */
		frames = (unsigned)lwsbt_wrapped.capture(s.pc, FRAMES + 1, 0, &lwsbt_wrapped.ctx);
		break;
#endif
		if (lwsbt_meta_parse(&lwsbt_wrapped, &s, blocks[0]) == LWSBT_OK)
			frames = s.depth;
		break;
	case CAPTURE:
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

NOINLINE static uint32_t frees(void (*release)(void *))
{
	uint32_t begin = board_ticks(), i;

	for (i = 0; i < TIMES; i++)
		release(blocks[i]);
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
	uint32_t plain, traced, plain_free, traced_free;

	lwsbt_wrap_begin("measure", NULL);	/* without lwsbt_wrap_out, it writes nothing */
	instructions(REAL_MALLOC);
	frees(__real_free);
	plain = instructions(REAL_MALLOC);	/* from freed memory, as what follows */
	plain_free = frees(__real_free);
	instructions(MALLOC);
	instructions(PARSE);
	frees(free);
	traced = instructions(MALLOC);
	traced_free = frees(free);
	LINE("frames ", frames);
	LINE("malloc ", plain);
	LINE("with metadata ", traced);
	LINE("instructions per allocation ", traced - plain);
	LINE("of these, capture ", instructions(CAPTURE));
	LINE("instructions per free ", traced_free - plain_free);
	return 0;
}
