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
#include "onheap.h"

struct item {
	struct item *next, *other;
	char text[24];
};

static struct item *kept;	/* in bss */
static struct item *initial = (struct item *)1;	/* in data */
static void *volatile interior;

static NOINLINE struct item *make(size_t size)
{
	struct item *i = heap_malloc(size);

	memset(i, 0, size);
	strcpy(i->text, "hunter2");	/* what nobody is to see */
	__asm__ volatile("" : : "r"(i) : "memory");
	return i;
}

static struct { uintptr_t masked, size; const char *label; } truth[4096];
static int truths;

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

/* Not in main, so that wipe() also overwrites the values that printf leaves in its caller's frame. */
static NOINLINE void tell(void)
{
	int k;

	for (k = 0; k < truths; k++)
		printf("live %lx %lu %s\n", (unsigned long)(truth[k].masked ^ MASK),
		       (unsigned long)truth[k].size, truth[k].label);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int overflow = !!strstr(mode, "overflow"), die = !!strstr(mode, "die");
	struct item *volatile on_stack;

	keep_some(100);
	initial = note(make(64), 64, "kept");
	interior = (char *)note(make(500), 500, "kept") + 250;
	leak_some(7);
	leak_ring();
	on_stack = note(make(48), 48, "kept");
	wipe();
	if (overflow)
		memset((char *)initial, 0x41, 64 + 160); /* over the metadata behind it */
	tell();
	if (!overflow)
		dump();
	fflush(stdout);
	wipe();
	stop(die);
	
	return on_stack->text[0];
}
