/* Of each case of CASES, 4 blocks of 200 bytes and 16 times its number are held in the way of the case, and in no other; so are all
 * others but 12 blocks of 96 bytes, which are leaked. The cases of ENCODED are limits of any search. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HELD 4
#define INLINE __attribute__((noinline))
#ifdef FREERTOS
void *pvPortMalloc(size_t);
void setup(void);
#define malloc pvPortMalloc
#else
#define setup()
#endif

static size_t size = 200;
static void *get(size_t n) { return memset(malloc(n), 1, n); }
static void *held(void) { return get(size); }
static INLINE void clear(void) { volatile char b[3000]; for (int i = 0; i < 3000; i++) b[i] = 0; }
static void fill(void **to) { for (int i = 0; i < HELD; i++) to[i] = held(); }

/* In the low bits of the pointers are flags, as in red-black trees. */
uintptr_t g_tagged[HELD];
static INLINE void tagged(void) { for (int i = 0; i < HELD; i++) g_tagged[i] = (uintptr_t)held() | (i % 3 + 1); }

char *g_inside[HELD], *g_end[HELD];
static INLINE void inside(void) { for (int i = 0; i < HELD; i++) g_inside[i] = (char *)held() + 1 + i * 50; }
static INLINE void end(void) { for (int i = 0; i < HELD; i++) g_end[i] = (char *)held() + size; }
struct { char *end; size_t n; } g_vectors[HELD];
static INLINE void vector(void)
{
	for (int i = 0; i < HELD; i++) {
		g_vectors[i].n = size;
		g_vectors[i].end = (char *)held() + size;
	}
}
union { void *p; double d; uint16_t w[4]; } g_unions[2 * HELD];
static INLINE void unions(void)
{
	for (int i = 0; i < HELD; i++) {
		g_unions[2 * i].p = held();
		g_unions[2 * i + 1].d = 3.5 * i;
	}
}

struct __attribute__((packed)) { uint8_t kind; void *p; uint16_t n; } g_packed[HELD];
static INLINE void packed(void)
{
	for (int i = 0; i < HELD; i++) {
		g_packed[i].kind = i;
		g_packed[i].p = held();
		g_packed[i].n = 300 + i;
	}
}
struct __attribute__((packed)) packed_link { uint8_t kind; struct packed_link *next; } *g_packed_list;
static INLINE void packed_list(void)
{
	for (int i = 0; i < HELD; i++) {
		struct packed_link *x = held();
		x->kind = i;
		x->next = g_packed_list;
		g_packed_list = x;
	}
}

double *g_from_one[HELD];
static INLINE void from_one(void) { for (int i = 0; i < HELD; i++) g_from_one[i] = (double *)held() - 1; }

/* Only a pointer into its last block holds a ring. */
struct ring { struct ring *next; };
char *g_ring;
static INLINE void ring(void)
{
	struct ring *first = held(), *x = first;
	for (int i = 1; i < HELD; i++)
		x = x->next = held();
	x->next = first;
	g_ring = (char *)x + 150;
}

/* The caller has an address aligned to 32 bytes; the block's own is in front of it. */
void *g_aligned[HELD];
static INLINE void aligned(void)
{
	for (int i = 0; i < HELD; i++) {
		char *raw = held(), *p = (char *)(((uintptr_t)raw + sizeof raw + 31) & ~(uintptr_t)31);
		((void **)p)[-1] = raw;
		g_aligned[i] = p;
	}
}

/* In the last word of blocks, in the one before a part of one, and in blocks of a word. */
void **g_last[HELD], **g_cut[HELD], **g_word[HELD];
static INLINE void last_words(void)
{
	for (int i = 0; i < HELD; i++) {
		g_last[i] = get(18 * sizeof(void *));
		g_last[i][17] = held();
		g_cut[i] = get(18 * sizeof(void *) - 2);
		g_cut[i][16] = held();
		g_word[i] = get(sizeof(void *));
		g_word[i][0] = held();
	}
}

struct xor { uintptr_t link; } *g_xor;
static INLINE void xored(void)
{
	struct xor *before = NULL, *x = g_xor = held();
	x->link = 0;
	for (int i = 1; i < HELD; i++) {
		struct xor *next = held();
		x->link = (uintptr_t)before ^ (uintptr_t)next;
		next->link = (uintptr_t)x;
		before = x, x = next;
	}
}
char *g_base;
uint16_t g_offsets[HELD];
static INLINE void offsets(void)
{
	g_base = get(64);
	for (int i = 0; i < HELD; i++)
		g_offsets[i] = (uint16_t)((char *)held() - g_base);
}

#define CASES X(tagged) X(inside) X(end) X(vector) X(unions) X(packed) X(packed_list) X(from_one) X(ring) X(aligned) X(last_words) HOSTED
#define ENCODED X(xored) X(offsets)

#ifdef BARE
#define HOSTED
void halted(void);
static void stop(void) { halted(); for (;;) ; }
#else
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define HOSTED X(boxed) X(shared) X(memory_file) X(local) X(specific) X(cleanups) X(results) X(jumps) X(vector_registers) X(red_zone) X(usable) X(by_libc)
static void stop(void) { abort(); }

/* In 48 bits below a tag, as in NaN-boxed values. */
uint64_t g_boxed[HELD];
static INLINE void boxed(void) { for (int i = 0; i < HELD; i++) g_boxed[i] = (uintptr_t)held() | (uint64_t)(0xfff9 + i) << 48; }

static INLINE void shared(void) { fill(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)); }
static INLINE void memory_file(void)
{
	int fd = memfd_create("file", 0);
	if (ftruncate(fd, 8192))
		exit(1);
	fill(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static pthread_barrier_t ready;
static void start(void *(*f)(void *), int n)
{
	pthread_t t;
	pthread_barrier_init(&ready, NULL, n + 1);
	for (int i = 0; i < n; i++)
		pthread_create(&t, NULL, f, NULL);
	pthread_barrier_wait(&ready);
}
static void waits(void)
{
	clear();
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
}

/* In thread-local variables of another thread, and as its values of keys. */
__thread void *t_local[HELD];
static void *locals(void *unused) { fill(t_local); waits(); return unused; }
static INLINE void local(void) { start(locals, 1); }
static pthread_key_t keys[20 + HELD];
static void *specifics(void *unused)
{
	for (int i = 0; i < HELD; i++)
		pthread_setspecific(keys[20 + i], held());
	waits();
	return unused;
}
static INLINE void specific(void)
{
	for (int i = 0; i < 20 + HELD; i++)
		pthread_key_create(&keys[i], NULL);
	start(specifics, 1);
}

/* By a handler for the end of a thread, and as results of threads that have ended. */
static void *cleaned(void *unused)
{
	pthread_cleanup_push(free, held());
	waits();
	pthread_cleanup_pop(1);
	return unused;
}
static INLINE void cleanups(void) { start(cleaned, HELD); }
static volatile int running;
static void *result(void *unused)
{
	void *p = held();
	(void)unused;
	clear();
	__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
	return p;
}
static pthread_t g_ended[HELD];
static INLINE void results(void)
{
	for (int i = 0; i < HELD; i++)
		pthread_create(&g_ended[i], NULL, result, NULL);
	while (running < HELD)
		usleep(1000);
	usleep(20000);
}

#ifdef __x86_64__
/* In a register that setjmp saved. */
jmp_buf g_jumps[HELD];
static INLINE void jumps(void)
{
	for (int i = 0; i < HELD; i++) {
		__asm__ volatile("mov %0, %%r13" : : "r"(held()) : "r13");
		if (setjmp(g_jumps[i]))
			abort();
	}
}

/* In vector registers, and below the stack pointer, of threads. */
#define SPIN "xor %0, %0\n\txor %1, %1\n\txor %%eax, %%eax\n\txor %%edi, %%edi\n\txor %%edx, %%edx\n\txor %%ecx, %%ecx\n\tlock incl %2\n1:\tpause\n\tjmp 1b"
static void *in_vectors(void *unused)
{
	void *p = held(), *q = held();
	clear();
	__asm__ volatile("movq %0, %%xmm9\n\tmovq %1, %%xmm3\n\tpunpcklqdq %%xmm3, %%xmm9\n\tpxor %%xmm3, %%xmm3\n\t" SPIN
		: "+r"(p), "+r"(q) : "m"(running) : "rax", "rdi", "rdx", "rcx", "memory");
	return unused;
}
static void *below(void *unused)
{
	void *p = held(), *q = held();
	clear();
	__asm__ volatile("mov %0, -112(%%rsp)\n\tmov %1, -24(%%rsp)\n\t" SPIN : "+r"(p), "+r"(q) : "m"(running) : "rax", "rdi", "rdx", "rcx", "memory");
	return unused;
}
static void spin(void *(*f)(void *))
{
	pthread_t t;
	running = 0;
	for (int i = 0; i < HELD / 2; i++)
		pthread_create(&t, NULL, f, NULL);
	while (running < HELD / 2)
		usleep(1000);
}
static INLINE void vector_registers(void) { spin(in_vectors); }
static INLINE void red_zone(void) { spin(below); }
#else
static void jumps(void) {}
static void vector_registers(void) {}
static void red_zone(void) {}
#endif

/* Behind the requested bytes, where the program may write by malloc_usable_size. */
void **g_usable[HELD];
static INLINE void usable(void)
{
	for (int i = 0; i < HELD; i++) {
		void **p = malloc(150);
		size_t n = malloc_usable_size(p);
		memset(p, 1, n);
		p[n / sizeof *p - 1] = held();
		g_usable[i] = p;
	}
}

/* By the C library: the buffer of a file, and variables of the environment. */
static INLINE void by_libc(void)
{
	FILE *f = fopen("/dev/null", "w");
	setvbuf(f, held(), _IOFBF, 200);
	fputc(1, f);
	for (int i = 1; i < HELD; i++) {
		char *e = held();
		memset(e, 'a', size - 1);
		e[i] = '=';
		e[size - 1] = 0;
		putenv(e);
	}
}
#endif

int main(void)
{
	setup();
#define X(f) f(), size += 16;
	CASES
	ENCODED
	for (int i = 0; i < 12; i++)
		get(96);
	clear();
	stop();
}
