/*
 * The choice between literals and deltas, which is most of what encoding costs.
 *
 * Search lws takes a base of index 0 for "none found", and counts two spill bits too
 * few when it weighs a delta against a literal. Search best takes the literal of two
 * that are equally long, unless its count of 64 is one that lws misreads. Of equally
 * near bases, both take the farthest. [BT-SRCH-1, BT-SRCH-2]
 */
#include "internal.h"

#define TOP (LWSBT_WORD_BITS - 1)

/* form returns how frame n is written, and sets *v to the address or the difference. */
static unsigned form(const lwsbt_word *pc, unsigned n, unsigned how, lwsbt_word *v)
{
	/* modulo 2^32 is not for encoders, as decoders need not know the word [BT-DELTA-6] */
	int lws = (how & LWSBT_SEARCH_LWS) != 0, modular = LWSBT_WORD_BITS == 64 && !lws;
	lwsbt_word at = pc[n], best = (lwsbt_word)~(lwsbt_word)0;
	unsigned nearest = 0, literal = lwsbt_significant(at), delta, below;

	/* from the farthest back, n at the beginning of a stack, to 1 */
	for (unsigned back = n < BACK_MAX ? n : BACK_MAX; back > 0; back--) {
		lwsbt_word base = pc[n - back], d = at - base;

		if (modular ? d >> TOP != 0 : at < base)
			d = 0 - d;
		if (d < best) {
			best = d;
			nearest = back;
		}
	}
	*v = at;
	delta = lwsbt_significant(best) + DELTA_LEAD - LITERAL_LEAD;
	/* what lws counts is 2 less than it is */
	if (lws ? nearest == n || nearest == 0 || delta >= literal + 2 : delta >= literal + (literal == 64))
		return 0;
	/* of two equal addresses, lws subtracts */
	below = modular ? best == 0 || at - pc[n - nearest] != best : at <= pc[n - nearest];
	*v = best;
	return FORM_DELTA | (nearest - 1) << 3 | below << 1;
}

size_t lwsbt_choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *forms)
{
	size_t bits = DEPTH_BITS;

	for (unsigned n = 0; n < depth; n++) {
		lwsbt_word v;
		unsigned f = form(pc, n, how, &v);

		forms[n] = (uint8_t)f;
		bits += f ? (size_t)DELTA_LEAD : (size_t)LITERAL_LEAD;
		bits += COUNT_BITS + lwsbt_significant(v) + SPILL;
	}
	return bits;
}
