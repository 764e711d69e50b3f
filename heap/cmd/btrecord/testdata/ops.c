/*
 * Carries out the operations of a script (standard input), one a line:
 *
 *   OP SLOT SIZE PATH
 *
 * OP is a letter below, in upper case to be carried out in a thread of its own;
 * PATH is the functions to call on the way, digits. Prints what is in each slot at
 * the end: SLOT ADDRESS SIZE. It allocates nothing else.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 256

static struct {
	void *p;
	size_t size;
	char path[64];
	char op;
} slots[SLOTS];

static char op;
static unsigned slot;
static size_t size;

/* Each calls its allocator from a place of its own. */
__attribute__((noinline)) void act(void)
{
	void *p = slots[slot].p, *q = NULL;

	switch (op) {
	case 'm': q = malloc(size); break;
	case 'c': q = calloc(3, (size + 2) / 3); size = (size + 2) / 3 * 3; break;
	case 'r': q = realloc(p, size); break;
	case 'y': q = reallocarray(p, 2, (size + 1) / 2); size = (size + 1) / 2 * 2; break;
	case 'a': q = aligned_alloc(64, size); break;
	case 'g': q = memalign(128, size); break;
	case 'p': if (posix_memalign(&q, 256, size)) abort(); break;
	case 'v': q = valloc(size); break;
	case 'f': free(p); size = 0; break;
	case 'd': q = NULL; q = strdup("twelve bytes"); size = 13; break;
	}
	if (op != 'f' && !q)
		abort();
	slots[slot].p = q;
	slots[slot].size = size;
	slots[slot].op = op;
}

static void step(const char *path);

#define F(n) \
	__attribute__((noinline)) void f##n(const char *path) \
	{ \
		volatile char room[n * 24 + 8]; \
		room[0] = *path; \
		step(path); \
		room[0] = 0; \
	}
F(0) F(1) F(2) F(3) F(4) F(5) F(6)

/* one whose frame is of a size not known beforehand */
__attribute__((noinline)) void f7(const char *path)
{
	volatile char *room = __builtin_alloca(strlen(path) * 16 + 16);

	room[0] = *path;
	step(path);
	room[0] = 0;
}

/* and one that aligns its frame */
__attribute__((noinline)) void f8(const char *path)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[0] = *path;
	step(path);
	room[0] = 0;
}

__attribute__((noinline)) static void step(const char *path)
{
	static void (*const f[])(const char *) = {f0, f1, f2, f3, f4, f5, f6, f7, f8};

	if (*path >= '0' && *path <= '8')
		f[*path - '0'](path + 1);
	else
		act();
	__asm__ volatile("");
}

static void *thread(void *path)
{
	step(path);
	return NULL;
}

int main(void)
{
	static char in[1 << 16], out[1 << 16];
	char path[64], letter;

	setvbuf(stdin, in, _IOFBF, sizeof in);
	setvbuf(stdout, out, _IOFBF, sizeof out);
	while (scanf(" %c %u %zu %63s", &letter, &slot, &size, path) == 4) {
		op = letter | 32;
		strcpy(slots[slot].path, path);
		if (letter == op)
			step(path);
		else {
			pthread_t t;
			if (pthread_create(&t, NULL, thread, path) || pthread_join(t, NULL))
				abort();
		}
	}
	for (unsigned i = 0; i < SLOTS; i++)
		if (slots[i].p)
			printf("%u %p %zu\n", i, slots[i].p, slots[i].size);
	fflush(stdout);
	return 0;
}
