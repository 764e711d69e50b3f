/* The input: one stack per line, `ID<TAB>size<TAB>addresses`, numbers in hex. */
#include "btref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int
digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

int
read_number(const char *p, const char *end, int base, uint64_t *out)
{
	uint64_t v = 0, ubase = (uint64_t)base;

	if (p == end)
		return -1;
	for (; p != end; p++) {
		int d = digit(*p);

		if (d >= base || v > (UINT64_MAX - (uint64_t)d) / ubase)
			return -1;
		v = v * ubase + (uint64_t)d;
	}
	*out = v;
	return 0;
}

int
read_pcs(const char *p, const char *end, char sep, uint64_t *pcs, int *depth,
	 const char **why)
{
	*depth = 0;
	if (end - p == 1 && *p == '-')
		return 0;
	for (;;) {
		const char *q = memchr(p, sep, (size_t)(end - p));

		if (!q)
			q = end;
		if (*depth == 32) {
			*why = "at most 32 addresses were expected";
			return -1;
		}
		if (read_number(p, q, 16, &pcs[(*depth)++])) {
			*why = "addresses of 1 to 16 hex digits were expected, or - for none";
			return -1;
		}
		if (q == end)
			return 0;
		p = q + 1;
	}
}

static int
bad(const struct stacks *s, const char *what)
{
	fprintf(stderr, "btref: standard input, line %lu: %s; a line is "
		"ID<TAB>size in hex<TAB>addresses in hex with blanks between (or -)\n",
		s->line, what);
	return -1;
}

static int
too_wide(uint64_t v)
{
	return WORD == 32 && v > UINT32_MAX;
}

int
stacks_next(struct stacks *s, struct stack *out)
{
	const char *why, *end, *t1, *t2;
	ssize_t got;
	int n;

	got = getline(&s->buf, &s->cap, s->in);
	if (got < 0)
		return 0;
	s->line++;
	if (got && s->buf[got - 1] == '\n')
		got--;
	end = s->buf + got;

	t1 = memchr(s->buf, '\t', (size_t)got);
	t2 = t1 ? memchr(t1 + 1, '\t', (size_t)(end - t1 - 1)) : NULL;
	if (!t2)
		return bad(s, "three fields with tabs between were expected");
	if (t1 == s->buf || (size_t)(t1 - s->buf) >= sizeof(out->id))
		return bad(s, "an ID of 1 to 159 characters was expected");
	for (n = 0; n < t1 - s->buf; n++)
		if (s->buf[n] <= ' ' || s->buf[n] > '~')
			return bad(s, "an ID of printable characters without blanks was expected");
	memcpy(out->id, s->buf, (size_t)(t1 - s->buf));
	out->id[t1 - s->buf] = '\0';
	if (read_number(t1 + 1, t2, 16, &out->size))
		return bad(s, "a size of 1 to 16 hex digits was expected");
	if (read_pcs(t2 + 1, end, ' ', out->pcs, &out->depth, &why))
		return bad(s, why);
	if (too_wide(out->size))
		return bad(s, "a size of at most 32 bits was expected on this machine");
	for (n = 0; n < out->depth; n++)
		if (too_wide(out->pcs[n]))
			return bad(s, "addresses of at most 32 bits were expected on this machine");
	return 1;
}

void
stacks_free(struct stacks *s)
{
	free(s->buf);
}
