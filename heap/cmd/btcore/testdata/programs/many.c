/* Many blocks of 80 to 119 bytes in lists; each 30th is leaked. */
#include <stdlib.h>
#include <string.h>
struct node { struct node *next, *other; long value[8]; };
struct node *lists[64];

__attribute__((noinline)) static void make(long n)
{
	unsigned s = 1;
	for (long i = 0; i < n; i++) {
		s = s * 1103515245u + 12345;
		struct node *x = malloc(80 + (s >> 20) % 40);
		memset(x, 0, sizeof *x);
		x->value[0] = i;
		if (i % 30 == 0)
			continue;
		x->next = lists[i % 64], x->other = lists[i * 7 % 64], lists[i % 64] = x;
	}
}
__attribute__((noinline)) static void clear(void) { volatile char b[8000]; for (int i = 0; i < 8000; i++) b[i] = 0; }
int main(int argc, char **argv)
{
	make(atol(argv[1]));
	clear();
	abort();
}
