/* Calls functions of mimalloc, of its library or, with STATIC, its own. */
#include "keep.h"

void *mi_malloc(size_t n);
void mi_free(void *p);

#ifdef STATIC
static char arena[1 << 20];
static size_t at;

__attribute__((noinline)) void *mi_malloc(size_t n)
{
	char *p = arena + at;

	at += (n + 15) & ~(size_t)15;
	return p;
}

__attribute__((noinline)) void mi_free(void *p)
{
	(void)p;
}
#endif

int main(void)
{
	void *volatile p;

	for (int i = 0; i < 100; i++) {
		p = mi_malloc(64);
		if (i % 2)
			mi_free(p);
	}
	dprintf(1, "main 50 3200\n");
	return 0;
}
