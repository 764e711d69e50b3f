/*
 * What the files of the profile share.
 */
#ifndef LWSBT_PROFILE_H
#define LWSBT_PROFILE_H

#include "heap.h"

/*
 * The key of an entry. Only dumps with flags need the last four flags.
 *
 *   | flags | size class | node |
 *     8       8            16 bits
 *
 * With sample, there are 4 size classes for each power of 2; else the class is 0.
 */
enum {
	NODE = 0xffff,
	USED = 1 << 24,
	CUT = 2 << 24,	/* these blocks are of paths that go on further in */
	PATH = 0x3ffffff,	/* node, class, USED and CUT: entries differ in these */
	CHANGED = LWSBT_EXTRAS ? 4 << 24 : 0,	/* since the last dump began */
	WRITTEN = LWSBT_EXTRAS ? 8 << 24 : 0,	/* of the dump that is written: changed before it */
	DONE = LWSBT_EXTRAS ? 16 << 24 : 0,	/* and it has been written */
	KNOWN = LWSBT_EXTRAS ? 32 << 24 : 0	/* the path was written with its frames */
};

#define GOLDEN 0x9e3779b1u	/* 2^32 by the golden ratio: what it multiplies is spread */

/* lwsbt_count_path counts a block of size bytes for the n frames at pc, and returns the number of the entry.
 * base is LWSBT_PATH_WHOLE or LWSBT_PATH_CUT. */
unsigned lwsbt_count_path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, size_t size, unsigned base);

/* A node of the tree. */
#define MARK_BIT (8 * sizeof(uintptr_t) - 1)
#define MARK ((uintptr_t)1 << MARK_BIT)
#define EMPTY 0		/* never used */
#define REMOVED 1	/* searches go on behind it */
enum { FIRST_NODE = 2 };	/* number of the first node */

/* lwsbt_marked returns the mark of the nodes that were used since the last dump began. It changes with each dump, so
 * that no node is marked when a dump begins. */
static inline uintptr_t lwsbt_marked(const struct lwsbt_profile *p) { return (uintptr_t)p->dumps << MARK_BIT; }

/* lwsbt_parent_bits returns how many bits the number of a node takes. */
static inline unsigned lwsbt_parent_bits(const struct lwsbt_profile *p)
{
	return lwsbt_width(p->nodes + FIRST_NODE - 1u);
}

#define HALF (4 * sizeof(uintptr_t))	/* bits */
#define LOW_HALF (((uintptr_t)1 << HALF) - 1)

/* A frame outside the code is two nodes: the upper half of its address, and 1; in it the lower half, and this. Values
 * of other frames are below this. */
static inline uintptr_t lwsbt_escape(unsigned bits)
{
	return (MARK >> bits) - ((uintptr_t)1 << HALF);
}

static inline uintptr_t *lwsbt_node(const struct lwsbt_profile *p, unsigned number)
{
	uintptr_t *node = p->node + number;

	return node - FIRST_NODE;
}

static inline unsigned lwsbt_parent(const struct lwsbt_profile *p, unsigned number, unsigned bits)
{
	return (unsigned)(*lwsbt_node(p, number) & (((uintptr_t)1 << bits) - 1));
}

static inline uintptr_t lwsbt_value(const struct lwsbt_profile *p, unsigned number, unsigned bits)
{
	return (*lwsbt_node(p, number) & ~MARK) >> bits;
}

/* lwsbt_mark marks a node, and returns it without the mark. */
static inline uintptr_t lwsbt_mark(struct lwsbt_profile *p, unsigned number)
{
	uintptr_t *node = lwsbt_node(p, number), n = *node & ~MARK;

	*node = n | lwsbt_marked(p);
	return n;
}

/* lwsbt_outer returns the node outside the frame of node, which is at least FIRST_NODE, and sets *pc to the frame's
 * address. It marks the nodes of the frame. */
unsigned lwsbt_outer(struct lwsbt_profile *p, unsigned node, lwsbt_word *pc);

#endif
