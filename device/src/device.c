/*
 * The ~h# lines of a device: boot and threads.
 */
#include "internal.h"

/* range writes START+LEN after name. [BT-CODE-1] */
static void range(const struct lwsbt_out *out, const char *name, const struct lwsbt_range *r)
{
	lwsbt_digits(out, name, r->start, 16);
	lwsbt_digits(out, "+", r->end - r->start, 16);
}

void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d)
{
	const uint32_t *note = d->build; /* sizes of name and description, type, "GNU" */
	const char *name = " code=";

	lwsbt_text(out, "~h#boot");
	lwsbt_escaped(out, " prog=", d->prog);
	lwsbt_text(out, " w=" WORD_TEXT);
	if (LWSBT_EXTRAS && note) {
		const uint8_t *id = (const uint8_t *)(note + 3) + ((note[0] + 3) & ~(uint32_t)3);

		lwsbt_text(out, " build=");
		for (uint32_t i = 0; i < note[1]; i++) {
			static const char hex[] = "0123456789abcdef";
			const char text[2] = { hex[id[i] >> 4], hex[id[i] & 15] };

			out->put(out->arg, text, sizeof text);
		}
	}
	if (LWSBT_EXTRAS) {
		lwsbt_escaped(out, " dev=", d->dev);
		lwsbt_escaped(out, " fw=", d->fw);
	}
	for (unsigned i = 0; i < d->code.count; i++, name = ",")
		range(out, name, &d->code.range[i]);
	if (d->code.count)
		lwsbt_key(out, " shift=", d->code.shift);
	if (LWSBT_EXTRAS && d->text)
		lwsbt_digits(out, " text=", d->text, 16);
	if (LWSBT_EXTRAS && d->heap.end)
		range(out, " heap=", &d->heap);
	lwsbt_text(out, "\n");
}

void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name)
{
	lwsbt_key(out, "~h#thread ", thread);
	lwsbt_escaped(out, " name=", name);
	lwsbt_text(out, "\n");
}
