/*
 * A program with a heap whose blocks are known: random allocations, reallocations and frees
 * of blocks in a list, with links inside the blocks. Some are leaked. The table "truth" has the
 * blocks that are allocated at the end; it holds inverted addresses, so that it does not
 * point to them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef FREERTOS
#include "FreeRTOS.h"
void *pvPortMalloc(size_t);
void vPortFree(void *);
#define ALLOC pvPortMalloc
#define FREE vPortFree
#elif defined SYSTEM
void *system_alloc(size_t);
void system_free(void *);
#define ALLOC system_alloc
#define FREE system_free
#else
#define ALLOC malloc
#define FREE free
#endif

#ifndef OPS
#define OPS 2000
#endif
#ifndef MOST
#define MOST 180 /* live blocks with links */
#endif
#ifndef LARGE
#define LARGE 300
#endif
#define LEAKS 12

struct truth {
	uintptr_t addr; /* inverted */
	uintptr_t size, leaked;
} truth[2 * MOST + 2 * LEAKS + 8];
uintptr_t truth_count, failed;

struct link { struct link *next, *prev; };
struct item {
	uintptr_t number;
	struct link link;
	char *text;
};
struct link items = { &items, &items };
static uintptr_t count, seed = 1;

static uintptr_t any(uintptr_t n)
{
	seed = (uint32_t)(seed * 1103515245u + 12345u);
	return (seed >> 8) % n;
}

static void *get(size_t n)
{
	void *p = ALLOC(n);

	if (!p) {
		failed++;
		return NULL;
	}
	memset(p, 0, n);
	return p;
}

static struct item *at(struct link *l) { return (struct item *)((char *)l - offsetof(struct item, link)); }

/* size returns that of block number n: the program need not store it. */
static size_t size(uintptr_t n) { return sizeof(struct item) + (n * 2654435761u >> 7) % ((n & 15) ? 90 : LARGE); }
static size_t length(uintptr_t n) { return 1 + (n * 40503u >> 3) % 70; }

static void make(uintptr_t n)
{
	struct item *x = get(size(n));

	if (!x)
		return;
	x->number = n;
	if (n & 1 && (x->text = get(length(n))) != NULL)
		memset(x->text, 'a' + (int)(n % 26), length(n));
	x->link.next = items.next;
	x->link.prev = &items;
	items.next->prev = &x->link;
	items.next = &x->link;
	count++;
}

static void cut(struct item *x)
{
	x->link.prev->next = x->link.next;
	x->link.next->prev = x->link.prev;
	x->link.next = x->link.prev = NULL;
	count--;
}

static void note(void *p, size_t n, int leaked)
{
	truth[truth_count].addr = ~(uintptr_t)p;
	truth[truth_count].size = n;
	truth[truth_count++].leaked = (uintptr_t)leaked;
}

static void record(struct item *x, int leaked)
{
	note(x, size(x->number), leaked);
	if (x->text)
		note(x->text, length(x->number), leaked);
}

static struct item *pick(void)
{
	struct link *l = items.next;
	uintptr_t n = any(count);

	while (n--)
		l = l->next;
	return at(l);
}

static void change(uintptr_t n)
{
	if (count < 8 || (count < MOST && any(5) < 3)) {
		make(n);
		return;
	}
	struct item *x = pick();
	cut(x);
	FREE(x->text);
	FREE(x);
}

static void leak(void)
{
	struct item *x = pick();

	cut(x);
	record(x, 1);
}

/* clear overwrites what other functions have left on the stack. */
static void clear(void)
{
	volatile char space[2048];

	for (size_t i = 0; i < sizeof space; i++)
		space[i] = 0;
}

__attribute__((noinline)) void stop(void)
{
#ifdef ABORT
	abort();
#elif defined BARE
	extern void halted(void);
	halted();
	for (;;)
		;
#else
	__asm__ volatile("");
#endif
}

#ifndef OTHER
static void setup(void) {}
#else
void setup(void);
#endif

int main(void)
{
	setup();
	for (uintptr_t n = 0; n < OPS; n++) {
		change(n);
		if (n % (OPS / LEAKS) == OPS / LEAKS / 2)
			leak();
	}
	for (struct link *l = items.next; l != &items; l = l->next)
		record(at(l), 0);
	clear();
	stop();
	return 0;
}
