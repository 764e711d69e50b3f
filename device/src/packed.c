/*
 * Packed stacks, with LWSBT_PACKED: what heaps have in front of blocks in place of a blob.
 *
 *   | depth | short | count of the size | size  | frame | frame | ...
 *     5 bits  1       6                   count   width   width
 *
 * With short, a frame is its offset in the code [BT-CODE-1], in as many bits as the length of the code takes. All
 * ones are no offset: the address follows. Without short, frames are addresses; blocks that were allocated before
 * the code was set have these. There are no spill bits. Readers of memory images need the code ranges.
 */
#include "heap.h"

#if LWSBT_PACKED

enum { WIDTH_MAX = 28 };	/* offsets are below 2^27 */

/* units returns the length of the code; more than any offset. */
static lwsbt_word units(const struct lwsbt_code *c)
{
	lwsbt_word sum = 0;

	for (unsigned i = 0; i < c->count; i++)
		sum += c->range[i].end - c->range[i].start;
	return sum >> c->shift;
}

static unsigned width_of(const struct lwsbt_code *c)
{
	unsigned width = lwsbt_significant(units(c));

	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

void lwsbt_pack(struct lwsbt_writer *w, const struct lwsbt_code *c, const struct lwsbt_stack *s)
{
	unsigned count = lwsbt_significant(s->size), width = c ? width_of(c) : 0;

	lwsbt_put(w, s->depth << 7 | (c ? 1u : 0u) << 6 | (count & 63), 5 + 1 + 6);
	lwsbt_put(w, s->size, count);
	for (unsigned i = 0; i < s->depth; i++) {
		uint32_t x = c ? lwsbt_offset(c, s->pc[i]) : LWSBT_NO_OFFSET;

		lwsbt_put(w, x, width); /* of LWSBT_NO_OFFSET all are ones */
		if (x == LWSBT_NO_OFFSET)
			lwsbt_put(w, s->pc[i], LWSBT_WORD_BITS);
	}
}

int lwsbt_unpack(struct lwsbt_reader *r, const struct lwsbt_code *c, struct lwsbt_stack *s)
{
	unsigned head = (unsigned)lwsbt_next(r, 5 + 1 + 6), width = 0, count = lwsbt_full_count(head & 63);
	lwsbt_word limit = 0;
	int offsets = head >> 6 & 1;

	s->depth = head >> 7;
	s->end = 0;
	s->size = 0;
	if (count > LWSBT_WORD_BITS || (offsets && !c))
		return 0;
	s->size = lwsbt_next(r, count);
	if (offsets) {
		width = width_of(c);
		limit = units(c);
	}
	for (unsigned i = 0; i < s->depth; i++) {
		lwsbt_word v = lwsbt_next(r, width);

		if (v == ((lwsbt_word)1 << width) - 1)
			s->pc[i] = lwsbt_next(r, LWSBT_WORD_BITS);
		else if (v < limit)
			s->pc[i] = lwsbt_address(c, (uint32_t)v);
		else
			return 0;
	}
	return r->fault == LWSBT_OK;
}

#endif
