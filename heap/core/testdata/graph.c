/*
 * Makes blocks that point to each other at random, with roots in bss, data, the
 * stacks of two threads, a thread-local variable and memory of another
 * allocator. Prints the live blocks and whether they are reachable, then dies.
 *
 *   graph SEED COUNT [die]
 */
#include "onheap.h"
#include <pthread.h>

#define MAX 4000
#define ROOTS 24

static unsigned long long state;

static unsigned rnd(unsigned below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

/* The model: indexes, no pointers. */
static struct block {
	uintptr_t masked;
	unsigned size, words;
	int link[16];		/* -1: no pointer */
	int reach;		/* 2 reachable, 1 from the other allocator alone */
} block[MAX];
static int n;

static void *in_bss[ROOTS];
static void *in_data[ROOTS] = { (void *)1 };
static __thread void *own;
static void *volatile *foreign;	/* malloc's */

static void *pointer(int i)
{
	char *p = (char *)(block[i].masked ^ MASK);

	return rnd(3) ? p : p + rnd(block[i].size);
}

static void reach(int i, int how)
{
	static int work[MAX * 16 + 1];
	int k, used = 0;

	work[used++] = i;
	while (used) {
		i = work[--used];
		if (block[i].reach >= how)
			continue;
		block[i].reach = how;
		for (k = 0; k < (int)block[i].words; k++)
			if (block[i].link[k] >= 0)
				work[used++] = block[i].link[k];
	}
}

static NOINLINE void make(int count)
{
	static void *hole[MAX];
	int k, w, holes = 0;

	for (k = 0; k < count; k++) {
		struct block *b = &block[n];
		void **p;

		b->words = 1 + rnd(16);
		b->size = b->words * (unsigned)sizeof(void *) + rnd(40);
		p = heap_malloc(b->size);
		memset(p, 0, b->size);
		if (rnd(3) == 0) {	/* to be freed, so that later blocks reuse its memory */
			hole[holes++] = p;
		} else {
			b->masked = (uintptr_t)p ^ MASK;
			n++;
		}
		if (holes > 20) {
			while (holes)
				heap_free(hole[--holes]);
			memset(hole, 0, sizeof hole);
		}
	}
	while (holes)
		heap_free(hole[--holes]);
	memset(hole, 0, sizeof hole);
	for (k = 0; k < n; k++) {
		struct block *b = &block[k];
		void **p = (void **)(b->masked ^ MASK);

		for (w = 0; w < (int)b->words; w++) {
			b->link[w] = -1;
			if (rnd(6) == 0) {
				b->link[w] = rnd(2) ? (int)rnd((unsigned)n) : (k + 1) % n;
				p[w] = pointer(b->link[w]);
			} else if (rnd(4) == 0) {
				p[w] = (void *)(uintptr_t)rnd(1u << 20);	/* data */
			}
		}
	}
}

static NOINLINE void *root(int how)
{
	int i = (int)rnd((unsigned)n);

	reach(i, how);
	return pointer(i);
}

static void *volatile thread_ready;

static void *thread(void *arg)
{
	void *volatile mine[2] = { arg, NULL };

	thread_ready = (void *)1;
	for (;;)
		__asm__ volatile("" : : "r"(mine[0]) : "memory");
	return mine[1];
}

/* Not in main, so that wipe() also overwrites the values that printf leaves in its caller's frame. */
static NOINLINE void tell(void)
{
	int k;

	for (k = 0; k < n; k++)
		printf("live %lx %u %s\n", (unsigned long)(block[k].masked ^ MASK), block[k].size,
		       block[k].reach == 2 ? "kept" : block[k].reach ? "foreign" : "leak");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	void *volatile on_stack[4];
	pthread_t t;
	void *given;
	int k;

	if (argc < 3)
		return 2;
	state = strtoull(argv[1], NULL, 0);
	make(atoi(argv[2]));
	for (k = 0; k < ROOTS; k++) {
		if (rnd(4) == 0)
			in_bss[k] = root(2);
		if (rnd(4) == 0)
			in_data[k] = root(2);
	}
	for (k = 0; k < 4; k++)
		on_stack[k] = root(2);
	own = root(2);
	given = root(2);
	foreign = malloc(10 * sizeof *foreign);
	for (k = 0; k < 10; k++)
		foreign[k] = root(1);
	wipe();
	if (pthread_create(&t, NULL, thread, given))
		return 3;
	while (!thread_ready)
		;
	tell();
	wipe();
	stop(argc > 3);
	return (int)(size_t)on_stack[0] + (int)(size_t)own + (int)(size_t)in_bss[0] + (int)(size_t)in_data[0];
}
