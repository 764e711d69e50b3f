/*
 * Which memory can be read. A walk may be led anywhere: by tables that are wrong, by
 * stacks that the program made itself, beside guard pages and unmapped ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process.h"

void *pages(size_t bytes)
{
	int e = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = e;
	return p == MAP_FAILED ? NULL : p;
}

/* ---------------------------------------------------------------- single pages */

/* The kernel compares a word before it waits for it to change: EFAULT says that it
 * could not, EAGAIN that it was another one, ETIMEDOUT that the wait, of no time, is over. */
static bool by_futex(uintptr_t page)
{
	static const struct timespec none;

	return syscall(FUTEX_CALL, page, FUTEX_WAIT | FUTEX_PRIVATE, 0x6c777362, &none) &&
		(errno == EAGAIN || errno == ETIMEDOUT);
}

/* For emulators: the kernel reads a new signal mask before it looks what to do with it. EFAULT
 * says that it could not, EINVAL that there is nothing such to do. Nothing changes. */
static bool by_mask(uintptr_t page)
{
	return syscall(SYS_rt_sigprocmask, ~0, page, NULL, _NSIG / 8) && errno == EINVAL;
}

static bool by_copy(uintptr_t page)
{
	uint64_t word;
	struct iovec to = {&word, sizeof word}, from = {(void *)page, sizeof word};

	return syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == (long)sizeof word;
}

static bool (*way)(uintptr_t page);

/* Of the ways that there are, that which tells a page that can be read from one that
 * cannot is taken: an emulator may do otherwise than the kernel. With none, no page can
 * be read. */
void memory_start(void)
{
	bool (*const ways[])(uintptr_t) = {by_futex, by_mask, by_copy};
	uintptr_t here = (uintptr_t)&self & ~(PAGE - 1), guard;
	void *p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	guard = p == MAP_FAILED ? PAGE : (uintptr_t)p;
	for (unsigned i = 0; i < sizeof ways / sizeof *ways && !way; i++)
		if (ways[i](here) && !ways[i](guard))
			way = ways[i];
	if (p != MAP_FAILED)
		munmap(p, PAGE);
}

bool readable(uintptr_t at)
{
	int e = errno;
	bool ok = at >= PAGE && way && !self.strict && way(at & ~(PAGE - 1));

	errno = e;
	return ok;
}

/* ---------------------------------------------------------------- the stack */

#define STACK_PAGES 4096 /* that are looked at in one go */
#define GROWTH (64 * PAGE)

/*
 * The thread's descriptor lies above its stack, in the same mapping. Above the stack of the
 * first thread lie the random bytes that the kernel gave the program. So either all pages from
 * sp up to there can be read, or sp is on another stack.
 */
static uintptr_t stack_top(uintptr_t sp)
{
	uintptr_t thread = (uintptr_t)pthread_self(), random = getauxval(AT_RANDOM), top = thread;

	self.first = random > sp && (thread <= sp || random < thread);
	if (self.first)
		top = random;
	return top > sp ? top & ~(uintptr_t)15 : 0;
}

/* all_readable reports whether all pages from one address to another can be read, and sets the
 * gap if not. No system call is made for the page that this runs on: many programs give up
 * the right to make any. */
static inline __attribute__((always_inline)) bool all_readable(uintptr_t from, uintptr_t to)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(PAGE - 1);

	for (uintptr_t at = from; at < to; at += PAGE)
		if (at != here && !readable(at)) {
			self.gap = at;
			return false;
		}
	return true;
}

/* grown reports whether the first thread's stack has grown down to sp, while it runs on it. The
 * kernel keeps other memory at a distance of 1 MB from that stack. */
static bool grown(uintptr_t sp)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return self.first && here < self.lo && self.lo - here <= GROWTH && sp >= here;
}

bool on_stack_slow(uintptr_t sp)
{
	uintptr_t from = sp & ~(PAGE - 1);

	if (sp < self.gap)
		return false;
	if (!self.hi) {
		uintptr_t top = stack_top(sp), own = (uintptr_t)&self & ~(PAGE - 1);

		/* The thread's variables lie beside its descriptor. */
		if (!top || top - sp > STACK_PAGES * PAGE || !all_readable(from, own >= from && own < top ? own : top))
			return false;
		self.lo = from;
		self.hi = top;
		return true;
	}
	if (sp >= self.lo || self.lo - sp > STACK_PAGES * PAGE)
		return false;
	/* It has grown. Or there is a gap between this stack and the thread's. */
	if (!grown(sp) && !all_readable(from, self.lo))
		return false;
	self.lo = from;
	return true;
}
