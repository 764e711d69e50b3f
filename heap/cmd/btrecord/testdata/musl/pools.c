/* Answers requests out of pools, as a web server does: a pool of aligned blocks for each connection, freed
 * at once; headers in lists; a few connections stay open. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block { struct block *next; size_t used; char bytes[4000]; };
struct pool { struct block *first; size_t large; void *larges[16]; };

static struct block *block(void)
{
	void *p;

	if (posix_memalign(&p, 16, sizeof(struct block)))
		abort();
	memset(p, 0, sizeof(struct block));
	return p;
}

static void *take(struct pool *p, size_t n)
{
	if (n > sizeof p->first->bytes)
		return p->large < 16 ? p->larges[p->large++] = malloc(n) : NULL;
	if (!p->first || p->first->used + n > sizeof p->first->bytes) {
		struct block *b = block();
		b->next = p->first;
		p->first = b;
	}
	p->first->used += n;
	return p->first->bytes + p->first->used - n;
}

static void destroy(struct pool *p)
{
	for (size_t i = 0; i < p->large; i++)
		free(p->larges[i]);
	while (p->first) {
		struct block *next = p->first->next;
		free(p->first);
		p->first = next;
	}
	free(p);
}

static size_t answer(struct pool *p, int i)
{
	char *head = take(p, 200), *body = take(p, (size_t)(i % 11) * 1000 + 1);
	char *copy = strdup("GET / HTTP/1.1");
	int n = snprintf(head, 200, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", i);

	memset(body, 'x', (size_t)(i % 11) * 1000 + 1);
	free(copy);
	return (size_t)n;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100;
	size_t sent = 0;

	for (int i = 0; i < n; i++) {
		struct pool *p = calloc(1, sizeof *p);
		for (int k = 0; k < i % 5; k++)
			sent += answer(p, i + k);
		if (i % 10)
			destroy(p);
	}
	printf("%zu bytes\n", sent);
	return 0;
}
