/*
 * What odd.c and oddfw.c share. The table "truth" is as in model.c. Blocks that are not leaked are in the table
 * "kept", or where the case says. All are volatile, so that an optimized link stores what it never reads.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct truth {
	uintptr_t addr; /* inverted */
	uintptr_t size, leaked;
} volatile truth[MOST];
volatile uintptr_t truth_count, failed;
void *volatile kept[MOST];
static uintptr_t kept_count, seed = 7;

static uintptr_t any(uintptr_t n)
{
	seed = (uint32_t)(seed * 1103515245u + 12345u);
	return (seed >> 8) % n;
}

static void note(void *p, size_t n, int leaked)
{
	LOCK();
	if (!p || truth_count == MOST) {
		failed++;
	} else {
		memset(p, 0, n);
		truth[truth_count].addr = ~(uintptr_t)p;
		truth[truth_count].size = n;
		truth[truth_count++].leaked = (uintptr_t)leaked;
	}
	UNLOCK();
}

/* keep stores a block in the table. */
static void keep(void *p, size_t n)
{
	note(p, n, 0);
	LOCK();
	if (kept_count < MOST)
		kept[kept_count++] = p;
	UNLOCK();
}

/* some allocates blocks of all sizes up to most, frees each third one, and leaks a few. */
static __attribute__((noinline)) void some(int n, size_t most)
{
	void *drop[DROPS];
	int drops = 0;

	for (int i = 0; i < n; i++) {
		size_t size = 1 + any(most);
		void *p = malloc(size);
		if (i % 3 == 2 && drops < DROPS)
			drop[drops++] = p;
		else if (i % EACH == 4)
			note(p, size, 1);
		else
			keep(p, size);
	}
	while (drops)
		free(drop[--drops]);
	memset(drop, 0, sizeof drop);
}

/* clear overwrites what other functions have left on the stack. */
static __attribute__((noinline)) void clear(void)
{
	volatile char space[STACK];

	for (size_t i = 0; i < sizeof space; i++)
		space[i] = 0;
}
