/*
 * ~p# lines: call paths, written. Each field is a whole number of base64 digits.
 */
#include "internal.h"

#define ESCAPE 0xfffffffu	/* in the place of a step: an address follows [BT-DIGIT-3] */

enum {
	CRC_DIGITS = 3,
	NO_ENTRY = 255		/* base of a line without entries */
};

uint32_t lwsbt_offset(const struct lwsbt_code *c, lwsbt_word pc)
{
	lwsbt_word sum = 0;

	for (unsigned i = 0; i < c->count; i++) {
		const struct lwsbt_range *r = &c->range[i];
		lwsbt_word at = pc - r->start, len = r->end - r->start;

		if (at < len) {
			sum = lwsbt_rotate(sum + at, c->shift);
			return sum >> 27 ? LWSBT_NO_OFFSET : (uint32_t)sum;
		}
		sum += len;
	}
	return LWSBT_NO_OFFSET;
}

lwsbt_word lwsbt_address(const struct lwsbt_code *c, uint32_t offset)
{
	const struct lwsbt_range *r = c->range;
	lwsbt_word at = (lwsbt_word)offset << c->shift;

	for (; at >= r->end - r->start; r++)
		at -= r->end - r->start;
	return r->start + at;
}

static uint32_t mix(uint32_t h, uint32_t x)
{
	h = (h ^ x) * 0x9e3779b1u;
	return h ^ h >> 15;
}

/* [BT-NAME-1] */
uint32_t lwsbt_name(const struct lwsbt_code *c, const struct lwsbt_path *p)
{
	uint32_t h = p->base == LWSBT_PATH_NAMED ? p->outer : p->base;

	for (unsigned i = 0; i < p->depth; i++) {
		uint32_t x = lwsbt_offset(c, p->pc[i]);

		h = mix(h, x);
		if (x == LWSBT_NO_OFFSET) /* which is what an escaped frame's name begins with */
			h = mix(mix(h, (uint32_t)p->pc[i]), (uint32_t)((uint64_t)p->pc[i] >> 32));
	}
	return h;
}

/* digit writes the lowest 6 bits of v. What is beyond a line is counted, not written. */
static LWSBT_NOINLINE void digit(struct lwsbt_paths *w, unsigned v)
{
	if (w->len < LWSBT_PATH_LINE)
		w->text[w->len] = lwsbt_digit(v);
	w->len++;
}

static void fixed(struct lwsbt_paths *w, uint32_t v, unsigned n)
{
	for (; n > 0; n--, v >>= 6)
		digit(w, (unsigned)(v & 63));
}

static LWSBT_NOINLINE void put_digits(struct lwsbt_paths *w, lwsbt_word v)
{
	for (; v >> 5; v >>= 5)
		digit(w, (unsigned)(v & 31) | 32);
	digit(w, (unsigned)v);
}

/* step writes a folded difference, or ESCAPE. [BT-DIGIT-3] */
static void step(struct lwsbt_paths *w, uint32_t v)
{
	unsigned c = 0;

	while (v >> (10 + 6 * c))
		c++;
	fixed(w, 4 * v + c, c + 2);
}

/* begin begins a line. [BT-PLINE-1] */
static void begin_line(struct lwsbt_paths *w)
{
	w->text[0] = '~';
	w->text[1] = 'p';
	w->text[2] = '#';
	w->len = 3;
	fixed(w, w->flags | ((w->dump & 63) | w->lines << 6) << 6, 4);
	w->base = NO_ENTRY;
	w->depth = 0;
}

/* move makes the frame at pc, which may be outside the code, the reference of the next step. It returns its offset. */
static uint32_t move(struct lwsbt_paths *w, lwsbt_word pc)
{
	uint32_t x = lwsbt_offset(w->code, pc);

	w->ref = x == LWSBT_NO_OFFSET ? 0 : x;
	return x;
}

/* frame writes the frame at pc. */
static void put_frame(struct lwsbt_paths *w, lwsbt_word pc)
{
	uint32_t from = w->ref, x = move(w, pc), d = x - from;

	step(w, x == LWSBT_NO_OFFSET ? ESCAPE : 2 * d ^ (0 - (d >> 31)));
	if (x == LWSBT_NO_OFFSET)
		put_digits(w, pc);
}

/* shared returns how many of the outer frames of p the previous entry has, too. */
static unsigned shared(const struct lwsbt_paths *w, const struct lwsbt_path *p)
{
	unsigned n = 0;

	while (n < w->depth && n < p->depth && w->pc[n] == p->pc[n])
		n++;
	return n;
}

/* entry writes p with n values. If they do not fit, the next entry must begin a line. [BT-ENTRY-1, BT-SHARE-1] */
static void put_entry(struct lwsbt_paths *w, const struct lwsbt_path *p, const lwsbt_word *v, unsigned n)
{
	int same = w->base == p->base && w->outer == p->outer, named = p->base == LWSBT_PATH_NAMED;
	unsigned keep = same ? shared(w, p) : 0, left_out = w->depth - keep;

	w->ref = 0;
	if (same && (keep || named)) {
		put_digits(w, 4 + left_out);
		if (w->depth) /* a step from the frame left out, or that outside it [BT-ENTRY-2] */
			move(w, w->pc[left_out ? keep : keep - 1]);
	} else {
		put_digits(w, named && p->depth ? 3 : p->base);
		if (named)
			fixed(w, p->outer, 6);
	}
	if (!named || same || p->depth)
		put_digits(w, p->depth - keep);
	for (; keep < p->depth; keep++) {
		put_frame(w, p->pc[keep]);
		w->pc[keep] = p->pc[keep];
	}
	w->base = p->base;
	w->outer = p->outer;
	w->depth = p->depth;
	put_digits(w, n ? v[0] + 1 : 0);
	for (unsigned i = 1; i < n; i++)
		put_digits(w, v[i]);
}

void lwsbt_paths_add(struct lwsbt_paths *w, const struct lwsbt_path *path, const lwsbt_word *v, unsigned n)
{
	unsigned left = path->depth;
	struct lwsbt_path p = *path;	/* the outer frames of those left */

	if (w->max == 0 || w->max > LWSBT_PATH_LINE)
		w->max = LWSBT_PATH_LINE;
	for (;;) {
		unsigned len = w->len;
		uint32_t name;

		if (len == 0)
			begin_line(w);
		put_entry(w, &p, v, p.depth < left ? 0 : n);
		name = p.depth < left ? lwsbt_name(w->code, &p) : 0;
		/* a path is not cut where its outer part has the name of a path of no frames */
		if (w->len + (unsigned)CRC_DIGITS <= w->max && (p.depth == left || p.depth == 1 || name > 1)) {
			left -= p.depth;
			if (left == 0)
				return;
			/* the outer frames are defined; the others go on from their name [BT-NAME-4] */
			p.outer = name;
			p.base = LWSBT_PATH_NAMED;
			p.pc += p.depth;
			p.depth = left;
		} else {
			w->len = len;
			if (len == 0)
				p.depth--;
		}
		lwsbt_paths_flush(w);
	}
}

void lwsbt_paths_flush(struct lwsbt_paths *w)
{
	if (w->len == 0)
		return;
	fixed(w, lwsbt_crc16(0xffff, w->text + 3, w->len - 3u), CRC_DIGITS); /* [BT-PLINE-2] */
	w->text[w->len] = '\n';
	w->out->put(w->out->arg, w->text, w->len + 1u);
	w->lines++;
	w->len = 0;
}
