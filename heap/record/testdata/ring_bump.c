/*
 * An allocator that can be called from signal handlers, for tests: a library of its own.
 * What it allocates is not used again.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ALL ((size_t)3 << 30)

static char memory[ALL] __attribute__((aligned(64)));
static size_t used;

void *memalign(size_t to, size_t n)
{
	size_t all = (n + 31) & ~(size_t)15, at;

	all += to > 16 ? to : 0;
	if (all < n || (at = __atomic_fetch_add(&used, all, __ATOMIC_RELAXED)) + all > ALL) {
		errno = ENOMEM;
		return NULL;
	}
	uintptr_t p = (uintptr_t)memory + at + 16;
	p = to > 16 ? (p + to - 1) & ~(to - 1) : p;
	((size_t *)p)[-1] = n;
	return (void *)p;
}

void *malloc(size_t n) { return memalign(16, n); }
void *aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
void free(void *p) { (void)p; }

int posix_memalign(void **out, size_t to, size_t n)
{
	*out = memalign(to, n);
	return *out ? 0 : ENOMEM;
}

/* It calls a function that is recorded: that is not the program's. */
void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *p, size_t n)
{
	void *q = malloc(n);

	if (p && q)
		memcpy(q, p, ((size_t *)p)[-1] < n ? ((size_t *)p)[-1] : n);
	return q;
}
