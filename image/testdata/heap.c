/*
 * A program whose heap is read from outside. It prints what is live, by its own
 * account and by the library's, and then dies.
 *
 *   live ADDRESS SIZE LABEL     a block that is reachable, or that is not
 *   ~m#...                      the library's own dump
 *
 * Labels: kept; leak for those that nothing points to, ring and hung for those of
 * a ring. It runs on libwebsockets, or with -DON_DEVICE on device/.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ON_DEVICE
#include <unwind.h>
#include "lwsbt.h"

struct walk {
	uintptr_t *pcs;
	size_t n, max, skip;
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	uintptr_t pc = _Unwind_GetIP(c);

	if (w->n == w->max || !pc)
		return _URC_END_OF_STACK;
	if (w->skip)
		w->skip--;
	else
		w->pcs[w->n++] = pc;
	return _URC_NO_REASON;
}

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	struct walk w = { pcs, 0, max, skip + 1 };

	(void)ctx;
	_Unwind_Backtrace(frame, &w);
	return w.n;
}

static struct lwsbt_heap lwsbt_heap = { .capture = capture, .flags = LWSBT_KEEP_SEQUENCE };
static const struct lwsbt_allocator allocator = { .allocate = malloc, .resize = realloc, .release = free };

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	fwrite(text, 1, len, stdout);
}

static void dump(void)
{
	struct lwsbt_out out = { put, NULL };

	lwsbt_dump(&lwsbt_heap, &out, 0, "exit", LWSBT_KEEP_ADDRESS);
}

#define heap_malloc(size) lwsbt_heap_malloc(&lwsbt_heap, &allocator, size, NULL)
#define heap_free(p) lwsbt_heap_free(&lwsbt_heap, &allocator, p)
#else
#include <libwebsockets.h>

/* of the library, which declares it for event loops alone */
void *lws_realloc(void *ptr, size_t size, const char *reason);
#define heap_malloc(size) lws_realloc(NULL, size, "test")
#define heap_free(p) lws_realloc(p, 0, "test")

static void dump(void)
{
	_lws_alloc_metadata_dump_lws(lws_alloc_metadata_dump_stdout, NULL);
}
#endif

struct item {
	struct item *next, *other;
	char text[24];
};

static struct item *kept;	/* in bss */
static struct item *initial = (struct item *)1;	/* in data */
static void *volatile interior;

#define NOINLINE __attribute__((noinline))

static NOINLINE struct item *make(size_t size)
{
	struct item *i = heap_malloc(size);

	memset(i, 0, size);
	__asm__ volatile("" : : "r"(i) : "memory");
	return i;
}

/* The list of what is live: pairs of a masked address and a size, so that it is
 * no pointer itself. */
static struct { uintptr_t masked, size; const char *label; } truth[4096];
static int truths;
#define MASK ((uintptr_t)0x5a5a5a5a5a5a5a5aull)

static NOINLINE struct item *note(struct item *i, size_t size, const char *label)
{
	truth[truths].masked = (uintptr_t)i ^ MASK;
	truth[truths].size = size;
	truth[truths++].label = label;
	return i;
}

static NOINLINE void keep_some(int n)
{
	volatile int k; /* a loop that is not unrolled: one call site */

	for (k = 0; k < n; k++) {
		size_t size = sizeof(struct item) + (size_t)(k * 7 % 300);
		struct item *i = note(make(size), size, "kept");

		i->next = kept;
		kept = i;
		if (k % 5 == 0) {
			void *gone = heap_malloc(size);

			memset(gone, 0x11, size);
			heap_free(gone);
		}
	}
}

static NOINLINE void leak_some(int n)
{
	volatile int k; /* a loop that is not unrolled: one call site */

	for (k = 0; k < n; k++)
		note(make(200 + (size_t)k), 200 + (size_t)k, "leak");
}

static NOINLINE void leak_ring(void)
{
	struct item *a = note(make(sizeof *a), sizeof *a, "ring");
	struct item *b = note(make(sizeof *b), sizeof *b, "ring");
	struct item *c = note(make(sizeof *c), sizeof *c, "ring");

	a->next = b;
	b->next = c;
	c->next = a;
	b->other = note(make(77), 77, "hung");
}

/* Overwrites what calls left on the stack. */
static NOINLINE void wipe(void)
{
	volatile char area[8192];
	size_t i;

	for (i = 0; i < sizeof area; i++)
		area[i] = 0;
}

NOINLINE void stop(int die)
{
	if (die)
		abort();
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int overflow = !!strstr(mode, "overflow"), die = !!strstr(mode, "die");
	struct item *on_stack;
	volatile int k; /* a loop that is not unrolled: one call site */

	keep_some(100);
	initial = note(make(64), 64, "kept");
	interior = (char *)note(make(500), 500, "kept") + 250;
	leak_some(7);
	leak_ring();
	on_stack = note(make(48), 48, "kept");
	wipe();
	if (overflow)
		memset((char *)initial, 0x41, 64 + 160); /* over the metadata behind it */
	for (k = 0; k < truths; k++)
		printf("live %lx %lu %s\n", (unsigned long)(truth[k].masked ^ MASK),
		       (unsigned long)truth[k].size, truth[k].label);
	if (!overflow)
		dump();
	fflush(stdout);
	wipe();
	stop(die);
	__asm__ volatile("" : : "r"(on_stack) : "memory");
	return on_stack->text[0];
}
