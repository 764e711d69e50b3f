/*
 * ~p# lines: call paths, written. Each field is a whole number of base64 digits.
 */
#include "internal.h"

enum {
	ESCAPE = 0xfffffff,	/* in the place of a step: an address follows [BT-DIGIT-3] */
	CRC_DIGITS = 3
};

uint32_t lwsbt_offset(const struct lwsbt_code *c, lwsbt_word pc)
{
	lwsbt_word sum = 0, at;

	for (unsigned i = 0; i < c->count; i++) {
		at = pc - c->range[i].start;
		if (at < c->range[i].end - c->range[i].start) {
			sum += at;
			at = sum >> c->shift;
			return at >> 27 || at << c->shift != sum ? LWSBT_NO_OFFSET : (uint32_t)at;
		}
		sum += c->range[i].end - c->range[i].start;
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
		digit(w, v);
}

static LWSBT_NOINLINE void number(struct lwsbt_paths *w, lwsbt_word v)
{
	for (; v >> 5; v >>= 5)
		digit(w, (v & 31) | 32);
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

/* reference returns what a step from the frame at pc starts from. [BT-ENTRY-2] */
static uint32_t reference(const struct lwsbt_paths *w, lwsbt_word pc)
{
	uint32_t x = lwsbt_offset(w->code, pc);

	return x == LWSBT_NO_OFFSET ? 0 : x;
}

/* entry writes the first depth frames of p with n values. [BT-ENTRY-1, BT-SHARE-1] */
static void entry(struct lwsbt_paths *w, const struct lwsbt_path *p, unsigned depth, const lwsbt_word *v, unsigned n)
{
	unsigned keep = 0, k;
	uint32_t ref = 0;
	int named = p->base == LWSBT_PATH_NAMED, same = w->any && w->base == p->base && (!named || w->outer == p->outer);

	while (same && keep < w->depth && keep < depth && w->pc[keep] == p->pc[keep])
		keep++;
	k = p->base;
	if (same && (named || keep > 0)) {
		k = 4u + w->depth - keep;
		if (keep < w->depth)
			ref = reference(w, w->pc[keep]);
		else if (keep > 0)
			ref = reference(w, p->pc[keep - 1]);
	} else if (named && depth > 0) {
		k = 3;
	}
	number(w, k);
	if (k == 2 || k == 3)
		fixed(w, p->outer, 6);
	if (k != 2)
		number(w, depth - keep);
	for (; keep < depth; keep++) {
		uint32_t x = lwsbt_offset(w->code, p->pc[keep]), d = x - ref;

		if (x == LWSBT_NO_OFFSET) {
			step(w, ESCAPE);
			number(w, p->pc[keep]);
			ref = 0;
		} else {
			step(w, x >= ref ? 2 * d : ~(2 * d));
			ref = x;
		}
	}
	number(w, n ? v[0] + 1 : 0);
	while (n > 1) {
		number(w, *++v);
		n--;
	}
}

/* begin begins a line. [BT-PLINE-1] */
static void begin(struct lwsbt_paths *w)
{
	w->text[0] = '~';
	w->text[1] = 'p';
	w->text[2] = '#';
	w->len = 3;
	digit(w, w->flags);
	digit(w, w->dump);
	fixed(w, w->lines, 2);
}

void lwsbt_paths_add(struct lwsbt_paths *w, const struct lwsbt_path *path, const lwsbt_word *v, unsigned n)
{
	unsigned max = w->max && w->max < LWSBT_PATH_LINE ? w->max : LWSBT_PATH_LINE, depth = path->depth;
	struct lwsbt_path p = *path;

	for (;;) {
		unsigned len = w->len;
		int rest = depth < p.depth;

		if (len == 0)
			begin(w);
		entry(w, &p, depth, v, rest ? 0 : n);
		if (w->len + (unsigned)CRC_DIGITS <= max) {
			w->any = 1;
			w->base = p.base;
			w->outer = p.outer;
			w->depth = (uint16_t)depth;
			for (unsigned i = 0; i < depth; i++)
				w->pc[i] = p.pc[i];
			if (!rest)
				return;
			/* the outer frames are defined; the others go on from their name [BT-NAME-4] */
			p.depth = (uint16_t)depth;
			p.outer = lwsbt_name(w->code, &p);
			p.base = LWSBT_PATH_NAMED;
			p.pc += depth;
			p.depth = (uint16_t)(path->depth - (p.pc - path->pc));
			depth = p.depth;
			lwsbt_paths_flush(w);
		} else {
			w->len = (uint16_t)len;
			if (len == 0)
				depth--;
			lwsbt_paths_flush(w);
		}
	}
}

void lwsbt_paths_flush(struct lwsbt_paths *w)
{
	uint32_t crc = 0xffff;

	if (w->len == 0)
		return;
	for (unsigned i = 3; i < w->len; i++) {	/* CRC-16/IBM-3740 [BT-PLINE-2] */
		crc ^= (uint32_t)(unsigned char)w->text[i] << 8;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x8000 ? 0x1021u : 0);
	}
	fixed(w, crc & 0xffff, CRC_DIGITS);
	w->text[w->len++] = '\n';
	w->out->put(w->out->arg, w->text, w->len);
	w->lines++;
	w->len = 0;
	w->any = 0;
}
