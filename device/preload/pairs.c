/*
 * What an allocation is, a stack and a size, as a number: programs have many
 * allocations and few such pairs. Looking one up takes no lock of its own, but wants
 * that of a shard of blocks: pairs_sweep is called with all of those, when nobody
 * looks and all numbers in use are known. So numbers of pairs that no live
 * allocation has are used again, and the memory is bounded by the most pairs that
 * were live at a time.
 */
#include <string.h>

#include "preload.h"

#define FIRST_BITS 11

uint64_t *pair_list[PAIRS >> PAIR_LIST_BITS];
bool pairs_crowded;

static lock_t add_lock;
static uint32_t *find;		/* numbers, by the hash of the pair; 0: free */
static uint32_t bits;		/* of find's places */
static uint32_t used;		/* numbers */
static uint32_t next = 1;	/* never used so far */
static uint32_t spare;		/* used no more: each has the following one; 0: none */

static inline uint64_t place(uint64_t pair)
{
	pair *= 0x9e3779b97f4a7c15u;
	return (pair ^ pair >> 32) * 0x9e3779b97f4a7c15u >> (64 - bits);
}

bool pairs_init(void)
{
	bits = FIRST_BITS;
	find = pages(sizeof *find << bits);
	return find;
}

/* look returns the number of a pair, or 0 and the free place for it. */
static inline uint32_t look(uint64_t pair, uint64_t *free)
{
	uint64_t mask = ((uint64_t)1 << bits) - 1, at = place(pair);
	uint32_t n;

	while ((n = __atomic_load_n(&find[at], __ATOMIC_ACQUIRE)) && *pair_at(n) != pair)
		at = (at + 1) & mask;
	*free = at;
	return n;
}

static __attribute__((noinline)) uint32_t add(uint64_t pair)
{
	uint64_t at;

	lock(&add_lock);
	uint32_t n = look(pair, &at);
	if (n)
		goto out;
	if (used * 4 >= (uint32_t)3 << bits) {
		__atomic_store_n(&pairs_crowded, true, __ATOMIC_RELAXED);
		if (used + 1 >= (uint32_t)1 << bits)
			goto out;
	}
	if (spare) {
		n = spare;
		spare = (uint32_t)*pair_at(n);
	} else if (next < PAIRS - 1) {
		uint64_t **block = &pair_list[next >> PAIR_LIST_BITS];
		if (!*block && !(*block = keep(sizeof **block << PAIR_LIST_BITS)))
			goto out;
		n = next++;
	} else
		goto out;
	*pair_at(n) = pair;
	used++;
	__atomic_store_n(&find[at], n, __ATOMIC_RELEASE);
out:
	unlock(&add_lock);
	return n;
}

uint32_t pair_number(uint64_t pair)
{
	uint64_t at;
	uint32_t n = look(pair, &at);

	return LIKELY(n) ? n : add(pair);
}

uint32_t *pairs_marks(size_t *bytes)
{
	*bytes = (next + 31) / 32 * sizeof(uint32_t);
	return pages(*bytes);
}

void pairs_sweep(const uint32_t *marks)
{
	uint32_t live = 0, more = FIRST_BITS;

	for (uint32_t n = 1; n < next; n++)
		live += marks[n / 32] >> n % 32 & 1;
	while (live * 2 >= (uint32_t)3 << more >> 2)
		more++;
	if (more != bits) {
		uint32_t *table = pages(sizeof *find << more);
		if (!table)
			return;
		pages_free(find, sizeof *find << bits);
		find = table;
		bits = more;
	} else
		memset(find, 0, sizeof *find << bits);
	used = spare = 0;
	for (uint32_t n = next - 1; n; n--) {
		if (!(marks[n / 32] >> n % 32 & 1)) {
			*pair_at(n) = spare;
			spare = n;
			continue;
		}
		uint64_t mask = ((uint64_t)1 << bits) - 1, at = place(*pair_at(n));
		while (find[at])
			at = (at + 1) & mask;
		find[at] = n;
		used++;
	}
	pairs_crowded = false;
}
