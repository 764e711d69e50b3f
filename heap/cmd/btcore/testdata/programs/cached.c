/* Four threads with an arena each: 70 blocks of 40 bytes that a table holds, 30 freed ones, of which 7 are in the thread's cache and 23 in a
 * fast bin, and 10 leaked blocks of 72 bytes. The first word of freed blocks is that of the allocator. */
#include <pthread.h>
#include <stdlib.h>
static void *table[4][100];
static pthread_barrier_t all;

__attribute__((noinline)) static void work(void **mine)
{
	for (int i = 0; i < 100; i++)
		mine[i] = calloc(1, 40);
	for (int i = 0; i < 10; i++)
		*(volatile long *)malloc(72) = 1;
	for (int i = 1; i < 60; i += 2) {
		free(mine[i]);
		mine[i] = 0;
	}
}

__attribute__((noinline)) static void wipe(void)
{
	volatile char b[8000];

	for (int i = 0; i < 8000; i++)
		b[i] = 0;
}

static void *run(void *arg)
{
	work(arg);
	wipe();
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all); /* for ever */
	return 0;
}

int main(void)
{
	pthread_t t;

	pthread_barrier_init(&all, 0, 5);
	for (int i = 0; i < 4; i++)
		pthread_create(&t, 0, run, table[i]);
	pthread_barrier_wait(&all);
	t = 0;
	abort();
}
