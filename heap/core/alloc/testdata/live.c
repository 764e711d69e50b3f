/*
 * A library to preload: it keeps a table of the live blocks of a program, with inverted addresses,
 * so that it does not point to them. All allocations go to glibc's malloc, even those of a program
 * that is linked with another.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);

enum { BITS = 23, GONE = 1 };
struct live { uintptr_t addr, size; } *live_table; /* addr: 0 none, GONE removed, else inverted */
uintptr_t live_length;
static volatile int lock;

static void enter(void) { while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) ; }
static void leave(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static uintptr_t slot(uintptr_t addr) { return (addr >> 4) * 0x9e3779b97f4a7c15u >> (64 - BITS); }

static void *add(void *p, size_t n)
{
	if (!p)
		return p;
	enter();
	if (!live_table) {
		live_length = (uintptr_t)1 << BITS;
		live_table = mmap(NULL, live_length * sizeof *live_table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	uintptr_t i = slot((uintptr_t)p);
	while (live_table[i].addr > GONE)
		i = (i + 1) & (live_length - 1);
	live_table[i].addr = ~(uintptr_t)p;
	live_table[i].size = n;
	leave();
	return p;
}

static size_t drop(void *p)
{
	size_t n = 0;

	if (!p || !live_table)
		return 0;
	enter();
	for (uintptr_t i = slot((uintptr_t)p); live_table[i].addr; i = (i + 1) & (live_length - 1))
		if (live_table[i].addr == ~(uintptr_t)p) {
			n = live_table[i].size;
			live_table[i].addr = GONE;
			break;
		}
	leave();
	return n;
}

void *malloc(size_t n) { return add(__libc_malloc(n), n); }
void *calloc(size_t a, size_t b) { return add(__libc_calloc(a, b), a * b); }
void free(void *p)
{
	drop(p);
	__libc_free(p);
}
void *realloc(void *p, size_t n)
{
	size_t old = drop(p);
	void *q = __libc_realloc(p, n);

	if (!q && p && n)
		add(p, old);
	return add(q, n);
}
void *memalign(size_t a, size_t n) { return add(__libc_memalign(a, n), n); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{
	void *q = memalign(a, n);

	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}
size_t malloc_usable_size(void *p)
{
	size_t head = p ? ((size_t *)p)[-1] : 0;

	return !p ? 0 : head & 2 ? (head & ~(size_t)7) - 16 : (head & ~(size_t)7) - 8;
}
