/*
 * Rings: taking one, waiting while it is full, leaving it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

/* linux/futex.h is not there for every C library. */
#if defined(SYS_futex_time64)
#define FUTEX_CALL (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define FUTEX_CALL SYS_futex
#endif
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

/* ---------------------------------------------------------------- memory */

/* The areas of the slots that this process had so far: they stay mapped, and the slot
 * with the lowest number is taken, so there are as many as threads at a time. */
static struct own **areas;

/*
 * area_map maps the area of a slot. The file can no longer be opened if the process closed
 * its descriptors, or changed its user or root. Then mremap with an old size of 0 maps the
 * file a second time, up to the end of the area, and the part before the area is unmapped.
 */
static struct own *area_map(struct ring_header *r, uint32_t slot)
{
	uint64_t from = r->area_at + slot * r->area, to = from + r->area;
	void *p = MAP_FAILED;
	int f = ring_open();

	if (f >= 0) {
		p = mmap(NULL, (size_t)r->area, PROT_READ | PROT_WRITE, MAP_SHARED, f, (off_t)from);
		close(f);
	}
	if (p == MAP_FAILED && to <= SIZE_MAX / 2 && (p = mremap(r, 0, (size_t)to, MREMAP_MAYMOVE)) != MAP_FAILED) {
		munmap(p, (size_t)from);
		p = (char *)p + from;
	}
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, (size_t)r->area, MADV_DONTDUMP);
	return p;
}

bool slots_start(const struct ring_header *r)
{
	areas = pages(r->slots * sizeof *areas);
	return areas;
}

/* ---------------------------------------------------------------- taking one */

static struct ring_slot *slot_at(struct ring_header *r, uint32_t i)
{
	return (struct ring_slot *)(void *)((char *)r + r->slot_at) + i;
}

/* find takes the first free slot, and returns its number, or how many there are. */
static uint32_t find(struct ring_header *r)
{
	for (uint32_t i = 0; i < r->slots; i++) {
		uint32_t *state = &slot_at(r, i)->state, free = RING_FREE;
		if (__atomic_load_n(state, __ATOMIC_RELAXED) == RING_FREE &&
		    __atomic_compare_exchange_n(state, &free, RING_FILLING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			uint32_t top = __atomic_load_n(&r->top, __ATOMIC_RELAXED);
			while (top < i + 1 && !__atomic_compare_exchange_n(&r->top, &top, i + 1, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				;
			return i;
		}
	}
	return r->slots;
}

#define LOOK_AGAIN 1024 /* events, where no slot was free */

static struct own *take(struct ring_header *r)
{
	uint32_t i = find(r);

	if (i == r->slots)
		return NULL;
	struct ring_slot *slot = slot_at(r, i);
	struct own *o = areas[i];
	if (!o && !(o = areas[i] = area_map(r, i))) {
		__atomic_store_n(&slot->state, RING_FREE, __ATOMIC_RELEASE);
		return NULL;
	}
	if (!self.tid)
		self.tid = (uint32_t)syscall(SYS_gettid);
	slot->pid = (uint32_t)getpid();
	slot->tid = self.tid;
	slot->image = image;
	prctl(PR_GET_NAME, slot->name);
	o->words = (uint64_t *)(void *)((char *)o + RING_OWN);
	o->head = 0;
	o->mask = r->words - 1;
	o->limit = r->words / 2;
	o->slot = slot;
	walk_begin(o);
	__atomic_store_n(&slot->state, RING_TAKEN, __ATOMIC_RELEASE);
	return o;
}

NOINLINE struct own *own_take(unsigned level)
{
	struct ring_header *r = gate->ring;
	struct own *o = NULL;
	int e = errno;

	if (level < LEVELS && self.slotless++ % LOOK_AGAIN == 0)
		o = take(r);
	if (!o) {
		__atomic_fetch_add(&r->slotless, 1, __ATOMIC_RELAXED);
		errno = e;
		return NULL;
	}
	self.slotless = 0;
	self.own[level] = o;
	if (level == 0)
		thread_end_wanted();
	image_tell(o);
	errno = e;
	return o;
}

void own_leave(void)
{
	for (unsigned i = 0; i < LEVELS; i++) {
		struct own *o = self.own[i];
		if (!o)
			continue;
		self.own[i] = NULL;
		prctl(PR_GET_NAME, o->slot->name);
		__atomic_store_n(&o->slot->state, RING_LEFT, __ATOMIC_RELEASE);
	}
}

/* ---------------------------------------------------------------- a full ring */

static void futex(uint32_t *word, int op, uint32_t value, const struct timespec *time)
{
	if (syscall(FUTEX_CALL, word, op, value, time, NULL, 0) < 0 &&
	    errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
		nanosleep(&(struct timespec){0, 1000000}, NULL); /* forbidden to us */
}

static void wake_recorder(struct ring_header *r)
{
	if (__atomic_load_n(&r->asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&r->asleep, 0, __ATOMIC_SEQ_CST))
		futex(&r->asleep, FUTEX_WAKE, 1, NULL);
}

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A recorder that is gone, or does nothing for so long, is not waited for. */
#define GONE 1000u
#define STUCK 30000u

static bool given_up(struct ring_header *r, uint32_t *beat, uint64_t *since)
{
	uint32_t b = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);
	uint64_t t = milliseconds();

	if (b != *beat) {
		*beat = b;
		*since = t;
	} else if (t - *since >= GONE && kill((pid_t)r->recorder, 0) && errno == ESRCH)
		__atomic_store_n(&r->mode, 0, __ATOMIC_RELAXED);
	else if (t - *since >= STUCK)
		__atomic_fetch_or(&r->mode, RING_LOSSY, __ATOMIC_RELAXED);
	return !(r->mode & (RING_ALLOCS | RING_FREES)) || r->mode & RING_LOSSY;
}

/* room_now sets the limit, and reports whether the longest record fits. */
static bool room_now(struct own *o)
{
	uint32_t tail = __atomic_load_n(&o->slot->tail, __ATOMIC_ACQUIRE), n = o->mask + 1;
	uint32_t used = o->head - tail;

	if (used > n - RING_RECORD_MAX)
		return false;
	/* At least one record, and no later than half the ring on. */
	uint32_t fits = n - RING_RECORD_MAX - used + 1;
	o->limit = o->head + (fits < n / 2 ? fits : n / 2);
	return true;
}

NOINLINE bool make_room(struct own *o)
{
	struct ring_header *r = gate->ring;
	int e = errno;
	bool ok = room_now(o);

	wake_recorder(r);
	if (!ok && !(__atomic_load_n(&r->mode, __ATOMIC_RELAXED) & RING_LOSSY)) {
		uint32_t beat = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);
		uint64_t since = milliseconds();

		for (;;) {
			uint32_t room = __atomic_load_n(&o->slot->room, __ATOMIC_ACQUIRE);
			__atomic_store_n(&o->slot->waiting, 1, __ATOMIC_SEQ_CST);
			if ((ok = room_now(o)) || given_up(r, &beat, &since))
				break;
			wake_recorder(r);
			futex(&o->slot->room, FUTEX_WAIT, room, &(struct timespec){0, 100000000});
		}
		__atomic_store_n(&o->slot->waiting, 0, __ATOMIC_RELAXED);
	}
	errno = e;
	return ok;
}
