/*
 * What the parts of the stack walk share: rules.c, walk.c and places.c.
 */
#ifndef LWSBT_WALK_H
#define LWSBT_WALK_H

#include "preload.h"

#define WORD sizeof(uintptr_t)

/* ---------------------------------------------------------------- the rules kept */

/*
 * A rule in 64 bits:
 *
 *   63    61 60              33 32          17 16          1  0
 *  | kind   | cfa, signed 28   | ra, signed 16| fp, signed 16|0|
 */
static inline uint64_t pack(struct rule r)
{
	return (uint64_t)r.kind << 61 | (uint64_t)(r.cfa & 0xfffffff) << 33 |
		(uint64_t)(uint16_t)r.ra << 17 | (uint64_t)(uint16_t)r.fp << 1;
}

static inline enum rule_kind kind_of(uint64_t p) { return (enum rule_kind)(p >> 61); }
static inline intptr_t cfa_of(uint64_t p) { return (intptr_t)((int64_t)(p << 3) >> 36); }
static inline intptr_t ra_of(uint64_t p) { return (int16_t)(p >> 17); }
static inline intptr_t fp_of(uint64_t p) { return (int16_t)(p >> 1); }

/* A return address and its rule, without a lock: key is the one in the other, so
 * that halves of two entries do not pass for one. */
struct kept {
	uint64_t key, rule;
};

#define KEPT_BITS (sizeof(uintptr_t) > 4 ? 14 : 11)
extern struct kept *kept;
extern uint64_t salt; /* of the modules' epoch: an old entry is nobody's */

/* find_rule returns the packed rule at a return address, and keeps it at k unless that
 * is NULL. */
uint64_t find_rule(uintptr_t pc, uint64_t key, struct kept *k);

static inline struct kept *kept_at(uintptr_t pc)
{
	return &kept[(uint32_t)(pc * 0x9e3779b1u) >> (32 - KEPT_BITS)];
}

static inline uint64_t rule_at(uintptr_t pc, uint64_t now_salt)
{
	uint64_t key = (uint64_t)pc ^ now_salt;
	struct kept *k = kept_at(pc);
	uint64_t rule = __atomic_load_n(&k->rule, __ATOMIC_RELAXED);

	if (LIKELY((__atomic_load_n(&k->key, __ATOMIC_RELAXED) ^ rule) == key))
		return rule;
	return find_rule(pc, key, k);
}

/* ---------------------------------------------------------------- the last stack */

/*
 * The last stack of the thread, outermost frame first. From one allocation to the
 * next most of a stack stays as it is. What a walk finds from a frame outwards
 * depends on the frame's pc, sp and fp, and on the words that it reads. So a walk that
 * comes to a frame that was there the last time, and finds all words of the frames
 * around it as they were, need not go on. That costs a comparison per frame, and
 * none waits for the one before.
 */
#define KEEP 40		/* frames */
#define LOOK 34		/* frames of a whole walk, so that a stack can become less deep */
_Static_assert(LOOK > FRAMES && KEEP > LOOK, "room to either side");

struct word {
	uintptr_t at, value;
};

struct last {
	uint64_t salt;
	unsigned n;
	bool whole;		/* frame 0 is the program's outermost */
	uintptr_t pc[KEEP], sp[KEEP], fp[KEEP];
	uintptr_t ra_at[KEEP];	/* where the pc of the next frame outwards was read */
	uint64_t hash[KEEP];	/* of frames 0 to this one: see stack_hash */
	bool by_fp[KEEP];	/* what comes of it depends on fp */
	uint8_t others[KEEP];	/* where the frame's words end in other */
	struct word other[KEEP / 2]; /* what else was read and counts */
};

extern __thread struct last last __attribute__((tls_model("initial-exec")));

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

static inline uintptr_t word_at(uintptr_t at) { return *(const uintptr_t *)at; }

/* ---------------------------------------------------------------- places */

struct place;

/* walk_new walks, and has the stack at a place, if it can. */
stack_id walk_new(const struct regs *from, uint64_t now_salt, struct place *place);
/* settle makes the last stack, whose innermost depth frames are stack id, that of a
 * place. */
void settle(struct place *p, unsigned depth, stack_id id);
/* check holds every so many stacks against the unwinder's. */
void check(const uintptr_t *pcs, unsigned n, uintptr_t pc);

#endif
