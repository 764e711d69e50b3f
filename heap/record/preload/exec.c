/*
 * Programs that the process executes. The new program may not load the library: a static one, one
 * that gains privileges, one in another namespace. So the old one says what it executes, and
 * btrecord compares this with the programs that begin. This also runs in the child of a vfork,
 * which has the memory of its parent.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include "process.h"

typedef int (*exec_fn)(const char *, char *const[], char *const[]);
typedef int (*fexec_fn)(int, char *const[], char *const[]);
typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

static exec_fn real_execve, real_execvpe;
static fexec_fn real_fexecve;
static spawn_fn real_spawn, real_spawnp;

/* The child of a vfork may not call dlsym. */
void exec_start(void)
{
	real_execve = (exec_fn)dlsym(RTLD_NEXT, "execve");
	real_execvpe = (exec_fn)dlsym(RTLD_NEXT, "execvpe");
	real_fexecve = (fexec_fn)dlsym(RTLD_NEXT, "fexecve");
	real_spawn = (spawn_fn)dlsym(RTLD_NEXT, "posix_spawn");
	real_spawnp = (spawn_fn)dlsym(RTLD_NEXT, "posix_spawnp");
}

static inline bool recording(void)
{
	return (gate->ring || begin()) && !self.strict;
}

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
	if (pid)
		record_exec(pid, "", 0);
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
	return failed(pid, real_execve(path, argv, envp));
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
	return failed(pid, real_execvpe(file, argv, envp));
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
	return failed(pid, real_fexecve(f, argv, envp));
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
	int e = real ? real(&child, path, actions, attributes, argv, envp) : ENOSYS;

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
