/*
 * malloc and its kin, with metadata.
 */
#include "heap.h"

/* below allocates from the allocator below. */
LWSBT_INLINE void *below(const struct lwsbt_allocator *a, size_t align, size_t size)
{
	if (align <= LWSBT_ALIGN)
		return a->allocate(size);
	return a->aligned ? a->aligned(align, size) : NULL;
}

LWSBT_INLINE void *allocate(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	struct lwsbt_meta m;
	size_t adj = lwsbt_meta_gen(h, size, align, caller, &m); /* with what is spare */
	void *p = below(a, align, adj + size);

	if (adj == 0)
		return p;
	if (p) {
		p = lwsbt_write(h, p, &m);
		lwsbt_tell(h, LWSBT_ALLOCATED, p, NULL, &m);
		return p;
	}
	p = below(a, align, size);
	if (p)
		lwsbt_count(h, &h->untracked);
	return p;
}

void *lwsbt_heap_memalign(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	return allocate(h, a, align, size, caller);
}

void *lwsbt_heap_malloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t size,
	const void *caller)
{
	return allocate(h, a, 0, size, caller);
}

void *lwsbt_heap_calloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = lwsbt_heap_malloc(h, a, n * size, caller);
	if (p)
		memset(p, 0, n * size);
	return p;
}

#if LWSBT_QUARANTINE

/* quarantine keeps back the block of p, filled, and returns the true start of the one that
 * leaves for it; NULL if none does. The metadata stays, for whom damage is reported to. */
static void *quarantine(struct lwsbt_heap *h, void *start, void *p, size_t size)
{
	struct lwsbt_freed *at, out;

	memset(p, LWSBT_FREED_BYTE, size);
	lwsbt_lock(h);
	at = &h->freed[h->freed_next++ % LWSBT_QUARANTINE];
	out = *at;
	at->start = start;
	at->node = lwsbt_node_of(p);
	at->size = size;
	lwsbt_unlock(h);
	while (out.size > 0 && ((const uint8_t *)(out.node + 1))[out.size - 1] == LWSBT_FREED_BYTE)
		out.size--;
	if (out.size > 0)
		lwsbt_report(h, LWSBT_DAMAGED_FREED, out.node);
	return out.start;
}

#endif

void lwsbt_heap_free(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p)
{
#if LWSBT_QUARANTINE
	struct lwsbt_found f;
	void *start = p ? lwsbt_release(h, p, &f) : NULL;

	if (start && f.len)
		start = quarantine(h, start, p, f.size);
#else
	void *start = lwsbt_meta_trim(h, p);
#endif
	if (start)
		a->release(start);
}

/* resize is lwsbt_heap_realloc of a block that is there, and stays. */
static LWSBT_NOINLINE void *resize(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p, size_t size,
	const void *caller)
{
	struct lwsbt_meta m;
	struct lwsbt_found f;
	size_t old, total;
	uint8_t *start, *moved;
	void *q;

	lwsbt_meta_gen(h, size, 0, caller, &m); /* an empty stack, if it was refused */
	start = lwsbt_unlink(h, p, &f);
	if (!start)
		return NULL;
	if (f.len == 0)
		return a->resize(start, size);
	/* The program's memory stays where it is relative to the true start, unless the
	 * metadata is longer than before. */
	old = lwsbt_overhead(&f);
	total = lwsbt_measure(h, &m, 0, old);
#if LWSBT_WORD_BITS == 64
	/* A size that LWSBT_WRAP64 cannot write: without metadata, as malloc does it. */
	if (total == 0 && size <= PTRDIFF_MAX - old && (moved = a->resize(start, old + size)) != NULL) {
		memmove(moved, moved + old, f.size < size ? f.size : size);
		m.stack.depth = 0;
		m.stack.size = f.size;
		lwsbt_tell(h, LWSBT_FREED, p, NULL, &m);
		return moved;
	}
#endif
	moved = total ? a->resize(start, total + size) : NULL;
	if (!moved) {
		lwsbt_link(h, lwsbt_node_of(p), f.blob, f.size);
		return NULL;
	}
	total = sizeof(struct lwsbt_node) + m.len;
	if (total != old)
		memmove(moved + total, moved + old, f.size < size ? f.size : size);
	q = lwsbt_write(h, moved, &m);
	lwsbt_tell(h, LWSBT_MOVED, q, p, &m);
	return q;
}

static LWSBT_NOINLINE void *free_block(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p)
{
	lwsbt_heap_free(h, a, p);
	return NULL;
}

void *lwsbt_heap_realloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p,
	size_t size, const void *caller)
{
	if (!p)
		return lwsbt_heap_malloc(h, a, size, caller);
	if (size)
		return resize(h, a, p, size, caller);
	return free_block(h, a, p);
}
