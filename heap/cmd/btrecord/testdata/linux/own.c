/* A program that defines malloc, as one with a static allocator. */
#include "keep.h"

static char arena[8 << 20];
static size_t at;

__attribute__((noinline)) void *malloc(size_t n)
{
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
	v[0] = calloc(10, 20);
	v[1] = realloc(v[0], 777);
	v[2] = from_libc("a string of thirty bytes length");
	dprintf(1, "from_libc 1 32\n");
	tell();
	if (argc > 1)
		sleep(30);
	return v[1] == v[2];
}
