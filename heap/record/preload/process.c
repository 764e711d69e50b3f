/*
 * The start of the process, forks, and the ends of threads. Nothing is done at exit: the
 * records stay in the rings.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

struct ring_header fixed;
const struct ring_tables *tables;
static struct ring_header *ring;	/* as the gate, and in a forked child, too */
pid_t owner;
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

/* ---------------------------------------------------------------- strict mode */

/* In the strict mode of seccomp, the kernel kills the thread for nearly all system calls, and for
 * reading the processor's counter. */
EXPORT int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list list;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		arg[i] = va_arg(list, unsigned long);
	va_end(list);
	self.strict |= option == PR_SET_SECCOMP && arg[0] == 1;
	int r = (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
	if (r) /* this one was allowed, so there was no such mode before */
		self.strict = false;
	return r;
}

/* ---------------------------------------------------------------- the image */

bool image_tell(struct own *o)
{
	uint32_t no = 0;

	if (!__atomic_compare_exchange_n(&told, &no, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	size_t path = strlen(program_path), words = (path + 7) / 8;
	uint64_t *w = reserve(o); /* it is the first: there is room for it */
	if (!w)
		return false;
	memset(w + 5, 0, words * 8);
	memcpy(w + 5, program_path, path);
	w[1] = (uint32_t)owner | (uint64_t)parent << 32;
	w[2] = path | (uint64_t)WORD << 32 | (uint64_t)program_hooks << 40;
	w[3] = parent_image;
	w[4] = forked;
	publish(o, w, stamp(), 0, RING_IMAGE, (uint32_t)(5 + words));
	return true;
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

/* ring_ask asks btrecord for a descriptor of the memory: in another mount namespace, /proc
 * may not have btrecord. Its socket has no place in the file system. */
static NOINLINE int ring_ask(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char request[] = "memory 0\n", space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	int f = -1, s, pid = (int)strtol(path + (strncmp(path, "/proc/", 6) ? strlen(path) : 6), NULL, 10);

	if (pid <= 0 || (s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return -1;
	size_t n = (size_t)snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "lwsbt.%d", pid);
	if (!connect(s, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) &&
	    send(s, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1 && recvmsg(s, &m, MSG_CMSG_CLOEXEC) == 1) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&f, CMSG_DATA(c), sizeof f);
	}
	close(s);
	return f;
}

static bool fits(const struct ring_header *h, uint64_t bytes)
{
	return !memcmp(h->magic, RING_MAGIC, sizeof h->magic) && h->version == RING_VERSION && h->slots && h->slots <= 65536 &&
		h->words >= 4096 && !(h->words & (h->words - 1)) && h->slot_at >= sizeof *h &&
		h->area >= 8 * ((uint64_t)h->words + RING_SLACK) && h->area_at >= h->slot_at + (uint64_t)h->slots * RING_SLOT &&
		h->rules_at >= h->area_at + h->slots * h->area && bytes >= h->rules_at + RING_RULES;
}

/* map maps the header and the slots. *file is a descriptor of the file. */
static struct ring_header *map(const char *path, int *file)
{
	struct stat info;
	int inherited = exec_inherited(path), f = inherited < 0 ? open(path, O_RDWR | O_CLOEXEC) : fcntl(inherited, F_DUPFD_CLOEXEC, 0);

	if (f < 0)
		f = ring_ask(path);
	if (f < 0)
		return NULL;
	if (strlen(path) < sizeof ring_path && pread(f, &fixed, sizeof fixed, 0) == (ssize_t)sizeof fixed && !fstat(f, &info) &&
	    fits(&fixed, (uint64_t)info.st_size)) {
		strcpy(ring_path, path);
		device = info.st_dev;
		inode = info.st_ino;
		void *p = mmap(NULL, RING_RULES, PROT_READ, MAP_SHARED, f, (off_t)fixed.rules_at);
		tables = p == MAP_FAILED ? NULL : p;
		p = mmap(NULL, fixed.slot_at + fixed.slots * RING_SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
		if (p != MAP_FAILED) {
			*file = f;
			return p;
		}
	}
	close(f);
	return NULL;
}

/* ours reports whether this process is to be recorded. The first is. */
static bool ours(void)
{
	uint32_t none = 0, pid = (uint32_t)owner;

	return __atomic_compare_exchange_n(&ring->root, &none, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		none == pid || fixed.children;
}

/* open_gate has events recorded from now on. */
static void open_gate(void)
{
	gate->ring = ring; /* stamps want it */
	image = stamp() & STAMP_MASK;
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
	gate->child = (pid_t)thread_id();
	gate->ring = NULL; /* where the kernel did not do it */
}

bool process_start(const char *path, bool attaching)
{
	int file;

	if (!path || !*path || !(ring = map(path, &file)))
		return false;
	owner = getpid();
	madvise(ring, fixed.slot_at + fixed.slots * RING_SLOT, MADV_DONTDUMP);
	struct gate *page = pages(PAGE);
	modules_start();
	struct module library;
	if (!attaching && module_at((uintptr_t)&process_start, &library))
		exec_keep(ring_path, file, library.name);
	bool ok = ours() && page && slots_start(file) && walk_start() && (!fixed.sample || sample_start());
	close(file);
	if (!ok) {
		ring = NULL;
		return false;
	}
	madvise(page, PAGE, MADV_WIPEONFORK); /* before Linux 4.14, only forks of the C library are known: in_child */
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
	self.random = 0;
	parent = owner;
	/* Of a fork that the C library does not know, only the kernel knows the number. */
	owner = gate->child ? gate->child : getpid();
	self.tid = (uint32_t)owner;
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
