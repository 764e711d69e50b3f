/*
 * The start of the process, and forks. Nothing is done at exit: the records stay in the rings.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

struct ring_header fixed;
const struct ring_tables *tables;
static struct ring_header *ring;	/* as the gate, and in a forked child, too */
pid_t owner;
struct origin origin;

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

/* ---------------------------------------------------------------- the start */

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

static void in_child(void)
{
	gate->child = (pid_t)thread_id();
	gate->ring = NULL; /* where the kernel did not do it */
}

/* at_fork has the C library call f in the child of a fork. In glibc, pthread_atfork is a part of each
 * library that calls it. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void)) __attribute__((weak));
extern char __dso_handle __attribute__((visibility("hidden")));

static void at_fork(void (*f)(void))
{
	if (&__register_atfork)
		__register_atfork(NULL, NULL, f, &__dso_handle);
	else if (&pthread_atfork)
		pthread_atfork(NULL, NULL, f);
}

bool process_start(const char *path, bool attaching)
{
	int file;

	if (!path || !*path || !(ring = ring_map(path, &file)))
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
	origin.parent = getppid();
	at_fork(in_child);
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
	origin.parent = owner;
	/* Of a fork that the C library does not know, only the kernel knows the number. */
	owner = gate->child ? gate->child : getpid();
	self.tid = (uint32_t)owner;
	if (!ours()) {
		ring = NULL;
		return;
	}
	origin.parent_image = image;
	modules_child();
	origin.told = 0;
	open_gate();
	self.level = 1;
	own_take(0);
	self.level = 0;
}
