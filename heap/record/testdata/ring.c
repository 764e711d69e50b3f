/*
 * Programs that are hard to record: the first argument says which, the second how much
 * of it. Blocks that a test counts have SIZE bytes; each program prints how many it
 * allocated, which is for nothing but the recording to differ from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE 5003

static long counted; /* blocks of SIZE bytes */

__attribute__((noinline)) static void *block(void)
{
	__atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
	void *volatile p = malloc(SIZE);
	return p;
}

__attribute__((noinline)) static void churn(long n)
{
	for (long i = 0; i < n; i++)
		free(block());
}

static void threads(int n, void *(*f)(void *), pthread_attr_t *a)
{
	pthread_t t[n];

	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], a, f, (void *)(uintptr_t)i))
			exit(9);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static long amount;
static volatile int stop;

/* ---------------------------------------------------------------- threads */

static void *getattr(void *arg)
{
	pthread_attr_t a;

	pthread_getattr_np(pthread_self(), &a); /* calls realloc under the thread's lock */
	pthread_attr_destroy(&a);
	churn(10);
	return arg;
}

static void *churns(void *arg)
{
	churn(amount);
	return arg;
}

static void *reallocs(void *arg)
{
	void *p = NULL;
	unsigned x = (unsigned)(uintptr_t)arg + 1;

	while (!stop) {
		x = x * 1664525u + 1013904223u;
		p = realloc(p, 1 + (x >> 8) % 4000);
	}
	free(p);
	return NULL;
}

static pthread_barrier_t barrier;

static void *waits(void *arg)
{
	churn(amount);
	pthread_barrier_wait(&barrier);
	churn(amount);
	return arg;
}

static void *fifo(void *arg)
{
	struct sched_param p = {.sched_priority = 10 + (int)(uintptr_t)arg % 2};

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &p); /* if it may */
	churn(amount);
	return arg;
}

/* ---------------------------------------------------------------- forks */

static void reap(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		exit(9);
}

static int seen(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size;
	++*(int *)arg;
	return 0;
}

static void *loads(void *arg)
{
	int n = 0;

	while (!stop) {
		void *h = dlopen("libz.so.1", RTLD_NOW);
		if (h)
			dlclose(h);
		dl_iterate_phdr(seen, &n);
		churn(1);
	}
	return arg;
}

static ssize_t slow_write(void *cookie, const char *text, size_t n)
{
	(void)cookie, (void)text;
	void *volatile p = malloc(100);
	free(p);
	return (ssize_t)n;
}

static void *flushes(void *arg)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = slow_write});

	while (!stop) {
		fputs("text", f);
		fflush(NULL);
	}
	fclose(f);
	return arg;
}

/* forks has children come and go while other threads are at work. */
static void forks(void *(*f)(void *), int n)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, f, NULL);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (!pid) {
			for (int k = 0; k < 50; k++) {
				void *volatile p = malloc(SIZE + 1);
				free(p);
			}
			_exit(0);
		}
		reap(pid);
		churn(1);
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* ---------------------------------------------------------------- coroutines */

#ifdef __GLIBC__
static ucontext_t home, away;

__attribute__((noinline)) static int deep(int n)
{
	volatile char frame[200];

	frame[0] = (char)n;
	if (n > 0)
		return deep(n - 1) + frame[0];
	churn(3);
	return frame[0];
}

static void coroutine(void)
{
	for (;;) {
		for (int n = 0; n < 12; n++)
			deep(n);
		swapcontext(&away, &home);
	}
}

/* A stack of each size from one page, with nothing, or a guard page, at either end; and then the
 * same again at an address that was a stack before. */
static void coroutines(long n)
{
	char *all = mmap(NULL, 64 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (long i = 0; i < n; i++) {
		int pages = 2 + (int)(i % 8), unmapped = i % 3 == 0;
		char *lo = all + (4 + (i * 7) % 40) * 4096;
		mprotect(lo, (size_t)pages * 4096, PROT_READ | PROT_WRITE);
		if (unmapped)
			munmap(lo + pages * 4096, 4096);
		getcontext(&away);
		away.uc_stack.ss_sp = lo;
		away.uc_stack.ss_size = (size_t)pages * 4096;
		away.uc_link = NULL;
		makecontext(&away, coroutine, 0);
		swapcontext(&home, &away);
		swapcontext(&home, &away);
		mmap(lo, (size_t)(pages + 1) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
}

static void *coroutines_of_thread(void *arg)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&one);
	coroutines(amount);
	pthread_mutex_unlock(&one);
	return arg;
}

#else

static void coroutines(long n) { (void)n; }
static void *coroutines_of_thread(void *arg) { return arg; }

#endif

/* A stack that the walk cannot see the end of: the function below it goes on where
 * nothing can be read. */
static void *switches(void *arg)
{
#if defined(__x86_64__)
	char *all = mmap(NULL, 3 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t top = (uintptr_t)all + (2 << 12);
	void (*f)(long) = churn;
	long n = amount;

	mprotect(all + 4096, 4096, PROT_READ | PROT_WRITE);
	__asm__ volatile("mov %%rsp, %%r12; mov %1, %%rsp; call *%2; mov %%r12, %%rsp"
		: "+D"(n) : "r"(top), "r"(f)
		: "r12", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
#endif
	return arg;
}

/* Threads that share what one of them freed: with one arena and no caches. */
static void *contends(void *arg)
{
	unsigned x = (unsigned)(uintptr_t)arg + 1;
	void *own[16] = {0};

	for (long i = 0; i < amount; i++) {
		x = x * 1664525u + 1013904223u;
		unsigned k = x >> 28;
		if (x >> 16 & 1)
			own[k] = realloc(own[k], 1 + (x >> 8 & 63));
		else {
			free(own[k]);
			own[k] = malloc(1 + (x >> 8 & 63));
		}
	}
	for (int k = 0; k < 16; k++)
		free(own[k]);
	return arg;
}

/* ---------------------------------------------------------------- signals */

static volatile long handled;

static void handler(int sig)
{
	int e = errno;
	void *p = malloc(77); /* not allowed; programs do it */

	(void)sig;
	p = realloc(p, 7777);
	free(p);
	handled++;
	errno = e;
}

/* Signals that come while the allocator is at work would break the program alone: so one
 * that cannot be broken does the work. */
static void signals(long n)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};

	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	churn(n);
	setitimer(ITIMER_REAL, &none, NULL);
}

/* ---------------------------------------------------------------- the stack's use */

static char *painted;

/* How much of a thread's stack was used. */
static void *paints(void *arg)
{
	churn(amount);
	void *p = realloc(NULL, 100);
	p = realloc(p, 200000);
	free(p);
	free(calloc(10, 10));
	return arg;
}

static long used(size_t size)
{
	pthread_t t;
	pthread_attr_t a;
	long n = 0;

	painted = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(painted, 0x5a, size);
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, painted, size);
	if (pthread_create(&t, &a, paints, NULL) || pthread_join(t, NULL))
		exit(9);
	while (painted[n] == 0x5a)
		n++;
	return (long)size - n;
}

__attribute__((noinline)) static int recurse(int n)
{
	volatile int here = n;

	if (n == 0) {
		churn(2);
		return here;
	}
	return recurse(n - 1) + here;
}

static void by_size(long n)
{
	unsigned x = 1;

	for (long i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		void *volatile p = malloc(1 + (x >> 10) % 3000);
		if (i % 2)
			free(p);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_attr_t small;

	amount = argc > 2 ? atol(argv[2]) : 100;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	if (!strcmp(mode, "churn"))
		churn(amount);
	else if (!strcmp(mode, "threads"))
		threads(16, churns, NULL);
	else if (!strcmp(mode, "contend"))
		threads(16, contends, NULL);
	else if (!strcmp(mode, "switch")) {
		threads(2, switches, &small);
		switches(NULL);
	} else if (!strcmp(mode, "getattr"))
		for (long i = 0; i < amount; i++)
			threads(8, getattr, NULL);
	else if (!strcmp(mode, "small"))
		threads(16, churns, &small);
	else if (!strcmp(mode, "fifo")) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(0, &one);
		sched_setaffinity(0, sizeof one, &one);
		threads(4, fifo, NULL);
	} else if (!strcmp(mode, "barrier")) {
		pthread_barrier_init(&barrier, NULL, 200);
		threads(200, waits, &small);
	} else if (!strcmp(mode, "loads"))
		forks(loads, (int)amount);
	else if (!strcmp(mode, "flushes"))
		forks(flushes, (int)amount);
	else if (!strcmp(mode, "reallocs"))
		forks(reallocs, (int)amount);
	else if (!strcmp(mode, "coroutines")) {
		coroutines(amount);
		threads(4, coroutines_of_thread, NULL);
	} else if (!strcmp(mode, "signals"))
		signals(amount);
	else if (!strcmp(mode, "recurse"))
		recurse((int)amount);
	else if (!strcmp(mode, "sizes"))
		by_size(amount);
	else if (!strcmp(mode, "used")) {
		used(1 << 20); /* what is done once */
		fprintf(stderr, "%ld\n", used(1 << 20));
	} else if (!strcmp(mode, "execve")) {
		churn(amount);
		printf("%ld\n", counted);
		fflush(stdout);
		char *args[] = {argv[0], "churn", "7", NULL};
		extern char **environ;
		syscall(SYS_execve, argv[0], args, environ);
	} else if (!strcmp(mode, "execveat")) {
		churn(amount);
		printf("%ld\n", counted);
		fflush(stdout);
		char *args[] = {argv[0], "churn", "7", NULL};
		extern char **environ;
		syscall(SYS_execveat, AT_FDCWD, argv[0], args, environ, 0);
	} else if (!strcmp(mode, "exit_group") || !strcmp(mode, "kill")) {
		churn(amount);
		printf("%ld\n", counted);
		fflush(stdout);
		if (*mode == 'e')
			syscall(SYS_exit_group, 0);
		raise(SIGKILL);
	} else if (!strcmp(mode, "vfork")) {
		churn(amount);
		pid_t pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		reap(pid);
		churn(amount);
	} else if (!strcmp(mode, "fork")) { /* by the C library, and by the kernel alone */
		for (int i = 0; i < (argc > 3 ? 1 : 2); i++) { /* with another argument, not by the kernel alone */
			churn(amount);
			fflush(stdout);
			pid_t pid = i ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
			if (!pid) {
				void *volatile p = malloc(SIZE + 1);
				free(p);
				_exit(0);
			}
			reap(pid);
		}
	} else if (!strcmp(mode, "closed")) {
		for (int i = 3; i < 4096; i++)
			close(i);
		if (chdir("/") || (!geteuid() && (chroot("/proc") || setuid(65534))))
			return 9;
		threads(8, churns, NULL);
	} else if (!strcmp(mode, "limited")) { /* address space and locked memory */
		struct rlimit r = {300 << 20, 300 << 20};
		setrlimit(RLIMIT_AS, &r);
		mlockall(MCL_CURRENT | MCL_FUTURE); /* if it may */
		threads(4, churns, &small);
	} else if (!strcmp(mode, "modules")) {
		for (long i = 0; i < amount; i++) {
			void *h = dlopen(argv[3], RTLD_NOW);
			void (*f)(void *(*)(size_t), size_t) = h ? (void (*)(void *(*)(size_t), size_t))dlsym(h, "plugin") : NULL;
			if (!f)
				return 9;
			f(malloc, SIZE);
			counted++;
			dlclose(h);
		}
	} else
		return 8;
	printf("%ld\n", counted);
	return 0;
}
