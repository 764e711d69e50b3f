/*
 * What the files of the heap share.
 */
#ifndef LWSBT_HEAP_H
#define LWSBT_HEAP_H

#include <string.h>

#include "internal.h"

/* The heap's words are the machine's. */
typedef char lwsbt_word_is_uintptr[sizeof(lwsbt_word) == sizeof(uintptr_t) ? 1 : -1];

/* What a heap keeps as user fields. */
#if LWSBT_FIELDS
#define KEEP ((unsigned)(LWSBT_KEEP_SEQUENCE | LWSBT_KEEP_THREAD | LWSBT_KEEP_TIME))
#define KEEP_ADDRESS ((unsigned)LWSBT_KEEP_ADDRESS)
#define KEEP_CHECK ((unsigned)LWSBT_KEEP_CHECK)
#else
#define KEEP 0u
#define KEEP_ADDRESS 0u
#define KEEP_CHECK 0u
#endif

/* What there is to know of the metadata before a node. */
struct lwsbt_found {
	uint8_t *blob;
	size_t len;		/* bytes, 2 of a blob whose length says 0 */
	int end;		/* whether the spare bytes were overwritten */
	size_t bits;		/* depth, frames, size, and the user fields that the heap keeps */
	lwsbt_word size;
};

/* lwsbt_stack_of reads the stack that was found before a node of h. */
static inline enum lwsbt_result lwsbt_stack_of(const struct lwsbt_heap *h, const struct lwsbt_found *f,
	struct lwsbt_stack *s)
{
	(void)h;
	return lwsbt_decode(s, f->blob, f->len, LWSBT_WORD_BITS);
}

/* lwsbt_walk_stack reads the stack of the next block of a walk. It returns 0 after the last. */
int lwsbt_walk_stack(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_stack *s);

static inline struct lwsbt_node *lwsbt_node_of(const void *p)
{
	return (struct lwsbt_node *)((uintptr_t)p - sizeof(struct lwsbt_node));
}

/* lwsbt_before returns the word at p, before memory that the heap may not know: such memory has other bytes
 * there, which AddressSanitizer lets nobody read. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LWSBT_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(LWSBT_ASAN)
static __attribute__((noinline, unused, no_sanitize_address)) uintptr_t lwsbt_before(const void *p) { return *(const uintptr_t *)p; }
#else
static inline uintptr_t lwsbt_before(const void *p) { return *(const uintptr_t *)p; }
#endif

static inline void *lwsbt_program_pointer(struct lwsbt_node *n) { return n + 1; }

/* Each function that takes the lock releases it. */
void lwsbt_lock(struct lwsbt_heap *h);
void lwsbt_unlock(struct lwsbt_heap *h);

/* lwsbt_count adds 1 to a counter of h. */
void lwsbt_count(struct lwsbt_heap *h, uint32_t *counter);

#if LWSBT_NESTED

/* lwsbt_enter sets the calling thread's guard, and reports whether it was free. It may be
 * set for a few operations alone: with one guard for all threads, another's allocation has
 * no metadata meanwhile. */
int lwsbt_enter(struct lwsbt_heap *h);
void lwsbt_leave(struct lwsbt_heap *h);

static inline int lwsbt_interrupted(const struct lwsbt_heap *h)
{
	return h->port && h->port->in_interrupt && h->port->in_interrupt(h->port->arg);
}

#else

static inline int lwsbt_enter(struct lwsbt_heap *h) { (void)h; return 1; }
static inline void lwsbt_leave(struct lwsbt_heap *h) { (void)h; }
static inline int lwsbt_interrupted(const struct lwsbt_heap *h) { (void)h; return 0; }

#endif

/* lwsbt_owned reports whether n is metadata of h, damaged or not. It reads n only if it is
 * where metadata was at some time. Under the lock. */
int lwsbt_owned(const struct lwsbt_heap *h, const struct lwsbt_node *n);

/* lwsbt_linked reports whether n is in the list, as far as its neighbours say. It
 * follows no pointer out of the heap's bounds. Under the lock. */
int lwsbt_linked(const struct lwsbt_heap *h, const struct lwsbt_node *n);

/* lwsbt_find_blob reads the metadata before n, without the frames, and reports
 * whether it makes sense. It reads nothing below the lowest true start. */
int lwsbt_find_blob(const struct lwsbt_heap *h, const struct lwsbt_node *n, struct lwsbt_found *f);

/* lwsbt_overhead returns what stands before the program's memory, in bytes. */
static inline size_t lwsbt_overhead(const struct lwsbt_found *f)
{
	size_t n = sizeof(struct lwsbt_node) + f->len;

	return (n + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

#ifndef LWSBT_WHOLE_CHUNKS /* macros of the C library's headers, of which one was included */
#if defined(__GLIBC__) || defined(__NEWLIB__) && !defined(_NANO_FORMATTED_IO) && !defined(_PICOLIBC__)
#define LWSBT_WHOLE_CHUNKS 1
#else
#define LWSBT_WHOLE_CHUNKS 0
#endif
#endif

/* lwsbt_spare returns how many spare bytes stand behind size bytes of the program's. */
static inline size_t lwsbt_spare(size_t size)
{
	return LWSBT_WHOLE_CHUNKS ? (LWSBT_ALIGN - sizeof(void *) - size) & (LWSBT_ALIGN - 1) :
		(0 - size) & (sizeof(void *) - 1);
}

/* The most frames of allocation functions that are looked through for the caller. */
#define OWN_MAX 6

/* lwsbt_capture_thread captures the stack of a thread, whose limits the port knows, but for the two innermost
 * frames. It is not inlined: the copy of the limits takes stack. */
size_t lwsbt_capture_thread(const struct lwsbt_heap *h, struct lwsbt_stack *s);

/* lwsbt_take captures the stack: s->depth frames from s->pc[*first] on, the caller and what is beyond it. It
 * reports whether there may be more than LWSBT_HEAP_DEPTH frames. Between lwsbt_enter and lwsbt_leave. */
LWSBT_INLINE int lwsbt_take(struct lwsbt_heap *h, struct lwsbt_stack *s, uintptr_t caller, size_t *first)
{
	size_t n = 0, drop;
	int full;

#if defined(__arm__)
	caller &= ~(uintptr_t)1; /* the mode bit, which capture functions clear */
#endif
	/* The frame left out is that of the function that this one is inlined in, which is not inlined. */
	if (h->capture)
		n = h->port && h->port->stack ? lwsbt_capture_thread(h, s) : h->capture(s->pc, LWSBT_HEAP_DEPTH, 1, &h->ctx);
	full = n == LWSBT_HEAP_DEPTH;
	/* The allocator's own functions, however many the compiler left. A walk that ended in
	 * them, as where only they have unwind tables, leaves the caller alone. */
	for (drop = 0; drop < n && s->pc[drop] != caller; drop++)
		;
	if (drop > OWN_MAX || caller == 0)
		drop = 0;
	drop += h->skip;
	if (drop > n)
		drop = n;
	if (n - drop > h->post)
		n -= h->post;
	if (n == drop && caller) {
		drop = 0;
		n = 1;
		s->pc[0] = caller;
	}
	*first = drop;
	s->depth = (uint32_t)(n - drop);
	return full;
}

/* The lines that begin and end a dump by call path: port or NULL; base of a difference or NULL; why or NULL. */
void lwsbt_head_paths(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number, uint32_t lines,
	const uint32_t *base, uint32_t sample, const char *why);
void lwsbt_tail_paths(const struct lwsbt_out *out, uint32_t number, uint32_t blocks, size_t bytes, uint32_t lines,
	uint32_t cut);

/* lwsbt_report counts damage, and reports it to the port. Not under the lock. */
void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n);

/* lwsbt_measure sets m->len and m->form for the stack in m, and returns what an allocation at an
 * alignment of align takes beside its size: metadata, at least least bytes, and spare ones; 0 if
 * that is too much. */
size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least);

/* lwsbt_unlink takes the metadata of p off the list and describes it in *f. It
 * returns the true start; p if there is no metadata; NULL as lwsbt_meta_trim does. */
void *lwsbt_unlink(struct lwsbt_heap *h, void *p, struct lwsbt_found *f);

/* lwsbt_release is lwsbt_meta_trim of what is no NULL, and describes the metadata in *f. With
 * LWSBT_QUARANTINE. */
void *lwsbt_release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f);

/* lwsbt_link lists n, whose metadata is written from start on, of an allocation of
 * size bytes. */
void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size);

/* lwsbt_write writes the metadata and the spare bytes, and lists it; lwsbt_meta_adjust without its event. */
void *lwsbt_write(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m);

/* lwsbt_tell calls the port's event function, if there is one. */
#if !LWSBT_FIELDS
#define lwsbt_tell(h, kind, p, old, m) (void)0
#else
void lwsbt_tell(struct lwsbt_heap *h, enum lwsbt_event_kind kind, const void *p, const void *old,
	const struct lwsbt_meta *m);

/* lwsbt_tell_freed is lwsbt_tell for a free, apart since it takes stack that others need not have. */
void lwsbt_tell_freed(struct lwsbt_heap *h, const void *p, lwsbt_word size);
#endif

#endif
