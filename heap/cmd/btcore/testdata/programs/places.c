/* 20 blocks of 200 bytes are held from the place that CASE names, and nowhere else; 12 blocks of 96 bytes are leaked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define HELD 20
#define INLINE __attribute__((noinline))

static INLINE void clear(void) { volatile char b[9000]; for (int i = 0; i < 9000; i++) b[i] = 0; }
static void *held(void) { return memset(malloc(200), 1, 200); }
static INLINE void fill(void **to) { for (int i = 0; i < HELD; i++) to[i] = held(); }
static INLINE void leak(void) { for (int i = 0; i < 12; i++) *(volatile char *)malloc(96) = 1; }
static void *anonymous(size_t n) { return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* In the last words of a page of mmap that is next to others. */
void **g_page;
static INLINE void mapped(void) { g_page = (void **)((char *)anonymous(65536) + 60000); fill(g_page); }

/* In memory that is read-only by now. */
static INLINE void read_only(void) { fill(g_page = anonymous(4096)); mprotect(g_page, 4096, PROT_READ); }

/* On the stack of a thread that waits. */
static pthread_barrier_t ready;
static void *waits(void *unused)
{
	void *volatile mine[HELD];
	(void)unused;
	fill((void **)mine);
	pthread_barrier_wait(&ready);
	for (;;) pause();
	return (void *)mine[0];
}
static void start(void *(*f)(void *), int n)
{
	pthread_t t;
	pthread_barrier_init(&ready, NULL, n + 1);
	for (int i = 0; i < n; i++) pthread_create(&t, NULL, f, NULL);
	pthread_barrier_wait(&ready);
}
static INLINE void thread_stack(void) { start(waits, 1); }

/* In a register of each thread that the code never stores. */
static volatile int running;
static void *spins(void *unused)
{
	void *p = held();
	(void)unused;
	clear();
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%r12\n\txor %0, %0\n\txor %%eax, %%eax\n\txor %%edi, %%edi\n\txor %%edx, %%edx\n\txor %%ecx, %%ecx\n\t"
		"lock incl %1\n1:\tpause\n\tjmp 1b" : "+r"(p) : "m"(running) : "r12", "rax", "rdi", "rdx", "rcx", "memory");
#elif defined __riscv
	__asm__ volatile("mv s5, %0\n\tli %0, 0\n\tli a0, 0\n\tli t0, 1\n\tamoadd.w zero, t0, (%1)\n1:\tj 1b" : "+r"(p) : "r"(&running) : "s5", "a0", "t0", "memory");
#endif
	return p;
}
static INLINE void registers(void)
{
	pthread_t t;
	for (int i = 0; i < HELD; i++) pthread_create(&t, NULL, spins, NULL);
	while (running < HELD) usleep(1000);
}

/* In thread-local variables of a library that dlopen loaded, of this thread and another one. */
static void *g_library;
static void *locals(void *arg)
{
	void **(*mine)(void) = (void **(*)(void))dlsym(g_library, "mine");
	for (int i = 0; i < HELD / 2; i++) mine()[i] = held();
	clear();
	if (arg) return NULL;
	pthread_barrier_wait(&ready);
	for (;;) pause();
}
static INLINE void library(void) { g_library = dlopen("./local.so", RTLD_NOW); locals(&g_library); start(locals, 1); }

/* On the stack of a coroutine that has been left: mapped, of malloc, or in the frame of main, above the frames that hold the others. */
static ucontext_t here, there;
static void yields(void)
{
	void *volatile mine[HELD];
	fill((void **)mine);
	swapcontext(&there, &here);
	abort();
}
static INLINE void enter(void *stack, size_t n, void (*f)(void))
{
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = n;
	makecontext(&there, f, 0);
	swapcontext(&here, &there);
}
static INLINE void coroutine(void) { enter(anonymous(65536), 65536, yields); }
static INLINE void coroutine_malloc(void) { enter(malloc(30000), 30000, yields); }

static void crashes(void) { leak(); clear(); abort(); }

/* The program aborts in a thread whose stack is next to a pool that was mapped later: the kernel joins them. */
static void *crashes_there(void *unused)
{
	volatile char deep[20000];
	deep[0] = 1;
	crashes();
	return unused;
}
static INLINE void joined(void)
{
	char *both = anonymous(2 << 20);
	munmap(both, 2 << 20);
	char *stack = mmap(both + (1 << 20), 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	void **pool = mmap(both, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	pthread_attr_t a;
	pthread_t t;
	fill(pool + 3);
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, stack, 1 << 20);
	pthread_create(&t, &a, crashes_there, NULL);
	for (;;) pause();
}

/* The program aborts in a coroutine whose stack is a variable of main, or in a signal handler there: the pointers are in frames of
   functions that main called, below it. */
static char *g_low;
static INLINE void holds_then(void (*f)(void))
{
	void *volatile mine[HELD];
	fill((void **)mine);
	f();
	g_low = (char *)mine[3];
}
static INLINE void enters(void) { enter(g_low, 30000, crashes); }
static INLINE void coroutine_in_frame(void) { char stack[30000]; g_low = stack; holds_then(enters); }
static void handler(int n) { (void)n; crashes(); }
static void on_stack(void *stack, size_t n)
{
	stack_t s = { .ss_sp = stack, .ss_size = n };
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&s, NULL);
	sigaction(SIGUSR1, &a, NULL);
}
static INLINE void raises(void) { raise(SIGUSR1); }
static INLINE void handler_mapped(void) { on_stack(anonymous(65536), 65536); holds_then(raises); }
static INLINE void handler_in_frame(void) { char stack[20000]; on_stack(stack, sizeof stack); holds_then(raises); }

/* A child process that fork made: its memory is a copy. */
void *g_parents[HELD];
static INLINE void child(void)
{
	fill(g_parents);
	pid_t pid = fork();
	if (pid > 0) { waitpid(pid, NULL, 0); _exit(0); }
}

/* Only a pipe has the addresses. */
static INLINE void in_pipe(void)
{
	int fd[2];
	void *p[HELD];
	if (pipe(fd)) abort();
	fill(p);
	if (write(fd[1], p, sizeof p) != sizeof p) abort();
	memset(p, 0, sizeof p);
	__asm__ volatile("" : : "r"(p) : "memory");
}

int main(void)
{
	CASE();
	leak();
	clear();
	abort();
}
