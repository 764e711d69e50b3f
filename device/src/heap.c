/*
 * Heap metadata: captured, measured, and written before an allocation. trim.c takes it off again.
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
	lwsbt_put_forms(w, m->stack.pc, m->stack.depth, h->how, m->form);
	lwsbt_put_value(w, m->stack.size, h->how);
	if (KEEP)
		put_kept(w, h, m);
}

size_t lwsbt_measure(const struct lwsbt_heap *h, struct lwsbt_meta *m, size_t align, size_t least)
{
	size_t bits, total;
#if LWSBT_FIELDS
	struct lwsbt_writer w;
#endif

	bits = lwsbt_choose(m->stack.pc, m->stack.depth, h->how, m->form) +
		COUNT_BITS + lwsbt_significant(m->stack.size) + SPILL;
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

LWSBT_NOINLINE void lwsbt_tell_freed(struct lwsbt_heap *h, const void *p, lwsbt_word size)
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
