/*
 * noise BYTES SEED: writes some bytes into each page of all memory that the process shares with others, as a
 * wild pointer may. It keeps 50 blocks of 1,000 bytes, and frees 5,000 before the noise, and 20,000 after it.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned seed;

static void churn(int n)
{
	for (int i = 0; i < n; i++) {
		void *volatile p = malloc(100 + (size_t)i % 700);
		free(p);
	}
}

static void noise(char *p, size_t n, int bytes)
{
	for (size_t page = 0; page + 4096 <= n; page += 4096)
		for (int i = 0; i < bytes; i++) {
			seed = seed * 1103515245 + 12345;
			p[page + (seed >> 8) % 4096] = (char)(seed >> 16);
		}
}

static void ends(int signal)
{
	(void)signal;
	_exit(0);
}

int main(int argc, char **argv)
{
	static void *volatile keep[50];
	uintptr_t from[64], to[64];
	char line[600], mode[8];
	int n = 0;

	signal(SIGSEGV, ends);
	signal(SIGBUS, ends);
	for (int i = 0; i < 50; i++)
		keep[i] = malloc(1000);
	seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	churn(5000);
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && n < 64 && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s", &from[n], &to[n], mode) == 3 && mode[3] == 's' && mode[1] == 'w')
			n++;
	fclose(f);
	for (int i = 0; i < n; i++)
		noise((char *)from[i], to[i] - from[i], argc > 1 ? atoi(argv[1]) : 8);
	churn(20000);
	return 0;
}
