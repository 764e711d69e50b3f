/* Runs a program of a small language with lists and closures, as an interpreter of Lua or Python does:
 * many small blocks, a table of names that grows, deep recursion. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
	enum { NUMBER, STRING, PAIR } kind;
	long number;
	char *string;
	struct value *head, *tail;
};
static struct entry {
	char *name;
	struct value *value;
} *table;
static size_t used, room;

static struct value *make(int kind)
{
	struct value *v = calloc(1, sizeof *v);

	if (!v)
		abort();
	v->kind = kind;
	return v;
}

static struct value *number(long n) { struct value *v = make(NUMBER); v->number = n; return v; }
static struct value *string(const char *s) { struct value *v = make(STRING); v->string = strdup(s); return v; }
static struct value *pair(struct value *a, struct value *b) { struct value *v = make(PAIR); v->head = a; v->tail = b; return v; }

static void drop(struct value *v)
{
	if (!v)
		return;
	drop(v->head);
	drop(v->tail);
	free(v->string);
	free(v);
}

static void define(const char *name, struct value *v)
{
	if (used == room)
		table = realloc(table, (room = room ? room * 2 : 4) * sizeof *table);
	table[used++] = (struct entry){strdup(name), v};
}

static struct value *list(long from, long to) { return from < to ? pair(number(from), list(from + 1, to)) : NULL; }
static long sum(struct value *v) { return v ? (v->head ? v->head->number : 0) + sum(v->tail) : 0; }

static struct value *map(struct value *v, struct value *(*f)(struct value *))
{
	return v ? pair(f(v->head), map(v->tail, f)) : NULL;
}

static struct value *text(struct value *v)
{
	char *s;

	if (asprintf(&s, "<%ld>", v->number) < 0)
		abort();
	struct value *r = string(s);
	free(s);
	return r;
}

int main(int argc, char **argv)
{
	long total = 0, n = argc > 1 ? atol(argv[1]) : 100;

	for (long i = 0; i < n; i++) {
		struct value *numbers = list(0, i % 50), *texts = map(numbers, text);
		char name[32];
		total += sum(numbers);
		snprintf(name, sizeof name, "v%ld", i);
		if (i % 7)
			drop(texts);
		else
			define(name, texts);
		drop(numbers);
	}
	printf("%ld, %zu names\n", total, used);
	return 0;
}
