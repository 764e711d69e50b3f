/* As many blocks of 104 bytes as the argument says are held by g_list, 7 of 56 bytes by g_same. */
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[96]; };
struct node *g_list;
void *g_same[7];

__attribute__((noinline)) static void make(int n)
{
	for (int i = 0; i < 7; i++)
		memset(g_same[i] = malloc(56), 1, 56);
	while (n--) {
		struct node *x = malloc(sizeof *x);
		memset(x, 1, sizeof *x);
		x->next = g_list;
		g_list = x;
	}
}
__attribute__((noinline)) static void clear(void) { volatile char b[4000]; for (int i = 0; i < 4000; i++) b[i] = 0; }
int main(int argc, char **argv)
{
	make(atoi(argv[1]));
	clear();
	abort();
}
