/*
 * Live memory by call path: the table, and malloc and its kin that count in it.
 */
#include "profile.h"

#define GOLDEN 0x9e3779b1u

/* The most places that are looked at for a node or an entry: what finds none there has no place. */
enum { PROBES = 64 };

/* ------------------------------------------------------------------ the table */

/* place returns the place for a hash among n, and next_hash the hash for the next place: by a linear congruential
 * generator, so that keys with the same first place have different others. */
static inline unsigned slot(uint32_t hash, unsigned n) { return (hash >> 16) * n >> 16; }
static inline uint32_t next_hash(uint32_t hash) { return hash * 5 + 1; }

/* key_of returns the node of value v inside parent. */
static inline uintptr_t key_of(unsigned parent, uintptr_t v, unsigned bits) { return v << bits | parent; }

static inline uint32_t hash_of(uintptr_t key) { return (uint32_t)(key ^ (uint64_t)key >> 32) * GOLDEN; }

/* search returns the number of the node of a key, which it makes if need be; 0 if there is no place. */
static LWSBT_NOINLINE unsigned find_node(struct lwsbt_profile *p, uintptr_t key)
{
	uint32_t hash = hash_of(key);
	uintptr_t *found = NULL;

	for (unsigned left = PROBES; left > 0; left--) {
		uintptr_t *node = &p->node[slot(hash, p->nodes)], n = *node << 1; /* without the mark */

		if (n == key << 1) {
			found = node;
			break;
		}
		if (n <= REMOVED << 1 && !found)
			found = node;
		if (n == EMPTY)
			break;
		hash = next_hash(hash);
	}
	if (!found)
		return 0;
	*found = key | lwsbt_marked(p);
	return (unsigned)(found - p->node) + FIRST_NODE;
}

/* frame returns the node of the frame at pc inside parent; 0 if there is no place. */
static unsigned frame_node(struct lwsbt_profile *p, unsigned parent, uintptr_t pc)
{
	unsigned bits = lwsbt_parent_bits(p);
	uintptr_t escape = lwsbt_escape(bits), v = (uint32_t)(lwsbt_offset(&p->code, pc) + 1);

	if (v == 0 || v >= escape) { /* 0: of LWSBT_NO_OFFSET */
		parent = find_node(p, key_of(parent, (pc >> HALF) + 1, bits));
		if (!parent)
			return 0;
		v = escape + (pc & LOW_HALF);
	}
	return find_node(p, key_of(parent, v, bits));
}

#if LWSBT_SPEED

/* known goes from *node on inwards, from the last of n frames to the first. It ends before a frame that is not in the
 * first range of the code, or whose node is not marked, or not in its first or second place: few are. It returns how
 * many frames are left. A function without calls and stores: so all that it needs is in registers. */
static LWSBT_NOINLINE size_t known(const struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, unsigned *node)
{
	unsigned bits = lwsbt_parent_bits(p), shift = p->code.shift, nodes = p->nodes, parent = *node;
	uintptr_t start = 0, units = 0, last = lwsbt_escape(bits) - 1, mark = lwsbt_marked(p);
	const uintptr_t *table = p->node;

	if (p->code.count) {
		start = p->code.range->start;
		units = (p->code.range->end - start) >> shift;
	}
	if (units > last)
		units = last;
	for (; n > 0; n--) {
		uintptr_t offset = lwsbt_rotate(pc[n - 1] - start, shift), key = key_of(parent, offset + 1, bits);
		uint32_t hash = hash_of(key);
		unsigned at = slot(hash, nodes);

		if (offset >= units)
			break;
		if (table[at] != (key | mark)) {
			at = slot(next_hash(hash), nodes);
			if (table[at] != (key | mark))
				break;
		}
		parent = at + FIRST_NODE;
	}
	*node = parent;
	return n;
}

#else
#define known(p, pc, n, node) (n)
#endif

/* path returns the node of the n frames at pc inside node; or that of the outer part of them for which there is place,
 * and CUT. */
static uint32_t path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, unsigned node)
{
	while ((n = known(p, pc, n, &node)) > 0) {
		unsigned inner = frame_node(p, node, pc[--n]);

		if (!inner)
			return node | CUT;
		node = inner;
	}
	return node;
}

LWSBT_NOINLINE unsigned lwsbt_outer(struct lwsbt_profile *p, unsigned node, lwsbt_word *pc)
{
	unsigned bits = lwsbt_parent_bits(p);
	uintptr_t n = lwsbt_mark(p, node), mask = ((uintptr_t)1 << bits) - 1, v = n >> bits;

	if (v < lwsbt_escape(bits)) {
		*pc = lwsbt_address(&p->code, (uint32_t)v - 1);
	} else {
		n = lwsbt_mark(p, (unsigned)(n & mask));
		*pc = ((n >> bits) - 1) << HALF | (v & LOW_HALF);
	}
	return (unsigned)(n & mask);
}

/* entry returns the number of the entry of a key, or of a free one; 0 if there is neither. */
static unsigned find_entry(const struct lwsbt_profile *p, uint32_t key)
{
	uint32_t hash = key * GOLDEN;

	for (unsigned left = PROBES; left > 0; left--) {
		unsigned at = slot(hash, p->entries - 1u) + 1;

		if (!p->entry[at].key || (p->entry[at].key & PATH) == key)
			return at;
		hash = next_hash(hash);
	}
	return 0;
}

#if LWSBT_EXTRAS

/* class_of returns the size class of a block that is sampled: readers scale by the mean size of an
 * entry. [BT-DUMP-5] */
static unsigned class_of(size_t size)
{
	unsigned n = lwsbt_significant(size);

	if (n > 32) /* of 32 bits are 128 classes */
		return 255;
	return 4 * n + (n < 3 ? 0 : (unsigned)(size >> (n - 3)) & 3);
}

#else
#define class_of(size) 0u
#endif

#if LWSBT_EXTRAS

/* remember counts a block of size bytes in the history of an entry, which has it already. */
static LWSBT_NOINLINE void add_history(struct lwsbt_history *h, const struct lwsbt_entry *e, size_t size)
{
	if (h->allocations < UINT32_MAX)
		h->allocations++;
	h->bytes = h->bytes + size < size ? SIZE_MAX : h->bytes + size;
	if (e->bytes > h->peak)
		h->peak = e->bytes;
}

#endif

/* tally adds blocks and their bytes, modulo the width of the counters, to an entry and the totals. Under the lock. */
static LWSBT_NOINLINE void tally(struct lwsbt_profile *p, struct lwsbt_entry *e, uint32_t blocks, size_t bytes)
{
	struct lwsbt_heap *h = p->heap;

	e->key |= CHANGED;
	e->live += blocks;
	e->bytes += bytes;
	h->count += blocks;
	h->bytes += bytes;
	if (h->bytes > h->peak) {
		h->peak = h->bytes;
		h->peak_count = h->count;
	}
}

/* count_path counts a block of size bytes for the n frames at pc, and returns the number of the entry. */
static unsigned count_path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, size_t size, unsigned base)
{
	uint32_t rest = USED | (p->sample ? class_of(size) : 0) << 16, key; /* without the rest */
	struct lwsbt_entry *e;
	lwsbt_word innermost;
	unsigned at;

	lwsbt_lock(p->heap);
	key = path(p, pc, n, base);
	while ((at = find_entry(p, rest | key)) == 0) {
		if ((key & NODE) < FIRST_NODE) { /* entry 0 */
			key = CUT | LWSBT_PATH_CUT;
			break;
		}
		key = CUT | lwsbt_outer(p, key & NODE, &innermost);
	}
	e = &p->entry[at];
	e->key |= rest | key;
	if (key & CUT)
		p->cut++;
	tally(p, e, 1, size);
#if LWSBT_EXTRAS
	if (p->history)
		add_history(&p->history[at], e, size);
#endif
	lwsbt_unlock(p->heap);
	return at;
}

unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base)
{
	unsigned depth = s->depth;

	if (depth > LWSBT_HEAP_DEPTH) { /* which dumps have space for */
		depth = LWSBT_HEAP_DEPTH;
		base = LWSBT_PATH_CUT;
	}
	return count_path(p, s->pc, depth, s->size, base);
}

void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size)
{
	lwsbt_lock(p->heap);
	tally(p, &p->entry[number], 0u - 1, 0 - size);
	lwsbt_unlock(p->heap);
}

/* ------------------------------------------------------------------- sampling */

#if LWSBT_EXTRAS

/* distance returns the bytes to the next sample point: an exponential distribution of mean p->sample. */
static size_t distance(struct lwsbt_profile *p)
{
	uint32_t r = p->random ? p->random : GOLDEN, f, log;
	unsigned zeros;

	r ^= r << 13;	/* xorshift32 */
	r ^= r >> 17;
	r ^= r << 5;
	p->random = r;
	/* -log2(r / 2^32), in 1/65536: log2(1 + f) is about f + f (1 - f) (0.427 - 0.160 f), to 0.002 */
	zeros = 32 - lwsbt_significant(r);
	f = (r << zeros << 1) >> 16;
	log = f + ((f * (65536 - f) >> 16) * (28000 - (f * 10500 >> 16)) >> 16);
	log = ((zeros + 1) << 16) - log;
	return (size_t)(((uint64_t)log * 45426 >> 16) * p->sample >> 16); /* ln 2 */
}

int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size)
{
	int sampled;

	if (!p->sample)
		return 1;
	lwsbt_lock(p->heap);
	if (!p->random)
		p->left = distance(p);
	sampled = size > p->left;
	p->left = sampled ? distance(p) : p->left - size;
	lwsbt_unlock(p->heap);
	return sampled;
}

#else

int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size)
{
	(void)p;
	(void)size;
	return 1;
}

#endif

/* --------------------------------------------------------------------- blocks */

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

/* put writes the words and the spare bytes of the block at start, and returns the program's pointer. */
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

/* find returns the bytes from where the memory of q begins to q, and sets *number, if it is counted. It returns
 * UNCOUNTED if it is not, and KEPT if it must not be touched: it is damaged, which find reports, or this is an
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

/* begin counts a block of the memory at start, and returns the program's pointer. */
LWSBT_INLINE void *begin_block(struct lwsbt_profile *p, const struct captured *c, void *start, size_t overhead)
{
	return put_block(start, overhead, c->s.size, count_path(p, c->s.pc + c->first, c->s.depth, c->s.size, c->base));
}

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
