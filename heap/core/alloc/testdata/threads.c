/*
 * Threads that allocate at random, blocks of all sizes, each with an arena of its own in
 * glibc. The table "truth" is as in model.c; the blocks are in lists that the threads' variables
 * begin.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef THREADS
#define THREADS 8
#endif
#ifndef KEPT
#define KEPT 400 /* blocks of a thread */
#endif
#ifndef SCALE
#define SCALE 1
#endif

struct truth {
	uintptr_t addr; /* inverted */
	uintptr_t size, leaked;
} truth[(THREADS + 1) * KEPT];
uintptr_t truth_count, failed;

struct block { struct block *next; uintptr_t size; };
static __thread struct block *mine;
static pthread_barrier_t done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(struct block *b, int leaked)
{
	truth[truth_count].addr = ~(uintptr_t)b;
	truth[truth_count].size = b->size;
	truth[truth_count++].leaked = (uintptr_t)leaked;
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 2654435761u + 1;
	uintptr_t count = 0;

	for (uintptr_t n = 0; n < 6 * KEPT; n++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t r = seed >> 33;
		if (count < KEPT && (r % 8 < 5 || count < 4)) {
			size_t size = sizeof(struct block) + (r >> 3) % (n % 50 == 7 ? SCALE * 100000 : n % 8 ? 120 : 3000);
			struct block *b = n % 97 == 5 && size < 50000 ? NULL : malloc(size);
			if (!b && posix_memalign((void **)&b, 256, size)) {
				failed++;
				continue;
			}
			memset(b, 0, size);
			b->size = size;
			b->next = mine;
			mine = b;
			count++;
			continue;
		}
		struct block **at = &mine;
		for (uintptr_t k = (r >> 5) % (count < 60 ? count : 60); k > 0; k--)
			at = &(*at)->next;
		struct block *b = *at;
		*at = b->next;
		count--;
		b->next = NULL;
		if (n > 4 * KEPT && n % 40 == 3) {
			pthread_mutex_lock(&lock);
			note(b, 1);
			pthread_mutex_unlock(&lock);
		} else {
			free(b);
		}
	}
	pthread_mutex_lock(&lock);
	for (struct block *b = mine; b; b = b->next)
		note(b, 0);
	pthread_mutex_unlock(&lock);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&done);
	return NULL;
}

__attribute__((noinline)) void stop(void)
{
#ifdef ABORT
	abort();
#else
	__asm__ volatile("");
#endif
}

int main(void)
{
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++) {
		pthread_t t;
		pthread_create(&t, NULL, work, (void *)i);
	}
	pthread_barrier_wait(&done);
	stop();
	return 0;
}
