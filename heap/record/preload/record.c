/*
 * Records, and which events have one.
 *
 * A free is stamped and published before the block is free, an allocation is stamped
 * after the allocator returned it, and a move is both. So what must come before an
 * event at its address was published before that event was stamped, and btrecord sees
 * it in time: see ring.h.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "preload.h"

/*
 * A signal handler may leave a recording by siglongjmp, which never comes to its end then.
 * abandoned returns the level without such recordings: on the thread's own stack, a frame
 * is gone if the current one is not below it. On another stack that cannot be known.
 */
static NOINLINE unsigned abandoned(unsigned level, uintptr_t frame)
{
	for (; level > 0; level--) {
		struct own *o = self.own[level - 1];
		if (!o || frame < o->entered || !on_stack(frame) || !on_stack(o->entered))
			break;
		walk_begin(o); /* what it wrote may not be published */
	}
	return level;
}

/* What is between enter and leave is not interrupted by this thread but by signal
 * handlers, which find the level raised. */
static inline __attribute__((always_inline)) unsigned enter(void)
{
	unsigned level = self.level;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (UNLIKELY(level))
		level = abandoned(level, frame);
	if (LIKELY(level < LEVELS)) {
		if (LIKELY(self.own[level]))
			self.own[level]->entered = frame;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		self.level = (uint8_t)(level + 1);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return level;
}

static inline void leave(unsigned level)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.level = (uint8_t)level;
}

/* lose counts an event that had to be dropped. */
static NOINLINE void lose(struct own *o)
{
	tally_add(&o->slot->lost);
	walk_begin(o); /* btrecord does not know its stack */
}

#define SIZE_MAX_TOLD (((uint64_t)1 << 48) - 1)

/* put_alloc puts a block with its stack, of kind ALLOCATED or MOVE_ENDS. */
static inline void put_alloc(struct own *o, unsigned kind, void *p, size_t size, const struct regs *from)
{
	struct stack s;
	uint64_t *w, n = size;
	uint32_t words = 3;

	walk(o, from, &s);
#ifdef LWSBT_CHECK
	check(o, &s, from->pc);
#endif
	if (UNLIKELY(!(w = reserve(o)))) {
		lose(o);
		return;
	}
	w[1] = (uintptr_t)p;
	w[2] = (n < SIZE_MAX_TOLD ? n : SIZE_MAX_TOLD) | (uint64_t)s.place << 48;
	if (UNLIKELY(s.frames)) {
		w[3] = s.more | (uint64_t)s.kept << 16 | (uint64_t)s.end << 32;
		if (s.pcs)
			for (unsigned i = 0; i < s.more; i++)
				w[4 + i] = s.pcs[i];
		else
			for (unsigned i = 0; i < s.more; i++)
				w[4 + i] = s.steps[s.more - 1 - i].pc;
		words = 4 + s.more;
	}
	if (LIKELY(words == 3))
		publish(o, w, stamp(), 0, kind, 3);
	else
		publish(o, w, stamp(), RING_FRAMES, kind, words);
}

void record_alloc(void *p, size_t size, const struct regs *from)
{
	unsigned level = enter();
	struct own *o = own_at(level);
	if (LIKELY(o))
		put_alloc(o, RING_ALLOCATED, p, size, from);
	leave(level);
}

static inline void put_word(struct own *o, unsigned kind, uintptr_t p)
{
	uint64_t *w = reserve(o);

	if (UNLIKELY(!w)) {
		lose(o);
		return;
	}
	w[1] = p;
	publish(o, w, stamp(), 0, kind, 2);
}

void record_free(void *p, uintptr_t caller)
{
	unsigned level = enter();
	struct own *o = own_at(level);
	if (LIKELY(o)) {
		if (UNLIKELY(caller - loader_lo < loader_size))
			modules_unloaded(o);
		put_word(o, RING_FREED, (uintptr_t)p);
	}
	leave(level);
}

void record_end(void *p)
{
	unsigned level = enter();
	struct own *o = own_at(level);
	if (o) {
		put_word(o, RING_MOVE_BEGINS, (uintptr_t)p);
		uint64_t *w = reserve(o);
		if (w)
			publish(o, w, stamp(), 0, RING_MOVE_FREED, 1);
		else
			lose(o);
	}
	leave(level);
}

void record_unloaded(void)
{
	unsigned level = enter();
	struct own *o = own_at(level);

	if (o)
		modules_unloaded(o);
	leave(level);
}

void record_elsewhere(void)
{
	unsigned level = enter();
	struct own *o = own_at(level);
	uint64_t *w = o ? reserve(o) : NULL;

	if (w)
		publish(o, w, stamp(), 0, RING_ELSEWHERE, 1);
	leave(level);
}

/* record_exec: see RING_EXEC. */
void record_exec(pid_t pid, const char *path, uint64_t before)
{
	int e = errno;
	unsigned level = enter();
	struct own *o = own_at(level);
	uint64_t *w = o ? reserve(o) : NULL;

	if (w) {
		size_t n = strnlen(path, PATH_MAX), words = (n + 7) / 8;
		memset(w + 4, 0, words * 8);
		memcpy(w + 4, path, n);
		w[1] = (uint32_t)pid;
		w[2] = n;
		w[3] = before & STAMP_MASK;
		publish(o, w, stamp(), 0, RING_EXEC, (uint32_t)(4 + words));
	}
	leave(level);
	errno = e;
}

void *record_move(void *p, size_t size, const struct regs *from, void *(*real)(void *, size_t))
{
	if (passes(from->pc))
		return real(p, size);
	struct ring_header *r = gate->ring;
	unsigned level = enter();
	struct own *o = own_at(level);
	bool had = p && o && (!fixed.sample || sample_has((uintptr_t)p));
	if (had)
		put_word(o, RING_MOVE_BEGINS, (uintptr_t)p);
	uintptr_t outer = enter_allocator();
	void *q = real(p, size);
	self.outer = outer;
	int e = errno;
	bool wanted = o && q && __atomic_load_n(&r->mode, __ATOMIC_RELAXED) & RING_ALLOCS && sampled(size);
	if (wanted)
		put_alloc(o, had ? RING_MOVE_ENDS : RING_ALLOCATED, q, size, from);
	else if (had) {
		bool failed = !q && size;
		uint64_t *w = reserve(o);
		if (w)
			publish(o, w, stamp(), 0, failed ? RING_MOVE_FAILED : RING_MOVE_FREED, 1);
		else
			lose(o);
		if (failed && fixed.sample)
			sample_add((uintptr_t)p);
	}
	if (wanted && fixed.sample)
		sample_add((uintptr_t)q);
	leave(level);
	errno = e;
	return q;
}
