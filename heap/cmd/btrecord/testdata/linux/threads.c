/* Threads one after another, and then at once: each leaves a block of 100 bytes. */
#include "keep.h"

#include <pthread.h>

static pthread_barrier_t all;

static void *run(void *arg)
{
	for (size_t i = 0; i < 50; i++)
		free(malloc(50 + i));
	return keep(100), arg;
}

static void *waits(void *arg)
{
	run(arg);
	pthread_barrier_wait(&all);
	return arg;
}

int main(int argc, char **argv)
{
	int n = atoi(argv[1]), m = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t *t = calloc((size_t)m + 1, sizeof *t);
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(t, &a, run, NULL) || pthread_join(*t, NULL))
			return 9;
	pthread_barrier_init(&all, NULL, (unsigned)m);
	for (int i = 0; i < m; i++)
		if (pthread_create(t + i, &a, waits, NULL))
			return 8;
	for (int i = 0; i < m; i++)
		pthread_join(t[i], NULL);
	tell();
	return 0;
}
