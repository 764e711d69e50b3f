/*
 * What is done at each allocation, free and move: an event is written, too, if they
 * are wanted.
 */
#include <errno.h>

#include "tail.h"

bool with_events;

/* ---------------------------------------------------------------- events */

/* Events wait here, and become text together: that is quicker than one by one. Any
 * other line, and what writes to the file, has them written first. */
#define QUEUE 64
static struct queued {
	uintptr_t addr, old;
	uint64_t time, size;
	stack_id stack;
	uint32_t tid, kind;
} queue[QUEUE];
unsigned events_queued;

/* A user field but for its value, for values of count bits: of one event after another,
 * times and threads have as many. */
struct field {
	uint64_t bits;
	unsigned count, width;
};

static void fit(struct field *f, unsigned tag, uint64_t v)
{
	f->count = bits_of(v);
	f->bits = ((uint64_t)tag << 7 | f->count) << 1 << f->count << 1;
	f->width = f->count + 13;
}

INLINE char *event_text(const struct queued *e, char *p, const struct field *time,
	const struct field *thread)
{
	struct tail t;
	uint8_t bytes[TAIL];
	unsigned count = bits_of(e->size);

	begin(&t, bytes, p, "~e#", e->stack);
	/* The kind has 1 bit, or 2. With it go the size, and tag and count of an address of
	 * 47 bits, which those of most programs are. */
	if (LIKELY(e->kind < 2 && count <= 23 && (uint64_t)e->addr >> 46 == 1)) {
		uint64_t size = ((uint64_t)count << 1 << count | e->size) << 1;
		put_bits(&t, size << 26 | (LWSBT_TAG_EVENT << 10 | 1 << 3 | e->kind << 1) << 12 |
			LWSBT_TAG_ADDRESS << 8 | 47 << 1, count + 8 + 26);
		put_bits(&t, (uint64_t)e->addr << 1, 48);
	} else {
		put_value(&t, e->size);
		put_user(&t, LWSBT_TAG_EVENT, e->kind);
		put_user(&t, LWSBT_TAG_ADDRESS, e->addr);
		if (e->kind == LWSBT_MOVED)
			put_user(&t, LWSBT_TAG_OLD, e->old);
	}
	if (LIKELY(time->count <= 44))
		put_bits(&t, time->bits | e->time << 1, time->width);
	else
		put_user(&t, LWSBT_TAG_TIME, e->time);
	put_bits(&t, thread->bits | (uint64_t)e->tid << 1, thread->width);
	return end(&t, bytes);
}

void events_write(void)
{
	unsigned n = events_queued;

	events_queued = 0;
	char *p = out_line(RECORD_MAX * QUEUE);
	if (!p)
		return;
	struct field time, thread;
	fit(&time, LWSBT_TAG_TIME, queue[0].time);
	fit(&thread, LWSBT_TAG_THREAD, queue[0].tid);
	for (unsigned i = 0; i < n; i++) {
		const struct queued *e = &queue[i];
		if (UNLIKELY(e->time >> (time.count - 1) != 1))
			fit(&time, LWSBT_TAG_TIME, e->time);
		if (UNLIKELY(e->tid >> (thread.count - 1) != 1))
			fit(&thread, LWSBT_TAG_THREAD, e->tid);
		p = event_text(e, p, &time, &thread);
	}
	out_commit(p);
}

INLINE void event_locked(unsigned kind, uintptr_t addr, uintptr_t old, size_t size, stack_id stack)
{
	if (!on)
		return;
	struct queued *q = &queue[events_queued];
	q->addr = addr;
	if (kind == LWSBT_MOVED)
		q->old = old;
	q->time = now();
	q->size = size;
	q->stack = stack;
	q->tid = self.tid;
	q->kind = kind;
	if (UNLIKELY(++events_queued == QUEUE))
		events_write();
}

INLINE void event(unsigned kind, uintptr_t addr, size_t size, stack_id stack)
{
	lock(&out_lock);
	event_locked(kind, addr, 0, size, stack);
	unlock(&out_lock);
}

/* ---------------------------------------------------------------- recording */

INLINE stack_id stack_here(const struct regs *from)
{
	if (UNLIKELY(from->pc - loader_lo < loader_hi - loader_lo))
		modules_stale = true;
	if (UNLIKELY(__atomic_load_n(&modules_stale, __ATOMIC_RELAXED)) ||
	    (++self.count % 64 == 0 && !modules_careful()))
		modules_check();
	return walk(from);
}

void record_alloc(void *p, size_t size, const struct regs *from)
{
	stack_id id = stack_here(from);

	if (UNLIKELY(!blocks_add((uintptr_t)p, size, id)))
		return; /* no memory for it: its free is not known either */
	if (with_events)
		event(LWSBT_ALLOCATED, (uintptr_t)p, size, id);
	due();
}

void record_free(void *p)
{
	struct block b;

	if (UNLIKELY(dump_at_peak))
		at_peak();
	if (LIKELY(blocks_take((uintptr_t)p, &b)) && with_events)
		event(LWSBT_FREED, b.addr, b.size, 0);
	due();
}

/*
 * record_move of a block that the program resizes. The old address must not be
 * seen in use by another thread before the event is written, so the output is
 * held while real does it: the C library's allocator takes no lock of ours. (The
 * locks of blocks come before that of output, so the block is taken first.)
 */
void *record_move(void *p, size_t size, const struct regs *from, void *(*real)(void *, size_t))
{
	stack_id id = stack_here(from);
	struct block b;

	if (UNLIKELY(dump_at_peak))
		at_peak();
	bool known = blocks_take((uintptr_t)p, &b);
	if (with_events)
		lock(&out_lock);
	void *q = real(p, size);
	int e = errno;
	if (with_events) {
		if (q && known)
			event_locked(LWSBT_MOVED, (uintptr_t)q, (uintptr_t)p, size, id);
		else if (q)
			event_locked(LWSBT_ALLOCATED, (uintptr_t)q, 0, size, id);
		else if (known && !size)
			event_locked(LWSBT_FREED, (uintptr_t)p, 0, b.size, 0);
		unlock(&out_lock);
	}
	if (q)
		blocks_add((uintptr_t)q, size, id);
	else if (known && size) /* it did not move */
		blocks_back(&b);
	due();
	errno = e;
	return q;
}
