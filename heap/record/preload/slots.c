/*
 * Rings: taking one, waiting while it is full, leaving it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

/* ---------------------------------------------------------------- memory */

/*
 * Rings are mapped without access, several at a time, and each becomes accessible as its
 * slot is taken: a program that locks all its memory takes no pages for the others. They
 * stay mapped. The slot with the lowest number is taken, so there are about as many as
 * threads at a time.
 *
 * The program may have closed the file, and may be killed if it opens one. So a page of
 * the file is mapped from the start: mremap with an old size of 0 maps it a second time, and
 * as much of the file as is wanted.
 */
#define CHUNK 8u /* rings */

static struct own **owns;	/* by slot: with an accessible ring */
static char **chunks;		/* by slot / CHUNK, mapped */
static void *seed;
static bool duplicates;		/* mremap does so: not in every emulator */

static void *file_part(uint64_t from, uint64_t size)
{
	void *p = MAP_FAILED;

	if (duplicates && from + size <= SIZE_MAX / 2) {
		p = mremap(seed, 0, (size_t)(from + size), MREMAP_MAYMOVE);
		if (p != MAP_FAILED) {
			munmap(p, (size_t)from);
			p = (char *)p + from;
		}
	} else if (!duplicates) {
		int f = ring_open();
		if (f >= 0) {
			p = mmap(NULL, (size_t)size, PROT_NONE, MAP_SHARED, f, (off_t)from);
			close(f);
		}
	}
	return p == MAP_FAILED ? NULL : p;
}

static char *chunk_of(uint32_t slot)
{
	char **chunk = &chunks[slot / CHUNK], *none = NULL, *p = __atomic_load_n(chunk, __ATOMIC_ACQUIRE);
	uint32_t first = slot / CHUNK * CHUNK, n = fixed.slots - first < CHUNK ? fixed.slots - first : CHUNK;

	if (p)
		return p;
	p = file_part(fixed.area_at + first * fixed.area, n * fixed.area);
	if (p && !__atomic_compare_exchange_n(chunk, &none, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(p, (size_t)(n * fixed.area)); /* another thread was faster */
		p = none;
	}
	return p;
}

/* own_new makes the ring of a slot accessible. */
static struct own *own_new(uint32_t slot)
{
	char *p = chunk_of(slot);
	struct own *o;

	p = p ? p + slot % CHUNK * fixed.area : file_part(fixed.area_at + slot * fixed.area, fixed.area); /* little is left */
	if (!p || mprotect(p, (size_t)fixed.area, PROT_READ | PROT_WRITE) || !(o = pages(sizeof *o)))
		return NULL;
	o->words = (uint64_t *)(void *)p;
	return o;
}

/* futex returns 0 or an error. */
static int futex(uint32_t *word, int op, uint32_t value, const struct timespec *time)
{
	if (self.strict)
		return EPERM;
	return syscall(FUTEX_CALL, word, op, value, time, NULL, 0) < 0 ? errno : 0;
}

static void wake_recorder(struct ring_header *r)
{
	if (__atomic_load_n(&r->asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&r->asleep, 0, __ATOMIC_SEQ_CST))
		futex(&r->asleep, FUTEX_WAKE, 1, NULL);
}

/* ---------------------------------------------------------------- leaving */

void own_leave(void)
{
	for (unsigned i = 0; i < LEVELS; i++) {
		struct own *o = self.own[i];
		if (!o)
			continue;
		self.own[i] = NULL;
		__atomic_store_n(&o->slot->state, RING_LEFT, __ATOMIC_RELEASE);
	}
}

static pthread_key_t key;
static bool keyed;

#ifndef PTHREAD_DESTRUCTOR_ITERATIONS
#define PTHREAD_DESTRUCTOR_ITERATIONS 4
#endif

/* Other destructors free memory, too: this one comes again, and leaves in the last round. */
static void thread_ends(void *arg)
{
	if (++self.rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(key, arg);
		return;
	}
	own_leave();
}

/* A C library keeps the first keys' values without allocating. Threads without a value
 * are found by btrecord, as those that end otherwise. */
static void thread_end_wanted(void)
{
	if (keyed && key < 32)
		pthread_setspecific(key, &self);
}

/* ---------------------------------------------------------------- the start */

bool slots_start(int file)
{
	keyed = keyed || !pthread_key_create(&key, thread_ends);
	owns = pages(fixed.slots * sizeof *owns);
	chunks = pages((fixed.slots + CHUNK - 1) / CHUNK * sizeof *chunks);
	seed = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, file, 0);
	if (!owns || !chunks || seed == MAP_FAILED)
		return false;
	madvise(seed, PAGE, MADV_DONTDUMP); /* and what is made of it */
	void *p = mremap(seed, 0, 2 * PAGE, MREMAP_MAYMOVE);
	duplicates = p != MAP_FAILED && p != seed;
	if (duplicates)
		munmap(p, 2 * PAGE);
	return true;
}

/* ---------------------------------------------------------------- taking one */

/* A thread's clock has its number: the C library knows it without asking the kernel. */
uint32_t thread_id(void)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock))
		return (uint32_t)syscall(SYS_gettid);
	return ~(uint32_t)(clock >> 3);
}

static struct ring_slot *slot_at(struct ring_header *r, uint32_t i)
{
	return (struct ring_slot *)(void *)((char *)r + fixed.slot_at) + i;
}

static uint32_t tally(uint32_t n)
{
	return n | (n * RING_TALLY) >> RING_TALLY_BITS << RING_TALLY_BITS;
}

/* What the program wrote over stays so: btrecord sees that its check is wrong. */
static void tally_raise(uint32_t *t, uint32_t to)
{
	uint32_t old = __atomic_load_n(t, __ATOMIC_RELAXED), n;

	do {
		n = old & RING_TALLY_MAX;
		if (old != tally(n) || n >= to)
			return;
	} while (!__atomic_compare_exchange_n(t, &old, tally(to), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

void tally_add(uint32_t *t)
{
	uint32_t old = __atomic_load_n(t, __ATOMIC_RELAXED), n;

	do {
		n = old & RING_TALLY_MAX;
		if (old != tally(n) || n == RING_TALLY_MAX)
			return;
	} while (!__atomic_compare_exchange_n(t, &old, tally(n + 1), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* find takes the first free slot, and returns its number, or how many there are. */
static uint32_t find(struct ring_header *r)
{
	for (uint32_t i = 0; i < fixed.slots; i++) {
		uint32_t *state = &slot_at(r, i)->state, free = RING_FREE;
		if (__atomic_load_n(state, __ATOMIC_RELAXED) == RING_FREE &&
		    __atomic_compare_exchange_n(state, &free, RING_FILLING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			tally_raise(&r->top, i + 1);
			return i;
		}
	}
	return fixed.slots;
}

#define LOOK_AGAIN 1024 /* events, where no slot was free */

static struct own *take(struct ring_header *r)
{
	uint32_t i = find(r);

	if (i == fixed.slots)
		return NULL;
	struct ring_slot *slot = slot_at(r, i);
	struct own *o = owns[i];
	if (!o && !(o = owns[i] = own_new(i))) {
		__atomic_store_n(&slot->state, RING_FREE, __ATOMIC_RELEASE);
		return NULL;
	}
	if (!self.tid)
		self.tid = thread_id();
	slot->pid = (uint32_t)owner;
	slot->tid = self.tid;
	slot->image = image;
	o->head = 0;
	o->mask = fixed.words - 1;
	o->limit = fixed.words / 2;
	o->seed = image ^ (uint64_t)self.tid << 32;
	o->slot = slot;
	o->entered = UINTPTR_MAX;
	walk_begin(o);
	__atomic_store_n(&slot->state, RING_TAKEN, __ATOMIC_RELEASE);
	return o;
}

/* image_tell puts the record of the process into its first ring, and reports whether it did. */
static bool image_tell(struct own *o)
{
	uint32_t no = 0;

	if (!__atomic_compare_exchange_n(&origin.told, &no, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	size_t path = strlen(program_path), words = (path + 7) / 8;
	uint64_t *w = reserve(o); /* it is the first: there is room for it */
	if (!w)
		return false;
	memset(w + 4, 0, words * 8);
	memcpy(w + 4, program_path, path);
	w[1] = (uint32_t)owner | (uint64_t)origin.parent << 32;
	w[2] = path | (uint64_t)WORD << 32 | (uint64_t)program_hooks << 40;
	w[3] = origin.parent_image;
	publish(o, w, stamp(), 0, RING_IMAGE, (uint32_t)(4 + words));
	return true;
}

NOINLINE struct own *own_take(unsigned level)
{
	struct ring_header *r = gate->ring;
	struct own *o = NULL;
	int e = errno;

	if (level < LEVELS && !self.strict && self.slotless++ % LOOK_AGAIN == 0)
		o = take(r);
	if (!o) {
		tally_add(&r->slotless);
		errno = e;
		return NULL;
	}
	self.slotless = 0;
	self.own[level] = o;
	if (level == 0)
		thread_end_wanted();
	if (image_tell(o))
		wake_recorder(r); /* it looks at the process while there is one */
	errno = e;
	return o;
}

/* ---------------------------------------------------------------- a full ring */

/* A recorder that has ended, or does nothing for so long, is not waited for. */
#define WAIT 100u	/* milliseconds */
#define STUCK 30000u

/* wait_room waits for WAIT ms, or until btrecord has read something. It reports whether
 * it waited to the end. */
static bool wait_room(struct ring_slot *s, uint32_t room)
{
	int e = futex(&s->room, FUTEX_WAIT, room, &(struct timespec){0, WAIT * 1000000});

	if (!e || e == EAGAIN || e == EINTR || e == ETIMEDOUT)
		return e == ETIMEDOUT;
	/* It is forbidden to us: some WAIT ms, but other calls may be, too. */
	for (uint32_t i = 0; i < 30000000u; i++) {
		if (__atomic_load_n(&s->room, __ATOMIC_RELAXED) != room)
			return false;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	return true;
}

/* given_up reports whether nobody reads the ring any more. late: waits in which nothing was read. */
static bool given_up(struct ring_header *r, uint32_t late)
{
	if (__atomic_load_n(&r->alive, __ATOMIC_RELAXED) & RING_DIED)
		__atomic_store_n(&r->mode, 0, __ATOMIC_RELAXED);
	else if (late >= STUCK / WAIT)
		__atomic_fetch_or(&r->mode, RING_LOSSY, __ATOMIC_RELAXED);
	return !(r->mode & (RING_ALLOCS | RING_FREES)) || r->mode & RING_LOSSY;
}

/* room_now sets the limit, and reports whether the longest record fits. *damaged: the program wrote over
 * memory of the recording, and btrecord has nothing to read. */
static bool room_now(struct own *o, bool *damaged)
{
	uint32_t tail = __atomic_load_n(&o->slot->tail, __ATOMIC_ACQUIRE), n = fixed.words;
	uint32_t used = o->head - tail;

	*damaged = used > n || o->head != __atomic_load_n(&o->slot->head, __ATOMIC_RELAXED);
	if (*damaged || used > n - RING_RECORD_MAX)
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
	bool damaged, ok = room_now(o, &damaged);

	wake_recorder(r);
	if (!ok && !(__atomic_load_n(&r->mode, __ATOMIC_RELAXED) & RING_LOSSY)) {
		uint32_t tail = 0, late = 0;

		for (;;) {
			uint32_t room = __atomic_load_n(&o->slot->room, __ATOMIC_ACQUIRE);
			__atomic_store_n(&o->slot->waiting, 1, __ATOMIC_SEQ_CST);
			if ((ok = room_now(o, &damaged)) || damaged || given_up(r, late))
				break;
			wake_recorder(r);
			if (o->slot->tail != tail)
				late = 0;
			tail = o->slot->tail;
			late += wait_room(o->slot, room);
		}
		__atomic_store_n(&o->slot->waiting, 0, __ATOMIC_RELAXED);
	}
	errno = e;
	return ok;
}
