/*
 * The live allocations, by address: a hash table in shards, each with its lock.
 *
 * The table stands beside the blocks, not in front of them. Measured
 * (bench/placement.c, CPU time, x86-64): with 1,000 live blocks freed and allocated
 * in random order, what stands in front costs 13 ns per allocation and free and the
 * table 42; with 30,000, 64 and 131, when neither fits the cache. The table is chosen
 * in spite of that: what stands in front moves every block, and so gets wrong what a
 * program sees of its allocator (malloc_usable_size, alignment, blocks of the loader
 * or of another allocator that reach free), and can be overwritten by the bugs that
 * are looked for. Memory is the same: 32 bytes in front, 21 to 43 in the table.
 */
#include "preload.h"

#if UINTPTR_MAX > 0xffffffff
#define SHARD_BITS 6
#else
#define SHARD_BITS 3
#endif
#define SHARDS (1u << SHARD_BITS)
#define FIRST_BITS 8

struct shard {
	lock_t lock;
	uint32_t bits;
	struct block *table;
	struct totals totals;
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];

uintptr_t blocks_peak, blocks_live;

/* Blocks of malloc are so far apart, in bits, or farther: 8 such next to each other
 * are next to each other in the table, too, so that what a program uses together is in
 * the same cache lines. */
#define APART (sizeof(uintptr_t) > 4 ? 5 : 4)

/* The upper bits of the product are well mixed: the highest choose the shard, those
 * below the place. */
static inline uint64_t hash(uintptr_t addr)
{
	return (uint64_t)(addr >> APART >> 3) * 0x9e3779b97f4a7c15u;
}

static inline uint64_t place(uintptr_t addr, uint64_t h, uint32_t bits)
{
	return (h << SHARD_BITS >> (64 - bits) & ~(uint64_t)7) | (addr >> APART & 7);
}

bool blocks_init(void)
{
	size_t each = sizeof(struct block) << FIRST_BITS;
	char *p = pages(each * SHARDS);

	if (!p)
		return false;
	for (unsigned i = 0; i < SHARDS; i++) {
		shards[i].table = (struct block *)(void *)(p + i * each);
		shards[i].bits = FIRST_BITS;
	}
	return true;
}

static bool grow(struct shard *s)
{
	uint64_t old = (uint64_t)1 << s->bits, mask = old * 2 - 1;
	struct block *table = pages(sizeof *table * old * 2);

	if (!table)
		return false;
	for (uint64_t i = 0; i < old; i++) {
		if (!s->table[i].addr)
			continue;
		uint64_t at = place(s->table[i].addr, hash(s->table[i].addr), s->bits + 1);
		while (table[at].addr)
			at = (at + 1) & mask;
		table[at] = s->table[i];
	}
	pages_free(s->table, sizeof *table * old);
	s->table = table;
	s->bits++;
	return true;
}

static bool put(struct shard *s, uint64_t h, const struct block *b)
{
	if (UNLIKELY(s->totals.live * 4 >= (uint64_t)3 << s->bits) && !grow(s) &&
	    s->totals.live + 1 >= (uint64_t)1 << s->bits)
		return false;
	uint64_t mask = ((uint64_t)1 << s->bits) - 1, at = place(b->addr, h, s->bits);
	while (s->table[at].addr && s->table[at].addr != b->addr)
		at = (at + 1) & mask;
	if (UNLIKELY(s->table[at].addr)) { /* its free was not seen */
		s->totals.bytes -= s->table[at].size;
		__atomic_sub_fetch(&blocks_live, (size_t)s->table[at].size, __ATOMIC_RELAXED);
		s->totals.live--;
	}
	s->table[at] = *b;
	s->totals.live++;
	s->totals.bytes += b->size;
	return true;
}

/* gone closes the gap at place at: what stands behind it and would not be found
 * any more moves up. */
static void gone(struct shard *s, uint64_t at)
{
	uint64_t mask = ((uint64_t)1 << s->bits) - 1;

	for (uint64_t next = (at + 1) & mask; s->table[next].addr; next = (next + 1) & mask) {
		uint64_t home = place(s->table[next].addr, hash(s->table[next].addr), s->bits);
		if (((next - home) & mask) >= ((next - at) & mask)) {
			s->table[at] = s->table[next];
			at = next;
		}
	}
	s->table[at].addr = 0;
}

static void alive(size_t more)
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

void blocks_soon(uintptr_t addr)
{
	uint64_t h = hash(addr);
	const struct shard *s = &shards[h >> (64 - SHARD_BITS)];

	__builtin_prefetch(&s->table[place(addr, h, s->bits)], 1);
}

bool blocks_add(uintptr_t addr, size_t size, stack_id stack)
{
	struct block b = {.addr = addr, .stack = stack, .size = size};
	uint64_t h = hash(addr);
	struct shard *s = &shards[h >> (64 - SHARD_BITS)];

#if UINTPTR_MAX > 0xffffffff
	if (UNLIKELY(size >> 40))
		b.size = ((uint64_t)1 << 40) - 1;
#endif
	lock(&s->lock);
	bool ok = put(s, h, &b);
	s->totals.allocations++;
	s->totals.allocated += b.size;
	unlock(&s->lock);
	if (ok)
		alive((size_t)b.size);
	return ok;
}

bool blocks_take(uintptr_t addr, struct block *b)
{
	uint64_t h = hash(addr);
	struct shard *s = &shards[h >> (64 - SHARD_BITS)];

	lock(&s->lock);
	uint64_t mask = ((uint64_t)1 << s->bits) - 1, at = place(addr, h, s->bits);
	while (s->table[at].addr != addr) {
		if (!s->table[at].addr) {
			unlock(&s->lock);
			return false;
		}
		at = (at + 1) & mask;
	}
	*b = s->table[at];
	gone(s, at);
	s->totals.frees++;
	s->totals.live--;
	s->totals.bytes -= b->size;
	unlock(&s->lock);
	if (LIKELY(SINGLE))
		blocks_live -= b->size;
	else
		__atomic_sub_fetch(&blocks_live, (size_t)b->size, __ATOMIC_RELAXED);
	return true;
}

void blocks_back(const struct block *b)
{
	uint64_t h = hash(b->addr);
	struct shard *s = &shards[h >> (64 - SHARD_BITS)];

	lock(&s->lock);
	bool ok = put(s, h, b);
	s->totals.frees--;
	unlock(&s->lock);
	if (ok)
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
	for (unsigned i = 0; i < SHARDS; i++)
		for (uint64_t k = 0; k < (uint64_t)1 << shards[i].bits; k++)
			if (shards[i].table[k].addr)
				f(&shards[i].table[k], arg);
}

void blocks_totals(struct totals *t)
{
	*t = (struct totals){0};
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct totals *s = &shards[i].totals;
		t->allocations += s->allocations;
		t->frees += s->frees;
		t->allocated += s->allocated;
		t->live += s->live;
		t->bytes += s->bytes;
	}
}
