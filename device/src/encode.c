/*
 * The encoder: bit fields, stacks and blobs.
 */
#include <string.h>

#include "internal.h"

#if LWSBT_FAST

/* A copy of a writer, whose members a compiler can keep in registers. */
struct bits {
	uint8_t *buf;
	size_t cap, len;
	uint64_t acc;
	unsigned n;
};

static inline struct bits load(const struct lwsbt_writer *w)
{
	struct bits b = { w->buf, w->cap, w->len, w->acc, w->n };

	return b;
}

static inline void store(struct lwsbt_writer *w, const struct bits *b)
{
	w->len = b->len;
	w->acc = (uint32_t)b->acc & ((1u << b->n) - 1);
	w->n = b->n;
}

#define OPEN(b, w) struct bits b##_copy = load(w), *const b = &b##_copy
#define CLOSE(b, w) store(w, b)

#else

/* For size, the writer itself. */
#define bits lwsbt_writer
#define OPEN(b, w) struct lwsbt_writer *const b = (w)
#define CLOSE(b, w) (void)0

#endif

#if LWSBT_FAST

/* put writes the lowest width bits of v, 1 to 57; v has no bit above them. */
static inline void put(struct bits *b, uint64_t v, unsigned width)
{
	b->acc = b->acc << width | v;
	b->n += width;
	v = b->acc << (64 - b->n);
	if (b->len + 8 <= b->cap) {
		lwsbt_store64(b->buf + b->len, v);
	} else {
		size_t last = b->len + (b->n >> 3);

		for (size_t i = b->len; i < b->cap && i < last; i++, v <<= 8)
			b->buf[i] = (uint8_t)(v >> 56);
	}
	b->len += b->n >> 3;
	b->n &= 7;
}

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v as
 * how says. */
static inline void put_field(struct bits *b, unsigned lead, unsigned lead_width, uint64_t v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v), width = lead_width + COUNT_BITS + count + SPILL;
	uint64_t head = (uint64_t)lead << COUNT_BITS | (uint64_t)(count & 63) << SPILL, spill = 0;

	if (how & LWSBT_WRAP64) {
		/* Bit 31 stands for all from 31 up, and those from 32 up are the lowest
		 * again. [BT-MACH-2] */
		spill = v >> 31 != 0;
		v = ((v & 0x7fffffff) | spill << 31) * 0x100000001;
		v = v << (64 - count) >> (64 - count);
	}
	if (width > 57) {
		put(b, count > 32 ? head << (count - 32) | v >> 32 : head, width - 32 - SPILL);
		head = 0;
		v &= 0xffffffff;
		width = 32 + SPILL;
		count = 32;
	}
	put(b, (head << count | v) << SPILL | spill, width);
}

#elif LWSBT_SPEED && LWSBT_WORD_BITS == 32

/* store32 writes 4 bytes, the highest bits first. */
static inline void store32(uint8_t *p, uint32_t v)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap32(v);
	__builtin_memcpy(p, &v, sizeof v);
#else
	for (unsigned i = 4; i-- > 0; v >>= 8)
		p[i] = (uint8_t)v;
#endif
}

/*
 * store_bits writes n bits, at most 63, from the top of two words on: first those that
 * were pending, and then new ones.
 *
 *   |<- b->n ->|<------------- n - b->n -------------->|
 *   | pending  | new                                   | 0 ...
 *   31        high                                  0 31  low
 */
static LWSBT_NOINLINE void store_bits(struct bits *b, uint32_t high, uint32_t low, unsigned n)
{
	uint8_t out[8];

	high |= b->acc << (31 - b->n) << 1;
	store32(out, high);
	store32(out + 4, low);
	if (b->len + 8 <= b->cap)
		memcpy(b->buf + b->len, out, 8);
	else
		for (size_t i = b->len; i < b->cap; i++)
			b->buf[i] = out[i - b->len];
	b->len += n / 8;
	b->n = n % 8;
	b->acc = (uint32_t)out[n / 8] >> (8 - b->n);
}

/* put writes the lowest width bits of v, 0 to 24; v has no bit above them. */
static void put(struct bits *b, uint32_t v, unsigned width)
{
	width += b->n;
	store_bits(b, v << (31 - width) << 1, 0, width);
}

/* put_low writes the lowest lead_width bits of lead, at most 15, the lowest count bits
 * of v, 1 to 32, and spill zeros. */
LWSBT_INLINE void put_low(struct bits *b, unsigned lead, unsigned lead_width, uint32_t v,
	unsigned count, unsigned spill)
{
	lead_width += b->n;
	v <<= 32 - count;
	store_bits(b, lead << (31 - lead_width) << 1 | v >> lead_width, v << (31 - lead_width) << 1,
		lead_width + count + spill);
}

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v. */
static void put_field(struct bits *b, unsigned lead, unsigned lead_width, lwsbt_word v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v);

	(void)how;
	put_low(b, lead << COUNT_BITS | count << SPILL, lead_width + COUNT_BITS, v, count, SPILL);
}

#else

/* put writes the lowest width bits of v. */
static void put(struct bits *b, lwsbt_word v, unsigned width)
{
	while (width > 0) {
		b->acc = b->acc << 1 | (v >> --width & 1);
		if (++b->n < 8)
			continue;
		if (b->len < b->cap)
			b->buf[b->len] = (uint8_t)b->acc;
		b->len++;
		b->n = 0;
	}
}

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v as
 * how says. */
static void put_field(struct bits *b, unsigned lead, unsigned lead_width, lwsbt_word v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v), spill = 0;

	put(b, lead << COUNT_BITS | (count & 63) << SPILL, lead_width + COUNT_BITS);
	(void)how;
#if LWSBT_WORD_BITS == 64
	if (how & LWSBT_WRAP64) {
		/* Bit 31 stands for all from 31 up, and those from 32 up are the lowest
		 * again. [BT-MACH-2] */
		spill = v >> 31 != 0;
		v = ((v & 0x7fffffff) | (uint64_t)spill << 31) * 0x100000001;
	}
#endif
	put(b, v, count);
	put(b, spill, SPILL);
}

#endif

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
	OPEN(b, w);

	while (width > 0) {
		unsigned k = width > 16 ? 16 : width;

		width -= k;
		put(b, (uint32_t)(v >> width) & ((1u << k) - 1), k);
	}
	CLOSE(b, w);
}

void lwsbt_put_value(struct lwsbt_writer *w, lwsbt_word v, unsigned how)
{
	OPEN(b, w);

	put_field(b, 0, 0, v, how);
	CLOSE(b, w);
}

#if LWSBT_WORD_BITS == 64

void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v)
{
	OPEN(b, w);

	put_field(b, tag << SPILL, TAG_BITS, v, LWSBT_SEARCH_BEST);
	CLOSE(b, w);
}

#elif LWSBT_SPEED

/* put_long writes a user field whose value has the word high above v. */
static LWSBT_NOINLINE void put_long(struct bits *b, unsigned tag, uint32_t high, uint32_t v)
{
	unsigned count = lwsbt_significant(high);

	put_low(b, tag << SPILL << COUNT_BITS | (32 + count) % 64 << SPILL, TAG_BITS + COUNT_BITS, high, count, 0);
	put_low(b, 0, 0, v, 32, SPILL);
}

void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v)
{
	if (v >> 32 != 0)
		put_long(w, tag, (uint32_t)(v >> 32), (uint32_t)v);
	else
		put_field(w, tag << SPILL, TAG_BITS, (uint32_t)v, LWSBT_SEARCH_BEST);
}

#else

void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v)
{
	uint32_t high = (uint32_t)(v >> 32);
	unsigned count = high ? 32 + lwsbt_significant(high) : lwsbt_significant((uint32_t)v);

	put(w, tag << SPILL << COUNT_BITS | (count & 63) << SPILL, TAG_BITS + COUNT_BITS);
	if (high)
		put(w, high, count - 32);
	put(w, (uint32_t)v, count < 32 ? count : 32);
	put(w, 0, SPILL);
}

#endif

void lwsbt_put_forms(struct lwsbt_writer *w, const lwsbt_word *pc, unsigned depth,
	unsigned how, const uint8_t *form)
{
	OPEN(b, w);
	unsigned n, f;

	put(b, (depth & 31) << SPILL, DEPTH_BITS); /* 32 is written 0 [BT-DEPTH-2] */
	for (n = 0; n < depth; n++) {
		lwsbt_word v = pc[n], delta, sign, isdelta;

		f = form[n];
		isdelta = 0 - (lwsbt_word)(f >> 7);
		sign = 0 - (lwsbt_word)FORM_SIGN(f);
		delta = v - pc[(n - 1 - FORM_BACK(f)) & (LWSBT_DEPTH_MAX - 1)];
		delta = (delta ^ sign) - sign;
		v ^= (v ^ delta) & isdelta;
		put_field(b, f, LITERAL_LEAD + ((DELTA_LEAD - LITERAL_LEAD) & (unsigned)isdelta), v, how);
	}
	CLOSE(b, w);
}

#if LWSBT_FAST

void lwsbt_put_frames(struct lwsbt_writer *w, const lwsbt_word *pc, unsigned depth, unsigned how)
{
	uint8_t form[LWSBT_DEPTH_MAX];

	lwsbt_choose_only(pc, depth, how, form);
	lwsbt_put_forms(w, pc, depth, how, form);
}

#else

void lwsbt_put_frames(struct lwsbt_writer *w, const lwsbt_word *pc, unsigned depth, unsigned how)
{
	put(w, (depth & 31) << SPILL, DEPTH_BITS);
	for (unsigned n = 0; n < depth; n++) {
		lwsbt_word v;
		unsigned f = lwsbt_form(pc, n, how, &v);

		put_field(w, f, f ? DELTA_LEAD : LITERAL_LEAD, v, how);
	}
}

#endif

void lwsbt_put_stack(struct lwsbt_writer *w, const struct lwsbt_stack *s, unsigned how)
{
	lwsbt_put_frames(w, s->pc, s->depth, how);
}

void lwsbt_fill(struct lwsbt_writer *w, size_t len)
{
	OPEN(b, w);
	unsigned left = 8 * (unsigned)(len - b->len) - b->n, zeros = (0u - TAG_BITS - b->n) % 8 + TAG_BITS;

	if (left > 0)
		put(b, 0, zeros < left ? zeros : left);
	while (b->len < len)
		put(b, 0xff, 8);
	put(b, (uint32_t)len + LENGTH_BYTES, 8 * LENGTH_BYTES);
	CLOSE(b, w);
}

size_t lwsbt_finish(struct lwsbt_writer *w)
{
	size_t len;

	OPEN(b, w);

	if (b->n)
		put(b, 0, 8 - b->n);
	len = b->len + LENGTH_BYTES;
	if (len > LWSBT_LENGTH_MAX)
		return 0;
	put(b, (uint32_t)len, 8 * LENGTH_BYTES);
	CLOSE(b, w);
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
