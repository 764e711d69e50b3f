/*
 * What the program calls instead of the C library's. Compiled with frame pointers:
 * see CALLER.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

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

/* start finds the real functions, and begins to record. Before the C library has
 * set itself up there is no environment, so nothing to go by: wait for that. */
static __attribute__((noinline)) void start(void)
{
	if (!real_free) {
		state = STARTING;
		real_malloc = (malloc_fn)next("malloc");
		real_calloc = (calloc_fn)next("calloc");
		real_realloc = (realloc_fn)next("realloc");
		real_memalign = (align_fn)next("memalign");
		real_aligned_alloc = (align_fn)next("aligned_alloc");
		real_posix_memalign = (posix_memalign_fn)next("posix_memalign");
		real_free = (free_fn)next("free");
		state = RAW;
	}
	extern char **environ;
	if (!environ)
		return;
	int e = errno;
	self.busy = true;
	state = STARTED;
	process_init();
	self.busy = false;
	errno = e;
}

void hooks_init(void)
{
	if (state == RAW)
		start();
}

static __attribute__((constructor)) void loaded(void)
{
	hooks_init();
}

bool hooks_mine(void)
{
	return dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc;
}

/* ready reports whether to record. */
static inline bool ready(void)
{
	if (UNLIKELY(state != STARTED)) {
		if (state == STARTING)
			return false;
		start();
	}
	if (UNLIKELY(!on || self.busy))
		return false;
	if (UNLIKELY(!self.tid))
		self.tid = (uint32_t)syscall(SYS_gettid);
	return true;
}

/* ---------------------------------------------------------------- C */

EXPORT void *malloc(size_t n)
{
	if (UNLIKELY(!ready()))
		return real_malloc ? real_malloc(n) : early_alloc(n);
	self.busy = true;
	void *p = real_malloc(n);
	if (LIKELY(p)) {
		struct regs from = CALLER;
		record_alloc(p, n, &from);
	}
	self.busy = false;
	return p;
}

EXPORT void free(void *p)
{
	if (is_early(p) || !p)
		return;
	if (LIKELY(ready())) {
		if (UNLIKELY((uintptr_t)__builtin_return_address(0) - loader_lo < loader_hi - loader_lo))
			modules_stale = true;
		self.busy = true;
		record_free(p);
		self.busy = false;
	}
	real_free(p);
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (UNLIKELY(!ready())) {
		if (real_calloc)
			return real_calloc(n, size);
		return __builtin_mul_overflow(n, size, &bytes) ? NULL : early_alloc(bytes);
	}
	self.busy = true;
	void *p = real_calloc(n, size);
	if (LIKELY(p)) {
		struct regs from = CALLER;
		record_alloc(p, n * size, &from);
	}
	self.busy = false;
	return p;
}

static void *resize(void *p, size_t n, const struct regs *from)
{
	void *q;

	if (is_early(p)) {
		size_t had = ((size_t *)p)[-2];
		q = malloc(n);
		if (q)
			memcpy(q, p, had < n ? had : n);
		return q;
	}
	if (UNLIKELY(!ready()))
		return real_realloc ? real_realloc(p, n) : early_alloc(n);
	self.busy = true;
	if (p)
		q = record_move(p, n, from, real_realloc);
	else if ((q = real_realloc(NULL, n)))
		record_alloc(q, n, from);
	self.busy = false;
	return q;
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

static void *align(align_fn real, size_t to, size_t n, const struct regs *from)
{
	if (UNLIKELY(!ready()))
		return real ? real(to, n) : NULL;
	self.busy = true;
	void *p = real(to, n);
	if (LIKELY(p))
		record_alloc(p, n, from);
	self.busy = false;
	return p;
}

EXPORT void *memalign(size_t to, size_t n)
{
	struct regs from = CALLER;

	return align(real_memalign ? real_memalign : real_aligned_alloc, to, n, &from);
}

EXPORT void *aligned_alloc(size_t to, size_t n)
{
	struct regs from = CALLER;

	return align(real_aligned_alloc ? real_aligned_alloc : real_memalign, to, n, &from);
}

EXPORT int posix_memalign(void **out, size_t to, size_t n)
{
	if (UNLIKELY(!ready()))
		return real_posix_memalign ? real_posix_memalign(out, to, n) : ENOMEM;
	self.busy = true;
	int r = real_posix_memalign(out, to, n);
	if (LIKELY(!r && *out)) {
		struct regs from = CALLER;
		record_alloc(*out, n, &from);
	}
	self.busy = false;
	return r;
}

EXPORT void *valloc(size_t n)
{
	struct regs from = CALLER;

	return align(real_memalign ? real_memalign : real_aligned_alloc, (size_t)sysconf(_SC_PAGESIZE), n, &from);
}

EXPORT void *pvalloc(size_t n)
{
	struct regs from = CALLER;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (n > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	n = n ? (n + page - 1) & ~(page - 1) : page;
	return align(real_memalign ? real_memalign : real_aligned_alloc, page, n, &from);
}

/* cfree is gone from the C library; old programs call it. */
EXPORT void cfree(void *p)
{
	free(p);
}

/* ---------------------------------------------------------------- modules */

/* dlclose is not slowed: it only says that modules may be gone. */
EXPORT int dlclose(void *handle)
{
	static int (*real)(void *);

	if (!real)
		real = (int (*)(void *))next("dlclose");
	int r = real(handle);
	if (on && !self.busy) {
		self.busy = true;
		modules_check();
		self.busy = false;
	}
	return r;
}

/* ---------------------------------------------------------------- exits */

EXPORT void _exit(int status)
{
	finish("exit");
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status)
{
	_exit(status);
}

EXPORT void quick_exit(int status)
{
	static void (*real)(int);

	/* Its handlers may allocate still; this process ends without destructors. */
	finish("exit");
	real = (void (*)(int))next("quick_exit");
	real(status);
	__builtin_unreachable();
}

/* ---------------------------------------------------------------- exec */

typedef int (*execve_fn)(const char *, char *const[], char *const[]);

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	finish("exec");
	return ((execve_fn)next("execve"))(path, argv, env);
}

EXPORT int execv(const char *path, char *const argv[])
{
	finish("exec");
	return ((int (*)(const char *, char *const[]))next("execv"))(path, argv);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	finish("exec");
	return ((int (*)(const char *, char *const[]))next("execvp"))(file, argv);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	finish("exec");
	return ((execve_fn)next("execvpe"))(file, argv, env);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	finish("exec");
	return ((int (*)(int, char *const[], char *const[]))next("fexecve"))(fd, argv, env);
}

/* The arguments of the others stand one by one, up to a NULL. */
#define GATHER(first) \
	va_list list; \
	size_t n = 1; \
	va_start(list, first); \
	while (va_arg(list, char *)) \
		n++; \
	va_end(list); \
	char *argv[n + 1]; \
	argv[0] = (char *)(uintptr_t)first; \
	va_start(list, first); \
	for (size_t i = 1; i <= n; i++) \
		argv[i] = va_arg(list, char *);

EXPORT int execl(const char *path, const char *arg, ...)
{
	GATHER(arg)
	va_end(list);
	return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	GATHER(arg)
	va_end(list);
	return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	GATHER(arg)
	char *const *env = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, env);
}
