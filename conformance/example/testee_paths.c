/* Reads ~p# lines: sections 20 to 23 of SPEC.md. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "testee.h"

struct path *begin_path(int base, uint32_t name)
{
	struct path *p = need(sizeof *p);

	p->beginning = p;
	p->base = base;
	p->name = base == 2 ? name : (uint32_t)base;
	return p;
}

static uint32_t mix(uint32_t h, uint32_t x)
{
	uint32_t g = (h ^ x) * 0x9e3779b1;

	return g ^ g >> 15;
}

/* The name of a path with one more frame. (BT-NAME-1) */
uint32_t name_with(uint32_t h, int escaped, uint64_t x)
{
	if (escaped)
		return mix(mix(mix(h, 0xffffffff), (uint32_t)x), (uint32_t)(x >> 32));
	return mix(h, (uint32_t)x);
}

/* The path with one more frame, the innermost. */
struct path *extend(const struct path *outer, int escaped, uint64_t x)
{
	struct path *p = need(sizeof *p);

	p->outer = outer;
	p->beginning = outer->beginning;
	p->base = outer->base;
	p->escaped = escaped;
	p->x = x;
	p->depth = outer->depth + 1;
	p->name = name_with(outer->name, escaped, x);
	return p;
}

uint64_t reference(const struct path *p)
{
	return p->outer && !p->escaped ? p->x : 0;
}

void list_frames(const struct path *p, const struct path *list[DEEPEST])
{
	for (; p->outer; p = p->outer)
		list[p->depth - 1] = p;
}

/* Reads the word PATH of BTP/1. */
struct path *parse_path(const char *word)
{
	int base = word[0] - '0';
	char *at = strchr(word, ':');
	struct path *p;

	if (base < 0 || base > 2 || at != word + 1) {
		reject(MALFORMED, -1);
		return begin_path(0, 0);
	}
	p = begin_path(base, base == 2 ? (uint32_t)strtoul(word + 2, NULL, 16) : 0);
	if (base == 2)
		at = strpbrk(at, "/;");
	while (at && *at != ';' && at[1] && at[1] != ';') {
		int escaped = at[1] == '@';
		uint64_t x = strtoull(at + 1 + escaped, &at, 16);

		if (p->depth == DEEPEST)
			reject("depth", -1);
		if (!escaped && x >> 27)
			reject("frame", -1);
		if (fault.reason)
			return p;
		p = extend(p, escaped, x);
		if (*at != '/')
			break;
	}
	return p;
}

void put_path(const struct path *p)
{
	const struct path *list[DEEPEST];

	put("%d:", p->base);
	if (p->base == 2)
		put("%08" PRIx32 "%s", p->beginning->name, p->depth ? "/" : "");
	list_frames(p, list);
	for (int i = 0; i < p->depth; i++)
		put("%s%s%" PRIx64, i ? "/" : "", list[i]->escaped ? "@" : "", list[i]->x);
}

/* A step from ref, or an escape and an address. (BT-DIGIT-3, BT-CODE-2) */
static const struct path *read_frame(struct digits *d, const struct path *outer, uint64_t ref)
{
	uint64_t first = fixed(d, 1), v, x;
	int c = (int)(first & 3);

	v = first >> 2 | fixed(d, c + 1) << 4;
	if (c && v >> (4 + 6 * c) == 0)
		reject("number", -1);
	if (v == (1 << 28) - 1)
		return extend(outer, 1, number(d));
	x = ref + unfold(v);
	if (x >> 27)			/* below 0, too */
		reject("frame", -1);
	return extend(outer, 0, x);
}

/* The path of an entry; before is that of the previous entry, or NULL. (BT-ENTRY-1) */
static const struct path *read_path(struct digits *d, const struct path *before)
{
	uint64_t k = number(d), ref = 0, n;
	const struct path *p = before;

	if (k < 4)
		p = begin_path(k < 2 ? (int)k : 2, k < 2 ? 0 : (uint32_t)read_name(d));
	else if (!before || k - 4 > (uint64_t)before->depth) {
		reject("drop", -1);
		return before;
	} else {
		if (k == 4)
			ref = reference(p);
		for (; k > 4; k--, p = p->outer)
			ref = reference(p);
	}
	n = k == 2 ? 0 : number(d);
	if (n > (uint64_t)(DEEPEST - p->depth))
		reject("depth", -1);
	for (; n && !fault.reason; n--) {
		p = read_frame(d, p, ref);
		ref = reference(p);
	}
	return p;
}

/* Blocks of an entry; address is that of the block before, in units. (BT-ENTRY-4) */
static void read_blocks(struct digits *d, unsigned unit, uint64_t *address, struct entry *e)
{
	while (e->count < e->live && !fault.reason) {
		struct block *b;

		e->blocks = grow(e->blocks, e->count, sizeof *e->blocks);
		b = &e->blocks[e->count++];
		*address += unfold(number(d));
		b->address = *address << unit;
		b->size = number(d);
		e->bytes += b->size;
	}
}

/* Digits for later versions: a number k, and k digits. */
static void skip(struct digits *d)
{
	uint64_t k = number(d);

	if (k > d->end - d->pos)
		reject("truncated", -1);
	else
		d->pos += (size_t)k;
}

/* The values of an entry. (BT-ENTRY-4) */
static void read_values(struct digits *d, const struct paths *line, uint64_t *address, struct entry *e)
{
	uint64_t v = number(d);

	e->definition = v == 0;
	if (v == 0)
		return;
	e->live = v - 1;
	if (line->flags & 1)
		read_blocks(d, line->unit, address, e);
	else
		e->bytes = number(d);
	if (line->flags & 2) {
		e->allocs = number(d);
		e->ever = number(d);
	}
	if (line->flags & 4)
		e->peak = number(d);
	if (line->flags & 8)
		number(d);
	if (line->flags & 16)
		number(d);
	if (line->flags & 32)
		skip(d);
}

/* Reads a ~p# line. (BT-PLINE-1) */
void read_paths(struct bytes text, struct paths *line)
{
	struct digits d = open_line(text, "~p#", 7, 3);
	const struct path *before = NULL;
	uint64_t address = 0;

	memset(line, 0, sizeof *line);
	if (fault.reason)
		return;
	line->flags = (unsigned)fixed(&d, 1);
	line->dump = (unsigned)fixed(&d, 1);
	line->sequence = (unsigned)fixed(&d, 2);
	line->unit = read_unit(&d, line->flags);
	while (d.pos < d.end && !fault.reason) {
		struct entry *e;

		line->entries = grow(line->entries, line->count, sizeof *line->entries);
		e = &line->entries[line->count++];
		memset(e, 0, sizeof *e);
		e->path = before = read_path(&d, before);
		read_values(&d, line, &address, e);
	}
}

static void put_entry(const struct entry *e, unsigned flags)
{
	put(" ");
	put_path(e->path);
	if (e->definition) {
		put(";def");
		return;
	}
	put(";live=%" PRIu64, e->live);
	if (flags & 1)
		put(";blocks=%s", e->count ? "" : "-");
	else
		put(";bytes=%" PRIu64, e->bytes);
	for (size_t i = 0; i < e->count; i++)
		put("%s%" PRIx64 "+%" PRIu64, i ? "," : "", e->blocks[i].address, e->blocks[i].size);
	if (flags & 2)
		put(";ever=%" PRIu64 ",%" PRIu64, e->allocs, e->ever);
	if (flags & 4)
		put(";peak=%" PRIu64, e->peak);
}

void put_paths(const struct paths *line)
{
	put("flags=%u dump=%u seq=%u", line->flags, line->dump, line->sequence);
	if (line->flags & 1)
		put(" unit=%u", line->unit);
	for (size_t i = 0; i < line->count; i++)
		put_entry(&line->entries[i], line->flags);
}
