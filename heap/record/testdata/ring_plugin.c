/* A module that is loaded and unloaded. */
#include <stddef.h>

void plugin(void *(*allocate)(size_t), size_t n)
{
	allocate(n); /* it is not the last that this does */
	__asm__ volatile("" ::: "memory");
}
