/*
 * An allocator in the same file as its caller: with -O2 the caller keeps values in registers that
 * malloc does not change, though it may.
 */
#include <stddef.h>
#include <stdio.h>

static char arena[1 << 20];
static size_t used;

__attribute__((noinline)) void *malloc(size_t n)
{
	char *p = arena + used;

	used += (n + 15) & ~(size_t)15;
	return p;
}

__attribute__((noinline)) void free(void *p)
{
	if (p)
		*(char *)p = 0;
}

__attribute__((noinline)) void *calloc(size_t n, size_t size)
{
	char *p = arena + used;

	used += (n * size + 15) & ~(size_t)15;
	return p;
}

__attribute__((noinline)) void *realloc(void *old, size_t n)
{
	char *p = arena + used;

	used += (n + 15) & ~(size_t)15;
	return old ? NULL : p;
}

static volatile long in[] = {1, 2, 3, 4, 5, 6, 7, 8};

__attribute__((noinline)) static unsigned long work(void)
{
	unsigned long a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5], g = in[6], h = in[7];
	double x = (double)in[0], y = (double)in[1];

	for (int i = 0; i < 1000; i++) {
		char *p = malloc((size_t)in[6]);
		a += b ^ c, b += d, c ^= e + f, d += g, e -= h, f += a, g ^= b, h += c;
		x += y, y *= 1.01;
		*p = (char)a;
		if (i % 2)
			free(p);
	}
	return a + b + c + d + e + f + g + h + (unsigned long)x + (unsigned long)y;
}

int main(void)
{
	unsigned long sum = work();

	dprintf(1, "work 500 x%lx\n", sum);
	return 0;
}
