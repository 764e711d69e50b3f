/*
 * What is live: walks, dumps, and the metadata of one allocation.
 */
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
	if (lwsbt_owned(h, n)) {
		e = LWSBT_LENGTH;
		if (lwsbt_linked(h, n) && lwsbt_find_blob(h, n, &f))
			e = lwsbt_stack_of(h, &f, s);
	}
	lwsbt_unlock(h);
	return e;
}

void lwsbt_walk_begin(struct lwsbt_heap *h, struct lwsbt_walk *w)
{
	lwsbt_lock(h);
	w->next = h->head;
	w->last = h->tail;
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

#if LWSBT_PACKED

/* record writes the stack of n as a blob. It returns 0 if it does not fit. */
static LWSBT_NOINLINE size_t record(struct lwsbt_node *n, const struct lwsbt_found *f, uint8_t *buf, size_t cap,
	unsigned flags)
{
	struct lwsbt_stack s;
	size_t len;

	(void)flags;
	if (lwsbt_stack_of(n->owner, f, &s) != LWSBT_OK)
		return 0;
	len = lwsbt_encode(buf, cap, &s, n->owner->how);
	return len <= cap ? len : 0;
}

#elif LWSBT_FIELDS

/*
 * record writes the blob of n, without what aligns memory, and with its address if
 * flags say so. It returns 0 if it does not fit.
 */
LWSBT_INLINE size_t record(struct lwsbt_node *n, const struct lwsbt_found *f, uint8_t *buf, size_t cap,
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
	w.n = end % 8;
	w.acc = w.n ? (uint32_t)f->blob[bytes] >> (8 - w.n) : 0;
	if (flags & KEEP_ADDRESS)
		lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, (uintptr_t)lwsbt_program_pointer(n));
	len = lwsbt_finish(&w);
	return len <= cap ? len : 0;
}

#else

/* record writes the blob of n, without what aligns memory. It returns 0 if it does not fit. */
LWSBT_INLINE size_t record(struct lwsbt_node *n, const struct lwsbt_found *f, uint8_t *buf, size_t cap,
	unsigned flags)
{
	size_t bytes = (f->bits + 7) / 8, len = bytes + LENGTH_BYTES;

	(void)n;
	(void)flags;
	if (len > cap)
		return 0;
	memcpy(buf, f->blob, bytes);
#if LWSBT_FOREIGN
	if (bytes) /* the last bits can be a program's own */
		buf[bytes - 1] &= (uint8_t)(0xff << (8 * bytes - f->bits));
	else
		len = 0; /* lws had no room, and says no more [BT-BLOB-4] */
#endif
	buf[bytes] = (uint8_t)(len >> 8);
	buf[bytes + 1] = (uint8_t)len;
	return bytes + LENGTH_BYTES;
}

#endif

/* advance describes the next record's metadata in *f, and returns its node, with the
 * lock held; NULL after the last, without. Damage is reported and left out. */
static struct lwsbt_node *advance(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_found *f)
{
	for (;;) {
		enum lwsbt_damage damage = LWSBT_DAMAGED_LINK;
		struct lwsbt_node *n;

		lwsbt_lock(h);
		n = w->next;
		if (!n) {
			lwsbt_unlock(h);
			return NULL;
		}
		w->next = NULL;
		if (lwsbt_linked(h, n)) {
			if (n != w->last)
				w->next = n->next;
			if (lwsbt_find_blob(h, n, f))
				return n;
			damage = LWSBT_DAMAGED_BLOB;
		}
		lwsbt_report(h, damage, n);
	}
}

/* finish_record writes the record that advance found to buf, and gives the lock up. It
 * returns 0, and reports it, if it does not fit. Spare bytes that were overwritten are reported,
 * too. */
LWSBT_INLINE size_t finish_record(struct lwsbt_heap *h, struct lwsbt_node *n, const struct lwsbt_found *f,
	void *buf, size_t cap, unsigned flags)
{
	size_t len = record(n, f, buf, cap, flags);

	if (len > 0 && !f->end)
		lwsbt_unlock(h);
	else
		lwsbt_report(h, len > 0 ? LWSBT_DAMAGED_END : LWSBT_DAMAGED_BLOB, n);
	return len;
}

size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags)
{
	struct lwsbt_node *n;
	struct lwsbt_found f;
	size_t len = 0;

	while (len == 0 && (n = advance(h, w, &f)) != NULL) {
		w->p = lwsbt_program_pointer(n);
		w->size = f.size;
		len = finish_record(h, n, &f, buf, cap, flags);
	}
	return len;
}

int lwsbt_walk_stack(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_stack *s)
{
	struct lwsbt_node *n;
	struct lwsbt_found f;

	while ((n = advance(h, w, &f)) != NULL) {
		int ok = lwsbt_stack_of(h, &f, s) == LWSBT_OK;

		if (f.bits == 0 || (ok && !f.end)) /* lws had no room, and says no more [BT-BLOB-4] */
			lwsbt_unlock(h);
		else
			lwsbt_report(h, ok ? LWSBT_DAMAGED_END : LWSBT_DAMAGED_BLOB, n);
		if (ok)
			return 1;
	}
	return 0;
}

static void counts(const struct lwsbt_out *out, uint32_t records, size_t bytes)
{
	lwsbt_key(out, " n=", records);
	lwsbt_key(out, " b=", bytes);
}

static void begin(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, int user)
{
	lwsbt_key(out, "~h#begin ", number);
	(void)h;
#if LWSBT_FIELDS
	if (h->port && h->port->time)
		lwsbt_key(out, " t=", h->port->time(h->port->arg));
	if (!h->port || !h->port->lock) /* else others may free meanwhile */
		counts(out, h->count, h->bytes);
#endif
	if (user)
		lwsbt_text(out, " u=1");
	lwsbt_escaped(out, " why=", why);
	lwsbt_text(out, "\n");
}

/* put_record writes a line of the record that advance found, unless it does not fit. */
static LWSBT_NOINLINE size_t put_record(struct lwsbt_heap *h, const struct lwsbt_out *out,
	struct lwsbt_node *n, const struct lwsbt_found *f, unsigned flags)
{
	uint8_t buf[LWSBT_RECORD_MAX];
	size_t len = finish_record(h, n, f, buf, sizeof buf, flags);

	if (len > 0)
		lwsbt_line(out, buf, len);
	return len;
}

void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags)
{
	struct lwsbt_walk w;
	struct lwsbt_node *n;
	struct lwsbt_found f;
	uint32_t records = 0;
	size_t bytes = 0;

	begin(h, out, number, why, (flags & KEEP_ADDRESS) || (h->flags & KEEP));
	lwsbt_walk_begin(h, &w);
	while ((n = advance(h, &w, &f)) != NULL) {
		if (put_record(h, out, n, &f, flags) > 0) {
			records++;
			bytes += f.size;
		}
	}
	lwsbt_walk_end(h, &w);
	lwsbt_key(out, "~h#end ", number);
	counts(out, records, bytes);
	lwsbt_text(out, "\n");
}
