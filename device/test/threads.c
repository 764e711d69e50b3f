/*
 * 8 threads allocate, resize, free and dump at the same time; for ThreadSanitizer. Prints
 * what was done; exit code 1 if the heap is not empty in the end, or anything was amiss.
 *
 *   threads [ROUNDS]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

enum { THREADS = 8, BLOCKS = 32 };

extern const struct lwsbt_port lwsbt_posix_port;

static struct lwsbt_heap heap;

/* An allocator with a header, as most have: the heap reads what stands before memory
 * without metadata, and that should not be another thread's. */
enum { HEADER = 64 };

static void *allocate(size_t size)
{
	char *p = calloc(1, size + HEADER);

	return p ? p + HEADER : NULL;
}

static void release(void *p) { free((char *)p - HEADER); }

static void *resize(void *p, size_t size)
{
	char *q = realloc((char *)p - HEADER, size + HEADER);

	return q ? q + HEADER : NULL;
}

static const struct lwsbt_allocator allocator = { allocate, resize, release, NULL };
static unsigned rounds = 2000;
static unsigned long failures[THREADS], records[THREADS];

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	size_t n = (uintptr_t)&n / 64 % (max + 1);
	void *p = lwsbt_heap_malloc(&heap, &allocator, 8, NULL); /* as an unwinder may */

	(void)skip;
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		pcs[i] = 0x8000000 + 40 * i;
	lwsbt_heap_free(&heap, &allocator, p);
	return n;
}

static void count(void *arg, const char *text, size_t len)
{
	if (len == 3 && !memcmp(text, "~m#", 3))
		++*(unsigned long *)arg;
}

static void *work(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, state = me * 2654435761u + 1;
	unsigned char *block[BLOCKS] = { NULL };
	size_t size[BLOCKS] = { 0 };

	for (unsigned i = 0; i < rounds; i++) {
		unsigned k;

		state = state * 1664525u + 1013904223u;
		k = state >> 8 & (BLOCKS - 1);
		if (!block[k]) {
			size[k] = state >> 20 & 511;
			block[k] = lwsbt_heap_malloc(&heap, &allocator, size[k], NULL);
		} else {
			for (size_t j = 0; j < size[k]; j++)
				failures[me] += block[k][j] != (unsigned char)me;
			if (state & 0x80000000) {
				lwsbt_heap_free(&heap, &allocator, block[k]);
				block[k] = NULL;
				continue;
			}
			size[k] = (state >> 20 & 511) + 1;
			block[k] = lwsbt_heap_realloc(&heap, &allocator, block[k], size[k], NULL);
		}
		memset(block[k], (int)me, size[k]);
		if (i % 256 == 0) {
			const struct lwsbt_out out = { count, &records[me] };

			lwsbt_dump(&heap, &out, i, NULL, LWSBT_KEEP_ADDRESS);
		}
	}
	for (unsigned k = 0; k < BLOCKS; k++)
		lwsbt_heap_free(&heap, &allocator, block[k]);
	return NULL;
}

static unsigned long run(const struct lwsbt_port *port)
{
	pthread_t thread[THREADS];
	unsigned long bad = 0, dumped = 0;

	memset(&heap, 0, sizeof heap);
	memset(records, 0, sizeof records);
	heap.capture = capture;
	heap.port = port;
	heap.flags = LWSBT_KEEP_SEQUENCE | LWSBT_KEEP_THREAD | LWSBT_KEEP_TIME;
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i))
			return 1;
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		bad += failures[i];
		dumped += records[i];
	}
	bad += heap.count || heap.bytes || heap.damaged || heap.head || heap.walks || !heap.reentered || !dumped;
	printf("%lu records dumped, %u allocations, %u of them inside capture\n", dumped, heap.sequence,
		heap.reentered);
	return bad;
}

int main(int argc, char **argv)
{
	struct lwsbt_port one_guard = lwsbt_posix_port;

	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	one_guard.guard = NULL;
	if (run(&lwsbt_posix_port) || run(&one_guard)) {
		puts("not so");
		return 1;
	}
	puts("ok");
	return 0;
}
