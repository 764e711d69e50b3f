/*
 * What the files of the profile share.
 */
#ifndef LWSBT_PROFILE_H
#define LWSBT_PROFILE_H

#include "heap.h"

/* Bits of an entry. Only dumps with flags need the last four. */
enum {
	USED = 1,
	CUT = 2,	/* these blocks are of paths that go on further in */
	CHANGED = LWSBT_EXTRAS ? 4 : 0,		/* since the last dump began */
	WRITTEN = LWSBT_EXTRAS ? 8 : 0,		/* of the dump that is written: changed before it */
	DONE = LWSBT_EXTRAS ? 16 : 0,		/* and it has been written */
	KNOWN = LWSBT_EXTRAS ? 32 : 0		/* the path was written with its frames */
};

/* A node of the tree. */
#define MARK ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 1))	/* some block was counted below it since it was cleared */
#define EMPTY 0		/* never used */
#define REMOVED 1	/* searches go on behind it */
enum { FIRST = 2 };	/* number of the first node */

/* lwsbt_parent_bits returns how many bits the number of a node takes. */
static inline unsigned lwsbt_parent_bits(const struct lwsbt_profile *p)
{
	return lwsbt_significant(p->nodes + FIRST - 1u);
}

/* An escaped frame is three nodes: the upper and the lower half of its address, and 1, and this. */
static inline uintptr_t lwsbt_escape(unsigned bits)
{
	return ~MARK >> bits;
}

#define HALF (4 * sizeof(uintptr_t))	/* bits */

static inline unsigned lwsbt_parent(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	return (unsigned)(p->node[node - FIRST] & (((uintptr_t)1 << bits) - 1));
}

static inline uintptr_t lwsbt_value(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	return (p->node[node - FIRST] & ~MARK) >> bits;
}

/* lwsbt_outer returns the node of the frame outside that of node, which is at least FIRST. */
unsigned lwsbt_outer(const struct lwsbt_profile *p, unsigned node, unsigned bits);

#endif
