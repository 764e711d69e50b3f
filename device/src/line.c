/*
 * Lines, written: base64 and the two forms of a record.
 */
#include <string.h>

#include "internal.h"

static void emit(const struct lwsbt_out *out, const char *text, size_t len)
{
	out->put(out->arg, text, len);
}

/* group writes the n bytes in acc, 1 to 3, the first at bit 16, as 4 characters.
 * [BT-B64-1] */
static LWSBT_NOINLINE void group(const struct lwsbt_out *out, uint32_t acc, unsigned n)
{
	char text[4];

	for (unsigned i = 0; i < 4; i++) {
		unsigned v = acc >> (18 - 6 * i) & 63;

		text[i] = (char)(i > n ? '=' : v < 26 ? 'A' + v : v < 52 ? 'a' + v - 26 :
			v < 62 ? '0' + v - 52 : v == 62 ? '+' : '/');
	}
	emit(out, text, 4);
}

void lwsbt_base64_begin(struct lwsbt_base64 *b, const struct lwsbt_out *out)
{
	b->out = out;
	b->acc = 0;
	b->n = 0;
}

void lwsbt_base64_put(struct lwsbt_base64 *b, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (; len > 0; len--) {
		b->acc |= (uint32_t)*p++ << (16 - 8 * b->n);
		if (++b->n == 3)
			lwsbt_base64_end(b);
	}
}

void lwsbt_base64_end(struct lwsbt_base64 *b)
{
	if (b->n == 0)
		return;
	group(b->out, b->acc, b->n);
	b->acc = 0;
	b->n = 0;
}

/* record writes a lead-in, a blob and the line end. */
static void record(const struct lwsbt_out *out, const char *lead_in, const uint8_t *blob, size_t len)
{
	emit(out, lead_in, 3);
	for (; len > 0; len -= len < 3 ? len : 3, blob += 3)
		group(out, (uint32_t)blob[0] << 16 | (len > 1 ? (uint32_t)blob[1] << 8 : 0) |
			(len > 2 ? blob[2] : 0u), len < 3 ? (unsigned)len : 3);
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
static void number(const struct lwsbt_out *out, const char *prefix, lwsbt_word v, unsigned base)
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
	number(out, "e: ", s->size, 10);
	emit(out, ",", 1);
	for (unsigned n = 0; n < s->depth; n++)
		number(out, " 0x", s->pc[n], 16);
	emit(out, "\n", 1);
}

void lwsbt_line_text(void *arg, const char *text, size_t len)
{
	struct lwsbt_text *t = arg;

	if (t->len < t->cap)
		memcpy(t->text + t->len, text, len < t->cap - t->len ? len : t->cap - t->len);
	t->len += len;
}
