/* Programs that are hard to record: the first argument says which. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *keep[1 << 20];

/* churn allocates n blocks of 100 bytes and frees all but every 16th. */
__attribute__((noinline)) static void churn(int n)
{
	for (int i = 0; i < n; i++) {
		void *p = malloc(100);
		if (i % 16)
			free(p);
		else
			keep[i / 16] = p;
	}
}

static void handler(int sig)
{
	(void)sig;
	free(malloc(77)); /* not allowed; programs do it */
}

static void *stress(void *arg)
{
	size_t n = *(size_t *)arg;
	unsigned x = (unsigned)(size_t)pthread_self() | 1;
	void *own[64] = {0};

	while (n--) {
		x = x * 1664525u + 1013904223u;
		unsigned k = x >> 26;
		if (x >> 16 & 1)
			own[k] = realloc(own[k], 1 + (x >> 8 & 255));
		else {
			free(own[k]);
			own[k] = malloc(1 + (x >> 8 & 255));
		}
	}
	for (int k = 0; k < 64; k++)
		free(own[k]);
	return NULL;
}

static volatile int stop;

static void *until_stop(void *arg)
{
	(void)arg;
	while (!stop) {
		void *volatile p = malloc(10);
		free(p);
	}
	return NULL;
}

static void tell(const char *call, size_t a, size_t b, void *p)
{
	printf("%s %zu %zu: %s %d\n", call, a, b, p ? "memory" : "NULL", p ? 0 : errno);
	free(p);
}

/* edges calls everything with sizes and alignments that are none. */
static void edges(void)
{
	static const size_t sizes[] = {0, 1, 100, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX};
	static const size_t aligns[] = {0, 1, 2, 3, 8, 12, 16, 24, 64, 100, 4096, 1 << 20, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		volatile size_t n = sizes[i];
		tell("malloc", n, 0, malloc(n));
		tell("valloc", n, 0, valloc(n));
		tell("pvalloc", n, 0, pvalloc(n));
		tell("realloc of NULL", n, 0, realloc(NULL, n));
		void *p = malloc(10), *q = realloc(p, n);
		tell("realloc", n, 0, q);
		if (!q && n)
			free(p);
		for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			tell("calloc", n, sizes[k], calloc(n, sizes[k]));
			tell("reallocarray", n, sizes[k], reallocarray(NULL, n, sizes[k]));
		}
		for (unsigned k = 0; k < sizeof aligns / sizeof *aligns; k++) {
			volatile size_t a = aligns[k];
			tell("memalign", a, n, memalign(a, n));
			tell("aligned_alloc", a, n, aligned_alloc(a, n));
			p = NULL;
			errno = posix_memalign(&p, a, n);
			tell("posix_memalign", a, n, p);
		}
	}
}

static int deny(int nr, int how)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, (unsigned)how),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {4, f};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;

	if (!strcmp(mode, "churn")) {
		churn((int)n);
	} else if (!strcmp(mode, "addresses")) {
		static void *kept[200];

		for (int i = 0; i < 400; i++) {
			void *p = malloc(10 + i);

			if (i % 2)
				free(p);
			else
				kept[i / 2] = p;
		}
		for (int i = 0; i < 200; i++)
			printf("block %p %d\n", kept[i], 10 + 2 * i);
	} else if (!strcmp(mode, "seccomp-write")) {
		churn(1000);
		if (deny(SYS_write, SECCOMP_RET_ERRNO | EPERM))
			return 9;
		churn((int)n);
		_exit(0); /* nothing can be printed */
	} else if (!strcmp(mode, "seccomp-mmap")) {
		if (deny(SYS_mmap, SECCOMP_RET_ERRNO | EPERM))
			return 9;
		churn((int)n);
	} else if (!strcmp(mode, "close")) {
		churn(1000);
		for (int i = 3; i < 70000; i++)
			close(i);
		churn((int)n);
	} else if (!strcmp(mode, "chdir")) {
		churn(1000);
		for (int i = 3; i < 70000; i++)
			close(i);
		if (chdir("/"))
			return 9;
		churn((int)n);
	} else if (!strcmp(mode, "edges")) {
		edges();
	} else if (!strcmp(mode, "forks")) { /* while threads allocate */
		pthread_t threads[8];

		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, until_stop, NULL);
		for (size_t i = 0; i < n; i++) {
			pid_t pid = fork();
			if (!pid) {
				churn(500);
				_exit(0);
			}
			alarm(300); /* a child that hangs ends the test */
			waitpid(pid, NULL, 0);
			alarm(0);
		}
		stop = 1;
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(mode, "reuse")) { /* its file on our descriptor's number */
		for (int i = 3; i < 70000; i++)
			close(i);
		int f = open(argv[3], O_RDWR | O_CREAT, 0600);
		for (int i = 4; i < 1100; i++)
			dup2(f, i);
		churn((int)n);
	} else if (!strcmp(mode, "descriptor")) { /* the last one that there is */
		if (open("/dev/null", O_RDONLY) < 0)
			return 9;
		churn((int)n);
	} else if (!strcmp(mode, "descriptor-later")) {
		churn((int)n);
		int f = open("/dev/null", O_RDONLY);
		if (f != 3)
			return 9;
		close(f);
	} else if (!strcmp(mode, "fork")) {
		churn(1600);
		pid_t pid = fork();
		if (!pid) {
			churn(3200);
			exit(0);
		}
		waitpid(pid, NULL, 0);
		printf("%d\n", (int)pid);
	} else if (!strcmp(mode, "rawfork")) {
		churn((int)n);
		pid_t pid = (pid_t)syscall(SYS_fork);
		churn((int)n);
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	} else if (!strcmp(mode, "vfork")) {
		churn(1600);
		pid_t pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
		churn(1600);
	} else if (!strcmp(mode, "exec")) {
		churn(1600);
		execl(argv[0], argv[0], "churn", "3200", (char *)NULL);
	} else if (!strcmp(mode, "chdirexec")) {
		churn(1600);
		if (chdir("/"))
			return 9;
		execl(argv[0], argv[0], "churn", "3200", (char *)NULL);
	} else if (!strcmp(mode, "execfails")) {
		churn(1600);
		execl("/nonexistent", "x", (char *)NULL);
		churn(1600);
	} else if (!strcmp(mode, "_exit")) {
		churn((int)n);
		_exit(0);
	} else if (!strcmp(mode, "exit_group")) {
		churn((int)n);
		syscall(SYS_exit_group, 0);
	} else if (!strcmp(mode, "rawexec")) {
		char *args[] = {argv[0], "churn", "3200", NULL};
		churn(1600);
		syscall(SYS_execve, argv[0], args, environ);
	} else if (!strcmp(mode, "execveat")) {
		char *args[] = {argv[0], "churn", "3200", NULL};
		churn(1600);
		syscall(SYS_execveat, AT_FDCWD, argv[0], args, environ, 0);
	} else if (!strcmp(mode, "longname")) { /* argv[0] of 1,000 characters, 3,000 arguments */
		static char name[1001], *args[3003];
		memset(name, '~', 1000);
		args[0] = name;
		args[1] = "churn";
		args[2] = "3200";
		for (int i = 3; i < 3000; i++)
			args[i] = "argument";
		execv(argv[0], args);
	} else if (!strcmp(mode, "inherit")) { /* the child frees half of what it has of its parent */
		churn(1600);
		pid_t pid = fork();
		if (!pid) {
			for (int i = 0; i < 50; i++)
				free(keep[i]);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		printf("%d\n", (int)pid);
	} else if (!strcmp(mode, "sizes")) { /* blocks of sizes from 16 to 64 KB, a MB of each */
		for (int size = 16, at = 0; size <= 65536; size *= 2)
			for (int i = 0; i < (1 << 20) / size; i++)
				keep[at++] = malloc((size_t)size);
	} else if (!strcmp(mode, "quick_exit")) {
		churn((int)n);
		quick_exit(0);
	} else if (!strcmp(mode, "crash")) {
		churn((int)n);
		raise(SIGSEGV);
	} else if (!strcmp(mode, "kill")) {
		churn((int)n);
		raise(SIGKILL);
	} else if (!strcmp(mode, "abort")) {
		churn((int)n);
		abort();
	} else if (!strcmp(mode, "wait")) {
		churn((int)n);
		printf("ready\n");
		fflush(stdout);
		(void)!read(0, keep + 1000000, 1);
	} else if (!strcmp(mode, "signals")) {
		struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
		sigaction(SIGALRM, &a, NULL);
		timer_t t;
		struct itimerspec once = {{0, 0}, {0, 100000}};
		timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1}, &t);
		for (int i = 0; i < 20; i++) { /* where a dump takes long, signals at an interval would leave no time between */
			timer_settime(t, 0, &once, NULL);
			churn((int)n);
		}
		timer_delete(t);
	} else if (!strcmp(mode, "threads")) {
		pthread_t t[24];
		for (int i = 0; i < 24; i++)
			if (pthread_create(&t[i], NULL, stress, &n))
				return 9;
		for (int i = 0; i < 24; i++)
			pthread_join(t[i], NULL);
	} else if (!strcmp(mode, "peak")) {
		for (int i = 0; i < 1000; i++)
			keep[i] = malloc(1000);
		for (int i = 0; i < 990; i++)
			free(keep[i]);
		for (int i = 0; i < 500; i++)
			keep[i] = malloc(1000);
	} else if (!strcmp(mode, "slow")) {
		for (int i = 0; i < 40; i++) {
			keep[i] = malloc(1000);
			usleep(10000);
		}
	} else
		return 8;
	printf("done\n");
	return 0;
}
