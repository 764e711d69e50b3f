/*
 * The start of the process, forks, and the ends of threads. Nothing is done at exit: the
 * records stay in the rings.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

__thread struct thread self;

/* For btrecord, which refuses a library of another version. */
#define VERSIONED_(version) lwsbt_ring_version_##version
#define VERSIONED(version) VERSIONED_(version)
EXPORT const char VERSIONED(RING_VERSION) = 0;

static struct gate shut;
struct gate *gate = &shut;
uint64_t image;

static struct ring_header *ring;	/* as the gate, and in a forked child, too */
static pid_t owner;
static uint64_t parent_image, forked;
static pid_t parent;
static uint32_t told; /* the image's record: not every machine has atomic bytes */

/* ---------------------------------------------------------------- threads' ends */

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
void thread_end_wanted(void)
{
	if (keyed && key < 32)
		pthread_setspecific(key, &self);
}

/* ---------------------------------------------------------------- the image */

void image_tell(struct own *o)
{
	uint32_t no = 0;

	if (!__atomic_compare_exchange_n(&told, &no, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	size_t path = strlen(program_path), words = (path + 7) / 8;
	uint64_t *w = reserve(o); /* it is the first: there is room for it */
	if (!w)
		return;
	memset(w + 5, 0, words * 8);
	memcpy(w + 5, program_path, path);
	w[1] = (uint32_t)owner | (uint64_t)parent << 32;
	w[2] = path | (uint64_t)WORD << 32;
	w[3] = parent_image;
	w[4] = forked;
	w[0] = word0(stamp(), 0, RING_IMAGE);
	publish(o, (uint32_t)(5 + words));
}

/* ---------------------------------------------------------------- the start */

/* What LWSBT_RING names: the environment may change. */
static char ring_path[PATH_MAX];
static dev_t device;
static ino_t inode;

int ring_open(void)
{
	struct stat info;
	int f = open(ring_path, O_RDWR | O_CLOEXEC);

	if (f < 0 || (!fstat(f, &info) && info.st_dev == device && info.st_ino == inode))
		return f;
	close(f); /* it is another one by now */
	return -1;
}

static bool fits(const struct ring_header *h, uint64_t bytes)
{
	return !memcmp(h->magic, RING_MAGIC, sizeof h->magic) && h->version == RING_VERSION && h->slots && h->slots <= 65536 &&
		h->words >= 4096 && !(h->words & (h->words - 1)) && h->slot_at >= sizeof *h &&
		h->area >= RING_OWN + 8 * ((uint64_t)h->words + RING_SLACK) &&
		h->area_at >= h->slot_at + (uint64_t)h->slots * RING_SLOT && bytes >= h->area_at + h->slots * h->area;
}

static struct ring_header *map(const char *path)
{
	struct ring_header h;
	void *p = MAP_FAILED;
	struct stat info;
	int f;

	if (strlen(path) >= sizeof ring_path || (f = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return NULL;
	if (read(f, &h, sizeof h) == (ssize_t)sizeof h && !fstat(f, &info) && fits(&h, (uint64_t)info.st_size)) {
		strcpy(ring_path, path);
		device = info.st_dev;
		inode = info.st_ino;
		p = mmap(NULL, h.slot_at + h.slots * RING_SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	}
	close(f);
	return p == MAP_FAILED ? NULL : p;
}

/* ours reports whether this process is to be recorded. The first is. */
static bool ours(void)
{
	uint32_t none = 0, pid = (uint32_t)owner;

	return __atomic_compare_exchange_n(&ring->root, &none, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		none == pid || ring->children;
}

/* open_gate has events recorded from now on. */
static void open_gate(void)
{
	gate->ring = ring; /* stamps want it */
	image = stamp() & (((uint64_t)1 << 56) - 1);
	if (!image)
		image = 1;
}

static void before_fork(void)
{
	if (gate->ring)
		record_fork();
}

static void in_child(void)
{
	forked = self.forked;
	gate->ring = NULL; /* where the kernel did not do it */
}

bool process_start(const char *path)
{
	if (!path || !*path || !(ring = map(path)))
		return false;
	owner = getpid();
	memory_start();
	madvise(ring, ring->slot_at + ring->slots * RING_SLOT, MADV_DONTDUMP);
	struct gate *page = pages(PAGE);
	modules_start();
	if (!ours() || !page || !slots_start(ring) || !walk_start() || (ring->sample && !sample_start())) {
		ring = NULL;
		return false;
	}
	madvise(page, PAGE, MADV_WIPEONFORK);
	gate = page;
	parent = getppid();
	keyed = !pthread_key_create(&key, thread_ends);
	pthread_atfork(before_fork, NULL, in_child);
	open_gate();
	/* The first record. */
	self.level = 1;
	own_take(0);
	self.level = 0;
	return true;
}

/* A child has one thread, this one. The rings that the thread had are its parent's. */
void child_start(void)
{
	if (!ring)
		return;
	memset(self.own, 0, sizeof self.own);
	self.level = 0;
	self.tid = 0;
	self.random = 0;
	parent = owner;
	owner = getpid();
	if (!ours()) {
		ring = NULL;
		return;
	}
	parent_image = image;
	modules_child();
	told = 0;
	open_gate();
	self.level = 1;
	own_take(0);
	self.level = 0;
	forked = 0;
}
