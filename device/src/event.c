/*
 * Allocation events.
 */
#include "internal.h"

size_t lwsbt_encode_event(void *buf, size_t cap, const struct lwsbt_stack *s,
	const struct lwsbt_event *e, unsigned how)
{
	struct lwsbt_writer w;
	uint8_t form[LWSBT_DEPTH_MAX];
	unsigned depth = s->depth;

	lwsbt_writer_init(&w, buf, cap);
	/* the 31 innermost frames: a depth written 0 is an empty stack here [BT-EVT-2] */
	if (depth == LWSBT_DEPTH_MAX)
		depth--;
	lwsbt_choose(s->pc, depth, how, form);
	lwsbt_put_forms(&w, s->pc, depth, how, form);
	lwsbt_put_value(&w, s->size, how);
	lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, e->address);
	if (e->time != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_TIME, e->time);
	if (e->thread != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_THREAD, e->thread);
	if (e->sequence != LWSBT_NONE)
		lwsbt_put_user(&w, LWSBT_TAG_SEQUENCE, e->sequence);
	lwsbt_put_user(&w, LWSBT_TAG_EVENT, (uint64_t)e->kind);
	if (e->kind == LWSBT_MOVED)
		lwsbt_put_user(&w, LWSBT_TAG_OLD, e->old);
	return lwsbt_finish(&w);
}
