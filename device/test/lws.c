/*
 * The heap beside the real libwebsockets: each reads the other's memory. Prints what
 * was compared; exit code 1 on a difference.
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static uint64_t state = 88172645463325252u;

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

/* Stacks of random depth, of addresses of up to 31 bits, which lws reads rightly. */
static struct lwsbt_stack now;

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	(void)skip;
	(void)ctx;
	now.depth = below((unsigned)max + 1);
	for (unsigned n = 0; n < now.depth; n++) {
		now.pc[n] = below(1u << (1 + below(31)));
		if (n && below(2))
			now.pc[n] = (now.pc[n - 1 - below(n < 8 ? n : 8)] + below(4096)) & 0x7fffffff;
		pcs[n] = now.pc[n];
	}
	return now.depth;
}

static struct lwsbt_heap heap;
static const struct lwsbt_allocator allocator = { malloc, realloc, free, NULL };

#define BLOCKS 2000
static struct block {
	void *p, *start;
	struct lwsbt_stack stack;
} blocks[BLOCKS];
static unsigned count, dumped;

static int same(const lws_backtrace_info_t *si, const struct lwsbt_stack *s)
{
	if (si->sp != s->depth || si->asize != s->size)
		return 0;
	for (unsigned n = 0; n < s->depth; n++)
		if (si->st[n] != s->pc[n])
			return 0;
	return 1;
}

/* lws walks our list, and calls this for each node. */
static int see(struct lws_dll2 *d, void *user)
{
	lws_backtrace_info_t si;

	(void)user;
	CHECK(dumped < count);
	CHECK((void *)(d + 1) == blocks[dumped].p);
	CHECK(lws_alloc_metadata_parse(&si, (const uint8_t *)d) == 0);
	CHECK(same(&si, &blocks[dumped].stack));
	dumped++;
	return 0;
}

static void lws_reads_ours(unsigned how)
{
	unsigned n;

	memset(&heap, 0, sizeof heap);
	heap.capture = capture;
	heap.how = (uint8_t)how;
	for (count = 0; count < BLOCKS; count++) {
		struct block *b = &blocks[count];
		size_t size = below(2) ? below(100) : below(1000000);

		b->p = lwsbt_heap_malloc(&heap, &allocator, size, NULL);
		CHECK(b->p);
		b->stack = now;
		b->stack.size = size;
	}
	dumped = 0;
	_lws_alloc_metadata_dump((lws_dll2_owner_t *)(void *)&heap, see, NULL);
	CHECK(dumped == BLOCKS && heap.count == BLOCKS);
	/* lws takes half of them off the list and finds where they begin: at what malloc gave */
	for (n = 0; n < BLOCKS; n++) {
		if (n % 2) {
			_lws_alloc_metadata_trim(&blocks[n].p, NULL, NULL);
			free(blocks[n].p);
		} else {
			lwsbt_heap_free(&heap, &allocator, blocks[n].p);
		}
	}
	CHECK(heap.count == 0 && !heap.head && !heap.tail && heap.damaged == 0);
}

/* Real stacks, at different depths, so that they differ. */
static void *lws_allocate(size_t size, unsigned depth, struct block *b)
{
	uint8_t comp[400];
	size_t adj, cl;
	void *v;

	if (depth) {
		v = lws_allocate(size, depth - 1, b);
		*(volatile char *)v = 1; /* not a tail call */
		return v;
	}
	lws_alloc_metadata_gen(size, comp, sizeof comp, &adj, &cl);
	v = malloc(adj + size + 1);
	CHECK(v);
	b->start = v;
	_lws_alloc_metadata_adjust((lws_dll2_owner_t *)(void *)&heap, &v, adj, comp, (unsigned)cl);
	return v;
}

static void ours_reads_lws(void)
{
	struct lwsbt_walk w;
	uint8_t buf[LWSBT_RECORD_MAX];
	unsigned n = 0, deepest = 0;
	size_t len;

	memset(&heap, 0, sizeof heap);
	heap.lo = 0; /* lws does not tell where its metadata is */
	heap.hi = UINTPTR_MAX;
	for (count = 0; count < 200; count++) {
		struct block *b = &blocks[count];
		size_t size = below(100000);

		b->p = lws_allocate(size, count % 30, b);
		b->stack.size = size;
	}
	lwsbt_walk_begin(&heap, &w);
	while ((len = lwsbt_walk_next(&heap, &w, buf, sizeof buf, 0)) != 0) {
		const uint8_t *node = (const uint8_t *)w.p - sizeof(struct lwsbt_node);
		lws_backtrace_info_t si;
		struct lwsbt_stack s;

		CHECK(w.p == blocks[n].p && w.size == blocks[n].stack.size);
		CHECK(lws_alloc_metadata_parse(&si, node) == 0);
		CHECK(lwsbt_decode(&s, buf, len, LWSBT_WORD_BITS) == LWSBT_OK);
		CHECK(si.sp == s.depth && si.asize == s.size);
		for (unsigned i = 0; i < s.depth; i++) /* lws reads no more of them rightly */
			CHECK(((si.st[i] ^ s.pc[i]) & 0x7fffffff) == 0);
		CHECK(lwsbt_meta_parse(&heap, &s, w.p) == LWSBT_OK && s.depth == si.sp);
		if (s.depth > deepest)
			deepest = s.depth;
		n++;
	}
	lwsbt_walk_end(&heap, &w);
	CHECK(n == count && heap.damaged == 0 && deepest > 20);
	for (n = 0; n < count; n++) {
		void *start = lwsbt_meta_trim(&heap, blocks[n].p);

		CHECK(start == blocks[n].start);
		free(start);
	}
	CHECK(heap.count == 0 && !heap.head && !heap.tail);
}

int main(void)
{
	lws_reads_ours(LWSBT_SEARCH_LWS);
	lws_reads_ours(LWSBT_SEARCH_BEST);
	lws_reads_ours(LWSBT_SEARCH_BEST | LWSBT_WRAP64);
	ours_reads_lws();
	printf("ok: lws read %d allocations of ours 3 times, and we 200 of its\n", BLOCKS);
	return 0;
}
