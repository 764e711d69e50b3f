/*
 * stack.c: what an allocation takes of its task's stack, by painting. It prints the
 * bytes below the function that calls malloc, and the frames captured: by a cold cache, then by
 * a warm one.
 */
#include <stddef.h>
#include <stdint.h>

#include "lwsbt.h"

#define NOINLINE __attribute__((noinline))
#define PAINT 0x5a5a5a5au
#define WORDS 300	/* painted */

extern char stack_top[], code_end[];
extern struct lwsbt_heap lwsbt_wrapped;
int main(void);
void reset(void);
void *__wrap_malloc(size_t size);
void __wrap_free(void *p);
void *malloc(size_t size);
void *realloc(void *p, size_t size);
void *calloc(size_t n, size_t size);
void free(void *p);

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
	(uintptr_t)stack_top, (uintptr_t)reset,
};

/* The allocator below. */
static uint64_t block[64];
void *malloc(size_t size) { return size <= sizeof block ? block : NULL; }
void *realloc(void *p, size_t size) { return size <= sizeof block ? p : NULL; }
void *calloc(size_t n, size_t size) { return n * size <= sizeof block ? block : NULL; }
void free(void *p) { (void)p; }

static void put(const char *text)
{
	register const char *r1 __asm__("r1") = text;
	register int r0 __asm__("r0") = 4;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void put_number(const char *name, unsigned v)
{
	static char text[12];
	char *p = text + sizeof text - 1;

	put(name);
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	put(p);
	put("\n");
}

static volatile unsigned depth_left, frames;

/* deeper paints the stack below it, and allocates. It calls nothing else. */
NOINLINE static unsigned deeper(unsigned depth)
{
	volatile uint32_t *sp;
	static struct lwsbt_stack s;
	unsigned n, i;
	void *p;

	if (depth) {
		n = deeper(depth - 1);
		depth_left = depth;	/* not a tail call */
		return n;
	}
	__asm__ volatile("mov %0, sp" : "=r"(sp));
	for (i = 1; i <= WORDS; i++)
		*(sp - i) = PAINT;
	p = __wrap_malloc(20);
	for (n = WORDS; n > 0 && *(sp - n) == PAINT; n--)
		;
	if (lwsbt_meta_parse(&lwsbt_wrapped, &s, p) == LWSBT_OK)
		frames = s.depth;
	__wrap_free(p);
	return 4 * n;
}

int main(void)
{
	lwsbt_wrapped.ctx.hi = (uintptr_t)stack_top;
	lwsbt_wrapped.ctx.lo = lwsbt_wrapped.ctx.hi - 8192;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)code_end;
	lwsbt_wrapped.ctx.functions = lwsbt_function_table();
	put_number("cold ", deeper(6));
	put_number("warm ", deeper(6));
	put_number("frames ", frames);
	return 0;
}

void reset(void)
{
	main();
	for (;;)
		__asm__ volatile("mov r0, #0x18\n ldr r1, =0x20026\n bkpt 0xab" ::: "r0", "r1");
}
