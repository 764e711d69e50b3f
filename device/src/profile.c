/*
 * Live memory by call path: the table, and malloc and its kin that count in it.
 */
#include "profile.h"

#define GOLDEN 0x9e3779b1u

/* The most places that are looked at for a node or an entry: what finds none there has no place. */
enum { PROBES = 64 };

/* ------------------------------------------------------------------ the table */

/* place returns the first place for a hash among n, and step the distance to each next. */
static inline unsigned place(uint32_t hash, unsigned n) { return (hash >> 16) * n >> 16; }
static inline unsigned step(uint32_t hash) { return (hash >> 8 & 14) | 1; }

/* search returns the node of a key, which it makes if need be; 0 if there is no place. */
static LWSBT_NOINLINE unsigned search(struct lwsbt_profile *p, uintptr_t key, uint32_t hash)
{
	unsigned at = place(hash, p->nodes), found = 0;

	for (unsigned left = PROBES; left > 0; left--) {
		uintptr_t n = p->node[at] & ~MARK;

		if (n == key) {
			found = at + FIRST;
			break;
		}
		if (n <= REMOVED && !found)
			found = at + FIRST;
		if (n == EMPTY)
			break;
		at += step(hash);
		if (at >= p->nodes)
			at -= p->nodes;
	}
	if (found)
		p->node[found - FIRST] = key | MARK;
	return found;
}

/* key_of returns the node of value v inside parent. */
static inline uintptr_t key_of(unsigned parent, uintptr_t v, unsigned bits) { return v << bits | parent; }

static inline uint32_t hash_of(uintptr_t key) { return (uint32_t)(key ^ key >> HALF) * GOLDEN; }

/* frame returns the node of the frame at pc inside parent; 0 if there is no place. */
static LWSBT_NOINLINE unsigned frame(struct lwsbt_profile *p, unsigned parent, uintptr_t pc, unsigned bits)
{
	uintptr_t escape = lwsbt_escape(bits), v[3] = { lwsbt_offset(&p->code, pc) };
	unsigned n = 1;

	if (v[0]++ == LWSBT_NO_OFFSET || v[0] >= escape) {
		v[0] = (pc >> HALF) + 1;
		v[1] = (pc & (((uintptr_t)1 << HALF) - 1)) + 1;
		v[2] = escape;
		n = 3;
	}
	for (unsigned i = 0; i < n && (i == 0 || parent); i++) {
		uintptr_t key = key_of(parent, v[i], bits);

		parent = search(p, key, hash_of(key));
	}
	return parent;
}

#if LWSBT_SPEED

/* The tree, and the range of the code that most frames are in, the first. */
struct tree {
	const uintptr_t *node;
	unsigned nodes, bits, shift;
	uintptr_t before;	/* the unit before the range: the value of a frame is its distance from there, */
	uintptr_t last;		/* up to this */
};

static struct tree tree_of(const struct lwsbt_profile *p)
{
	struct tree t = { p->node, p->nodes, lwsbt_parent_bits(p), p->code.shift, 0, 0 };

	if (p->code.count) {
		t.before = p->code.range->start - ((uintptr_t)1 << t.shift);
		t.last = (p->code.range->end - p->code.range->start) >> t.shift;
		if (t.last >= lwsbt_escape(t.bits) || t.last > 1u << 27)
			t.last = 0;
	}
	return t;
}

/* rotate returns v >> shift, with the bits below as the highest: what is no multiple is large. */
static inline uintptr_t rotate(uintptr_t v, unsigned shift)
{
	return v >> shift | v << ((0u - shift) & (unsigned)(8 * sizeof v - 1));
}

/* known returns the node of the frame at pc inside parent if it is in its first place; 0 if not. No node has the
 * value 0. */
LWSBT_INLINE unsigned known(const struct tree *t, unsigned parent, uintptr_t pc)
{
	uintptr_t v = rotate(pc - t->before, t->shift), key = key_of(parent, v, t->bits);
	unsigned found = place(hash_of(key), t->nodes);

	return v <= t->last && t->node[found] == (key | MARK) ? found + FIRST : 0;
}

#endif

/* path returns the node of the frames from first to below pc, or of the outer part of them for which there is
 * place: then *cut is CUT. */
static LWSBT_NOINLINE unsigned path(struct lwsbt_profile *p, const lwsbt_word *first, const lwsbt_word *pc,
	unsigned node, unsigned *cut)
{
	unsigned inner = 0;
#if LWSBT_SPEED
	struct tree t = tree_of(p);
#define known(node, pc) known(&t, node, pc)
#else
#define known(node, pc) 0
#endif

	*cut = 0;
	while (pc > first) {
		pc--;
		inner = known(node, *pc);
		if (!inner)
			inner = frame(p, node, *pc, lwsbt_parent_bits(p));
		if (!inner) {
			*cut = CUT;
			break;
		}
		node = inner;
	}
	return node;
}

LWSBT_NOINLINE unsigned lwsbt_outer(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	if (lwsbt_value(p, node, bits) == lwsbt_escape(bits))
		node = lwsbt_parent(p, lwsbt_parent(p, node, bits), bits);
	return lwsbt_parent(p, node, bits);
}

/* entry returns the number of the entry for node, which it makes if need be; 0 if there is no place. */
static unsigned entry(struct lwsbt_profile *p, unsigned node, unsigned size_class, unsigned cut)
{
	uint32_t hash = (node << 8 ^ size_class ^ cut << 7) * GOLDEN;
	unsigned at = place(hash, p->entries - 1u);

	for (unsigned left = PROBES; left > 0; left--) {
		struct lwsbt_entry *e = &p->entry[at + 1];

		if (!(e->bits & USED)) {
			e->node = (uint16_t)node;
			e->size_class = (uint8_t)size_class;
			e->bits = (uint8_t)(USED | cut);
			return at + 1;
		}
		if (e->node == node && e->size_class == size_class && (e->bits & CUT) == cut)
			return at + 1;
		at += step(hash);
		if (at >= p->entries - 1u)
			at -= p->entries - 1u;
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
static LWSBT_NOINLINE void remember(struct lwsbt_history *h, const struct lwsbt_entry *e, size_t size)
{
	if (h->allocations < UINT32_MAX)
		h->allocations++;
	h->bytes = h->bytes + size < size ? SIZE_MAX : h->bytes + size;
	if (e->bytes > h->peak)
		h->peak = e->bytes;
}

#endif

/* count_from is lwsbt_profile_count of the frames of s from the first on. */
static unsigned count_from(struct lwsbt_profile *p, const struct lwsbt_stack *s, size_t first, unsigned base)
{
	unsigned at, cut, node, size_class = p->sample ? class_of(s->size) : 0;
	struct lwsbt_entry *e;

	lwsbt_lock(p->heap);
	node = path(p, s->pc + first, s->pc + s->depth, base, &cut);
	while ((at = entry(p, node, size_class, cut)) == 0 && node >= FIRST) {
		node = lwsbt_outer(p, node, lwsbt_parent_bits(p));
		cut = CUT;
	}
	e = &p->entry[at];
	if (at == 0) {
		e->node = LWSBT_PATH_CUT;
		e->bits |= USED | CUT;
		cut = CUT;
	}
	if (cut)
		p->cut++;
	e->bits |= CHANGED;
	e->live++;
	e->bytes += s->size;
#if LWSBT_EXTRAS
	if (p->history)
		remember(&p->history[at], e, s->size);
#endif
	p->heap->count++;
	p->heap->bytes += s->size;
	if (p->heap->bytes > p->heap->peak) {
		p->heap->peak = p->heap->bytes;
		p->heap->peak_count = p->heap->count;
	}
	lwsbt_unlock(p->heap);
	return at;
}

unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base)
{
	return count_from(p, s, 0, base);
}

void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size)
{
	struct lwsbt_entry *e = &p->entry[number];

	lwsbt_lock(p->heap);
	e->bits |= CHANGED;
	e->live--;
	e->bytes -= size;
	p->heap->count--;
	p->heap->bytes -= size;
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
static uintptr_t tag_of(const void *q, uintptr_t size, unsigned number)
{
	uintptr_t h = (((uintptr_t)q ^ number) * GOLDEN ^ size) * GOLDEN;

	h ^= h >> 15;
	return ((h * GOLDEN) & ~(uintptr_t)0xffff) | 0x10000 | number;
}

/* A block that was found, or is to be. */
struct found {
	void *start;		/* where its memory begins */
	size_t overhead;	/* bytes from there to the program's; 0: it is not counted */
	size_t size;
	unsigned number;
	int end;		/* whether spare bytes were overwritten */
};

/* put writes the words and the spare bytes of the block at start, and returns the program's pointer. */
static void *put(const struct found *f)
{
	uint8_t *q = (uint8_t *)f->start + f->overhead;
	struct lwsbt_block *b = block_of(q);
	unsigned number = f->number;

	if (f->overhead > OVERHEAD) {
		b[-1].size = f->overhead;
		b[-1].tag = number;
		number = ALIGNED;
	}
	b->size = f->size;
	b->tag = tag_of(q, f->size, number);
	for (size_t left = lwsbt_spare(f->size), at = f->size; left > 0; left--)
		q[at++] = LWSBT_SPARE_BYTE;
	return q;
}

/* find describes the block at q. It returns 0, and reports why, where memory is not to be touched: damaged, or an
 * interrupt's. */
static int find(struct lwsbt_profile *p, void *q, struct found *f)
{
	struct lwsbt_heap *h = p->heap;
	const struct lwsbt_block *b = block_of(q);

	f->start = q;
	f->overhead = 0;
	f->size = b->size;
	f->number = (unsigned)(b->tag & 0xffff);
	if (b->tag == tag_of(q, b->size, f->number)) {
		if (lwsbt_interrupted(h)) {
			h->interrupts++;
			return 0;
		}
		f->overhead = OVERHEAD;
		if (f->number == ALIGNED) {
			f->overhead = b[-1].size;
			f->number = (unsigned)b[-1].tag;
		}
		if (f->number < p->entries) {
			f->start = (uint8_t *)q - f->overhead;
			return 1;
		}
		f->overhead = 0;
	}
	if (!(h->flags & LWSBT_CHECK_UNTRACKED))
		return 1;
	lwsbt_report(h, LWSBT_DAMAGED_BLOB, lwsbt_node_of(q));
	return 0;
}

/* end ends the block at q: its words are void, and spare bytes that were overwritten are reported. */
static void end(struct lwsbt_profile *p, void *q, const struct found *f)
{
	unsigned changed = 0;

	for (size_t left = lwsbt_spare(f->size), at = f->size; left > 0; left--)
		changed |= ((const uint8_t *)q)[at++] ^ (unsigned)LWSBT_SPARE_BYTE;
	block_of(q)->tag = 0;
	if (changed)
		lwsbt_report(p->heap, LWSBT_DAMAGED_END, lwsbt_node_of(q));
}

/* A stack that was captured: the frames of s from the first on. */
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

LWSBT_INLINE void *allocate(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	struct captured c;
	struct found f;

	f.size = size;
	f.overhead = 0;
	if (capture(p, &c, size, caller)) {
		f.overhead = OVERHEAD;
		if (align > LWSBT_ALIGN)
			f.overhead = align < 2 * sizeof(struct lwsbt_block) ? 2 * sizeof(struct lwsbt_block) : align;
		size += f.overhead + lwsbt_spare(size);
	}
	if (align <= LWSBT_ALIGN)
		f.start = a->allocate(size);
	else
		f.start = a->aligned ? a->aligned(align, size) : NULL;
	if (!f.start)
		lwsbt_count(p->heap, &p->failed);
	if (!f.start || !f.overhead)
		return f.start;
	f.number = count_from(p, &c.s, c.first, c.base);
	return put(&f);
}

LWSBT_NOINLINE void *lwsbt_profile_memalign(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	return allocate(p, a, align, size, caller);
}

LWSBT_NOINLINE void *lwsbt_profile_malloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t size,
	const void *caller)
{
	return allocate(p, a, 0, size, caller);
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
	struct found old, f;
	uintptr_t tag = block_of(q)->tag;
	size_t total, keep;

	if (!find(p, q, &old))
		return NULL;
	f.size = size;
	f.overhead = 0;
	if (capture(p, &c, size, caller))
		f.overhead = old.overhead > OVERHEAD ? old.overhead : OVERHEAD;
	total = f.overhead ? size + f.overhead + lwsbt_spare(size) : size + old.overhead;
	if (old.overhead)
		end(p, q, &old);
	f.start = total < size ? NULL : a->resize(old.start, total);
	if (!f.start) {
		if (old.overhead)
			block_of(q)->tag = tag;
		lwsbt_count(p->heap, &p->failed);
		return NULL;
	}
	keep = old.overhead && old.size < size ? old.size : size;
	if (f.overhead != old.overhead)
		memmove((uint8_t *)f.start + f.overhead, (uint8_t *)f.start + old.overhead, keep);
	if (old.overhead)
		lwsbt_profile_uncount(p, old.number, old.size);
	if (!f.overhead)
		return f.start;
	f.number = count_from(p, &c.s, c.first, c.base);
	return put(&f);
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
	struct found f;

	if (q && find(p, q, &f)) {
		if (f.overhead) {
			end(p, q, &f);
			lwsbt_profile_uncount(p, f.number, f.size);
		}
		a->release(f.start);
	}
}
