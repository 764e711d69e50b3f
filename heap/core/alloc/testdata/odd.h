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

/* before keeps only an address that is a few bytes in front of a block, as of an array whose indexes begin with 1. */
static void *before(size_t n, size_t bytes)
{
	char *p = malloc(n);

	note(p, n, 2);
	LOCK();
	if (kept_count < MOST)
		kept[kept_count++] = p - bytes;
	UNLOCK();
	return p;
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

/* Arrays whose indexes begin with 1, between other blocks, and matrices as in Numerical Recipes: without and with NR_END. */
static __attribute__((noinline)) void arrays(void)
{
	static const size_t sizes[] = { 1, 2, 4, 8, 12, 16 };
	void *drop[8];
	int drops = 0;

	for (uintptr_t i = 0; i < 48; i++) {
		size_t of = sizes[i % 6], n = of * (2 + any(8));
		switch (any(4)) {
		case 0:
			keep(malloc(n), n);
			break;
		case 1:
			note(malloc(n), n, 1);
			break;
		case 2:
			if (drops < 8)
				drop[drops++] = malloc(n);
		}
		before(n, of);
	}
	for (int with = 0; with < 2; with++) {
		void **m = NULL;
		if (!with)
			m = before(6 * sizeof *m, sizeof *m);
		else
			keep(m = malloc(7 * sizeof *m), 7 * sizeof *m);
		for (int i = 0; i < 6; i++) {
			size_t n = (5 + (size_t)with) * sizeof(double);
			double *row = malloc(n);
			note(row, n, with ? 0 : 2);
			m[with + i] = with ? row : row - 1;
		}
	}
	while (drops)
		free(drop[--drops]);
	memset(drop, 0, sizeof drop);
}
