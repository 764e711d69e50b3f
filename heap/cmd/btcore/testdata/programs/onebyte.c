/* An off-by-one: the name of one of 8 sessions has as many characters as it has bytes, so that strcpy writes its NUL behind the
 * block, on the size of the next one. All blocks are held. */
#include <stdlib.h>
#include <string.h>
struct session {
	void *child;
	char name[2 * sizeof(void *)];
} *sessions[8];
char *buffers[8];
enum { BUFFER = 256 - sizeof(void *) };

__attribute__((noinline)) static void make(void)
{
	for (int i = 0; i < 8; i++) {
		sessions[i] = malloc(sizeof(struct session));
		buffers[i] = malloc(BUFFER);
		sessions[i]->child = malloc(100 + 16 * i);
		memset(buffers[i], 1, BUFFER);
		memset(sessions[i]->child, 2, 100);
	}
	for (int i = 0; i < 8; i++)
		strcpy(sessions[i]->name, i == 3 ? "0123456789abcdef" : "short");
}

__attribute__((noinline)) static void clear(void)
{
	volatile char b[3000];

	for (int i = 0; i < 3000; i++)
		b[i] = 0;
}

int main(void)
{
	make();
	clear();
	abort();
}
