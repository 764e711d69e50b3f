/*
 * The ~h# lines of a device: boot, dumps by call path, what the allocator says.
 */
#include "heap.h"

static void hex(const struct lwsbt_out *out, lwsbt_word v)
{
	char text[2 * sizeof v], *p = text + sizeof text;

	do {
		unsigned digit = (unsigned)v & 15;

		*--p = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
	} while (v >>= 4);
	out->put(out->arg, p, (size_t)(text + sizeof text - p));
}

/* range writes START+LEN. [BT-CODE-1] */
static void range(const struct lwsbt_out *out, const char *name, const struct lwsbt_range *r)
{
	lwsbt_text(out, name);
	hex(out, r->start);
	lwsbt_text(out, "+");
	hex(out, r->end - r->start);
}

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x

void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d)
{
	const uint32_t *note = d->build; /* sizes of name and description, type, "GNU" */

	lwsbt_text(out, "~h#boot");
	lwsbt_escaped(out, " prog=", d->prog);
	lwsbt_text(out, " w=" STRING(LWSBT_WORD_BITS));
	if (LWSBT_EXTRAS && note) {
		const uint8_t *id = (const uint8_t *)(note + 3) + ((note[0] + 3) & ~(uint32_t)3);

		lwsbt_text(out, " build=");
		for (uint32_t i = 0; i < note[1]; i++) {
			hex(out, id[i] >> 4);
			hex(out, id[i] & 15);
		}
	}
	if (LWSBT_EXTRAS) {
		lwsbt_escaped(out, " dev=", d->dev);
		lwsbt_escaped(out, " fw=", d->fw);
	}
	for (unsigned i = 0; i < d->code.count; i++)
		range(out, i ? "," : " code=", &d->code.range[i]);
	if (d->code.count)
		lwsbt_key(out, " shift=", d->code.shift);
	if (LWSBT_EXTRAS && d->heap.end)
		range(out, " heap=", &d->heap);
	lwsbt_text(out, "\n");
}

void lwsbt_head_heap(const struct lwsbt_out *out, const struct lwsbt_numbers *n, uint64_t time)
{
	lwsbt_text(out, "~h#heap");
	if (LWSBT_FIELDS && time != LWSBT_NONE)
		lwsbt_key(out, " t=", (lwsbt_number)time);
	lwsbt_key(out, " size=", n->size);
	lwsbt_key(out, " free=", n->free);
	lwsbt_key(out, " largest=", n->largest);
	lwsbt_key(out, " min=", n->least);
	lwsbt_text(out, "\n");
}

void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name)
{
	lwsbt_key(out, "~h#thread ", thread);
	lwsbt_escaped(out, " name=", name);
	lwsbt_text(out, "\n");
}

void lwsbt_head_paths(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number, uint32_t lines,
	const uint32_t *base, uint32_t sample, const char *why)
{
	struct lwsbt_numbers n;

	lwsbt_key(out, "~h#begin ", number);
	if (LWSBT_FIELDS && port && port->time)
		lwsbt_key(out, " t=", (lwsbt_number)port->time(port->arg));
	if (LWSBT_EXTRAS && base)
		lwsbt_key(out, " k=diff base=", *base);
	else
		lwsbt_text(out, " k=paths");
	lwsbt_key(out, " l=", lines);
	if (LWSBT_EXTRAS && sample)
		lwsbt_key(out, " sample=", sample);
	lwsbt_escaped(out, " why=", why);
	lwsbt_text(out, "\n");
	if (LWSBT_EXTRAS && port && port->numbers && port->numbers(port->arg, &n))
		lwsbt_head_heap(out, &n, LWSBT_NONE);
}

void lwsbt_tail_paths(const struct lwsbt_out *out, uint32_t number, uint32_t blocks, size_t bytes, uint32_t lines,
	uint32_t cut)
{
	lwsbt_key(out, "~h#end ", number);
	lwsbt_key(out, " n=", blocks);
	lwsbt_key(out, " b=", bytes);
	lwsbt_key(out, " l=", lines);
	if (cut)
		lwsbt_key(out, " cut=", cut);
	lwsbt_text(out, "\n");
}
