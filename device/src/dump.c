/*
 * What is live: walks, dumps, and the metadata of one allocation.
 */
#include <string.h>

#include "heap.h"

enum lwsbt_result lwsbt_meta_parse(struct lwsbt_heap *h, struct lwsbt_stack *s, const void *p)
{
	const struct lwsbt_node *n = lwsbt_node_of(p);
	struct lwsbt_found f;
	enum lwsbt_result e = LWSBT_EMPTY;

	s->depth = 0;
	s->size = 0;
	s->end = 0;
	lwsbt_lock(h);
	if (lwsbt_readable(h, n) && n->owner == h) {
		e = LWSBT_LENGTH;
		if (lwsbt_linked(h, n) && lwsbt_find_blob(h, n, &f))
			e = lwsbt_decode(s, f.blob, f.len, LWSBT_WORD_BITS);
	}
	lwsbt_unlock(h);
	return e;
}

void lwsbt_walk_begin(struct lwsbt_heap *h, struct lwsbt_walk *w)
{
	lwsbt_lock(h);
	w->next = h->head;
	w->last = h->tail;
	w->left = h->count;
	w->more = h->walks;
	h->walks = w;
	lwsbt_unlock(h);
}

void lwsbt_walk_end(struct lwsbt_heap *h, struct lwsbt_walk *w)
{
	struct lwsbt_walk **at;

	lwsbt_lock(h);
	for (at = &h->walks; *at && *at != w; at = &(*at)->more)
		;
	if (*at)
		*at = w->more;
	lwsbt_unlock(h);
}

/*
 * record writes the blob of n, without what aligns memory, and with its address if
 * flags say so. It returns 0 if it does not fit.
 */
static size_t record(struct lwsbt_node *n, const struct lwsbt_found *f, uint8_t *buf, size_t cap,
	unsigned flags)
{
	struct lwsbt_writer w;
	size_t end = f->bits, bytes, len;

	if (f->bits == 0) { /* lws had no room, and says no more [BT-BLOB-4] */
		if (cap < LENGTH_BYTES)
			return 0;
		buf[0] = buf[1] = 0;
		return LENGTH_BYTES;
	}
	bytes = end / 8;
	if (bytes > cap)
		return 0;
	lwsbt_writer_init(&w, buf, cap);
	memcpy(buf, f->blob, bytes);
	w.len = bytes;
	if (end % 8)
		lwsbt_put(&w, (unsigned)f->blob[bytes] >> (8 - end % 8), (unsigned)(end % 8));
	if (flags & KEEP_ADDRESS)
		lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, (uintptr_t)lwsbt_program_pointer(n));
	len = lwsbt_finish(&w);
	return len <= cap ? len : 0;
}

size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags)
{
	for (;;) {
		enum lwsbt_damage damage = (enum lwsbt_damage)0;
		struct lwsbt_node *n;
		struct lwsbt_found f;
		size_t len = 0;

		lwsbt_lock(h);
		n = w->next;
		if (!n || w->left == 0) {
			lwsbt_unlock(h);
			return 0;
		}
		w->left--;
		if (!lwsbt_linked(h, n)) {
			damage = LWSBT_DAMAGED_LINK;
			w->next = NULL;
		} else {
			w->next = n == w->last ? NULL : n->next;
			if (lwsbt_find_blob(h, n, &f))
				len = record(n, &f, buf, cap, flags);
			if (len == 0)
				damage = LWSBT_DAMAGED_BLOB;
		}
		lwsbt_unlock(h);
		if (!damage) {
			w->p = lwsbt_program_pointer(n);
			w->size = f.size;
			return len;
		}
		lwsbt_report(h, damage, n);
	}
}

void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags)
{
	uint8_t buf[LWSBT_RECORD_MAX];
	struct lwsbt_walk w;
	struct lwsbt_head head = { number, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE,
		(flags & KEEP_ADDRESS) || (h->flags & KEEP), why };
	size_t len;

	if (h->port && h->port->time)
		head.time = h->port->time(h->port->arg);
	if (!h->port || !h->port->lock) { /* else others may free meanwhile */
		head.records = h->count;
		head.bytes = h->bytes;
	}
	lwsbt_head_begin(out, &head);
	head.records = 0;
	head.bytes = 0;
	lwsbt_walk_begin(h, &w);
	while ((len = lwsbt_walk_next(h, &w, buf, sizeof buf, flags)) != 0) {
		lwsbt_line(out, buf, len);
		head.records++;
		head.bytes += w.size;
	}
	lwsbt_walk_end(h, &w);
	lwsbt_head_end(out, &head);
}
