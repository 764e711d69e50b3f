/*
 * Rules by return address. A rule says where the caller's frame begins, and which two words
 * of the stack hold its pc and frame pointer. It depends on the return address alone. To find
 * a rule, the module, its table and the entry have to be found, and the entry to be run. So
 * a rule is found once for each return address, packed into 64 bits, and kept.
 */
#include <string.h>

#include "walk.h"

/* ---------------------------------------------------------------- forgetting */

void walk_begin(struct own *o)
{
	o->before = 0;
	o->last.n = 0;
	for (unsigned i = 0; i < RING_PLACES; i++) {
		o->place[i].words = 0;
		o->place[i].next = 0;
	}
}

/* ---------------------------------------------------------------- readable memory */

/* lwsbt_in_code reports whether n bytes of code can be read: see capture_code.h. */
int lwsbt_in_code(uintptr_t at, uintptr_t n)
{
	return readable(at) && readable(at + n - 1);
}

#define FAR ((uintptr_t)1 << 20)

bool reach(uintptr_t sp, uintptr_t *hi, uintptr_t at)
{
	if (at - sp > FAR || (at > *hi && at - *hi > FAR))
		return false;
	for (; *hi < at; *hi += PAGE)
		if (!readable(*hi))
			return false;
	return true;
}

#ifdef WALKS

/* ---------------------------------------------------------------- rules */

struct kept *kept;

bool walk_start(void)
{
	kept = pages(sizeof *kept << KEPT_BITS);
	return kept;
}

static uint64_t pack(struct rule r)
{
	return (uint64_t)r.kind << 61 | (uint64_t)(r.cfa & 0xfffffff) << 33 |
		(uint64_t)(uint16_t)r.ra << 17 | (uint64_t)(uint16_t)r.fp << 1;
}

/* key_of_module: see struct ring_table. */
static uint64_t key_of_module(uintptr_t start)
{
	const char *page = (const char *)start;
	uint64_t h = 0, w;

	for (size_t i = 0; i < PAGE; i += sizeof w) {
		memcpy(&w, page + i, sizeof w);
		h = (h ^ w) * RING_CHECK;
		h ^= h >> 32;
	}
	return h;
}

/* made_rule returns the rule that btrecord made for a return address, NONE if there is none. *later: there
 * may be one later. */
static uint64_t made_rule(uintptr_t pc, const struct module *m, bool *later)
{
	uint32_t n = tables ? __atomic_load_n(&tables->count, __ATOMIC_ACQUIRE) : 0;
	const struct ring_table *t = (const struct ring_table *)(const void *)(tables + 1);

	*later = cfi_lacks(m);
	if (!n || !*later || !readable(m->start))
		return 0;
	uint64_t key = key_of_module(m->start);
	for (uint32_t i = 0; i < n && i < RING_TABLES; i++, t++) {
		if (t->key != key)
			continue;
		const uint64_t *e = (const uint64_t *)(const void *)((const char *)tables + t->at);
		uint32_t lo = 0, hi = t->number;
		*later = false;
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;
			if (e[2 * mid] < pc - m->base)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo < t->number && e[2 * lo] == pc - m->base ? e[2 * lo + 1] : 0;
	}
	return 0;
}

NOINLINE uint64_t find_rule(struct own *o, uintptr_t pc, uint64_t key, bool before)
{
	struct module m;
	struct rule r = {.kind = RING_RULE_NONE};
	bool later = false;

	if (!module_at(pc - before, &m))
		return pack(r);
	bool told = module_tell(o, &m);
	if (m.table)
		r = cfi_rule(pc - before, &m, &o->work);
	if (r.cfa >= 1 << 27 || r.cfa < -(1 << 27))
		r.kind = RING_RULE_OTHER;
	uint64_t p = pack(r);
	if (before && r.kind == RING_RULE_NONE)
		p = made_rule(pc, &m, &later);
	if (before && told && !later) {
		struct kept *k = kept_at(pc);
		__atomic_store_n(&k->key, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&k->rule, p, __ATOMIC_RELEASE);
		__atomic_store_n(&k->key, key ^ p, __ATOMIC_RELEASE);
	}
	return p;
}

#endif
