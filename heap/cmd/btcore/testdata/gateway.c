/*
 * A gateway: connections in a list and in a table, sessions with names, routes, and a header that
 * is not freed after an error. It has no line of lwsbt. Sizes of blocks are odd multiples of a word,
 * so that most allocators use all of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS(n) ((n) * sizeof(void *))

struct link { struct link *next, *prev; };
struct conn { void *words[3]; struct link link; char *rx; void *more[3]; };
struct session { struct session *next; char *name; void *more[5]; };
struct header { char *value; void *more[10]; };

struct link g_conns = { &g_conns, &g_conns };
struct conn *g_table[8];
struct session *g_sessions;
void **g_routes;
uintptr_t g_errors;

static void *get(size_t n)
{
	void *p = malloc(n);

	memset(p, 0, n);
	return p;
}

static void open_conn(int n)
{
	struct conn *c = get(sizeof *c);

	c->rx = get(WORDS(17));
	c->link.next = g_conns.next;
	c->link.prev = &g_conns;
	g_conns.next->prev = &c->link;
	g_conns.next = &c->link;
	g_table[n] = c;
}

static void open_session(void)
{
	struct session *s = get(sizeof *s);

	s->name = get(WORDS(5));
	s->next = g_sessions;
	g_sessions = s;
}

static void *parse_header(int n)
{
	struct header *h = get(sizeof *h);

	h->value = get(WORDS(3));
	if (n % 3 == 0) {
		g_errors++;
		return NULL; /* h and its value are lost */
	}
	return h;
}

static void clear(void)
{
	volatile char space[1024];

	for (size_t i = 0; i < sizeof space; i++)
		space[i] = 0;
}

__attribute__((noinline)) void stop(void)
{
#ifdef BARE
	extern void halted(void);
	halted();
	for (;;)
		;
#else
	__asm__ volatile("");
#endif
}

int main(void)
{
	for (int i = 0; i < 8; i++) {
		open_conn(i);
		struct header *h = parse_header(i);
		open_session();
		open_session();
		if (h) {
			free(h->value);
			free(h);
		}
	}
	g_routes = get(WORDS(21));
	for (int i = 0; i < 20; i++)
		g_routes[i] = get(WORDS(3));
	clear();
	stop();
	return 0;
}
