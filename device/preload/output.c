/*
 * Lines into the recording's file. They are gathered in a buffer and written
 * whole, so that what is in the file ends with a line, whatever happens.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

bool on;
lock_t out_lock;

/* It is written when there is no room for the next line, or for all events that wait:
 * some 64 KB at a time, since writes of half that cost half as much again per byte. */
#define BUFFER (100 << 10)
static char buffer[BUFFER];
static size_t used;
static int fd = -1;
static bool is_open;
static char path[4096];
static dev_t dev;
static ino_t ino;
static bool regular;
static bool scarce; /* descriptors are: open the file for each write only */
static uint64_t limit = UINT64_MAX; /* bytes, of RLIMIT_FSIZE */
static uint64_t at;		    /* bytes in the file, of ours */
static struct timespec begun;

void lock_slow(lock_t *l)
{
	for (unsigned i = 1;; i++) {
		if (__atomic_load_n(l, __ATOMIC_RELAXED) == 0 && lock_try(l))
			return;
		if (i % 64 == 0)
			sched_yield();
	}
}

/* ---------------------------------------------------------------- characters */

char *put_text(char *p, const char *text)
{
	size_t n = strlen(text);

	memcpy(p, text, n);
	return p + n;
}

char *put_dec(char *p, uint64_t v)
{
	char d[20];
	int n = 0;

	do
		d[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = d[--n];
	return p;
}

char *put_hex(char *p, uint64_t v)
{
	int n = 60;

	*p++ = '0';
	*p++ = 'x';
	while (n && !(v >> n))
		n -= 4;
	for (; n >= 0; n -= 4)
		*p++ = "0123456789abcdef"[v >> n & 15];
	return p;
}

/* say writes a line to standard error, if that is open. */
void say(const char *text, const char *detail)
{
	char line[512], *p = put_text(line, "lwsbt: ");

	p = put_text(p, text);
	for (; *detail && p < line + sizeof line - 2; detail++)
		*p++ = (unsigned char)*detail < ' ' ? '?' : *detail;
	*p++ = '\n';
	(void)!syscall(SYS_write, 2, line, (size_t)(p - line));
}

/* ---------------------------------------------------------------- time */

static uint64_t since(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	int64_t us = (t.tv_sec - begun.tv_sec) * (int64_t)1000000 + (t.tv_nsec - begun.tv_nsec) / 1000;
	return us < 0 ? 0 : (uint64_t)us;
}

/*
 * The clock is asked twice per block, which takes 30 ns each. Where the processor
 * counts at a constant rate, that is read instead, and set by the clock at each
 * write to the file. Called under the output lock, as now is.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

static uint64_t ticks, ticks_time, ticks_rate; /* rate: microseconds per tick, times 2^32 */

static void set_clock(void)
{
	uint64_t t = __rdtsc(), us = since(CLOCK_MONOTONIC);
	static int constant = -1;
	unsigned a, b, c, d = 0;

	if (constant < 0)
		constant = __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
	if (!constant)
		return;
	if (!ticks) {
		ticks = t;
		ticks_time = us;
	} else if (us - ticks_time >= 20000 && t > ticks) {
		ticks_rate = (uint64_t)(((unsigned __int128)(us - ticks_time) << 32) / (t - ticks));
		ticks = t;
		ticks_time = us;
	}
}

static uint64_t read_clock(void)
{
	/* What lies far from the last setting is asked for. */
	uint64_t t = __rdtsc() - ticks;

	if (!ticks_rate || t >> 33)
		return since(CLOCK_MONOTONIC);
	return ticks_time + (t * ticks_rate >> 32);
}
#else
static void set_clock(void) {}
static uint64_t read_clock(void) { return since(CLOCK_MONOTONIC); }
#endif

uint64_t now(void)
{
	static uint64_t last;
	uint64_t t = read_clock();

	if (t < last && last - t < 1000000) /* set back a little: time goes on only */
		t = last;
	return last = t;
}

uint64_t now_coarse(void) { return since(CLOCK_MONOTONIC_COARSE); }

uint64_t clock_begin(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---------------------------------------------------------------- the file */

/* failed ends the recording; the program goes on. */
static void failed(const char *what, int e)
{
	char line[256], *p = put_text(line, what);

	on = false;
	p = put_text(p, ": ");
	p = put_text(p, e == ENOSPC ? "no space left on device" : e == EPIPE ? "broken pipe" :
		e == EFBIG ? "file size limit reached" : e == EMFILE ? "too many open files" :
		e == ENOENT ? "no such file or directory" : e == EACCES ? "permission denied" :
		e == EPERM ? "operation not permitted" : e == EDQUOT ? "disk quota exceeded" :
		e == EROFS ? "read-only file system" :
		e == ENXIO ? "nobody reads it" : e == EBADF ? "it was closed" : "error ");
	if (p[-1] == ' ')
		p = put_dec(p, (uint64_t)e);
	p = put_text(p, "; recording ends, the program goes on: ");
	*p = 0;
	say(line, path);
}

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static char *mark; /* not 0; but 0 in a child that has a copy of this memory */

static bool forked(void)
{
	return mark && !*mark;
}

static void mark_process(void)
{
	if (!mark && (mark = pages(4096)) && madvise(mark, 4096, MADV_WIPEONFORK)) {
		pages_free(mark, 4096); /* an old kernel */
		mark = NULL;
	}
	if (mark)
		*mark = 1;
}

/* away moves the descriptor out of the program's way, which may count on the
 * lowest being free. */
static int away(int f)
{
	struct rlimit r;
	int want = 1000;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur != RLIM_INFINITY && r.rlim_cur < 1064) {
		want = (int)r.rlim_cur - 4;
		scarce = regular && r.rlim_cur < 32;
	}
	for (; want > 2; want /= 2) {
		int g = fcntl(f, F_DUPFD_CLOEXEC, want);
		if (g >= 0) {
			close(f);
			return g;
		}
	}
	return f;
}

/* first_pid returns the process of which a recording's first line tells, -1 if
 * there is none. */
static long first_pid(int f)
{
	char line[512];
	ssize_t n = pread(f, line, sizeof line - 1, 0);

	if (n <= 0)
		return -1;
	line[n] = 0;
	char *p = strstr(line, " pid="), *end = strchr(line, '\n');
	if (strncmp(line, "~h#boot", 7) || !p || (end && p > end))
		return 0;
	long v = 0;
	for (p += 5; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + *p - '0';
	return v;
}

/*
 * out_open opens the recording. One file is one process's; a program that this
 * process executes goes on in it. %p in the path is the process, %% is %. A file
 * that is another process's is left alone: with children, ".PID" is appended to the
 * path, and without, this process is not recorded.
 */
bool out_open(const char *name, bool children)
{
	char *p = path, *end = path + sizeof path - 32;
	struct stat st;

	/* The program may go to another directory, and close the file. */
	if (*name != '/' && getcwd(path, sizeof path - 64)) {
		p += strlen(path);
		*p++ = '/';
	}
	for (; *name && p < end; name++)
		if (name[0] == '%' && name[1] == 'p') {
			p = put_dec(p, (uint64_t)getpid());
			name++;
		} else {
			*p++ = *name;
			if (name[0] == '%' && name[1] == '%')
				name++;
		}
	*p = 0;
	if (*name) {
		say("LWSBT_OUT is too long: ", "nothing is recorded");
		return false;
	}
	for (int tries = 0; tries < 2; tries++) {
		/* Of a pipe, not the end for reading as well: it would never be closed. And
		 * one that nobody reads must not stop the program. */
		if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		else
			fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
		if (fd < 0 || fstat(fd, &st) < 0) {
			int e = errno;
			failed("cannot open the recording", e);
			return false;
		}
		regular = S_ISREG(st.st_mode);
		if (!regular)
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		long pid = regular ? first_pid(fd) : -1;
		if (pid == -1 || pid == getpid())
			break;
		close(fd);
		fd = -1;
		if (pid == 0) {
			say("not a recording, left alone: ", path);
			return false;
		}
		if (!children)
			return false;
		*put_dec(put_text(p, "."), (uint64_t)getpid()) = 0;
	}
	if (fd < 0)
		return false;
	fd = away(fd);
	is_open = true;
	mark_process();
	dev = st.st_dev;
	ino = st.st_ino;
	at = regular ? (uint64_t)st.st_size : 0;
	struct rlimit r;
	if (regular && !getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY)
		limit = r.rlim_cur;
	return true;
}

/* ours reports whether the descriptor is still the file's: a program may close
 * what it does not know. */
static bool ours(void)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino)
		return true;
	errno = EBADF;
	if (!regular)
		return false;
	int f = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY);
	if (f < 0)
		return false;
	if (fstat(f, &st) < 0 || st.st_dev != dev || st.st_ino != ino) {
		close(f);
		errno = ENOENT;
		return false;
	}
	fd = away(f);
	return true;
}

/* write_quiet writes without SIGPIPE, and without being a cancellation point. */
static ssize_t write_quiet(const char *p, size_t n)
{
	sigset_t pipe, old, pending;
	struct timespec none = {0, 0};

	if (regular)
		return syscall(SYS_write, fd, p, n);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	ssize_t k = syscall(SYS_write, fd, p, n);
	int e = errno;
	/* The signal comes with a short write as well. */
	if (k != (ssize_t)n && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = e;
	return k;
}

void out_flush(void)
{
	if (events_queued)
		events_write();
	const char *p = buffer;
	size_t n = used;
	int e = errno;

	used = 0;
	if (!is_open || !n)
		return;
	set_clock();
	if (forked()) { /* not by fork(), which tells us */
		on = false;
		return;
	}
	if (!ours()) {
		failed("cannot write", errno);
		is_open = false;
		errno = e;
		return;
	}
	if (at + n > limit) {
		/* the whole lines that fit: more would kill the program */
		size_t fits = limit > at ? (size_t)(limit - at) : 0;
		while (fits && p[fits - 1] != '\n')
			fits--;
		n = fits;
		failed("cannot write", EFBIG);
	}
	while (n) {
		ssize_t k = write_quiet(p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN) {
			struct timespec t = {0, 1000000};
			nanosleep(&t, NULL);
			continue;
		}
		if (k <= 0) {
			int why = k < 0 ? errno : EIO;
			/* Back to the last whole line. */
			while (regular && p > buffer && p[-1] != '\n') {
				p--;
				at--;
			}
			if (regular)
				(void)!ftruncate(fd, (off_t)at);
			failed("cannot write", why);
			close(fd);
			is_open = false;
			break;
		}
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	if (scarce && is_open) {
		close(fd);
		fd = -1;
	}
	errno = e;
}

char *out_line(size_t max)
{
	if (UNLIKELY(events_queued))
		events_write();
	if (!on || max > BUFFER)
		return NULL;
	if (used + max > BUFFER) {
		out_flush();
		if (!on)
			return NULL;
	}
	return buffer + used;
}

void out_commit(char *end)
{
	used = (size_t)(end - buffer);
}

void out_close(void)
{
	out_flush();
	if (is_open && fd >= 0 && ours())
		close(fd);
	is_open = false;
}

void out_drop(void)
{
	used = 0;
	events_queued = 0;
	if (is_open && fd >= 0 && ours())
		close(fd);
	is_open = false;
	on = false;
}
