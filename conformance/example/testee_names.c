/* The paths of names: section 23 of SPEC.md. */
#include <string.h>

#include "testee.h"

/* The path in the table with this outer path and innermost frame. Adds it if it is missing. */
static const struct path *told(struct names *t, const struct path *outer, int escaped, uint64_t x)
{
	struct path **slot = &t->slots[name_with(outer->name, escaped, x) % SLOTS], *p;

	for (p = *slot; p; p = p->next)
		if (p->outer == outer && p->escaped == escaped && p->x == x)
			return p;
	p = extend(outer, escaped, x);
	p->next = *slot;
	*slot = p;
	return p;
}

/* The only path of this name, or NULL. */
const struct path *known(const struct names *t, uint32_t name)
{
	const struct path *found = NULL;

	for (const struct path *p = t->slots[name % SLOTS]; p; p = p->next)
		if (p->name == name) {
			if (found)
				return NULL;
			found = p;
		}
	return found;
}

/* The path in the table that equals p, or NULL if p begins with an unknown name. (BT-NAME-2) */
const struct path *whole(struct names *t, const struct path *p)
{
	const struct path *frames[DEEPEST];
	const struct path *w;

	w = p->base == 2 ? known(t, p->beginning->name) : p->base == 1 ? t->slots[1] : t->slots[0];
	if (p->base != 2)
		while (w->outer || w->base != p->base)
			w = w->next;
	if (!w || w->depth + p->depth > DEEPEST)
		return NULL;
	list_frames(p, frames);
	for (int i = 0; i < p->depth; i++)
		w = told(t, w, frames[i]->escaped, frames[i]->x);
	return w;
}

/* p or, if its name is unknown, p with more frames, which other lines define after another name. (BT-NAME-2) */
const struct path *with_frames(const struct names *t, const struct path *p)
{
	for (size_t i = 0; i < t->count; i++)
		for (const struct path *q = t->told[i]; q->base == 2 && q->depth > 0; q = q->outer)
			if (q->name == p->beginning->name && q->depth + p->depth <= DEEPEST) {
				const struct path *frames[DEEPEST];

				list_frames(p, frames);
				for (int k = 0; k < p->depth; k++)
					q = extend(q, frames[k]->escaped, frames[k]->x);
				return with_frames(t, q);
			}
	return p;
}

struct names *new_names(void)
{
	struct names *t = need(sizeof *t);

	t->slots[0] = begin_path(0, 0);
	t->slots[1] = begin_path(1, 0);
	return t;
}

void tell(struct names *t, const struct path *p)
{
	t->told = grow(t->told, t->count, sizeof *t->told);
	t->told[t->count++] = p;
}

/* Adds the paths that begin with names, which later lines may define. */
void learn(struct names *t)
{
	size_t left = t->count, before;

	do {
		size_t unknown = 0;

		before = left;
		for (size_t i = 0; i < left; i++)
			if (!whole(t, t->told[i]))
				t->told[unknown++] = t->told[i];
		left = unknown;
	} while (left < before);
}

/* Reports whether a boot keeps the names of the previous boot. (BT-NAME-3) */
int keeps_names(const struct header *before, const struct header *boot)
{
	static const char *const equal[] = { "build", "code" };	/* there is no ELF file here */
	uint64_t a = 0, b = 0;

	for (int i = 0; i < 2; i++) {
		const struct bytes *v = key_of(before, equal[i]), *w = key_of(boot, equal[i]);

		if (!v || !w || v->len != w->len || memcmp(v->at, w->at, v->len))
			return 0;
	}
	key_number(before, "shift", &a);
	key_number(boot, "shift", &b);
	return a == b;
}
