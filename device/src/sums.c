/*
 * Dumps by call path of a heap that keeps its stacks in front of the blocks.
 */
#include "heap.h"

/* write writes what a slot holds, by name, and empties it. */
static void write_sum(struct lwsbt_paths *w, struct lwsbt_sum *s)
{
	struct lwsbt_path p = { NULL, 0, LWSBT_PATH_NAMED, s->name };
	lwsbt_word v[2] = { s->live, s->bytes };

	if (s->live)
		lwsbt_paths_add(w, &p, v, 2);
	s->live = 0;
	s->bytes = 0;
}

/* add adds a block. The first one of a path is written with its frames, unless flags say that they are
 * known, and those after it are added up. */
static void add_block(struct lwsbt_paths *w, struct lwsbt_sum *sums, struct lwsbt_stack *s, unsigned flags)
{
	struct lwsbt_path p;
	struct lwsbt_sum *sum;
	lwsbt_word v[2];
	uint32_t name;

	for (unsigned i = 0, k = s->depth; i + 1 < k--; i++) { /* outermost first */
		lwsbt_word pc = s->pc[i];

		s->pc[i] = s->pc[k];
		s->pc[k] = pc;
	}
	p.pc = s->pc;
	p.depth = (uint16_t)s->depth;
	p.base = s->depth < LWSBT_HEAP_DEPTH ? LWSBT_PATH_WHOLE : LWSBT_PATH_CUT;
	p.outer = 0;
	name = lwsbt_name(w->code, &p);
	/* one of 8 slots: that of the path, or the one that holds least */
	sum = &sums[name % LWSBT_SUMS];
	for (unsigned i = 4; i < 32 && sum->name != name; i += 4) {
		struct lwsbt_sum *other = &sums[(name >> i) % LWSBT_SUMS];

		if (other->name == name || other->live < sum->live)
			sum = other;
	}
	if (sum->name != name) {
		write_sum(w, sum);
		sum->name = name;
		/* a sixteenth of the paths is defined again in each dump [BT-NAME-4] */
		if (!(flags & LWSBT_NAMES) || (w->dump + (name >> 16)) % 16 == 0) {
			v[0] = 1;
			v[1] = s->size;
			lwsbt_paths_add(w, &p, v, 2);
			return;
		}
	}
	sum->live++;
	sum->bytes += s->size;
}

void lwsbt_dump_paths(struct lwsbt_heap *h, struct lwsbt_paths *w, struct lwsbt_sum *sums,
	uint32_t number, const char *why, unsigned flags)
{
	struct lwsbt_walk walk;
	struct lwsbt_stack s;
	uint32_t blocks = 0;
	size_t bytes = 0;

	lwsbt_head_paths(w->out, h->port, number, w->lines, NULL, 0, why);
	w->dump = number;
	w->flags = 0;
	for (unsigned i = 0; i < LWSBT_SUMS; i++) {
		sums[i].name = 0; /* of the path of no frames */
		sums[i].live = 0;
		sums[i].bytes = 0;
	}
	lwsbt_walk_begin(h, &walk);
	while (lwsbt_walk_stack(h, &walk, &s)) {
		blocks++;
		bytes += s.size;
		add_block(w, sums, &s, flags);
	}
	lwsbt_walk_end(h, &walk);
	for (unsigned i = 0; i < LWSBT_SUMS; i++)
		write_sum(w, &sums[i]);
	lwsbt_paths_flush(w);
	lwsbt_tail_paths(w->out, number, blocks, bytes, w->lines, 0);
}
