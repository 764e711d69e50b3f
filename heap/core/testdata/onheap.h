/* A heap with metadata: of libwebsockets, or with -DON_DEVICE of device/; with -DPLAIN, malloc. */
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

static struct lwsbt_heap lwsbt_heap = {
	.capture = capture,
	.flags = LWSBT_KEEP_SEQUENCE,
};
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
#elif defined(PLAIN)
#define heap_malloc(size) malloc(size)
#define heap_free(p) free(p)
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

/* The program's own record of a live block. The address is masked, so that
 * the account is no pointer itself. */
#define MASK ((uintptr_t)0x5a5a5a5a5a5a5a5aull)
#define NOINLINE __attribute__((noinline))

/* Overwrites what calls left on the stack, and on MIPS in registers that calls need not
 * keep: it has so many that a pointer stays in one until the program dies. */
static NOINLINE void wipe(void)
{
	volatile char area[8192];
	size_t i;

	for (i = 0; i < sizeof area; i++)
		area[i] = 0;
#if defined(__mips__)
	__asm__ volatile(
		"move $8, $0\n\tmove $9, $0\n\tmove $10, $0\n\tmove $11, $0\n\tmove $12, $0\n\t"
		"move $13, $0\n\tmove $14, $0\n\tmove $15, $0\n\tmove $24, $0"
		: : : "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24");
#endif
}

NOINLINE void stop(int die)
{
	if (die)
		abort();
	__asm__ volatile("" : : : "memory");
}
