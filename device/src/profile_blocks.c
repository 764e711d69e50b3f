/*
 * malloc and its kin that count blocks by call path. A block has two words before it: see profile.h of
 * include/lwsbt.
 */
#include "profile.h"

/* What stands before a block; memory of a larger alignment has as much, and two words more before
 * it, of which size is how far it is to the true start, and tag the number. */
#define OVERHEAD ((sizeof(struct lwsbt_block) + LWSBT_ALIGN - 1) / LWSBT_ALIGN * LWSBT_ALIGN)
enum { ALIGNED = 0xffff };	/* number of a block that has these */

static struct lwsbt_block *block_of(const void *q)
{
	return (struct lwsbt_block *)((uintptr_t)q - sizeof(struct lwsbt_block));
}

/* tag_of returns the check and the number of the block at q. The check is odd: a word before memory of
 * another origin is often its size. */
static LWSBT_NOINLINE uintptr_t tag_of(const void *q, uintptr_t size, unsigned number)
{
	uintptr_t h = (((uintptr_t)q ^ number) * GOLDEN ^ size) * GOLDEN;

	h ^= h >> 15;
	return ((h * GOLDEN) & ~(uintptr_t)0xffff) | 0x10000 | number;
}

/* put_block writes the words and the spare bytes of the block at start, and returns the program's pointer. */
static void *put_block(void *start, size_t overhead, size_t size, unsigned number)
{
	uint8_t *q = (uint8_t *)start + overhead;
	struct lwsbt_block *b = block_of(q);

	if (overhead > OVERHEAD) {
		b[-1].size = overhead;
		b[-1].tag = number;
		number = ALIGNED;
	}
	b->size = size;
	b->tag = tag_of(q, size, number);
	memset(q + size, LWSBT_SPARE_BYTE, lwsbt_spare(size));
	return q;
}

enum { UNCOUNTED = 0, KEPT = 1 };

/* find_block returns the bytes from where the memory of q begins to q, and sets *number, if it is counted. It returns
 * UNCOUNTED if it is not, and KEPT if it must not be touched: it is damaged, which find_block reports, or this is an
 * interrupt. */
static size_t find_block(struct lwsbt_profile *p, const void *q, unsigned *number)
{
	struct lwsbt_heap *h = p->heap;
	const struct lwsbt_block *b = block_of(q);
	size_t overhead = OVERHEAD;
	uintptr_t tag = lwsbt_before(&b->tag);
	unsigned n = (unsigned)(tag & 0xffff);

	if (tag == tag_of(q, lwsbt_before(&b->size), n)) {
		if (lwsbt_interrupted(h)) {
			h->interrupts++;
			return KEPT;
		}
		if (n == ALIGNED) {
			overhead = b[-1].size;
			n = (unsigned)b[-1].tag;
		}
		*number = n;
		if (n < p->entries)
			return overhead;
	}
	if (!(h->flags & LWSBT_CHECK_UNTRACKED))
		return UNCOUNTED;
	lwsbt_report(h, LWSBT_DAMAGED_BLOB, lwsbt_node_of(q));
	return KEPT;
}

/* end_block ends the block at q: its words are void, and spare bytes that were overwritten are reported. */
static void end_block(struct lwsbt_profile *p, void *q)
{
	struct lwsbt_block *b = block_of(q);
	unsigned changed = 0;

	for (size_t left = lwsbt_spare(b->size), at = b->size; left > 0; left--)
		changed |= ((const uint8_t *)q)[at++] ^ (unsigned)LWSBT_SPARE_BYTE;
	b->tag = 0;
	if (changed)
		lwsbt_report(p->heap, LWSBT_DAMAGED_END, lwsbt_node_of(q));
}

/* A stack that was captured: s.depth frames of s from the first on. */
struct captured {
	struct lwsbt_stack s;
	size_t first;
	unsigned base;
};

/* capture captures the stack of caller, which allocates size bytes. It returns 0 if they
 * are not to be counted. */
LWSBT_INLINE int capture(struct lwsbt_profile *p, struct captured *c, size_t size, const void *caller)
{
	struct lwsbt_heap *h = p->heap;

	if (size > PTRDIFF_MAX / 2 || (LWSBT_EXTRAS && p->sample && !lwsbt_profile_sampled(p, size)))
		return 0;
	if (lwsbt_interrupted(h)) {
		h->interrupts++;
		return 0;
	}
	if (!lwsbt_enter(h))
		return 0;
	c->base = lwsbt_take(h, &c->s, (uintptr_t)caller, &c->first) ? LWSBT_PATH_CUT : LWSBT_PATH_WHOLE;
	lwsbt_leave(h);
	c->s.size = size;
	return 1;
}

/* begin_block counts a block of the memory at start, and returns the program's pointer. */
LWSBT_INLINE void *begin_block(struct lwsbt_profile *p, const struct captured *c, void *start, size_t overhead)
{
	return put_block(start, overhead, c->s.size, lwsbt_count_path(p, c->s.pc + c->first, c->s.depth, c->s.size, c->base));
}

/* allocate_counted is lwsbt_profile_memalign, or with an align of 0 lwsbt_profile_malloc. */
LWSBT_INLINE void *allocate_counted(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	struct captured c;
	size_t overhead = 0;
	void *start;

	if (capture(p, &c, size, caller)) {
		overhead = OVERHEAD;
		if (align > LWSBT_ALIGN)
			overhead = align < 2 * sizeof(struct lwsbt_block) ? 2 * sizeof(struct lwsbt_block) : align;
		size += overhead + lwsbt_spare(size);
	}
	if (align <= LWSBT_ALIGN)
		start = a->allocate(size);
	else
		start = a->aligned ? a->aligned(align, size) : NULL;
	if (!start)
		lwsbt_count(p->heap, &p->failed);
	return start && overhead ? begin_block(p, &c, start, overhead) : start;
}

LWSBT_NOINLINE void *lwsbt_profile_memalign(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	return allocate_counted(p, a, align, size, caller);
}

LWSBT_NOINLINE void *lwsbt_profile_malloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t size,
	const void *caller)
{
	return allocate_counted(p, a, 0, size, caller);
}

void *lwsbt_profile_calloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller)
{
	void *q;

	if (size && n > SIZE_MAX / size)
		return NULL;
	q = lwsbt_profile_malloc(p, a, n * size, caller);
	return q ? memset(q, 0, n * size) : NULL;
}

/* resize_counted is lwsbt_profile_realloc of a block that is there, and stays. */
static LWSBT_NOINLINE void *resize_counted(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q, size_t size,
	const void *caller)
{
	struct captured c;
	unsigned number;
	size_t old = find_block(p, q, &number), overhead = 0, total, old_size = lwsbt_before(&block_of(q)->size);
	uintptr_t tag = lwsbt_before(&block_of(q)->tag);
	uint8_t *start;

	if (old == KEPT)
		return NULL;
	if (capture(p, &c, size, caller))
		overhead = old > OVERHEAD ? old : OVERHEAD;
	total = overhead ? size + overhead + lwsbt_spare(size) : size + old;
	if (old)
		end_block(p, q);
	start = total < size ? NULL : a->resize((uint8_t *)q - old, total);
	if (!start) {
		if (old)
			block_of(q)->tag = tag;
		lwsbt_count(p->heap, &p->failed);
		return NULL;
	}
	if (overhead != old)
		memmove(start + overhead, start + old, old && old_size < size ? old_size : size);
	if (old)
		lwsbt_profile_uncount(p, number, old_size);
	return overhead ? begin_block(p, &c, start, overhead) : start;
}

void *lwsbt_profile_realloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q,
	size_t size, const void *caller)
{
	if (!q)
		return lwsbt_profile_malloc(p, a, size, caller);
	if (size)
		return resize_counted(p, a, q, size, caller);
	lwsbt_profile_free(p, a, q);
	return NULL;
}

void lwsbt_profile_free(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q)
{
	unsigned number;
	size_t overhead;

	if (!q)
		return;
	overhead = find_block(p, q, &number);
	if (overhead == KEPT)
		return;
	if (overhead) {
		end_block(p, q);
		lwsbt_profile_uncount(p, number, block_of(q)->size);
	}
	a->release((uint8_t *)q - overhead);
}
