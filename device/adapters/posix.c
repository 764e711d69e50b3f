/*
 * A port for programs with POSIX threads: lwsbt_posix_port. As -DLWSBT_WRAP_PORT of
 * wrap.c, and for any other heap.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "lwsbt.h"

extern const struct lwsbt_port lwsbt_posix_port;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned char inside;

static void lock(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
}

static void unlock(void *arg)
{
	(void)arg;
	pthread_mutex_unlock(&mutex);
}

static unsigned char *guard(void *arg)
{
	(void)arg;
	return &inside;
}

static uint64_t now(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uintptr_t thread(void *arg)
{
	(void)arg;
	return (uintptr_t)pthread_self();
}

const struct lwsbt_port lwsbt_posix_port = {
	.lock = lock,
	.unlock = unlock,
	.guard = guard,
	.time = now,
	.thread = thread,
};
