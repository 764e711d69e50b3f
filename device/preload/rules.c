/*
 * Rules by return address, of walk.c. The unwinder finds for each frame the module, its
 * table, the entry, and runs that: some 300 ns per frame. What comes of it depends on
 * the return address alone, and is two words of the stack and where the caller's
 * frame begins. So it is found once for each return address, packed into 64 bits,
 * and kept.
 */
#include "walk.h"

#ifdef WALKS

struct kept *kept;
uint64_t salt;

void walk_init(void)
{
	kept = pages(sizeof *kept << KEPT_BITS);
}

void walk_forget(void)
{
	__atomic_fetch_add(&salt, 0x9e3779b97f4a7c15u, __ATOMIC_RELEASE);
}

uint64_t find_rule(uintptr_t pc, uint64_t key, struct kept *k)
{
	/* A module that is not listed was loaded since: the table is asked again. */
	uintptr_t table;

	if (!modules_table(pc, &table)) {
		modules_check();
		modules_table(pc, &table);
	}
	struct rule r = {.kind = RULE_NONE};
	if (table)
		/* The call is before the return address, and may be the last of its
		 * function. */
		r = cfi_rule(pc - 1, table);
	if (r.cfa >= 1 << 27 || r.cfa < -(1 << 27))
		r.kind = RULE_OTHER;
	uint64_t p = pack(r);
	if (k) {
		__atomic_store_n(&k->key, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&k->rule, p, __ATOMIC_RELAXED);
		__atomic_store_n(&k->key, key ^ p, __ATOMIC_RELEASE);
	}
	return p;
}

#else

void walk_init(void) {}
void walk_forget(void) {}

#endif
