/* A module with a function that allocates: plugin_a or plugin_b. */
#include <stdlib.h>
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
volatile int sink;

__attribute__((noinline)) void *NAME(inner_, N)(size_t n)
{
	void *p = malloc(n);
	sink++;
	return p;
}

__attribute__((noinline)) void *NAME(plugin_, N)(size_t n)
{
	void *p = NAME(inner_, N)(n);
	sink++;
	return p;
}
