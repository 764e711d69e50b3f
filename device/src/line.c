/*
 * Lines, written: base64 and the two forms of a record.
 */
#include <string.h>

#include "internal.h"

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

uint32_t lwsbt_crc16(uint32_t crc, const void *bytes, size_t len)
{
	for (const uint8_t *p = bytes; len > 0; len--) {
		uint32_t x = (crc >> 8 ^ *p++) & 0xff;

		x ^= x >> 4;
		crc = (crc << 8 ^ x << 12 ^ x << 5 ^ x) & 0xffff;
	}
	return crc;
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
