/*
 * Uses of malloc that give the heap of a small device an unusual form, one for each value of CASE. The table
 * "truth" is as in model.c. Blocks that are not leaked are in the table "kept".
 */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef FREERTOS
#include "FreeRTOS.h"
void setup(void);
#endif

#define MOST 300

struct truth {
	uintptr_t addr; /* inverted */
	uintptr_t size, leaked;
} volatile truth[MOST];
volatile uintptr_t failed;
volatile uintptr_t truth_count;
void *volatile kept[MOST];
static uintptr_t kept_count, seed = 7;

static uintptr_t any(uintptr_t n)
{
	seed = (uint32_t)(seed * 1103515245u + 12345u);
	return (seed >> 8) % n;
}

static void note(void *p, size_t n, int leaked)
{
	if (!p || truth_count == MOST) {
		failed++;
		return;
	}
	memset(p, 0, n);
	truth[truth_count].addr = ~(uintptr_t)p;
	truth[truth_count].size = n;
	truth[truth_count++].leaked = (uintptr_t)leaked;
}

static void keep(void *p, size_t n)
{
	note(p, n, 0);
	kept[kept_count++] = p;
}

static __attribute__((noinline)) void some(int n, size_t most)
{
	void *drop[40];
	int drops = 0;

	for (int i = 0; i < n; i++) {
		size_t size = 1 + any(most);
		void *p = malloc(size);
		if (i % 3 == 2 && drops < 40)
			drop[drops++] = p;
		else if (i % 8 == 4)
			note(p, size, 1);
		else
			keep(p, size);
	}
	while (drops)
		free(drop[--drops]);
	memset(drop, 0, sizeof drop);
}

static __attribute__((noinline)) void clear(void)
{
	volatile char space[2048];

	for (size_t i = 0; i < sizeof space; i++)
		space[i] = 0;
}

static void usual(void) { some(60, 100); }

/* The program itself takes memory from sbrk, and stores pointers there. */
static void own_sbrk(void)
{
	for (int i = 0; i < 3; i++) {
		some(20, 60);
		void **mine = sbrk(i == 2 ? 20 : 304);
		for (int k = 0; k < 3; k++)
			note(mine[k] = malloc(20 + (size_t)k), 20 + (size_t)k, 0);
		for (int k = 0; k < 6; k++)
			keep(malloc(200), 200);
	}
}

static void aligned(void)
{
	some(20, 60);
	for (size_t align = 8; align <= 512; align *= 2)
		for (size_t size = 3; size < 300; size = size * 4 + 1)
			keep(memalign(align, size), size);
}

static void resized(void)
{
	void *p[30];

	for (int i = 0; i < 30; i++)
		p[i] = malloc(10 + any(90));
	for (int i = 0; i < 30; i++) {
		size_t n = 1 + any(200);
		keep(realloc(p[i], n), n);
	}
	memset(p, 0, sizeof p);
	for (int i = 0; i < 20; i++) {
		void *q = calloc(3, 7);
		keep(q, 21);
	}
}

/* The largest blocks are free, and the end of the heap. */
static void freed(void)
{
	void *p = malloc(3000), *q = malloc(100), *r = malloc(5000);

	some(40, 60);
	void *s = malloc(2000);
	free(r);
	free(s);
	free(p);
	keep(q, 100);
}

int main(void)
{
#ifdef FREERTOS
	setup();
	for (int i = 0; i < 30; i++) { /* blocks of each heap point to the other one */
		void **p = pvPortMalloc(20), **q = malloc(24);
		note(p, 20, i % 7 == 1);
		note(q, 24, i % 7 == 1);
		if (i % 7 != 1)
			kept[kept_count++] = p;
		*p = q;
	}
#endif
	CASE();
	some(140, 40);
	clear();
	extern void halted(void);
	halted();
	for (;;)
		;
}
