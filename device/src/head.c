/*
 * The ~h# lines of a recording.
 */
#include <string.h>

#include "internal.h"

static void text(const struct lwsbt_out *out, const char *s)
{
	out->put(out->arg, s, strlen(s));
}

/* number writes v by base 10. It divides by halves of words, as a 64-bit division is a
 * function of 700 bytes on 32-bit machines. */
static void number(const struct lwsbt_out *out, uint64_t v)
{
	char digits[20], *p = digits + sizeof digits;
	uint32_t high = (uint32_t)(v >> 32), low = (uint32_t)v, middle;

	do {
		middle = high % 10 << 16 | low >> 16;
		low = middle % 10 << 16 | (low & 0xffff);
		*--p = (char)('0' + low % 10);
		high /= 10;
		low = middle / 10 << 16 | low / 10;
	} while (high | low);
	out->put(out->arg, p, (size_t)(digits + sizeof digits - p));
}

/* key writes a key and its value, unless that is unknown. */
static void key(const struct lwsbt_out *out, const char *name, uint64_t v)
{
	if (v == LWSBT_NONE)
		return;
	text(out, name);
	number(out, v);
}

/* escaped writes a key and its value; what a value must not hold, as %XX. With LWSBT_TINY,
 * values must hold no such. */
static void escaped(const struct lwsbt_out *out, const char *name, const char *v)
{
#ifndef LWSBT_TINY
	static const char hex[] = "0123456789ABCDEF";
#endif

	if (!v)
		return;
	text(out, name);
#ifdef LWSBT_TINY
	text(out, v);
#else
	for (; *v; v++) {
		unsigned c = (unsigned char)*v;
		char code[3] = { '%', hex[c >> 4], hex[c & 15] };

		if (c <= ' ' || c >= 0x7f || c == '%')
			out->put(out->arg, code, sizeof code);
		else
			out->put(out->arg, v, 1);
	}
#endif
}

void lwsbt_head_boot(const struct lwsbt_out *out, const char *prog, uint64_t pid, uint64_t epoch)
{
	text(out, "~h#boot");
	escaped(out, " prog=", prog);
	key(out, " pid=", pid);
	key(out, " w=", LWSBT_WORD_BITS);
	key(out, " epoch=", epoch);
	text(out, "\n");
}

void lwsbt_head_map(const struct lwsbt_out *out, uint64_t time)
{
	text(out, "~h#map");
	key(out, " t=", time);
	text(out, "\n");
}

void lwsbt_head_begin(const struct lwsbt_out *out, const struct lwsbt_head *h)
{
	text(out, "~h#begin ");
	number(out, h->number);
	key(out, " t=", h->time);
	key(out, " n=", h->records);
	key(out, " b=", h->bytes);
	if (h->user)
		text(out, " u=1");
	escaped(out, " why=", h->why);
	text(out, "\n");
}

void lwsbt_head_end(const struct lwsbt_out *out, const struct lwsbt_head *h)
{
	text(out, "~h#end ");
	number(out, h->number);
	key(out, " n=", h->records);
	key(out, " b=", h->bytes);
	text(out, "\n");
}

void lwsbt_head_lost(const struct lwsbt_out *out, uint64_t events)
{
	text(out, "~h#lost");
	key(out, " n=", events);
	text(out, "\n");
}
