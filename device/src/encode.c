/*
 * The encoder: bit fields, stacks and blobs.
 */
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

#else

/* put writes the lowest width bits of v, 0 to 25; v has no bit above them. */
static void put(struct bits *b, uint32_t v, unsigned width)
{
	uint32_t acc = b->acc << width | v;
	unsigned n = b->n + width;
	size_t len = b->len;

	for (; n >= 8; len++) {
		n -= 8;
		if (len < b->cap)
			b->buf[len] = (uint8_t)(acc >> n);
	}
	b->len = len;
	b->acc = acc;
	b->n = n;
}

#if LWSBT_WORD_BITS == 32

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v. It
 * moves the field behind the bits not yet written, in two words whose top is the
 * first bit, as this is done for each frame. */
static void put_field(struct bits *b, unsigned lead, unsigned lead_width, lwsbt_word v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v), n = b->n;
	uint32_t high, low;
	size_t len = b->len;

	(void)how;
	lead = lead << COUNT_BITS | (count & 63) << SPILL;
	lead_width += COUNT_BITS + n; /* 9 to 22 */
	v <<= 32 - count;
	high = ((b->acc & ((1u << n) - 1)) << (lead_width - n) | lead) << (32 - lead_width) | v >> lead_width;
	low = v << (32 - lead_width);
	for (n = lead_width + count + SPILL; n >= 8; n -= 8) {
		if (len < b->cap)
			b->buf[len] = (uint8_t)(high >> 24);
		len++;
		high = high << 8 | low >> 24;
		low <<= 8;
	}
	b->len = len;
	b->acc = high >> (31 - n) >> 1;
	b->n = n;
}

#else

/* put_field writes the lowest lead_width bits of lead, then the count of v, and v as
 * how says. */
static void put_field(struct bits *b, unsigned lead, unsigned lead_width, lwsbt_word v,
	unsigned how)
{
	unsigned count = lwsbt_significant(v), spill = 0;

	put(b, lead << COUNT_BITS | (count & 63) << SPILL, lead_width + COUNT_BITS);
	if (how & LWSBT_WRAP64) {
		/* Bit 31 stands for all from 31 up, and those from 32 up are the lowest
		 * again. [BT-MACH-2] */
		spill = v >> 31 != 0;
		v = ((v & 0x7fffffff) | (uint64_t)spill << 31) * 0x100000001;
	}
	while (count > 16) {
		unsigned k = count % 16 ? count % 16 : 16;

		count -= k;
		put(b, (uint32_t)(v >> count) & ((1u << k) - 1), k);
	}
	put(b, ((uint32_t)v & ((1u << count) - 1)) << SPILL | spill, count + SPILL);
}

#endif

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

void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v)
{
	uint32_t high = (uint32_t)(v >> 32), low = (uint32_t)v;
	unsigned count = high ? 32 + lwsbt_significant(high) : lwsbt_significant(low);

	lwsbt_put(w, (tag << SPILL) << COUNT_BITS | (count & 63) << SPILL, TAG_BITS + COUNT_BITS);
	lwsbt_put(w, v, count);
	lwsbt_put(w, 0, SPILL);
}

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

void lwsbt_put_stack(struct lwsbt_writer *w, const struct lwsbt_stack *s, unsigned how)
{
	uint8_t form[LWSBT_DEPTH_MAX];

	lwsbt_choose_only(s->pc, s->depth, how, form);
	lwsbt_put_forms(w, s->pc, s->depth, how, form);
}

void lwsbt_fill(struct lwsbt_writer *w, size_t len)
{
	OPEN(b, w);

	if (8 * (len - b->len) >= b->n + TAG_BITS)
		put(b, 0, TAG_BITS);
	if (b->n)
		put(b, 0, 8 - b->n);
	while (b->len < len)
		b->buf[b->len++] = 0xff;
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
