/* A block is written after it was freed, while it is in a list of free blocks: argv[1] is f (fast bin), t (cache of the
 * thread) or b (a list of larger blocks). 2,000 blocks of 100 bytes are held, 30 of 300 bytes are leaked. */
#include <stdlib.h>
#include <string.h>
char *kept[2000];

__attribute__((noinline)) static void run(char where)
{
	char *volatile lost;
	char *freed[200], *x;

	for (int i = 0; i < 2000; i++) {
		kept[i] = malloc(100);
		memset(kept[i], 'k', 100);
		if (i % 10 == 0)
			freed[i / 10] = malloc(where == 'b' ? 2000 : 100);
	}
	for (int i = 0; i < 30; i++) {
		lost = malloc(300);
		lost[0] = 1;
	}
	for (int i = 0; i < 200; i++)
		free(freed[i]);
	x = freed[where == 't' ? 3 : 150];
	memcpy(x, "user name here..", 16);
	memset(freed, 0, sizeof freed);
	lost = 0;
}

__attribute__((noinline)) static void clear(void)
{
	volatile char b[8000];

	for (int i = 0; i < 8000; i++)
		b[i] = 0;
}

int main(int argc, char **argv)
{
	run(argv[1][0]);
	clear();
	abort();
}
