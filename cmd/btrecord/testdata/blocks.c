/*
 * Holds blocks.c and pairs.c against an array: random allocations and frees at
 * addresses near each other and far apart, of which some are odd, and some have a tag
 * in their highest byte. Prints how many there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "preload.h"

void lock_slow(lock_t *l)
{
	(void)l;
	abort(); /* one thread */
}

static size_t mapped, limit = SIZE_MAX;

void *pages(size_t n)
{
	if (mapped + n > limit)
		return NULL;
	mapped += n;
	return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void pages_free(void *p, size_t n)
{
	mapped -= n;
	munmap(p, n);
}

void *keep(size_t n)
{
	return mapped + n > limit ? NULL : (mapped += n, calloc(1, n));
}

#define SLOTS 200000

static struct slot {
	bool live;
	uint64_t size;
	stack_id stack;
} slots[SLOTS];
static struct totals want;
static uint64_t peak, seen;

static uint32_t rnd(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return (uint32_t)(x >> 16);
}

static uintptr_t addr_of(unsigned k)
{
	uintptr_t a = (uintptr_t)0x1000000 + (k < SLOTS / 4 ? k * 8 : k < SLOTS / 2 ? k * 16 : k < SLOTS * 3 / 4 ? k * 48 : k * 5000);

	if (k > SLOTS / 8 && k % 16 == 3)
		a += 1 + k / 16 % 7;
	if (k > SLOTS / 8 && k % 16 == 5 && sizeof a > 4)
		a |= (uintptr_t)(k / 16 % 255 + 1) << (sizeof a * 8 - 8);
	return a;
}

static void fail(const char *what, unsigned k)
{
	fprintf(stderr, "%s: slot %u, address %#zx\n", what, k, (size_t)addr_of(k));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = addr_of(*(const unsigned *)b);
	return x < y ? -1 : x > y;
}

static unsigned order[SLOTS];

static int by_addr(const void *a, const void *b)
{
	uintptr_t x = addr_of(*(const unsigned *)a), y = addr_of(*(const unsigned *)b);
	return x < y ? -1 : x > y;
}

static void one(const struct block *b, void *arg)
{
	unsigned *k = bsearch(&b->addr, order, SLOTS, sizeof *order, compare);

	(void)arg;
	if (!k || !slots[*k].live || slots[*k].size != b->size || slots[*k].stack != b->stack)
		fail("listed, and not live or another", k ? *k : 0);
	seen++;
}

static void check(void)
{
	struct totals t;

	blocks_lock();
	seen = 0;
	blocks_each(one, NULL);
	blocks_totals(&t);
	blocks_unlock();
	if (seen != want.live || memcmp(&t, &want, sizeof t) || blocks_live != want.bytes || blocks_peak != peak)
		fail("the totals differ", 0);
}

static void free_slot(unsigned k)
{
	struct block b;
	bool was = blocks_take(addr_of(k), &b);

	if (was != slots[k].live)
		fail(was ? "freed, and was not live" : "is not there", k);
	if (!was)
		return;
	if (b.addr != addr_of(k) || b.size != slots[k].size || b.stack != slots[k].stack)
		fail("another is there", k);
	want.frees++;
	if (rnd() % 8 == 0) { /* as a realloc that failed */
		blocks_back(&b);
		want.frees--;
		return;
	}
	slots[k].live = false;
	want.live--;
	want.bytes -= b.size;
}

static void allocate(unsigned k, unsigned pairs)
{
	struct slot *s = &slots[k];
	size_t size = rnd() % 997 * (rnd() % pairs);
	stack_id stack = rnd() % 8 ? rnd() % 50 : 0xffffff - rnd() % pairs;

	if (sizeof size == 4)
		size %= 4096;
	else if (k % 1024 == 9)
		size = SIZE_MAX - k; /* more than there is room for */
	want.allocations++;
	if (s->live) { /* its free was not seen */
		want.live--;
		want.bytes -= s->size;
	}
	s->live = true;
	s->size = (uint64_t)size >> 40 ? ((uint64_t)1 << 40) - 1 : size;
	s->stack = stack;
	want.allocated += s->size;
	want.live++;
	want.bytes += s->size;
	if (want.bytes > peak)
		peak = want.bytes;
	if (!blocks_add(addr_of(k), size, stack))
		fail("cannot be added", k);
}

int main(void)
{
	for (unsigned k = 0; k < SLOTS; k++)
		order[k] = k;
	qsort(order, SLOTS, sizeof *order, by_addr);
	if (!blocks_init())
		return 2;
	/* few, many and few again, of few and of many pairs */
	static const unsigned most[] = {1000, SLOTS, SLOTS, 300, SLOTS, 50000}, pairs[] = {2, 2, 3000, 3, 3000, 1000};
	for (unsigned phase = 0; phase < 6; phase++) {
		unsigned from = rnd() % (SLOTS - most[phase] + 1);
		for (unsigned i = 0; i < 200000; i++) {
			unsigned k = from + rnd() % most[phase];
			if (slots[k].live && rnd() % 64)
				free_slot(k);
			else
				allocate(k, pairs[phase]);
			if (rnd() % 16 == 0)
				free_slot(rnd() % SLOTS);
		}
		check();
	}
	/* Pages in which all that can be is live. */
	for (unsigned k = 0; k < SLOTS; k++)
		if (!slots[k].live)
			allocate(k, 2);
	check();
	/* Numbers of pairs that are gone are used again. */
	for (unsigned k = 0; k < SLOTS; k++)
		while (slots[k].live)
			free_slot(k);
	size_t before = mapped;
	for (unsigned i = 0; i < 1000000; i++) {
		allocate(1, 1u << 20);
		while (slots[1].live)
			free_slot(1);
	}
	check();
	if (mapped > before + (1 << 20))
		fail("too much memory", 1);
	/* Without memory, what cannot be added is not there. */
	limit = mapped;
	unsigned more = 0;
	for (unsigned k = 0; k < SLOTS; k++) {
		struct block b;
		bool ok = blocks_add(addr_of(k) + ((uintptr_t)1 << 30), 1u << 20 | k, k);
		if (blocks_take(addr_of(k) + ((uintptr_t)1 << 30), &b) != ok)
			fail("added without memory", k);
		more += !ok;
	}
	if (!more || more == SLOTS)
		fail("added with no memory, or nothing", 0);
	printf("%llu allocations, %u not added\n", (unsigned long long)want.allocations, more);
	return 0;
}
