/*
 * The choice between literals and deltas, which is most of what encoding costs.
 */
#include "internal.h"

#if defined(__GNUC__) && LWSBT_FAST
#define ALWAYS_INLINE __attribute__((always_inline)) static inline
#else
#define ALWAYS_INLINE static inline
#endif

#define TOP (LWSBT_WORD_BITS - 1)

/*
 * form_of weighs a literal v against a delta from the base, back frames before
 * it, and returns what to write. Search lws takes a base of index 0 for "none
 * found", and counts two spill bits too few. Search best takes the literal of
 * two that are equally long, unless its count of 64 is one that lws misreads.
 * [BT-SRCH-1, BT-SRCH-2]
 */
static inline unsigned form_of(lwsbt_word v, lwsbt_word delta, unsigned below, unsigned base,
	unsigned back, unsigned how)
{
	lwsbt_word literal;
	unsigned wins;

	/* The literal without the bits that a delta must save, 4 as search lws
	 * reckons. Of two numbers, the first has fewer significant bits if it is less
	 * than what the second has beside it. */
	if (how & LWSBT_SEARCH_LWS)
		literal = v >> 4;
	else if (LWSBT_WORD_BITS == 64)
		literal = v >> (DELTA_LEAD - LITERAL_LEAD - (unsigned)(v >> TOP));
	else
		literal = v >> (DELTA_LEAD - LITERAL_LEAD);
	delta |= 1;
	wins = (literal & ~delta) > delta;
	wins &= base >= (how & LWSBT_SEARCH_LWS);
	return (FORM_DELTA | back << 3 | below << 1) & (0u - wins);
}

#if LWSBT_FAST

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
ALWAYS_INLINE unsigned nearest(const uint64_t *scaled, unsigned n)
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

#endif

/*
 * nearest_apart returns the index of the frame nearest to frame n >= 1, of any
 * addresses. If modular, differences are modulo 2^64.
 */
static unsigned nearest_apart(const lwsbt_word *pc, unsigned n, int modular)
{
	unsigned i = n > BACK_MAX ? n - BACK_MAX : 0, at = i;
	lwsbt_word v = pc[n], best = (lwsbt_word)~(lwsbt_word)0, d;

	for (; i < n; i++) {
		d = v - pc[i];
		if (modular ? d >> TOP != 0 : v < pc[i])
			d = 0 - d;
		if (d < best) {
			best = d;
			at = i;
		}
	}
	return at;
}

ALWAYS_INLINE size_t choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form,
	int measured)
{
	/* modulo 2^32 is not for encoders, as decoders need not know the word [BT-DELTA-6] */
	int modular = LWSBT_WORD_BITS == 64 && !(how & LWSBT_SEARCH_LWS);
	size_t bits = DEPTH_BITS;
	unsigned n;
#if LWSBT_FAST
	uint64_t scaled[LWSBT_DEPTH_MAX], differ = 0;

	for (n = 0; n < depth; n++) {
		differ |= pc[n] ^ pc[0];
		scaled[n] = pc[n] * BACK_MAX;
	}
#endif
	for (n = 0; n < depth; n++) {
		lwsbt_word v = pc[n], d;
		unsigned below, base, f = 0;

		if (n > 0) {
#if LWSBT_FAST
			base = differ >> 61 == 0 ? nearest(scaled, n) : nearest_apart(pc, n, modular);
#else
			base = nearest_apart(pc, n, modular);
#endif
			d = v - pc[base];
			/* of two equal addresses, lws subtracts */
			below = modular ? d == 0 || d >> TOP != 0 : v <= pc[base];
			d = (d ^ (0 - (lwsbt_word)below)) + below;
			f = form_of(v, d, below, base, n - 1 - base, how);
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

#if LWSBT_FAST
void lwsbt_choose_only(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form)
{
	if (how & LWSBT_SEARCH_LWS) /* code of its own for each search, without branches on it */
		choose(pc, depth, LWSBT_SEARCH_LWS, form, 0);
	else
		choose(pc, depth, LWSBT_SEARCH_BEST, form, 0);
}
#endif
