/* 20 blocks of 168 bytes are held by a shared mapping of a file, 20 of 152 bytes by a page that core files leave out; 20 of 104
 * bytes are leaked. Without an argument there are only the last ones, and 20 of 72 bytes that a table holds. The table is initialized: no
 * other page of variables is ever written, and the core file has none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
void *table[20] = { table };
char never[20000];

__attribute__((noinline)) static void run(int absent)
{
	for (int i = 0; i < 20; i++)
		table[i] = malloc(72);
	if (absent) {
		void **page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), **shared;
		int fd = open("shared.bin", O_RDWR | O_CREAT, 0600);

		madvise(page, 4096, MADV_DONTDUMP);
		if (ftruncate(fd, 4096))
			exit(1);
		shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		for (int i = 0; i < 20; i++) {
			page[i] = malloc(152);
			shared[i] = malloc(168);
		}
	}
	for (int i = 0; i < 20; i++)
		*(volatile char *)malloc(104) = 1;
}

__attribute__((noinline)) static void clear(void)
{
	volatile char b[8000];

	for (int i = 0; i < 8000; i++)
		b[i] = 0;
}

int main(int argc, char **argv)
{
	run(argc > 1);
	clear();
	abort();
}
