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

/* What a walk is for: take writes what was found before n to memory, and returns its length; 0 if it does not fit. */
struct reader {
	size_t (*take)(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to);
	void *buf;
	size_t cap;
	unsigned flags;
};

/* put_check writes the check of what was written. [BT-UF-4] */
static void put_check(struct lwsbt_writer *w)
{
	const uint8_t rest = (uint8_t)(w->acc << (8 - w->n));

	lwsbt_put_user(w, LWSBT_TAG_CHECK, lwsbt_crc16(lwsbt_crc16(0xffff, w->buf, w->len), &rest, w->n > 0));
}

/*
 * copy_record writes the blob of n, without what aligns memory, and with its address and a check
 * if flags say so. It returns 0 if it does not fit.
 */
static size_t copy_record(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to)
{
	size_t len;
	size_t bytes = f->bits / 8;
	struct lwsbt_writer w;

	if (bytes + LENGTH_BYTES > to->cap)
		return 0;
	if (f->bits == 0) { /* lws had no room, and says no more [BT-BLOB-4] */
		memset(to->buf, 0, LENGTH_BYTES);
		return LENGTH_BYTES;
	}
	lwsbt_writer_init(&w, to->buf, to->cap);
	memcpy(to->buf, f->blob, bytes);
	w.len = bytes;
	w.n = f->bits % 8;
	w.acc = (uint32_t)f->blob[bytes] >> (8 - w.n);
	if (to->flags & KEEP_ADDRESS)
		lwsbt_put_user(&w, LWSBT_TAG_ADDRESS, (uintptr_t)lwsbt_program_pointer(n));
	if ((to->flags & KEEP_CHECK) && w.len < to->cap)
		put_check(&w);
	len = lwsbt_finish(&w);
	return len <= to->cap ? len : 0;
}

/* next takes the next block, and returns the length; 0 after the last. It leaves out what does not fit, and blocks that
 * are damaged, which it reports. It only reports spare bytes that were overwritten. */
static size_t next(struct lwsbt_heap *h, struct lwsbt_walk *w, const struct reader *to)
{
	struct lwsbt_node *n;
	size_t len = 0;

	do {
		int damage = LWSBT_DAMAGED_LINK;
		struct lwsbt_found f;

		lwsbt_lock(h);
		n = w->next;
		w->next = NULL;
		if (n && lwsbt_linked(h, n)) {
			if (n != w->last)
				w->next = n->next;
			damage = LWSBT_DAMAGED_BLOB;
			if (lwsbt_find_blob(h, n, &f)) {
				w->p = lwsbt_program_pointer(n);
				w->size = f.size;
				len = to->take(n, &f, to);
				if (len > 0 || f.bits == 0) /* lws had no room, and says no more [BT-BLOB-4] */
					damage = f.end ? LWSBT_DAMAGED_END : 0;
			}
		}
		lwsbt_unlock(h);
		if (n && damage)
			lwsbt_report(h, (enum lwsbt_damage)damage, n);
	} while (n && len == 0);
	return len;
}

size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags)
{
	const struct reader to = { copy_record, buf, cap, flags };

	return next(h, w, &to);
}

/* stack reads the stack. */
static size_t stack(struct lwsbt_node *n, const struct lwsbt_found *f, const struct reader *to)
{
	return lwsbt_stack_of(n->owner, f, to->buf) == LWSBT_OK;
}

int lwsbt_walk_stack(struct lwsbt_heap *h, struct lwsbt_walk *w, struct lwsbt_stack *s)
{
	const struct reader to = { stack, s, 0, 0 };

	return next(h, w, &to) > 0;
}

static void counts(const struct lwsbt_out *out, uint32_t records, size_t bytes)
{
	lwsbt_key(out, " n=", records);
	lwsbt_key(out, " b=", bytes);
}

void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags)
{
	struct lwsbt_walk w;
	uint32_t records = 0;
	size_t bytes = 0, len;
	uint8_t buf[LWSBT_RECORD_MAX];

	lwsbt_head_opens(out, h->port, number);
#if LWSBT_FIELDS
	if (!h->port || !h->port->lock) /* else others may free meanwhile */
		counts(out, h->count, h->bytes);
#endif
	if ((flags & (KEEP_ADDRESS | KEEP_CHECK)) || (h->flags & KEEP))
		lwsbt_text(out, " u=1");
	lwsbt_head_why(out, h->port, why);
	lwsbt_walk_begin(h, &w);
	while ((len = lwsbt_walk_next(h, &w, buf, sizeof buf, flags)) > 0) {
		lwsbt_line(out, buf, len);
		records++;
		bytes += w.size;
	}
	lwsbt_walk_end(h, &w);
	lwsbt_key(out, "~h#end ", number);
	counts(out, records, bytes);
	lwsbt_text(out, "\n");
}
