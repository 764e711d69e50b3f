/*
 * Dumps of a profile.
 */
#include "profile.h"

typedef char lwsbt_paths_are_deep_enough[LWSBT_PATH_DEPTH >= LWSBT_HEAP_DEPTH ? 1 : -1];

/* extend has all entries of a path written if e is: their sum replaces the path's values. [BT-DUMP-3] */
static void extend(struct lwsbt_profile *p, const struct lwsbt_entry *e)
{
	int written;

	lwsbt_lock(p->heap);
	written = e->bits & WRITTEN;
	lwsbt_unlock(p->heap);
	for (unsigned i = 0; written && i < p->entries; i++) {
		lwsbt_lock(p->heap);
		if (p->entry[i].node == e->node)
			p->entry[i].bits |= WRITTEN;
		lwsbt_unlock(p->heap);
	}
}

/* history returns the history of an entry; NULL if there is none. */
static const struct lwsbt_history *history(const struct lwsbt_profile *p, unsigned number)
{
	return LWSBT_EXTRAS && p->history ? &p->history[number] : NULL;
}

void lwsbt_profile_begin(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags)
{
	const struct lwsbt_out *out = d->lines.out;

	if (!LWSBT_EXTRAS)
		flags = 0;
	if (!d->ended)
		flags &= ~(unsigned)LWSBT_DIFF;
	lwsbt_head_paths(out, p->heap->port, number, d->lines.lines, flags & LWSBT_DIFF ? &d->base : NULL,
		LWSBT_EXTRAS ? p->sample : 0, why);
	for (unsigned i = 0; LWSBT_EXTRAS && i < p->entries; i++) {
		uint8_t *bits = &p->entry[i].bits;

		lwsbt_lock(p->heap);
		*bits = (uint8_t)((*bits & (USED | CUT | KNOWN)) | (*bits & CHANGED ? WRITTEN : 0));
		lwsbt_unlock(p->heap);
	}
	if (LWSBT_EXTRAS && (flags & LWSBT_DIFF))
		for (unsigned i = 0; i < p->entries; i++)
			extend(p, &p->entry[i]);
	d->lines.code = &p->code;
	d->lines.flags = history(p, 0) ? LWSBT_PATH_EVER | LWSBT_PATH_PEAK : 0;
	d->lines.dump = number;
	d->p = p;
	d->blocks = 0;
	d->cut = 0;
	d->bytes = 0;
	d->at = 0;
	d->flags = (uint8_t)flags;
	d->ended = 0;
}

static unsigned depth_of(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	unsigned n = 0;

	for (; node >= FIRST; node = lwsbt_parent(p, node, bits))
		n++;
	return n;
}

/* before reports whether the path of node a comes before that of node b: by offsets, outermost first; a path
 * before those that go on from it. */
static int before(const struct lwsbt_profile *p, unsigned a, unsigned b)
{
	unsigned bits = lwsbt_parent_bits(p), m = depth_of(p, a, bits), n = depth_of(p, b, bits);
	int shorter = m < n;

	for (; m > n; m--)
		a = lwsbt_parent(p, a, bits);
	for (; n > m; n--)
		b = lwsbt_parent(p, b, bits);
	if (a == b)
		return shorter;
	for (; n > 0; n--) {
		unsigned up = lwsbt_parent(p, a, bits), other = lwsbt_parent(p, b, bits);

		if (up == other)
			return lwsbt_value(p, a, bits) < lwsbt_value(p, b, bits);
		a = up;
		b = other;
	}
	return a < b;
}

/* wanted reports whether the entry is to be written in the dump. */
static int wanted(const struct lwsbt_profile_dump *d, const struct lwsbt_entry *e)
{
	if (!(e->bits & USED) || (e->bits & DONE))
		return 0;
	return LWSBT_EXTRAS && (d->flags & LWSBT_DIFF) ? (e->bits & WRITTEN) != 0 : e->live > 0 || history(d->p, 0);
}

/* choose returns the entry to write next, or NULL. */
static struct lwsbt_entry *choose(struct lwsbt_profile_dump *d)
{
	struct lwsbt_profile *p = d->p;
	struct lwsbt_entry *best = NULL;

	for (; d->at < p->entries && !best; d->at++) {
		lwsbt_lock(p->heap);
		if (wanted(d, &p->entry[d->at]))
			best = &p->entry[d->at];
		lwsbt_unlock(p->heap);
	}
	if (!LWSBT_EXTRAS || !best || !(d->flags & LWSBT_SORT))
		return best;
	d->at--; /* it may not be the first in order */
	for (unsigned i = d->at + 1u; i < p->entries; i++) {
		lwsbt_lock(p->heap);
		if (wanted(d, &p->entry[i]) && before(p, p->entry[i].node, best->node))
			best = &p->entry[i];
		lwsbt_unlock(p->heap);
	}
	return best;
}

/* path_of sets path to that of a node; its frames end at pc[LWSBT_HEAP_DEPTH - 1]. */
static void path_of(const struct lwsbt_profile *p, unsigned node, lwsbt_word *pc, struct lwsbt_path *path)
{
	unsigned bits = lwsbt_parent_bits(p), n = LWSBT_HEAP_DEPTH;

	for (; node >= FIRST && n > 0; node = lwsbt_outer(p, node, bits)) {
		uintptr_t x = lwsbt_value(p, node, bits);

		if (x == lwsbt_escape(bits)) {
			unsigned low = lwsbt_parent(p, node, bits), high = lwsbt_parent(p, low, bits);

			pc[--n] = (lwsbt_value(p, high, bits) - 1) << HALF | (lwsbt_value(p, low, bits) - 1);
		} else {
			pc[--n] = lwsbt_address(&p->code, (uint32_t)x - 1);
		}
	}
	path->pc = pc + n;
	path->depth = (uint16_t)(LWSBT_HEAP_DEPTH - n);
	path->base = (uint8_t)node;
}

/* write writes an entry. */
static LWSBT_NOINLINE void write(struct lwsbt_profile_dump *d, struct lwsbt_entry *e)
{
	struct lwsbt_profile *p = d->p;
	const struct lwsbt_history *h = history(p, (unsigned)(e - p->entry));
	lwsbt_word pc[LWSBT_HEAP_DEPTH], v[5];
	struct lwsbt_path path;
	unsigned bits;

	lwsbt_lock(p->heap);
	path_of(p, e->node, pc, &path);
	v[0] = e->live;
	v[1] = e->bytes;
	if (h) {
		v[2] = h->allocations;
		v[3] = h->bytes;
		v[4] = h->peak;
	}
	bits = e->bits;
	e->bits = (uint8_t)(bits | DONE | KNOWN);
	lwsbt_unlock(p->heap);
	/* a sixteenth of the paths is defined again in each dump [BT-NAME-4]: neighbours, which share outer frames */
	if (LWSBT_EXTRAS && (d->flags & LWSBT_NAMES) && (bits & KNOWN) && (d->lines.dump + e->node / 16) % 16 != 0 && path.depth > 0) {
		path.outer = lwsbt_name(&p->code, &path);
		path.base = LWSBT_PATH_NAMED;
		path.depth = 0;
	}
	lwsbt_paths_add(&d->lines, &path, v, h ? 5 : 2);
	d->blocks += (uint32_t)v[0];
	d->bytes += v[1];
	if (bits & CUT)
		d->cut += (uint32_t)v[0];
}

/* collect removes the entries that hold nothing, if the last dump reported this and they have no history, and the nodes that no entry
 * needs: nodes that one needs, or that were used meanwhile, are marked. */
static void collect(struct lwsbt_profile *p)
{
	unsigned bits = lwsbt_parent_bits(p), node;

	for (unsigned i = 0; i < p->nodes; i++) {
		lwsbt_lock(p->heap);
		p->node[i] &= ~MARK;
		lwsbt_unlock(p->heap);
	}
	for (unsigned i = 0; i < p->entries; i++) {
		struct lwsbt_entry *e = &p->entry[i];

		lwsbt_lock(p->heap);
		if (e->live == 0 && !(e->bits & CHANGED) && !history(p, i))
			e->bits = 0;
		for (node = e->bits ? e->node : 0; node >= FIRST; node = lwsbt_parent(p, node, bits))
			p->node[node - FIRST] |= MARK;
		lwsbt_unlock(p->heap);
	}
	for (unsigned i = 0; i < p->nodes; i++) {
		lwsbt_lock(p->heap);
		if (p->node[i] != EMPTY && !(p->node[i] & MARK))
			p->node[i] = REMOVED;
		lwsbt_unlock(p->heap);
	}
}

int lwsbt_profile_next(struct lwsbt_profile_dump *d)
{
	struct lwsbt_entry *e = choose(d);

	if (e) {
		write(d, e);
		return 1;
	}
	lwsbt_paths_flush(&d->lines);
	lwsbt_tail_paths(d->lines.out, d->lines.dump, d->blocks, d->bytes, d->lines.lines, d->cut);
	collect(d->p);
	d->base = d->lines.dump;
	d->ended = 1;
	return 0;
}

void lwsbt_profile_dump(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags)
{
	lwsbt_profile_begin(p, d, number, why, flags);
	while (lwsbt_profile_next(d))
		;
}

int lwsbt_low(struct lwsbt_profile *p, size_t free, size_t limit)
{
	uint32_t failed = p->failed;
	int was = p->low, low = free < limit || (was && free < limit + limit / 4), new = failed != p->seen;

	p->low = (uint8_t)low;
	p->seen = failed;
	return new || (low && !was);
}
