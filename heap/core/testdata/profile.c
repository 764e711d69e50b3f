/*
 * A program that counts by call path in a table, which is read from outside. It prints
 * what is live, by its own account and by the library's, and then dies.
 *
 *   live ADDRESS SIZE LABEL     a block; those of a label are of one call path
 *   ~p#...                      the library's own dump
 *
 * With "full" as an argument, the table has no place for most paths.
 */
#include <malloc.h>

#include "onheap.h"

extern char __executable_start[], etext[];

static uintptr_t node[900];
static struct lwsbt_entry entry[300];
static struct lwsbt_range range;
#ifdef HISTORY
static struct lwsbt_history history[300];
#endif
#ifdef WRAPPED
struct lwsbt_profile lwsbt_wrapped_profile
#else
static struct { int other; struct lwsbt_profile profile; } table
#endif
= {
#ifndef WRAPPED
	.profile = {
#endif
	.heap = &lwsbt_heap, .node = node, .entry = entry, .nodes = 900, .entries = 300,
	.code = { &range, 1, LWSBT_CODE_SHIFT },
#ifdef HISTORY
	.history = history,
#endif
#ifndef WRAPPED
	}
#endif
};

#ifdef WRAPPED
#define PROFILE (&lwsbt_wrapped_profile)
#else
#define PROFILE (&table.profile)
#endif

static const struct lwsbt_allocator below = { malloc, realloc, free, memalign };

static struct { void *p; size_t size; char label[16]; } truth[4096];
static int truths;

static NOINLINE void *deep(int depth, size_t size, size_t align)
{
	void *q;

	if (depth > 0)
		q = deep(depth - 1, size, align);
	else if (align)
		q = lwsbt_profile_memalign(PROFILE, &below, align, size, NULL);
	else
		q = lwsbt_profile_malloc(PROFILE, &below, size, NULL);
	__asm__ volatile("" : "+r"(q) : : "memory");
	return q;
}

static NOINLINE void keep(const char *kind, int depth, int count, size_t size, size_t align)
{
	volatile int k;

	for (k = 0; k < count; k++) {
		void *gone = deep(depth + 1, size + 3, 0);

		truth[truths].p = deep(depth, size + (size_t)k, align);
		truth[truths].size = size + (size_t)k;
		snprintf(truth[truths].label, sizeof truth->label, "%s%d", kind, depth);
		truths++;
		lwsbt_profile_free(PROFILE, &below, gone);
	}
}

int main(int argc, char **argv)
{
	struct lwsbt_out out = { put, NULL };
	struct lwsbt_profile_dump d = { .lines = { .out = &out, .max = 200 } };

	if (argc > 1 && strstr(argv[1], "full")) {
		PROFILE->nodes = 20;
		PROFILE->entries = 18;
	}
	range.start = (uintptr_t)__executable_start;
	range.end = ((uintptr_t)etext + 15) & ~(uintptr_t)15;
	for (int k = 0; k < 20; k++)
		keep("kept", k, 2 + k % 7, 10 + 11 * (size_t)k, 0);
	keep("aligned", 3, 5, 100, 64);
	lwsbt_profile_dump(PROFILE, &d, 0, "exit", LWSBT_SORT);
	for (int k = 0; k < truths; k++)
		printf("live %lx %lu %s\n", (unsigned long)(uintptr_t)truth[k].p, (unsigned long)truth[k].size, truth[k].label);
	fflush(stdout);
	stop(argc > 1 && strstr(argv[1], "die"));
	return 0;
}
