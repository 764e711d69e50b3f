/*
 * Heap metadata: made, put before an allocation, taken off.
 */
#include "heap.h"

int lwsbt_enter(struct lwsbt_heap *h)
{
	unsigned char *guard = h->port && h->port->guard ? h->port->guard(h->port->arg) : &h->guard;

	lwsbt_lock(h);
	if (*guard) {
		h->reentered++;
		return 0;
	}
	*guard = 1;
	return 1;
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

/* kept_bits returns how many bits put_kept writes. */
static size_t kept_bits(const struct lwsbt_heap *h, const struct lwsbt_meta *m)
{
	size_t bits = 0;

	for (unsigned i = 0; i < 3; i++) {
		uint64_t v;

		if (kept(h, m, i, &v)) {
			uint32_t high = (uint32_t)(v >> 32);

			bits += TAG_BITS + COUNT_BITS + SPILL +
				(high ? 32 + lwsbt_significant(high) : lwsbt_significant((uint32_t)v));
		}
	}
	return bits;
}

size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least)
{
	struct lwsbt_stack *s = &m->stack;
	size_t bits, total;

	bits = (KEEP ? kept_bits(h, m) : 0) + lwsbt_choose(s->pc, s->depth, h->how, m->form) +
		COUNT_BITS + lwsbt_significant(s->size) + SPILL;
	if (align < LWSBT_ALIGN)
		align = LWSBT_ALIGN;
	total = sizeof(struct lwsbt_node) + (bits + 7) / 8 + LENGTH_BYTES;
	if (total < least)
		total = least;
	total = (total + align - 1) & ~(align - 1);
	if (align > 32768 || total - sizeof(struct lwsbt_node) > LWSBT_LENGTH_MAX ||
	    s->size > PTRDIFF_MAX - total ||
	    (LWSBT_WORD_BITS == 64 && (h->how & LWSBT_WRAP64) && s->size >> 31 != 0))
		return 0;
	m->len = (uint16_t)(total - sizeof(struct lwsbt_node));
	return total;
}

/* The most frames of allocation functions that are looked through for the caller. */
#define OWN_MAX 6

/* capture fills in s->pc: the caller and what is beyond it. */
static void capture(struct lwsbt_heap *h, struct lwsbt_stack *s, uintptr_t caller)
{
	struct lwsbt_capture_ctx ctx = h->ctx;
	size_t n = 0, drop;

#if defined(__arm__)
	caller &= ~(uintptr_t)1; /* the mode bit, which capture functions clear */
#endif
	if (h->port && h->port->stack)
		h->port->stack(h->port->arg, &ctx);
	if (h->capture) /* without lwsbt_meta_gen */
		n = h->capture(s->pc, LWSBT_HEAP_DEPTH, 1, &ctx);
	/* The allocator's own functions, however many the compiler left. A walk that ended in
	 * them, as where only they have unwind tables, leaves the caller alone. */
	for (drop = 0; drop < n && drop <= OWN_MAX && s->pc[drop] != caller; drop++)
		;
	if (drop > OWN_MAX || caller == 0)
		drop = 0;
	drop += h->skip;
	if (drop > n)
		drop = n;
	n -= drop;
	for (size_t i = 0; i < n; i++)
		s->pc[i] = s->pc[i + drop];
	if (n > h->post)
		n -= h->post;
	if (n == 0 && caller)
		s->pc[n++] = caller;
	s->depth = (uint32_t)n;
}

LWSBT_NOINLINE size_t lwsbt_meta_gen(struct lwsbt_heap *h, size_t size, size_t align, const void *caller,
	struct lwsbt_meta *m)
{
	size_t adj;
	int entered;

	m->stack.depth = 0;
	m->stack.size = size;
	m->sequence = 0;
	m->time = 0;
	m->thread = 0;
	if (h->port && h->port->in_interrupt && h->port->in_interrupt(h->port->arg)) {
		h->interrupts++;
		return 0;
	}
	entered = lwsbt_enter(h);
	if (entered)
		m->sequence = h->sequence++;
	lwsbt_unlock(h);
	if (!entered)
		return 0;
	if ((h->flags & KEEP & LWSBT_KEEP_THREAD) && h->port && h->port->thread)
		m->thread = h->port->thread(h->port->arg);
	if ((h->flags & KEEP & LWSBT_KEEP_TIME) && h->port && h->port->time)
		m->time = h->port->time(h->port->arg);
	capture(h, &m->stack, (uintptr_t)caller);
	lwsbt_leave(h);
	adj = lwsbt_measure(h, m, align, 0);
	if (adj == 0) {
		lwsbt_lock(h);
		h->untracked++;
		lwsbt_unlock(h);
	}
	return adj;
}

void lwsbt_link(struct lwsbt_heap *h, struct lwsbt_node *n, const void *start, size_t size)
{
	lwsbt_lock(h);
	if (h->hi == 0 || (uintptr_t)start < h->lo)
		h->lo = (uintptr_t)start;
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
	size_t room = (size_t)m->len - LENGTH_BYTES;
	struct lwsbt_writer w;

	/* The encoder may write into what comes behind, which is written later. */
	lwsbt_writer_init(&w, start, room + LENGTH_BYTES + sizeof *n);
	lwsbt_put_forms(&w, m->stack.pc, m->stack.depth, h->how, m->form);
	lwsbt_put_value(&w, m->stack.size, h->how);
	if (KEEP)
		put_kept(&w, h, m);
	lwsbt_fill(&w, room);
	start[room] = (uint8_t)(m->len >> 8);
	start[room + 1] = (uint8_t)m->len;
	lwsbt_link(h, n, start, m->stack.size);
	return lwsbt_program_pointer(n);
}

#ifndef LWSBT_TINY

static void tell(struct lwsbt_heap *h, const struct lwsbt_event *e, const struct lwsbt_stack *s)
{
	int entered = lwsbt_enter(h);

	lwsbt_unlock(h);
	if (!entered)
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

/* some returns width bits from bit pos on, at most 16, of the len bytes at p; zeros
 * beyond. */
static unsigned some(const uint8_t *p, size_t len, size_t pos, unsigned width)
{
	size_t at = pos >> 3;
	uint32_t v = 0;

	for (unsigned i = 0; i < 3; i++, at++)
		v = v << 8 | (at < len ? p[at] : 0u);
	return v >> (24 - width - (pos & 7)) & ((1u << width) - 1);
}

int lwsbt_find_blob(const struct lwsbt_heap *h, const struct lwsbt_node *n, struct lwsbt_found *f)
{
	const uint8_t *p = (const uint8_t *)n - LENGTH_BYTES;
	size_t pos = DEPTH_BITS, len = (size_t)p[0] << 8 | p[1];
	unsigned depth, head, count;
	lwsbt_word size = 0;

	f->size = 0;
	f->bits = 0;
	f->blob = (uint8_t *)(uintptr_t)p;
	f->len = LENGTH_BYTES;
	if (len == 0)
		return h->lo == 0; /* lws had no room [BT-BLOB-4] */
	if (len < LWSBT_BLOB_MIN || len > (uintptr_t)n - h->lo)
		return 0;
	f->len = len;
	len -= LENGTH_BYTES;
	p -= len;
	f->blob = (uint8_t *)(uintptr_t)p;
	depth = p[0] >> 3;
	for (unsigned i = 0; i < depth; i++) {
		head = some(p, len, pos, DELTA_LEAD + COUNT_BITS);
		pos += LITERAL_LEAD;
		if (head >> (DELTA_LEAD + COUNT_BITS - 1) == 0) {
			head >>= DELTA_LEAD - LITERAL_LEAD;
		} else {
			if ((head >> 10 & 7) >= i)
				return 0;
			pos += DELTA_LEAD - LITERAL_LEAD;
		}
		count = lwsbt_full_count(head >> SPILL & 63);
		if (count > LWSBT_WORD_BITS)
			return 0;
		pos += COUNT_BITS + count + SPILL;
	}
	count = lwsbt_full_count(some(p, len, pos, COUNT_WIDTH));
	if (count > LWSBT_WORD_BITS)
		return 0;
	pos += COUNT_BITS;
	for (; count > 8; count -= 8, pos += 8)
		size = size << 8 | some(p, len, pos, 8);
	f->size = size << count | some(p, len, pos, count);
	pos += count + SPILL;
	while (h->flags & KEEP) {
		head = some(p, len, pos, TAG_BITS + COUNT_BITS);
		if (head >> (COUNT_BITS + SPILL) == LWSBT_TAG_END)
			break; /* at the latest behind the blob */
		pos += TAG_BITS + COUNT_BITS + lwsbt_full_count(head >> SPILL & 63) + SPILL;
	}
	f->bits = pos;
	if (pos > 8 * len)
		return 0;
	if (h->lo == 0) /* of lws: neither its padding nor the sum of its sizes is known */
		return 1;
	/* Behind the bits are zeros, of an empty list of user fields and up to a byte, and
	 * then ones: see lwsbt_fill. */
	head = (unsigned)(0 - pos - TAG_BITS) % 8 + TAG_BITS;
	if (f->size > h->bytes || some(p, len, pos, head) != 0)
		return 0;
	for (pos += head; pos < 8 * len; pos += 8)
		if (p[pos / 8] != 0xff)
			return 0;
	return 1;
}

void lwsbt_report(struct lwsbt_heap *h, enum lwsbt_damage what, const struct lwsbt_node *n)
{
	lwsbt_lock(h);
	h->damaged++;
	lwsbt_unlock(h);
	if (h->port && h->port->damaged)
		h->port->damaged(h->port->arg, what, n);
}

/* listed reports whether the list leads to n. */
static int listed(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	const struct lwsbt_node *at = h->head;
	uint32_t left = h->count;

	while (at && at != n && left-- > 0) /* n, being damaged, is not linked to either side */
		at = at->owner == h && plausible(h, at->next) ? at->next : NULL;
	return at == n;
}

int lwsbt_readable(const struct lwsbt_heap *h, const struct lwsbt_node *n)
{
	if (!plausible(h, n))
		return 0;
	/* Where there are pages, the one before a block at the beginning of a page may not be
	 * there, if the allocator below has no headers: then the list must lead to n. */
#if defined(__unix__) || defined(__APPLE__)
	if ((uintptr_t)(n + 1) % 4096 < sizeof *n && !listed(h, n))
		return 0;
#endif
	return 1;
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
	if (h->port && h->port->in_interrupt && h->port->in_interrupt(h->port->arg)) {
		if (!lwsbt_readable(h, n) || n->owner != h)
			return p;
		h->interrupts++;
		return NULL;
	}
	lwsbt_lock(h);
	if (!lwsbt_readable(h, n) || n->owner != h) {
		if (!(h->flags & LWSBT_CHECK_UNTRACKED) || !listed(h, n)) {
			lwsbt_unlock(h);
			return p;
		}
		damage = LWSBT_DAMAGED_LINK;
	} else if (!lwsbt_linked(h, n)) {
		damage = LWSBT_DAMAGED_LINK;
	} else {
		if (!lwsbt_find_blob(h, n, f)) {
			damage = LWSBT_DAMAGED_BLOB;
			f->size = 0;
		}
		detach(h, n, f);
	}
	lwsbt_unlock(h);
	if (damage) {
		lwsbt_report(h, damage, n);
		return NULL;
	}
	return (uint8_t *)p - lwsbt_overhead(f);
}

void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p)
{
	struct lwsbt_found f;
	void *start;

	if (!p)
		return NULL;
	start = lwsbt_unlink(h, p, &f);
#ifndef LWSBT_TINY
	if (f.len && start && h->port && h->port->event)
		tell_freed(h, p, f.size);
#endif
	return start;
}
