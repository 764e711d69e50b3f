/*
 * lwsbt/profile.h: live memory counted by call path, in a table of fixed size, and dumps of it.
 * See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_PROFILE_H
#define LWSBT_INCLUDE_PROFILE_H

#include "heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The table has a tree of frames, and an entry for each path that holds blocks. The number of an
 * entry does not change while one of its blocks lives. Entry 0 is "all others", the path of no
 * frames: it counts blocks of paths for which the table has no space.
 *
 *   node, a word    | mark | offset of the frame, and 1 | number of the node outside it |
 *                     1 bit                               as many bits as the numbers take
 *
 * A node's number is its index plus 2. Numbers 0 and 1 are the roots of paths of LWSBT_PATH_WHOLE
 * and LWSBT_PATH_CUT. A frame outside the code takes two nodes.
 */
struct lwsbt_entry {
	uint32_t key;		/* internal: flags of 8 bits, size class of 8, innermost node of 16 */
	uint32_t live;		/* number of live blocks */
	size_t bytes;		/* requested for the live blocks */
};

/* What an entry held since the boot. The values stay at their largest number if they would exceed it. */
struct lwsbt_history {
	uint32_t allocations;
	size_t bytes;		/* requested for them */
	size_t peak;		/* the most bytes that were live */
};

/*
 * A block has two words before the program's memory, and the spare bytes of heap.h after it:
 *
 *   true start                         the program's pointer
 *   | size          | check | number  | size bytes ... | spare |
 *     a word          the upper and the lower 16 bits
 *
 * The check covers address, size and number. It fails after a write past the end of the previous
 * block, or before the beginning of this one.
 */
struct lwsbt_block {
	uintptr_t size, tag;
};

#define LWSBT_PROFILE_NODES_MAX 16382
#define LWSBT_PROFILE_ENTRIES_MAX 65534

/*
 * A profile. Set the members of the first group before the first allocation; node and entry are
 * arrays of zeros. Begin with 3 or 4 nodes for each path, and a tenth more of both: see
 * docs/notes/device-heap.md. With history, a path keeps its entry when its last block is freed. The second
 * group may be read at any time.
 */
struct lwsbt_profile {
	struct lwsbt_heap *heap;	/* capture, ctx, port, skip, post; its counters are used, its list is not */
	uintptr_t *node;
	struct lwsbt_entry *entry;
	uint16_t nodes;			/* 16 to LWSBT_PROFILE_NODES_MAX */
	uint16_t entries;		/* 17 to LWSBT_PROFILE_ENTRIES_MAX */
	struct lwsbt_code code;		/* frames elsewhere take two nodes */
	uint32_t sample;		/* mean bytes between sample points, below 2^27; 0: all blocks are counted */
	uint32_t random;		/* seed for sample, not 0; 0: always the same */
	struct lwsbt_history *history;	/* one for each entry, zeros; dumps have the values then. Or NULL */

	uint32_t cut;			/* allocations so far that were counted for an outer part of their path */
	uint32_t failed;		/* allocations so far for which there was no memory */

	size_t left;			/* internal */
	uint32_t dumps;			/* internal: dumps that began */
	uint32_t seen;			/* internal: last value of failed */
	uint8_t low;			/* internal */
};

/*
 * lwsbt_profile_... are malloc, memalign, calloc, realloc and free, like lwsbt_heap_... .
 * Memory without the two words is passed to the allocator unchanged, also if the words were
 * damaged. With LWSBT_CHECK_UNTRACKED in heap->flags, all such memory is reported as damage
 * (LWSBT_DAMAGED_BLOB), and is not freed. The event callback of the port is not called. An
 * allocation takes the lock once, while it looks up its frames, and not during capture.
 */
void *lwsbt_profile_malloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t size,
	const void *caller);
void *lwsbt_profile_memalign(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller);
void *lwsbt_profile_calloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller);
void *lwsbt_profile_realloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q,
	size_t size, const void *caller);
void lwsbt_profile_free(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q);

/*
 * For your own allocator: lwsbt_profile_count counts a block of size bytes for its stack,
 * innermost frame first, and returns the number of the entry. lwsbt_profile_uncount undoes this.
 * base is LWSBT_PATH_WHOLE, or LWSBT_PATH_CUT if outer frames were not captured. Of more than
 * LWSBT_HEAP_DEPTH frames, the innermost are taken.
 */
unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base);
void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size);

/* lwsbt_profile_sampled reports whether to count a block of size bytes: always if p->sample is 0,
 * else with a probability of 1 - exp(-size / sample). [BT-DUMP-5] */
int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size);

/* ------------------------------------------------------------------- dumps */

enum {
	LWSBT_DIFF = 1,		/* only paths that changed since the last dump, if that is complete */
	/* LWSBT_NAMES = 2, of paths.h */
	LWSBT_SORT = 4		/* sorted by path: a third shorter; time grows with the square of the entries */
};

/* The state of dumps, for a whole boot. Initialize it with zeros, and set lines.out and lines.max. */
struct lwsbt_profile_dump {
	struct lwsbt_paths lines;

	struct lwsbt_profile *p;	/* this and the following: internal */
	uint32_t base, blocks, cut;
	size_t bytes;
	uint16_t at;
	uint8_t flags, ended;
};

/*
 * lwsbt_profile_begin begins a dump: it writes ~h#begin, and ~h#heap if the port has numbers.
 * Each call of lwsbt_profile_next writes at most one entry and returns 1. After the last entry it
 * writes ~h#end, removes the entries without blocks, and returns 0. Other threads may allocate and
 * free between the calls: an entry has its values at the time when it is written. Only one dump at
 * a time is possible. flags is a sum of LWSBT_DIFF, LWSBT_NAMES and LWSBT_SORT; why is the reason
 * for the dump, or NULL.
 */
void lwsbt_profile_begin(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);
int lwsbt_profile_next(struct lwsbt_profile_dump *d);

/* lwsbt_profile_dump writes a whole dump. */
void lwsbt_profile_dump(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);

/* lwsbt_low reports whether to dump because memory is low: an allocation failed since the last
 * call, or free, in bytes, has fallen below limit. It reports the latter once, until free was at
 * least 1.25 times limit. Only one thread may call it. */
int lwsbt_low(struct lwsbt_profile *p, size_t free, size_t limit);

#ifdef __cplusplus
}
#endif

#endif
