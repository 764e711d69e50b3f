/*
 * malloc, free, calloc and realloc with the linker's --wrap, for any C library:
 * newlib, picolibc, glibc, musl. Compile this with the program, and link with
 *
 *   -Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc
 *   -Wl,--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign
 *
 * Memory that the C library allocates for itself, as in strdup, is wrapped if the
 * library is linked statically and its strdup calls malloc. Otherwise this memory
 * has no metadata, and may be freed all the same.
 *
 *   -DLWSBT_WRAP_ALIGNED=memalign              with the second line: the function of
 *                                              the C library that the two others
 *                                              call. For musl it is aligned_alloc
 *   -DLWSBT_WRAP_NESTED                        for picolibc, whose realloc and memalign
 *                                              call malloc by its name: what they get
 *                                              has no metadata
 *   -DLWSBT_WRAP_CAPTURE=lwsbt_capture_scan    another capture function than that of the
 *                                              machine; with NULL, the caller alone is kept
 *   -DLWSBT_WRAP_PORT=board_port               a const struct lwsbt_port of yours, by another
 *                                              name than lwsbt_wrap_port
 *   -DLWSBT_WRAP_FLAGS=LWSBT_KEEP_SEQUENCE     flags of the heap
 *   -DLWSBT_WRAP_RULES=64                      entries of the capture function's cache, a
 *                                              power of 2: two words each
 *   -DLWSBT_WRAP_POST=1                        outermost frames to leave out
 *   -DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180
 *                                              blocks are counted by call path, in
 *                                              lwsbt_wrapped_profile, a table of this
 *                                              size; without these, each block has its
 *                                              own stack in front of it
 *   -DLWSBT_WRAP_HISTORY                       with these: dumps have the allocations, bytes
 *                                              and peak of each path since the boot
 */
#include <errno.h>

#include "lwsbt.h"

#ifndef LWSBT_WRAP_CAPTURE
#ifdef LWSBT_CAPTURE
#define LWSBT_WRAP_CAPTURE LWSBT_CAPTURE
#else
#define LWSBT_WRAP_CAPTURE NULL
#endif
#endif
#ifndef LWSBT_WRAP_FLAGS
#define LWSBT_WRAP_FLAGS 0
#endif
#ifndef LWSBT_WRAP_POST
#define LWSBT_WRAP_POST 0
#endif
#ifdef LWSBT_WRAP_PORT
extern const struct lwsbt_port LWSBT_WRAP_PORT;
#else
#define LWSBT_WRAP_PORT lwsbt_wrap_port
#pragma weak lwsbt_wrap_port /* NULL, if the program does not define it */
#endif

#ifdef LWSBT_WRAP_RULES
static struct lwsbt_rule rules[LWSBT_WRAP_RULES];
#endif

/* The heap: for lwsbt_dump, and to change before main. It needs no set-up, as
 * allocations come before any code of the program can run. */
struct lwsbt_heap lwsbt_wrapped = {
	.flags = LWSBT_WRAP_FLAGS,
	.post = LWSBT_WRAP_POST,
	.capture = LWSBT_WRAP_CAPTURE,
#ifdef LWSBT_WRAP_RULES
	.ctx = { .rules = rules, .rule_count = LWSBT_WRAP_RULES },
#endif
	.port = &LWSBT_WRAP_PORT,
};

#ifdef LWSBT_WRAP_NODES
static uintptr_t nodes[LWSBT_WRAP_NODES];
static struct lwsbt_entry entries[LWSBT_WRAP_ENTRIES];
#ifdef LWSBT_WRAP_HISTORY
static struct lwsbt_history histories[LWSBT_WRAP_ENTRIES];
#endif

/* Its capture, limits and port are those of lwsbt_wrapped. Set its code before the first allocation. */
struct lwsbt_profile lwsbt_wrapped_profile = {
	.heap = &lwsbt_wrapped,
	.node = nodes,
	.entry = entries,
	.nodes = LWSBT_WRAP_NODES,
	.entries = LWSBT_WRAP_ENTRIES,
#ifdef LWSBT_WRAP_HISTORY
	.history = histories,
#endif
};
#define WRAPPED(call) lwsbt_profile_##call
#define WRAPPED_HEAP &lwsbt_wrapped_profile
#else
#define WRAPPED(call) lwsbt_heap_##call
#define WRAPPED_HEAP &lwsbt_wrapped
#endif

void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
#ifdef LWSBT_WRAP_ALIGNED
#define REAL_NAME(name) __real_##name
#define REAL(name) REAL_NAME(name)
void *REAL(LWSBT_WRAP_ALIGNED)(size_t align, size_t size);
#endif

#ifdef LWSBT_WRAP_NESTED

/* How many threads are inside realloc or memalign of the C library. */
static volatile unsigned inside;

static void enter(unsigned n)
{
	const struct lwsbt_port *port = lwsbt_wrapped.port;

	if (port && port->lock)
		port->lock(port->arg);
	inside += n;
	if (port && port->unlock)
		port->unlock(port->arg);
}

static void *real_resize(void *p, size_t size)
{
	enter(1);
	p = __real_realloc(p, size);
	enter(-1u);
	return p;
}

#ifdef LWSBT_WRAP_ALIGNED
static void *real_aligned(size_t align, size_t size)
{
	void *p;

	enter(1);
	p = REAL(LWSBT_WRAP_ALIGNED)(align, size);
	enter(-1u);
	return p;
}
#endif

#else
#define inside 0
#endif

static const struct lwsbt_allocator real = {
	.allocate = __real_malloc,
	.release = __real_free,
#ifdef LWSBT_WRAP_NESTED
	.resize = real_resize,
#else
	.resize = __real_realloc,
#endif
#if defined(LWSBT_WRAP_ALIGNED) && defined(LWSBT_WRAP_NESTED)
	.aligned = real_aligned,
#elif defined(LWSBT_WRAP_ALIGNED)
	.aligned = REAL(LWSBT_WRAP_ALIGNED),
#endif
};

/* With -flto, the linker learns of calls that the compiler adds, as of calloc, only after it has chosen what to keep. */
#define WRAPPER __attribute__((used))

WRAPPER void *__wrap_malloc(size_t size);
WRAPPER void *__wrap_calloc(size_t n, size_t size);
WRAPPER void *__wrap_realloc(void *p, size_t size);
WRAPPER void __wrap_free(void *p);
WRAPPER void *__wrap_memalign(size_t align, size_t size);
WRAPPER void *__wrap_aligned_alloc(size_t align, size_t size);
WRAPPER int __wrap_posix_memalign(void **p, size_t align, size_t size);

#define CALLER __builtin_return_address(0)

void *__wrap_malloc(size_t size)
{
	return inside ? __real_malloc(size) : WRAPPED(malloc)(WRAPPED_HEAP, &real, size, CALLER);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return WRAPPED(calloc)(WRAPPED_HEAP, &real, n, size, CALLER);
}

void *__wrap_realloc(void *p, size_t size)
{
	return WRAPPED(realloc)(WRAPPED_HEAP, &real, p, size, CALLER);
}

void __wrap_free(void *p) { WRAPPED(free)(WRAPPED_HEAP, &real, p); }

#ifdef LWSBT_WRAP_ALIGNED

void *__wrap_memalign(size_t align, size_t size)
{
	return WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	void *q;

	if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
		return EINVAL;
	q = WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

#endif
