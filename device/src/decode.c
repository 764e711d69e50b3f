/*
 * The decoder.
 */
#include "internal.h"

static void fail(struct lwsbt_reader *r, size_t pos, enum lwsbt_result fault)
{
	if (r->fault == LWSBT_OK) {
		r->fault = fault;
		r->pos = pos;
	}
}

/* has reports whether there are width bits. */
static int has(struct lwsbt_reader *r, size_t width)
{
	if (r->end - r->pos < width)
		fail(r, r->pos, LWSBT_TRUNCATED);
	return r->fault == LWSBT_OK;
}

lwsbt_word lwsbt_next(struct lwsbt_reader *r, unsigned width)
{
	lwsbt_word v = 0;

	if (!has(r, width))
		return 0;
	while (width > 0) {
		unsigned left = 8 - (unsigned)(r->pos & 7), k = width < left ? width : left;

		v = v << k | ((unsigned)r->p[r->pos >> 3] >> (left - k) & ((1u << k) - 1));
		r->pos += k;
		width -= k;
	}
	return v;
}

/* field reads width bits and a spill bit. [BT-FIELD-1, BT-FIELD-4] */
static lwsbt_word read_field(struct lwsbt_reader *r, unsigned width)
{
	lwsbt_word v;

	if (!has(r, width + SPILL))
		return 0;
	v = lwsbt_next(r, width);
	r->pos += SPILL;
	return v;
}

/* count reads a count. */
static unsigned count(struct lwsbt_reader *r)
{
	size_t at = r->pos;
	unsigned n = lwsbt_full_count((unsigned)read_field(r, COUNT_WIDTH));

	if (n > r->word)
		fail(r, at, LWSBT_COUNT);
	return n;
}

/* value reads a count, and a value of that many bits. [BT-COUNT-2, BT-COUNT-4] */
static lwsbt_word value(struct lwsbt_reader *r)
{
	return read_field(r, count(r));
}

/* frame reads frame n into pc[n]. [BT-ITEM-1] */
static void read_frame(struct lwsbt_reader *r, lwsbt_word *pc, unsigned n)
{
	size_t at = r->pos;
	lwsbt_word v, base = 0, back, sign = 0;

	if (read_field(r, 1)) {
		if (n == 0)
			fail(r, at, LWSBT_DELTA_FIRST);
		at = r->pos;
		back = read_field(r, 3);
		if (back >= n)
			fail(r, at, LWSBT_BACK);
		else
			base = pc[n - 1 - (unsigned)back];
		sign = 0 - read_field(r, 1);
	}
	v = value(r);
	pc[n] = base + ((v ^ sign) - sign);
#if LWSBT_WORD_BITS == 64
	if (r->word == 32)
		pc[n] &= 0xffffffff;
#endif
}

/* read_frames reads the depth field, and depth frames into pc. It returns the number of
 * frames without a fault. */
static unsigned read_frames(struct lwsbt_reader *r, lwsbt_word *pc, unsigned depth)
{
	unsigned n = 0;

	(void)read_field(r, DEPTH_WIDTH);
	while (n < depth) {
		read_frame(r, pc, n);
		if (r->fault != LWSBT_OK)
			break;
		n++;
	}
	return n;
}

/* walk reads depth frames and the size. */
static enum lwsbt_result read_stack(const struct lwsbt_reader *from, struct lwsbt_stack *s, unsigned depth)
{
	struct lwsbt_reader r = *from;

	s->depth = read_frames(&r, s->pc, depth);
	s->size = value(&r);
	s->end = (uint32_t)r.pos;
	return r.fault;
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
static enum lwsbt_result walk_as(const struct lwsbt_reader *r, struct lwsbt_stack *s, unsigned depth)
{
	enum lwsbt_result e = read_stack(r, s, depth), deepest;

	if (depth != 0 || (e == LWSBT_OK && r->end - s->end < 8))
		return e;
	deepest = read_stack(r, s, LWSBT_DEPTH_MAX);
	if (deepest != LWSBT_OK && (e == LWSBT_OK || r->end < 8 * DEEPEST_MIN))
		return read_stack(r, s, 0);
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

enum lwsbt_result lwsbt_decode(struct lwsbt_stack *s, const void *blob, size_t len,
	unsigned word)
{
	const uint8_t *p = blob;
	enum lwsbt_result e = length_of(p, len);
	size_t end = len < LENGTH_BYTES ? 0 : 8 * (len - LENGTH_BYTES);
	struct lwsbt_reader r = lwsbt_reader_of(p, end, word_of(word));

	s->end = (uint32_t)end;
	if (e == LWSBT_OK)
		e = walk_as(&r, s, end ? p[0] >> 3 : 0);
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

enum lwsbt_result lwsbt_salvage(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word, unsigned *announced, int *sized)
{
	const struct lwsbt_reader r = lwsbt_reader_of(p, 8 * len, word_of(word));
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
	e = read_stack(&r, s, *announced);
	if (e == LWSBT_OK)
		*sized = 1;
	else if (e != LWSBT_TRUNCATED)
		return empty(s, e);
	return LWSBT_OK;
}

enum lwsbt_result lwsbt_user(const void *blob, size_t len, size_t *pos, unsigned *tag,
	uint64_t *v)
{
	struct lwsbt_reader r = lwsbt_reader_of(blob, len < LENGTH_BYTES ? 0 : 8 * (len - LENGTH_BYTES), 64);
	unsigned t, n;
	uint64_t high = 0;

	r.pos = *pos;
	*tag = LWSBT_TAG_END;
	*v = 0;
	if (len < LENGTH_BYTES)
		return LWSBT_SHORT;
	if (r.pos > r.end || r.end - r.pos < TAG_BITS)
		return LWSBT_OK;
	t = (unsigned)read_field(&r, TAG_WIDTH);
	if (t == LWSBT_TAG_END)
		return LWSBT_OK;
	n = count(&r);
	(void)has(&r, n + SPILL);
	if (n > 32) {
		high = lwsbt_next(&r, n - 32);
		n = 32;
	}
	high = high << 32 | lwsbt_next(&r, n);
	*pos = r.pos;
	if (r.fault == LWSBT_OK) {
		*pos += SPILL;
		*tag = t;
		*v = high;
	}
	return r.fault;
}

const char *lwsbt_reason(enum lwsbt_result result)
{
	static const char *const names[] = { "ok", "lead-in", "base64", "decoded-line", "short",
		"length", "empty", "truncated", "delta-first", "back", "count", "event", "space" };

	return (unsigned)result < sizeof names / sizeof *names ? names[result] : "?";
}
