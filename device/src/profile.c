/*
 * Live memory by call path: the table of frames and entries. profile_blocks.c has malloc and its kin,
 * which count in it.
 */
#include "profile.h"

/* The most places that are looked at for a node or an entry: what finds none there has no place. */
enum { PROBES = 64 };

/* ------------------------------------------------------------------ the table */

/* slot returns the place for a hash among n, and next_hash the hash for the next place: by a linear congruential
 * generator, so that keys with the same first place have different others. */
static inline unsigned slot(uint32_t hash, unsigned n) { return (hash >> 16) * n >> 16; }
static inline uint32_t next_hash(uint32_t hash) { return hash * 5 + 1; }

/* key_of returns the node of value v inside parent. */
static inline uintptr_t key_of(unsigned parent, uintptr_t v, unsigned bits) { return v << bits | parent; }

static inline uint32_t hash_of(uintptr_t key) { return (uint32_t)(key ^ (uint64_t)key >> 32) * GOLDEN; }

/* find_node returns the number of the node of a key, which it makes if need be; 0 if there is no place. */
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

/* frame_node returns the node of the frame at pc inside parent; 0 if there is no place. */
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

/* find_entry returns the number of the entry of a key, or of a free one; 0 if there is neither. */
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

/* add_history counts a block of size bytes in the history of an entry, which has it already. */
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

unsigned lwsbt_count_path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, size_t size, unsigned base)
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
	return lwsbt_count_path(p, s->pc, depth, s->size, base);
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
