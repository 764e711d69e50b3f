/*
 * What the library's own files share. Not for programs.
 */
#ifndef LWSBT_INTERNAL_H
#define LWSBT_INTERNAL_H

#include <limits.h>

#include "lwsbt.h"
#include "options.h"

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

/* lwsbt_crc16 continues a CRC-16/IBM-3740, which begins with 0xffff, over len bytes. [BT-PLINE-2] */
uint32_t lwsbt_crc16(uint32_t crc, const void *bytes, size_t len);

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

/* Of a dump: "~h#begin " with its number and time; and "why=", the line end and the numbers of the allocator. */
void lwsbt_head_opens(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number);
void lwsbt_head_why(const struct lwsbt_out *out, const struct lwsbt_port *port, const char *why);

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
