/*
 * The live allocations, by address. Those of one page of addresses, 4 KB, are a small
 * hash table of 32-bit entries:
 *
 *    31       23 22                            0
 *   | offset / 8 | number of its stack and size |
 *
 * Once an allocation was freed, the number is FREED: the entry stays, since allocators
 * use addresses again soon, and the table is made anew when it is full. These tables
 * are found by another one, of pointers, in shards, each with its lock. So what a
 * program allocates together is in the same cache lines here, too.
 *
 * The tables stand beside the blocks, not in front of them. Measured
 * (bench/placement.c, CPU time, x86-64) with live blocks freed and allocated in random
 * order: what stands in front costs 7 ns per allocation and free with 1,000 of them,
 * and 29 with 30,000; the tables 33 and 98. What stands in front takes 32 bytes, and
 * these 7 with 900,000. They are chosen for more than that: what stands in front moves
 * every block, and so gets wrong what a program sees of its allocator
 * (malloc_usable_size, alignment, blocks of the loader or of another allocator that
 * reach free), and can be overwritten by the bugs that are looked for.
 */
#include <string.h>

#include "preload.h"

#if UINTPTR_MAX > 0xffffffff
#define SHARD_BITS 6
#else
#define SHARD_BITS 3
#endif
#define SHARDS (1u << SHARD_BITS)
#define FIRST_BITS 6	/* of a shard's first table */
#define GROWN_BITS 9	/* of its second, which is a page or part of one */

#define ADDR_BITS 12	/* of a page of addresses */
#define OFFSETS (1u << (ADDR_BITS - 3))
_Static_assert(OFFSETS * (uint64_t)PAIRS == (uint64_t)1 << 32, "an entry has 32 bits");

/* What is live in a page of addresses. */
struct page {
	uintptr_t id;		/* which: see page_id. Unused: the next of its size */
	uint16_t n, room;	/* entries that are not 0, and all */
	uint32_t entry[];
};
#define FREED PAIR_MASK /* no pair's number */
#define HEAD offsetof(struct page, entry)

/* Bytes of a struct page: 16, 24, then 4 sizes from each power of two. */
#define SIZES 28 /* the largest has places for all offsets: 2560 bytes */
#define SLAB 4096 /* bytes, from which they are cut */

static inline unsigned bytes_of(unsigned size)
{
	return size < 2 ? 16 + 8 * size : (4 + ((size - 2) & 3)) << ((size - 2) >> 2) << 3;
}

/* size_of returns the smallest size of so many bytes or more. */
static inline unsigned size_of(size_t bytes)
{
	unsigned units = (unsigned)(bytes + 7) / 8;

	if (units < 4)
		return units < 3 ? 0 : 1;
	unsigned shift = 29 - (unsigned)__builtin_clz(units);
	return 2 + shift * 4 + ((units + (1u << shift) - 1) >> shift) - 4;
}

struct shard {
	lock_t lock;
	uint32_t bits, used;	/* of the table: places, and pages in it */
	struct page **table;
	/* Allocations and frees, their bytes; allocations whose free was not seen, or for
	 * which there was no memory. */
	uint64_t allocations, frees, allocated, freed, lost;
	struct page *spare[SIZES];
	char *at, *end;		/* the rest of a slab */
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];

uintptr_t blocks_peak, blocks_live;

/* page_id returns what tells pages apart: an address without the bits that its entry
 * has. The lowest bits stay, so that an address that is no multiple of 8 is of another
 * page. */
static inline uintptr_t page_id(uintptr_t addr) { return addr & ~(uintptr_t)((OFFSETS - 1) << 3); }

static inline unsigned offset_of(uintptr_t addr) { return (unsigned)(addr >> 3) & (OFFSETS - 1); }

/* The highest bits of the product choose the shard, those below the place. */
static inline uint64_t hash(uintptr_t id) { return (uint64_t)id * 0x9e3779b97f4a7c15u; }

static inline uint64_t place(uint64_t h, uint32_t bits) { return h << SHARD_BITS >> (64 - bits); }

static inline struct shard *shard_of(uint64_t h) { return &shards[h >> (64 - SHARD_BITS)]; }

bool blocks_init(void)
{
	size_t each = sizeof *shards->table << FIRST_BITS;
	char *p = pages(each * SHARDS);

	if (!p || !pairs_init())
		return false;
	for (unsigned i = 0; i < SHARDS; i++) {
		shards[i].table = (struct page **)(void *)(p + i * each);
		shards[i].bits = FIRST_BITS;
	}
	return true;
}

/* ---------------------------------------------------------------- pages */

static void page_free(struct shard *s, struct page *p)
{
	unsigned size = size_of(HEAD + p->room * sizeof *p->entry);

	p->id = (uintptr_t)s->spare[size];
	s->spare[size] = p;
}

/* page_new returns one with room for n entries or more. */
static struct page *page_new(struct shard *s, unsigned n)
{
	unsigned size = size_of(HEAD + n * sizeof(uint32_t)), bytes = bytes_of(size);
	struct page *p = s->spare[size];
	if (p) {
		s->spare[size] = (struct page *)p->id;
	} else {
		if ((size_t)(s->end - s->at) < bytes) {
			/* What is left of the slab is of use for a smaller one. */
			unsigned left = (unsigned)(s->end - s->at);
			if (left >= bytes_of(0)) {
				while (bytes_of(size) > left)
					size--;
				p = (struct page *)(void *)s->at;
				p->id = (uintptr_t)s->spare[size];
				s->spare[size] = p;
			}
			s->at = s->end = NULL;
			if (!(s->at = keep(SLAB)))
				return NULL;
			s->end = s->at + SLAB;
		}
		p = (struct page *)(void *)s->at;
		s->at += bytes;
	}
	memset(p, 0, bytes);
	p->room = (uint16_t)((bytes - HEAD) / sizeof *p->entry);
	return p;
}

static inline bool is_live(uint32_t entry)
{
	return entry && (entry & PAIR_MASK) != FREED;
}

static unsigned count_live(const struct page *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->room; i++)
		n += is_live(p->entry[i]);
	return n;
}

/* place_in returns where an offset's entry is, or 0 if there is none; NULL if the
 * page is full of others. */
static inline uint32_t *place_in(struct page *p, unsigned offset)
{
	uint32_t *first = &p->entry[(offset * 40503 & 65535) * p->room >> 16], *e = first;

	do {
		if (*e >> PAIR_BITS == offset || !*e)
			return e;
		if (++e == p->entry + p->room)
			e = p->entry;
	} while (e != first);
	return NULL;
}

/* full reports whether a page has so few free places that finding one takes long. The
 * largest pages have places for all offsets. */
static inline bool full(unsigned n, unsigned room)
{
	if (room >= OFFSETS)
		return false;
	return room > 12 ? n * 4 > room * 3 : n == room;
}

/* anew returns the page with a free place, and without what was freed. */
static struct page *anew(struct shard *s, struct page *p)
{
	unsigned live = count_live(p), room = live + 1;

	while (full(live + 1 + live / 8, room))
		room++;
	struct page *q = page_new(s, room);
	if (!q)
		return NULL;
	q->id = p->id;
	q->n = (uint16_t)live;
	for (unsigned i = 0; i < p->room; i++)
		if (is_live(p->entry[i]))
			*place_in(q, p->entry[i] >> PAIR_BITS) = p->entry[i];
	page_free(s, p);
	return q;
}

/* ---------------------------------------------------------------- the table */

/* find returns the place of a page in the table, which has NULL if it is not there. */
static inline struct page **find(const struct shard *s, uintptr_t id, uint64_t h)
{
	uint64_t mask = ((uint64_t)1 << s->bits) - 1, at = place(h, s->bits);

	while (s->table[at] && s->table[at]->id != id)
		at = (at + 1) & mask;
	return &s->table[at];
}

/* rebuild makes a new table, without pages in which all is freed. */
static bool rebuild(struct shard *s)
{
	uint64_t old = (uint64_t)1 << s->bits;
	uint32_t bits = s->bits, live = 0;

	for (uint64_t i = 0; i < old; i++)
		live += s->table[i] && count_live(s->table[i]);
	if (live * 2 > old)
		bits = bits < GROWN_BITS ? GROWN_BITS : bits + 1;
	struct page **before = s->table, **table = pages(sizeof *table << bits);
	if (!table)
		return false;
	s->table = table;
	s->bits = bits;
	s->used = 0;
	for (uint64_t i = 0; i < old; i++) {
		struct page *p = before[i];
		if (!p)
			continue;
		if (count_live(p)) {
			*find(s, p->id, hash(p->id)) = p;
			s->used++;
		} else
			page_free(s, p);
	}
	if (old > (uint64_t)1 << FIRST_BITS) /* the first ones are parts of one mapping */
		pages_free(before, sizeof *before * old);
	return true;
}

static __attribute__((noinline)) struct page **add_page(struct shard *s, uintptr_t id, uint64_t h)
{
	if (s->used * 4 >= (uint32_t)3 << s->bits && !rebuild(s) && s->used + 1 >= (uint32_t)1 << s->bits)
		return NULL;
	struct page *p = page_new(s, 1), **at = find(s, id, h);
	if (!p)
		return NULL;
	p->id = id;
	s->used++;
	*at = p;
	return at;
}

/* put adds an allocation; pair is its number, not 0. */
static inline __attribute__((always_inline)) bool put(struct shard *s, uintptr_t addr, uintptr_t id,
	uint64_t h, uint32_t pair)
{
	struct page **at = find(s, id, h), *p;

	if (UNLIKELY(!*at) && !(at = add_page(s, id, h)))
		return false;
	p = *at;
	unsigned offset = offset_of(addr);
	uint32_t *e = place_in(p, offset);
	if (!e || !*e) {
		if (UNLIKELY(!e || full(p->n, p->room))) {
			if (!(p = anew(s, p)))
				return false;
			*at = p;
			e = place_in(p, offset);
		}
		p->n++;
	} else if (UNLIKELY((*e & PAIR_MASK) != FREED)) { /* its free was not seen */
		uint64_t size = pair_size(*pair_at(*e & PAIR_MASK));
		s->lost++;
		s->freed += size;
		__atomic_sub_fetch(&blocks_live, (size_t)size, __ATOMIC_RELAXED);
	}
	*e = (uint32_t)offset << PAIR_BITS | pair;
	return true;
}

/* ---------------------------------------------------------------- allocations */

static inline void alive(size_t more)
{
	if (LIKELY(SINGLE)) {
		if ((blocks_live += more) > blocks_peak)
			blocks_peak = blocks_live;
		return;
	}
	uintptr_t live = __atomic_add_fetch(&blocks_live, more, __ATOMIC_RELAXED);
	uintptr_t peak = __atomic_load_n(&blocks_peak, __ATOMIC_RELAXED);

	while (live > peak &&
	       !__atomic_compare_exchange_n(&blocks_peak, &peak, live, true,
		       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* sweep has numbers that no live allocation has used again. */
static __attribute__((noinline)) void sweep(void)
{
	size_t bytes;
	uint32_t *marks;

	blocks_lock();
	if (pairs_crowded && (marks = pairs_marks(&bytes))) {
		for (unsigned k = 0; k < SHARDS; k++)
			for (uint64_t i = 0; i < (uint64_t)1 << shards[k].bits; i++) {
				const struct page *p = shards[k].table[i];
				for (unsigned j = 0; p && j < p->room; j++) {
					uint32_t n = p->entry[j] & PAIR_MASK;
					if (is_live(p->entry[j]))
						marks[n / 32] |= (uint32_t)1 << n % 32;
				}
			}
		pairs_sweep(marks);
		pages_free(marks, bytes);
	}
	blocks_unlock();
}

bool blocks_add(uintptr_t addr, size_t size, stack_id stack)
{
	uintptr_t id = page_id(addr);
	uint64_t h = hash(id), pair = pair_of(stack, size);
	struct shard *s = shard_of(h);

	if (UNLIKELY(__atomic_load_n(&pairs_crowded, __ATOMIC_RELAXED)))
		sweep();
	lock(&s->lock);
	uint32_t n = pair_number(pair);
	bool ok = n && put(s, addr, id, h, n);
	s->allocations++;
	s->allocated += pair_size(pair);
	if (UNLIKELY(!ok)) {
		s->lost++;
		s->freed += pair_size(pair);
	}
	unlock(&s->lock);
	if (LIKELY(ok))
		alive((size_t)pair_size(pair));
	return ok;
}

bool blocks_take(uintptr_t addr, struct block *b)
{
	uintptr_t id = page_id(addr);
	uint64_t h = hash(id);
	struct shard *s = shard_of(h);

	lock(&s->lock);
	struct page *p = *find(s, id, h);
	uint32_t *e = p ? place_in(p, offset_of(addr)) : NULL;
	if (UNLIKELY(!e || !is_live(*e))) {
		unlock(&s->lock);
		return false;
	}
	uint32_t n = *e & PAIR_MASK;
	*e |= FREED;
	uint64_t pair = *pair_at(n);
	*b = (struct block){addr, pair_size(pair), pair_stack(pair)};
	s->frees++;
	s->freed += b->size;
	unlock(&s->lock);
	if (LIKELY(SINGLE))
		blocks_live -= b->size;
	else
		__atomic_sub_fetch(&blocks_live, (size_t)b->size, __ATOMIC_RELAXED);
	return true;
}

void blocks_back(const struct block *b)
{
	uintptr_t id = page_id(b->addr);
	uint64_t h = hash(id);
	struct shard *s = shard_of(h);

	lock(&s->lock);
	uint32_t n = pair_number(pair_of(b->stack, (size_t)b->size));
	bool ok = n && put(s, b->addr, id, h, n);
	s->frees--;
	if (LIKELY(ok))
		s->freed -= b->size;
	else
		s->lost++;
	unlock(&s->lock);
	if (LIKELY(ok))
		alive((size_t)b->size);
}

void blocks_lock(void)
{
	for (unsigned i = 0; i < SHARDS; i++)
		lock(&shards[i].lock);
}

bool blocks_try_lock(void)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (!lock_try(&shards[i].lock)) {
			while (i-- > 0)
				unlock(&shards[i].lock);
			return false;
		}
	return true;
}

void blocks_unlock(void)
{
	for (unsigned i = 0; i < SHARDS; i++)
		unlock(&shards[i].lock);
}

void blocks_each(void (*f)(const struct block *, void *), void *arg)
{
	for (unsigned k = 0; k < SHARDS; k++)
		for (uint64_t i = 0; i < (uint64_t)1 << shards[k].bits; i++) {
			const struct page *p = shards[k].table[i];
			for (unsigned j = 0; p && j < p->room; j++) {
				if (!is_live(p->entry[j]))
					continue;
				uint64_t pair = *pair_at(p->entry[j] & PAIR_MASK);
				f(&(struct block){p->id + (p->entry[j] >> PAIR_BITS << 3),
					pair_size(pair), pair_stack(pair)}, arg);
			}
		}
}

void blocks_totals(struct totals *t)
{
	*t = (struct totals){0};
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct shard *s = &shards[i];
		t->allocations += s->allocations;
		t->frees += s->frees;
		t->allocated += s->allocated;
		t->live += s->allocations - s->frees - s->lost;
		t->bytes += s->allocated - s->freed;
	}
}
