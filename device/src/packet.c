/*
 * Lines, gathered into packets.
 */
#include <string.h>

#include "internal.h"

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
