/* A program that stops, or dies, with known things in known registers and memory. */
#include <stdlib.h>
#include <string.h>

char marker[64] = "marker-0123456789";
const char constant[] = "constant in the executable file";

__attribute__((noinline)) void stop(char *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	if (p[0] == 'm' && marker[20] == 0)
		abort();
}

int main(void)
{
	char *p = malloc(100);

	strcpy(p, marker);
	stop(p);
	return constant[p[0] & 1];
}
