/*
 * The encoder: bit fields, stacks and blobs.
 */
#include "internal.h"

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
