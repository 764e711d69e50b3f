/*
 * When the process starts, forks, executes another program, gets a signal and
 * ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tail.h"

pid_t owner;
static bool children;
static int dump_signal;
static int finished;

/* number reads a decimal number of up to 9 digits, with up to 6 places after a
 * point, in millionths. */
static uint64_t millionths(const char *s)
{
	uint64_t v = 0, place = 1000000;

	for (; *s >= '0' && *s <= '9' && v < 1000000000; s++)
		v = v * 10 + (uint64_t)(*s - '0');
	v *= 1000000;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9' && place > 1; s++)
			v += (uint64_t)(*s - '0') * (place /= 10);
	return v;
}

/* ---------------------------------------------------------------- signals */

static struct sigaction before;

static void wanted(int sig)
{
	int e = errno;

	(void)sig;
	if (self.busy)
		__atomic_store_n(&dump_wanted, 1, __ATOMIC_RELEASE);
	else {
		self.busy = true;
		dump("signal", true);
		self.busy = false;
	}
	errno = e;
}

/* ---------------------------------------------------------------- the end */

/* finish writes the last dump. It may be called several times: by the program's
 * exit, and by what comes after. */
void finish(const char *why)
{
	bool was = self.busy;

	if (!on || owner != getpid())
		return;
	self.busy = true;
	if (!strcmp(why, "exec")) /* it may fail, and the program go on */
		dump(why, true);
	else if (!__atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL)) {
		dump(why, true);
		walk_report();
		if (!hooks_mine())
			say("the program has an allocator of its own: ", "what it allocates there is not recorded");
		lock(&out_lock);
		on = false;
		out_close();
		unlock(&out_lock);
	}
	self.busy = was;
}

/* at_end is registered for no module, and before the dynamic linker's own: so it
 * runs after all destructors. */
extern int __cxa_atexit(void (*)(void *), void *, void *);

static void at_end(void *arg)
{
	(void)arg;
	finish("exit");
}

/* ---------------------------------------------------------------- fork */

static void before_fork(void)
{
	if (!on || owner != getpid())
		return;
	self.busy = true;
	modules_before_fork(!SINGLE);
	stacks_lock();
	modules_lock();
	blocks_lock();
	lock(&out_lock);
	out_flush();
	keep_take_lock();
}

static void after_fork(void)
{
	if (!self.busy || owner != getpid())
		return;
	keep_leave_lock();
	unlock(&out_lock);
	blocks_unlock();
	modules_unlock();
	stacks_unlock();
	modules_after_fork(false);
	self.busy = false;
}

static void in_child(void)
{
	bool recording = on;

	if (!self.busy)
		return;
	out_drop();
	keep_leave_lock();
	unlock(&out_lock);
	blocks_unlock();
	modules_unlock();
	stacks_unlock();
	modules_after_fork(true);
	owner = getpid();
	self.tid = (uint32_t)owner;
	const char *path = getenv("LWSBT_OUT");
	if (recording && children && path && out_open(path, true)) {
		on = true;
		record_boot();
		dump("fork", true); /* what it inherits */
	}
	self.busy = false;
}

/* ---------------------------------------------------------------- the start */

/* make_absolute has LWSBT_OUT name the same file wherever the process goes: a program
 * that it executes, and a child, read it again. */
static void make_absolute(const char *path)
{
	extern char **environ;
	static char text[4096] = "LWSBT_OUT=";
	char cwd[2048], *p = text + strlen(text);
	size_t n = strlen(path);

	if (*path == '/' || !getcwd(cwd, sizeof cwd - 1))
		return;
	const char *c = strcat(cwd, "/");
	for (; *c && p < text + sizeof text - 2; c++)
		if ((*p++ = *c) == '%')
			*p++ = '%';
	if (*c || n >= (size_t)(text + sizeof text - p))
		return; /* too long: out_open says so */
	memcpy(p, path, n + 1);
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, text, strlen("LWSBT_OUT=")))
			*e = text;
}

/* process_init is called by the first allocation, or as the library is loaded. */
void process_init(void)
{
	const char *path = getenv("LWSBT_OUT"), *s;

	owner = getpid();
	self.tid = (uint32_t)syscall(SYS_gettid);
	if (!path || !*path)
		return;
	children = (s = getenv("LWSBT_CHILDREN")) && *s == '1';
	with_events = (s = getenv("LWSBT_EVENTS")) && *s == '1';
	dump_at_peak = (s = getenv("LWSBT_AT_PEAK")) && *s == '1';
	if ((s = getenv("LWSBT_INTERVAL")))
		dump_every = (unsigned long)((millionths(s) + 999) / 1000);
	if ((s = getenv("LWSBT_CHECK")))
		walk_check = (unsigned)(millionths(s) / 1000000);
	dump_signal = (s = getenv("LWSBT_SIGNAL")) ? (int)(millionths(s) / 1000000) : SIGUSR1;
	make_absolute(path);
	if (!out_open(path, children))
		return;
	base64_init();
	walk_init();
	if (!blocks_init()) {
		say("no memory for its tables: ", "nothing is recorded");
		out_drop();
		return;
	}
	modules_init();
	on = true;
	record_boot();
	__cxa_atexit(at_end, NULL, NULL);
	pthread_atfork(before_fork, after_fork, in_child);
	if (dump_signal > 0) {
		struct sigaction a = {.sa_handler = wanted, .sa_flags = SA_RESTART};
		sigemptyset(&a.sa_mask);
		if (!sigaction(dump_signal, NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(dump_signal, &a, NULL);
	}
}
