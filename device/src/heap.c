/*
 * Heap metadata: made, put before an allocation, taken off.
 */
#include "heap.h"

void lwsbt_lock(struct lwsbt_heap *h)
{
	if (h->port && h->port->lock)
		h->port->lock(h->port->arg);
}

void lwsbt_unlock(struct lwsbt_heap *h)
{
	if (h->port && h->port->unlock)
		h->port->unlock(h->port->arg);
}

void lwsbt_count(struct lwsbt_heap *h, uint32_t *counter)
{
	lwsbt_lock(h);
	++*counter;
	lwsbt_unlock(h);
}

#if LWSBT_NESTED

int lwsbt_enter(struct lwsbt_heap *h)
{
	unsigned char *guard = h->port && h->port->guard ? h->port->guard(h->port->arg) : &h->guard;
	int entered;

	lwsbt_lock(h);
	entered = !*guard;
	if (entered)
		*guard = 1;
	else
		h->reentered++;
	lwsbt_unlock(h);
	return entered;
}

void lwsbt_leave(struct lwsbt_heap *h)
{
	if (h->port && h->port->guard) {
		*h->port->guard(h->port->arg) = 0;
		return;
	}
	lwsbt_lock(h);
	h->guard = 0;
	lwsbt_unlock(h);
}

#endif

/* kept returns what the heap keeps under the i-th tag, as put_kept has them, in *v; 0 if
 * it keeps none. */
static unsigned kept(const struct lwsbt_heap *h, const struct lwsbt_meta *m, unsigned i, uint64_t *v)
{
	static const uint8_t tags[] = { LWSBT_TAG_SEQUENCE, LWSBT_TAG_THREAD, LWSBT_TAG_TIME };

	if (!(h->flags & KEEP & 1u << i))
		return 0;
	*v = i == 0 ? m->sequence : i == 1 ? m->thread : m->time;
	return tags[i];
}

/* put_kept writes the user fields that the heap keeps. */
static void put_kept(struct lwsbt_writer *w, const struct lwsbt_heap *h, const struct lwsbt_meta *m)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t v;
		unsigned tag = kept(h, m, i, &v);

		if (tag)
			lwsbt_put_user(w, tag, v);
	}
}

/* put_bits writes what m has, up to the filling. */
static void put_bits(struct lwsbt_writer *w, const struct lwsbt_heap *h, const struct lwsbt_meta *m)
{
#if LWSBT_PACKED
	lwsbt_pack(w, h->code, &m->stack);
#else
	lwsbt_put_forms(w, m->stack.pc, m->stack.depth, h->how, m->form);
	lwsbt_put_value(w, m->stack.size, h->how);
#endif
	if (KEEP)
		put_kept(w, h, m);
}

size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least)
{
	size_t bits, total;
#if LWSBT_FIELDS || LWSBT_PACKED
	struct lwsbt_writer w;
#endif

#if LWSBT_PACKED
	lwsbt_writer_init(&w, NULL, 0);
	lwsbt_pack(&w, h->code, &m->stack);
	bits = lwsbt_bits(&w);
#else
	bits = lwsbt_choose(m->stack.pc, m->stack.depth, h->how, m->form) +
		COUNT_BITS + lwsbt_significant(m->stack.size) + SPILL;
#endif
#if LWSBT_FIELDS
	lwsbt_writer_init(&w, NULL, 0);
	put_kept(&w, h, m);
	bits += lwsbt_bits(&w);
#endif
	if (align < LWSBT_ALIGN)
		align = LWSBT_ALIGN;
	total = sizeof(struct lwsbt_node) + (bits + 7) / 8 + LENGTH_BYTES;
	if (total < least)
		total = least;
	total = (total + align - 1) & ~(align - 1);
	if (align > 32768 || total - sizeof(struct lwsbt_node) > LWSBT_LENGTH_MAX ||
	    m->stack.size > PTRDIFF_MAX - total - LWSBT_ALIGN ||
	    (LWSBT_WORD_BITS == 64 && (h->how & LWSBT_WRAP64) && m->stack.size >> 31 != 0))
		return 0;
	m->len = (uint16_t)(total - sizeof(struct lwsbt_node));
	return total + lwsbt_spare(m->stack.size);
}

LWSBT_NOINLINE size_t lwsbt_capture_thread(const struct lwsbt_heap *h, struct lwsbt_stack *s)
{
	struct lwsbt_capture_ctx ctx = h->ctx;

	h->port->stack(h->port->arg, &ctx);
	return h->capture(s->pc, LWSBT_HEAP_DEPTH, 2, &ctx);
}

/* admit sets the guard for a capture, and counts it. It reports whether there may be one. */
static int admit(struct lwsbt_heap *h, struct lwsbt_meta *m)
{
	if (lwsbt_interrupted(h)) {
		h->interrupts++;
		return 0;
	}
	if (!lwsbt_enter(h))
		return 0;
	lwsbt_lock(h);
	m->sequence = h->sequence++;
	lwsbt_unlock(h);
	return 1;
}

LWSBT_NOINLINE size_t lwsbt_meta_gen(struct lwsbt_heap *h, size_t size, size_t align, const void *caller,
	struct lwsbt_meta *m)
{
	size_t adj, first;

	m->stack.depth = 0;
	m->stack.size = size;
#if LWSBT_FIELDS
	m->sequence = 0;
	m->time = 0;
	m->thread = 0;
#endif
	if (LWSBT_NESTED && !admit(h, m))
		return 0;
	if ((h->flags & KEEP & LWSBT_KEEP_THREAD) && h->port && h->port->thread)
		m->thread = h->port->thread(h->port->arg);
	if ((h->flags & KEEP & LWSBT_KEEP_TIME) && h->port && h->port->time)
		m->time = h->port->time(h->port->arg);
	lwsbt_take(h, &m->stack, (uintptr_t)caller, &first);
	lwsbt_leave(h);
	for (size_t i = 0; i < m->stack.depth; i++) /* the memmove of small C libraries goes by bytes */
		m->stack.pc[i] = m->stack.pc[i + first];
	adj = lwsbt_measure(h, m, align, 0);
	if (adj == 0)
		lwsbt_count(h, &h->untracked);
	return adj;
}

void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size)
{
	lwsbt_lock(h);
	if (h->hi == 0 || (uintptr_t)start < h->lo)
		h->lo = (uintptr_t)start;
	if (h->lo) /* blocks of lws have no spare bytes */
		h->mark = LWSBT_MARK;
	if ((uintptr_t)n > h->hi)
		h->hi = (uintptr_t)n;
	n->prev = h->tail;
	n->next = NULL;
	n->owner = h;
	if (h->tail)
		h->tail->next = n;
	else
		h->head = n;
	h->tail = n;
	h->count++;
	h->generation++;
	h->bytes += size;
	if (h->bytes > h->peak) {
		h->peak = h->bytes;
		h->peak_count = h->count;
	}
	lwsbt_unlock(h);
}

void *lwsbt_write(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m)
{
	uint8_t *start = true_start;
	struct lwsbt_node *n = (struct lwsbt_node *)(void *)(start + m->len);
	struct lwsbt_writer w;

	/* The encoder may write into what comes behind, which is written later. */
	lwsbt_writer_init(&w, start, m->len + sizeof *n);
	put_bits(&w, h, m);
	lwsbt_fill(&w, (size_t)m->len - LENGTH_BYTES);
	start = (uint8_t *)(n + 1) + m->stack.size;
	for (size_t left = lwsbt_spare(m->stack.size); left > 0; left--)
		*start++ = LWSBT_SPARE_BYTE;
	lwsbt_link(h, n, true_start, m->stack.size);
	return lwsbt_program_pointer(n);
}

#if LWSBT_FIELDS

static void tell(struct lwsbt_heap *h, const struct lwsbt_event *e, const struct lwsbt_stack *s)
{
	if (!lwsbt_enter(h))
		return;
	h->port->event(h->port->arg, e, s);
	lwsbt_leave(h);
}

void lwsbt_tell(struct lwsbt_heap *h, enum lwsbt_event_kind kind, const void *p, const void *old,
	const struct lwsbt_meta *m)
{
	struct lwsbt_event e = { kind, (uintptr_t)p, (uintptr_t)old, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE };

	if (!h->port || !h->port->event)
		return;
	if (h->flags & LWSBT_KEEP_SEQUENCE)
		e.sequence = m->sequence;
	if (h->flags & LWSBT_KEEP_THREAD)
		e.thread = m->thread;
	if (h->flags & LWSBT_KEEP_TIME)
		e.time = m->time;
	tell(h, &e, &m->stack);
}

/* tell_freed is lwsbt_tell for a free, apart for the sake of others' stack. */
static LWSBT_NOINLINE void tell_freed(struct lwsbt_heap *h, const void *p, lwsbt_word size)
{
	struct lwsbt_event e = { LWSBT_FREED, (uintptr_t)p, 0, LWSBT_NONE, LWSBT_NONE, LWSBT_NONE };
	struct lwsbt_stack s;

	s.depth = 0;
	s.size = size;
	s.end = 0;
	tell(h, &e, &s);
}

#endif

void *lwsbt_meta_adjust(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m)
{
	void *p = lwsbt_write(h, true_start, m);

	lwsbt_tell(h, LWSBT_ALLOCATED, p, NULL, m);
	return p;
}

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
#if LWSBT_PACKED
	struct lwsbt_stack s;
	int ok = lwsbt_unpack(r, h->code, &s);

	*size = s.size;
	return ok;
#else
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
#endif
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
	return n->owner == h;
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
LWSBT_INLINE void *release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f)
{
	void *start = lwsbt_unlink(h, p, f);

#if LWSBT_FIELDS
	if (f->len && start && h->port && h->port->event)
		tell_freed(h, p, f->size);
#endif
	return start;
}

void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p)
{
	struct lwsbt_found f;

	return p ? release(h, p, &f) : NULL;
}

#if LWSBT_QUARANTINE

void *lwsbt_release(struct lwsbt_heap *h, void *p, struct lwsbt_found *f) { return release(h, p, f); }

#endif
