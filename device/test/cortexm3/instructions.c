/*
 * Counts the instructions of an allocation, on a Cortex-M3 of qemu: with -icount
 * shift=0 an instruction takes a nanosecond, and the board's counter of 25 MHz ticks
 * once in 40 of them.
 *
 * An allocation is a call stack of 12 frames, its metadata, and the list; below it is an
 * allocator of a few instructions. OTHER adds another_allocate, of an archive given
 * on the command line, to compare with.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lwsbt.h"

#define COUNTER (*(volatile uint32_t *)0x40028018)

enum { ROUNDS = 200, BELOW = 9 };

int main(void);
void reset(void);
extern char stack_top[], code_end[];

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
	(uintptr_t)stack_top, (uintptr_t)reset,
};

void reset(void)
{
	main();
	for (;;)
		__asm__ volatile("mov r0, #0x18\n ldr r1, =0x20026\n bkpt 0xab" ::: "r0", "r1"); /* exit */
}

static void print(const char *text)
{
	register const char *r1 __asm__("r1") = text;
	register int r0 __asm__("r0") = 4;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void print_number(uint32_t v)
{
	char text[12], *p = text + sizeof text - 1;

	*p = 0;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	print(p);
}

/* A piece of memory of fixed size: what is counted is not the allocator. */
static uint64_t block[128];
static void *allocate(size_t size) { return size <= sizeof block ? block : NULL; }
static void release(void *p) { (void)p; }
static void *resize(void *p, size_t size) { (void)size; return p; }
static const struct lwsbt_allocator allocator = { allocate, resize, release, NULL };

static struct lwsbt_heap heap;

/* Addresses of a program in flash, for the cost without capture. */
static size_t given(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	static const uint32_t pc[12] = { 0x08001234, 0x08004f02, 0x08004b16, 0x08012f38, 0x08012e02,
		0x08010008, 0x08003456, 0x08003dee, 0x0801fffe, 0x08002222, 0x08002042, 0x08000188 };

	(void)max;
	(void)skip;
	(void)ctx;
	for (unsigned i = 0; i < 12; i++)
		pcs[i] = pc[i];
	return 12;
}

typedef void *(*allocate_fn)(size_t size);

static __attribute__((noinline)) void *ours(size_t size)
{
	return lwsbt_heap_malloc(&heap, &allocator, size, __builtin_return_address(0));
}

#ifdef OTHER
void *another_allocate(size_t size, void *(*below)(size_t));
static __attribute__((noinline)) void *another(size_t size) { return another_allocate(size, allocate); }
#endif

static volatile unsigned depth_left;

static __attribute__((noinline)) uint32_t deeper(allocate_fn fn, unsigned depth)
{
	uint32_t t;

	if (depth) {
		t = deeper(fn, depth - 1);
		depth_left = depth; /* not a tail call */
		return t;
	}
	t = COUNTER;
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* one block that is always the only one */
		memset(&heap, 0, offsetof(struct lwsbt_heap, how));
		fn(100 + i);
	}
	return (COUNTER - t) * 40 / ROUNDS;
}

static void *nothing(size_t size) { return size ? block : NULL; }

static void measure(const char *name, allocate_fn fn)
{
	uint32_t v = deeper(fn, BELOW), base;
	struct lwsbt_stack s;
	int parsed = fn == ours && heap.head && lwsbt_meta_parse(&heap, &s, heap.head + 1) == LWSBT_OK;

	base = deeper(nothing, BELOW);
	print(name);
	print(": ");
	print_number(v - base);
	print(" instructions");
	if (parsed) {
		unsigned outside = 0;

		for (unsigned i = 0; i < s.depth; i++)
			outside += s.pc[i] >= (uintptr_t)code_end;
		print(", ");
		print_number(s.depth);
		print(" frames");
		if (fn == ours && heap.capture != given) {
			print(", ");
			print_number(outside);
			print(" outside the code");
		}
	}
	print("\n");
}

int main(void)
{
	heap.capture = given;
	measure("ours, frames given", ours);
#ifdef BACKEND
	heap.capture = BACKEND;
	heap.ctx.hi = (uintptr_t)stack_top;
	heap.ctx.lo = heap.ctx.hi - 65536;
	heap.ctx.code_hi = (uintptr_t)code_end;
	measure("ours, captured", ours);
#endif
#ifdef OTHER
	measure("other", another);
#endif
	return 0;
}
