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

#if !LWSBT_FAST

LWSBT_INLINE unsigned form_of(const lwsbt_word *pc, unsigned n, unsigned how, lwsbt_word *v)
{
	/* modulo 2^32 is not for encoders, as decoders need not know the word [BT-DELTA-6] */
	int lws = LWSBT_SEARCHES && (how & LWSBT_SEARCH_LWS), modular = LWSBT_WORD_BITS == 64 && !lws;
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

unsigned lwsbt_form(const lwsbt_word *pc, unsigned n, unsigned how, lwsbt_word *v)
{
	return form_of(pc, n, how, v);
}

size_t lwsbt_choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form)
{
	size_t bits = DEPTH_BITS;

	for (unsigned n = 0; n < depth; n++) {
		lwsbt_word v;
		unsigned f = form_of(pc, n, how, &v);

		form[n] = (uint8_t)f;
		bits += f ? (size_t)DELTA_LEAD : (size_t)LITERAL_LEAD;
		bits += COUNT_BITS + lwsbt_significant(v) + SPILL;
	}
	return bits;
}

#else

/*
 * nearest_apart returns the place in pc of the frame nearest to frame n >= 1, and its
 * difference in *distance. If modular, differences are modulo 2^64.
 */
static inline const lwsbt_word *nearest_apart(const lwsbt_word *pc, unsigned n, int modular,
	lwsbt_word *distance)
{
	const lwsbt_word *base = pc + (n > BACK_MAX ? n - BACK_MAX : 0), *end = pc + n, *past = base + 1;
	lwsbt_word v = pc[n], best = (lwsbt_word)~(lwsbt_word)0;

	do {
		lwsbt_word b = *base++, d = v - b;

		if (modular ? d >> TOP != 0 : v < b)
			d = 0 - d;
		if (d < best) {
			best = d;
			past = base;
		}
	} while (base != end);
	*distance = best;
	return past - 1;
}

/*
 * Here, to choose is to compute alone: a branch that depends on addresses is one that
 * a processor guesses wrong.
 *
 * weigh weighs a literal v against a delta from the base, back frames before it,
 * and returns what to write.
 */
static inline unsigned weigh(lwsbt_word v, lwsbt_word delta, unsigned below, unsigned base,
	unsigned back, unsigned how)
{
	lwsbt_word literal;
	unsigned wins;

	/* The literal without the bits that a delta must save, 4 as search lws
	 * reckons. Of two numbers, the first has fewer significant bits if it is less
	 * than what the second has beside it. */
	if (how & LWSBT_SEARCH_LWS)
		literal = v >> 4;
	else
		literal = v >> (DELTA_LEAD - LITERAL_LEAD - (unsigned)(v >> TOP));
	delta |= 1;
	wins = (literal & ~delta) > delta;
	wins &= base >= (how & LWSBT_SEARCH_LWS);
	return (FORM_DELTA | back << 3 | below << 1) & (0u - wins);
}

/* min returns the smaller of two, without a branch. */
static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/*
 * rank puts the difference of v and base, both times BACK_MAX, above the base's
 * index i: the smallest of all ranks is that of the nearest base, and of equal
 * ones of the farthest back.
 */
static inline uint64_t rank(uint64_t v, uint64_t base, uint64_t i)
{
	uint64_t below = 0 - (uint64_t)(v < base);

	return ((v - base) ^ below) - below + i;
}

/* nearest returns the index of the frame nearest to frame n >= 1, of addresses
 * whose top 3 bits are the same. scaled are all, times BACK_MAX. */
LWSBT_INLINE unsigned nearest(const uint64_t *scaled, unsigned n)
{
	uint64_t v = scaled[n], best;
	const uint64_t *b;

	if (n < BACK_MAX) {
		best = rank(v, scaled[0], 0);
		for (unsigned i = 1; i < n; i++)
			best = min(best, rank(v, scaled[i], i));
		return (unsigned)best % BACK_MAX;
	}
	b = scaled + n - BACK_MAX;
	best = min(min(min(rank(v, b[0], 0), rank(v, b[1], 1)), min(rank(v, b[2], 2), rank(v, b[3], 3))),
		min(min(rank(v, b[4], 4), rank(v, b[5], 5)), min(rank(v, b[6], 6), rank(v, b[7], 7))));
	return n - BACK_MAX + (unsigned)best % BACK_MAX;
}

LWSBT_INLINE size_t choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form,
	int measured)
{
	int modular = !(how & LWSBT_SEARCH_LWS);
	size_t bits = DEPTH_BITS;
	unsigned n;
	uint64_t scaled[LWSBT_DEPTH_MAX], differ = 0;

	for (n = 0; n < depth; n++) {
		differ |= pc[n] ^ pc[0];
		scaled[n] = pc[n] * BACK_MAX;
	}
	for (n = 0; n < depth; n++) {
		lwsbt_word v = pc[n], d;
		unsigned below, base, f = 0;

		if (n > 0) {
			base = differ >> 61 == 0 ? nearest(scaled, n) : (unsigned)(nearest_apart(pc, n, modular, &d) - pc);
			d = v - pc[base];
			/* of two equal addresses, lws subtracts */
			below = modular ? d == 0 || d >> TOP != 0 : v <= pc[base];
			d = (d ^ (0 - (lwsbt_word)below)) + below;
			f = weigh(v, d, below, base, n - 1 - base, how);
			v ^= (v ^ d) & (0 - (lwsbt_word)(f >> 7));
		}
		form[n] = (uint8_t)f;
		if (measured)
			bits += LITERAL_LEAD + ((DELTA_LEAD - LITERAL_LEAD) & (0u - (f >> 7))) +
				COUNT_BITS + lwsbt_significant(v) + SPILL;
	}
	return bits;
}

size_t lwsbt_choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form)
{
	return choose(pc, depth, how, form, 1);
}

void lwsbt_choose_only(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form)
{
	if (how & LWSBT_SEARCH_LWS) /* code of its own for each search, without branches on it */
		choose(pc, depth, LWSBT_SEARCH_LWS, form, 0);
	else
		choose(pc, depth, LWSBT_SEARCH_BEST, form, 0);
}

#endif
