/*
 * The ~h# lines that begin and end a dump by call path, of a heap or a profile.
 */
#include "heap.h"

void lwsbt_head_paths(const struct lwsbt_out *out, const struct lwsbt_port *port, uint32_t number, uint32_t lines,
	const uint32_t *base, uint32_t sample, const char *why)
{
	lwsbt_head_opens(out, port, number);
	if (LWSBT_EXTRAS && base)
		lwsbt_key(out, " k=diff base=", *base);
	lwsbt_key(out, LWSBT_EXTRAS && base ? " l=" : " k=paths l=", lines);
	if (LWSBT_EXTRAS && sample)
		lwsbt_key(out, " sample=", sample);
	lwsbt_head_why(out, port, why);
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
