/* An allocator that a signal handler may leave at any time. */
#include <signal.h>
#include <stddef.h>
#include <string.h>

static char arena[64 << 20];
static size_t at;

void *malloc(size_t n)
{
	size_t size = (n + 31) & ~(size_t)15, from = __atomic_fetch_add(&at, size, __ATOMIC_RELAXED);

	if (n > sizeof arena || from + size > sizeof arena)
		return NULL;
	*(size_t *)(void *)(arena + from) = n;
	return arena + from + 16;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *p, size_t n)
{
	if (n == 4321)
		raise(SIGUSR1);
	void *q = malloc(n);
	if (p && q)
		memcpy(q, p, n < *(size_t *)(void *)((char *)p - 16) ? n : *(size_t *)(void *)((char *)p - 16));
	return q;
}
