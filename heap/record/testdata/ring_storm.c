/*
 * Threads that come and go, forks and modules, for as many seconds as the argument
 * says. Signals come all the time; their handlers do not allocate, but interrupt all else.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 64

static volatile int stop;
static long blocks, children, threads, modules, interrupts;

static void handler(int sig)
{
	(void)sig;
	__atomic_fetch_add(&interrupts, 1, __ATOMIC_RELAXED);
}

static void work(unsigned seed, int n)
{
	void *own[32] = {0};
	unsigned x = seed * 2654435761u + 1;

	for (int i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		unsigned k = x >> 27;
		if (x >> 16 & 1)
			own[k] = realloc(own[k], 1 + (x >> 8 & 1023));
		else {
			free(own[k]);
			own[k] = malloc(1 + (x >> 8 & 1023));
		}
	}
	for (int k = 0; k < 32; k++)
		free(own[k]);
	__atomic_fetch_add(&blocks, n, __ATOMIC_RELAXED);
}

static void *brief(void *arg)
{
	work((unsigned)(uintptr_t)arg, 50);
	return NULL;
}

static void one(unsigned x)
{
	pthread_t t;
	pid_t pid;
	void *h;

	switch (x % 16) {
	case 0:
		if (!(pid = fork())) {
			work(x, 20);
			_exit(0);
		}
		if (pid > 0 && waitpid(pid, NULL, 0) == pid)
			__atomic_fetch_add(&children, 1, __ATOMIC_RELAXED);
		break;
	case 1: case 2:
		if (!pthread_create(&t, NULL, brief, (void *)(uintptr_t)x)) {
			pthread_join(t, NULL);
			__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
		}
		break;
	case 3:
		if ((h = dlopen("libz.so.1", RTLD_NOW))) {
			dlclose(h);
			__atomic_fetch_add(&modules, 1, __ATOMIC_RELAXED);
		}
		break;
	default:
		work(x, 500);
	}
}

static void *thread(void *arg)
{
	unsigned x = (unsigned)(uintptr_t)arg + 1;

	while (!stop)
		one((x = x * 1664525u + 1013904223u) >> 16);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}};
	pthread_t t[THREADS];
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);

	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)(uintptr_t)i))
			return 9;
	while (time(NULL) < end)
		usleep(100000);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%ld operations, %ld children, %ld threads, %ld modules, %ld signals\n", blocks, children, threads, modules, interrupts);
	return !children || !threads || !modules || !interrupts;
}
