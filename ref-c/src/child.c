/* Runs calls that may crash or never return in a forked child. */
#include "btref.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void
die(const char *what)
{
	perror(what);
	exit(EXIT_SELF);
}

void
write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t w = write(fd, at, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			_exit(EXIT_SELF);
		at += w;
		n -= (size_t)w;
	}
}

static void
collect(struct outcome *o, int fd)
{
	char spare[256];

	o->len = 0;
	for (;;) {
		size_t room = sizeof(o->data) - o->len;
		ssize_t r = read(fd, room ? (void *)(o->data + o->len) : spare,
				 room ? room : sizeof(spare));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			die("btref: reading from a child");
		if (r == 0)
			return;
		if (room)
			o->len += (size_t)r;
	}
}

void
child_run(struct outcome *o, int (*fn)(void *arg, int fd), void *arg, unsigned int seconds)
{
	int fds[2], status;
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	if (pipe(fds))
		die("btref: pipe");
	pid = fork();
	if (pid < 0)
		die("btref: fork");
	if (!pid) {
		int code;

		close(fds[0]);
		signal(SIGALRM, SIG_DFL);
		alarm(seconds);
		code = fn(arg, fds[1]);
		fflush(stdout);
		_exit(code);
	}

	close(fds[1]);
	collect(o, fds[0]);
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("btref: waitpid");
	if (WIFSIGNALED(status)) {
		o->code = WTERMSIG(status);
		o->how = o->code == SIGALRM ? CHILD_HANG : CHILD_SIGNAL;
	} else {
		o->code = WEXITSTATUS(status);
		o->how = CHILD_DONE;
	}
}

const char *
signal_name(int sig, char buf[16])
{
	switch (sig) {
	case SIGABRT: return "SIGABRT";
	case SIGBUS: return "SIGBUS";
	case SIGFPE: return "SIGFPE";
	case SIGILL: return "SIGILL";
	case SIGSEGV: return "SIGSEGV";
	case SIGTRAP: return "SIGTRAP";
	}
	snprintf(buf, 16, "SIG%d", sig);
	return buf;
}
