/*
 * As the zygote of a browser and the master of a mail server: it forks a helper, which makes children on request. These drop
 * their rights, close all files, and execute a program with an environment of their own; or are the first
 * of a PID namespace, in another root; or do nothing else.
 */
#include "keep.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { END, EXECUTES, CONFINED, PLAIN };

static int drop(void)
{
	return setgroups(0, NULL) || setgid(65534) || setuid(65534);
}

static void child(int kind)
{
	char *env[] = {"MASTER=1", NULL};

	for (int i = 0; i < 10; i++)
		keep(100);
	if (kind == EXECUTES) {
		tell();
		closefrom(3);
		if (!drop())
			execle("/proc/self/exe", "zygote", "leaf", (char *)NULL, env);
		_exit(1);
	}
	if (kind == CONFINED) {
		if (chroot("/proc/self/fdinfo") || chdir("/") || drop() || prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			_exit(1);
		for (int i = 0; i < 30; i++)
			keep(1000);
	}
	tell();
	_exit(0);
}

static void helper(int requests, int answers)
{
	int kind, status;

	while (read(requests, &kind, sizeof kind) == sizeof kind && kind != END) {
		unsigned long flags = (kind == CONFINED ? CLONE_NEWPID | CLONE_NEWNET : 0) | SIGCHLD;
		pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
		if (pid == 0)
			child(kind);
		if (waitpid(pid, &status, 0) != pid || write(answers, &status, sizeof status) != sizeof status)
			_exit(1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int request[2], answer[2], status, end = END;

	for (int i = 0; i < 20; i++)
		keep(500);
	tell();
	if (argc > 1 && !strcmp(argv[1], "leaf"))
		return 0;
	if (geteuid() || unshare(CLONE_NEWNET))
		return 77;
	if (pipe(request) || pipe(answer))
		return 1;
	kept = kept_bytes = 0; /* of the children */
	if (!fork())
		helper(request[0], answer[1]);
	for (int i = 0; i < 6; i++) {
		int kind = EXECUTES + i % 3;
		if (write(request[1], &kind, sizeof kind) != sizeof kind || read(answer[0], &status, sizeof status) != sizeof status || status)
			return 2;
	}
	if (write(request[1], &end, sizeof end) != sizeof end)
		return 3;
	wait(NULL);
	return 0;
}
