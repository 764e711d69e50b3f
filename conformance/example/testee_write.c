/* Writes ~p# lines: sections 20 and 21 of SPEC.md. */
#include <stdlib.h>
#include <string.h>

#include "testee.h"

enum {
	HEAD_AND_CRC = 3 + 5 + 3,	/* lead-in, fields before the entries, CRC */
	VALUES = 13 * 6			/* the longest values of an entry with one block */
};

struct writer {
	unsigned flags, dump, unit;
	uint64_t sequence;
	size_t longest;			/* characters of a line */
	const char *between;		/* two lines */
	struct line entries;		/* of the line that is being written; */
	const struct path *before;	/* of its last entry, or NULL */
	uint64_t address;		/* of its last block, in units */
};

/* Ends the line, if it has an entry. (BT-PLINE-1, BT-PLINE-2) */
static void flush(struct writer *w)
{
	struct line l = { NULL, 0 };

	if (w->entries.len == 0)
		return;
	put_fixed(&l, w->flags, 1);
	put_fixed(&l, w->dump, 1);
	put_fixed(&l, w->sequence++ % 4096, 2);
	if (w->flags & 1)
		put_fixed(&l, w->unit, 1);
	for (size_t i = 0; i < w->entries.len; i++)
		put_fixed(&l, (uint64_t)digit_value(w->entries.at[i]), 1);
	put_fixed(&l, crc16(l.at, l.len), 3);
	put("%s~p#%.*s", w->between, (int)l.len, l.at);
	w->between = "\n";
	w->entries.len = 0;
	w->before = NULL;
	w->address = 0;
}

/* The number of frames shared with the previous entry, or -1 if nothing is shared. (BT-SHARE-1) */
static int shared(const struct path *before, const struct path *p)
{
	const struct path *a[DEEPEST], *b[DEEPEST];
	int c = 0;

	if (!before || before->base != p->base || before->beginning->name != p->beginning->name)
		return -1;
	list_frames(before, a);
	list_frames(p, b);
	while (c < before->depth && c < p->depth && a[c]->escaped == b[c]->escaped && a[c]->x == b[c]->x)
		c++;
	return c || p->base == 2 ? c : -1;
}

/* A step or an escape. (BT-DIGIT-3) */
static void put_frame(struct line *l, const struct path *p, uint64_t ref)
{
	uint64_t v = fold(p->x - ref), c = 0;

	if (p->escaped) {
		put_fixed(l, (1 << 30) - 1, 5);
		put_number(l, p->x);
		return;
	}
	while (v >> (10 + 6 * c))
		c++;
	put_fixed(l, v << 2 | c, (int)c + 2);
}

/* Base, name, N and frames of an entry. (BT-ENTRY-1) */
static void put_frames(struct line *l, const struct path *before, const struct path *p)
{
	const struct path *frames[DEEPEST], *left = before;
	int c = shared(before, p);
	uint64_t ref = 0;

	if (c >= 0) {
		put_number(l, (uint64_t)(4 + before->depth - c));
		while (left->depth > c + 1)
			left = left->outer;
		ref = reference(left);	/* the outermost left out, or the last frame */
	} else {
		put_number(l, p->base == 2 ? 3 : (uint64_t)p->base);
		if (p->base == 2)
			put_fixed(l, p->beginning->name, 6);
		c = 0;
	}
	put_number(l, (uint64_t)(p->depth - c));
	list_frames(p, frames);
	for (; c < p->depth; c++) {
		put_frame(l, frames[c], ref);
		ref = reference(frames[c]);
	}
}

/* The number of characters of a path at the beginning of a line. */
static size_t length(const struct path *p)
{
	struct line l = { NULL, 0 };

	put_frames(&l, NULL, p);
	return l.len;
}

/* Adds an entry to the line, or to a new one if it does not fit. (BT-PLINE-3) */
static void put_entry(struct writer *w, const struct path *p, const uint64_t *values, size_t count)
{
	struct line l = { NULL, 0 };

	put_frames(&l, w->before, p);
	for (size_t i = 0; i < count; i++)
		put_number(&l, values[i]);
	if (w->before && w->entries.len + l.len + HEAD_AND_CRC > w->longest) {
		flush(w);
		put_entry(w, p, values, count);	/* once: the line is empty now */
		return;
	}
	for (size_t i = 0; i < l.len; i++) {
		w->entries.at = grow(w->entries.at, w->entries.len, 1);
		w->entries.at[w->entries.len++] = l.at[i];
	}
	w->before = p;
}

/*
 * Cuts a path that is too long for a line: defines an outer part, and returns
 * the path that goes on from its name. (BT-NAME-4)
 */
static const struct path *cut(struct writer *w, const struct path *p)
{
	static const uint64_t definition = 0;
	const struct path *frames[DEEPEST];

	while (length(p) + VALUES + HEAD_AND_CRC > w->longest && p->depth > 1) {
		const struct path *outer = p->outer;
		const struct path *rest;

		while (outer->depth > 1 && length(outer) + 1 + HEAD_AND_CRC > w->longest)
			outer = outer->outer;
		put_entry(w, outer, &definition, 1);
		rest = begin_path(2, outer->name);
		list_frames(p, frames);
		for (int i = outer->depth; i < p->depth; i++)
			rest = extend(rest, frames[i]->escaped, frames[i]->x);
		p = rest;
	}
	return p;
}

/* Writes the values of an entry; with flag 1, an entry for each block. (BT-ENTRY-4) */
static void put_values(struct writer *w, const struct path *p, char **values)
{
	const char *ever = option(values, "ever"), *peak = option(values, "peak"), *blocks = option(values, "blocks");
	uint64_t v[6], of_all[3];
	char *at = NULL;
	size_t n;

	of_all[0] = ever ? strtoull(ever, &at, 10) : 0;
	of_all[1] = ever ? strtoull(at + 1, NULL, 10) : 0;
	of_all[2] = peak ? strtoull(peak, NULL, 10) : 0;
	do {
		n = 0;
		v[n++] = 1;
		if (!(w->flags & 1)) {
			v[0] = strtoull(must(values, "live"), NULL, 10) + 1;
			v[n++] = strtoull(must(values, "bytes"), NULL, 10);
			if (v[0] == 0)
				reject("number", -1);	/* BT-PREJ-2 */
		} else if (blocks && *blocks != '-') {
			uint64_t address = strtoull(blocks, &at, 16);

			if (address & ((1U << w->unit) - 1))
				reject("unit", -1);
			flush(w);	/* the address counts from 0 then */
			v[0] = 2;
			v[n++] = fold(address >> w->unit);
			v[n++] = strtoull(at + 1, &at, 10);
			blocks = *at == ',' ? at + 1 : NULL;
		} else
			blocks = NULL;
		if (w->flags & 2) {
			v[n++] = of_all[0];
			v[n++] = of_all[1];
		}
		if (w->flags & 4)
			v[n++] = of_all[2];
		memset(of_all, 0, sizeof of_all);	/* said once (BT-DUMP-2) */
		if (fault.reason)
			return;
		put_entry(w, p, v, n);
	} while (w->flags & 1 && blocks);
}

static unsigned small(char **words, const char *key)
{
	const char *value = option(words, key);

	return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

/* Writes the entries as lines. (BT-PREJ-2) */
void write_paths(char **words)
{
	struct writer w;

	memset(&w, 0, sizeof w);
	w.flags = small(words, "flags");
	w.dump = small(words, "dump");
	w.unit = small(words, "unit");
	w.sequence = small(words, "seq");
	w.longest = small(words, "max");
	w.between = "";
	if (w.unit > 12)
		reject("unit", -1);
	for (; *words && !fault.reason; words++) {
		static const uint64_t definition = 0;
		char *values[8] = { NULL }, *semicolon = strchr(*words, ';');
		const struct path *p;

		if (!semicolon)		/* flags= and others */
			continue;
		p = parse_path(*words);
		if (fault.reason)
			return;
		for (int i = 0; semicolon && i < 7; i++) {
			*semicolon++ = 0;
			values[i] = semicolon;
			semicolon = strchr(semicolon, ';');
		}
		p = cut(&w, p);
		if (values[0] && !strcmp(values[0], "def"))
			put_entry(&w, p, &definition, 1);
		else
			put_values(&w, p, values);
	}
	if (!fault.reason)
		flush(&w);
}
