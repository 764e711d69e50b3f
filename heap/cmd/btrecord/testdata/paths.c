/* 2^N call paths of 2N + 4 frames or so, with a block of 10 bytes each: paths N [keep] */
#include <stdio.h>
#include <stdlib.h>

static int keep;
void step(int n, unsigned k);

__attribute__((noinline)) void left(int n, unsigned k)
{
	step(n - 1, k >> 1);
	__asm__ volatile("");
}

__attribute__((noinline)) void right(int n, unsigned k)
{
	step(n - 1, k >> 1);
	__asm__ volatile("nop");
}

__attribute__((noinline)) void step(int n, unsigned k)
{
	if (!n) {
		void *volatile p = malloc(10);
		if (!keep)
			free(p);
	} else if (k & 1)
		left(n, k);
	else
		right(n, k);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;

	keep = argc > 2;
	for (unsigned k = 0; k < 1u << n; k++)
		step(n, k);
	printf("done\n");
	return 0;
}
