/*
 * What the files of the heap share.
 */
#ifndef LWSBT_HEAP_H
#define LWSBT_HEAP_H

#include "internal.h"

/* The heap's words are the machine's. */
typedef char lwsbt_word_is_uintptr[sizeof(lwsbt_word) == sizeof(uintptr_t) ? 1 : -1];

/*
 * LWSBT_TINY leaves out what a small device can do without: user fields (what a heap
 * keeps, and addresses in dumps) and events. Flags and members for them are then
 * ignored.
 */
#ifdef LWSBT_TINY
#define KEEP 0u
#define KEEP_ADDRESS 0u
#else
/* All that a heap keeps as user fields. */
#define KEEP ((unsigned)(LWSBT_KEEP_SEQUENCE | LWSBT_KEEP_THREAD | LWSBT_KEEP_TIME))
#define KEEP_ADDRESS ((unsigned)LWSBT_KEEP_ADDRESS)
#endif

/* What there is to know of the metadata before a node. */
struct lwsbt_found {
	uint8_t *blob;
	size_t len;		/* bytes, 2 of a blob whose length says 0 */
	size_t bits;		/* depth, frames, size, and the user fields that the heap keeps */
	lwsbt_word size;
};

static inline struct lwsbt_node *lwsbt_node_of(const void *p)
{
	return (struct lwsbt_node *)((uintptr_t)p - sizeof(struct lwsbt_node));
}

static inline void *lwsbt_program_pointer(struct lwsbt_node *n) { return n + 1; }

static inline void lwsbt_lock(struct lwsbt_heap *h)
{
	if (h->port && h->port->lock)
		h->port->lock(h->port->arg);
}

static inline void lwsbt_unlock(struct lwsbt_heap *h)
{
	if (h->port && h->port->unlock)
		h->port->unlock(h->port->arg);
}

/* lwsbt_enter sets the calling thread's guard under the lock, which it holds on
 * return, and reports whether it was free. It may be set for a few operations
 * alone: with one guard for all threads, another's allocation has no metadata
 * meanwhile. */
int lwsbt_enter(struct lwsbt_heap *h);
void lwsbt_leave(struct lwsbt_heap *h); /* without the lock */

/* lwsbt_readable reports whether n may be read: whether it is where metadata was at
 * some time. Under the lock. */
int lwsbt_readable(const struct lwsbt_heap *h, const struct lwsbt_node *n);

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

/* lwsbt_report counts damage, and reports it. Without the lock. */
void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n);

/* lwsbt_measure sets m->len and m->form for the stack in m, and returns the
 * overhead at an alignment of align, at least least bytes; 0 if that is too much. */
size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least);

/* lwsbt_unlink takes the metadata of p off the list and describes it in *f. It
 * returns the true start; p if there is no metadata; NULL as lwsbt_meta_trim does. */
void *lwsbt_unlink(struct lwsbt_heap *h, void *p, struct lwsbt_found *f);

/* lwsbt_link lists n, whose metadata is written from start on, of an allocation of
 * size bytes. */
void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size);

/* lwsbt_write writes the metadata and lists it; lwsbt_meta_adjust without its event. */
void *lwsbt_write(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m);

/* lwsbt_tell calls the port's event function, if there is one. */
#ifdef LWSBT_TINY
#define lwsbt_tell(h, kind, p, old, m) (void)0
#else
void lwsbt_tell(struct lwsbt_heap *h, enum lwsbt_event_kind kind, const void *p, const void *old,
	const struct lwsbt_meta *m);
#endif

#endif
