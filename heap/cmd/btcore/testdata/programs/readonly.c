/* 20 blocks of 168 bytes are held by a file alone, which is mapped read-only and was written by write(2); 10 of 104 bytes are leaked. With
 * an argument, core files have the bytes of such mappings. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void **held;

__attribute__((noinline)) static void run(void)
{
	void *list[512] = { 0 };
	int fd = open("shared.bin", O_RDWR | O_CREAT, 0600);

	held = mmap(0, sizeof list, PROT_READ, MAP_SHARED, fd, 0);
	for (int i = 0; i < 20; i++)
		list[i] = malloc(168);
	if (write(fd, list, sizeof list) != sizeof list)
		exit(1);
	for (int i = 0; i < 10; i++)
		*(volatile char *)malloc(104) = 1;
}

__attribute__((noinline)) static void clear(void)
{
	volatile char b[16000];

	for (int i = 0; i < 16000; i++)
		b[i] = 0;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		int fd = open("/proc/self/coredump_filter", O_WRONLY);

		if (write(fd, "0x3f", 4) != 4)
			exit(1);
	}
	run();
	clear();
	if (*(char *volatile *)held)
		abort();
}
