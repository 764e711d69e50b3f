/* Made by `go run ./device/tools/amalgamate` from the files of device/. Do not edit. */
#include "lwsbt.h"

/* src/choose.c ------------------------------------------------------------------------------ */

/*
 * The choice between literals and deltas, which is most of what encoding costs.
 *
 * Search lws takes a base of index 0 for "none found", and counts two spill bits too
 * few when it weighs a delta against a literal. Search best takes the literal of two
 * that are equally long, unless its count of 64 is one that lws misreads. Of equally
 * near bases, both take the farthest. [BT-SRCH-1, BT-SRCH-2]
 */

/* src/internal.h ---------------------------------------------------------------------------- */

/*
 * What the library's own files share. Not for programs.
 */
#ifndef LWSBT_INTERNAL_H
#define LWSBT_INTERNAL_H

#include <limits.h>


/* src/options.h ----------------------------------------------------------------------------- */

/*
 * What can be left out for size, each by a 0; docs/device.md has how large each is.
 * LWSBT_TINY leaves out all that is not set to 1. What is left out is ignored
 * where lwsbt.h has it: the header is the same.
 */
#ifndef LWSBT_OPTIONS_H
#define LWSBT_OPTIONS_H

#ifdef LWSBT_TINY
#define LWSBT_UNSET 0
#else
#define LWSBT_UNSET 1
#endif

#if LWSBT_PACKED
#if LWSBT_FIELDS
#error "LWSBT_PACKED has no LWSBT_FIELDS"
#endif
#undef LWSBT_FIELDS
#define LWSBT_FIELDS 0
#endif

#ifndef LWSBT_FIELDS	/* user fields and events; times in ~h# lines, and %XX */
#define LWSBT_FIELDS LWSBT_UNSET
#endif
#ifndef LWSBT_SPEED	/* the cache of capture functions; known frames of profiles are found faster */
#define LWSBT_SPEED LWSBT_UNSET
#endif
#ifndef LWSBT_EXCEPTIONS /* captures cross exceptions of a Cortex-M */
#define LWSBT_EXCEPTIONS LWSBT_UNSET
#endif
#ifndef LWSBT_EXTRAS	/* sampling, flags of dumps of profiles, ~h#heap; build, dev, fw and heap of devices; LWSBT_NESTED */
#define LWSBT_EXTRAS LWSBT_UNSET
#endif

/* in_interrupt and guard of the port, and heap.reentered. Event functions may allocate, so LWSBT_FIELDS needs them. */
#define LWSBT_NESTED (LWSBT_FIELDS || LWSBT_EXTRAS)

#endif

/*
 * Widths in bits; each field but the length is followed by a spill bit more.
 * [BT-FIELD-1]
 *
 *                0   1   2   3   4   5   6   7   8   9  10  11  12  13  14
 *   depth      | d4  d3  d2  d1  d0 | s |
 *   literal    | 0 | s | c5  c4  c3  c2  c1  c0 | s | value ... | s |
 *   delta      | 1 | s | b2  b1  b0 | s | + | s | c5 ... c0 | s | value ... | s |
 *   size       | c5  c4  c3  c2  c1  c0 | s | value ... | s |
 *   user field | t3  t2  t1  t0 | s | c5 ... c0 | s | value ... | s |
 */
enum {
	DEPTH_WIDTH = 5,
	COUNT_WIDTH = 6,
	TAG_WIDTH = 4,
	SPILL = 1,
	DEPTH_BITS = DEPTH_WIDTH + SPILL,
	COUNT_BITS = COUNT_WIDTH + SPILL,
	TAG_BITS = TAG_WIDTH + SPILL,
	LITERAL_LEAD = 2,		/* kind, before the count */
	DELTA_LEAD = 8,			/* kind, back and sign */
	LENGTH_BYTES = 2,
	BACK_MAX = 8			/* [BT-DELTA-2] */
};

/*
 * How a frame is written, as the 8 bits before its count: 0 for a literal, of which
 * the first 2 are written, else those of a delta.
 */
#define FORM_DELTA 0x80u
#define FORM_BACK(form) ((form) >> 3 & 7u)	/* less 1 */
#define FORM_SIGN(form) ((form) >> 1 & 1u)

/* What compilers inline, or not, decides on how much stack is taken. */
#if defined(__GNUC__)
#define LWSBT_NOINLINE __attribute__((noinline))
#define LWSBT_INLINE static inline __attribute__((always_inline))
#else
#define LWSBT_NOINLINE
#define LWSBT_INLINE static inline
#endif

/* lwsbt_choose sets form[n] for each of depth frames, and returns the bits that the
 * depth field and they take. */
size_t lwsbt_choose(const lwsbt_word *pc, unsigned depth, unsigned how, uint8_t *form);

/* lwsbt_put_forms writes depth and frames as lwsbt_choose chose. */
void lwsbt_put_forms(struct lwsbt_writer *w, const lwsbt_word *pc, unsigned depth,
	unsigned how, const uint8_t *form);

/* lwsbt_fill fills up a blob to len bytes: an end of user fields, and then ones, so that no
 * reader takes an empty stack for one of 32 frames. [BT-DEPTH-2] */
void lwsbt_fill(struct lwsbt_writer *w, size_t len);

/* A reader of bit fields. After a fault it reads zeros, and pos is that of the field at fault. */
struct lwsbt_reader {
	const uint8_t *p;
	size_t pos;	/* bit */
	size_t end;	/* bit at which the fields must have ended */
	unsigned word;	/* 32 or 64: the largest count */
	enum lwsbt_result fault;
};

/* lwsbt_reader_of returns a reader of the first end bits at p. */
static inline struct lwsbt_reader lwsbt_reader_of(const uint8_t *p, size_t end, unsigned word)
{
	struct lwsbt_reader r = { p, 0, end, word, LWSBT_OK };

	return r;
}

/* lwsbt_next returns the next width bits, at most a word. */
lwsbt_word lwsbt_next(struct lwsbt_reader *r, unsigned width);

/* The bits of a word, as text. */
#if LWSBT_WORD_BITS == 64
#define WORD_TEXT "64"
#else
#define WORD_TEXT "32"
#endif

/* lwsbt_digit returns the base64 character of the lowest 6 bits of v. */
char lwsbt_digit(unsigned v);

/* The parts of ~h# lines. A number is a time, or one of a heap. */
#if LWSBT_FIELDS
typedef uint64_t lwsbt_number;
#else
typedef lwsbt_word lwsbt_number;
#endif
void lwsbt_text(const struct lwsbt_out *out, const char *s);
void lwsbt_key(const struct lwsbt_out *out, const char *name, lwsbt_number v);
void lwsbt_digits(const struct lwsbt_out *out, const char *name, lwsbt_number v, unsigned base); /* 10 or 16 */
void lwsbt_escaped(const struct lwsbt_out *out, const char *name, const char *v); /* NULL: nothing */

/* lwsbt_rotate returns v >> shift, 0 to 4, with the bits below as the highest: what is no multiple is large. */
static inline lwsbt_word lwsbt_rotate(lwsbt_word v, unsigned shift)
{
	return v >> shift | v << ((0u - shift) & (unsigned)(LWSBT_WORD_BITS - 1));
}

/* lwsbt_width returns the number of bits of v, which is not 0. */
static inline unsigned lwsbt_width(lwsbt_word v)
{
#if !defined(__GNUC__) || UINT_MAX < 0xffffffff /* which __builtin_clz takes */
	unsigned n = 1;

	while (v >>= 1)
		n++;
	return n;
#elif LWSBT_WORD_BITS == 64
	return 64u - (unsigned)__builtin_clzll(v);
#else
	return 32u - (unsigned)__builtin_clz(v);
#endif
}

/* lwsbt_significant returns the count of v. [BT-COUNT-1] */
static inline unsigned lwsbt_significant(lwsbt_word v) { return lwsbt_width(v | 1); }

/* lwsbt_full_count returns the count that 6 bits mean: 0 stands for 64.
 * [BT-COUNT-2] */
static inline unsigned lwsbt_full_count(unsigned c) { return ((c - 1) & 63) + 1; }

#endif

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

/* src/encode.c ------------------------------------------------------------------------------ */

/*
 * The encoder: bit fields, stacks and blobs.
 */

/* put writes the lowest width bits of v, at most a word. */
static void put_word(struct lwsbt_writer *w, lwsbt_word v, unsigned width)
{
	size_t len = w->len;
	unsigned n = w->n;
	uint32_t acc = w->acc;

	while (width > 0) {
		unsigned k = width < 24 ? width : 24;

		width -= k;
		acc = acc << k | ((uint32_t)(v >> width) & 0xffffffu >> (24 - k));
		for (n += k; n >= 8; len++) {
			n -= 8;
			if (len < w->cap)
				w->buf[len] = (uint8_t)(acc >> n);
		}
	}
	w->len = len;
	w->n = n;
	w->acc = acc;
}

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v as
 * how says. */
static void put_field(struct lwsbt_writer *w, unsigned lead, unsigned lead_width, lwsbt_word v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v), spill = 0, width = lead_width + COUNT_BITS;
	lwsbt_word head = lead << COUNT_BITS | (count & 63) << SPILL;

	(void)how;
#if LWSBT_WORD_BITS == 64
	if (how & LWSBT_WRAP64) {
		/* Bit 31 stands for all from 31 up, and those from 32 up are the lowest
		 * again. [BT-MACH-2] */
		spill = v >> 31 != 0;
		v = ((v & 0x7fffffff) | (uint64_t)spill << 31) * 0x100000001;
		v = v << (64 - count) >> (64 - count);
	}
#endif
	if (width + count + SPILL <= LWSBT_WORD_BITS) {
		put_word(w, (head << count | v) << SPILL | spill, width + count + SPILL);
	} else {
		put_word(w, head, width);
		put_word(w, v, count);
		put_word(w, spill, SPILL);
	}
}

void lwsbt_writer_init(struct lwsbt_writer *w, void *buf, size_t cap)
{
	w->buf = buf;
	w->cap = cap;
	w->len = 0;
	w->acc = 0;
	w->n = 0;
}

size_t lwsbt_bits(const struct lwsbt_writer *w) { return w->len * 8 + w->n; }

void lwsbt_put(struct lwsbt_writer *w, uint64_t v, unsigned width)
{
	if (width > 32) {
		put_word(w, (uint32_t)(v >> 32), width - 32);
		width = 32;
	}
	put_word(w, (uint32_t)v, width);
}

void lwsbt_put_value(struct lwsbt_writer *w, lwsbt_word v, unsigned how)
{
	put_field(w, 0, 0, v, how);
}

void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v)
{
	uint32_t high = (uint32_t)(v >> 32);
	unsigned count = high ? 32 + lwsbt_significant(high) : lwsbt_significant((uint32_t)v);

	put_word(w, tag << SPILL << COUNT_BITS | (count & 63) << SPILL, TAG_BITS + COUNT_BITS);
	lwsbt_put(w, v, count);
	put_word(w, 0, SPILL);
}

void lwsbt_put_forms(struct lwsbt_writer *w, const lwsbt_word *pc, unsigned depth,
	unsigned how, const uint8_t *form)
{
	put_word(w, (depth & 31) << SPILL, DEPTH_BITS); /* 32 is written 0 [BT-DEPTH-2] */
	for (unsigned n = 0; n < depth; n++) {
		lwsbt_word v = pc[n];
		unsigned f = form[n], lead = LITERAL_LEAD;

		if (f) {
			v -= pc[n - 1 - FORM_BACK(f)];
			if (FORM_SIGN(f))
				v = 0 - v;
			lead = DELTA_LEAD;
		}
		put_field(w, f, lead, v, how);
	}
}

void lwsbt_put_stack(struct lwsbt_writer *w, const struct lwsbt_stack *s, unsigned how)
{
	uint8_t form[LWSBT_DEPTH_MAX];

	lwsbt_choose(s->pc, s->depth, how, form);
	lwsbt_put_forms(w, s->pc, s->depth, how, form);
}

void lwsbt_fill(struct lwsbt_writer *w, size_t len)
{
	unsigned left = 8 * (unsigned)(len - w->len) - w->n, zeros = (0u - TAG_BITS - w->n) % 8 + TAG_BITS;

	put_word(w, 0, zeros < left ? zeros : left);
	while (w->len < len)
		put_word(w, 0xff, 8);
	put_word(w, (uint32_t)len + LENGTH_BYTES, 8 * LENGTH_BYTES);
}

size_t lwsbt_finish(struct lwsbt_writer *w)
{
	size_t len;

	put_word(w, 0, (0 - w->n) % 8);
	len = w->len + LENGTH_BYTES;
#if SIZE_MAX > LWSBT_LENGTH_MAX
	if (len > LWSBT_LENGTH_MAX)
		return 0;
#endif
	put_word(w, (uint32_t)len, 8 * LENGTH_BYTES);
	return len;
}

size_t lwsbt_encode(void *buf, size_t cap, const struct lwsbt_stack *s, unsigned how)
{
	struct lwsbt_writer w;

	lwsbt_writer_init(&w, buf, cap);
	lwsbt_put_stack(&w, s, how);
	lwsbt_put_value(&w, s->size, how);
	return lwsbt_finish(&w);
}

/* src/decode.c ------------------------------------------------------------------------------ */

/*
 * The decoder.
 */

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

/* frames reads the depth field and depth frames into s; s->depth is how many of
 * these are whole. */
static enum lwsbt_result frames(const struct lwsbt_reader *from, struct lwsbt_stack *s, unsigned depth)
{
	struct lwsbt_reader r = *from;

	s->depth = read_frames(&r, s->pc, depth);
	s->size = 0;
	s->end = (uint32_t)r.pos;
	return r.fault;
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

enum lwsbt_result lwsbt_decode_bare(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word)
{
	const struct lwsbt_reader r = lwsbt_reader_of(p, 8 * len, word_of(word));
	unsigned depth = len ? r.p[0] >> 3 : 0;
	enum lwsbt_result e = frames(&r, s, depth);

	if (depth == 0 && e == LWSBT_OK && frames(&r, s, LWSBT_DEPTH_MAX) != LWSBT_OK)
		e = frames(&r, s, 0);
	return e == LWSBT_OK ? e : empty(s, e);
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

/* src/line.c -------------------------------------------------------------------------------- */

/*
 * Lines, written: base64 and the two forms of a record.
 */
#include <string.h>


static void emit(const struct lwsbt_out *out, const char *text, size_t len)
{
	out->put(out->arg, text, len);
}

char lwsbt_digit(unsigned v)
{
	unsigned c = 'A' + (v &= 63);

	/* from the end of one range of characters to the next */
	if (v >= 26)
		c += 'a' - ('Z' + 1);
	if (v >= 52)
		c -= 'z' + 1 - '0';
	if (v >= 62)
		c -= '9' + 1 - '+';
	if (v == 63)
		c += '/' - ('+' + 1);
	return (char)c;
}

/* group writes the first 3 of the len bytes at p, or as many as there are, as 4
 * characters. [BT-B64-1] */
static LWSBT_NOINLINE void group(const struct lwsbt_out *out, const uint8_t *p, size_t len)
{
	char text[4];
	uint32_t acc = 0;

	for (unsigned i = 0; i < 3; i++)
		acc = acc << 8 | (i < len ? p[i] : 0u);
	for (unsigned i = 0; i < 4; i++) {
		text[i] = i > len ? '=' : lwsbt_digit((unsigned)(acc >> (18 - 6 * i) & 63));
	}
	emit(out, text, 4);
}

void lwsbt_base64_begin(struct lwsbt_base64 *b, const struct lwsbt_out *out)
{
	b->out = out;
	b->n = 0;
}

void lwsbt_base64_put(struct lwsbt_base64 *b, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (; len > 0; len--) {
		b->bytes[b->n] = *p++;
		if (++b->n == 3)
			lwsbt_base64_end(b);
	}
}

void lwsbt_base64_end(struct lwsbt_base64 *b)
{
	if (b->n > 0)
		group(b->out, b->bytes, b->n);
	b->n = 0;
}

/* record writes a lead-in, a blob and the line end. */
static void record(const struct lwsbt_out *out, const char *lead_in, const uint8_t *blob, size_t len)
{
	emit(out, lead_in, 3);
	for (size_t i = 0; i < len; i += 3)
		group(out, blob + i, len - i);
	emit(out, "\n", 1);
}

void lwsbt_line(const struct lwsbt_out *out, const void *blob, size_t len)
{
	record(out, "~m#", blob, len);
}

void lwsbt_line_event(const struct lwsbt_out *out, const void *blob, size_t len)
{
	record(out, "~e#", blob, len);
}

/* number writes v by base 10 or 16, after prefix, which has 3 characters. */
static void put_number(const struct lwsbt_out *out, const char *prefix, lwsbt_word v, unsigned base)
{
	char text[24], *p = text + sizeof text; /* 3 and 20 digits at most */

	do {
		unsigned digit = (unsigned)(v % base);

		*--p = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
		v /= base;
	} while (v);
	p -= 3;
	memcpy(p, prefix, 3);
	emit(out, p, (size_t)(text + sizeof text - p));
}

void lwsbt_line_decoded(const struct lwsbt_out *out, const struct lwsbt_stack *s)
{
	emit(out, "~b#siz", 6);
	put_number(out, "e: ", s->size, 10);
	emit(out, ",", 1);
	for (unsigned n = 0; n < s->depth; n++)
		put_number(out, " 0x", s->pc[n], 16);
	emit(out, "\n", 1);
}

void lwsbt_line_text(void *arg, const char *text, size_t len)
{
	struct lwsbt_text *t = arg;

	if (t->len < t->cap)
		memcpy(t->text + t->len, text, len < t->cap - t->len ? len : t->cap - t->len);
	t->len += len;
}

/* src/parse.c ------------------------------------------------------------------------------- */

/*
 * Lines, read.
 */
#include <string.h>


/* sextet returns the value of a base64 character, of the URL alphabet too if
 * lenient, or 64. */
static unsigned sextet(char c, int lenient)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 52;
	if (c == '+' || (lenient && c == '-'))
		return 62;
	if (c == '/' || (lenient && c == '_'))
		return 63;
	return 64;
}

enum lwsbt_result lwsbt_parse_line(void *buf, size_t cap, size_t *n, const char *line,
	size_t len, int lenient)
{
	uint8_t *out = buf;
	uint32_t acc = 0;
	size_t i = 3, chars = 0, pad = 0;

	*n = 0;
	if (len < 3 || memcmp(line, "~m#", 3) != 0) {
		if (!lenient)
			return LWSBT_LEAD_IN;
		i = 0;
	}
	for (; i < len; i++) {
		char c = line[i];
		unsigned v;

		if (lenient && (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
			continue;
		if (c == '=') {
			if (++pad > (4 - chars % 4) % 4 || chars % 4 == 1)
				return LWSBT_BASE64;
			continue;
		}
		v = sextet(c, lenient);
		if (v > 63 || pad > 0)
			return LWSBT_BASE64;
		acc = acc << 6 | v;
		/* each character but the first of a group completes a byte */
		if (chars++ % 4 != 0) {
			if (*n >= cap)
				return LWSBT_SPACE;
			out[(*n)++] = (uint8_t)(acc >> (6 - 2 * ((chars - 1) % 4)));
		}
	}
	if (chars % 4 == 1 || (!lenient && (chars + pad) % 4 != 0))
		return LWSBT_BASE64;
	/* of the last character, bits that no byte takes */
	if ((chars % 4 == 2 && (acc & 15)) || (chars % 4 == 3 && (acc & 3)))
		return LWSBT_BASE64;
	return LWSBT_OK;
}

/* number reads digits at *p, and moves it behind them. */
static enum lwsbt_result parse_number(const char **p, const char *end, unsigned base, lwsbt_word *v)
{
	const char *from = *p;

	*v = 0;
	for (; *p < end; ++*p) {
		char c = **p;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
			c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 :
			c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : base;

		if (digit >= base)
			break;
		if (*v > (lwsbt_word)((lwsbt_word)~(lwsbt_word)0 - digit) / base)
			return LWSBT_WORD_BITS == 64 ? LWSBT_DECODED_LINE : LWSBT_COUNT;
		*v = *v * base + digit;
	}
	return *p > from ? LWSBT_OK : LWSBT_DECODED_LINE;
}

/* literally moves *p behind text, if it is there. */
static int literally(const char **p, const char *end, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
		return 0;
	*p += n;
	return 1;
}

enum lwsbt_result lwsbt_parse_decoded(struct lwsbt_stack *s, const char *line, size_t len)
{
	const char *p = line, *end = line + len;
	lwsbt_word size;
	unsigned n = 0;
	enum lwsbt_result e;

	s->depth = 0;
	s->size = 0;
	s->end = 0;
	if (!literally(&p, end, "~b#"))
		return LWSBT_LEAD_IN;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n'))
		end--;
	if (!literally(&p, end, "size: "))
		return LWSBT_DECODED_LINE;
	if ((e = parse_number(&p, end, 10, &size)) != LWSBT_OK)
		return e;
	if (!literally(&p, end, ","))
		return LWSBT_DECODED_LINE;
	for (; p < end; n++) {
		if (n == LWSBT_DEPTH_MAX || !literally(&p, end, " 0x"))
			return LWSBT_DECODED_LINE;
		if ((e = parse_number(&p, end, 16, &s->pc[n])) != LWSBT_OK)
			return e;
	}
	s->size = size;
	s->depth = n;
	return LWSBT_OK;
}

/* src/head.c -------------------------------------------------------------------------------- */

/*
 * The ~h# lines of a recording.
 */
#include <string.h>


void lwsbt_text(const struct lwsbt_out *out, const char *s)
{
	out->put(out->arg, s, strlen(s));
}

void lwsbt_digits(const struct lwsbt_out *out, const char *name, lwsbt_number v, unsigned base)
{
	char text[20], *p = text + sizeof text;

	do {
		unsigned digit;
#if LWSBT_FIELDS
		/* by halves of words: a 64-bit division is a function of 700 bytes on 32-bit machines */
		uint32_t high = (uint32_t)(v >> 32), low = (uint32_t)v, middle = high % base << 16 | low >> 16;

		low = middle % base << 16 | (low & 0xffff);
		digit = (unsigned)(low % base);
		v = (uint64_t)(high / base) << 32 | (middle / base << 16 | low / base);
#else
		digit = (unsigned)(v % base);
		v /= base;
#endif
		*--p = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
	} while (v);
	lwsbt_text(out, name);
	out->put(out->arg, p, (size_t)(text + sizeof text - p));
}

LWSBT_NOINLINE void lwsbt_key(const struct lwsbt_out *out, const char *name, lwsbt_number v)
{
	lwsbt_digits(out, name, v, 10);
}

/* key writes a key and its value, unless that is unknown. */
static void key(const struct lwsbt_out *out, const char *name, uint64_t v)
{
	if (v != LWSBT_NONE)
		lwsbt_key(out, name, (lwsbt_number)v);
}

/* Without LWSBT_FIELDS, values must hold no characters that are to be escaped. */
void lwsbt_escaped(const struct lwsbt_out *out, const char *name, const char *v)
{
	if (!v)
		return;
	lwsbt_text(out, name);
#if LWSBT_FIELDS
	for (; *v; v++) {
		static const char hex[] = "0123456789ABCDEF";
		unsigned c = (unsigned char)*v;
		char code[3] = { '%', hex[c >> 4], hex[c & 15] };

		if (c <= ' ' || c >= '~' || c == '%')
			out->put(out->arg, code, sizeof code);
		else
			out->put(out->arg, v, 1);
	}
#else
	lwsbt_text(out, v);
#endif
}

void lwsbt_head_boot(const struct lwsbt_out *out, const char *prog, uint64_t pid, uint64_t epoch)
{
	lwsbt_text(out, "~h#boot");
	lwsbt_escaped(out, " prog=", prog);
	if (LWSBT_FIELDS)
		key(out, " pid=", pid);
	lwsbt_text(out, " w=" WORD_TEXT);
	if (LWSBT_FIELDS)
		key(out, " epoch=", epoch);
	lwsbt_text(out, "\n");
}

void lwsbt_head_map(const struct lwsbt_out *out, uint64_t time)
{
	lwsbt_text(out, "~h#map");
	if (LWSBT_FIELDS)
		key(out, " t=", time);
	lwsbt_text(out, "\n");
}

void lwsbt_head_begin(const struct lwsbt_out *out, const struct lwsbt_head *h)
{
	lwsbt_key(out, "~h#begin ", h->number);
	if (LWSBT_FIELDS)
		key(out, " t=", h->time);
	key(out, " n=", h->records);
	key(out, " b=", h->bytes);
	if (h->user)
		lwsbt_text(out, " u=1");
	lwsbt_escaped(out, " why=", h->why);
	lwsbt_text(out, "\n");
}

void lwsbt_head_end(const struct lwsbt_out *out, const struct lwsbt_head *h)
{
	lwsbt_key(out, "~h#end ", h->number);
	key(out, " n=", h->records);
	key(out, " b=", h->bytes);
	lwsbt_text(out, "\n");
}

void lwsbt_head_lost(const struct lwsbt_out *out, uint64_t events)
{
	lwsbt_text(out, "~h#lost");
	key(out, " n=", events);
	lwsbt_text(out, "\n");
}

/* src/event.c ------------------------------------------------------------------------------- */

/*
 * Allocation events.
 */

size_t lwsbt_encode_event(void *buf, size_t cap, const struct lwsbt_stack *s,
	const struct lwsbt_event *e, unsigned how)
{
	struct lwsbt_writer w;
	uint8_t form[LWSBT_DEPTH_MAX];
	unsigned depth = s->depth;

	lwsbt_writer_init(&w, buf, cap);
	/* the 31 innermost frames: a depth written 0 is an empty stack here [BT-EVT-2] */
	if (depth == LWSBT_DEPTH_MAX)
		depth--;
	lwsbt_choose(s->pc, depth, how, form);
	lwsbt_put_forms(&w, s->pc, depth, how, form);
	lwsbt_put_value(&w, s->size, how);
	lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, e->address);
	if (e->time != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_TIME, e->time);
	if (e->thread != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_THREAD, e->thread);
	if (e->sequence != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_SEQUENCE, e->sequence);
	lwsbt_put_user(&w, LWSBT_TAG_EVENT, (uint64_t)e->kind);
	if (e->kind == LWSBT_MOVED)
		lwsbt_put_user(&w, LWSBT_TAG_OLD, e->old);
	return lwsbt_finish(&w);
}

/* src/paths.c ------------------------------------------------------------------------------- */

/*
 * ~p# lines: call paths, written. Each field is a whole number of base64 digits.
 */

#define ESCAPE 0xfffffffu	/* in the place of a step: an address follows [BT-DIGIT-3] */

enum {
	CRC_DIGITS = 3,
	NO_ENTRY = 255		/* base of a line without entries */
};

uint32_t lwsbt_offset(const struct lwsbt_code *c, lwsbt_word pc)
{
	lwsbt_word sum = 0;

	for (unsigned i = 0; i < c->count; i++) {
		const struct lwsbt_range *r = &c->range[i];
		lwsbt_word at = pc - r->start, len = r->end - r->start;

		if (at < len) {
			sum = lwsbt_rotate(sum + at, c->shift);
			return sum >> 27 ? LWSBT_NO_OFFSET : (uint32_t)sum;
		}
		sum += len;
	}
	return LWSBT_NO_OFFSET;
}

lwsbt_word lwsbt_address(const struct lwsbt_code *c, uint32_t offset)
{
	const struct lwsbt_range *r = c->range;
	lwsbt_word at = (lwsbt_word)offset << c->shift;

	for (; at >= r->end - r->start; r++)
		at -= r->end - r->start;
	return r->start + at;
}

static uint32_t mix(uint32_t h, uint32_t x)
{
	h = (h ^ x) * 0x9e3779b1u;
	return h ^ h >> 15;
}

/* [BT-NAME-1] */
uint32_t lwsbt_name(const struct lwsbt_code *c, const struct lwsbt_path *p)
{
	uint32_t h = p->base == LWSBT_PATH_NAMED ? p->outer : p->base;

	for (unsigned i = 0; i < p->depth; i++) {
		uint32_t x = lwsbt_offset(c, p->pc[i]);

		h = mix(h, x);
		if (x == LWSBT_NO_OFFSET) /* which is what an escaped frame's name begins with */
			h = mix(mix(h, (uint32_t)p->pc[i]), (uint32_t)((uint64_t)p->pc[i] >> 32));
	}
	return h;
}

/* digit writes the lowest 6 bits of v. What is beyond a line is counted, not written. */
static LWSBT_NOINLINE void digit(struct lwsbt_paths *w, unsigned v)
{
	if (w->len < LWSBT_PATH_LINE)
		w->text[w->len] = lwsbt_digit(v);
	w->len++;
}

static void fixed(struct lwsbt_paths *w, uint32_t v, unsigned n)
{
	for (; n > 0; n--, v >>= 6)
		digit(w, (unsigned)(v & 63));
}

static LWSBT_NOINLINE void put_digits(struct lwsbt_paths *w, lwsbt_word v)
{
	for (; v >> 5; v >>= 5)
		digit(w, (unsigned)(v & 31) | 32);
	digit(w, (unsigned)v);
}

/* step writes a folded difference, or ESCAPE. [BT-DIGIT-3] */
static void step(struct lwsbt_paths *w, uint32_t v)
{
	unsigned c = 0;

	while (v >> (10 + 6 * c))
		c++;
	fixed(w, 4 * v + c, c + 2);
}

/* begin begins a line. [BT-PLINE-1] */
static void begin_line(struct lwsbt_paths *w)
{
	w->text[0] = '~';
	w->text[1] = 'p';
	w->text[2] = '#';
	w->len = 3;
	fixed(w, w->flags | ((w->dump & 63) | w->lines << 6) << 6, 4);
	w->base = NO_ENTRY;
	w->depth = 0;
}

/* move makes the frame at pc, which may be outside the code, the reference of the next step. It returns its offset. */
static uint32_t move(struct lwsbt_paths *w, lwsbt_word pc)
{
	uint32_t x = lwsbt_offset(w->code, pc);

	w->ref = x == LWSBT_NO_OFFSET ? 0 : x;
	return x;
}

/* frame writes the frame at pc. */
static void put_frame(struct lwsbt_paths *w, lwsbt_word pc)
{
	uint32_t from = w->ref, x = move(w, pc), d = x - from;

	step(w, x == LWSBT_NO_OFFSET ? ESCAPE : 2 * d ^ (0 - (d >> 31)));
	if (x == LWSBT_NO_OFFSET)
		put_digits(w, pc);
}

/* shared returns how many of the outer frames of p the previous entry has, too. */
static unsigned shared(const struct lwsbt_paths *w, const struct lwsbt_path *p)
{
	unsigned n = 0;

	while (n < w->depth && n < p->depth && w->pc[n] == p->pc[n])
		n++;
	return n;
}

/* entry writes p with n values. If they do not fit, the next entry must begin a line. [BT-ENTRY-1, BT-SHARE-1] */
static void put_entry(struct lwsbt_paths *w, const struct lwsbt_path *p, const lwsbt_word *v, unsigned n)
{
	int same = w->base == p->base && w->outer == p->outer, named = p->base == LWSBT_PATH_NAMED;
	unsigned keep = same ? shared(w, p) : 0, left_out = w->depth - keep;

	w->ref = 0;
	if (same && (keep || named)) {
		put_digits(w, 4 + left_out);
		if (w->depth) /* a step from the frame left out, or that outside it [BT-ENTRY-2] */
			move(w, w->pc[left_out ? keep : keep - 1]);
	} else {
		put_digits(w, named && p->depth ? 3 : p->base);
		if (named)
			fixed(w, p->outer, 6);
	}
	if (!named || same || p->depth)
		put_digits(w, p->depth - keep);
	for (; keep < p->depth; keep++) {
		put_frame(w, p->pc[keep]);
		w->pc[keep] = p->pc[keep];
	}
	w->base = p->base;
	w->outer = p->outer;
	w->depth = p->depth;
	put_digits(w, n ? v[0] + 1 : 0);
	for (unsigned i = 1; i < n; i++)
		put_digits(w, v[i]);
}

void lwsbt_paths_add(struct lwsbt_paths *w, const struct lwsbt_path *path, const lwsbt_word *v, unsigned n)
{
	unsigned left = path->depth;
	struct lwsbt_path p = *path;	/* the outer frames of those left */

	if (w->max == 0 || w->max > LWSBT_PATH_LINE)
		w->max = LWSBT_PATH_LINE;
	for (;;) {
		unsigned len = w->len;
		uint32_t name;

		if (len == 0)
			begin_line(w);
		put_entry(w, &p, v, p.depth < left ? 0 : n);
		name = p.depth < left ? lwsbt_name(w->code, &p) : 0;
		/* a path is not cut where its outer part has the name of a path of no frames */
		if (w->len + (unsigned)CRC_DIGITS <= w->max && (p.depth == left || p.depth == 1 || name > 1)) {
			left -= p.depth;
			if (left == 0)
				return;
			/* the outer frames are defined; the others go on from their name [BT-NAME-4] */
			p.outer = name;
			p.base = LWSBT_PATH_NAMED;
			p.pc += p.depth;
			p.depth = left;
		} else {
			w->len = len;
			if (len == 0)
				p.depth--;
		}
		lwsbt_paths_flush(w);
	}
}

void lwsbt_paths_flush(struct lwsbt_paths *w)
{
	uint32_t crc = 0xffff;

	if (w->len == 0)
		return;
	for (const char *c = w->text + 3; c < w->text + w->len; c++) { /* CRC-16/IBM-3740 [BT-PLINE-2] */
		uint32_t x = (crc >> 8 ^ (unsigned char)*c) & 0xff;

		x ^= x >> 4;
		crc = crc << 8 ^ x << 12 ^ x << 5 ^ x;
	}
	fixed(w, crc & 0xffff, CRC_DIGITS);
	w->text[w->len] = '\n';
	w->out->put(w->out->arg, w->text, w->len + 1u);
	w->lines++;
	w->len = 0;
}

/* src/packet.c ------------------------------------------------------------------------------ */

/*
 * Lines, gathered into packets.
 */
#include <string.h>


/* send gives the first n bytes to out, and keeps the others. */
static void send(struct lwsbt_packet *p, size_t n)
{
	p->out->put(p->out->arg, p->text, n);
	p->len -= n;
	memmove(p->text, p->text + n, p->len);
	p->end = 0;
}

void lwsbt_packet_put(void *arg, const char *text, size_t len)
{
	struct lwsbt_packet *p = arg;

	for (; len > 0; len--) {
		if (p->len == p->cap)
			send(p, p->end ? p->end : p->len);
		p->text[p->len++] = *text;
		if (*text++ == '\n')
			p->end = p->len;
	}
}

void lwsbt_packet_flush(struct lwsbt_packet *p)
{
	if (p->len > 0)
		send(p, p->len);
}

/* src/device.c ------------------------------------------------------------------------------ */

/*
 * The ~h# lines of a device: boot, threads, what the allocator says.
 */

/* range writes START+LEN after name. [BT-CODE-1] */
static void range(const struct lwsbt_out *out, const char *name, const struct lwsbt_range *r)
{
	lwsbt_digits(out, name, r->start, 16);
	lwsbt_digits(out, "+", r->end - r->start, 16);
}

void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d)
{
	const uint32_t *note = d->build; /* sizes of name and description, type, "GNU" */
	const char *name = " code=";

	lwsbt_text(out, "~h#boot");
	lwsbt_escaped(out, " prog=", d->prog);
	lwsbt_text(out, " w=" WORD_TEXT);
	if (LWSBT_EXTRAS && note) {
		const uint8_t *id = (const uint8_t *)(note + 3) + ((note[0] + 3) & ~(uint32_t)3);

		lwsbt_text(out, " build=");
		for (uint32_t i = 0; i < note[1]; i++) {
			static const char hex[] = "0123456789abcdef";
			const char text[2] = { hex[id[i] >> 4], hex[id[i] & 15] };

			out->put(out->arg, text, sizeof text);
		}
	}
	if (LWSBT_EXTRAS) {
		lwsbt_escaped(out, " dev=", d->dev);
		lwsbt_escaped(out, " fw=", d->fw);
	}
	for (unsigned i = 0; i < d->code.count; i++, name = ",")
		range(out, name, &d->code.range[i]);
	if (d->code.count)
		lwsbt_key(out, " shift=", d->code.shift);
	if (LWSBT_EXTRAS && d->heap.end)
		range(out, " heap=", &d->heap);
	lwsbt_text(out, "\n");
}

void lwsbt_head_heap(const struct lwsbt_out *out, const struct lwsbt_numbers *n, uint64_t time)
{
	lwsbt_text(out, "~h#heap");
	if (LWSBT_FIELDS && time != LWSBT_NONE)
		lwsbt_key(out, " t=", (lwsbt_number)time);
	lwsbt_escaped(out, " name=", n->name);
	lwsbt_key(out, " size=", n->size);
	lwsbt_key(out, " free=", n->free);
	lwsbt_key(out, " largest=", n->largest);
	lwsbt_key(out, " min=", n->least);
	lwsbt_text(out, "\n");
}

void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name)
{
	lwsbt_key(out, "~h#thread ", thread);
	lwsbt_escaped(out, " name=", name);
	lwsbt_text(out, "\n");
}

#if UINTPTR_MAX == (LWSBT_WORD_BITS == 64 ? UINT64_MAX : UINT32_MAX)

/* src/heap.c -------------------------------------------------------------------------------- */

/*
 * Heap metadata: captured, measured, and written before an allocation. trim.c takes it off again.
 */

/* src/heap.h -------------------------------------------------------------------------------- */

/*
 * What the files of the heap share.
 */
#ifndef LWSBT_HEAP_H
#define LWSBT_HEAP_H

#include <string.h>


/* The heap's words are the machine's. */
typedef char lwsbt_word_is_uintptr[sizeof(lwsbt_word) == sizeof(uintptr_t) ? 1 : -1];

/* What a heap keeps as user fields. */
#if LWSBT_FIELDS
#define KEEP ((unsigned)(LWSBT_KEEP_SEQUENCE | LWSBT_KEEP_THREAD | LWSBT_KEEP_TIME))
#define KEEP_ADDRESS ((unsigned)LWSBT_KEEP_ADDRESS)
#else
#define KEEP 0u
#define KEEP_ADDRESS 0u
#endif

/* What there is to know of the metadata before a node. */
struct lwsbt_found {
	uint8_t *blob;
	size_t len;		/* bytes, 2 of a blob whose length says 0 */
	int end;		/* whether the spare bytes were overwritten */
	size_t bits;		/* depth, frames, size, and the user fields that the heap keeps */
	lwsbt_word size;
};

#if LWSBT_PACKED

/* lwsbt_pack writes depth, size and frames of s. c is the code, or NULL. */
void lwsbt_pack(struct lwsbt_writer *w, const struct lwsbt_code *c, const struct lwsbt_stack *s);

/* lwsbt_unpack reads these from r. It returns 0 if they make no sense. */
int lwsbt_unpack(struct lwsbt_reader *r, const struct lwsbt_code *c, struct lwsbt_stack *s);

#endif

/* lwsbt_stack_of reads the stack that was found before a node of h. */
static inline enum lwsbt_result lwsbt_stack_of(const struct lwsbt_heap *h, const struct lwsbt_found *f,
	struct lwsbt_stack *s)
{
#if LWSBT_PACKED
	struct lwsbt_reader r = lwsbt_reader_of(f->blob, f->bits, LWSBT_WORD_BITS);

	return lwsbt_unpack(&r, h->code, s) ? LWSBT_OK : LWSBT_TRUNCATED;
#else
	(void)h;
	return lwsbt_decode(s, f->blob, f->len, LWSBT_WORD_BITS);
#endif
}

/* lwsbt_walk_stack reads the stack of the next block of a walk. It returns 0 after the last. */
int lwsbt_walk_stack(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_stack *s);

static inline struct lwsbt_node *lwsbt_node_of(const void *p)
{
	return (struct lwsbt_node *)((uintptr_t)p - sizeof(struct lwsbt_node));
}

/* lwsbt_before returns the word at p, before memory that the heap may not know: such memory has other bytes
 * there, which AddressSanitizer lets nobody read. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LWSBT_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(LWSBT_ASAN)
static __attribute__((noinline, unused, no_sanitize_address)) uintptr_t lwsbt_before(const void *p) { return *(const uintptr_t *)p; }
#else
static inline uintptr_t lwsbt_before(const void *p) { return *(const uintptr_t *)p; }
#endif

static inline void *lwsbt_program_pointer(struct lwsbt_node *n) { return n + 1; }

/* Each function that takes the lock releases it. */
void lwsbt_lock(struct lwsbt_heap *h);
void lwsbt_unlock(struct lwsbt_heap *h);

/* lwsbt_count adds 1 to a counter of h. */
void lwsbt_count(struct lwsbt_heap *h, uint32_t *counter);

#if LWSBT_NESTED

/* lwsbt_enter sets the calling thread's guard, and reports whether it was free. It may be
 * set for a few operations alone: with one guard for all threads, another's allocation has
 * no metadata meanwhile. */
int lwsbt_enter(struct lwsbt_heap *h);
void lwsbt_leave(struct lwsbt_heap *h);

static inline int lwsbt_interrupted(const struct lwsbt_heap *h)
{
	return h->port && h->port->in_interrupt && h->port->in_interrupt(h->port->arg);
}

#else

static inline int lwsbt_enter(struct lwsbt_heap *h) { (void)h; return 1; }
static inline void lwsbt_leave(struct lwsbt_heap *h) { (void)h; }
static inline int lwsbt_interrupted(const struct lwsbt_heap *h) { (void)h; return 0; }

#endif

/* lwsbt_owned reports whether n is metadata of h, damaged or not. It reads n only if it is
 * where metadata was at some time. Under the lock. */
int lwsbt_owned(const struct lwsbt_heap *h, const struct lwsbt_node *n);

/* lwsbt_linked reports whether n is in the list, as far as its neighbours say. It
 * follows no pointer out of the heap's bounds. Under the lock. */
int lwsbt_linked(const struct lwsbt_heap *h, const struct lwsbt_node *n);

/* lwsbt_find_blob reads the metadata before n, without the frames, and reports
 * whether it makes sense. It reads nothing below the lowest true start. */
int lwsbt_find_blob(const struct lwsbt_heap *h, const struct lwsbt_node *n, struct lwsbt_found *f);

/* lwsbt_overhead returns what stands before the program's memory, in bytes. */
static inline size_t lwsbt_overhead(const struct lwsbt_found *f)
{
	size_t n = sizeof(struct lwsbt_node) + f->len;

	return (n + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

#ifndef LWSBT_WHOLE_CHUNKS /* macros of the C library's headers, of which one was included */
#if defined(__GLIBC__) || defined(__NEWLIB__) && !defined(_NANO_FORMATTED_IO) && !defined(_PICOLIBC__)
#define LWSBT_WHOLE_CHUNKS 1
#else
#define LWSBT_WHOLE_CHUNKS 0
#endif
#endif

/* lwsbt_spare returns how many spare bytes stand behind size bytes of the program's. */
static inline size_t lwsbt_spare(size_t size)
{
	return LWSBT_WHOLE_CHUNKS ? (LWSBT_ALIGN - sizeof(void *) - size) & (LWSBT_ALIGN - 1) :
		(0 - size) & (sizeof(void *) - 1);
}

/* The most frames of allocation functions that are looked through for the caller. */
#define OWN_MAX 6

/* lwsbt_capture_thread captures the stack of a thread, whose limits the port knows, but for the two innermost
 * frames. It is not inlined: the copy of the limits takes stack. */
size_t lwsbt_capture_thread(const struct lwsbt_heap *h, struct lwsbt_stack *s);

/* lwsbt_take captures the stack: s->depth frames from s->pc[*first] on, the caller and what is beyond it. It
 * reports whether there may be more than LWSBT_HEAP_DEPTH frames. Between lwsbt_enter and lwsbt_leave. */
LWSBT_INLINE int lwsbt_take(struct lwsbt_heap *h, struct lwsbt_stack *s, uintptr_t caller, size_t *first)
{
	size_t n = 0, drop;
	int full;

#if defined(__arm__)
	caller &= ~(uintptr_t)1; /* the mode bit, which capture functions clear */
#endif
	/* The frame left out is that of the function that this one is inlined in, which is not inlined. */
	if (h->capture)
		n = h->port && h->port->stack ? lwsbt_capture_thread(h, s) : h->capture(s->pc, LWSBT_HEAP_DEPTH, 1, &h->ctx);
	full = n == LWSBT_HEAP_DEPTH;
	/* The allocator's own functions, however many the compiler left. A walk that ended in
	 * them, as where only they have unwind tables, leaves the caller alone. */
	for (drop = 0; drop < n && s->pc[drop] != caller; drop++)
		;
	if (drop > OWN_MAX || caller == 0)
		drop = 0;
	drop += h->skip;
	if (drop > n)
		drop = n;
	if (n - drop > h->post)
		n -= h->post;
	if (n == drop && caller) {
		drop = 0;
		n = 1;
		s->pc[0] = caller;
	}
	*first = drop;
	s->depth = (uint32_t)(n - drop);
	return full;
}

/* The lines that begin and end a dump by call path: port or NULL; base of a difference or NULL; why or NULL. */
void lwsbt_head_paths(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number, uint32_t lines,
	const uint32_t *base, uint32_t sample, const char *why);
void lwsbt_tail_paths(const struct lwsbt_out *out, uint32_t number, uint32_t blocks, size_t bytes, uint32_t lines,
	uint32_t cut);

/* lwsbt_report counts damage, and reports it to the port. Not under the lock. */
void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n);

/* lwsbt_measure sets m->len and m->form for the stack in m, and returns what an allocation at an
 * alignment of align takes beside its size: metadata, at least least bytes, and spare ones; 0 if
 * that is too much. */
size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least);

/* lwsbt_unlink takes the metadata of p off the list and describes it in *f. It
 * returns the true start; p if there is no metadata; NULL as lwsbt_meta_trim does. */
void *lwsbt_unlink(struct lwsbt_heap *h, void *p, struct lwsbt_found *f);

/* lwsbt_release is lwsbt_meta_trim of what is no NULL, and describes the metadata in *f. With
 * LWSBT_QUARANTINE. */
void *lwsbt_release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f);

/* lwsbt_link lists n, whose metadata is written from start on, of an allocation of
 * size bytes. */
void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size);

/* lwsbt_write writes the metadata and the spare bytes, and lists it; lwsbt_meta_adjust without its event. */
void *lwsbt_write(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m);

/* lwsbt_tell calls the port's event function, if there is one. */
#if !LWSBT_FIELDS
#define lwsbt_tell(h, kind, p, old, m) (void)0
#else
void lwsbt_tell(struct lwsbt_heap *h, enum lwsbt_event_kind kind, const void *p, const void *old,
	const struct lwsbt_meta *m);

/* lwsbt_tell_freed is lwsbt_tell for a free, apart since it takes stack that others need not have. */
void lwsbt_tell_freed(struct lwsbt_heap *h, const void *p, lwsbt_word size);
#endif

#endif

void lwsbt_lock(struct lwsbt_heap *h)
{
	if (h->port && h->port->lock)
		h->port->lock(h->port->arg);
}

void lwsbt_unlock(struct lwsbt_heap *h)
{
	if (h->port && h->port->unlock)
		h->port->unlock(h->port->arg);
}

void lwsbt_count(struct lwsbt_heap *h, uint32_t *counter)
{
	lwsbt_lock(h);
	++*counter;
	lwsbt_unlock(h);
}

#if LWSBT_NESTED

int lwsbt_enter(struct lwsbt_heap *h)
{
	unsigned char *guard = h->port && h->port->guard ? h->port->guard(h->port->arg) : &h->guard;
	int entered;

	lwsbt_lock(h);
	entered = !*guard;
	if (entered)
		*guard = 1;
	else
		h->reentered++;
	lwsbt_unlock(h);
	return entered;
}

void lwsbt_leave(struct lwsbt_heap *h)
{
	if (h->port && h->port->guard) {
		*h->port->guard(h->port->arg) = 0;
		return;
	}
	lwsbt_lock(h);
	h->guard = 0;
	lwsbt_unlock(h);
}

#endif

/* kept returns what the heap keeps under the i-th tag, as put_kept has them, in *v; 0 if
 * it keeps none. */
static unsigned kept(const struct lwsbt_heap *h, const struct lwsbt_meta *m, unsigned i, uint64_t *v)
{
	static const uint8_t tags[] = { LWSBT_TAG_SEQUENCE, LWSBT_TAG_THREAD, LWSBT_TAG_TIME };

	if (!(h->flags & KEEP & 1u << i))
		return 0;
	*v = i == 0 ? m->sequence : i == 1 ? m->thread : m->time;
	return tags[i];
}

/* put_kept writes the user fields that the heap keeps. */
static void put_kept(struct lwsbt_writer *w, const struct lwsbt_heap *h, const struct lwsbt_meta *m)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t v;
		unsigned tag = kept(h, m, i, &v);

		if (tag)
			lwsbt_put_user(w, tag, v);
	}
}

/* put_bits writes what m has, up to the filling. */
static void put_bits(struct lwsbt_writer *w, const struct lwsbt_heap *h, const struct lwsbt_meta *m)
{
#if LWSBT_PACKED
	lwsbt_pack(w, h->code, &m->stack);
#else
	lwsbt_put_forms(w, m->stack.pc, m->stack.depth, h->how, m->form);
	lwsbt_put_value(w, m->stack.size, h->how);
#endif
	if (KEEP)
		put_kept(w, h, m);
}

size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least)
{
	size_t bits, total;
#if LWSBT_FIELDS || LWSBT_PACKED
	struct lwsbt_writer w;
#endif

#if LWSBT_PACKED
	lwsbt_writer_init(&w, NULL, 0);
	lwsbt_pack(&w, h->code, &m->stack);
	bits = lwsbt_bits(&w);
#else
	bits = lwsbt_choose(m->stack.pc, m->stack.depth, h->how, m->form) +
		COUNT_BITS + lwsbt_significant(m->stack.size) + SPILL;
#endif
#if LWSBT_FIELDS
	lwsbt_writer_init(&w, NULL, 0);
	put_kept(&w, h, m);
	bits += lwsbt_bits(&w);
#endif
	if (align < LWSBT_ALIGN)
		align = LWSBT_ALIGN;
	total = sizeof(struct lwsbt_node) + (bits + 7) / 8 + LENGTH_BYTES;
	if (total < least)
		total = least;
	total = (total + align - 1) & ~(align - 1);
	if (align > 32768 || total - sizeof(struct lwsbt_node) > LWSBT_LENGTH_MAX ||
	    m->stack.size > PTRDIFF_MAX - total - LWSBT_ALIGN ||
	    (LWSBT_WORD_BITS == 64 && (h->how & LWSBT_WRAP64) && m->stack.size >> 31 != 0))
		return 0;
	m->len = (uint16_t)(total - sizeof(struct lwsbt_node));
	return total + lwsbt_spare(m->stack.size);
}

LWSBT_NOINLINE size_t lwsbt_capture_thread(const struct lwsbt_heap *h, struct lwsbt_stack *s)
{
	struct lwsbt_capture_ctx ctx = h->ctx;

	h->port->stack(h->port->arg, &ctx);
	return h->capture(s->pc, LWSBT_HEAP_DEPTH, 2, &ctx);
}

/* admit sets the guard for a capture, and counts it. It reports whether there may be one. */
static int admit(struct lwsbt_heap *h, struct lwsbt_meta *m)
{
	if (lwsbt_interrupted(h)) {
		h->interrupts++;
		return 0;
	}
	if (!lwsbt_enter(h))
		return 0;
	lwsbt_lock(h);
	m->sequence = h->sequence++;
	lwsbt_unlock(h);
	return 1;
}

LWSBT_NOINLINE size_t lwsbt_meta_gen(struct lwsbt_heap *h, size_t size, size_t align, const void *caller,
	struct lwsbt_meta *m)
{
	size_t adj, first;

	m->stack.depth = 0;
	m->stack.size = size;
#if LWSBT_FIELDS
	m->sequence = 0;
	m->time = 0;
	m->thread = 0;
#endif
	if (LWSBT_NESTED && !admit(h, m))
		return 0;
	if ((h->flags & KEEP & LWSBT_KEEP_THREAD) && h->port && h->port->thread)
		m->thread = h->port->thread(h->port->arg);
	if ((h->flags & KEEP & LWSBT_KEEP_TIME) && h->port && h->port->time)
		m->time = h->port->time(h->port->arg);
	lwsbt_take(h, &m->stack, (uintptr_t)caller, &first);
	lwsbt_leave(h);
	for (size_t i = 0; i < m->stack.depth; i++) /* the memmove of small C libraries goes by bytes */
		m->stack.pc[i] = m->stack.pc[i + first];
	adj = lwsbt_measure(h, m, align, 0);
	if (adj == 0)
		lwsbt_count(h, &h->untracked);
	return adj;
}

void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size)
{
	lwsbt_lock(h);
	if (h->hi == 0 || (uintptr_t)start < h->lo)
		h->lo = (uintptr_t)start;
	if (h->lo) /* blocks of lws have no spare bytes */
		h->mark = LWSBT_MARK;
	if ((uintptr_t)n > h->hi)
		h->hi = (uintptr_t)n;
	n->prev = h->tail;
	n->next = NULL;
	n->owner = h;
	if (h->tail)
		h->tail->next = n;
	else
		h->head = n;
	h->tail = n;
	h->count++;
	h->generation++;
	h->bytes += size;
	if (h->bytes > h->peak) {
		h->peak = h->bytes;
		h->peak_count = h->count;
	}
	lwsbt_unlock(h);
}

void *lwsbt_write(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m)
{
	uint8_t *start = true_start;
	struct lwsbt_node *n = (struct lwsbt_node *)(void *)(start + m->len);
	struct lwsbt_writer w;

	/* The encoder may write into what comes behind, which is written later. */
	lwsbt_writer_init(&w, start, m->len + sizeof *n);
	put_bits(&w, h, m);
	lwsbt_fill(&w, (size_t)m->len - LENGTH_BYTES);
	start = (uint8_t *)(n + 1) + m->stack.size;
	for (size_t left = lwsbt_spare(m->stack.size); left > 0; left--)
		*start++ = LWSBT_SPARE_BYTE;
	lwsbt_link(h, n, true_start, m->stack.size);
	return lwsbt_program_pointer(n);
}

#if LWSBT_FIELDS

static void tell(struct lwsbt_heap *h, const struct lwsbt_event *e, const struct lwsbt_stack *s)
{
	if (!lwsbt_enter(h))
		return;
	h->port->event(h->port->arg, e, s);
	lwsbt_leave(h);
}

void lwsbt_tell(struct lwsbt_heap *h, enum lwsbt_event_kind kind, const void *p, const void *old,
	const struct lwsbt_meta *m)
{
	struct lwsbt_event e = { kind, (uintptr_t)p, (uintptr_t)old, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE };

	if (!h->port || !h->port->event)
		return;
	if (h->flags & LWSBT_KEEP_SEQUENCE)
		e.sequence = m->sequence;
	if (h->flags & LWSBT_KEEP_THREAD)
		e.thread = m->thread;
	if (h->flags & LWSBT_KEEP_TIME)
		e.time = m->time;
	tell(h, &e, &m->stack);
}

LWSBT_NOINLINE void lwsbt_tell_freed(struct lwsbt_heap *h, const void *p, lwsbt_word size)
{
	struct lwsbt_event e = { LWSBT_FREED, (uintptr_t)p, 0, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE };
	struct lwsbt_stack s;

	s.depth = 0;
	s.size = size;
	s.end = 0;
	tell(h, &e, &s);
}

#endif

void *lwsbt_meta_adjust(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m)
{
	void *p = lwsbt_write(h, true_start, m);

	lwsbt_tell(h, LWSBT_ALLOCATED, p, NULL, m);
	return p;
}

/* src/trim.c -------------------------------------------------------------------------------- */

/*
 * Heap metadata of a block: found, checked, and taken off the list. What is damaged is reported, and not
 * followed.
 */

static int plausible(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	uintptr_t at = (uintptr_t)n;

	return at % sizeof(void *) == 0 && at >= h->lo && at <= h->hi;
}

int lwsbt_linked(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	return plausible(h, n) && n->owner == h &&
		(n->prev ? plausible(h, n->prev) && n->prev->next == n : h->head == n) &&
		(n->next ? plausible(h, n->next) && n->next->prev == n : h->tail == n);
}

/* check_end sets f->end, of n, whose size is known. Blocks of lws have no spare bytes. */
static void check_end(const struct lwsbt_node *n, struct lwsbt_found *f)
{
	const uint8_t *p = (const uint8_t *)(n + 1) + f->size;

	for (size_t left = lwsbt_spare(f->size); left > 0; left--)
		f->end |= *p++ ^ LWSBT_SPARE_BYTE;
}

/* read_bits reads what put_bits writes, without the frames of a blob, and sets *size. It returns 0 if the bits make
 * no sense. */
static LWSBT_NOINLINE int read_bits(const struct lwsbt_heap *h, struct lwsbt_reader *r, lwsbt_word *size)
{
#if LWSBT_PACKED
	struct lwsbt_stack s;
	int ok = lwsbt_unpack(r, h->code, &s);

	*size = s.size;
	return ok;
#else
	unsigned depth = (unsigned)lwsbt_next(r, DEPTH_BITS) >> SPILL, count;

	for (unsigned i = 0; i < depth; i++) {
		/* of a literal, the first 6 bits of its value, too: more than that follows */
		unsigned lead = (unsigned)lwsbt_next(r, DELTA_LEAD + COUNT_BITS);

		if (lead >> (DELTA_LEAD - 1 + COUNT_BITS)) {
			if (FORM_BACK(lead >> COUNT_BITS) >= i)
				return 0;
		} else {
			r->pos -= DELTA_LEAD - LITERAL_LEAD;
			lead >>= DELTA_LEAD - LITERAL_LEAD;
		}
		count = lwsbt_full_count(lead >> SPILL & 63);
		if (count > LWSBT_WORD_BITS || r->end - r->pos < count + SPILL)
			return 0;
		r->pos += count + SPILL;
	}
	count = lwsbt_full_count((unsigned)lwsbt_next(r, COUNT_BITS) >> SPILL);
	if (count > LWSBT_WORD_BITS)
		return 0;
	*size = lwsbt_next(r, count);
	(void)lwsbt_next(r, SPILL);
	while ((h->flags & KEEP) && r->end - r->pos >= TAG_BITS) {
		size_t at = r->pos;

		if (lwsbt_next(r, TAG_BITS) >> SPILL == LWSBT_TAG_END) {
			r->pos = at;
			break;
		}
		count = lwsbt_full_count((unsigned)lwsbt_next(r, COUNT_BITS) >> SPILL);
		if (r->end - r->pos < count + SPILL)
			return 0;
		r->pos += count + SPILL;
	}
	return r->fault == LWSBT_OK;
#endif
}

int lwsbt_find_blob(const struct lwsbt_heap *h, const struct lwsbt_node *n, struct lwsbt_found *f)
{
	const uint8_t *length = (const uint8_t *)n - LENGTH_BYTES;
	size_t len = (size_t)length[0] << 8 | length[1], ones;
	struct lwsbt_reader r;

	f->size = 0;
	f->end = 0;
	f->bits = 0;
	f->len = len ? len : LENGTH_BYTES;
	f->blob = (uint8_t *)(uintptr_t)n - f->len;
	if (len == 0)
		return h->lo == 0; /* lws had no room [BT-BLOB-4] */
	if (len < LWSBT_BLOB_MIN || len > (uintptr_t)n - h->lo)
		return 0;
	r = lwsbt_reader_of(f->blob, 8 * (len - LENGTH_BYTES), LWSBT_WORD_BITS);
	if (!read_bits(h, &r, &f->size))
		return 0;
	f->bits = r.pos;
	if (h->lo == 0) /* of lws: neither its padding nor the sum of its sizes is known */
		return 1;
	if (f->size > h->bytes)
		return 0;
	/* Behind the bits are zeros, of an empty list of user fields and up to a byte, and
	 * then ones: see lwsbt_fill. */
	ones = (r.pos + TAG_BITS + 7) & ~(size_t)7;
	if (lwsbt_next(&r, (unsigned)((ones < r.end ? ones : r.end) - r.pos)) != 0)
		return 0;
	while (r.pos < r.end)
		if (lwsbt_next(&r, 8) != 0xff)
			return 0;
	check_end(n, f);
	return 1;
}

void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n)
{
	lwsbt_count(h, &h->damaged);
	if (h->port && h->port->damaged)
		h->port->damaged(h->port->arg, what, n);
}

/* Where there are pages, the one before a block at the beginning of a page may not be
 * there, if the allocator below has no headers: then the list must lead to n. */
#if defined(__unix__) || defined(__APPLE__)
#define PAGES 1
#else
#define PAGES 0
#endif

/* listed reports whether the list leads to n. */
static int listed(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	const struct lwsbt_node *at = h->head;
	uint32_t left = h->count;

	while (at && at != n && left-- > 0) /* n, being damaged, is not linked to either side */
		at = at->owner == h && plausible(h, at->next) ? at->next : NULL;
	return at == n;
}

int lwsbt_owned(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	if (!plausible(h, n))
		return 0;
#if PAGES
	if ((uintptr_t)(n + 1) % 4096 < sizeof *n && !listed(h, n))
		return 0;
#endif
	return lwsbt_before(&n->owner) == (uintptr_t)h;
}

/* detach takes n out of the list. */
static void detach(struct lwsbt_heap *h, struct lwsbt_node *n, const struct lwsbt_found *f)
{
	for (struct lwsbt_walk *w = h->walks; w; w = w->more) {
		if (w->next == n)
			w->next = w->last == n ? NULL : n->next;
		if (w->last == n)
			w->last = n->prev;
	}
	*(n->prev ? &n->prev->next : &h->head) = n->next;
	*(n->next ? &n->next->prev : &h->tail) = n->prev;
	n->owner = NULL;
	h->count--;
	h->generation++;
	h->bytes -= f->size;
}

void *lwsbt_unlink(struct lwsbt_heap *h, void *p, struct lwsbt_found *f)
{
	struct lwsbt_node *n = lwsbt_node_of(p);
	enum lwsbt_damage damage = (enum lwsbt_damage)0;

	f->len = 0;
	if (lwsbt_interrupted(h)) {
		if (!lwsbt_owned(h, n))
			return p;
		h->interrupts++;
		return NULL;
	}
	lwsbt_lock(h);
	if (lwsbt_owned(h, n)) {
		damage = LWSBT_DAMAGED_LINK;
		if (lwsbt_linked(h, n)) {
			damage = (enum lwsbt_damage)0;
			if (!lwsbt_find_blob(h, n, f)) {
				damage = LWSBT_DAMAGED_BLOB;
				f->size = 0;
			} else if (f->end) {
				damage = LWSBT_DAMAGED_END;
			}
			detach(h, n, f);
			p = (uint8_t *)p - lwsbt_overhead(f);
		}
	}
	else if ((h->flags & LWSBT_CHECK_UNTRACKED) && listed(h, n))
		damage = LWSBT_DAMAGED_LINK;
	lwsbt_unlock(h);
	if (!damage)
		return p;
	lwsbt_report(h, damage, n);
	return damage == LWSBT_DAMAGED_END ? p : NULL;
}

/* release is lwsbt_unlink, with its event. */
LWSBT_INLINE void *trim(struct lwsbt_heap *h, void *p, struct lwsbt_found *f)
{
	void *start = lwsbt_unlink(h, p, f);

#if LWSBT_FIELDS
	if (f->len && start && h->port && h->port->event)
		lwsbt_tell_freed(h, p, f->size);
#endif
	return start;
}

void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p)
{
	struct lwsbt_found f;

	return p ? trim(h, p, &f) : NULL;
}

#if LWSBT_QUARANTINE

void *lwsbt_release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f) { return trim(h, p, f); }

#endif

/* src/alloc.c ------------------------------------------------------------------------------- */

/*
 * malloc and its kin, with metadata.
 */

/* below allocates from the allocator below. */
LWSBT_INLINE void *below(const struct lwsbt_allocator *a, size_t align, size_t size)
{
	if (align <= LWSBT_ALIGN)
		return a->allocate(size);
	return a->aligned ? a->aligned(align, size) : NULL;
}

LWSBT_INLINE void *allocate(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	struct lwsbt_meta m;
	size_t adj = lwsbt_meta_gen(h, size, align, caller, &m); /* with what is spare */
	void *p = below(a, align, adj + size);

	if (adj == 0)
		return p;
	if (p) {
		p = lwsbt_write(h, p, &m);
		lwsbt_tell(h, LWSBT_ALLOCATED, p, NULL, &m);
		return p;
	}
	p = below(a, align, size);
	if (p)
		lwsbt_count(h, &h->untracked);
	return p;
}

void *lwsbt_heap_memalign(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	return allocate(h, a, align, size, caller);
}

void *lwsbt_heap_malloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t size,
	const void *caller)
{
	return allocate(h, a, 0, size, caller);
}

void *lwsbt_heap_calloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = lwsbt_heap_malloc(h, a, n * size, caller);
	if (p)
		memset(p, 0, n * size);
	return p;
}

#if LWSBT_QUARANTINE

/* quarantine keeps back the block of p, filled, and returns the true start of the one that
 * leaves for it; NULL if none does. The metadata stays, for whom damage is reported to. */
static void *quarantine(struct lwsbt_heap *h, void *start, void *p, size_t size)
{
	struct lwsbt_freed *at, out;

	memset(p, LWSBT_FREED_BYTE, size);
	lwsbt_lock(h);
	at = &h->freed[h->freed_next++ % LWSBT_QUARANTINE];
	out = *at;
	at->start = start;
	at->node = lwsbt_node_of(p);
	at->size = size;
	lwsbt_unlock(h);
	while (out.size > 0 && ((const uint8_t *)(out.node + 1))[out.size - 1] == LWSBT_FREED_BYTE)
		out.size--;
	if (out.size > 0)
		lwsbt_report(h, LWSBT_DAMAGED_FREED, out.node);
	return out.start;
}

#endif

void lwsbt_heap_free(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p)
{
#if LWSBT_QUARANTINE
	struct lwsbt_found f;
	void *start = p ? lwsbt_release(h, p, &f) : NULL;

	if (start && f.len)
		start = quarantine(h, start, p, f.size);
#else
	void *start = lwsbt_meta_trim(h, p);
#endif
	if (start)
		a->release(start);
}

/* resize is lwsbt_heap_realloc of a block that is there, and stays. */
static LWSBT_NOINLINE void *resize(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p, size_t size,
	const void *caller)
{
	struct lwsbt_meta m;
	struct lwsbt_found f;
	size_t old, total;
	uint8_t *start, *moved;
	void *q;

	lwsbt_meta_gen(h, size, 0, caller, &m); /* an empty stack, if it was refused */
	start = lwsbt_unlink(h, p, &f);
	if (!start)
		return NULL;
	if (f.len == 0)
		return a->resize(start, size);
	/* The program's memory stays where it is relative to the true start, unless the
	 * metadata is longer than before. */
	old = lwsbt_overhead(&f);
	total = lwsbt_measure(h, &m, 0, old);
#if LWSBT_WORD_BITS == 64
	/* A size that LWSBT_WRAP64 cannot write: without metadata, as malloc does it. */
	if (total == 0 && size <= PTRDIFF_MAX - old && (moved = a->resize(start, old + size)) != NULL) {
		memmove(moved, moved + old, f.size < size ? f.size : size);
		m.stack.depth = 0;
		m.stack.size = f.size;
		lwsbt_tell(h, LWSBT_FREED, p, NULL, &m);
		return moved;
	}
#endif
	moved = total ? a->resize(start, total + size) : NULL;
	if (!moved) {
		lwsbt_link(h, lwsbt_node_of(p), f.blob, f.size);
		return NULL;
	}
	total = sizeof(struct lwsbt_node) + m.len;
	if (total != old)
		memmove(moved + total, moved + old, f.size < size ? f.size : size);
	q = lwsbt_write(h, moved, &m);
	lwsbt_tell(h, LWSBT_MOVED, q, p, &m);
	return q;
}

static LWSBT_NOINLINE void *free_block(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p)
{
	lwsbt_heap_free(h, a, p);
	return NULL;
}

void *lwsbt_heap_realloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p,
	size_t size, const void *caller)
{
	if (!p)
		return lwsbt_heap_malloc(h, a, size, caller);
	if (size)
		return resize(h, a, p, size, caller);
	return free_block(h, a, p);
}

/* src/dump.c -------------------------------------------------------------------------------- */

/*
 * What is live: walks, dumps, and the metadata of one allocation.
 */

enum lwsbt_result lwsbt_meta_parse(struct lwsbt_heap *h, struct lwsbt_stack *s, const void *p)
{
	const struct lwsbt_node *n = lwsbt_node_of(p);
	struct lwsbt_found f;
	enum lwsbt_result e = LWSBT_EMPTY;

	s->depth = 0;
	s->size = 0;
	s->end = 0;
	lwsbt_lock(h);
	if (lwsbt_owned(h, n)) {
		e = LWSBT_LENGTH;
		if (lwsbt_linked(h, n) && lwsbt_find_blob(h, n, &f))
			e = lwsbt_stack_of(h, &f, s);
	}
	lwsbt_unlock(h);
	return e;
}

void lwsbt_walk_begin(struct lwsbt_heap *h, struct lwsbt_walk *w)
{
	lwsbt_lock(h);
	w->next = h->head;
	w->last = h->tail;
	w->more = h->walks;
	h->walks = w;
	lwsbt_unlock(h);
}

void lwsbt_walk_end(struct lwsbt_heap *h, struct lwsbt_walk *w)
{
	struct lwsbt_walk **at;

	lwsbt_lock(h);
	for (at = &h->walks; *at && *at != w; at = &(*at)->more)
		;
	if (*at)
		*at = w->more;
	lwsbt_unlock(h);
}

/* What a walk is for: take writes what was found before n to memory, and returns its length; 0 if it does not fit. */
struct reader {
	size_t (*take)(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to);
	void *buf;
	size_t cap;
	unsigned flags;
};

/*
 * copy_record writes the blob of n, without what aligns memory, and with its address if
 * flags say so. It returns 0 if it does not fit.
 */
static size_t copy_record(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to)
{
	size_t len;
#if LWSBT_PACKED
	struct lwsbt_stack s;

	if (lwsbt_stack_of(n->owner, f, &s) != LWSBT_OK)
		return 0;
	len = lwsbt_encode(to->buf, to->cap, &s, n->owner->how);
#else
	size_t bytes = f->bits / 8;
	struct lwsbt_writer w;

	if (bytes + LENGTH_BYTES > to->cap)
		return 0;
	if (f->bits == 0) { /* lws had no room, and says no more [BT-BLOB-4] */
		memset(to->buf, 0, LENGTH_BYTES);
		return LENGTH_BYTES;
	}
	lwsbt_writer_init(&w, to->buf, to->cap);
	memcpy(to->buf, f->blob, bytes);
	w.len = bytes;
	w.n = f->bits % 8;
	w.acc = (uint32_t)f->blob[bytes] >> (8 - w.n);
	if (to->flags & KEEP_ADDRESS)
		lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, (uintptr_t)lwsbt_program_pointer(n));
	len = lwsbt_finish(&w);
#endif
	return len <= to->cap ? len : 0;
}

/* next takes the next block, and returns the length; 0 after the last. It leaves out what does not fit, and blocks that
 * are damaged, which it reports. It only reports spare bytes that were overwritten. */
static size_t next(struct lwsbt_heap *h, struct lwsbt_walk *w, const struct reader *to)
{
	struct lwsbt_node *n;
	size_t len = 0;

	do {
		int damage = LWSBT_DAMAGED_LINK;
		struct lwsbt_found f;

		lwsbt_lock(h);
		n = w->next;
		w->next = NULL;
		if (n && lwsbt_linked(h, n)) {
			if (n != w->last)
				w->next = n->next;
			damage = LWSBT_DAMAGED_BLOB;
			if (lwsbt_find_blob(h, n, &f)) {
				w->p = lwsbt_program_pointer(n);
				w->size = f.size;
				len = to->take(n, &f, to);
				if (len > 0 || f.bits == 0) /* lws had no room, and says no more [BT-BLOB-4] */
					damage = f.end ? LWSBT_DAMAGED_END : 0;
			}
		}
		lwsbt_unlock(h);
		if (n && damage)
			lwsbt_report(h, (enum lwsbt_damage)damage, n);
	} while (n && len == 0);
	return len;
}

size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags)
{
	const struct reader to = { copy_record, buf, cap, flags };

	return next(h, w, &to);
}

/* stack reads the stack. */
static size_t stack(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to)
{
	return lwsbt_stack_of(n->owner, f, to->buf) == LWSBT_OK;
}

int lwsbt_walk_stack(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_stack *s)
{
	const struct reader to = { stack, s, 0, 0 };

	return next(h, w, &to) > 0;
}

static void counts(const struct lwsbt_out *out, uint32_t records, size_t bytes)
{
	lwsbt_key(out, " n=", records);
	lwsbt_key(out, " b=", bytes);
}

static void begin_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, int user)
{
	lwsbt_key(out, "~h#begin ", number);
	(void)h;
#if LWSBT_FIELDS
	if (h->port && h->port->time)
		lwsbt_key(out, " t=", h->port->time(h->port->arg));
	if (!h->port || !h->port->lock) /* else others may free meanwhile */
		counts(out, h->count, h->bytes);
#endif
	if (user)
		lwsbt_text(out, " u=1");
	lwsbt_escaped(out, " why=", why);
	lwsbt_text(out, "\n");
}

void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags)
{
	struct lwsbt_walk w;
	uint32_t records = 0;
	size_t bytes = 0, len;
	uint8_t buf[LWSBT_RECORD_MAX];

	begin_dump(h, out, number, why, (flags & KEEP_ADDRESS) || (h->flags & KEEP));
	lwsbt_walk_begin(h, &w);
	while ((len = lwsbt_walk_next(h, &w, buf, sizeof buf, flags)) > 0) {
		lwsbt_line(out, buf, len);
		records++;
		bytes += w.size;
	}
	lwsbt_walk_end(h, &w);
	lwsbt_key(out, "~h#end ", number);
	counts(out, records, bytes);
	lwsbt_text(out, "\n");
}

/* src/packed.c ------------------------------------------------------------------------------ */

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

/* src/paths_head.c -------------------------------------------------------------------------- */

/*
 * The ~h# lines that begin and end a dump by call path, of a heap or a profile.
 */

void lwsbt_head_paths(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number, uint32_t lines,
	const uint32_t *base, uint32_t sample, const char *why)
{
	struct lwsbt_numbers n = { 0, 0, 0, 0, NULL };

	lwsbt_key(out, "~h#begin ", number);
	if (LWSBT_FIELDS && port && port->time)
		lwsbt_key(out, " t=", (lwsbt_number)port->time(port->arg));
	if (LWSBT_EXTRAS && base)
		lwsbt_key(out, " k=diff base=", *base);
	lwsbt_key(out, LWSBT_EXTRAS && base ? " l=" : " k=paths l=", lines);
	if (LWSBT_EXTRAS && sample)
		lwsbt_key(out, " sample=", sample);
	lwsbt_escaped(out, " why=", why);
	lwsbt_text(out, "\n");
	if (LWSBT_EXTRAS && port && port->numbers && port->numbers(port->arg, &n))
		lwsbt_head_heap(out, &n, LWSBT_NONE);
}

void lwsbt_tail_paths(const struct lwsbt_out *out, uint32_t number, uint32_t blocks, size_t bytes, uint32_t lines,
	uint32_t cut)
{
	lwsbt_key(out, "~h#end ", number);
	lwsbt_key(out, " n=", blocks);
	lwsbt_key(out, " b=", bytes);
	lwsbt_key(out, " l=", lines);
	if (cut)
		lwsbt_key(out, " cut=", cut);
	lwsbt_text(out, "\n");
}

/* src/sums.c -------------------------------------------------------------------------------- */

/*
 * Dumps by call path of a heap that keeps its stacks in front of the blocks.
 */

/* write writes what a slot holds, by name, and empties it. */
static void write_sum(struct lwsbt_paths *w, struct lwsbt_sum *s)
{
	struct lwsbt_path p = { NULL, 0, LWSBT_PATH_NAMED, s->name };
	lwsbt_word v[2] = { s->live, s->bytes };

	if (s->live)
		lwsbt_paths_add(w, &p, v, 2);
	s->live = 0;
	s->bytes = 0;
}

/* add adds a block. The first one of a path is written with its frames, unless flags say that they are
 * known, and those after it are added up. */
static void add_block(struct lwsbt_paths *w, struct lwsbt_sum *sums, struct lwsbt_stack *s, unsigned flags)
{
	struct lwsbt_path p;
	struct lwsbt_sum *sum;
	lwsbt_word v[2];
	uint32_t name;

	for (unsigned i = 0, k = s->depth; i + 1 < k--; i++) { /* outermost first */
		lwsbt_word pc = s->pc[i];

		s->pc[i] = s->pc[k];
		s->pc[k] = pc;
	}
	p.pc = s->pc;
	p.depth = (uint16_t)s->depth;
	p.base = s->depth < LWSBT_HEAP_DEPTH ? LWSBT_PATH_WHOLE : LWSBT_PATH_CUT;
	p.outer = 0;
	name = lwsbt_name(w->code, &p);
	/* one of 8 slots: that of the path, or the one that holds least */
	sum = &sums[name % LWSBT_SUMS];
	for (unsigned i = 4; i < 32 && sum->name != name; i += 4) {
		struct lwsbt_sum *other = &sums[(name >> i) % LWSBT_SUMS];

		if (other->name == name || other->live < sum->live)
			sum = other;
	}
	if (sum->name != name) {
		write_sum(w, sum);
		sum->name = name;
		/* a sixteenth of the paths is defined again in each dump [BT-NAME-4] */
		if (!(flags & LWSBT_NAMES) || (w->dump + (name >> 16)) % 16 == 0) {
			v[0] = 1;
			v[1] = s->size;
			lwsbt_paths_add(w, &p, v, 2);
			return;
		}
	}
	sum->live++;
	sum->bytes += s->size;
}

void lwsbt_dump_paths(struct lwsbt_heap *h, struct lwsbt_paths *w, struct lwsbt_sum *sums,
	uint32_t number, const char *why, unsigned flags)
{
	struct lwsbt_walk walk;
	struct lwsbt_stack s;
	uint32_t blocks = 0;
	size_t bytes = 0;

	lwsbt_head_paths(w->out, h->port, number, w->lines, NULL, 0, why);
	w->dump = number;
	w->flags = 0;
	for (unsigned i = 0; i < LWSBT_SUMS; i++) {
		sums[i].name = 0; /* of the path of no frames */
		sums[i].live = 0;
		sums[i].bytes = 0;
	}
	lwsbt_walk_begin(h, &walk);
	while (lwsbt_walk_stack(h, &walk, &s)) {
		blocks++;
		bytes += s.size;
		add_block(w, sums, &s, flags);
	}
	lwsbt_walk_end(h, &walk);
	for (unsigned i = 0; i < LWSBT_SUMS; i++)
		write_sum(w, &sums[i]);
	lwsbt_paths_flush(w);
	lwsbt_tail_paths(w->out, number, blocks, bytes, w->lines, 0);
}

/* src/profile.c ----------------------------------------------------------------------------- */

/*
 * Live memory by call path: the table of frames and entries. profile_blocks.c has malloc and its kin,
 * which count in it.
 */

/* src/profile.h ----------------------------------------------------------------------------- */

/*
 * What the files of the profile share.
 */
#ifndef LWSBT_PROFILE_H
#define LWSBT_PROFILE_H


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

/* The most places that are looked at for a node or an entry: what finds none there has no place. */
enum { PROBES = 64 };

/* ------------------------------------------------------------------ the table */

/* slot returns the place for a hash among n, and next_hash the hash for the next place: by a linear congruential
 * generator, so that keys with the same first place have different others. */
static inline unsigned slot(uint32_t hash, unsigned n) { return (hash >> 16) * n >> 16; }
static inline uint32_t next_hash(uint32_t hash) { return hash * 5 + 1; }

/* key_of returns the node of value v inside parent. */
static inline uintptr_t key_of(unsigned parent, uintptr_t v, unsigned bits) { return v << bits | parent; }

static inline uint32_t hash_of(uintptr_t key) { return (uint32_t)(key ^ (uint64_t)key >> 32) * GOLDEN; }

/* find_node returns the number of the node of a key, which it makes if need be; 0 if there is no place. */
static LWSBT_NOINLINE unsigned find_node(struct lwsbt_profile *p, uintptr_t key)
{
	uint32_t hash = hash_of(key);
	uintptr_t *found = NULL;

	for (unsigned left = PROBES; left > 0; left--) {
		uintptr_t *node = &p->node[slot(hash, p->nodes)], n = *node << 1; /* without the mark */

		if (n == key << 1) {
			found = node;
			break;
		}
		if (n <= REMOVED << 1 && !found)
			found = node;
		if (n == EMPTY)
			break;
		hash = next_hash(hash);
	}
	if (!found)
		return 0;
	*found = key | lwsbt_marked(p);
	return (unsigned)(found - p->node) + FIRST_NODE;
}

/* frame_node returns the node of the frame at pc inside parent; 0 if there is no place. */
static unsigned frame_node(struct lwsbt_profile *p, unsigned parent, uintptr_t pc)
{
	unsigned bits = lwsbt_parent_bits(p);
	uintptr_t escape = lwsbt_escape(bits), v = (uint32_t)(lwsbt_offset(&p->code, pc) + 1);

	if (v == 0 || v >= escape) { /* 0: of LWSBT_NO_OFFSET */
		parent = find_node(p, key_of(parent, (pc >> HALF) + 1, bits));
		if (!parent)
			return 0;
		v = escape + (pc & LOW_HALF);
	}
	return find_node(p, key_of(parent, v, bits));
}

#if LWSBT_SPEED

/* known goes from *node on inwards, from the last of n frames to the first. It ends before a frame that is not in the
 * first range of the code, or whose node is not marked, or not in its first or second place: few are. It returns how
 * many frames are left. A function without calls and stores: so all that it needs is in registers. */
static LWSBT_NOINLINE size_t known(const struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, unsigned *node)
{
	unsigned bits = lwsbt_parent_bits(p), shift = p->code.shift, nodes = p->nodes, parent = *node;
	uintptr_t start = 0, units = 0, last = lwsbt_escape(bits) - 1, mark = lwsbt_marked(p);
	const uintptr_t *table = p->node;

	if (p->code.count) {
		start = p->code.range->start;
		units = (p->code.range->end - start) >> shift;
	}
	if (units > last)
		units = last;
	for (; n > 0; n--) {
		uintptr_t offset = lwsbt_rotate(pc[n - 1] - start, shift), key = key_of(parent, offset + 1, bits);
		uint32_t hash = hash_of(key);
		unsigned at = slot(hash, nodes);

		if (offset >= units)
			break;
		if (table[at] != (key | mark)) {
			at = slot(next_hash(hash), nodes);
			if (table[at] != (key | mark))
				break;
		}
		parent = at + FIRST_NODE;
	}
	*node = parent;
	return n;
}

#else
#define known(p, pc, n, node) (n)
#endif

/* path returns the node of the n frames at pc inside node; or that of the outer part of them for which there is place,
 * and CUT. */
static uint32_t path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, unsigned node)
{
	while ((n = known(p, pc, n, &node)) > 0) {
		unsigned inner = frame_node(p, node, pc[--n]);

		if (!inner)
			return node | CUT;
		node = inner;
	}
	return node;
}

LWSBT_NOINLINE unsigned lwsbt_outer(struct lwsbt_profile *p, unsigned node, lwsbt_word *pc)
{
	unsigned bits = lwsbt_parent_bits(p);
	uintptr_t n = lwsbt_mark(p, node), mask = ((uintptr_t)1 << bits) - 1, v = n >> bits;

	if (v < lwsbt_escape(bits)) {
		*pc = lwsbt_address(&p->code, (uint32_t)v - 1);
	} else {
		n = lwsbt_mark(p, (unsigned)(n & mask));
		*pc = ((n >> bits) - 1) << HALF | (v & LOW_HALF);
	}
	return (unsigned)(n & mask);
}

/* find_entry returns the number of the entry of a key, or of a free one; 0 if there is neither. */
static unsigned find_entry(const struct lwsbt_profile *p, uint32_t key)
{
	uint32_t hash = key * GOLDEN;

	for (unsigned left = PROBES; left > 0; left--) {
		unsigned at = slot(hash, p->entries - 1u) + 1;

		if (!p->entry[at].key || (p->entry[at].key & PATH) == key)
			return at;
		hash = next_hash(hash);
	}
	return 0;
}

#if LWSBT_EXTRAS

/* class_of returns the size class of a block that is sampled: readers scale by the mean size of an
 * entry. [BT-DUMP-5] */
static unsigned class_of(size_t size)
{
	unsigned n = lwsbt_significant(size);

	if (n > 32) /* of 32 bits are 128 classes */
		return 255;
	return 4 * n + (n < 3 ? 0 : (unsigned)(size >> (n - 3)) & 3);
}

#else
#define class_of(size) 0u
#endif

#if LWSBT_EXTRAS

/* add_history counts a block of size bytes in the history of an entry, which has it already. */
static LWSBT_NOINLINE void add_history(struct lwsbt_history *h, const struct lwsbt_entry *e, size_t size)
{
	if (h->allocations < UINT32_MAX)
		h->allocations++;
	h->bytes = h->bytes + size < size ? SIZE_MAX : h->bytes + size;
	if (e->bytes > h->peak)
		h->peak = e->bytes;
}

#endif

/* tally adds blocks and their bytes, modulo the width of the counters, to an entry and the totals. Under the lock. */
static LWSBT_NOINLINE void tally(struct lwsbt_profile *p, struct lwsbt_entry *e, uint32_t blocks, size_t bytes)
{
	struct lwsbt_heap *h = p->heap;

	e->key |= CHANGED;
	e->live += blocks;
	e->bytes += bytes;
	h->count += blocks;
	h->bytes += bytes;
	if (h->bytes > h->peak) {
		h->peak = h->bytes;
		h->peak_count = h->count;
	}
}

unsigned lwsbt_count_path(struct lwsbt_profile *p, const lwsbt_word *pc, size_t n, size_t size, unsigned base)
{
	uint32_t rest = USED | (p->sample ? class_of(size) : 0) << 16, key; /* without the rest */
	struct lwsbt_entry *e;
	lwsbt_word innermost;
	unsigned at;

	lwsbt_lock(p->heap);
	key = path(p, pc, n, base);
	while ((at = find_entry(p, rest | key)) == 0) {
		if ((key & NODE) < FIRST_NODE) { /* entry 0 */
			key = CUT | LWSBT_PATH_CUT;
			break;
		}
		key = CUT | lwsbt_outer(p, key & NODE, &innermost);
	}
	e = &p->entry[at];
	e->key |= rest | key;
	if (key & CUT)
		p->cut++;
	tally(p, e, 1, size);
#if LWSBT_EXTRAS
	if (p->history)
		add_history(&p->history[at], e, size);
#endif
	lwsbt_unlock(p->heap);
	return at;
}

unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base)
{
	unsigned depth = s->depth;

	if (depth > LWSBT_HEAP_DEPTH) { /* which dumps have space for */
		depth = LWSBT_HEAP_DEPTH;
		base = LWSBT_PATH_CUT;
	}
	return lwsbt_count_path(p, s->pc, depth, s->size, base);
}

void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size)
{
	lwsbt_lock(p->heap);
	tally(p, &p->entry[number], 0u - 1, 0 - size);
	lwsbt_unlock(p->heap);
}

/* ------------------------------------------------------------------- sampling */

#if LWSBT_EXTRAS

/* distance returns the bytes to the next sample point: an exponential distribution of mean p->sample. */
static size_t distance(struct lwsbt_profile *p)
{
	uint32_t r = p->random ? p->random : GOLDEN, f, log;
	unsigned zeros;

	r ^= r << 13;	/* xorshift32 */
	r ^= r >> 17;
	r ^= r << 5;
	p->random = r;
	/* -log2(r / 2^32), in 1/65536: log2(1 + f) is about f + f (1 - f) (0.427 - 0.160 f), to 0.002 */
	zeros = 32 - lwsbt_significant(r);
	f = (r << zeros << 1) >> 16;
	log = f + ((f * (65536 - f) >> 16) * (28000 - (f * 10500 >> 16)) >> 16);
	log = ((zeros + 1) << 16) - log;
	return (size_t)(((uint64_t)log * 45426 >> 16) * p->sample >> 16); /* ln 2 */
}

int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size)
{
	int sampled;

	if (!p->sample)
		return 1;
	lwsbt_lock(p->heap);
	if (!p->random)
		p->left = distance(p);
	sampled = size > p->left;
	p->left = sampled ? distance(p) : p->left - size;
	lwsbt_unlock(p->heap);
	return sampled;
}

#else

int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size)
{
	(void)p;
	(void)size;
	return 1;
}

#endif

/* src/profile_blocks.c ---------------------------------------------------------------------- */

/*
 * malloc and its kin that count blocks by call path. A block has two words before it: see profile.h of
 * include/lwsbt.
 */

/* What stands before a block; memory of a larger alignment has as much, and two words more before
 * it, of which size is how far it is to the true start, and tag the number. */
#define OVERHEAD ((sizeof(struct lwsbt_block) + LWSBT_ALIGN - 1) / LWSBT_ALIGN * LWSBT_ALIGN)
enum { ALIGNED = 0xffff };	/* number of a block that has these */

static struct lwsbt_block *block_of(const void *q)
{
	return (struct lwsbt_block *)((uintptr_t)q - sizeof(struct lwsbt_block));
}

/* tag_of returns the check and the number of the block at q. The check is odd: a word before memory of
 * another origin is often its size. */
static LWSBT_NOINLINE uintptr_t tag_of(const void *q, uintptr_t size, unsigned number)
{
	uintptr_t h = (((uintptr_t)q ^ number) * GOLDEN ^ size) * GOLDEN;

	h ^= h >> 15;
	return ((h * GOLDEN) & ~(uintptr_t)0xffff) | 0x10000 | number;
}

/* put_block writes the words and the spare bytes of the block at start, and returns the program's pointer. */
static void *put_block(void *start, size_t overhead, size_t size, unsigned number)
{
	uint8_t *q = (uint8_t *)start + overhead;
	struct lwsbt_block *b = block_of(q);

	if (overhead > OVERHEAD) {
		b[-1].size = overhead;
		b[-1].tag = number;
		number = ALIGNED;
	}
	b->size = size;
	b->tag = tag_of(q, size, number);
	memset(q + size, LWSBT_SPARE_BYTE, lwsbt_spare(size));
	return q;
}

enum { UNCOUNTED = 0, KEPT = 1 };

/* find_block returns the bytes from where the memory of q begins to q, and sets *number, if it is counted. It returns
 * UNCOUNTED if it is not, and KEPT if it must not be touched: it is damaged, which find_block reports, or this is an
 * interrupt. */
static size_t find_block(struct lwsbt_profile *p, const void *q, unsigned *number)
{
	struct lwsbt_heap *h = p->heap;
	const struct lwsbt_block *b = block_of(q);
	size_t overhead = OVERHEAD;
	uintptr_t tag = lwsbt_before(&b->tag);
	unsigned n = (unsigned)(tag & 0xffff);

	if (tag == tag_of(q, lwsbt_before(&b->size), n)) {
		if (lwsbt_interrupted(h)) {
			h->interrupts++;
			return KEPT;
		}
		if (n == ALIGNED) {
			overhead = b[-1].size;
			n = (unsigned)b[-1].tag;
		}
		*number = n;
		if (n < p->entries)
			return overhead;
	}
	if (!(h->flags & LWSBT_CHECK_UNTRACKED))
		return UNCOUNTED;
	lwsbt_report(h, LWSBT_DAMAGED_BLOB, lwsbt_node_of(q));
	return KEPT;
}

/* end_block ends the block at q: its words are void, and spare bytes that were overwritten are reported. */
static void end_block(struct lwsbt_profile *p, void *q)
{
	struct lwsbt_block *b = block_of(q);
	unsigned changed = 0;

	for (size_t left = lwsbt_spare(b->size), at = b->size; left > 0; left--)
		changed |= ((const uint8_t *)q)[at++] ^ (unsigned)LWSBT_SPARE_BYTE;
	b->tag = 0;
	if (changed)
		lwsbt_report(p->heap, LWSBT_DAMAGED_END, lwsbt_node_of(q));
}

/* A stack that was captured: s.depth frames of s from the first on. */
struct captured {
	struct lwsbt_stack s;
	size_t first;
	unsigned base;
};

/* capture captures the stack of caller, which allocates size bytes. It returns 0 if they
 * are not to be counted. */
LWSBT_INLINE int capture(struct lwsbt_profile *p, struct captured *c, size_t size, const void *caller)
{
	struct lwsbt_heap *h = p->heap;

	if (size > PTRDIFF_MAX / 2 || (LWSBT_EXTRAS && p->sample && !lwsbt_profile_sampled(p, size)))
		return 0;
	if (lwsbt_interrupted(h)) {
		h->interrupts++;
		return 0;
	}
	if (!lwsbt_enter(h))
		return 0;
	c->base = lwsbt_take(h, &c->s, (uintptr_t)caller, &c->first) ? LWSBT_PATH_CUT : LWSBT_PATH_WHOLE;
	lwsbt_leave(h);
	c->s.size = size;
	return 1;
}

/* begin_block counts a block of the memory at start, and returns the program's pointer. */
LWSBT_INLINE void *begin_block(struct lwsbt_profile *p, const struct captured *c, void *start, size_t overhead)
{
	return put_block(start, overhead, c->s.size, lwsbt_count_path(p, c->s.pc + c->first, c->s.depth, c->s.size, c->base));
}

/* allocate_counted is lwsbt_profile_memalign, or with an align of 0 lwsbt_profile_malloc. */
LWSBT_INLINE void *allocate_counted(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	struct captured c;
	size_t overhead = 0;
	void *start;

	if (capture(p, &c, size, caller)) {
		overhead = OVERHEAD;
		if (align > LWSBT_ALIGN)
			overhead = align < 2 * sizeof(struct lwsbt_block) ? 2 * sizeof(struct lwsbt_block) : align;
		size += overhead + lwsbt_spare(size);
	}
	if (align <= LWSBT_ALIGN)
		start = a->allocate(size);
	else
		start = a->aligned ? a->aligned(align, size) : NULL;
	if (!start)
		lwsbt_count(p->heap, &p->failed);
	return start && overhead ? begin_block(p, &c, start, overhead) : start;
}

LWSBT_NOINLINE void *lwsbt_profile_memalign(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller)
{
	return allocate_counted(p, a, align, size, caller);
}

LWSBT_NOINLINE void *lwsbt_profile_malloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t size,
	const void *caller)
{
	return allocate_counted(p, a, 0, size, caller);
}

void *lwsbt_profile_calloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller)
{
	void *q;

	if (size && n > SIZE_MAX / size)
		return NULL;
	q = lwsbt_profile_malloc(p, a, n * size, caller);
	return q ? memset(q, 0, n * size) : NULL;
}

/* resize_counted is lwsbt_profile_realloc of a block that is there, and stays. */
static LWSBT_NOINLINE void *resize_counted(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q, size_t size,
	const void *caller)
{
	struct captured c;
	unsigned number;
	size_t old = find_block(p, q, &number), overhead = 0, total, old_size = lwsbt_before(&block_of(q)->size);
	uintptr_t tag = lwsbt_before(&block_of(q)->tag);
	uint8_t *start;

	if (old == KEPT)
		return NULL;
	if (capture(p, &c, size, caller))
		overhead = old > OVERHEAD ? old : OVERHEAD;
	total = overhead ? size + overhead + lwsbt_spare(size) : size + old;
	if (old)
		end_block(p, q);
	start = total < size ? NULL : a->resize((uint8_t *)q - old, total);
	if (!start) {
		if (old)
			block_of(q)->tag = tag;
		lwsbt_count(p->heap, &p->failed);
		return NULL;
	}
	if (overhead != old)
		memmove(start + overhead, start + old, old && old_size < size ? old_size : size);
	if (old)
		lwsbt_profile_uncount(p, number, old_size);
	return overhead ? begin_block(p, &c, start, overhead) : start;
}

void *lwsbt_profile_realloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q,
	size_t size, const void *caller)
{
	if (!q)
		return lwsbt_profile_malloc(p, a, size, caller);
	if (size)
		return resize_counted(p, a, q, size, caller);
	lwsbt_profile_free(p, a, q);
	return NULL;
}

void lwsbt_profile_free(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q)
{
	unsigned number;
	size_t overhead;

	if (!q)
		return;
	overhead = find_block(p, q, &number);
	if (overhead == KEPT)
		return;
	if (overhead) {
		end_block(p, q);
		lwsbt_profile_uncount(p, number, block_of(q)->size);
	}
	a->release((uint8_t *)q - overhead);
}

/* src/profile_dump.c ------------------------------------------------------------------------ */

/*
 * Dumps of a profile.
 */

typedef char lwsbt_paths_are_deep_enough[LWSBT_PATH_DEPTH >= LWSBT_HEAP_DEPTH ? 1 : -1];

/* extend has all entries of a path written if e is: their sum replaces the path's values. [BT-DUMP-3] */
static void want_all(struct lwsbt_profile *p, const struct lwsbt_entry *e)
{
	uint32_t key;

	lwsbt_lock(p->heap);
	key = e->key;
	lwsbt_unlock(p->heap);
	for (unsigned i = 0; (key & WRITTEN) && i < p->entries; i++) {
		lwsbt_lock(p->heap);
		if (((p->entry[i].key ^ key) & (USED | NODE)) == 0)
			p->entry[i].key |= WRITTEN;
		lwsbt_unlock(p->heap);
	}
}

/* history returns the history of an entry; NULL if there is none. */
static const struct lwsbt_history *history(const struct lwsbt_profile *p, unsigned number)
{
	return LWSBT_EXTRAS && p->history ? &p->history[number] : NULL;
}

static unsigned depth_of(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	unsigned n = 0;

	for (; node >= FIRST_NODE; node = lwsbt_parent(p, node, bits))
		n++;
	return n;
}

/* repeats reports whether the dump writes the frames of the path of node again: each does so for a sixteenth of the
 * paths. Those with the same four outermost nodes are written again together, as they share frames. [BT-NAME-4] */
static int repeats(const struct lwsbt_profile *p, unsigned node, uint32_t number)
{
	unsigned bits = lwsbt_parent_bits(p), depth = depth_of(p, node, bits);

	for (; depth > 4; depth--)
		node = lwsbt_parent(p, node, bits);
	return (node + number) % 16 == 0;
}

void lwsbt_profile_begin(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags)
{
	const struct lwsbt_out *out = d->lines.out;

	if (!LWSBT_EXTRAS)
		flags = 0;
	if (!d->ended)
		flags &= ~(unsigned)LWSBT_DIFF;
	lwsbt_head_paths(out, p->heap->port, number, d->lines.lines, flags & LWSBT_DIFF ? &d->base : NULL,
		LWSBT_EXTRAS ? p->sample : 0, why);
	for (unsigned i = 0; LWSBT_EXTRAS && i < p->entries; i++) {
		uint32_t *key = &p->entry[i].key;

		lwsbt_lock(p->heap);
		*key = (*key & (PATH | KNOWN)) | (*key & CHANGED ? WRITTEN : 0);
		if ((flags & LWSBT_NAMES) && repeats(p, *key & NODE, number))
			*key &= ~(uint32_t)KNOWN;
		lwsbt_unlock(p->heap);
	}
	if (LWSBT_EXTRAS && (flags & LWSBT_DIFF))
		for (unsigned i = 0; i < p->entries; i++)
			want_all(p, &p->entry[i]);
	d->lines.code = &p->code;
	if (LWSBT_EXTRAS)
		d->lines.flags = p->history ? LWSBT_PATH_EVER | LWSBT_PATH_PEAK : 0;
	d->lines.dump = number;
	lwsbt_count(p->heap, &p->dumps);
	d->p = p;
	d->blocks = 0;
	d->cut = 0;
	d->bytes = 0;
	d->at = 0;
	d->flags = (uint8_t)flags;
	d->ended = 0;
}

/* before reports whether the path of node a comes before that of node b: by offsets, outermost first; a path
 * before those that go on from it. */
static int before(const struct lwsbt_profile *p, unsigned a, unsigned b)
{
	unsigned bits = lwsbt_parent_bits(p), m = depth_of(p, a, bits), n = depth_of(p, b, bits);
	int shorter = m < n;

	for (; m > n; m--)
		a = lwsbt_parent(p, a, bits);
	for (; n > m; n--)
		b = lwsbt_parent(p, b, bits);
	if (a == b)
		return shorter;
	for (; n > 0; n--) {
		unsigned up = lwsbt_parent(p, a, bits), other = lwsbt_parent(p, b, bits);

		if (up == other)
			return lwsbt_value(p, a, bits) < lwsbt_value(p, b, bits);
		a = up;
		b = other;
	}
	return a < b;
}

/* wanted reports whether the entry is to be written in the dump. */
static int wanted(const struct lwsbt_profile_dump *d, const struct lwsbt_entry *e)
{
	if (e->key & DONE)
		return 0;
	if (LWSBT_EXTRAS && (d->flags & LWSBT_DIFF))
		return (e->key & WRITTEN) != 0;
	return e->live > 0 || (history(d->p, 0) && (e->key & USED));
}

/* first returns the first wanted entry in the order of paths, or NULL. */
static struct lwsbt_entry *first_entry(const struct lwsbt_profile_dump *d)
{
	struct lwsbt_profile *p = d->p;
	struct lwsbt_entry *best = NULL;

	for (unsigned i = 0; i < p->entries; i++) {
		struct lwsbt_entry *e = &p->entry[i];

		lwsbt_lock(p->heap);
		if (wanted(d, e) && (!best || before(p, e->key & NODE, best->key & NODE)))
			best = e;
		lwsbt_unlock(p->heap);
	}
	return best;
}

/* path_of sets path to that of a node, and marks its nodes. The frames end at pc[LWSBT_HEAP_DEPTH - 1]. */
static void path_of(struct lwsbt_profile *p, unsigned node, lwsbt_word *pc, struct lwsbt_path *path)
{
	unsigned n = LWSBT_HEAP_DEPTH;

	while (node >= FIRST_NODE && n > 0)
		node = lwsbt_outer(p, node, &pc[--n]);
	path->pc = pc + n;
	path->depth = LWSBT_HEAP_DEPTH - n;
	path->base = node;
	path->outer = 0;
}

/* write writes an entry if it is wanted, and reports whether it is. It marks the nodes of the path of any entry. It
 * removes an entry that holds nothing and has no history, once a dump has reported this. */
static int write_entry(struct lwsbt_profile_dump *d, struct lwsbt_entry *e)
{
	struct lwsbt_profile *p = d->p;
	const struct lwsbt_history *h = history(p, (unsigned)(e - p->entry));
	lwsbt_word pc[LWSBT_HEAP_DEPTH], v[5];
	struct lwsbt_path path;
	uint32_t key;
	int write;

	lwsbt_lock(p->heap);
	key = e->key;
	write = wanted(d, e);
	if (write)
		e->key |= DONE | KNOWN;
	v[0] = e->live;
	v[1] = e->bytes;
	if (h) {
		v[2] = h->allocations;
		v[3] = h->bytes;
		v[4] = h->peak;
	}
	path_of(p, key & NODE, pc, &path);
	if (e->live == 0 && !(e->key & CHANGED) && !h)
		e->key = 0;
	lwsbt_unlock(p->heap);
	if (!write)
		return 0;
	if (LWSBT_EXTRAS && (d->flags & LWSBT_NAMES) && (key & KNOWN) && path.depth > 0) {
		uint32_t name = lwsbt_name(&p->code, &path);

		if (name > 1) { /* 0 and 1 are the names of paths of no frames [BT-NAME-4] */
			path.outer = name;
			path.base = LWSBT_PATH_NAMED;
			path.depth = 0;
		}
	}
	lwsbt_paths_add(&d->lines, &path, v, h ? 5 : 2);
	d->blocks += (uint32_t)v[0];
	d->bytes += v[1];
	if (key & CUT)
		d->cut += (uint32_t)v[0];
	return 1;
}

/* sweep removes the nodes that are not marked: since the dump began, no block was counted below them, and no entry
 * was found that needs them. */
static void sweep(struct lwsbt_profile *p)
{
	for (unsigned i = 0; i < p->nodes; i++) {
		lwsbt_lock(p->heap);
		if (((p->node[i] ^ lwsbt_marked(p)) & MARK) && p->node[i] << 1 != EMPTY)
			p->node[i] = REMOVED;
		lwsbt_unlock(p->heap);
	}
}

/* choose returns the entry to look at next; d->at is below the number of entries. With LWSBT_SORT, those that are wanted
 * come first, and then all once more: write removes some. */
static struct lwsbt_entry *choose(struct lwsbt_profile_dump *d)
{
	if (LWSBT_EXTRAS && (d->flags & LWSBT_SORT)) {
		struct lwsbt_entry *e = first_entry(d);

		if (e)
			return e;
		d->flags &= (uint8_t)~LWSBT_SORT;
	}
	return &d->p->entry[d->at++];
}

int lwsbt_profile_next(struct lwsbt_profile_dump *d)
{
	while (d->at < d->p->entries)
		if (write_entry(d, choose(d)))
			return 1;
	sweep(d->p);
	lwsbt_paths_flush(&d->lines);
	lwsbt_tail_paths(d->lines.out, d->lines.dump, d->blocks, d->bytes, d->lines.lines, d->cut);
	if (LWSBT_EXTRAS) { /* for LWSBT_DIFF */
		d->base = d->lines.dump;
		d->ended = 1;
	}
	return 0;
}

void lwsbt_profile_dump(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags)
{
	lwsbt_profile_begin(p, d, number, why, flags);
	while (lwsbt_profile_next(d))
		;
}

int lwsbt_low(struct lwsbt_profile *p, size_t free, size_t limit)
{
	uint32_t failed = p->failed;
	int was = p->low, low = free < limit || (was && free < limit + limit / 4), new = failed != p->seen;

	p->low = (uint8_t)low;
	p->seen = failed;
	return new || (low && !was);
}

/* src/capture_fp.c -------------------------------------------------------------------------- */

/*
 * capture_fp.c: walks the stack by frame pointers, of code that is compiled with
 * -fno-omit-frame-pointer. A function without one is left out, as long as it
 * does not use the register for something else. Nothing on machines where that is not
 * fixed, such as Arm.
 */

/* src/capture_code.h ------------------------------------------------------------------------ */

/*
 * capture_code.h: what capture backends read, and nothing beyond: words of the
 * stack and instructions of the program, both within the limits of a
 * struct lwsbt_capture_ctx. Included by each backend; all functions are static.
 */
#ifndef CAPTURE_CODE_H
#define CAPTURE_CODE_H


#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))
#else
#define INLINE static inline
#define UNUSED
#define NOINLINE
#endif

#define WORD sizeof(uintptr_t)

/* The stack word at address at, if it is aligned and within the limits. */
UNUSED static int stack_word(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t *word)
{
	if (at % WORD != 0 || at < ctx->lo || at >= ctx->hi || ctx->hi - at < WORD)
		return 0;
	*word = *(const uintptr_t *)at;
	return 1;
}

/* Reports whether the n bytes at address at are code that may be read. A program of
 * several modules names a function of its own for it. */
#ifdef LWSBT_IN_CODE
int LWSBT_IN_CODE(uintptr_t at, uintptr_t n);
#define in_code(ctx, at, n) ((void)(ctx), LWSBT_IN_CODE(at, n))
#define CODE_GOES_ON(ctx, at) in_code(ctx, at, 2)
#else
/* Reports whether there is code at address at, which is within the limits; modules have gaps. */
#define CODE_GOES_ON(ctx, at) 1
INLINE int in_code(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t n)
{
	return at >= ctx->code_lo && at < ctx->code_hi && ctx->code_hi - at >= n;
}
#endif

INLINE uint32_t code16(uintptr_t at)
{
	return *(const uint16_t *)at;
}

INLINE uint32_t code32(uintptr_t at)
{
	return *(const uint32_t *)at;
}

/* v sign-extended from its lowest n bits, 1 to 32. */
INLINE intptr_t extend(uint32_t v, unsigned n)
{
	uint32_t sign = (uint32_t)1 << (n - 1);

	v &= (sign << 1) - 1;
	return (intptr_t)(int32_t)((v ^ sign) - sign);
}

/* Bits lo to lo + n - 1 of v. */
INLINE uint32_t field(uint32_t v, unsigned lo, unsigned n)
{
	return v >> lo & (((uint32_t)1 << n) - 1);
}

/*
 * after_call reports whether pc, without mode bits, is the address after a call
 * instruction within the code. A return address is; most words that lie on a
 * stack for other reasons are not.
 */
#if defined(__thumb__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h;

	/* No function begins with a call. */
	if (pc % 2 != 0 || !in_code(ctx, pc - 4, 4))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xff87) == 0x4780)	/* blx Rm; with bits 0 to 2, blxns */
		return 1;
	/*
	 * bl:  11110 s imm10, 11 j1 1 j2 imm11
	 * blx: 11110 s imm10, 11 j1 0 j2 imm10 0 (to Arm code)
	 * A branch with link has bits 15, 14 and 12 of its second half set (0xd000):
	 * b.w has not bit 14, and j1 (bit 13) may be either. blx has not bit 12.
	 */
#if defined(__ARM_ARCH_ISA_ARM)
	if ((h & 0xd001) == 0xc000)
		h |= 0xd000;
#endif
	return (h & 0xd000) == 0xd000 && (code16(pc - 4) & 0xf800) == 0xf000;
}

#elif defined(__arm__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	if ((w & 0x0ffffff0) == 0x012fff30 || (w & 0x0f000000) == 0x0b000000)
		return 1;			/* blx Rm; bl */
	if ((w & 0xfe000000) == 0xfa000000)	/* blx to Thumb code */
		return 1;
	/* mov lr, pc; then bx Rm, or ldr pc, or mov pc: before Armv5 */
	return pc - ctx->code_lo >= 8 && (code32(pc - 8) & 0x0fffffff) == 0x01a0e00f;
}

#elif defined(__aarch64__)

/* ra without its pointer authentication code, if it has one: xpaclri, which is a
 * hint, and does nothing on processors that have no such codes. */
UNUSED static uintptr_t strip_pac(uintptr_t ra)
{
	register uintptr_t x30 __asm__("x30") = ra;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	/* bl; blr, blraa, blraaz, blrab, blrabz */
	return (w & 0xfc000000) == 0x94000000 || (w & 0xfefff000) == 0xd63f0000;
}

#elif defined(__riscv)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h, w;

	if (pc % 2 != 0 || pc - ctx->code_lo < 2 || !in_code(ctx, pc - 2, 2))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xf07f) == 0x9002 && h != 0x9002)	/* c.jalr; not c.ebreak */
		return 1;
#if __riscv_xlen == 32
	if ((h & 0xe003) == 0x2001)			/* c.jal */
		return 1;
#endif
	if (pc - ctx->code_lo < 4)
		return 0;
	w = code16(pc - 4) | h << 16;
	return (w & 0x0fff) == 0x00ef || (w & 0x7fff) == 0x00e7; /* jal ra; jalr ra */
}

#elif defined(__mips__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	/* A call returns behind its delay slot. */
	if (pc % 4 != 0 || pc - ctx->code_lo < 8 || !in_code(ctx, pc - 8, 8))
		return 0;
	w = code32(pc - 8);
	switch (w >> 26) {
	case 0:
		return (w & 0x3f) == 9 && field(w, 11, 5) == 31; /* jalr */
	case 1:
		return field(w, 20, 1) == 1;	/* bltzal, bgezal, bal, and likely */
	case 3:
	case 0x1d:
		return 1;			/* jal, jalx */
	}
	return 0;
}

#elif defined(__powerpc__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t w;

	if (pc % 4 != 0 || pc - ctx->code_lo < 4 || !in_code(ctx, pc - 4, 4))
		return 0;
	w = code32(pc - 4);
	/* bl, bcl, bclrl, bcctrl: branches with the link bit, 0 */
	return (w & 1) == 1 && (w >> 26 == 18 || w >> 26 == 16 ||
		(w >> 26 == 19 && ((w & 0x7fe) == 0x020 || (w & 0x7fe) == 0x420)));
}

#elif defined(__s390x__)

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	if (pc % 2 != 0 || pc - ctx->code_lo < 2 || !in_code(ctx, pc - 2, 2))
		return 0;
	if ((code16(pc - 2) & 0xfff0) == 0x0de0)	/* basr %r14,Rn */
		return 1;
	if (pc - ctx->code_lo >= 6 && code16(pc - 6) == 0xc0e5)	/* brasl %r14 */
		return 1;
	return pc - ctx->code_lo >= 4 && code16(pc - 4) == 0xa7e5; /* bras %r14 */
}

#elif defined(__i386__) || defined(__x86_64__)

INLINE uint32_t code8(uintptr_t at)
{
	return *(const uint8_t *)at;
}

UNUSED static int after_call(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uintptr_t room = pc - ctx->code_lo;
	unsigned n, modrm, length;

	if (pc < ctx->code_lo || pc > ctx->code_hi)
		return 0;
	if (room >= 5 && code8(pc - 5) == 0xe8)		/* call rel32 */
		return 1;
	for (n = 2; n <= 7 && n <= room; n++) {		/* call r/m: ff /2 */
		if (code8(pc - n) != 0xff || (code8(pc - n + 1) & 0x38) != 0x10)
			continue;
		modrm = code8(pc - n + 1);
		length = 2;
		if (modrm < 0xc0 && (modrm & 7) == 4)
			length += modrm < 0x40 && n > 2 && (code8(pc - n + 2) & 7) == 5 ? 5u : 1u;
		if (modrm >= 0x40 && modrm < 0x80)
			length += 1;
		else if ((modrm >= 0x80 && modrm < 0xc0) || (modrm < 0x40 && (modrm & 7) == 5))
			length += 4;
		if (length == n)
			return 1;
	}
	return 0;
}

#else
#define NO_CALLS	/* capture functions that need after_call are left out */
#endif

/* A return address without its authentication code. */
#if defined(__aarch64__)
#define stripped strip_pac
#else
#define stripped(ra) (ra)
#endif

#endif

/*
 * Where the caller's frame pointer and the return address lie, from where the
 * frame pointer points to:
 *
 *   x86, AArch64:  fp -> | caller's fp | return address |
 *   RISC-V:              | caller's fp | return address | <- fp
 */
#if defined(__riscv)
#define BELOW (2 * WORD)
#else
#define BELOW 0u
#endif

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__riscv)

static NOINLINE size_t walk_fp(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t fp)
{
	uintptr_t up, ra;
	size_t n = 0;

	while (n < max && stack_word(ctx, fp - BELOW, &up) &&
	       stack_word(ctx, fp - BELOW + WORD, &ra)) {
#if defined(__aarch64__)
		ra = strip_pac(ra);
#endif
		if (ctx->code_hi != 0 && !after_call(ctx, ra))
			break;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (up <= fp)		/* each frame lies above the one before */
			break;
		fp = up;
	}
	return n;
}

/* A function of its own, since only one that calls has a whole frame. */
NOINLINE size_t lwsbt_capture_fp(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	size_t n;

	if (!ctx)
		return 0;
	n = walk_fp(pcs, max, skip, ctx, (uintptr_t)__builtin_frame_address(0));
	__asm__ volatile("" : "+r"(n));	/* no tail call */
	return n;
}

#endif

/* src/capture_scan.c ------------------------------------------------------------------------ */

/*
 * capture_scan.c: takes for a return address each word of the stack that is an
 * address after a call. It needs nothing of the code but the code, and no frame
 * stops it; but what calls that have long returned left on the stack is taken as
 * well. For a stack that all other backends give up on.
 */

#ifndef NO_CALLS

NOINLINE size_t lwsbt_capture_scan(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t word, at = (uintptr_t)&word;
	size_t n = 0;

	if (!ctx)
		return 0;
	for (at -= at % WORD; n < max && stack_word(ctx, at, &word); at += WORD) {
#if defined(__thumb__)
		word--;		/* the mode bit, which after_call wants clear */
#endif
		word = stripped(word);
		if (!after_call(ctx, word))
			continue;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = word;
	}
	return n;
}

#endif

/* src/capture_unwind.c ---------------------------------------------------------------------- */

/*
 * capture_unwind.c: walks the stack by the compiler's own unwinder, which reads
 * .eh_frame or, on Arm, .ARM.exidx: code must be compiled with -funwind-tables,
 * and the linker must keep them. The unwinder trusts what it finds on the stack:
 * of a corrupted one, it may fault. It may allocate the first time that it runs.
 */

#include <unwind.h>

struct unwinding {
	uintptr_t *pcs;
	size_t max, skip, n;
	const struct lwsbt_capture_ctx *ctx;
};

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *arg)
{
	struct unwinding *u = arg;
	uintptr_t pc = (uintptr_t)_Unwind_GetIP(context), sp;

#if defined(__arm__) && !defined(__ARM_DWARF_EH__)
	sp = _Unwind_GetGR(context, 13);	/* EHABI's _Unwind_GetCFA has another meaning */
#else
	sp = (uintptr_t)_Unwind_GetCFA(context);
#endif

	if (u->ctx && u->ctx->hi != 0 && (sp < u->ctx->lo || sp > u->ctx->hi))
		return _URC_END_OF_STACK;
	if (u->skip > 0) {
		u->skip--;
		return _URC_NO_REASON;
	}
	if (pc == 0 || u->n >= u->max)
		return _URC_END_OF_STACK;
#if defined(__thumb__) || defined(__arm__)
	pc &= ~(uintptr_t)1;
#endif
	u->pcs[u->n++] = pc;
	return u->n < u->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

NOINLINE size_t lwsbt_capture_unwind(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct unwinding u;

	u.pcs = pcs;
	u.max = max;
	u.n = 0;
	u.skip = skip < SIZE_MAX ? skip + 1 : skip;	/* the first is this function */
	u.ctx = ctx;
	if (max > 0)
		_Unwind_Backtrace(see, &u);
	return u.n;
}

/* src/capture_functions.c ------------------------------------------------------------------- */

/*
 * capture_functions.c: the table of functions, which `btcore functable` writes into the linked program.
 * -DLWSBT_FUNCTIONS_MAX=400 reserves memory for 400 functions, 4 bytes for each. Until the table is
 * written, and without this option, there is none.
 */

#ifdef LWSBT_FUNCTIONS_MAX

/* Known to the command by their names. */
extern const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX];
extern const struct lwsbt_functions lwsbt_functions;

const uint32_t lwsbt_function_starts[LWSBT_FUNCTIONS_MAX] = {0};
const struct lwsbt_functions lwsbt_functions = {lwsbt_function_starts, 0, 0, 0};

const struct lwsbt_functions *lwsbt_function_table(void)
{
	/* A volatile pointer: a compiler that sees the whole program (-flto) must not
	 * take the table for empty, which it is before it is patched. */
	const struct lwsbt_functions *volatile table = &lwsbt_functions;
	const struct lwsbt_functions *t = table;

	return t->count != 0 ? t : NULL;
}

#else

const struct lwsbt_functions *lwsbt_function_table(void) { return NULL; }

#endif

/* src/capture_ppc.c ------------------------------------------------------------------------- */

/*
 * capture_ppc.c: walks the back chain of 32-bit PowerPC code. The ABI wants each
 * function that calls to keep it: no options are needed.
 *
 *   sp -> | back chain | place for the return address of the functions called |
 */

#if defined(__powerpc__) && !defined(__powerpc64__)

NOINLINE size_t lwsbt_capture_ppc(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0), up, ra;
	size_t n = 0;

	if (!ctx)
		return 0;
	ra = (uintptr_t)__builtin_return_address(0);
	if (!stack_word(ctx, sp, &sp))		/* this function's own frame */
		return 0;
	for (; n < max; sp = up) {
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (!stack_word(ctx, sp, &up) || up <= sp ||
		    !stack_word(ctx, up + WORD, &ra) || !after_call(ctx, ra))
			break;
	}
	return n;
}

#endif

/* src/capture_s390x.c ----------------------------------------------------------------------- */

/*
 * capture_s390x.c: walks the back chain of s390x code that is compiled with
 * -mbackchain.
 *
 *   sp -> | back chain | ... | registers of the function called, from r6 on, at 48 |
 *
 * A function stores its return address, r14, in the frame of its caller, at 112.
 */

#if defined(__s390x__)

#define R14 112u

static NOINLINE size_t walk_chain(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t sp)
{
	uintptr_t up, ra;
	size_t n = 0;

	while (n < max && stack_word(ctx, sp, &up) && up > sp &&
	       stack_word(ctx, up + R14, &ra) && after_call(ctx, ra)) {
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		sp = up;
	}
	return n;
}

/* A function of its own, since only one that calls has a frame. */
NOINLINE size_t lwsbt_capture_s390x(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t sp;
	size_t n;

	if (!ctx)
		return 0;
	__asm__ volatile("lgr %0, %%r15" : "=r"(sp));
	n = walk_chain(pcs, max, skip, ctx, sp);
	__asm__ volatile("" : "+r"(n));	/* no tail call */
	return n;
}

#endif

/* src/capture_xtensa.c ---------------------------------------------------------------------- */

/*
 * capture_xtensa.c: walks the stack of Xtensa's windowed ABI, as on the ESP32, ESP32-S2 and
 * ESP32-S3. Tested on register windows in memory made by hand from the manual, and not on
 * hardware. [Xtensa Instruction Set Architecture Reference Manual, 4.7.1 and 8.1]
 *
 * A call of 4, 8 or 12 rotates the window and writes its size, 1 to 3, to the top two bits
 * of the return address; the address itself lies in the same quarter of the memory as the
 * call. When windows overflow, the first four registers of a function's caller are stored
 * below the function's stack pointer:
 *
 *   sp - 16: a0, the caller's return address    sp - 12: a1, the caller's stack pointer
 */

/* src/capture_xtensa.h ---------------------------------------------------------------------- */

/*
 * capture_xtensa.h: the walk of capture_xtensa.c, for its test on other machines.
 */
#ifndef CAPTURE_XTENSA_H
#define CAPTURE_XTENSA_H


/* walk_windows stores return addresses: a0 is that of the function whose stack pointer is
 * sp, and pc is in its code. Stacks grow downward, and a task's first function has a return
 * address of 0. */
UNUSED static size_t walk_windows(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, uintptr_t pc, uintptr_t a0, uintptr_t sp)
{
	const uintptr_t quarter = pc & 0xc0000000u;
	uintptr_t up;
	size_t n = 0;

	while (n < max && (a0 & 0xc0000000u) != 0) {
		const uintptr_t ra = (a0 & 0x3fffffffu) | quarter;

		if (ctx->code_hi != 0 && (ra < ctx->code_lo || ra >= ctx->code_hi))
			break;
		if (skip > 0)
			skip--;
		else
			pcs[n++] = ra;
		if (sp < 4 * WORD || !stack_word(ctx, sp - 4 * WORD, &a0) ||
		    !stack_word(ctx, sp - 3 * WORD, &up) || up <= sp)
			break;
		sp = up;
	}
	return n;
}

#endif

#if defined(__XTENSA_WINDOWED_ABI__)

void xthal_window_spill(void);	/* of the HAL: stores all windows */

NOINLINE size_t lwsbt_capture_xtensa(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t a0, sp;

	if (!ctx)
		return 0;
	xthal_window_spill();
	__asm__ volatile("mov %0, a0\n\tmov %1, a1" : "=r"(a0), "=r"(sp));
	return walk_windows(pcs, max, skip, ctx, (uintptr_t)&lwsbt_capture_xtensa, a0, sp);
}

#endif

/* src/capture_thumb.c */

/*
 * capture_thumb.c: walks the stack of Thumb and Thumb-2 code (Cortex-M, and Arm
 * in Thumb state) by reading prologues.
 */

#if defined(__thumb__)

#define STEP 2u
#define MODE 1u
#define CALLS 1u
#define REGISTERS 0	/* constants are looked for where they are used */
#define DELAY 0
#define RA 14u
#define FP 7u	/* of Thumb code */
#define OWN_SEARCH
#define MAY_SAVE_RA(ctx, at) may_save_ra(code16(at))
#define PLAIN(at) plain(code16(at))
/* A Cortex-M enters a handler with a mark in lr, and what it interrupted on a stack. */
#if LWSBT_EXCEPTIONS && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define EXCEPTIONS
#endif
#ifdef __ARM_ARCH_ISA_ARM
#define OTHER_MODES	/* Arm */
#endif

/* Reports whether an instruction is one of most, which matter not: mov, add, cmp, of r0 to r7;
 * stores, loads, adr, add Rd, sp */
INLINE int plain(uint32_t h)
{
	return h < 0x4400 || h - 0x4800 < 0x6700;
}

/* Reports whether an instruction may save lr, by its first halfword. */
INLINE int may_save_ra(uint32_t h)
{
	return h >> 8 == 0xb5 || h == 0xe92d || h == 0xf84d;
}

#endif

/* src/capture_arm.c */

/*
 * capture_arm.c: walks the stack of 32-bit Arm code, in Arm state, by reading
 * prologues. A caller in Thumb state is recorded, and ends the walk.
 */

#if defined(__arm__) && !defined(__thumb__)

#define STEP 4u
#define MODE 1u
#define CALLS 0u
#define REGISTERS 16u
#define DELAY 0
#define RA 14u
#define FP 11u
#define OTHER_MODES	/* Thumb */
#endif

/* src/capture_aarch64.c */

/*
 * capture_aarch64.c: walks the stack of AArch64 code by reading prologues.
 */

#if defined(__aarch64__)

#define STEP 4u
#define MODE 0u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 0
#define RA 30u
#define FP 29u
#endif

/* src/capture_riscv.c */

/*
 * capture_riscv.c: walks the stack of RISC-V code, of 32 and 64 bits, with or
 * without compressed instructions, by reading prologues; those that call
 * __riscv_save_N (-msave-restore) as well.
 */

#if defined(__riscv)

#define STEP 2u
#define MODE 0u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 0
#define RA 1u
#define FP 8u	/* s0 */
#endif

/* src/capture_mips.c */

/*
 * capture_mips.c: walks the stack of MIPS code, o32 and n64, of either byte order,
 * by reading prologues. Callers that are MIPS16 or microMIPS code, whose return
 * addresses are odd, are recorded, and end the walk.
 */

#if defined(__mips__)

#define STEP 4u
#define MODE 1u
#define CALLS 0u
#define REGISTERS 32u
#define DELAY 1
#define RA 31u
#define FP 30u
#define OTHER_MODES
#endif

#ifdef STEP

/* src/capture_prologue.h -------------------------------------------------------------------- */

/*
 * capture_prologue.h: walks a stack by reading the prologues of its functions.
 *
 * A return address is in some function. Read from its first instruction on, its prologue says
 * by how much the function lowers the stack pointer, and where it saves the return address to its
 * caller and the caller's frame pointer. Reading ends where the return address is saved and
 * control goes elsewhere: a function that has called another has been there.
 *
 *      higher   |                      |
 *      entry -> | return address saved |  <- entry + ra
 *               | frame pointer saved  |  <- entry + fp
 *               | locals               |
 *      sp    -> |                      |  =  entry + sp, where sp < 0
 *
 * The start of the function is looked up in a table, if there is one. Otherwise the nearest
 * instruction before the return address that saves a return address is taken for a part of its
 * prologue. If what it saved is no return address, the walk ends.
 *
 *   capture_prologue.h  struct prologue, what instructions do to it, reading
 *   capture_rules.h     the cache: what was read, by return address (struct lwsbt_rule)
 *   capture_walk.h      frames: from one to its caller, up to the last
 *
 * With LWSBT_CAPTURE_TABLE_ONLY there always is a table, and the code for the search is left
 * out: 1,150 to 1,310 bytes of Thumb code.
 *
 * A port to a machine is one file, capture_MACHINE.c. It includes capture_code.h, to which it adds
 * after_call; defines constants; includes this header; defines functions; and ends with the
 * capture function, which calls walk. The smallest is capture_aarch64.c.
 *
 * Constants, all of them:
 *
 *   STEP          the size of the smallest instruction in bytes
 *   MODE          the bits of a return address that are no part of the address
 *   CALLS         bit 0 of a return address to code that decode reads
 *   REGISTERS     how many registers constants are loaded to, at most 32
 *   DELAY         1 if a branch is executed with the instruction after it
 *   RA, FP        the registers of return address and frame pointer
 *
 * Functions, all of them:
 *
 *   decode        reads the instruction at an address into a struct prologue, by save_ra,
 *                 save_fp, set_fp, store, load_const and add_reg, and returns its length in
 *                 bytes; for an instruction that does not matter, only that
 *   saves_ra      reports whether the instruction at an address saves the return
 *                 address
 *   begin         returns where the prologue begins that this instruction is a part of
 *
 * Macros, where a machine needs more; capture_thumb.c has all:
 *
 *   PLAIN(at)     reports whether the instruction at an address is one of STEP bytes that does
 *                 not matter, faster than decode
 *   MAY_SAVE_RA(ctx, at)
 *                 reports the same as saves_ra or, where that takes long, more often
 *   OWN_SEARCH    the port defines search, too: it returns where the function begins that a
 *                 call is in, or 0
 *   OTHER_MODES   the port defines other_mode, too: it reports whether a saved return address is
 *                 that of a call by code that decode cannot read
 *   EXCEPTIONS    the port defines cross, too, which replaces a frame whose return address is
 *                 the mark of an exception by the interrupted function, and takes that; and
 *                 resume, which replaces the interrupted function by its caller
 */
#ifndef CAPTURE_PROLOGUE_H
#define CAPTURE_PROLOGUE_H

/* What is known in struct prologue. */
enum {
	HAS_RA = 1,	/* ra is */
	HAS_FP = 2,	/* fp is */
	SETS_FP = 4,	/* frame is: the function has a frame pointer */
	FLOW = 8,	/* the last instruction branches, calls or returns */
	DYNAMIC = 16,	/* sp has become another register, or been lowered by one */
	BEHIND = 32	/* the prologue was read: what lowers sp by a register is alloca */
};

struct prologue {
	intptr_t sp;		/* the stack pointer, less what it was at entry */
	intptr_t ra;		/* where the return address is saved, less the same */
	intptr_t fp;		/* where the caller's frame pointer is */
	intptr_t frame;		/* the function's own frame pointer, less the same */
	unsigned has;
	uintptr_t start;	/* the address of its first instruction */
	uint32_t known;		/* the registers that constants were loaded to */
#if REGISTERS > 0
	intptr_t value[REGISTERS];
#endif
};

/* decode reads nothing at or after end but constants, and these within ctx. */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p);
#ifdef LWSBT_CAPTURE_TABLE_ONLY
#define saves_ra(ctx, at) 0
#else
static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at);
#endif

/* How far a search for a prologue goes, in bytes of code: interpreters have functions
 * over 64 KiB. */
#define FAR 0x40000

/* The first that stores decides: later ones save the same register for other
 * reasons. off is where, relative to the stack pointer. */
INLINE void save_ra(struct prologue *p, intptr_t off)
{
	if (!(p->has & HAS_RA))
		p->ra = p->sp + off;
	p->has |= HAS_RA;
}

INLINE void save_fp(struct prologue *p, intptr_t off)
{
	if (!(p->has & HAS_FP))
		p->fp = p->sp + off;
	p->has |= HAS_FP;
}

/* A register is stored. */
UNUSED static void store(struct prologue *p, unsigned reg, intptr_t off)
{
	if (reg == RA)
		save_ra(p, off);
	if (reg == FP)
		save_fp(p, off);
}

INLINE void set_fp(struct prologue *p, intptr_t off)
{
	if (!(p->has & SETS_FP))
		p->frame = p->sp + off;
	p->has |= SETS_FP;
}

#if REGISTERS > 0

UNUSED static void load_const(struct prologue *p, unsigned reg, intptr_t value)
{
	p->known |= (uint32_t)1 << reg;
	p->value[reg] = value;
}

/* Reports whether the constant in a register is known. */
UNUSED static int has_const(const struct prologue *p, unsigned reg)
{
	return reg < REGISTERS && (p->known >> reg & 1);
}

/* sp += the constant in a register, times sign. */
UNUSED static void add_reg(struct prologue *p, unsigned reg, int sign)
{
	if (p->has & BEHIND)
		p->has |= sign < 0 ? DYNAMIC : 0;
	else if (!has_const(p, reg))
		p->has |= DYNAMIC;
	else
		p->sp += sign * p->value[reg];
}

#endif

/* read_prologue reads from start on, up to end, and returns where it ended. */
static uintptr_t read_prologue(const struct lwsbt_capture_ctx *ctx, uintptr_t start,
	uintptr_t end, struct prologue *p)
{
	p->sp = 0;
	p->has = 0;
	p->known = 0;
	p->start = start;
	while (start < end) {
#ifdef PLAIN
		/* Most instructions do nothing that matters. */
		if (PLAIN(start)) {
			start += STEP;
			continue;
		}
#endif
		p->has &= ~(unsigned)FLOW;
		start += decode(ctx, start, end, p);
		if (!(p->has & FLOW))
			continue;
		if (DELAY && start < end)
			start += decode(ctx, start, end, p);
		if (p->has & HAS_RA)
			break;
	}
	return start;
}

/* Reports whether the next function may begin at address at. */
#ifndef MAY_SAVE_RA
#define MAY_SAVE_RA(ctx, at) saves_ra(ctx, at)
#endif

/*
 * moves_sp reports whether the function whose prologue ended at address at gives
 * its stack pointer other than constant values: alloca and arrays of variable
 * length do. Asked only where frame pointer and stack pointer disagree.
 * It is still the same function up to pc, and from there on up to end, or, where end
 * is not known, to the next that saves a return address.
 * What p says of sp is no longer true after it.
 */
static int moves_sp(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t pc,
	uintptr_t end, struct prologue *p)
{
	p->has |= BEHIND;
	if (ctx->code_hi < end)
		end = ctx->code_hi;
	while (at < end && !(p->has & DYNAMIC) && in_code(ctx, at, STEP) &&
	       (at < pc || !MAY_SAVE_RA(ctx, at)))
		at += decode(ctx, at, end, p);
	return (p->has & DYNAMIC) != 0;
}


/* src/capture_rules.h ----------------------------------------------------------------------- */

/*
 * capture_rules.h: the cache of what capture_prologue.h has read. A rule depends on code alone.
 *
 * A rule is where a function's caller left things, in words:
 *
 *   31   30                16 15            8 7             0
 *  | by | entry, above sp    | fp, below    | ra, below     |
 *  | fp | or, by fp, above fp| entry, or 0  | entry         |
 *
 * By fp is the rule of a function that moves its stack pointer at run time. NO_RULE is that of
 * a function that no caller can be told of.
 *
 * A rule is in one of RULE_PROBES places from where the key's hash points to. It has the key
 * xor the hash of the rule for a check: so what two threads wrote at a time is
 * taken for none.
 *
 * The key is the return address, with its mode bit. That of the capture function
 * itself is the complement of its start.
 */
#define HASH 0x9e3779b1u
#define BY_FP(rule) ((rule) >> 31 & 1)
#define ENTRY(rule) ((rule) >> 16 & 0x7fff)
#define BELOW_FP(rule) ((rule) >> 8 & 0xff)
#define BELOW_RA(rule) ((rule) & 0xff)
#define NO_RULE 1u
#define RULE_PROBES 8

#if LWSBT_SPEED
#define RULE_COUNT(ctx) (ctx)->rule_count
#else
#define RULE_COUNT(ctx) 0u
#endif

/* Each access is one of the machine's, as others may write at the time. */
#define SHARED(word) (*(volatile uintptr_t *)&(word))

/* Where the places of a key begin: the n-th is at place(ctx, hash(key) + n). The highest bits
 * of the product depend on most bits of the key. */
INLINE uint32_t hash(uintptr_t key)
{
	return (uint32_t)key * HASH >> 20;
}

INLINE struct lwsbt_rule *place(const struct lwsbt_capture_ctx *ctx, uint32_t n)
{
	return ctx->rules + (n & (RULE_COUNT(ctx) - 1));
}

/* rule_at returns the rule in the n-th place if it is that of a key, or 0. */
INLINE uintptr_t rule_at(const struct lwsbt_capture_ctx *ctx, uint32_t n, uintptr_t key)
{
	struct lwsbt_rule *r = place(ctx, n);
	uintptr_t rule = SHARED(r->rule);

	return (SHARED(r->check) ^ rule * HASH) == key ? rule : 0;
}

/* find returns the rule of a key, or 0, in a cache that has entries. */
NOINLINE static uintptr_t find_rule(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	struct lwsbt_rule *r;
	uintptr_t rule;
	uint32_t at = hash(key), end = at + RULE_PROBES;

	do {
		r = place(ctx, at);
		rule = SHARED(r->rule);
		if ((SHARED(r->check) ^ rule * HASH) == key)
			return rule;
	} while (rule != 0 && ++at != end);
	return 0;
}

/* recall returns the rule of a key, or 0. */
INLINE uintptr_t recall(const struct lwsbt_capture_ctx *ctx, uintptr_t key)
{
	return RULE_COUNT(ctx) != 0 ? find_rule(ctx, key) : 0;
}

/* remember takes the first place that is free, or one of those taken. */
static void remember(const struct lwsbt_capture_ctx *ctx, uintptr_t key, uintptr_t rule)
{
	struct lwsbt_rule *r;
	unsigned n;

	if (RULE_COUNT(ctx) == 0 || rule == 0)
		return;
	for (n = 0; n < RULE_PROBES && SHARED(place(ctx, hash(key) + n)->rule) != 0; n++)
		;
	r = place(ctx, hash(key) + (n < RULE_PROBES ? n : (unsigned)(key >> 4) % RULE_PROBES));
	SHARED(r->rule) = rule;
	SHARED(r->check) = key ^ rule * HASH;
}

/* The rule of a prologue, or 0 if it does not fit: by_fp of one whose stack pointer moves,
 * from where its frame pointer points to. */
static uintptr_t rule_of(const struct prologue *p, int by_fp)
{
	intptr_t down = by_fp ? p->frame : p->sp;
	uintptr_t entry = -(uintptr_t)down / WORD, ra = -(uintptr_t)p->ra / WORD,
		fp = p->has & HAS_FP ? -(uintptr_t)p->fp / WORD : 0;

	if ((down | p->ra) % (intptr_t)WORD != 0 || entry > 0x7fff || ra > 0xff || fp > 0xff ||
	    ra == 0 || (!by_fp && (ra > entry || fp > entry)) ||
	    (p->has & HAS_FP && -(uintptr_t)p->fp != fp * WORD))
		return 0;
	return (uintptr_t)(by_fp != 0) << 31 | entry << 16 | fp << 8 | ra;
}

/* src/capture_walk.h ------------------------------------------------------------------------ */

/*
 * capture_walk.h: from a frame to its caller, by its prologue (capture_prologue.h) or by the cache
 * (capture_rules.h).
 */

/* What a word of the stack is: no return address, that of a call, or that of a call
 * by code that decode can't read. FIRST is the frame of the capture function, INTERRUPTED
 * one that an exception interrupted: its pc follows no call. */
enum { NOT_RETURN, RETURN, OTHER_MODE, FIRST, INTERRUPTED };

#ifdef OTHER_MODES
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra);
#else
#define other_mode(ctx, ra) 0
#endif

/* A function on the stack, of which pc is the next instruction to execute. */
struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t lo, hi; /* the stack that sp is on */
	uintptr_t rule;	/* what the cache has of pc, or 0 */
#ifdef EXCEPTIONS
	uintptr_t lr;	/* of one that was interrupted */
#endif
	int kind;	/* of pc */
};

/* The word at address at of the stack that f is on, if it is aligned and within the limits. */
UNUSED static int frame_word(const struct frame *f, uintptr_t at, uintptr_t *word)
{
	if (at % WORD != 0 || at < f->lo || at >= f->hi || f->hi - at < WORD)
		return 0;
	*word = *(const uintptr_t *)at;
	return 1;
}

/* find_stack sets the limits of the stack that f->sp is on. */
INLINE int find_stack(const struct lwsbt_capture_ctx *ctx, struct frame *f)
{
	f->lo = ctx->lo;
	f->hi = ctx->hi;
#ifdef EXCEPTIONS
	if (f->sp - ctx->irq_lo < ctx->irq_hi - ctx->irq_lo) {
		f->lo = ctx->irq_lo;
		f->hi = ctx->irq_hi;
	}
#endif
	return f->lo < f->hi;
}

static int returns_to(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	if ((ra & 1) == CALLS && after_call(ctx, ra - CALLS))
		return RETURN;
	return other_mode(ctx, ra) ? OTHER_MODE : NOT_RETURN;
}

/* What a walk fills in: n counts up from -skip to max, and from 0 on pcs[n] is stored. */
struct taken {
	uintptr_t *pcs;
	size_t n, max;
};

INLINE void take(struct taken *t, uintptr_t pc)
{
	if (t->n < t->max)
		t->pcs[t->n] = pc;
	t->n++;
}

#ifdef EXCEPTIONS
static int cross(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t mark, struct taken *t);
static int resume(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t);
#else
#define cross(ctx, f, entry, mark, t) 0
#define resume(ctx, f, t) 0
#endif

/* land replaces f by its caller, to which the return address is ra, and takes that. */
static int land(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t ra, uintptr_t fp, struct taken *t)
{
	int kind;

	ra = stripped(ra);
	kind = returns_to(ctx, ra);
	if (kind == NOT_RETURN && f->kind != FIRST) {
		f->fp = fp;
		return cross(ctx, f, entry, ra, t);
	}
	f->pc = ra & ~(uintptr_t)MODE;
	f->sp = entry;
	f->fp = fp;
	f->kind = kind;
	f->rule = kind == RETURN ? recall(ctx, ra) : 0;
	take(t, f->pc);
	return 1;
}

/*
 * by_rules replaces f by its caller, takes that, and goes on as long as the cache has a
 * rule: which then is known to be of a return address. f->sp must lie on the stack. It does not
 * set f->pc, which nobody reads while there is a rule.
 */
NOINLINE static void by_rules(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t entry, ra, next, sp = f->sp, fp = f->fp, rule = f->rule;
	size_t n = t->n;
	int missed = 0;

	while (LWSBT_SPEED && rule != 0 && n != t->max) {
		entry = (BY_FP(rule) ? fp : sp) + ENTRY(rule) * WORD;
		if (BY_FP(rule) && (entry % WORD != 0 || entry - sp < BELOW_RA(rule) * WORD ||
				    entry - sp < BELOW_FP(rule) * WORD))
			break;
		/* Every function that calls has a frame: so the walk ends. */
		if (entry <= sp || entry > f->hi)
			break;
		ra = stripped(*(const uintptr_t *)(entry - BELOW_RA(rule) * WORD));
		if (BELOW_FP(rule) != 0)
			fp = *(const uintptr_t *)(entry - BELOW_FP(rule) * WORD);
		next = rule_at(ctx, hash(ra), ra); /* the first place, of most rules: a call of find takes longer */
		if (next == 0)
			next = find_rule(ctx, ra);
		if (next == 0) {
			missed = 1;
			break;
		}
		sp = entry;
		rule = next;
		if ((ptrdiff_t)n >= 0) /* else it is skipped */
			t->pcs[n] = ra & ~(uintptr_t)MODE;
		n++;
	}
	if (n != t->n)
		f->kind = RETURN;
	t->n = n;
	f->sp = sp;
	f->fp = fp;
	f->rule = rule;
	if (missed)
		(void)land(ctx, f, entry, ra, fp, t);
}

/* leave replaces f by its caller, if its function was entered with a stack pointer of
 * entry, and takes that. */
static int leave(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	const struct prologue *p, struct taken *t)
{
	uintptr_t ra, fp = f->fp;

	if (entry <= f->sp || entry > f->hi || entry % WORD != 0 ||
	    !frame_word(f, entry + (uintptr_t)p->ra, &ra) ||
	    ((p->has & HAS_FP) && !frame_word(f, entry + (uintptr_t)p->fp, &fp)))
		return 0;
	return land(ctx, f, entry, ra, fp, t);
}

/*
 * entry_of returns the stack pointer that the function of f was entered with, whose prologue p
 * was read up to address at; 0 if it can't be known. *by_fp is set if the function moves its
 * stack pointer. That is looked for only where the frame pointer says otherwise, or for the cache.
 */
NOINLINE static uintptr_t entry_of(const struct lwsbt_capture_ctx *ctx, const struct frame *f,
	struct prologue *p, uintptr_t at, uintptr_t end, int *by_fp)
{
	uintptr_t entry = f->sp - (uintptr_t)p->sp, other = f->fp - (uintptr_t)p->frame;
	intptr_t sp = p->sp;
	unsigned has = p->has;

	*by_fp = 0;
	if (!(has & SETS_FP))
		return has & DYNAMIC ? 0 : entry;
	if (other == entry && RULE_COUNT(ctx) == 0)
		return entry;
	*by_fp = moves_sp(ctx, at, f->pc, end, p);
	p->sp = sp;
	p->has = has;
	return *by_fp ? other : entry;
}

/*
 * caller replaces f by its caller, as the prologue that begins at start has it. The rule
 * follows from code alone, and is cached. What takes much of the stack is a function of its own, here
 * and below, so that no two of them take it at a time.
 */
NOINLINE static int caller(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	uintptr_t end, struct taken *t)
{
	struct prologue p;
	uintptr_t at, entry = 0, rule = NO_RULE;
	int by_fp;

	if (start != 0) {
		at = read_prologue(ctx, start, f->pc, &p);
		if (p.has & HAS_RA)
			entry = entry_of(ctx, f, &p, at, end, &by_fp);
		if (entry != 0)
			rule = rule_of(&p, by_fp);
	}
	remember(ctx, f->pc | CALLS, rule);
	return entry != 0 && leave(ctx, f, entry, &p, t);
}

/* The function at address at, by the table: its start, and *end. 0: none. */
static uintptr_t look_up(const struct lwsbt_functions *t, uintptr_t at, uintptr_t *end)
{
	size_t lo = 0, hi = t->count, mid;

	if (at < t->base || at >= t->end)
		return 0;
	at -= t->base;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (t->start[mid] <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return 0;
	*end = lo < t->count ? t->base + t->start[lo] : t->end;
	return t->base + t->start[lo - 1];
}

#if !defined(LWSBT_CAPTURE_TABLE_ONLY) && !defined(OWN_SEARCH)

static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR;

	while (at - end >= STEP && in_code(ctx, at - STEP, STEP)) {
		at -= STEP;
		if (saves_ra(ctx, at))
			return begin(ctx, at);
	}
	return 0;
}

#endif

/* start_of returns where the function at address at begins, or 0, and where it may end. */
NOINLINE static uintptr_t start_of(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t *end)
{
	uintptr_t start;

	if (ctx->functions) {
		start = look_up(ctx->functions, at, end);
		return start >= ctx->code_lo ? start : 0;
	}
#ifdef LWSBT_CAPTURE_TABLE_ONLY
	return 0;
#else
	*end = at + FAR;
	return search(ctx, at);
#endif
}

/* up replaces f by its caller, and takes it. */
static int up(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t end = 0, start;

	if (f->kind == INTERRUPTED)
		return resume(ctx, f, t);
	/* Where there is a rule, the prologue says no more. */
	if (f->kind != RETURN || f->rule != 0)
		return 0;
	/* The call, not what follows it: that may be another function. */
	start = start_of(ctx, f->pc - STEP, &end);
	return caller(ctx, f, start, end, t);
}

/* first replaces f, the capture function itself, which begins at start, by its caller, and takes it. It
 * is known to have no frame pointer that differs from its stack pointer, and to be before its first
 * branch no longer than FAR. */
NOINLINE static int first(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	struct taken *t)
{
	struct prologue p;

	read_prologue(ctx, start & ~(uintptr_t)MODE, start + FAR, &p);
	if (!(p.has & HAS_RA) || !leave(ctx, f, f->sp - (uintptr_t)p.sp, &p, t))
		return 0;
	remember(ctx, ~start, rule_of(&p, 0));
	return 1;
}

/*
 * walk stores the return addresses of the functions above f, which is the
 * capture function itself: start is its first instruction.
 */
static size_t walk(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start)
{
	struct taken t = {pcs, 0 - skip, max};

	if (!ctx || !find_stack(ctx, f) || f->sp % WORD != 0 || f->sp - f->lo >= f->hi - f->lo)
		return 0;
	f->kind = FIRST;
	f->pc = start;
	f->rule = recall(ctx, ~start);
	if (f->rule == 0 && !first(ctx, f, start, &t))
		return 0;
	do
		by_rules(ctx, f, &t);
	while (t.n != max && up(ctx, f, &t));
	return t.n <= max ? t.n : 0;
}

#endif

#endif

/* src/capture_thumb.c, continued */

#if defined(__thumb__)

/* Of Armv6-M, bl alone has two halfwords, but for barriers and accesses of special registers.
 * Armv8-M's baseline, which calls itself Thumb, has movw and movt. */
#if __ARM_ARCH_ISA_THUMB == 1
#define THUMB1 1
#else
#define THUMB1 0
#endif
#if THUMB1 && !defined(__ARM_ARCH_8M_BASE__)
#define THUMB2 0
#else
#define THUMB2 1
#endif

/* What the instructions of a prologue do, and what their constant is. */
enum {
	NOTHING, BRANCHES, PUSHES, STORES, LOWERS, LOWERS_BY, RAISES_BY, MAKES_FP, MOVES_SP
};
enum { NONE, WORDS7, WORDS8, WORDS, BYTES8, MODIFIED, IMM12, IMM16 };

/*
 * The instructions that matter, by their first halfword: (halfword & mask) == bits.
 * The first that matches counts.
 */
static const struct form {
	uint16_t mask, bits;
	uint8_t does, constant;
} forms[] = {
	{0xfe00, 0xb400, PUSHES, NONE},		/* push; bit 8: and lr */
	{0xff80, 0xb080, LOWERS, WORDS7},	/* sub sp, #imm7 * 4 */
	{0xffff, 0x466f, MAKES_FP, NONE},	/* mov r7, sp */
	{0xffff, 0x46bd, NOTHING, NONE},	/* mov sp, r7: an epilogue */
	{0xff87, 0x4685, MOVES_SP, NONE},	/* mov sp, Rm */
	{0xff00, 0x4600, NOTHING, NONE},	/* other mov */
	{0xf500, 0xb100, BRANCHES, NONE},	/* cbz, cbnz */
	{0xff80, 0xd180, NOTHING, NONE},	/* bne back: a loop that probes a large frame */
	{0xf000, 0xd000, BRANCHES, NONE},	/* b<c>, svc */
	{0xf800, 0xe000, BRANCHES, NONE},	/* b */
	{0xff00, 0xbd00, BRANCHES, NONE},	/* pop, and pc */
	{0xff00, 0x4700, BRANCHES, NONE},	/* bx, blx */
	{0xff00, 0xaf00, MAKES_FP, WORDS8},	/* add r7, sp, #imm8 * 4 */
	{0xff87, 0x4485, RAISES_BY, NONE},	/* add sp, Rm */
	{0, 0, NOTHING, NONE},
#if THUMB2
	{0xffff, 0xe92d, PUSHES, NONE},		/* stmdb sp!, {...} */
	{0xffff, 0xf84d, STORES, BYTES8},	/* str Rt, [sp, #-imm8]! */
	{0xff00, 0xf800, NOTHING, NONE},	/* other loads and stores */
	{0xfbff, 0xf1ad, LOWERS, MODIFIED},	/* sub.w sp, sp, #const */
	{0xfbff, 0xf2ad, LOWERS, IMM12},	/* subw sp, sp, #imm12 */
	{0xfbff, 0xf10d, MAKES_FP, MODIFIED},	/* add.w r7, sp, #const */
	{0xfbff, 0xf20d, MAKES_FP, IMM12},	/* addw r7, sp, #imm12 */
	{0xffbf, 0xed2d, LOWERS, WORDS},	/* vpush: counted in words, also of doubles */
	{0xffff, 0xebad, LOWERS_BY, NONE},	/* sub sp, sp, Rm */
	{0xffff, 0xeb0d, RAISES_BY, NONE},	/* add sp, sp, Rm */
	{0xfff0, 0xe8d0, BRANCHES, NONE},	/* tbb, tbh */
	{0, 0, NOTHING, NONE}
#endif
};
#define WIDE 15		/* the first form of two halfwords */

/* The constant of an instruction; a modified one that repeats a byte is in no
 * prologue. */
static uint32_t constant(unsigned kind, uint32_t h, uint32_t h2)
{
#if THUMB2
	uint32_t v = field(h, 10, 1) << 11 | field(h2, 12, 3) << 8 | (h2 & 0xff), r = v >> 7;
#else
	(void)h2;
#endif

	switch (kind) {
	case WORDS7:
		return 4 * (h & 0x7f);
	case WORDS8:
		return 4 * (h & 0xff);
#if THUMB2
	case WORDS:
		return 4 * (h2 & 0xff);
	case BYTES8:
		return h2 & 0xff;
	case IMM12:
		return v;
	case IMM16:
		return v | (h & 15) << 12;
	case MODIFIED:
		if (r < 8)
			return v & 0xff;
		v = (v & 0xff) | 0x80;
		return v >> r | v << (32 - r);
#endif
	}
	return 0;
}

/* The size of the registers in list, on the stack. */
INLINE intptr_t size_of(uint32_t list)
{
	intptr_t n = 0;

	for (; list != 0; list &= list - 1)
		n += 4;
	return n;
}

/* push of the registers in list, of which lr is bit 14: the highest comes to the
 * highest address */
INLINE void push(struct prologue *p, uint32_t list)
{
	if (list >> RA & 1)
		save_ra(p, -4);
	p->sp -= size_of(list);
	if (list >> FP & 1)
		save_fp(p, size_of(list & ((1u << FP) - 1)));
}

/* The length of the instruction that begins with a halfword. */
INLINE uintptr_t length(uint32_t h)
{
	return h >= 0xe800 ? 4 : 2;
}

/*
 * constant_in returns the constant that the instructions from where p starts to address at leave in
 * register reg, for frames that are too large for others: from memory, or by movw and
 * movt. If there is none, p is DYNAMIC.
 */
NOINLINE static uint32_t constant_in(const struct lwsbt_capture_ctx *ctx, struct prologue *p,
	uintptr_t at, unsigned reg)
{
	uintptr_t from, start;
	uint32_t h, h2, v = 0;
	int found = 0;

	for (start = p->start; start < at; start += length(h)) {
		h = code16(start);
		h2 = 0;
		from = 4 * (h & 0xff);
		if (h >> 11 != 9 || field(h, 8, 3) != reg) {
			if (!THUMB2 || h < 0xf000 || at - start < 4)
				continue;
			h2 = code16(start + 2);
			if ((h & 0xfbef) == 0xf04f && field(h2, 8, 4) == reg) {		/* mov.w */
				v = constant(MODIFIED, h, h2);
				found = 1;
			}
			if ((h & 0xfb70) == 0xf240 && field(h2, 8, 4) == reg) {	/* movw, movt */
				v = h & 0x80 ? (v & 0xffff) | constant(IMM16, h, h2) << 16 : constant(IMM16, h, h2);
				found = 1;
			}
			if (h != 0xf8df || h2 >> 12 != reg)	/* ldr.w Rt, [pc, #imm12] */
				continue;
			from = h2 & 0xfff;
		}
		from += (start + 4) & ~(uintptr_t)3;
		found = in_code(ctx, from, 4);
		if (found)
			v = code32(from);
	}
	if (!found)
		p->has |= DYNAMIC;
	return v;
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	const struct form *f = forms;
	uint32_t h = code16(at), h2 = 0, v;
	unsigned rd = 0, rm = field(h, 3, 4), n = 2;

	if (plain(h))
		return n;
	if (h >= 0xe800) {
		n = 4;
		if (end - at < 4)
			return n;
		h2 = code16(at + 2);
		if (h >> 11 == 0x1e && (h2 & 0x8000)) {
			/* branches; not msr, mrs and hints */
			if ((h2 & 0x5000) != 0 || (h & 0x380) != 0x380)
				p->has |= FLOW;
			return n;
		}
		/* loads and stores but of one register, and floating point, matter not */
		if (!THUMB2 || (h >> 9 == 0x7c && h != 0xf84d))
			return n;
		f += WIDE;
		rd = field(h2, 8, 4);
		rm = h2 & 0xf0f0 ? 16u : h2 & 15;
	}
	while ((h & f->mask) != f->bits)
		f++;
	v = f->constant == NONE ? 0 : constant(f->constant, h, h2);
	switch (f->does) {
	case BRANCHES:
		p->has |= FLOW;
		break;
#if THUMB2
	case STORES:
		if ((h2 & 0xf00) != 0xd00)	/* not pre-indexed, down */
			break;
		p->sp -= (intptr_t)v - 4;
		h2 = (uint32_t)1 << (h2 >> 12);
#endif
		/* fall through */
	case PUSHES:
		push(p, n == 4 ? h2 & 0x7fff : (h & 0xff) | (h & 0x100) << 6);
		break;
	case LOWERS:
		if (n == 2 || rd == 13 || f->constant == WORDS)
			p->sp -= (intptr_t)v;
		break;
	case LOWERS_BY:
	case RAISES_BY:
		if (n == 4 && rd != 13)
			break;
		if (p->has & BEHIND) {
			p->has |= f->does == LOWERS_BY ? DYNAMIC : 0;
			break;
		}
		v = constant_in(ctx, p, at, rm);
		p->sp += (intptr_t)(f->does == LOWERS_BY ? 0 - v : v);
		break;
	case MAKES_FP:
		if (n == 2 || rd == FP)
			set_fp(p, (intptr_t)v);
		break;
	case MOVES_SP:
		p->has |= DYNAMIC;
		break;
	}
	return n;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

/* src/capture_thumb_search.h ---------------------------------------------------------------- */

/*
 * capture_thumb_search.h: finds where a function of Thumb code begins, without a table of functions. It is a part of
 * capture_thumb.c, and defines what capture_prologue.h asks for: saves_ra, search and begin.
 *
 * A search goes back from the return address to the nearest push of lr. A halfword that looks like one may be
 * the second of an instruction (second), a constant that an instruction loads (is_constant), or in the table of a
 * switch (in_offsets, is_target). Then begin looks for what a prologue has before the push.
 */
static int is_constant(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int doubt);

/* Reports whether an instruction of two halfwords that begins with h can have 0xb5xx as its
 * second: b.w, ldrd, loads and stores of r11, and multiplications. */
static int takes_b5(uint32_t h)
{
	return h >> 11 == 0x1e || (h & 0xfe40) == 0xe840 || h >> 8 == 0xfb ||
		(h >> 9 == 0x7c && (h & 0x180) != 0);
}

/*
 * second reports whether the halfword at address at, 0xb5xx, is the second of an
 * instruction. One below 0xe800 ends an instruction, whichever half it is; those
 * from there on begin one, or are the second of one, in turns. A constant before it may
 * look like the first half.
 */
static int second(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n = 0;

	if (!in_code(ctx, at - 2, 2) || !takes_b5(code16(at - 2)))
		return 0;
	while (n < 64 && in_code(ctx, at - 2 * (n + 1), 2) && code16(at - 2 * (n + 1)) >= 0xe800)
		n++;
	return n % 2 != 0 && !(at % 4 == 0 && is_constant(ctx, at - 4, 0));
}

/* Reports whether at address at stands what is in no prologue before lr is saved: bx, pop
 * with pc, b; a call, or b.w. One of variable arguments pops its return address to another
 * register than lr. */
static int ends(uintptr_t at)
{
	uint32_t h = code16(at), h2 = code16(at + 2);

	if (THUMB2 && ((h == 0xe8bd && (h2 & 0x8000)) || (h == 0xf85d && h2 >> 12 == 15)))
		return 1;			/* ldmia sp!, with pc; ldr pc, [sp], #n */
	return (h & 0xff07) == 0x4700 || h >> 8 == 0xbd || h >> 11 == 0x1c ||
		(h >> 11 == 0x1e && (h2 & 0x9000) == 0x9000);
}

/* How far back from the instruction that saves the return address others of its prologue
 * are, in bytes. */
#define PROLOGUE 40

/*
 * pushes_high reports whether the push with lr at address at saves another register in
 * it. Of Armv6-M, push cannot name r8 to r11: they are moved to others first, of
 * which lr may be one, after it was saved by a push before. Other instructions may stand between.
 */
static int pushes_high(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back;
	uint32_t h;
	int moved = 0;

	for (back = 2; THUMB1 && back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if ((h & 0xffc7) == 0x46c6)	/* mov lr, r8 to r15 */
			moved = 1;
		if (h >> 9 == 0x5a)		/* another push */
			return moved && (h & 0x100);
		if (ends(at - back))
			break;
	}
	return 0;
}

/* How far ahead of it an instruction loads a constant, in bytes. */
#define LITERAL (THUMB2 ? 4096u : 1024u)

/*
 * is_constant reports whether the halfword at address at is of a constant: whether an
 * instruction before it loads its word. Constants stand behind a function, right
 * before the next. One may itself look like such an instruction: so in doubt, what
 * loads must not be loaded.
 */
static int is_constant(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int doubt)
{
	uintptr_t word = at & ~(uintptr_t)3, load, from;
	uint32_t h, size;

	for (load = word - 4; word - load <= LITERAL && in_code(ctx, load, 4); load -= 2) {
		h = code16(load);
		from = 4 * (h & 0xff);
		size = 4;
#if THUMB2
		if (h == 0xf8df) {			/* ldr Rt, [pc, #imm12] */
			from = code16(load + 2) & 0xfff;
		} else if ((h & 0xfbbf) == 0xe99f) {	/* ldrd, vldr: [pc, #imm8 * 4] */
			from = 4 * (code16(load + 2) & 0xff);
			size = 8;			/* of one word or two */
		} else if (h >> 11 == 0x14 && !second(ctx, load)) {
			size = 8;			/* adr Rd, [pc, #imm8 * 4]: for an ldrd */
		} else
#endif
		if (h >> 11 != 9)			/* ldr Rt, [pc, #imm8 * 4] */
			continue;
		if (word - ((load + 4) & ~(uintptr_t)3) - from < size &&
		    !(doubt && is_constant(ctx, load, 0)))
			return 1;
	}
	return 0;
}

/* An address of code as the table of a switch has it: odd, and not far from address at. */
static int is_target(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t to;

	if (!in_code(ctx, at, 4))
		return 0;
	to = code32(at);
	return to % 2 != 0 && to - at + FAR < 2 * FAR && in_code(ctx, to, 1);
}

/* size_of_table returns the size in bytes of an entry of the table of offsets behind the instructions
 * at address at, or 0: behind tbb, tbh, bx of a sum in position-independent code, and, on Armv6-M, calls
 * of libgcc's __gnu_thumb1_case_*. */
static unsigned size_of_table(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at), h2 = code16(at + 2);
#if THUMB1
	uintptr_t to = at + 4 + (uintptr_t)(extend(h, 11) * 4096) + 2 * (h2 & 0x7ff);
	unsigned i;

	if (h >> 11 != 0x1e || h2 >> 11 != 0x1f || !in_code(ctx, to, 16) ||
	    (code16(to) & 0xfffe) != 0xb402 || code16(to + 2) != 0x4671)	/* push {r1}; mov r1, lr */
		return 0;
	for (i = 4; i < 16; i += 2) {
		h = code16(to + i);
		if (h >> 12 == 5)		/* ldrsb, ldr, ldrh, ldrb, ldrsh */
			return h >> 9 & 1 ? ((h >> 9 & 7) == 3 ? 1 : 2) : (h >> 9 & 7) == 4 ? 4 : 1;
	}
	return 0;
#else
	if (h == 0xe8df && (h2 & 0xffe0) == 0xf000)
		return 1 + (h2 >> 4 & 1);
	if (h2 == 0xbf00 && in_code(ctx, at - 2, 2)) {	/* a nop: tables of words are aligned */
		h2 = h;
		h = code16(at - 2);
	}
	/* add Rd, Rm; bx Rd */
	return at % 4 == 0 && (h & 0xff80) == 0x4400 && (h2 & 0xffc7) == 0x4700 && field(h2, 3, 3) == (h & 7) ? 4 : 0;
#endif
}

#define TABLE 1024	/* how far behind its beginning a table of offsets is looked for, in bytes */

/* Reports whether address at is in a table of offsets. It ends at the latest where the nearest of
 * its targets is. */
static int in_offsets(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t from, entry, end;
	uint32_t v;
	unsigned size;

	for (from = at - 4; at - from <= TABLE && in_code(ctx, from, 4); from -= 2) {
		size = size_of_table(ctx, from);
		if (size == 0)
			continue;
		/* of words that have the mode bit */
		if (THUMB2 && size == 4 && ((code16(at & ~(uintptr_t)3) & 1) == 0 || code32(at & ~(uintptr_t)3) >= FAR))
			return 0;
		end = from + FAR;
		for (entry = from + 4; entry <= at && entry < end; entry += size) {
			v = size == 4 ? code32(entry) / 2 : size == 2 ? code16(entry) : *(const uint8_t *)entry;
			if (v != 0 && v < end / 2 && from + 4 + 2 * v < end)
				end = from + 4 + 2 * v;
		}
		return at < end;
	}
	return 0;
}

/* returned returns the registers that the next return behind address at pops with pc, or 0. Stacks
 * are left as they were entered, in most functions. */
static uint32_t returned(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n;
	uint32_t h;

	for (n = 0; n < 256 && in_code(ctx, at, 2); n++) {
		h = code16(at);
		if (h >> 8 == 0xbd)
			return h & 0xff;
		if (h >> 8 == 0xb5)
			break;
		at += length(h);
	}
	return 0;
}

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if (!may_save_ra(h) || !in_code(ctx, at, 4))
		return 0;
	if (h >> 8 == 0xb5)		/* push, and lr */
		return !(THUMB2 && second(ctx, at)) && !pushes_high(ctx, at);
	/* stmdb sp!, with lr, neither sp nor pc; str lr, [sp, #-n]! */
	return h == 0xe92d ? (code16(at + 2) & 0xe000) == 0x4000 : (code16(at + 2) & 0xff00) == 0xed00;
}

/* How far read-only data may be from the code, variables from the stack, and one from another, in
 * bytes. */
#define APART 0x1000000u

/*
 * is_data reports whether what looks like a push of lr at address at is data: a constant that is
 * loaded, or in the table of a switch. pops is set if the function pops the same registers: then it
 * may only be an address in the code. To look for what loads a constant takes long.
 */
static int is_data(const struct lwsbt_capture_ctx *ctx, uintptr_t at, int pops)
{
	uintptr_t word = at & ~(uintptr_t)3, v = code32(word);

	/* In a table there are others beside it. One before it that is loaded is no part of a table. */
	if (in_code(ctx, v, 1))
		return (is_target(ctx, word) && (is_target(ctx, word + 4) ||
			(is_target(ctx, word - 4) && !is_constant(ctx, word - 4, 0)))) || is_constant(ctx, at, 1);
	if (pops)
		return 0;
	return in_offsets(ctx, at) ||
		((v + APART < 2 * APART || v - ctx->code_lo + APART < ctx->code_hi - ctx->code_lo + 2 * APART ||
		  v - ctx->lo + APART < 2 * APART) && is_constant(ctx, at, 1));
}

static uintptr_t search(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t end = at - ctx->code_lo < FAR ? ctx->code_lo : at - FAR, pc = at;
	uint32_t h, list = 0x100;

	while (at - end >= STEP && CODE_GOES_ON(ctx, at - STEP)) {
		at -= STEP;
		h = code16(at);
		if (!may_save_ra(h) || !saves_ra(ctx, at))
			continue;
		if (h >> 8 == 0xb5) {
			if (list == 0x100)
				list = returned(ctx, pc);
			if (is_data(ctx, at, list == (h & 0xff)))
				continue;
		}
		return begin(ctx, at);
	}
	return 0;
}

/*
 * A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them: push {rN-r3}, or sub sp, #4 to #16. Other instructions may
 * stand between that and its push of lr, but none that ends a function, and no constant
 * of the function before.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t h;

	for (back = 2; back <= PROLOGUE && in_code(ctx, at - back, 2); back += 2) {
		h = code16(at - back);
		if (h == 0xb40f || h == 0xb40e || h == 0xb40c || h == 0xb408 ||
		    (h >= 0xb081 && h <= 0xb084)) {
			/* a word that at is in is no constant: tables, too, look like loads */
			if ((at - back) / 4 != at / 4 && is_constant(ctx, at - back, 1))
				break;
			first = at - back;
		} else if (ends(at - back))
			break;
	}
	return first;
}
#endif

#ifdef OTHER_MODES

/* Reports whether ra is that of a call by Arm code: bl, blx */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	uint32_t w;

	if (ra % 4 != 0 || !in_code(ctx, ra - 4, 4))
		return 0;
	w = code32(ra - 4);
	return (w & 0x0ffffff0) == 0x012fff30 || (w & 0xfe000000) == 0xfa000000;
}

#endif

#ifdef EXCEPTIONS

/* src/capture_exception.h ------------------------------------------------------------------- */

/*
 * capture_exception.h: crosses exceptions of a Cortex-M. A handler is entered with a
 * mark in lr (EXC_RETURN), after the processor has saved, on the stack that was in use:
 *
 *   higher  | where the function's stack was  |
 *           | 4 bytes, if bit 9 of xpsr is set|
 *           | 18 words of floating point      |  if bit 4 of the mark is clear
 *      +28  | xpsr                            |
 *      +24  | pc                              |
 *      +20  | lr                              |
 *           | r0 to r3, r12                   |
 *
 * Bit 2 of the mark is set if that was the process stack. Not crossed are exceptions between
 * the security states of Armv8-M.
 */
#define OF_LR 20u
#define OF_PC 24u
#define OF_XPSR 28u

/* The number of the exception that is handled; 0 if none is. */
INLINE uint32_t ipsr(void)
{
	uint32_t v;

	__asm__ volatile("mrs %0, ipsr" : "=r"(v));
	return v;
}

INLINE uintptr_t psp(void)
{
	uintptr_t v;

	__asm__ volatile("mrs %0, psp" : "=r"(v));
	return v;
}

/*
 * cross replaces f, a handler that was entered with a stack pointer of entry, by the function
 * that was interrupted. It takes an address within the instruction that comes next: that
 * less 1 is in the instruction, as it is of return addresses.
 */
NOINLINE static int cross(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t entry,
	uintptr_t mark, struct taken *t)
{
	uintptr_t pc, xpsr;

	if (mark < 0xffffff80u || (mark & 2) != 0 || ipsr() == 0)
		return 0;
	f->sp = entry;
	if (mark & 4) {
		f->sp = psp();
		f->lo = ctx->lo;
		f->hi = ctx->hi;
	}
	if (!frame_word(f, f->sp + OF_XPSR, &xpsr) || !frame_word(f, f->sp + OF_PC, &pc) ||
	    !frame_word(f, f->sp + OF_LR, &f->lr) || !in_code(ctx, pc, 2) || pc % 2 != 0 ||
	    (xpsr >> 24 & 1) == 0)
		return 0;
	f->sp += (mark & 16 ? 32 : 104) + (xpsr >> 7 & 4);
	f->pc = pc;
	f->rule = 0;
	f->kind = INTERRUPTED;
	take(t, pc + STEP);
	return 1;
}

/* What an interrupted function does until it returns. */
struct end {
	uintptr_t sp, fp, lr;
};

/* pop takes the registers in list off the stack; e->lr is the new pc, if that is among them. */
static int pop(const struct frame *f, struct end *e, uint32_t list)
{
	unsigned reg;
	uintptr_t word;

	for (reg = 0; reg < 16; reg++) {
		if (!(list >> reg & 1))
			continue;
		if (!frame_word(f, e->sp, &word))
			return 0;
		e->sp += 4;
		if (reg == FP)
			e->fp = word;
		if (reg >= RA)
			e->lr = word;
	}
	return 1;
}

/* How many instructions a function may be from its return. */
#define NEAR 16

/*
 * returns_soon follows the instructions from where f was interrupted, and reports whether they
 * lead straight to the return. If so, e has what it leaves. So epilogues are crossed, and functions
 * that save nothing, wherever they begin.
 */
static int returns_soon(const struct lwsbt_capture_ctx *ctx, const struct frame *f, struct end *e)
{
	uintptr_t at = f->pc;
	uint32_t h, h2;
	unsigned n;

	e->sp = f->sp;
	e->fp = f->fp;
	e->lr = f->lr;
	for (n = 0; n < NEAR && in_code(ctx, at, 4); n++, at += length(h)) {
		h = code16(at);
		h2 = code16(at + 2);
		if (h == 0x4770)						/* bx lr */
			return 1;
		if (h >> 9 == 0x5e) {						/* pop */
			if (!pop(f, e, (h & 0xff) | (h & 0x100) << 7))
				return 0;
			if (h & 0x100)
				return 1;
		} else if (h >> 7 == 0x160) {					/* add sp, #imm7 * 4 */
			e->sp += 4 * (h & 0x7f);
		} else if (h == 0x46bd) {					/* mov sp, r7 */
			e->sp = e->fp;
		} else if (h >> 8 == 0x37) {					/* adds r7, #imm8 */
			e->fp += h & 0xff;
		} else if (h == 0xe8bd || (h == 0xf85d && (h2 & 0xfff) == 0xb04)) {
			if (!pop(f, e, h == 0xe8bd ? h2 : 1u << (h2 >> 12)))	/* pop.w, ldr Rt, [sp], #4 */
				return 0;
			if (h == 0xe8bd ? h2 >> 15 : h2 >> 12 == 15)
				return 1;
		} else if ((h == 0xf10d && (h2 & 0xff00) == 0x0d00) || (h == 0xf107 && (h2 & 0xff00) == 0x0700)) {
			*(h == 0xf10d ? &e->sp : &e->fp) += h2 & 0xff;		/* add.w sp or r7 */
		} else if ((h & 0xffbf) == 0xecbd) {				/* vpop */
			e->sp += 4 * (h2 & 0xff);
		} else if (h >= 0xf800 && h < 0xf900 && h != 0xf84d) {		/* loads and stores */
			continue;
		} else if (!plain(h) && (h & 0xff00) != 0x4600) {
			return 0;						/* nor mov */
		}
	}
	return 0;
}

/* Reports whether there is a return from start to where f was interrupted: the end, perhaps, of the function
 * that begins at start. */
static int ends_before(const struct frame *f, uintptr_t start)
{
#ifdef LWSBT_CAPTURE_TABLE_ONLY
	(void)f, (void)start;
#else
	for (; start < f->pc; start += length(code16(start)))
		if (ends(start) && code16(start) >> 11 != 0x1c)
			return 1;
#endif
	return 0;
}

/* resume_late is resume for what began at start. certain is set if it did. */
NOINLINE static int resume_late(const struct lwsbt_capture_ctx *ctx, struct frame *f, uintptr_t start,
	uintptr_t end, int certain, struct taken *t)
{
	struct prologue p;
	uintptr_t at = read_prologue(ctx, start, f->pc, &p), entry, ra = f->lr, fp = f->fp;
	int by_fp;

	entry = entry_of(ctx, f, &p, at, end, &by_fp);
	if (entry < f->sp || entry > f->hi ||
	    ((p.has & HAS_FP) && !frame_word(f, entry + (uintptr_t)p.fp, &fp)) ||
	    ((p.has & HAS_RA) && !frame_word(f, entry + (uintptr_t)p.ra, &ra)))
		return 0;
	return (certain || ra == f->lr) && land(ctx, f, entry, ra, fp, t);
}

NOINLINE static int resume_soon(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	struct end e;

	return returns_soon(ctx, f, &e) && e.sp >= f->sp && e.sp <= f->hi && land(ctx, f, e.sp, e.lr, e.fp, t);
}

/*
 * resume replaces f, which was interrupted anywhere, by its caller: what its prologue has done so far
 * is known if it is known where the function begins. Without a table, it is where the last call was made
 * in the same function, or no return is in between; or if what it saved is still in lr.
 */
NOINLINE static int resume(const struct lwsbt_capture_ctx *ctx, struct frame *f, struct taken *t)
{
	uintptr_t start, end = 0, last = (f->lr & ~(uintptr_t)MODE) - STEP, of_last;
	int certain = 1;

	if (resume_soon(ctx, f, t))
		return 1;
	start = start_of(ctx, f->pc, &end);
	if (start == 0 || f->kind != INTERRUPTED)
		return 0;
	if (!ctx->functions && ends_before(f, start)) {
		of_last = in_code(ctx, last, STEP) ? start_of(ctx, last, &end) : 0;
		certain = of_last == start;
	}
	return resume_late(ctx, f, start, end, certain, t);
}
#endif

NOINLINE size_t lwsbt_capture_thumb(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* lr among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, r7" : "=&r"(f.sp), "=r"(f.fp) : : "lr", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_thumb);
}

#endif

/* src/capture_arm.c, continued */

#if defined(__arm__) && !defined(__thumb__)

static unsigned ones(uint32_t v)
{
	unsigned n = 0;

	for (; v != 0; v &= v - 1)
		n++;
	return n;
}

/* An 8-bit constant, rotated right by twice bits 8 to 11. */
static intptr_t rotated(uint32_t w)
{
	uint32_t v = w & 0xff, r = 2 * field(w, 8, 4);

	return (intptr_t)(r == 0 ? v : v >> r | v << (32 - r));
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rn = field(w, 16, 4), rd = field(w, 12, 4);
	uintptr_t literal;
	uint32_t list;

	(void)end;
	if ((w & 0xff800000) == 0x1a800000)	/* bne back: a loop that probes a large frame */
		return 4;
	/* Branches of any condition; to pc: bx, blx, ldr, ldm, mov */
	if ((w & 0x0e000000) == 0x0a000000 || (w & 0x0fffffd0) == 0x012fff10 ||
	    (w & 0x0c10f000) == 0x0410f000 || (w & 0x0e108000) == 0x08108000 ||
	    (w & 0x0deff000) == 0x01a0f000)
		p->has |= FLOW;
	if (w >> 28 != 0xe)
		return 4;
	if ((w & 0xffff0000) == 0xe92d0000) {			/* stmdb sp!, {...} */
		list = w & 0xffff;
		p->sp -= 4 * (intptr_t)ones(list);
		if (list & 1u << FP)
			save_fp(p, 4 * (intptr_t)ones(list & ((1u << FP) - 1)));
		if (list & 1u << RA)
			save_ra(p, 4 * (intptr_t)ones(list & ((1u << RA) - 1)));
	} else if ((w & 0xffff0000) == 0xe52d0000) {		/* str Rd, [sp, #-imm12]! */
		p->sp -= (intptr_t)(w & 0xfff);
		store(p, rd, 0);
	} else if ((w & 0xffff0000) == 0xe58d0000) {		/* str Rd, [sp, #imm12] */
		store(p, rd, (intptr_t)(w & 0xfff));
	} else if ((w & 0xffff00f0) == 0xe16d00f0) {		/* strd Rd, [sp, #-imm8]! */
		p->sp -= (intptr_t)(field(w, 8, 4) << 4 | (w & 15));
		store(p, rd, 0);
		store(p, rd + 1, 4);
	} else if ((w & 0xffff00f0) == 0xe1cd00f0) {		/* strd Rd, [sp, #imm8] */
		store(p, rd, (intptr_t)(field(w, 8, 4) << 4 | (w & 15)));
		store(p, rd + 1, (intptr_t)(field(w, 8, 4) << 4 | (w & 15)) + 4);
	} else if ((w & 0xffbf0e00) == 0xed2d0a00) {		/* vpush; imm8 counts words */
		p->sp -= 4 * (intptr_t)(w & 0xff);
	} else if ((w & 0xfffff000) == 0xe24dd000) {		/* sub sp, sp, #const */
		p->sp -= rotated(w);
	} else if ((w & 0xfffff000) == 0xe28db000) {		/* add fp, sp, #const */
		set_fp(p, rotated(w));
	} else if (w == 0xe1a0b00d) {				/* mov fp, sp */
		set_fp(p, 0);
	} else if ((w & 0xfffff000) == 0xe24cb000) {		/* sub fp, ip, #const: */
		if (!(p->has & SETS_FP))			/* ip is sp at entry (APCS) */
			p->frame = -rotated(w);
		p->has |= SETS_FP;
	} else if ((w & 0xfffffff0) == 0xe04dd000 || (w & 0xfffffff0) == 0xe08dd000) {
		add_reg(p, w & 15, (w & 0x00800000) ? 1 : -1);	/* sub, add sp, sp, Rm */
	} else if ((w & 0xfffff000) == 0xe28dd000) {		/* add sp, sp, #const: an epilogue */
		return 4;
	} else if (w == 0xe1a0d00b || (w & 0xfffff000) == 0xe24bd000) {
		return 4;		/* mov sp, fp; sub sp, fp, #const: an epilogue */
	} else if ((w & 0x0c00f000) == 0x0000d000 && (w & 0x0e000090) != 0x00000090 &&
		   field(w, 23, 2) != 2) {
		p->has |= DYNAMIC;				/* other arithmetic into sp */
	} else if ((w & 0xffeff000) == 0xe1a0d000 || (w & 0x0fe0f000) == 0x03c0d000 ||
		   (w & 0xffe0f07f) == 0xe7c0d01f) {
		p->has |= DYNAMIC;		/* mov sp, Rm; bic sp, Rn, #; bfc sp, # */
	} else if ((w & 0xfff00000) == 0xe3000000) {		/* movw */
		load_const(p, rd, (intptr_t)(rn << 12 | (w & 0xfff)));
	} else if ((w & 0xfff00000) == 0xe3400000) {		/* movt */
		if (has_const(p, rd))
			p->value[rd] = (p->value[rd] & 0xffff) | (intptr_t)((rn << 12 | (w & 0xfff)) << 16);
	} else if ((w & 0xffff0000) == 0xe3a00000) {		/* mov Rd, #const */
		load_const(p, rd, rotated(w));
	} else if ((w & 0xffff0000) == 0xe3e00000) {		/* mvn Rd, #const */
		load_const(p, rd, ~rotated(w));
	} else if ((w & 0xffff0000) == 0xe59f0000) {		/* ldr Rd, [pc, #imm12] */
		literal = at + 8 + (w & 0xfff);
		if (in_code(ctx, literal, 4))
			load_const(p, rd, (intptr_t)code32(literal & ~(uintptr_t)3));
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t w = code32(at);

	(void)ctx;
	/* stmdb sp!, with lr; str lr, [sp, #-n]! */
	return (w & 0xffff6000) == 0xe92d4000 || (w & 0xfffff000) == 0xe52de000;
}

/* A function of variable arguments first stores the last of r0 to r3, or makes
 * place for them; other instructions may stand between. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t w;

	for (back = 4; back <= 40 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if (w == 0xe92d000f || w == 0xe92d000e || w == 0xe92d000c || w == 0xe52d3004 ||
		    w == 0xe24dd004 || w == 0xe24dd008 || w == 0xe24dd00c || w == 0xe24dd010)
			first = at - back;
		else if ((w & 0xfe000000) == 0xea000000 || (w & 0xffffffd0) == 0xe12fff10 ||
			 (w & 0xfe108000) == 0xe8108000 || (w & 0xfc10f000) == 0xe410f000)
			break;		/* b, bl, bx, blx, ldm and ldr of pc */
	}
	return first;
}

#endif

/* Reports whether ra is that of a call by Thumb code: blx Rm, bl, blx */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t ra)
{
	uint32_t h;

	if (ra % 2 == 0 || !in_code(ctx, ra - 5, 4))
		return 0;
	h = code16(ra - 3);
	return (h & 0xff87) == 0x4780 || ((h & 0xc000) == 0xc000 && code16(ra - 5) >> 11 == 0x1e);
}

NOINLINE size_t lwsbt_capture_arm(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* lr among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, r11" : "=&r"(f.sp), "=r"(f.fp) : : "lr", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_arm);
}

#endif

/* src/capture_aarch64.c, continued */

#if defined(__aarch64__)

enum { SP = 31 };

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rd = field(w, 0, 5), rn = field(w, 5, 5), shift;
	intptr_t imm;

	(void)ctx;
	(void)end;
	if ((w & 0x7c000000) == 0x14000000 || (w & 0xff000000) == 0x54000000 ||
	    (w & 0x7c000000) == 0x34000000 || (w & 0xfe000000) == 0xd6000000) {
		p->has |= FLOW;		/* b, bl; b.c; cbz, cbnz, tbz, tbnz; br, blr, ret */
		return 4;
	}
	if ((w & 0x3a400000) == 0x28000000 && rn == SP) {	/* stp */
		/* opc:2 101 V:1 0 mode:2 0 imm:7 Rt2 Rn Rt */
		shift = (w & 0x04000000) ? 2 + (w >> 30) : 2 + (w >> 31);
		imm = extend(w >> 15, 7) * ((intptr_t)1 << shift);
		if (field(w, 23, 2) == 3)			/* pre-indexed */
			p->sp += imm;
		if (field(w, 23, 2) == 3 || field(w, 23, 2) == 1)
			imm = 0;				/* or post-indexed */
		if (!(w & 0x04000000)) {
			store(p, rd, imm);
			store(p, field(w, 10, 5), imm + ((intptr_t)1 << shift));
		}
	} else if ((w & 0xffe00fe0) == 0xf8000fe0) {		/* str Xt, [sp, #imm9]! */
		p->sp += extend(w >> 12, 9);
		store(p, rd, 0);
	} else if ((w & 0xffe00fe0) == 0xfc000fe0) {		/* str Dt, [sp, #imm9]! */
		p->sp += extend(w >> 12, 9);
	} else if ((w & 0xffc003e0) == 0xf90003e0) {		/* str Xt, [sp, #imm12 * 8] */
		store(p, rd, (intptr_t)field(w, 10, 12) * 8);
	} else if ((w & 0x7f800000) == 0x11000000 || (w & 0x7f800000) == 0x51000000) {
		/* add, sub Rd, Rn, #imm12, or shifted left by 12 */
		imm = (intptr_t)field(w, 10, 12) * ((w & 0x00400000) ? 4096 : 1);
		if (w & 0x40000000)
			imm = -imm;
		if (rd == SP && rn == SP)
			p->sp += imm < 0 ? imm : 0;
		else if (rd == SP)
			p->has |= DYNAMIC;
		else if (rd == FP && rn == SP)
			set_fp(p, imm);
	} else if ((w & 0xffe0fc00) == 0xcb206000 && rd == SP) {
		if (rn == SP)
			add_reg(p, field(w, 16, 5), -1);	/* sub sp, sp, Xm */
		else
			p->has |= DYNAMIC;
	} else if ((w & 0xff80001f) == 0x9200001f) {
		p->has |= DYNAMIC;				/* and sp, Xn, #: aligned */
	} else if ((w & 0x1f800000) == 0x12800000) {		/* movn, movz, movk */
		shift = 16 * field(w, 21, 2);
		imm = (intptr_t)field(w, 5, 16) << shift;
		switch (field(w, 29, 2)) {
		case 0:
			load_const(p, rd, ~imm);
			break;
		case 2:
			load_const(p, rd, imm);
			break;
		case 3:
			if (has_const(p, rd))
				p->value[rd] = (p->value[rd] & ~((intptr_t)0xffff << shift)) | imm;
			break;
		}
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t w = code32(at);

	(void)ctx;
	return (w & 0xfe407fff) == 0xa8007bfd ||	/* stp x29, x30, [sp...] */
		(w & 0xfe4003ff) == 0xa80003fe ||	/* stp x30, Xt2, [sp...] */
		(w & 0xfe407fe0) == 0xa8007be0 ||	/* stp Xt, x30, [sp...] */
		(w & 0xffe00fff) == 0xf8000ffe ||	/* str x30, [sp, #-n]! */
		(w & 0xffc003ff) == 0xf90003fe;		/* str x30, [sp, #n] */
}

/* The stack pointer is lowered before, by sub or by a store of other registers;
 * no jump stands between. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	uint32_t w;

	for (back = 4; back <= 80 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if ((w & 0xff8003ff) == 0xd10003ff ||		/* sub sp, sp, #n */
		    (w & 0xffe0ffff) == 0xcb2063ff ||		/* sub sp, sp, Xm */
		    (w & 0x3bc003e0) == 0x298003e0 ||		/* stp ..., [sp, #-n]! */
		    (w & 0xfbe00fe0) == 0xf8000fe0 ||		/* str ..., [sp, #-n]! */
		    (w & 0x7f800000) == 0x52800000)		/* a constant, for sub */
			first = at - back;
		else if ((w & 0x7c000000) == 0x14000000 || (w & 0xfe000000) == 0xd6000000)
			break;					/* b, bl, br, blr, ret */
	}
	return first;
}

#endif

NOINLINE size_t lwsbt_capture_aarch64(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* x30 among what this changes, so that it is saved */
	__asm__ volatile("mov %0, sp\n\tmov %1, x29" : "=&r"(f.sp), "=r"(f.fp) : : "x30", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_aarch64);
}

#endif

/* src/capture_riscv.c, continued */

#if defined(__riscv)

enum { ZERO = 0, SP = 2 };

/* The register has another value than a known constant. */
static void forget(struct prologue *p, unsigned rd)
{
	p->known &= ~((uint32_t)1 << rd);
}

/* rd = rs + imm */
static void add_imm(struct prologue *p, unsigned rd, unsigned rs, intptr_t imm)
{
	if (rd == SP && rs == SP)
		p->sp += imm < 0 ? imm : 0;	/* up: an epilogue */
	else if (rd == SP)
		p->has |= DYNAMIC;
	else if (rd == FP && rs == SP)
		set_fp(p, imm);
	else if (rs == ZERO)
		load_const(p, rd, imm);
	else if (has_const(p, rs))
		load_const(p, rd, p->value[rs] + imm);
	else
		forget(p, rd);
}

static void add(struct prologue *p, unsigned rd, unsigned rs, unsigned rt, int sign)
{
	if (rd != SP)
		forget(p, rd);
	else if (rs == SP)
		add_reg(p, rt, sign);
	else if (rt == SP && sign > 0)
		add_reg(p, rs, sign);
	else
		p->has |= DYNAMIC;
}

/* rd = rs << n */
static void shift(struct prologue *p, unsigned rd, unsigned rs, unsigned n)
{
	if (has_const(p, rs))
		load_const(p, rd, (intptr_t)((uintptr_t)p->value[rs] << n % (8 * WORD)));
	else
		forget(p, rd);
}

static void decode16(uint32_t h, struct prologue *p)
{
	unsigned rd = field(h, 7, 5), rs = field(h, 2, 5);
	intptr_t imm6 = extend(field(h, 12, 1) << 5 | rs, 6);

	switch ((h & 3) << 3 | h >> 13) {
	case 0x02: case 0x03:				/* c.lw, c.ld */
		forget(p, 8 + field(h, 2, 3));
		return;
	case 0x0c:					/* c.sub, c.and and others */
		forget(p, 8 + field(h, 7, 3));
		return;
	case 0x12: case 0x13:				/* c.lwsp, c.ldsp */
		forget(p, rd);
		return;
	case 0x00:					/* c.addi4spn */
		forget(p, 8 + field(h, 2, 3));
		if (field(h, 2, 3) == FP - 8 && h != 0)
			set_fp(p, (intptr_t)(field(h, 11, 2) << 4 | field(h, 7, 4) << 6 |
				field(h, 6, 1) << 2 | field(h, 5, 1) << 3));
		return;
	case 0x08:					/* c.addi */
		add_imm(p, rd, rd, imm6);
		return;
	case 0x0a:					/* c.li */
		load_const(p, rd, imm6);
		return;
	case 0x0b:					/* c.addi16sp, c.lui */
		if (rd == SP)
			add_imm(p, SP, SP, extend(field(h, 12, 1) << 9 | field(h, 6, 1) << 4 |
				field(h, 5, 1) << 6 | field(h, 3, 2) << 7 | field(h, 2, 1) << 5, 10));
		else
			load_const(p, rd, imm6 * 4096);
		return;
	case 0x09:					/* c.addiw, or c.jal */
#if __riscv_xlen == 32
		p->has |= FLOW;
#else
		if (rd != SP)
			add_imm(p, rd, rd, imm6);
#endif
		return;
	case 0x0d: case 0x0e: case 0x0f:		/* c.j, c.beqz, c.bnez */
		p->has |= FLOW;
		return;
	case 0x10:					/* c.slli */
		shift(p, rd, rd, field(h, 12, 1) << 5 | rs);
		return;
	case 0x14:
		if (rs == 0)				/* c.jr, c.jalr, c.ebreak */
			p->has |= FLOW;
		else if (field(h, 12, 1))		/* c.add */
			add(p, rd, rd, rs, 1);
		else					/* c.mv */
			add_imm(p, rd, rs, 0);
		return;
#if __riscv_xlen == 32
	case 0x16:					/* c.swsp */
		store(p, rs, (intptr_t)(field(h, 9, 4) << 2 | field(h, 7, 2) << 6));
		return;
#else
	case 0x17:					/* c.sdsp */
		store(p, rs, (intptr_t)(field(h, 10, 3) << 3 | field(h, 7, 3) << 6));
		return;
#endif
	}
}

/* Store of a whole register: sw or sd. */
#define STORE_RA (__riscv_xlen == 32 ? 0x2023u : 0x3023u)

static void decode32(uint32_t w, struct prologue *p)
{
	unsigned rd = field(w, 7, 5), rs = field(w, 15, 5);

	switch (w & 0x7f) {
	case 0x13: case 0x1b:				/* addi, addiw */
		if (field(w, 12, 3) == 0)
			add_imm(p, rd, rs, extend(w >> 20, 12));
		else if (rd == SP)
			p->has |= DYNAMIC;		/* andi: aligned */
		else if (field(w, 12, 3) == 1)		/* slli */
			shift(p, rd, rs, field(w, 20, 6));
		else
			forget(p, rd);
		return;
	case 0x03: case 0x17: case 0x3b:		/* loads, auipc, addw and others */
		forget(p, rd);
		return;
	case 0x37:					/* lui */
		load_const(p, rd, (intptr_t)(int32_t)(w & 0xfffff000));
		return;
	case 0x33:					/* add, sub */
		if ((w & 0xbe007000) == 0)
			add(p, rd, rs, field(w, 20, 5), (w & 0x40000000) ? -1 : 1);
		else
			forget(p, rd);
		return;
	case 0x23:
		if ((w & 0x707f) == STORE_RA && rs == SP)
			store(p, field(w, 20, 5), extend(field(w, 25, 7) << 5 | rd, 12));
		return;
	case 0x63: case 0x67: case 0x6f:		/* branches, jalr, jal */
		p->has |= FLOW;
		return;
	}
}

static uint32_t code_at(uintptr_t at)
{
	return code16(at) | code16(at + 2) << 16;	/* may lie at an odd halfword */
}

static uintptr_t jal_target(uintptr_t at, uint32_t w)
{
	return at + (uintptr_t)extend(field(w, 31, 1) << 20 | field(w, 12, 8) << 12 |
		field(w, 20, 1) << 11 | field(w, 21, 10) << 1, 21);
}

/*
 * saved_by returns the address of the routine that saves registers for the
 * function, if the instruction at address at calls one, and 0 otherwise:
 * jal t0, or auipc of t0 or t1, and jalr t0 by that. *n is the length of the call.
 */
static uintptr_t saved_by(uintptr_t at, uintptr_t room, unsigned *n)
{
	uint32_t w;

	w = code16(at) & 0xfff;
	if (room < 4 || (w != 0x2ef && w != 0x297 && w != 0x317))
		return 0;
	w = code_at(at);
	*n = 4;
	if ((w & 0xfff) == 0x2ef)
		return jal_target(at, w);
	if (room < 8 || (code_at(at + 4) & 0xfffff) != ((w & 0xf80) << 8 | 0x2e7))
		return 0;
	*n = 8;
	return at + (uintptr_t)(intptr_t)(int32_t)(w & 0xfffff000) +
		(uintptr_t)extend(code_at(at + 4) >> 20, 12);
}

static unsigned decode1(uintptr_t at, uintptr_t end, struct prologue *p)
{
	if ((code16(at) & 3) != 3) {
		decode16(code16(at), p);
		return 2;
	}
	if (end - at >= 4)
		decode32(code_at(at), p);
	return 4;
}

/* Reads the routine at address at, up to its return by t0. It jumps ahead. */
static void read_routine(const struct lwsbt_capture_ctx *ctx, uintptr_t at, struct prologue *p)
{
	unsigned n;
	uint32_t w;

	for (n = 0; n < 40 && in_code(ctx, at, 4); n++) {
		w = code_at(at);
		if ((w & 0xfff) == 0x6f)			/* j */
			at = jal_target(at, w);
		else if ((w & 0xe003) == 0xa001)		/* c.j */
			at += (uintptr_t)extend(field(w, 12, 1) << 11 | field(w, 11, 1) << 4 |
				field(w, 9, 2) << 8 | field(w, 8, 1) << 10 | field(w, 7, 1) << 6 |
				field(w, 6, 1) << 7 | field(w, 3, 3) << 1 | field(w, 2, 1) << 5, 12);
		else
			at += decode1(at, ctx->code_hi, p);
		if (p->has & FLOW)
			break;
	}
	p->has &= ~(unsigned)FLOW;
}

static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	unsigned n;
	uintptr_t routine = saved_by(at, end - at, &n);

	if (routine == 0)
		return decode1(at, end, p);
	read_routine(ctx, routine, p);
	return n;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

/*
 * second reports whether the halfword at address at is the second of an instruction. One
 * whose bits 0 and 1 are not both set ends an instruction, whichever half it is;
 * others begin one, or are the second of one, in turns.
 */
static int second(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	unsigned n = 0;

	while (n < 64 && in_code(ctx, at - 2 * (n + 1), 2) && (code16(at - 2 * (n + 1)) & 3) == 3)
		n++;
	return n % 2 != 0;
}

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);
	unsigned n;

	/* c.swsp ra, or c.sdsp ra */
	if ((h & 0xe07f) == (__riscv_xlen == 32 ? 0xc006 : 0xe006))
		return !second(ctx, at);
	if (!in_code(ctx, at, 8))
		return 0;
	if ((h & 0x7f) == 0x23)				/* sw, sd ra, n(sp) */
		return (code_at(at) & 0x01fff07f) == (0x00110000 | STORE_RA) && !second(ctx, at);
	return saved_by(at, 8, &n) != 0 && !second(ctx, at);
}

/* Reports whether the instruction at address at lowers the stack pointer. */
static int lowers_sp(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	if ((h & 0xff83) == 0x7101 || (h & 0xff83) == 0x1101)
		return (h & 0x1000) != 0;		/* c.addi16sp, c.addi sp */
	return h == 0x0113 && in_code(ctx, at, 4) && (code16(at + 2) & 0x800f) == 0x8001;
}

/* Reports whether what follows the instruction at address at is not executed after it,
 * or after a call, which stands in no prologue: c.jr, c.jalr, c.j, c.jal; jal, jalr. */
static int leaves(uintptr_t at)
{
	uint32_t h = code16(at);

	return ((h & 0xe07f) == 0x8002 && h != 0x9002) || (h & 0xe003) == 0xa001 || (h & 0x7f) == 0x6f ||
		(h & 0x707f) == 0x67 || (__riscv_xlen == 32 && (h & 0xe003) == 0x2001);
}

/* Reports whether the instruction at address at loads a constant: lui or c.lui, li or c.li. */
static int loads(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code16(at);

	return (h & 0x7f) == 0x37 || (h & 0xc003) == 0x4001 ||
		((h & 0x707f) == 0x13 && in_code(ctx, at, 4) && (code_at(at) & 0xf8000) == 0);
}

/* The stack pointer is lowered before the return address is stored, or, in functions of
 * variable arguments, before the routine that stores it is called. Constants for that may be
 * loaded before. */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back, first = at;
	int lowered = 0;

	for (back = 2; back <= 100 && in_code(ctx, at - back, 2); back += 2) {
		if (second(ctx, at - back))
			continue;
		if (leaves(at - back) || (lowered && saves_ra(ctx, at - back)))
			break;
		if (lowers_sp(ctx, at - back) ? !lowered++ : lowered && loads(ctx, at - back))
			first = at - back;
	}
	return first;
}

#endif

NOINLINE size_t lwsbt_capture_riscv(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* ra among what this changes, so that it is saved */
	__asm__ volatile("mv %0, sp\n\tmv %1, s0" : "=&r"(f.sp), "=r"(f.fp) : : "ra", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_riscv);
}

#endif

/* src/capture_mips.c, continued */

#if defined(__mips__)

enum { AT = 1, SP = 29 };

/*
 *  31    26 25 21 20 16 15            0
 * |   op   | rs  | rt  |   immediate   |
 *                      | rd  |  |funct |   if op is 0
 *                       15 11     5   0
 */
static unsigned decode(const struct lwsbt_capture_ctx *ctx, uintptr_t at, uintptr_t end,
	struct prologue *p)
{
	uint32_t w = code32(at);
	unsigned rs = field(w, 21, 5), rt = field(w, 16, 5), rd = field(w, 11, 5);
	intptr_t imm = extend(w, 16);

	int known = has_const(p, rs), known_rt = has_const(p, rt);

	(void)ctx;
	(void)end;
	/* What an instruction writes is no longer known: rd, or rt of immediates and loads. */
	if (w >> 26 == 0)
		p->known &= ~((uint32_t)1 << rd);
	else if ((w >> 26 >= 0x08 && w >> 26 <= 0x0f) || w >> 26 == 0x18 || w >> 26 == 0x19 ||
		 (w >> 26 >= 0x20 && w >> 26 <= 0x27) || w >> 26 == 0x37)
		p->known &= ~((uint32_t)1 << rt);
	switch (w >> 26) {
	case 0:
		switch (field(w, 0, 6)) {
		case 8: case 9:				/* jr, jalr */
			p->has |= FLOW;
			break;
		case 0x21: case 0x2d: case 0x25:	/* addu, daddu, or: move has rt 0 */
			if (rd == FP && rs == SP && rt == 0)
				set_fp(p, 0);
			else if (rd == SP && rs == SP)
				add_reg(p, rt, 1);
			else if (rd == SP)
				p->has |= DYNAMIC;
			else if (rs == SP && known_rt)	/* a far place in the frame */
				load_const(p, rd, p->sp + p->value[rt]);
			break;
		case 0x24:				/* and: aligned */
			if (rd == SP)
				p->has |= DYNAMIC;
			break;
		case 0x23: case 0x2f:			/* subu, dsubu */
			if (rd == SP && rs == SP)
				add_reg(p, rt, -1);
			else if (rd == SP)
				p->has |= DYNAMIC;
			break;
		}
		break;
	case 0x01: case 0x02: case 0x03:		/* bltz and others, j, jal */
	case 0x04: case 0x05: case 0x06: case 0x07:	/* beq, bne, blez, bgtz */
	case 0x14: case 0x15: case 0x16: case 0x17:	/* the same, likely */
	case 0x1d:					/* jalx */
		p->has |= FLOW;
		break;
	case 0x11:					/* bc1f, bc1t */
		if (rs == 8)
			p->has |= FLOW;
		break;
	case 0x09: case 0x19:				/* addiu, daddiu */
		if (rt == SP && rs == SP) {
			if (imm < 0)
				p->sp += imm;
		} else if (rt == SP) {
			p->has |= DYNAMIC;
		} else if (rt == FP && rs == SP) {
			set_fp(p, imm);
		} else if (rs == 0) {
			load_const(p, rt, imm);
		} else if (known) {
			load_const(p, rt, p->value[rs] + imm);
		}
		break;
	case 0x0d:					/* ori */
		if (rs == 0)
			load_const(p, rt, imm & 0xffff);
		else if (known)
			load_const(p, rt, p->value[rs] | (imm & 0xffff));
		break;
	case 0x0f:					/* lui */
		load_const(p, rt, (intptr_t)(int32_t)(w << 16));
		break;
	case 0x2b: case 0x3f:				/* sw, sd */
		/* A 32-bit register is saved by sw, a 64-bit one by sd; beyond 32 KiB from
		 * sp, by way of at. */
		if ((w >> 26 == 0x3f) != (WORD == 8))
			break;
		if (rs == AT && has_const(p, AT))
			imm += p->value[AT] - p->sp;
		else if (rs != SP)
			break;
		store(p, rt, imm);
		break;
	}
	return 4;
}

#ifndef LWSBT_CAPTURE_TABLE_ONLY

static int saves_ra(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uint32_t h = code32(at) >> 16;

	if (h == (WORD == 8 ? 0xffbf : 0xafbf))
		return 1;
	/* by way of at, which addu at, sp, at has just set */
	return h == (WORD == 8 ? 0xfc3f : 0xac3f) && in_code(ctx, at - 4, 4) &&
		(code32(at - 4) & 0xfffffff3) == 0x03a10821;
}

/* Reports whether the function goes elsewhere, without a call. */
static int jumps(uint32_t w)
{
	return w >> 26 == 2 || w >> 16 == 0x1000 ||	/* j, b, jr */
		(w >> 26 == 0 && field(w, 0, 6) == 8);
}

/* Reports whether w is addu, subu, daddu or dsubu sp, sp, REG: frames of over 32 KiB. */
static int lowers_by_reg(uint32_t w)
{
	w &= 0xffe0ffff;
	return w == 0x03a0e821 || w == 0x03a0e823 || w == 0x03a0e82d || w == 0x03a0e82f;
}

/*
 * The stack pointer is lowered before, by addiu or daddiu, perhaps in several
 * steps, and after a branch; constants may be loaded before that. So the beginning
 * is taken to be after the nearest call, or the nearest jump before which the stack
 * pointer is not yet lowered, and its delay slot.
 */
static uintptr_t begin(const struct lwsbt_capture_ctx *ctx, uintptr_t at)
{
	uintptr_t back;
	uint32_t w;
	int lowered = 0;

	for (back = 4; back <= 160 && in_code(ctx, at - back, 4); back += 4) {
		w = code32(at - back);
		if (w >> 26 == 3 || w >> 16 == 0x0411 || (w >> 26 == 0 && field(w, 0, 6) == 9) ||
		    (lowered && jumps(w))) {
			back -= back > 4 ? 4 : 0;	/* jal, bal, jalr */
			break;
		}
		lowered |= ((w >> 16 == 0x27bd || w >> 16 == 0x67bd) && (w & 0x8000)) ||
			lowers_by_reg(w);
	}
	return at - back + 4;
}

#endif

/* Odd return addresses are those of MIPS16 and microMIPS code. */
static int other_mode(const struct lwsbt_capture_ctx *ctx, uintptr_t pc)
{
	uint32_t h;

	if (!(pc & 1))
		return 0;
	pc--;
	if (pc - ctx->code_lo < 8 || !in_code(ctx, pc - 8, 8))
		return 0;
	h = code16(pc - 2);
	if ((h & 0xf8ff) == 0xe8c0)			/* MIPS16: jalrc */
		return 1;
	h = code16(pc - 4);
	if ((h & 0xf8ff) == 0xe840)			/* MIPS16: jalr, delay slot */
		return 1;
	if ((h & 0xffe0) == 0x45c0 || (h & 0xffe0) == 0x45e0)	/* microMIPS: jalr16, jalrs16 */
		return 1;
	if ((code16(pc - 6) & 0xf800) == 0x1800)	/* MIPS16: jal, jalx */
		return 1;
	if ((code16(pc - 6) & 0xfc00) == 0x7400)	/* microMIPS: jals */
		return 1;
	h = code16(pc - 8) & 0xfc00;
	return h == 0xf400 || h == 0xf000 ||		/* microMIPS: jal, jalx */
		(code16(pc - 6) & 0xefff) == 0x0f3c;	/* jalr, jalr.hb */
}

NOINLINE size_t lwsbt_capture_mips(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx)
{
	struct frame f;

	/* ra among what this changes, so that it is saved */
	__asm__ volatile("move %0, $29\n\tmove %1, $30" : "=&r"(f.sp), "=r"(f.fp) : : "$31", "memory");
	return walk(pcs, max, skip, ctx, &f, (uintptr_t)lwsbt_capture_mips);
}

#endif

#ifdef LWSBT_WRAP

/* adapters/wrap.c --------------------------------------------------------------------------- */

/*
 * malloc, free, calloc and realloc with the linker's --wrap, for any C library:
 * newlib, picolibc, glibc, musl. Compile this with the program, and link with
 *
 *   -Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc
 *   -Wl,--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign
 *
 * Memory that the C library allocates for itself, as in strdup, is wrapped if the
 * library is linked statically and its strdup calls malloc. Otherwise this memory
 * has no metadata, and may be freed all the same.
 *
 *   -DLWSBT_WRAP_ALIGNED=memalign              with the second line: the function of
 *                                              the C library that the two others
 *                                              call. For musl it is aligned_alloc
 *   -DLWSBT_WRAP_NESTED                        for picolibc, whose realloc and memalign
 *                                              call malloc by its name: what they get
 *                                              has no metadata
 *   -DLWSBT_WRAP_CAPTURE=lwsbt_capture_scan    another capture function than that of the
 *                                              machine; with NULL, the caller alone is kept
 *   -DLWSBT_WRAP_PORT=board_port               a const struct lwsbt_port of yours, by another
 *                                              name than lwsbt_wrap_port
 *   -DLWSBT_WRAP_FLAGS=LWSBT_KEEP_SEQUENCE     flags of the heap
 *   -DLWSBT_WRAP_RULES=64                      entries of the capture function's cache, a
 *                                              power of 2: two words each
 *   -DLWSBT_WRAP_POST=1                        outermost frames to leave out
 *   -DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180
 *                                              blocks are counted by call path, in
 *                                              lwsbt_wrapped_profile, a table of this
 *                                              size; without these, each block has its
 *                                              own stack in front of it
 *   -DLWSBT_WRAP_HISTORY                       with these: dumps have the allocations, bytes
 *                                              and peak of each path since the boot
 */
#include <errno.h>


#ifndef LWSBT_WRAP_CAPTURE
#ifdef LWSBT_CAPTURE
#define LWSBT_WRAP_CAPTURE LWSBT_CAPTURE
#else
#define LWSBT_WRAP_CAPTURE NULL
#endif
#endif
#ifndef LWSBT_WRAP_FLAGS
#define LWSBT_WRAP_FLAGS 0
#endif
#ifndef LWSBT_WRAP_POST
#define LWSBT_WRAP_POST 0
#endif
#ifdef LWSBT_WRAP_PORT
extern const struct lwsbt_port LWSBT_WRAP_PORT;
#else
#define LWSBT_WRAP_PORT lwsbt_wrap_port
#pragma weak lwsbt_wrap_port /* NULL, if the program does not define it */
#endif

#ifdef LWSBT_WRAP_RULES
static struct lwsbt_rule rules[LWSBT_WRAP_RULES];
#endif

/* The heap: for lwsbt_dump, and to change before main. It needs no set-up, as
 * allocations come before any code of the program can run. */
struct lwsbt_heap lwsbt_wrapped = {
	.flags = LWSBT_WRAP_FLAGS,
	.post = LWSBT_WRAP_POST,
	.capture = LWSBT_WRAP_CAPTURE,
#ifdef LWSBT_WRAP_RULES
	.ctx = { .rules = rules, .rule_count = LWSBT_WRAP_RULES },
#endif
	.port = &LWSBT_WRAP_PORT,
};

#ifdef LWSBT_WRAP_NODES
static uintptr_t nodes[LWSBT_WRAP_NODES];
static struct lwsbt_entry entries[LWSBT_WRAP_ENTRIES];
#ifdef LWSBT_WRAP_HISTORY
static struct lwsbt_history histories[LWSBT_WRAP_ENTRIES];
#endif

/* Its capture, limits and port are those of lwsbt_wrapped. Set its code before the first allocation. */
struct lwsbt_profile lwsbt_wrapped_profile = {
	.heap = &lwsbt_wrapped,
	.node = nodes,
	.entry = entries,
	.nodes = LWSBT_WRAP_NODES,
	.entries = LWSBT_WRAP_ENTRIES,
#ifdef LWSBT_WRAP_HISTORY
	.history = histories,
#endif
};
#define WRAPPED(call) lwsbt_profile_##call
#define WRAPPED_HEAP &lwsbt_wrapped_profile
#else
#define WRAPPED(call) lwsbt_heap_##call
#define WRAPPED_HEAP &lwsbt_wrapped
#endif

void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
#ifdef LWSBT_WRAP_ALIGNED
#define REAL_NAME(name) __real_##name
#define REAL(name) REAL_NAME(name)
void *REAL(LWSBT_WRAP_ALIGNED)(size_t align, size_t size);
#endif

#ifdef LWSBT_WRAP_NESTED

/* How many threads are inside realloc or memalign of the C library. */
static volatile unsigned inside;

static void enter(unsigned n)
{
	const struct lwsbt_port *port = lwsbt_wrapped.port;

	if (port && port->lock)
		port->lock(port->arg);
	inside += n;
	if (port && port->unlock)
		port->unlock(port->arg);
}

static void *real_resize(void *p, size_t size)
{
	enter(1);
	p = __real_realloc(p, size);
	enter(-1u);
	return p;
}

#ifdef LWSBT_WRAP_ALIGNED
static void *real_aligned(size_t align, size_t size)
{
	void *p;

	enter(1);
	p = REAL(LWSBT_WRAP_ALIGNED)(align, size);
	enter(-1u);
	return p;
}
#endif

#else
#define inside 0
#endif

static const struct lwsbt_allocator real = {
	.allocate = __real_malloc,
	.release = __real_free,
#ifdef LWSBT_WRAP_NESTED
	.resize = real_resize,
#else
	.resize = __real_realloc,
#endif
#if defined(LWSBT_WRAP_ALIGNED) && defined(LWSBT_WRAP_NESTED)
	.aligned = real_aligned,
#elif defined(LWSBT_WRAP_ALIGNED)
	.aligned = REAL(LWSBT_WRAP_ALIGNED),
#endif
};

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
void *__wrap_memalign(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);

#define CALLER __builtin_return_address(0)

void *__wrap_malloc(size_t size)
{
	return inside ? __real_malloc(size) : WRAPPED(malloc)(WRAPPED_HEAP, &real, size, CALLER);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return WRAPPED(calloc)(WRAPPED_HEAP, &real, n, size, CALLER);
}

void *__wrap_realloc(void *p, size_t size)
{
	return WRAPPED(realloc)(WRAPPED_HEAP, &real, p, size, CALLER);
}

void __wrap_free(void *p) { WRAPPED(free)(WRAPPED_HEAP, &real, p); }

#ifdef LWSBT_WRAP_ALIGNED

void *__wrap_memalign(size_t align, size_t size)
{
	return WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	void *q;

	if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
		return EINVAL;
	q = WRAPPED(memalign)(WRAPPED_HEAP, &real, align, size, CALLER);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

#endif

/* adapters/begin.c -------------------------------------------------------------------------- */

/*
 * lwsbt_wrap_begin and lwsbt_wrap_dump, for a program with one stack, or whose port has stack. Limits are those
 * of the linker script: of each list, the first symbol that the script has. A script that has none of
 * a list gets them by the linker, for example
 *
 *   -Wl,--defsym=lwsbt_code_lo='ADDR(.text)',--defsym=lwsbt_code_hi='ADDR(.rodata)+SIZEOF(.rodata)'
 */

#define SYMBOL(name) extern char name[] __attribute__((weak))
#define COUNT(list) (sizeof(list) / sizeof *(list))

SYMBOL(lwsbt_code_lo);
SYMBOL(__flash_binary_start);	/* Pico SDK */
SYMBOL(__text_region_start);	/* Zephyr */
SYMBOL(_stext);			/* NuttX, ESP-IDF */
SYMBOL(g_pfnVectors);		/* STM32Cube: what the flash begins with */
SYMBOL(__Vectors);		/* CMSIS, the same */
SYMBOL(__isr_vector);
SYMBOL(__executable_start);	/* the linker's own script, for newlib */
static char *const code_lo[] = { lwsbt_code_lo, __flash_binary_start, __text_region_start, _stext, g_pfnVectors,
	__Vectors, __isr_vector, __executable_start };

SYMBOL(lwsbt_code_hi);		/* with the constants behind the code, if possible */
SYMBOL(__flash_binary_end);
SYMBOL(__rodata_region_end);
SYMBOL(_eronly);		/* NuttX */
SYMBOL(_sidata);		/* STM32Cube: the initial values of variables are behind the constants */
SYMBOL(__etext);
SYMBOL(_etext);
SYMBOL(etext);
static char *const code_hi[] = { lwsbt_code_hi, __flash_binary_end, __rodata_region_end, _eronly, _sidata, __etext,
	_etext, etext };

SYMBOL(lwsbt_stack_hi);
SYMBOL(__StackTop);		/* CMSIS, Pico SDK */
SYMBOL(_estack);		/* STM32Cube */
SYMBOL(__stack);		/* newlib, picolibc */
SYMBOL(_stack);
static char *const stack_hi[] = { lwsbt_stack_hi, __StackTop, _estack, __stack, _stack };

SYMBOL(lwsbt_stack_lo);		/* or all from the heap on, as the stack may be longer than was planned */
SYMBOL(end);
SYMBOL(_end);
SYMBOL(__end__);
SYMBOL(_ebss);
SYMBOL(__StackLimit);
static char *const stack_lo[] = { lwsbt_stack_lo, end, _end, __end__, _ebss, __StackLimit };

#pragma weak lwsbt_wrap_out

/* limit sets *to, unless it is set, to the first of n symbols that is there, from least to most. */
static void limit(uintptr_t *to, char *const *list, size_t n, uintptr_t least, uintptr_t most)
{
	for (; *to == 0 && n > 0; n--, list++)
		if (*list && (uintptr_t)*list >= least && (uintptr_t)*list <= most)
			*to = (uintptr_t)*list;
}

void lwsbt_wrap_begin(const char *prog, const char *fw)
{
	struct lwsbt_capture_ctx *ctx = &lwsbt_wrapped.ctx;
	struct lwsbt_device device = { prog, NULL, fw, NULL, { NULL, 0, 0 }, { 0, 0 } };
	uintptr_t here = (uintptr_t)&device, most = UINTPTR_MAX;
#if defined(LWSBT_WRAP_NODES) || LWSBT_PACKED
	static struct lwsbt_range code;
#endif

	limit(&ctx->code_lo, code_lo, COUNT(code_lo), 0, most);
	limit(&ctx->code_hi, code_hi, COUNT(code_hi), ctx->code_lo, most);
	limit(&ctx->hi, stack_hi, COUNT(stack_hi), here, most);
	limit(&ctx->lo, stack_lo, COUNT(stack_lo), 0, here);
	if (!ctx->functions)
		ctx->functions = lwsbt_function_table();
#if defined(LWSBT_WRAP_NODES) || LWSBT_PACKED
	code.start = ctx->code_lo;
	code.end = ctx->code_hi & ~(((uintptr_t)1 << LWSBT_CODE_SHIFT) - 1);
	device.code.range = &code;
	device.code.count = 1;
	device.code.shift = LWSBT_CODE_SHIFT;
#ifdef LWSBT_WRAP_NODES
	lwsbt_wrapped_profile.code = device.code;
#endif
#endif
	if (&lwsbt_wrap_out)
		lwsbt_head_device(&lwsbt_wrap_out, &device);
}

void lwsbt_wrap_dump(const char *why)
{
	static uint32_t number;
#ifdef LWSBT_WRAP_NODES
	static struct lwsbt_profile_dump state;
#endif

	if (!&lwsbt_wrap_out)
		return;
#ifdef LWSBT_WRAP_NODES
	state.lines.out = &lwsbt_wrap_out;
	lwsbt_profile_dump(&lwsbt_wrapped_profile, &state, number, why, LWSBT_SORT | (number % 16 ? LWSBT_DIFF : 0));
#else
	lwsbt_dump(&lwsbt_wrapped, &lwsbt_wrap_out, number, why, LWSBT_KEEP_ADDRESS);
#endif
	number++;
}

#endif

#elif defined(LWSBT_WRAP)
#error "LWSBT_WRAP needs LWSBT_WORD_BITS to be those of an address"
#endif
