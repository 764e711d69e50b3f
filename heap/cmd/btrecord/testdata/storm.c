/* storm THREADS SECONDS LIBRARY: threads that allocate, free each other's blocks, load and
 * unload a library, interrupt each other by signals, and fork. It prints the blocks and bytes
 * that keep() has at the end, and the number of children. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 4096
static struct block { size_t size; } *_Atomic shared[BLOCKS];
static const char *program, *library;
static pthread_t threads[1024];
static atomic_int stop, children, failed, signals;
static int n;

__attribute__((noinline)) static struct block *keep(size_t size)
{
	struct block *b = malloc(size);

	if (b)
		b->size = size;
	return b;
}

__attribute__((noinline)) static struct block *again(struct block *b, size_t size)
{
	b = realloc(b, size);
	if (b)
		b->size = size;
	return b;
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

/* in_child has 10 blocks of 20 bytes at its end. */
__attribute__((noinline)) static void in_child(void)
{
	for (int i = 0; i < 20; i++) {
		void *volatile p = malloc(20);
		if (i % 2)
			free(p);
	}
}

static void child(unsigned x)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (x % 4 == 0)
			execl(program, program, "child", (char *)NULL);
		in_child();
		_exit(0);
	}
	children++;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		failed++;
}

static void *work(void *arg)
{
	unsigned x = 2654435761u * (unsigned)((uintptr_t)arg + 1);

	while (!stop) {
		x = x * 1664525u + 1013904223u;
		struct block *b = (x >> 8) % 5 ? keep(8 + (x >> 20)) : NULL;
		b = atomic_exchange(&shared[x >> 20], b);
		if (b && x % 3 == 0)
			b = atomic_exchange(&shared[(x >> 10) % BLOCKS], again(b, 8 + (x >> 22)));
		free(b);
		if (x >> 22 == 1)
			pthread_kill(threads[(x >> 4) % (unsigned)n], SIGUSR1);
		if (x >> 19 == 2) {
			void *l = dlopen(library, RTLD_NOW);
			if (!l)
				failed++;
			else
				dlclose(l);
		}
		if (x >> 15 == 3)
			child(x);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t bytes = 0, count = 0;

	if (argc == 2) {
		in_child();
		return 0;
	}
	program = argv[0];
	n = atoi(argv[1]);
	library = argv[3];
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &a, NULL);
	for (int i = 0; i < n; i++)
		threads[i] = pthread_self();
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			return 9;
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end; ) /* signals interrupt sleep */
		sleep(1);
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < BLOCKS; i++)
		if (shared[i]) {
			count++;
			bytes += shared[i]->size;
		}
	printf("%zu %zu %d %d\n", count, bytes, children, signals > 0 ? failed : -1);
	return 0;
}
