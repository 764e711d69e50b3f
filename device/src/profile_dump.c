/*
 * Dumps of a profile.
 */
#include "profile.h"

typedef char lwsbt_paths_are_deep_enough[LWSBT_PATH_DEPTH >= LWSBT_HEAP_DEPTH ? 1 : -1];

/* extend has all entries of a path written if e is: their sum replaces the path's values. [BT-DUMP-3] */
static void want_all(struct lwsbt_profile *p, const struct lwsbt_entry *e)
{
	uint32_t key;

	lwsbt_lock(p->heap);
	key = e->key;
	lwsbt_unlock(p->heap);
	for (unsigned i = 0; (key & WRITTEN) && i < p->entries; i++) {
		lwsbt_lock(p->heap);
		if (((p->entry[i].key ^ key) & (USED | NODE)) == 0)
			p->entry[i].key |= WRITTEN;
		lwsbt_unlock(p->heap);
	}
}

/* history returns the history of an entry; NULL if there is none. */
static const struct lwsbt_history *history(const struct lwsbt_profile *p, unsigned number)
{
	return LWSBT_EXTRAS && p->history ? &p->history[number] : NULL;
}

static unsigned depth_of(const struct lwsbt_profile *p, unsigned node, unsigned bits)
{
	unsigned n = 0;

	for (; node >= FIRST_NODE; node = lwsbt_parent(p, node, bits))
		n++;
	return n;
}

/* repeats reports whether the dump writes the frames of the path of node again: each does so for a sixteenth of the
 * paths. Those with the same four outermost nodes are written again together, as they share frames. [BT-NAME-4] */
static int repeats(const struct lwsbt_profile *p, unsigned node, uint32_t number)
{
	unsigned bits = lwsbt_parent_bits(p), depth = depth_of(p, node, bits);

	for (; depth > 4; depth--)
		node = lwsbt_parent(p, node, bits);
	return (node + number) % 16 == 0;
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
		uint32_t *key = &p->entry[i].key;

		lwsbt_lock(p->heap);
		*key = (*key & (PATH | KNOWN)) | (*key & CHANGED ? WRITTEN : 0);
		if ((flags & LWSBT_NAMES) && repeats(p, *key & NODE, number))
			*key &= ~(uint32_t)KNOWN;
		lwsbt_unlock(p->heap);
	}
	if (LWSBT_EXTRAS && (flags & LWSBT_DIFF))
		for (unsigned i = 0; i < p->entries; i++)
			want_all(p, &p->entry[i]);
	d->lines.code = &p->code;
	if (LWSBT_EXTRAS)
		d->lines.flags = p->history ? LWSBT_PATH_EVER | LWSBT_PATH_PEAK : 0;
	d->lines.dump = number;
	lwsbt_count(p->heap, &p->dumps);
	d->p = p;
	d->blocks = 0;
	d->cut = 0;
	d->bytes = 0;
	d->at = 0;
	d->flags = (uint8_t)flags;
	d->ended = 0;
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
	if (e->key & DONE)
		return 0;
	if (LWSBT_EXTRAS && (d->flags & LWSBT_DIFF))
		return (e->key & WRITTEN) != 0;
	return e->live > 0 || (history(d->p, 0) && (e->key & USED));
}

/* first returns the first wanted entry in the order of paths, or NULL. */
static struct lwsbt_entry *first_entry(const struct lwsbt_profile_dump *d)
{
	struct lwsbt_profile *p = d->p;
	struct lwsbt_entry *best = NULL;

	for (unsigned i = 0; i < p->entries; i++) {
		struct lwsbt_entry *e = &p->entry[i];

		lwsbt_lock(p->heap);
		if (wanted(d, e) && (!best || before(p, e->key & NODE, best->key & NODE)))
			best = e;
		lwsbt_unlock(p->heap);
	}
	return best;
}

/* path_of sets path to that of a node, and marks its nodes. The frames end at pc[LWSBT_HEAP_DEPTH - 1]. */
static void path_of(struct lwsbt_profile *p, unsigned node, lwsbt_word *pc, struct lwsbt_path *path)
{
	unsigned n = LWSBT_HEAP_DEPTH;

	while (node >= FIRST_NODE && n > 0)
		node = lwsbt_outer(p, node, &pc[--n]);
	path->pc = pc + n;
	path->depth = LWSBT_HEAP_DEPTH - n;
	path->base = node;
	path->outer = 0;
}

/* write writes an entry if it is wanted, and reports whether it is. It marks the nodes of the path of any entry. It
 * removes an entry that holds nothing and has no history, once a dump has reported this. */
static int write_entry(struct lwsbt_profile_dump *d, struct lwsbt_entry *e)
{
	struct lwsbt_profile *p = d->p;
	const struct lwsbt_history *h = history(p, (unsigned)(e - p->entry));
	lwsbt_word pc[LWSBT_HEAP_DEPTH], v[5];
	struct lwsbt_path path;
	uint32_t key;
	int write;

	lwsbt_lock(p->heap);
	key = e->key;
	write = wanted(d, e);
	if (write)
		e->key |= DONE | KNOWN;
	v[0] = e->live;
	v[1] = e->bytes;
	if (h) {
		v[2] = h->allocations;
		v[3] = h->bytes;
		v[4] = h->peak;
	}
	path_of(p, key & NODE, pc, &path);
	if (e->live == 0 && !(e->key & CHANGED) && !h)
		e->key = 0;
	lwsbt_unlock(p->heap);
	if (!write)
		return 0;
	if (LWSBT_EXTRAS && (d->flags & LWSBT_NAMES) && (key & KNOWN) && path.depth > 0) {
		uint32_t name = lwsbt_name(&p->code, &path);

		if (name > 1) { /* 0 and 1 are the names of paths of no frames [BT-NAME-4] */
			path.outer = name;
			path.base = LWSBT_PATH_NAMED;
			path.depth = 0;
		}
	}
	lwsbt_paths_add(&d->lines, &path, v, h ? 5 : 2);
	d->blocks += (uint32_t)v[0];
	d->bytes += v[1];
	if (key & CUT)
		d->cut += (uint32_t)v[0];
	return 1;
}

/* sweep removes the nodes that are not marked: since the dump began, no block was counted below them, and no entry
 * was found that needs them. */
static void sweep(struct lwsbt_profile *p)
{
	for (unsigned i = 0; i < p->nodes; i++) {
		lwsbt_lock(p->heap);
		if (((p->node[i] ^ lwsbt_marked(p)) & MARK) && p->node[i] << 1 != EMPTY)
			p->node[i] = REMOVED;
		lwsbt_unlock(p->heap);
	}
}

/* choose returns the entry to look at next; d->at is below the number of entries. With LWSBT_SORT, those that are wanted
 * come first, and then all once more: write removes some. */
static struct lwsbt_entry *choose(struct lwsbt_profile_dump *d)
{
	if (LWSBT_EXTRAS && (d->flags & LWSBT_SORT)) {
		struct lwsbt_entry *e = first_entry(d);

		if (e)
			return e;
		d->flags &= (uint8_t)~LWSBT_SORT;
	}
	return &d->p->entry[d->at++];
}

int lwsbt_profile_next(struct lwsbt_profile_dump *d)
{
	while (d->at < d->p->entries)
		if (write_entry(d, choose(d)))
			return 1;
	sweep(d->p);
	lwsbt_paths_flush(&d->lines);
	lwsbt_tail_paths(d->lines.out, d->lines.dump, d->blocks, d->bytes, d->lines.lines, d->cut);
	if (LWSBT_EXTRAS) { /* for LWSBT_DIFF */
		d->base = d->lines.dump;
		d->ended = 1;
	}
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
