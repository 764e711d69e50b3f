/*
 * Stacks of the program's own, code that it writes, and allocations that do not end.
 */
#include "keep.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static ucontext_t first, fiber[3];

__attribute__((noinline)) static void *deep(int n)
{
	void *volatile p = n ? deep(n - 1) : keep(77);
	return p;
}

static void body(int k)
{
	for (int i = 0; i < 20; i++) {
		deep(5);
		swapcontext(&fiber[k], &first);
	}
}

static void fibers(void)
{
	static void (*const start)(void) = (void (*)(void))body;
	size_t size = 64 << 10;

	for (int k = 0; k < 3; k++) {
		getcontext(&fiber[k]);
		fiber[k].uc_stack.ss_sp = k == 1 ? malloc(size) : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		fiber[k].uc_stack.ss_size = size;
		fiber[k].uc_link = &first;
		makecontext(&fiber[k], start, 1, k);
	}
	for (int i = 0; i < 20; i++)
		for (int k = 0; k < 3; k++)
			swapcontext(&first, &fiber[k]);
}

static void one(void)
{
	keep(64);
}

#ifdef __x86_64__
/* A function that calls its argument, with frames of one size and then of another. */
static void code(void)
{
	unsigned char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int r = 0; r < 6; r++) {
		/* push %rbp; mov %rsp, %rbp; sub $n, %rsp; call *%rdi; leave; ret */
		unsigned char f[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, (unsigned char)(r & 1 ? 0x60 : 0x20), 0xff, 0xd7, 0xc9, 0xc3};
		memcpy(m, f, sizeof f);
		for (int i = 0; i < 10; i++)
			((void (*)(void (*)(void)))m)(one);
	}
}
#else
static void code(void)
{
	for (int i = 0; i < 60; i++)
		one();
}
#endif

static void on(int s)
{
	(void)s;
	keep(200);
}

static sigjmp_buf out;
static volatile long left;

static void leave(int s)
{
	(void)s;
	left++;
	siglongjmp(out, 1);
}

/* With jump.so, whose realloc of 4321 bytes raises a signal, and whose malloc may be left. */
static void jumps(long n)
{
	void *volatile p = NULL;

	signal(SIGUSR1, leave);
	for (volatile long i = 0; i < n; i++)
		if (!sigsetjmp(out, 1))
			p = realloc(p, 4321);
	for (int i = 0; i < 1000; i++)
		keep(30);
	fprintf(stderr, "left %ld times\n", left);
}

int main(int argc, char **argv)
{
	const char *mode = argv[1];

	if (!strcmp(mode, "fibers"))
		fibers();
	else if (!strcmp(mode, "code"))
		code();
	else if (!strcmp(mode, "handler")) {
		signal(SIGUSR1, on);
		raise(SIGUSR1);
	} else if (!strcmp(mode, "jumps"))
		jumps(argc > 2 ? atol(argv[2]) : 1000);
	tell();
	_exit(0);
}
