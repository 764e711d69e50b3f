/* A module with one function, FN, which allocates. */
#include <stdlib.h>

__attribute__((noinline)) void *FN(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("");
	return p;
}
