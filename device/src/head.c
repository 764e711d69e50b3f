/*
 * The ~h# lines of a recording.
 */
#include <string.h>

#include "internal.h"

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

void lwsbt_head_opens(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number)
{
	lwsbt_key(out, "~h#begin ", number);
	(void)port;
#if LWSBT_FIELDS
	if (port && port->time)
		lwsbt_key(out, " t=", port->time(port->arg));
#endif
}

void lwsbt_head_why(const struct lwsbt_out *out, const struct lwsbt_port *port, const char *why)
{
	lwsbt_escaped(out, " why=", why);
	lwsbt_text(out, "\n");
	(void)port;
#if LWSBT_EXTRAS
	if (port && port->numbers) {
		struct lwsbt_numbers n = { 0, 0, 0, 0, NULL };

		if (port->numbers(port->arg, &n))
			lwsbt_head_heap(out, &n, LWSBT_NONE);
	}
#endif
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
