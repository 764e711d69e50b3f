/*
 * Heap metadata of a block: found, checked, and taken off the list. What is damaged is reported, and not
 * followed.
 */
#include "heap.h"

static int plausible(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	uintptr_t at = (uintptr_t)n;

	return at % sizeof(void *) == 0 && at >= h->lo && at <= h->hi;
}

int lwsbt_linked(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	return plausible(h, n) && n->owner == h &&
		(n->prev ? plausible(h, n->prev) && n->prev->next == n : h->head == n) &&
		(n->next ? plausible(h, n->next) && n->next->prev == n : h->tail == n);
}

/* check_end sets f->end, of n, whose size is known. Blocks of lws have no spare bytes. */
static void check_end(const struct lwsbt_node *n, struct lwsbt_found *f)
{
	const uint8_t *p = (const uint8_t *)(n + 1) + f->size;

	for (size_t left = lwsbt_spare(f->size); left > 0; left--)
		f->end |= *p++ ^ LWSBT_SPARE_BYTE;
}

/* read_bits reads what put_bits writes, without the frames of a blob, and sets *size. It returns 0 if the bits make
 * no sense. */
static LWSBT_NOINLINE int read_bits(const struct lwsbt_heap *h, struct lwsbt_reader *r, lwsbt_word *size)
{
	unsigned depth = (unsigned)lwsbt_next(r, DEPTH_BITS) >> SPILL, count;

	for (unsigned i = 0; i < depth; i++) {
		/* of a literal, the first 6 bits of its value, too: more than that follows */
		unsigned lead = (unsigned)lwsbt_next(r, DELTA_LEAD + COUNT_BITS);

		if (lead >> (DELTA_LEAD - 1 + COUNT_BITS)) {
			if (FORM_BACK(lead >> COUNT_BITS) >= i)
				return 0;
		} else {
			r->pos -= DELTA_LEAD - LITERAL_LEAD;
			lead >>= DELTA_LEAD - LITERAL_LEAD;
		}
		count = lwsbt_full_count(lead >> SPILL & 63);
		if (count > LWSBT_WORD_BITS || r->end - r->pos < count + SPILL)
			return 0;
		r->pos += count + SPILL;
	}
	count = lwsbt_full_count((unsigned)lwsbt_next(r, COUNT_BITS) >> SPILL);
	if (count > LWSBT_WORD_BITS)
		return 0;
	*size = lwsbt_next(r, count);
	(void)lwsbt_next(r, SPILL);
	while ((h->flags & KEEP) && r->end - r->pos >= TAG_BITS) {
		size_t at = r->pos;

		if (lwsbt_next(r, TAG_BITS) >> SPILL == LWSBT_TAG_END) {
			r->pos = at;
			break;
		}
		count = lwsbt_full_count((unsigned)lwsbt_next(r, COUNT_BITS) >> SPILL);
		if (r->end - r->pos < count + SPILL)
			return 0;
		r->pos += count + SPILL;
	}
	return r->fault == LWSBT_OK;
}

int lwsbt_find_blob(const struct lwsbt_heap *h, const struct lwsbt_node *n, struct lwsbt_found *f)
{
	const uint8_t *length = (const uint8_t *)n - LENGTH_BYTES;
	size_t len = (size_t)length[0] << 8 | length[1], ones;
	struct lwsbt_reader r;

	f->size = 0;
	f->end = 0;
	f->bits = 0;
	f->len = len ? len : LENGTH_BYTES;
	f->blob = (uint8_t *)(uintptr_t)n - f->len;
	if (len == 0)
		return h->lo == 0; /* lws had no room [BT-BLOB-4] */
	if (len < LWSBT_BLOB_MIN || len > (uintptr_t)n - h->lo)
		return 0;
	r = lwsbt_reader_of(f->blob, 8 * (len - LENGTH_BYTES), LWSBT_WORD_BITS);
	if (!read_bits(h, &r, &f->size))
		return 0;
	f->bits = r.pos;
	if (h->lo == 0) /* of lws: neither its padding nor the sum of its sizes is known */
		return 1;
	if (f->size > h->bytes)
		return 0;
	/* Behind the bits are zeros, of an empty list of user fields and up to a byte, and
	 * then ones: see lwsbt_fill. */
	ones = (r.pos + TAG_BITS + 7) & ~(size_t)7;
	if (lwsbt_next(&r, (unsigned)((ones < r.end ? ones : r.end) - r.pos)) != 0)
		return 0;
	while (r.pos < r.end)
		if (lwsbt_next(&r, 8) != 0xff)
			return 0;
	check_end(n, f);
	return 1;
}

void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n)
{
	lwsbt_count(h, &h->damaged);
	if (h->port && h->port->damaged)
		h->port->damaged(h->port->arg, what, n);
}

/* Where there are pages, the one before a block at the beginning of a page may not be
 * there, if the allocator below has no headers: then the list must lead to n. */
#if defined(__unix__) || defined(__APPLE__)
#define PAGES 1
#else
#define PAGES 0
#endif

/* listed reports whether the list leads to n. */
static int listed(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	const struct lwsbt_node *at = h->head;
	uint32_t left = h->count;

	while (at && at != n && left-- > 0) /* n, being damaged, is not linked to either side */
		at = at->owner == h && plausible(h, at->next) ? at->next : NULL;
	return at == n;
}

int lwsbt_owned(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	if (!plausible(h, n))
		return 0;
#if PAGES
	if ((uintptr_t)(n + 1) % 4096 < sizeof *n && !listed(h, n))
		return 0;
#endif
	return lwsbt_before(&n->owner) == (uintptr_t)h;
}

/* detach takes n out of the list. */
static void detach(struct lwsbt_heap *h, struct lwsbt_node *n, const struct lwsbt_found *f)
{
	for (struct lwsbt_walk *w = h->walks; w; w = w->more) {
		if (w->next == n)
			w->next = w->last == n ? NULL : n->next;
		if (w->last == n)
			w->last = n->prev;
	}
	*(n->prev ? &n->prev->next : &h->head) = n->next;
	*(n->next ? &n->next->prev : &h->tail) = n->prev;
	n->owner = NULL;
	h->count--;
	h->generation++;
	h->bytes -= f->size;
}

void *lwsbt_unlink(struct lwsbt_heap *h, void *p, struct lwsbt_found *f)
{
	struct lwsbt_node *n = lwsbt_node_of(p);
	enum lwsbt_damage damage = (enum lwsbt_damage)0;

	f->len = 0;
	if (lwsbt_interrupted(h)) {
		if (!lwsbt_owned(h, n))
			return p;
		h->interrupts++;
		return NULL;
	}
	lwsbt_lock(h);
	if (lwsbt_owned(h, n)) {
		damage = LWSBT_DAMAGED_LINK;
		if (lwsbt_linked(h, n)) {
			damage = (enum lwsbt_damage)0;
			if (!lwsbt_find_blob(h, n, f)) {
				damage = LWSBT_DAMAGED_BLOB;
				f->size = 0;
			} else if (f->end) {
				damage = LWSBT_DAMAGED_END;
			}
			detach(h, n, f);
			p = (uint8_t *)p - lwsbt_overhead(f);
		}
	}
	else if ((h->flags & LWSBT_CHECK_UNTRACKED) && listed(h, n))
		damage = LWSBT_DAMAGED_LINK;
	lwsbt_unlock(h);
	if (!damage)
		return p;
	lwsbt_report(h, damage, n);
	return damage == LWSBT_DAMAGED_END ? p : NULL;
}

/* release is lwsbt_unlink, with its event. */
LWSBT_INLINE void *trim(struct lwsbt_heap *h, void *p, struct lwsbt_found *f)
{
	void *start = lwsbt_unlink(h, p, f);

#if LWSBT_FIELDS
	if (f->len && start && h->port && h->port->event)
		lwsbt_tell_freed(h, p, f->size);
#endif
	return start;
}

void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p)
{
	struct lwsbt_found f;

	return p ? trim(h, p, &f) : NULL;
}

#if LWSBT_QUARANTINE

void *lwsbt_release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f) { return trim(h, p, f); }

#endif
