/*
 * Programs that are hard to record count what they keep: a line "keep COUNT BYTES" of
 * each process. Its output is nothing that allocates.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long kept, kept_bytes;

__attribute__((noinline, unused)) static void *keep(size_t n)
{
	__atomic_fetch_add(&kept, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&kept_bytes, n, __ATOMIC_RELAXED);
	void *volatile p = malloc(n);
	return p;
}

/* tell prints the line, in one call. */
__attribute__((unused)) static void tell(void)
{
	char line[64];
	int n = snprintf(line, sizeof line, "keep %lu %lu\n", kept, kept_bytes);

	if (write(1, line, (size_t)n) != n)
		_exit(99);
}
