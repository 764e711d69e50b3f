/* An index of -2 into the next block overwrites the number of spare bytes of a block, in musl. All blocks are held. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct item {
	uintptr_t id, flags, used;
	void *child;
} *table[60];

__attribute__((noinline)) static void make(void)
{
	for (int i = 0; i < 60; i++) {
		table[i] = malloc(sizeof *table[i]);
		memset(table[i], 0, sizeof *table[i]);
	}
	for (int i = 0; i < 60; i++)
		table[i]->child = malloc(100);
	for (int i = 0; i < 60; i++)
		for (int k = 0; k < 60; k++)
			if ((char *)table[k] == (char *)table[i] + 48) {
				((int *)table[k])[-2] = 0x28;
				return;
			}
}

__attribute__((noinline)) static void clear(void)
{
	volatile char b[6000];

	for (int i = 0; i < 6000; i++)
		b[i] = 0;
}

int main(void)
{
	void *volatile f = malloc(500);

	free(f);
	make();
	clear();
	abort();
}
