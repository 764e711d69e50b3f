/* Leaks of several kinds, whose number is known; every block has words that count, no text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct link { struct link *next, *prev; };
struct item { long number; struct link link; void *data; };
struct link list = { &list, &list };	/* intrusive: links lead into blocks */
struct item *table[50];
char *inside[20];			/* into the middle of blocks */

static struct item *make(size_t more)
{
	struct item *x = malloc(sizeof *x + more);
	memset(x, 0, sizeof *x + more);
	return x;
}

__attribute__((noinline)) static void build(void)
{
	for (int i = 0; i < 500; i++) {		/* held by the list alone, with data */
		struct item *x = make(16);
		x->data = make(40);
		x->link.next = list.next, x->link.prev = &list;
		list.next->prev = &x->link, list.next = &x->link;
	}
	for (int i = 0; i < 50; i++)
		table[i] = make(8);
	for (int i = 0; i < 20; i++)
		inside[i] = (char *)make(100) + 40;
	for (int i = 0; i < 30; i++)		/* 60 leaked: pairs */
		make(24)->data = make(32);
	for (int i = 0; i < 10; i++) {		/* 20 leaked: cycles */
		struct item *a = make(0), *b = make(0);
		a->data = b, b->data = a;
	}
	for (int i = 0; i < 40; i++) {		/* 40 leaked: cut out of the list, and lead to it */
		struct item *x = make(64);
		x->link.next = list.next, x->link.prev = &list;
	}
}

__attribute__((noinline)) static void wipe(void)
{
	volatile char b[8000];
	for (int i = 0; i < 8000; i++)
		b[i] = 0;
}

int main(void)
{
	build();
	wipe();
	abort();
}
