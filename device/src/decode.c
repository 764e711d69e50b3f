/*
 * The decoder. What it accepts, the fast reader at the end reads fast; the walk
 * before it reads anything, a field at a time, and finds the fault.
 */
#include "internal.h"

/* What is read, and how far. */
struct reader {
	const uint8_t *p;
	size_t pos;	/* bit */
	size_t end;	/* bit at which the fields must have ended */
	unsigned word;	/* 32 or 64 */
};

/* width bits from bit pos on, at most 64, all of which are there. */
static uint64_t bits_at(const uint8_t *p, size_t pos, unsigned width)
{
	uint64_t v = 0;

	while (width) {
		unsigned k = 8 - (unsigned)(pos & 7);
		unsigned byte = p[pos >> 3] & (0xffu >> (pos & 7));

		if (k > width) {
			byte >>= k - width;
			k = width;
		}
		v = v << k | byte;
		pos += k;
		width -= k;
	}
	return v;
}

/* field reads width bits and a spill bit into *v. [BT-FIELD-1, BT-FIELD-4] */
static enum lwsbt_result field(struct reader *r, unsigned width, uint64_t *v)
{
	if (r->end - r->pos < width + SPILL)
		return LWSBT_TRUNCATED;
	*v = bits_at(r->p, r->pos, width);
	r->pos += width + SPILL;
	return LWSBT_OK;
}

/* value reads a count, and a value of that many bits. On a fault, r->pos is that
 * of the field at fault. [BT-COUNT-2, BT-COUNT-4] */
static enum lwsbt_result value(struct reader *r, uint64_t *v)
{
	enum lwsbt_result e = field(r, COUNT_WIDTH, v);
	unsigned count;

	if (e != LWSBT_OK)
		return e;
	count = lwsbt_full_count((unsigned)*v);
	if (count > r->word) {
		r->pos -= COUNT_BITS;
		return LWSBT_COUNT;
	}
	return field(r, count, v);
}

/* frame reads frame n into pc[n]. [BT-ITEM-1] */
static enum lwsbt_result frame(struct reader *r, lwsbt_word *pc, unsigned n)
{
	enum lwsbt_result e;
	uint64_t v, back, sign;
	size_t at = r->pos;

	if ((e = field(r, 1, &v)) != LWSBT_OK)
		return e;
	if (v == 0) {
		if ((e = value(r, &v)) == LWSBT_OK)
			pc[n] = (lwsbt_word)v;
		return e;
	}
	if (n == 0) {
		r->pos = at;
		return LWSBT_DELTA_FIRST;
	}
	at = r->pos;
	if ((e = field(r, 3, &back)) != LWSBT_OK)
		return e;
	if (back >= n) {
		r->pos = at;
		return LWSBT_BACK;
	}
	if ((e = field(r, 1, &sign)) != LWSBT_OK || (e = value(r, &v)) != LWSBT_OK)
		return e;
	pc[n] = pc[n - 1 - (unsigned)back] + (lwsbt_word)(sign ? 0 - v : v);
#if LWSBT_WORD_BITS == 64
	if (r->word == 32)
		pc[n] &= 0xffffffff;
#endif
	return LWSBT_OK;
}

/* frames reads the depth field and depth frames into s; s->depth is how many of
 * these are whole. */
static enum lwsbt_result frames(struct reader *r, struct lwsbt_stack *s, unsigned depth)
{
	enum lwsbt_result e;
	uint64_t v;

	s->depth = 0;
	s->size = 0;
	e = field(r, DEPTH_WIDTH, &v);
	while (e == LWSBT_OK && s->depth < depth) {
		e = frame(r, s->pc, s->depth);
		if (e == LWSBT_OK)
			s->depth++;
	}
	s->end = (uint32_t)r->pos;
	return e;
}

/* walk reads depth frames and the size. */
static enum lwsbt_result walk(const struct reader *from, struct lwsbt_stack *s, unsigned depth)
{
	struct reader r = *from;
	enum lwsbt_result e = frames(&r, s, depth);
	uint64_t v;

	if (e == LWSBT_OK && (e = value(&r, &v)) == LWSBT_OK)
		s->size = (lwsbt_word)v;
	s->end = (uint32_t)r.pos;
	return e;
}

static enum lwsbt_result empty(struct lwsbt_stack *s, enum lwsbt_result e)
{
	s->depth = 0;
	s->size = 0;
	return e;
}

/* The fewest bits before the length that hold 32 frames and a size, in bytes. */
#define DEEPEST_MIN 46

/* walk_as reads a blob whose depth field is depth. [BT-DEPTH-2] */
static enum lwsbt_result walk_as(const struct reader *r, struct lwsbt_stack *s, unsigned depth)
{
	enum lwsbt_result e = walk(r, s, depth), deepest;

	if (depth != 0 || (e == LWSBT_OK && r->end - s->end < 8))
		return e;
	deepest = walk(r, s, LWSBT_DEPTH_MAX);
	if (deepest != LWSBT_OK && (e == LWSBT_OK || r->end < 8 * DEEPEST_MIN))
		return walk(r, s, 0);
	return deepest;
}

static unsigned word_of(unsigned word)
{
	return LWSBT_WORD_BITS == 32 || word == 32 ? 32 : 64;
}

/* length_of returns the result of holding the length field to len bytes.
 * [BT-BLOB-2] */
static enum lwsbt_result length_of(const uint8_t *p, size_t len)
{
	unsigned n;

	if (len < LENGTH_BYTES)
		return LWSBT_SHORT;
	n = (unsigned)p[len - 2] << 8 | p[len - 1];
	return n == len ? LWSBT_OK : n == 0 ? LWSBT_EMPTY : LWSBT_LENGTH;
}

#if LWSBT_FAST
static int read_fast(struct lwsbt_stack *s, const uint8_t *p, size_t len, unsigned word);
#endif

enum lwsbt_result lwsbt_decode(struct lwsbt_stack *s, const void *blob, size_t len,
	unsigned word)
{
	struct reader r = { blob, 0, 0, word_of(word) };
	enum lwsbt_result e = length_of(r.p, len);

	if (e != LWSBT_OK) {
		s->end = (uint32_t)(len < LENGTH_BYTES ? 0 : 8 * (len - LENGTH_BYTES));
		return empty(s, e);
	}
#if LWSBT_FAST
	if (read_fast(s, r.p, len, r.word))
		return LWSBT_OK;
#endif
	r.end = 8 * (len - LENGTH_BYTES);
	e = walk_as(&r, s, r.end ? r.p[0] >> 3 : 0);
	return e == LWSBT_OK ? e : empty(s, e);
}

enum lwsbt_result lwsbt_decode_at_end(struct lwsbt_stack *s, const void *past, size_t max,
	unsigned word, const uint8_t **blob, size_t *len)
{
	const uint8_t *p = past;
	unsigned n;

	s->end = 0;
	if (max < LENGTH_BYTES)
		return empty(s, LWSBT_SHORT);
	n = (unsigned)p[-2] << 8 | p[-1];
	if (n == 0)
		return empty(s, LWSBT_EMPTY);
	if (n < LENGTH_BYTES || n > max)
		return empty(s, LWSBT_LENGTH);
	if (blob)
		*blob = p - n;
	if (len)
		*len = n;
	return lwsbt_decode(s, p - n, n, word);
}

enum lwsbt_result lwsbt_decode_bare(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word)
{
	const struct reader from = { p, 0, 8 * len, word_of(word) };
	struct reader r = from;
	unsigned depth = len ? from.p[0] >> 3 : 0;
	enum lwsbt_result e = frames(&r, s, depth);

	if (depth == 0 && e == LWSBT_OK) {
		r = from;
		if (frames(&r, s, LWSBT_DEPTH_MAX) != LWSBT_OK) {
			r = from;
			e = frames(&r, s, 0);
		}
	}
	return e == LWSBT_OK ? e : empty(s, e);
}

enum lwsbt_result lwsbt_salvage(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word, unsigned *announced, int *sized)
{
	struct reader r = { p, 0, 8 * len, word_of(word) };
	enum lwsbt_result e = length_of(r.p, len);

	*announced = 0;
	*sized = 0;
	s->end = 0;
	if (e == LWSBT_OK) { /* whole: it has what decoding finds */
		e = lwsbt_decode(s, p, len, word);
		*announced = s->depth;
		*sized = e == LWSBT_OK;
		return e;
	}
	empty(s, e);
	if (len == 0 || r.p[0] >> 3 == 0)
		return e; /* empty, with user bits, or 32 frames: nothing is certain */
	*announced = r.p[0] >> 3;
	e = walk(&r, s, *announced);
	if (e == LWSBT_OK)
		*sized = 1;
	else if (e != LWSBT_TRUNCATED)
		return empty(s, e);
	return LWSBT_OK;
}

enum lwsbt_result lwsbt_user(const void *blob, size_t len, size_t *pos, unsigned *tag,
	uint64_t *v)
{
	struct reader r = { blob, *pos, 0, 64 };
	enum lwsbt_result e;
	uint64_t t;

	*tag = LWSBT_TAG_END;
	*v = 0;
	if (len < LENGTH_BYTES)
		return LWSBT_SHORT;
	r.end = 8 * (len - LENGTH_BYTES);
	if (r.pos > r.end || r.end - r.pos < TAG_BITS)
		return LWSBT_OK;
	e = field(&r, TAG_WIDTH, &t);
	if (e != LWSBT_OK || t == LWSBT_TAG_END)
		return e;
	e = value(&r, v);
	*pos = r.pos;
	if (e == LWSBT_OK)
		*tag = (unsigned)t;
	return e;
}

const char *lwsbt_reason(enum lwsbt_result result)
{
	static const char *const names[] = { "ok", "lead-in", "base64", "decoded-line", "short",
		"length", "empty", "truncated", "delta-first", "back", "count", "event", "space" };

	return (unsigned)result < sizeof names / sizeof *names ? names[result] : "?";
}

#if LWSBT_FAST

/* The bits that a window is certain to hold. */
#define WINDOW 57

/* window returns the bits from bit pos on, the first in the top bit, zeros after
 * the end of the last 8 bytes, which begin at p + last. */
static inline uint64_t window(const uint8_t *p, size_t last, size_t pos)
{
	size_t off = pos >> 3 < last ? pos >> 3 : last;

	return lwsbt_load64(p + off) << ((pos - 8 * off) & 63);
}

/*
 * read_fast is walk_as for blobs of 1 to 31 frames without a fault. Whether the
 * bits were all there is looked at afterwards: what takes the time is the way from
 * one frame's place to the next, which leads through its count.
 */
static int read_fast(struct lwsbt_stack *s, const uint8_t *p, size_t len, unsigned word)
{
	unsigned depth = p[0] >> 3, wide = 0, count;
	size_t end = 8 * (len - LENGTH_BYTES), last = len - 8, pos = DEPTH_BITS;
	uint64_t w, v;

	if (depth == 0 || len < 8)
		return 0;
	for (unsigned n = 0; n < depth; n++) {
		w = window(p, last, pos);
		if (w >> 63 == 0) {
			v = w << (LITERAL_LEAD + COUNT_BITS);
			count = (unsigned)(w >> (64 - LITERAL_LEAD - COUNT_WIDTH)) & 63;
			if (count - 1 < WINDOW - LITERAL_LEAD - COUNT_BITS) {
				v >>= 64 - count;
			} else {
				count = lwsbt_full_count(count);
				v = v >> (96 - count) << 32 |
					window(p, last, pos + LITERAL_LEAD + COUNT_BITS + count - 32) >> 32;
			}
			wide |= count > 32;
			pos += LITERAL_LEAD + COUNT_BITS + count + SPILL;
			s->pc[n] = v;
			continue;
		}
		v = w << (DELTA_LEAD + COUNT_BITS);
		count = (unsigned)(w >> (64 - DELTA_LEAD - COUNT_WIDTH)) & 63;
		if (count - 1 < WINDOW - DELTA_LEAD - COUNT_BITS) {
			v >>= 64 - count;
		} else {
			count = lwsbt_full_count(count);
			v = v >> (96 - count) << 32 |
				window(p, last, pos + DELTA_LEAD + COUNT_BITS + count - 32) >> 32;
		}
		wide |= count > 32;
		pos += DELTA_LEAD + COUNT_BITS + count + SPILL;
		{
			unsigned base = n - 1 - (unsigned)(w >> 59 & 7);
			uint64_t subtract = 0 - (w >> 57 & 1);

			if (base >= n)
				return 0;
			s->pc[n] = s->pc[base] + ((v ^ subtract) - subtract);
		}
	}
	if (pos > end)
		return 0;
	w = window(p, last, pos);
	count = lwsbt_full_count((unsigned)(w >> 58));
	v = w << COUNT_BITS >> (64 - count);
	pos += COUNT_BITS;
	if (count > WINDOW - COUNT_BITS)
		v = w << COUNT_BITS >> (96 - count) << 32 | window(p, last, pos + count - 32) >> 32;
	wide |= count > 32;
	pos += count + SPILL;
	if (pos > end || (word == 32 && wide))
		return 0;
	if (word == 32)
		for (unsigned n = 0; n < depth; n++)
			s->pc[n] &= 0xffffffff;
	s->size = v;
	s->depth = depth;
	s->end = (uint32_t)pos;
	return 1;
}

#endif
