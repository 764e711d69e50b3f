/*
 * Programs that give up rights, and then allocate in new threads: a filter that kills for
 * one system call (sandbox NUMBER), or for those that browsers forbid (browser), or for all but read, write
 * and exit (strict); another root and user (jail); closed files (closed).
 */
#include "keep.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void *run(void *arg)
{
	for (int i = 0; i < 100; i++)
		keep(100);
	return arg;
}

/* below_a_page allocates where the stack has grown. */
__attribute__((noinline)) static void below_a_page(void)
{
	volatile char page[12345];

	page[0] = 1;
	run((void *)page);
}

static void threads(int n)
{
	pthread_t t[n];

	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, run, NULL))
			_exit(9);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void kill_for(const int *calls, int n)
{
	struct sock_filter f[2 * n + 2];
	int k = 0;

	f[k++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < n; i++) {
		f[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
		f[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	f[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog p = {(unsigned short)k, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		_exit(8);
}

int main(int argc, char **argv)
{
	const char *mode = argv[1];

	for (int i = 0; i < 10; i++)
		keep(50);
	if (!strcmp(mode, "browser")) {
		static const int calls[] = {SYS_openat, SYS_open, SYS_socket, SYS_memfd_create, SYS_prctl, SYS_readlink, SYS_ioctl,
			SYS_kill, SYS_tgkill, SYS_gettid, SYS_getpid, SYS_process_vm_readv, SYS_nanosleep, SYS_clock_gettime};
		/* glibc's malloc opens a file of /sys before its ninth arena, unless it has a limit. */
		if (!mallopt(M_ARENA_MAX, 8))
			_exit(6);
		kill_for(calls, sizeof calls / sizeof *calls);
		threads(20);
	} else if (!strcmp(mode, "strict")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(5);
		below_a_page();
		tell();
		syscall(SYS_exit, 0);
	} else if (!strcmp(mode, "jail")) {
		if (chroot(argv[2]) || chdir("/") || setgid(65534) || setuid(65534))
			_exit(7);
		threads(40);
	} else if (!strcmp(mode, "closed")) {
		for (int i = 3; i < 1024; i++)
			close(i);
		threads(20);
	} else {
		int call = atoi(argv[1]);
		kill_for(&call, 1);
		if (call == SYS_futex) /* which joining a thread needs */
			below_a_page();
		else
			threads(argc > 2 ? atoi(argv[2]) : 1);
	}
	tell();
	_exit(0);
}
