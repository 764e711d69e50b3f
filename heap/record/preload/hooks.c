/*
 * What the program calls instead of the C library's. Compiled with frame pointers:
 * see CALLER.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

/* ---------------------------------------------------------------- the real ones */

typedef void *(*malloc_fn)(size_t);
typedef void (*free_fn)(void *);
typedef void *(*calloc_fn)(size_t, size_t);
typedef void *(*realloc_fn)(void *, size_t);
typedef void *(*align_fn)(size_t, size_t);
typedef int (*posix_memalign_fn)(void **, size_t, size_t);

static malloc_fn real_malloc;
static free_fn real_free;
static calloc_fn real_calloc;
static realloc_fn real_realloc;
static align_fn real_memalign, real_aligned_alloc;
static posix_memalign_fn real_posix_memalign;

uintptr_t allocator_lo, allocator_size;
static struct module libc, library;

/* Until the real ones are found, dlsym itself may allocate: from here, and that is
 * never freed. */
static char early[16 << 10] __attribute__((aligned(16)));
static size_t early_used;

static void *early_alloc(size_t n)
{
	if (n > sizeof early)
		return NULL;
	n = (n + 31) & ~(size_t)15;
	size_t at = __atomic_fetch_add(&early_used, n, __ATOMIC_RELAXED);
	if (at + n > sizeof early)
		return NULL;
	*(size_t *)(void *)(early + at) = n - 16;
	return early + at + 16;
}

static inline bool is_early(const void *p)
{
	return UNLIKELY((uintptr_t)p - (uintptr_t)early < sizeof early);
}

static enum { RAW, STARTING, STARTED } state;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void find_real(void *(*find)(const char *))
{
	real_malloc = (malloc_fn)find("malloc");
	real_calloc = (calloc_fn)find("calloc");
	real_realloc = (realloc_fn)find("realloc");
	real_memalign = (align_fn)find("memalign");
	real_aligned_alloc = (align_fn)find("aligned_alloc");
	real_posix_memalign = (posix_memalign_fn)find("posix_memalign");
	real_free = (free_fn)find("free");
}

/* The library's own, where &malloc may be another one's. GCC wants the attributes that
 * the C library's headers give malloc. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 9
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
#define OWN(f) static __typeof__(f) own_##f __attribute__((alias(#f)))
OWN(malloc);

/* An allocator that is a library of its own calls functions of the C library for
 * itself: these calls are passed through. */
static void find_allocator(void)
{
	struct module m;

	memory_start(); /* module_at reads only memory that can be read */
	module_at((uintptr_t)&own_malloc, &library);
	/* Programs have functions such as getenv of their own. */
	if (module_at((uintptr_t)real_malloc, &m) && module_at((uintptr_t)next("__libc_start_main"), &libc) && m.start != libc.start &&
	    m.start != library.start) {
		allocator_lo = m.start;
		allocator_size = m.end - m.start;
	}
}

/* own_work is passes within a call of the allocator. That of the C library may call its functions by
 * their names: in musl, calloc calls malloc. Of a call at the end of a function, which is a jump,
 * the caller is this library: memalign jumps to aligned_alloc. */
NOINLINE bool own_work(uintptr_t caller)
{
	return inner((uintptr_t)__builtin_frame_address(0)) &&
		(caller - libc.start < libc.end - libc.start || caller - library.start < library.end - library.start);
}

/* The program's preinit_array runs before the C library has the environment: the kernel has
 * it, too. Before the C library is ready for this, it does not say that there is one thread. */
extern char __libc_single_threaded __attribute__((weak));

static char *early_ring(void)
{
	static char value[PATH_MAX];
	static const char name[] = RING_ENV "=";
	char text[4096];
	size_t at = 0, in = 0; /* of the variable: bytes of its name that fit, and of its value */
	bool begins = true;
	ssize_t n;

	if (!&__libc_single_threaded || !__libc_single_threaded)
		return NULL;
	int f = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	while (f >= 0 && (n = read(f, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (at == sizeof name - 1 && in < sizeof value - 1) {
				value[in++] = text[i];
				if (!text[i]) {
					close(f);
					return value;
				}
			} else if (begins && text[i] == name[at])
				at++;
			else {
				begins = !text[i];
				at = 0;
			}
		}
	if (f >= 0)
		close(f);
	return NULL;
}

/* GCC's sanitizers are libraries that allocate while they look for the functions that they
 * replace. Until they have found them, calls of these functions lead nowhere. */
extern char __asan_init __attribute__((weak)), __tsan_init __attribute__((weak));
static bool in_loader = true; /* the constructors of the program's libraries have not run */

/* start finds the real functions, and begins to record once there is an environment. */
static void start(void)
{
	int e = errno;
	const char *ring = NULL;

	if (!real_free) {
		state = STARTING;
		find_real(next);
		exec_start(begin);
		state = RAW;
	}
	if (in_loader && (&__asan_init || &__tsan_init))
		return;
	if (environ || (ring = early_ring())) {
		state = STARTING;
		if (!ring)
			ring = exec_value(environ, RING_ENV "=");
		find_allocator();
		if (ring && *ring)
			program_start();
		process_start(ring, false);
		state = STARTED;
	}
	errno = e;
}

NOINLINE bool begin(void)
{
	if (state == RAW)
		start();
	else if (state == STARTED) {
		/* Of a child, the first event of the one thread that it has comes first; another
		 * that comes at the same time is early, and not recorded. */
		static int busy;
		if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
			return false;
		child_start();
		__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	}
	return gate->ring;
}

void hooks_loaded(void)
{
	in_loader = false;
	if (state == RAW)
		start();
}

/* ---------------------------------------------------------------- C */

EXPORT void *malloc(size_t n)
{
	bool wanted = on(RING_ALLOCS);
	void *p = LIKELY(real_malloc) ? real_malloc(n) : early_alloc(n);

	if (LIKELY(wanted && p)) {
		struct regs from = CALLER;
		keep(p, n, &from);
	}
	return p;
}

EXPORT void free(void *p)
{
	if (is_early(p) || !p)
		return;
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	if (LIKELY(on(RING_FREES)) && !passes(caller) && (!fixed.sample || sample_has((uintptr_t)p)))
		record_free(p, caller);
	real_free(p);
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;
	bool wanted = on(RING_ALLOCS);

	if (UNLIKELY(!real_calloc))
		return __builtin_mul_overflow(n, size, &bytes) ? NULL : early_alloc(bytes);
	uintptr_t outer = enter_allocator();
	void *p = real_calloc(n, size);
	self.outer = outer;
	if (LIKELY(wanted && p)) {
		struct regs from = CALLER;
		keep(p, n * size, &from);
	}
	return p;
}

static void *resize(void *p, size_t n, const struct regs *from)
{
	if (is_early(p)) {
		size_t had = ((size_t *)p)[-2];
		void *q = malloc(n);
		if (q)
			memcpy(q, p, had < n ? had : n);
		return q;
	}
	if (LIKELY(on(RING_ALLOCS | RING_FREES)))
		return record_move(p, n, from, real_realloc);
	return real_realloc ? real_realloc(p, n) : early_alloc(n);
}

EXPORT void *realloc(void *p, size_t n)
{
	struct regs from = CALLER;

	return resize(p, n, &from);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	struct regs from = CALLER;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(p, bytes, &from);
}

static void *align(bool wanted, align_fn real, size_t to, size_t n, const struct regs *from)
{
	uintptr_t outer = enter_allocator();
	void *p = real ? real(to, n) : NULL;

	self.outer = outer;
	if (LIKELY(wanted && p))
		keep(p, n, from);
	return p;
}

EXPORT void *memalign(size_t to, size_t n)
{
	struct regs from = CALLER;
	bool wanted = on(RING_ALLOCS);

	return align(wanted, real_memalign ? real_memalign : real_aligned_alloc, to, n, &from);
}

EXPORT void *aligned_alloc(size_t to, size_t n)
{
	struct regs from = CALLER;
	bool wanted = on(RING_ALLOCS);

	return align(wanted, real_aligned_alloc ? real_aligned_alloc : real_memalign, to, n, &from);
}

EXPORT int posix_memalign(void **out, size_t to, size_t n)
{
	bool wanted = on(RING_ALLOCS);
	uintptr_t outer = enter_allocator();
	int r = real_posix_memalign ? real_posix_memalign(out, to, n) : ENOMEM;

	self.outer = outer;
	if (LIKELY(wanted && !r && *out)) {
		struct regs from = CALLER;
		keep(*out, n, &from);
	}
	return r;
}

EXPORT void *valloc(size_t n)
{
	struct regs from = CALLER;
	bool wanted = on(RING_ALLOCS);

	return align(wanted, real_memalign ? real_memalign : real_aligned_alloc, (size_t)sysconf(_SC_PAGESIZE), n, &from);
}

EXPORT void *pvalloc(size_t n)
{
	struct regs from = CALLER;
	bool wanted = on(RING_ALLOCS);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (n > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	n = n ? (n + page - 1) & ~(page - 1) : page;
	return align(wanted, real_memalign ? real_memalign : real_aligned_alloc, page, n, &from);
}

/* cfree is gone from the C library; old programs call it. */
EXPORT void cfree(void *p)
{
	free(p);
}

/* ---------------------------------------------------------------- modules */

static int (*real_dlclose)(void *);

/* dlclose is not slowed: it only says that modules may be gone. */
EXPORT int dlclose(void *handle)
{
	if (!real_dlclose)
		real_dlclose = (int (*)(void *))next("dlclose");
	int r = real_dlclose(handle);
	if (gate->ring)
		record_unloaded();
	return r;
}

/* ---------------------------------------------------------------- attaching */

OWN(free);
OWN(calloc);
OWN(realloc);
OWN(reallocarray);
OWN(memalign);
OWN(aligned_alloc);
OWN(posix_memalign);
OWN(valloc);
OWN(pvalloc);
OWN(cfree);
OWN(dlclose);

#define HOOK(f) {#f, (void *)own_##f, NULL}
struct hook hooks[HOOKS] = {HOOK(malloc), HOOK(free), HOOK(calloc), HOOK(realloc), HOOK(reallocarray), HOOK(memalign),
	HOOK(aligned_alloc), HOOK(posix_memalign), HOOK(valloc), HOOK(pvalloc), HOOK(cfree), HOOK(dlclose)};

void hooks_attach(void *(*find)(const char *))
{
	find_real(find);
	real_dlclose = (int (*)(void *))find("dlclose");
	find_allocator();
}
