/*
 * Where to keep what is known of a live allocation: in front of the block, listed,
 * as firmware does it, or in the table of blocks.c. Prints nanoseconds per
 * allocation and free beyond those of malloc alone, and bytes per live allocation.
 *
 *   gcc -O2 -std=gnu99 -I../../include -I.. placement.c ../blocks.c ../pairs.c -o placement && ./placement
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "preload.h"

void lock_slow(lock_t *l)
{
	while (!lock_try(l))
		sched_yield();
}

static size_t mapped;

void *pages(size_t n)
{
	mapped += n;
	return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void pages_free(void *p, size_t n)
{
	mapped -= n;
	munmap(p, n);
}

void *keep(size_t n)
{
	mapped += n;
	return calloc(1, n);
}

/* In front: size, stack and the links of a list, padded to keep the alignment. */
struct front {
	struct front *prev, *next;
	uint64_t size : 40, stack : 24;
	uint64_t pad;
};
static struct front list = {&list, &list, 0, 0, 0};
static lock_t list_lock;

static void *front_alloc(size_t n)
{
	struct front *f = malloc(n + sizeof *f);

	f->size = n;
	lock(&list_lock);
	f->next = &list;
	f->prev = list.prev;
	list.prev->next = f;
	list.prev = f;
	unlock(&list_lock);
	return f + 1;
}

static void front_free(void *p)
{
	struct front *f = (struct front *)p - 1;

	lock(&list_lock);
	f->prev->next = f->next;
	f->next->prev = f->prev;
	unlock(&list_lock);
	free(f);
}

static void *table_alloc(size_t n)
{
	void *p = malloc(n);

	blocks_add((uintptr_t)p, n, 1);
	return p;
}

static void table_free(void *p)
{
	struct block b;

	blocks_take((uintptr_t)p, &b);
	free(p);
}

static double run(void *(*get)(size_t), void (*put)(void *), void **live, size_t n, size_t ops)
{
	struct timespec a, b;
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < n; i++)
		live[i] = get(16 + i % 100);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (size_t i = 0; i < ops; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		size_t k = x % n;
		put(live[k]);
		live[k] = get(16 + (x >> 40) % 100);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)ops;
}

int main(void)
{
	blocks_init();
	for (size_t n = 1000; n <= 1000000; n *= 30) {
		double plain = 1e9, front = 1e9, table = 1e9, t;
		size_t bytes = 0;
		void **live = malloc(n * sizeof *live);
		for (int round = 0; round < 3; round++) {
			if ((t = run(malloc, free, live, n, 500000)) < plain)
				plain = t;
			for (size_t i = 0; i < n; i++)
				free(live[i]);
			if ((t = run(front_alloc, front_free, live, n, 500000)) < front)
				front = t;
			for (size_t i = 0; i < n; i++)
				front_free(live[i]);
			if ((t = run(table_alloc, table_free, live, n, 500000)) < table)
				table = t;
			bytes = mapped;
			for (size_t i = 0; i < n; i++)
				table_free(live[i]);
		}
		printf("%8zu live: malloc %.0f ns; in front +%.0f ns, %zu bytes; in the table +%.0f ns, %zu bytes\n", n, plain,
			front - plain, sizeof(struct front), table - plain, bytes / n);
		free(live);
	}
	return 0;
}
