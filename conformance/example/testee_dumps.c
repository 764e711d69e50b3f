/* Adds up dumps of call paths: section 24 of SPEC.md. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "testee.h"

struct sum {			/* of the entries of a path */
	const struct path *path;
	uint64_t live, bytes, allocs, ever, peak;
	double blocks, size;	/* estimates (BT-DUMP-5) */
};

struct dump {
	uint64_t number;
	unsigned boot;
	struct names *names;
	struct header begin, end;
	int closed, no_base, complete;
	struct entry *entries;
	size_t count;
	uint64_t lines, gaps, blocks, bytes;	/* that were read, and lines that were not */
	struct sum *sums;
	size_t paths;
};

/* -- Sums */

/* The sum of a path. Adds it if it is missing. (BT-NAME-2) */
static struct sum *sum_of(struct dump *d, const struct path *p)
{
	const struct path *w = whole(d->names, p);

	if (!w)
		w = known(d->names, p->name);
	if (!w)
		p = with_frames(d->names, p);
	for (size_t i = 0; i < d->paths; i++) {
		struct sum *s = &d->sums[i];
		int is_known = s->path->base != 2;

		if (w ? s->path == w : !is_known && s->path->name == p->name) {
			if (!w && p->depth > s->path->depth)
				s->path = p;
			return s;
		}
	}
	d->sums = grow(d->sums, d->paths, sizeof *d->sums);
	memset(&d->sums[d->paths], 0, sizeof *d->sums);
	d->sums[d->paths].path = w ? w : p;
	return &d->sums[d->paths++];
}

/* Scales a sampled entry. (BT-DUMP-5) */
static void estimate(struct sum *s, uint64_t live, uint64_t bytes, uint64_t rate)
{
	double p = live && bytes ? -expm1(-((double)bytes / (double)live) / (double)rate) : 1;

	s->blocks += (double)live / p;
	s->size += (double)bytes / p;
}

static void add_entry(struct dump *d, const struct entry *e, uint64_t rate)
{
	struct sum *s = sum_of(d, e->path);

	d->blocks += e->live;
	d->bytes += e->bytes;
	s->live += e->live;
	s->bytes += e->bytes;
	s->allocs += e->allocs;
	s->ever += e->ever;
	s->peak += e->peak;
	for (size_t i = 0; rate && i < e->count; i++)
		estimate(s, 1, e->blocks[i].size, rate);
	if (rate && e->count == 0)
		estimate(s, e->live, e->bytes, rate);
}

/* The number in a header minus the number read. Returns 0 if no header has the key. (BT-DUMP-4) */
static int missing(const struct dump *d, const char *key, uint64_t *n)
{
	uint64_t read = *key == 'n' ? d->blocks : d->bytes;

	if (!(d->closed && key_number(&d->end, key, n)) && !key_number(&d->begin, key, n))
		return 0;
	*n -= read;
	return 1;
}

static uint64_t missing_lines(const struct dump *d)
{
	uint64_t from, to;

	if (!d->closed || !key_number(&d->begin, "l", &from) || !key_number(&d->end, "l", &to))
		return d->gaps;
	return to > from && to - from > d->lines ? to - from - d->lines : 0;
}

/* Adds the paths of the base that the difference does not contain. (BT-DUMP-3) */
static void apply_base(struct dump *d, const struct dump *dumps)
{
	const struct dump *base = NULL;
	uint64_t number = 0;

	key_number(&d->begin, "base", &number);
	for (; dumps < d; dumps++)
		if (dumps->boot == d->boot && dumps->number == number)
			base = dumps;
	d->no_base = !base || !base->complete;
	for (size_t i = 0; base && i < base->paths; i++) {
		size_t paths = d->paths;
		struct sum *s = sum_of(d, base->sums[i].path);

		if (d->paths > paths)
			*s = base->sums[i];
	}
}

/* Adds up the entries of a dump. dumps also contains the dumps before it. (BT-DUMP-2) */
static void add_up(struct dump *d, const struct dump *dumps)
{
	const struct bytes *k = key_of(&d->begin, "k");
	uint64_t rate = 0, n;

	key_number(&d->begin, "sample", &rate);
	for (size_t i = 0; i < d->count; i++)
		add_entry(d, &d->entries[i], rate);
	if (k && k->len == 4 && begins(*k, "diff"))
		apply_base(d, dumps);
	d->complete = d->closed && !d->no_base && missing_lines(d) == 0
		&& !(missing(d, "n", &n) && n) && !(missing(d, "b", &n) && n);
}

/* -- Reading */

struct reading {		/* what holds at a place of the log */
	struct dump *dumps;
	size_t count;
	int open;		/* the last dump is open */
	unsigned boot;
	int word, counted;	/* counted: the sequence of the next line is known */
	uint64_t next;		/* it is this, mod 4096 */
	struct names **names;	/* the last ones are those of this boot */
	size_t tables;
	struct header before;	/* the last ~h#boot */
};

static void begin_boot(struct reading *r, const struct header *h)
{
	uint64_t word;

	if (r->tables == 0 || r->boot == 0 || !keeps_names(&r->before, h)) {
		r->names = grow(r->names, r->tables, sizeof *r->names);
		r->names[r->tables++] = new_names();
	}
	r->before = *h;
	r->word = key_number(h, "w", &word) ? (int)word : 64;
	r->boot++;
	r->counted = 1;
	r->next = 0;
}

static void take_header(struct reading *r, struct bytes text)
{
	struct dump *d = r->open ? &r->dumps[r->count - 1] : NULL;
	struct header h;
	int is_begin, is_end;

	read_header(text, &h);
	if (fault.reason)
		return;
	is_begin = is_verb(&h, "begin");
	is_end = is_verb(&h, "end");
	if (!is_begin && !is_end && !is_verb(&h, "boot"))
		return;
	if (d && is_end && h.number == d->number) {
		d->closed = 1;
		d->end = h;
	}
	r->open = is_begin;
	if (!is_begin && !is_end)
		begin_boot(r, &h);
	if (!is_begin)
		return;
	r->dumps = grow(r->dumps, r->count, sizeof *r->dumps);
	d = &r->dumps[r->count++];
	memset(d, 0, sizeof *d);
	d->number = h.number;
	d->boot = r->boot;
	d->begin = h;
	d->names = r->names[r->tables - 1];
}

static void take_line(struct reading *r, struct dump *d, struct bytes text)
{
	struct names *t = r->names[r->tables - 1];
	struct paths line;
	uint64_t gap;

	read_paths(text, &line);
	if (fault.reason)
		return;
	if (d && d->number % 64 != line.dump)	/* the begin of its dump was lost (BT-DUMP-2) */
		d = NULL;
	gap = r->counted ? (line.sequence - r->next) % 4096 : 0;
	if (gap < 2048)
		r->next = line.sequence + 1;
	else	/* it came late or twice (BT-DUMP-4) */
		gap = 0;
	r->counted = 1;
	if (d) {
		d->lines++;
		d->gaps += gap;
	}
	for (size_t i = 0; i < line.count; i++) {
		tell(t, line.entries[i].path);
		if (!d || line.entries[i].definition)
			continue;
		d->entries = grow(d->entries, d->count, sizeof *d->entries);
		d->entries[d->count++] = line.entries[i];
	}
}

/* A ~m# or ~b# record in a dump counts, too. (BT-DUMP-1) */
static void take_record(struct dump *d, char kind, struct bytes text, int word)
{
	struct stack s;
	struct bits rest;

	d->blocks++;
	if (kind == 'b')
		read_decoded(text, &s);
	else {
		text = read_line(text, "~m#", 0);
		if (!fault.reason)
			decode(text, word, 0, &s, &rest);
	}
	if (!fault.reason)
		d->bytes += s.size;
}

/* -- The answer */

static void put_missing(const struct dump *d, const char *key)
{
	uint64_t n;

	if (!missing(d, key, &n))
		put(",-");
	else if (n >> 63)
		put(",-%" PRIu64, 0 - n);
	else
		put(",%" PRIu64, n);
}

static void put_dump(const struct dump *d)
{
	put("dump=%" PRIu64 ";boot=%u;missing=%" PRIu64, d->number, d->boot, missing_lines(d));
	put_missing(d, "n");
	put_missing(d, "b");
	put("%s%s", d->closed ? "" : ";open", d->no_base ? ";nobase" : "");
	for (size_t i = 0; i < d->paths; i++) {
		const struct sum *s = &d->sums[i];

		if (!s->live && !s->bytes)
			continue;
		put(" ");
		put_path(s->path);
		put(";live=%" PRIu64 ";bytes=%" PRIu64, s->live, s->bytes);
		if (s->allocs || s->ever)
			put(";ever=%" PRIu64 ",%" PRIu64, s->allocs, s->ever);
		if (s->peak)
			put(";peak=%" PRIu64, s->peak);
		if (s->blocks > 0 || s->size > 0)
			put(";est=%.0f,%.0f", s->blocks, s->size);
	}
}

/* Lists the dumps of a log with the values of their paths. */
void put_dumps(struct bytes text)
{
	struct reading r;

	memset(&r, 0, sizeof r);
	r.word = 64;
	r.names = grow(NULL, 0, sizeof *r.names);
	r.names[r.tables++] = new_names();
	for (struct place p = next_place(text, 0); p.kind; p = next_place(text, p.at + p.len)) {
		struct dump *d = r.open ? &r.dumps[r.count - 1] : NULL;
		struct bytes record = part(text, p.at, p.len);

		if (p.kind == 'h')
			take_header(&r, record);
		else if (p.kind == 'p')
			take_line(&r, d, record);
		else if (d && (p.kind == 'm' || p.kind == 'b'))
			take_record(d, p.kind, record, r.word);
		take_fault();		/* ignore a rejected line */
	}
	for (size_t i = 0; i < r.tables; i++)
		learn(r.names[i]);
	for (size_t i = 0; i < r.count; i++) {
		add_up(&r.dumps[i], r.dumps);
		put("%s", i ? " " : "");
		put_dump(&r.dumps[i]);
	}
	if (r.count == 0)
		put("-");
}
