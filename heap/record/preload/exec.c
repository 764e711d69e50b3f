/*
 * Programs that the process executes. They get the environment that the library needs, even if the
 * program clears it, and the two files that it needs stay open, in case that the new program cannot open
 * them by their names: with another root, or as another user.
 *
 * A new program may not load the library: a static one, one that gains privileges. So the old one says
 * what it executes, and btrecord compares this with the programs that begin. This also runs in the
 * child of a vfork, which has the memory of its parent.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

typedef int (*exec_fn)(const char *, char *const[], char *const[]);
typedef int (*fexec_fn)(int, char *const[], char *const[]);
typedef int (*close_fn)(int);
typedef int (*range_fn)(unsigned, unsigned, int);
typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

static exec_fn real_execve, real_execvpe;
static fexec_fn real_fexecve;
static spawn_fn real_spawn, real_spawnp;
static close_fn real_close;
static range_fn real_range;
static bool (*begins)(void);	/* starts recording, see begin */

/* The child of a vfork may not call dlsym. */
void exec_start(bool (*begin)(void))
{
	begins = begin;
	real_execve = (exec_fn)dlsym(RTLD_NEXT, "execve");
	real_execvpe = (exec_fn)dlsym(RTLD_NEXT, "execvpe");
	real_fexecve = (fexec_fn)dlsym(RTLD_NEXT, "fexecve");
	real_spawn = (spawn_fn)dlsym(RTLD_NEXT, "posix_spawn");
	real_spawnp = (spawn_fn)dlsym(RTLD_NEXT, "posix_spawnp");
	real_close = (close_fn)dlsym(RTLD_NEXT, "close");
	real_range = (range_fn)dlsym(RTLD_NEXT, "close_range");
}

static inline bool recording(void)
{
	return (gate->ring || (begins && begins())) && !self.strict;
}

/* ---------------------------------------------------------------- what a program needs */

#define BY_NUMBER "/proc/self/fd/"
#define NUMBER_SPACE (sizeof BY_NUMBER + 10)

/* A file that stays open. */
struct open_file {
	const char *name;	/* NULL: it is not passed on */
	int fd;
	dev_t device;
	ino_t inode;
};
static struct open_file memory = {.fd = -1}, library = {.fd = -1};

int exec_inherited(const char *name)
{
	return strncmp(name, BY_NUMBER, sizeof BY_NUMBER - 1) ? -1 : atoi(name + sizeof BY_NUMBER - 1);
}

/* keep_open takes a descriptor, and keeps the file open with a large number, where no program looks. */
static void keep_open(struct open_file *k, const char *name, int f)
{
	struct rlimit limit;
	struct stat info;

	k->name = name;
	if (f < 0 || fstat(f, &info) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	k->device = info.st_dev;
	k->inode = info.st_ino;
	if (exec_inherited(name) < 0)
		f = set_file(f, F_DUPFD_CLOEXEC, (int)(limit.rlim_cur < 1000 ? limit.rlim_cur / 2 : 900));
	else
		set_file(f, F_SETFD, FD_CLOEXEC);
	k->fd = f;
}

void exec_keep(const char *memory_name, int file, const char *library_name)
{
	int f = exec_inherited(library_name), opened = f < 0 ? open(library_name, O_RDONLY | O_CLOEXEC) : -1;

	keep_open(&memory, memory_name, exec_inherited(memory_name) < 0 ? file : exec_inherited(memory_name));
	keep_open(&library, library_name, f < 0 ? opened : f);
	if (opened >= 0)
		close(opened);
}

static bool is_open(const struct open_file *k)
{
	struct stat info;

	return k->fd >= 0 && !fstat(k->fd, &info) && info.st_dev == k->device && info.st_ino == k->inode;
}

/* Many programs close all descriptors before they execute another one, which may need these two. */
static bool stays(int f)
{
	return UNLIKELY(f >= 0 && (f == memory.fd || f == library.fd)) && is_open(f == memory.fd ? &memory : &library);
}

EXPORT int close(int f)
{
	if (stays(f))
		return 0;
	return real_close ? real_close(f) : (int)syscall(SYS_close, f);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned a = (unsigned)memory.fd, b = (unsigned)library.fd, keep[] = {a < b ? a : b, a < b ? b : a};
	int r = 0;

	if (!real_range) {
		errno = ENOSYS;
		return -1;
	}
	for (unsigned i = 0; i < 2; i++)
		if (keep[i] >= first && keep[i] <= last && stays((int)keep[i])) {
			if (keep[i] > first)
				r |= real_range(first, keep[i] - 1, flags);
			first = keep[i] + 1; /* first <= last may not hold any more */
			if (first > last)
				return r;
		}
	return r | real_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	unsigned from = first > 0 ? (unsigned)first : 0;

	if (close_range(from, ~0u, 0))
		for (int f = (int)sysconf(_SC_OPEN_MAX); f-- > (int)from;)
			close(f);
}

/* name_for_next returns a name by which the next program finds a file. */
static const char *name_for_next(const struct open_file *k, int mode, char *space)
{
	unsigned n = 0, at = NUMBER_SPACE;
	char digits[NUMBER_SPACE];

	if ((exec_inherited(k->name) < 0 && !access(k->name, mode)) || !is_open(k))
		return k->name;
	set_file(k->fd, F_SETFD, 0);
	digits[--at] = 0;
	for (n = (unsigned)k->fd; n || !digits[at]; n /= 10)
		digits[--at] = (char)('0' + n % 10);
	strcpy(space, BY_NUMBER);
	strcpy(space + sizeof BY_NUMBER - 1, digits + at);
	return space;
}

static void close_at_exec(void)
{
	if (memory.fd >= 0)
		set_file(memory.fd, F_SETFD, FD_CLOEXEC);
	if (library.fd >= 0)
		set_file(library.fd, F_SETFD, FD_CLOEXEC);
}

#define PRELOAD "LD_PRELOAD="
#define RING RING_ENV "="

static size_t count(char *const envp[])
{
	size_t n = 0;

	while (envp && envp[n])
		n++;
	return n;
}

const char *exec_value(char *const envp[], const char *name)
{
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, strlen(name)))
			return *envp + strlen(name);
	return "";
}

/* fill_environment makes list of envp, with the two variables. */
static void fill_environment(char **list, char *const envp[], char *ring, char *preload)
{
	char space[NUMBER_SPACE];
	const char *old = exec_value(envp, PRELOAD), *name = name_for_next(&library, R_OK, space);

	size_t known = strlen(library.name);

	if (!strncmp(old, library.name, known) && (!old[known] || old[known] == ':')) /* a name that cannot be opened is an error */
		old += known + (old[known] == ':');
	strcpy(preload, PRELOAD);
	strcat(preload, name);
	if (*old)
		strcat(preload, ":");
	strcat(preload, old);
	strcpy(ring, RING);
	strcat(ring, name_for_next(&memory, R_OK | W_OK, space));
	for (; envp && *envp; envp++)
		if (strncmp(*envp, PRELOAD, sizeof PRELOAD - 1) && strncmp(*envp, RING, sizeof RING - 1))
			*list++ = *envp;
	*list++ = preload;
	*list++ = ring;
	*list = NULL;
}

/* ENVIRONMENT declares list, the environment of the next program, from envp. */
#define LENGTH(k) (strlen((k).name) + NUMBER_SPACE)
#define ENVIRONMENT(list, envp) \
	char *list[count(envp) + 3], ring_[sizeof RING + LENGTH(memory)], \
		preload_[sizeof PRELOAD + LENGTH(library) + 1 + strlen(exec_value(envp, PRELOAD))]; \
	fill_environment(list, envp, ring_, preload_)

/* ---------------------------------------------------------------- exec */

/* enters says that this process is about to execute a program. It returns the process, 0 if it is
 * not recorded. */
static pid_t enters(const char *path)
{
	pid_t pid = recording() && path ? getpid() : 0;

	if (!pid || (pid != owner && !fixed.children))
		return 0;
	record_exec(pid, path, stamp());
	return pid;
}

/* failed says that it did not, and returns what exec returns. */
static int failed(pid_t pid, int r)
{
	int e = errno;

	if (pid) {
		record_exec(pid, "", 0);
		close_at_exec();
	}
	errno = e;
	return r;
}

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	if (!real_execve)
		return missing();
	pid_t pid = enters(path);
	if (!pid || !library.name)
		return failed(pid, real_execve(path, argv, envp));
	ENVIRONMENT(list, envp);
	return failed(pid, real_execve(path, argv, list));
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	if (!real_execvpe)
		return missing();
	pid_t pid = enters(file);
	if (!pid || !library.name)
		return failed(pid, real_execvpe(file, argv, envp));
	ENVIRONMENT(list, envp);
	return failed(pid, real_execvpe(file, argv, list));
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int f, char *const argv[], char *const envp[])
{
	if (!real_fexecve)
		return missing();
	pid_t pid = enters("(an open file)");
	if (!pid || !library.name)
		return failed(pid, real_fexecve(f, argv, envp));
	ENVIRONMENT(list, envp);
	return failed(pid, real_fexecve(f, argv, list));
}

/* The arguments of execl and others, up to NULL. */
#define ARGUMENTS(argv, list, first) \
	size_t n_ = 1; \
	va_start(list, first); \
	while (va_arg(list, char *)) \
		n_++; \
	va_end(list); \
	char *argv[n_ + 1]; \
	va_start(list, first); \
	argv[0] = (char *)(uintptr_t)first; \
	for (size_t i_ = 1; i_ <= n_; i_++) \
		argv[i_] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
	va_list list;

	ARGUMENTS(argv, list, first);
	va_end(list);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	va_list list;

	ARGUMENTS(argv, list, first);
	va_end(list);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	va_list list;

	ARGUMENTS(argv, list, first);
	char *const *envp = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, envp);
}

/* The number of the child is not known before it runs. */
static int spawn(spawn_fn real, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	char *const argv[], char *const envp[])
{
	bool told = recording() && fixed.children;
	uint64_t before = told ? stamp() : 0;
	pid_t child = 0;
	int e = ENOSYS;

	if (real && told && library.name) {
		ENVIRONMENT(list, envp);
		e = real(&child, path, actions, attributes, argv, list);
		close_at_exec();
	} else if (real)
		e = real(&child, path, actions, attributes, argv, envp);

	if (!e && pid)
		*pid = child;
	if (!e && told && path)
		record_exec(child, path, before);
	return e;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	char *const argv[], char *const envp[])
{
	return spawn(real_spawn, pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	char *const argv[], char *const envp[])
{
	return spawn(real_spawnp, pid, file, actions, attributes, argv, envp);
}
