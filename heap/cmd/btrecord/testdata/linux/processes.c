/*
 * Processes that outlive their parent, or are made in unusual ways.
 */
#include "keep.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void some(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		keep(size);
}

static int leaf(void *arg)
{
	(void)arg;
	execl("/proc/self/exe", "processes", "leaf", (char *)NULL);
	_exit(9);
}

static void reap(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
		_exit(8);
}

static void forget(void) /* what the parent kept is not the child's */
{
	kept = kept_bytes = 0;
}

static void many_ways(void)
{
	static char stack[65536];
	char *args[] = {"processes", "leaf", NULL};
	pid_t pid;

	keep(500);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ))
		_exit(7);
	reap(pid);
	if (!(pid = vfork()))
		leaf(NULL);
	reap(pid);
	reap(clone(leaf, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	if (!(pid = fork())) {
		malloc(333);
		leaf(NULL);
	}
	reap(pid);
	if (!(pid = (pid_t)syscall(SYS_fork))) {
		forget();
		some(50, 444);
		tell();
		_exit(3);
	}
	reap(pid);
	if (!(pid = fork())) {
		setsid();
		if (fork())
			_exit(3);
		forget();
		usleep(200000);
		some(60, 555);
		tell();
		_exit(0);
	}
	reap(pid);
	if (WEXITSTATUS(system("exit 5")) != 5)
		_exit(6);
	tell();
}

int main(int argc, char **argv)
{
	const char *mode = argv[1];
	unsigned pause = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	if (!strcmp(mode, "leaf")) {
		some(100, 20);
		tell();
		return 3;
	} else if (!strcmp(mode, "ways")) {
		many_ways();
	} else if (!strcmp(mode, "daemon")) { /* its first allocation may be late */
		keep(77);
		tell();
		forget();
		if (daemon(1, 1))
			return 2;
		usleep(pause);
		some(50, 100);
		tell();
	} else if (!strcmp(mode, "init")) { /* the first of a PID namespace: its end kills the others */
		keep(77);
		tell();
		forget();
		if (!fork()) {
			if (daemon(1, 1))
				_exit(2);
			some(50, 100);
			tell();
			_exit(0);
		}
		while (wait(NULL) > 0)
			;
	} else if (!strcmp(mode, "namespace")) {
		keep(10);
		tell();
		forget();
		if (unshare(CLONE_NEWPID))
			return 77;
		pid_t pid = fork();
		if (!pid) {
			some(100, 100);
			tell();
			_exit(3);
		}
		reap(pid);
	} else if (!strcmp(mode, "spawns")) { /* without the environment that the library needs */
		char *none[] = {NULL};
		for (int i = 0; i < 40; i++) {
			char *args[] = {"true", NULL};
			pid_t pid;
			if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, i % 2 ? none : environ) || waitpid(pid, NULL, 0) != pid)
				return 2;
		}
	} else if (!strcmp(mode, "clones")) { /* each is the first of its own PID namespace */
		tell();
		for (int i = 0; i < 8; i++) {
			pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
			if (pid < 0)
				return 77;
			if (!pid) {
				some(100, 7);
				tell();
				_exit(3);
			}
		}
		while (wait(NULL) > 0)
			;
	} else { /* ends */
		some(1000, 100);
		tell();
		if (!strcmp(mode, "kill"))
			kill(getpid(), SIGKILL);
		if (!strcmp(mode, "abort"))
			abort();
		if (!strcmp(mode, "segv"))
			*(volatile int *)0 = 1;
		if (!strcmp(mode, "execfails"))
			execl("/nonexistent", "x", (char *)NULL);
		_exit(7);
	}
	return 0;
}
