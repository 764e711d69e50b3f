/* Uses of malloc that give a heap an unusual form, one for each value of CASE. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#define MOST 4000
#define DROPS 200
#define EACH 16
#define STACK 16384
#include "odd.h"

__attribute__((noinline)) void stop(void)
{
#ifdef ABORT
	abort();
#else
	__asm__ volatile("");
#endif
}

/* The program itself takes memory from sbrk, and stores pointers there. */
static void own_sbrk(void)
{
	for (int i = 0; i < 4; i++) {
		some(100, 3000);
		void **mine = sbrk(i == 2 ? 24 : 20000);
		for (int k = 0; k < 3; k++)
			note(mine[k] = malloc(50 + (size_t)k), 50 + (size_t)k, 0);
		for (int k = 0; k < 60; k++)
			keep(malloc(4000), 4000);
	}
}

/* The break cannot grow: other memory is behind it. */
static void no_sbrk(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 1 << 23);
#endif
	some(60, 1000);
	char *end = (char *)(((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095);
	mmap(end, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	for (int i = 0; i < 60; i++)
		some(20, 9000);
	for (size_t i = 2; i < 5; i++) { /* parts of one block */
		void *p = malloc(i << 20);
		keep(realloc(p, i << 10), i << 10);
		keep(malloc(i << 20), i << 20);
	}
}

/* Blocks at aligned addresses, small ones and those with a mapping of their own. */
static void aligned(void)
{
	some(40, 1000);
	for (size_t align = 16; align <= 1 << 21; align *= 2)
		for (size_t size = 10; size < 2 << 20; size = size * 6 + align % 13) {
			void *p = NULL;
			if (posix_memalign(&p, align, size))
				failed++;
			keep(p, size);
		}
	void *p = NULL;
	if (posix_memalign(&p, 65536, 500000))
		failed++;
	p = realloc(p, 3000000);
	keep(p, 3000000);
	p = malloc(2000000);
	p = realloc(p, 300000);
	keep(p, 300000);
	p = malloc(200000);
	p = realloc(p, 9000000);
	keep(p, 9000000);
	some(40, 1000);
}

/* The end of the heap goes back to the system, and empty pages in it. */
static void trimmed(void)
{
	void *p[300];

	some(100, 2000);
	for (int i = 0; i < 300; i++)
		p[i] = malloc(20000);
	for (int i = 0; i < 150; i++)
		free(p[2 * i]);
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	some(100, 2000);
	for (int i = 0; i < 150; i++)
		free(p[2 * i + 1]);
	memset(p, 0, sizeof p);
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	for (int i = 0; i < 60; i++) /* joined when they are free, with their headers inside */
		p[i] = malloc(3000);
	some(100, 300);
	for (int i = 59; i >= 0; i--)
		free(p[i]);
	memset(p, 0, sizeof p);
}

/* Lists of small free blocks are full. */
static void cached(void)
{
	void *p[40];

#if defined __GLIBC__ && defined M_MXFAST
	mallopt(M_MXFAST, 80 * sizeof(size_t) / 4);
#endif
	some(100, 2000);
	for (size_t size = 8; size < 1200; size += 8) {
		for (int i = 0; i < 40; i++)
			p[i] = malloc(size);
		keep(p[20], size);
		for (int i = 0; i < 40; i++)
			if (i != 20)
				free(p[i]);
	}
	memset(p, 0, sizeof p);
}

/* Nothing goes back to the system, and no block has a mapping of its own. */
static void real_time(void)
{
	keep(malloc(3000000), 3000000);
#ifdef M_MMAP_MAX
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, -1);
	mallopt(M_TOP_PAD, 1 << 20);
#endif
	keep(malloc(4000000), 4000000);
	some(300, 3000);
}

static void *alone(void *arg)
{
	uintptr_t n = (uintptr_t)arg;

	some(60, n % 3 ? 500 : 60000);
	clear();
	return NULL;
}

/* Threads that have ended, with blocks that are still in use. */
static void ended(void)
{
	for (uintptr_t round = 0; round < 3; round++) {
		pthread_t t[8];
		for (uintptr_t i = 0; i < 8; i++)
			pthread_create(&t[i], NULL, alone, (void *)i);
		for (uintptr_t i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
	}
}

/* Threads that have ended, with one block each: their arenas in jemalloc use one bin. */
static void *one(void *arg)
{
	keep(malloc(50), 50);
	return arg;
}

static void single(void)
{
	some(100, 3000);
	for (int i = 0; i < 6; i++) {
		pthread_t t;
		pthread_create(&t, NULL, one, NULL);
		pthread_join(t, NULL);
	}
}

static pthread_barrier_t ready;

static void *waiting(void *arg)
{
	alone(arg);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return NULL;
}

/* A child process of one with threads; only it is in the core file. */
static void child(void)
{
	pthread_barrier_init(&ready, NULL, 7);
	for (uintptr_t i = 0; i < 6; i++) {
		pthread_t t;
		pthread_create(&t, NULL, waiting, (void *)i);
	}
	pthread_barrier_wait(&ready);
	pid_t pid = fork();
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	some(100, 500);
}

/* A thread whose arena needs several heaps, and gives some back. */
static void *grows(void *arg)
{
	static void *p[3000];

	(void)arg;
	some(30, 500);
	for (int i = 0; i < 3000; i++)
		p[i] = malloc(100000);
	for (int i = 0; i < 3000; i++)
		if (i % 100 != 50 || i > 2000)
			free(p[i]);
		else
			keep(p[i], 100000);
	memset(p, 0, sizeof p);
	some(100, 100000);
	clear();
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return NULL;
}

static void heaps(void)
{
	pthread_t t;

	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&t, NULL, grows, NULL);
	pthread_barrier_wait(&ready);
	some(100, 500);
}

static pthread_key_t key;
__thread void *mine[3];

static void *locals(void *arg)
{
	void *p = malloc(70);

	note(p, 70, 0);
	pthread_setspecific(key, p);
	for (int i = 0; i < 3; i++)
		note(mine[i] = malloc(33), 33, 0);
	p = NULL;
	clear();
	if (arg) {
		pthread_barrier_wait(&ready);
		for (;;)
			pause();
	}
	return NULL;
}

/* Pointers in memory of mmap, in thread-local variables and data. */
static void elsewhere(void)
{
	void **page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void **shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	pthread_key_create(&key, NULL);
	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&t, NULL, locals, &t);
	pthread_barrier_wait(&ready);
	locals(NULL);
	some(50, 300);
	for (int i = 0; i < 20; i++) {
		note(page[i * 7] = malloc(100), 100, 0);
		note(shared[i * 7] = malloc(100), 100, 0);
	}
}

int main(void)
{
	CASE();
	some(300, 400);
	clear();
	stop();
	return 0;
}
