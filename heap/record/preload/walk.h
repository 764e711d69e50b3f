/*
 * What the parts of the stack walk share: rules.c, walk.c and places.c.
 */
#ifndef LWSBT_WALK_H
#define LWSBT_WALK_H

#include "preload.h"

/* ---------------------------------------------------------------- the rules kept */

/* A rule in 64 bits, as in ring.h. */
static inline enum ring_rule kind_of(uint64_t p) { return (enum ring_rule)(p >> 61); }
static inline intptr_t cfa_of(uint64_t p) { return (intptr_t)((int64_t)(p << 3) >> 36); }
static inline intptr_t ra_of(uint64_t p) { return (int16_t)(p >> 17); }
static inline intptr_t fp_of(uint64_t p) { return (int16_t)(p >> 1); }
static inline bool by_code(uint64_t p) { return p & 1; }

/* A return address and its rule, of all threads: key is the one in the other, so that
 * halves of two entries do not pass for one. */
struct kept {
	uint64_t key, rule;
};
extern struct kept *kept;

#define KEPT_BITS (sizeof(uintptr_t) > 4 ? 14 : 11)

/* find_rule returns the packed rule of pc, and keeps it, if it is of a module. before:
 * pc is a return address; the call is before it, and may be the last of its function. */
uint64_t find_rule(struct own *o, uintptr_t pc, uint64_t key, bool before);

static inline uint64_t key_of(uintptr_t pc, uint64_t now_salt)
{
	return pc ^ now_salt * 0x9e3779b97f4a7c15u;
}

static inline struct kept *kept_at(uintptr_t pc)
{
	return &kept[(uint32_t)(pc * 0x9e3779b1u) >> (32 - KEPT_BITS)];
}

static inline uint64_t rule_at(struct own *o, uintptr_t pc, uint64_t now_salt)
{
	uint64_t key = key_of(pc, now_salt);
	struct kept *k = kept_at(pc);
	uint64_t rule = __atomic_load_n(&k->rule, __ATOMIC_ACQUIRE);

	if (LIKELY((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ rule) == key))
		return rule;
	return find_rule(o, pc, key, true);
}

/* ---------------------------------------------------------------- reading */

static inline uintptr_t word_at(uintptr_t at) { return *(const uintptr_t *)at; }

/* bare returns a return address without its signature, if it has one. */
static inline uintptr_t bare(uintptr_t word)
{
#if defined(__aarch64__)
	register uintptr_t x30 __asm__("x30") = word;
	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return word;
#endif
}

/* reach has memory from sp on checked up to at, and reports whether all of it can be
 * read. hi is where what was checked so far ends. */
bool reach(uintptr_t sp, uintptr_t *hi, uintptr_t at);

/* ---------------------------------------------------------------- walks */

/* walk_new walks, and reports whether the thread's last stack is this one now. */
bool walk_new(struct own *o, const struct regs *from, uint64_t now_salt, struct stack *s);

#endif
