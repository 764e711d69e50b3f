/* Uses of malloc that give the heap of a small device an unusual form, one for each value of CASE. */
#include <malloc.h>
#include <unistd.h>
#ifdef FREERTOS
#include "FreeRTOS.h"
void setup(void);
#endif

#define LOCK() (void)0
#define UNLOCK() (void)0
#define MOST 300
#define DROPS 40
#define EACH 8
#define STACK 2048
#include "odd.h"

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

/* In the low bits of the pointers are flags. */
static void tagged(void)
{
	for (uintptr_t i = 0; i < 40; i++) {
		size_t n = 8 + any(60);
		char *p = malloc(n);
		note(p, n, 0);
		kept[kept_count++] = p + 1 + i % 3;
	}
}

/* Only the saved registers of tasks that wait have the pointers: at the end of stacks in blocks. */
static void tasks(void)
{
	for (int i = 0; i < 5; i++) {
		void **stack = malloc(300);
		keep(stack, 300);
		kept[kept_count - 1] = stack + 60; /* the saved stack pointer */
		for (int k = 62; k < 70; k++)
			note(stack[k] = malloc(20), 20, 0);
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
