/* A program that defines malloc, as one with a static allocator. */
#include "keep.h"

static char arena[8 << 20];
static size_t at;
static void *within[2];	/* blocks that the next call of malloc frees, and reallocates */
static void *again;	/* a free block, as large as the next one */

void *realloc(void *p, size_t n);

__attribute__((noinline)) void *malloc(size_t n)
{
	void *released = within[0], *grown = within[1];

	within[0] = within[1] = NULL;
	if (released)
		free(released);
	if (grown)
		realloc(grown, 100);
	if (again) {
		void *p = again;
		again = NULL;
		return p;
	}
	n = (n + 31) & ~(size_t)15;
	if (at + n > sizeof arena)
		return NULL;
	char *p = arena + at;
	at += n;
	*(size_t *)(void *)p = n - 16;
	return p + 16;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *p, size_t n)
{
	void *q = malloc(n);

	if (p && q) {
		size_t had = *(size_t *)(void *)((char *)p - 16);
		memcpy(q, p, had < n ? had : n);
	}
	return q;
}

/* Such functions of an allocator are not exported. */
static void free_private(void *p)
{
	again = p;
}

static void *from_libc(const char *s)
{
	return strdup(s);
}

int main(int argc, char **argv)
{
	void *v[100];

	(void)argv;
	for (int i = 0; i < 100; i++)
		v[i] = keep(1234);
	for (int i = 0; i < 40; i++)
		free(v[i]);
	kept -= 40, kept_bytes -= 40 * 1234;
	keep(50);
	within[0] = v[50];
	within[1] = v[51];
	keep(60);
	kept -= 2, kept_bytes -= 2 * 1234;
	free_private(v[52]);
	kept--, kept_bytes -= 1234;
	keep(1234);
	v[0] = calloc(10, 20);
	v[1] = realloc(v[0], 777);
	v[2] = from_libc("a string of thirty bytes length");
	dprintf(1, "from_libc 1 32\n");
	tell();
	if (argc > 1)
		sleep(30);
	return v[1] == v[2];
}
