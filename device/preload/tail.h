/*
 * A record behind the text that its stack has once and for all: size and user
 * fields, as bits, then as characters.
 */
#ifndef LWSBT_TAIL_H
#define LWSBT_TAIL_H

#include <string.h>

#include "preload.h"

#define INLINE static inline __attribute__((always_inline))

/* base64 writes the characters of bytes up to end, and up to 15 more. It reads as
 * many bytes as that takes. */
extern void (*base64)(char *p, const char *end, const uint8_t *bytes);
void base64_init(void);

/* What goes on behind a stack's text. Bits are written 8 bytes at a time, and turned
 * into characters at the end: without a branch on how many there are. */
struct tail {
	char *p;	/* where the characters go */
	size_t before;	/* bits of the blob, in the characters before */
	uint64_t acc;
	unsigned n;	/* bits in acc, not yet in a whole byte: 0 to 7 */
	uint8_t *at;	/* in an array of TAIL bytes, which is not in here: so that a
			 * compiler can keep the members in registers */
};
#define TAIL 96 /* a size and 6 user fields have 80 at most */

/* bits_of returns the bits of a value, 1 for 0. */
INLINE unsigned bits_of(uint64_t v) { return 64 - (unsigned)__builtin_clzll(v | 1); }

/* put_bits adds 1 to 57 bits; v has none above them. */
INLINE void put_bits(struct tail *t, uint64_t v, unsigned width)
{
	t->acc = t->acc << width | v;
	t->n += width;
	v = t->acc << (64 - t->n);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(t->at, &v, 8);
	t->at += t->n >> 3;
	t->n &= 7;
}

/* put_value adds a count, a value, and their spill bits. [BT-COUNT-1] */
INLINE void put_value(struct tail *t, uint64_t v)
{
	unsigned count = bits_of(v);

	if (LIKELY(count <= 49)) {
		put_bits(t, ((uint64_t)count << 1 << count | v) << 1, count + 8);
		return;
	}
	put_bits(t, (uint64_t)(count & 63) << 1, 7);
	put_bits(t, v >> 32, count - 32);
	put_bits(t, (v & 0xffffffff) << 1, 33);
}

/* put_user adds a user field. */
INLINE void put_user(struct tail *t, unsigned tag, uint64_t v)
{
	unsigned count = bits_of(v);

	if (LIKELY(count <= 44)) {
		put_bits(t, (((uint64_t)tag << 7 | count) << 1 << count | v) << 1, count + 13);
		return;
	}
	put_bits(t, tag << 1, 5);
	put_value(t, v);
}

/* begin writes the lead-in and what is known of the stack. */
INLINE void begin(struct tail *t, uint8_t *bytes, char *p, const char *lead, stack_id id)
{
	const struct stack *s = stack_encoded(id);

	memcpy(p, lead, 3);
	p += 3;
	t->at = bytes;
	if (LIKELY(s)) {
		for (unsigned i = 0; i < s->chars; i += TEXT_STEP)
			memcpy(p + i, s->text + i, TEXT_STEP);
		t->p = p + s->chars;
		t->before = s->chars * 6u;
		t->acc = s->restbits;
		t->n = s->rest;
		return;
	}
	t->p = p;
	t->before = t->acc = 0;
	t->n = 6; /* no frames */
}

/* end pads the bits, and appends length, padding and line end. [BT-BLOB-1] */
INLINE char *end(struct tail *t, const uint8_t *bytes)
{
	size_t bits = t->before + (size_t)(t->at - bytes) * 8 + t->n;
	size_t len = (bits + 7) / 8 + 2, chars, left;
	char *p = t->p;

	put_bits(t, len, (unsigned)(len * 8 - bits));
	chars = (len * 8 + 5) / 6;
	memset(t->at + 1, 0, 8); /* the last character's bits are filled up */
	t->p += chars - t->before / 6;
	base64(p, t->p, bytes);
	p = t->p;
	left = (4 - chars % 4) % 4;
	memset(p, '=', 3);
	p[left] = '\n';
	return p + left + 1;
}

/* The longest record: a stack's text, a size, four user fields and an old address. */
#define RECORD_MAX (3 + (LWSBT_EVENT_MAX + 2) / 3 * 4 + 8 + TEXT_STEP)

#endif
