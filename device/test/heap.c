/*
 * The heap held to a model: random allocations over an allocator that fails at
 * times, each with a stack of its own, and all that is live read back. Then damage of every
 * kind. Prints what it did; exit code 1 on the first difference.
 *
 *   heap [SEED [OPERATIONS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"
#include "../src/heap.h"

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static uint64_t state;

/* below returns a random number less than n. (xorshift64*) */
static unsigned below(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- the allocator below: fails 1 of fail_one_in times, fills what it gives */

static unsigned fail_one_in;
static long outstanding;
static size_t asked;		/* of the last allocation */
static uint8_t *last_start;

/* True starts are aligned as malloc's. Its own start and its size stand before each. */
/* One piece of memory for all, where blocks are not freed: what reads outside it, or
 * in a block that is not its own, can be told from what reads damage. */
static union {
	uint8_t byte[1 << 15];
	uint64_t align;
} arena;
static size_t used;

static void *from_arena(size_t size)
{
	size_t at = used;

	used += (size + 15) / 16 * 16;
	CHECK(used <= sizeof arena);
	return arena.byte + at;
}

static void no_release(void *p) { (void)p; }
static const struct lwsbt_allocator arena_allocator = { from_arena, NULL, no_release, NULL };

static void *aligned(size_t align, size_t size)
{
	uint8_t *raw, *p;

	if (fail_one_in && below(fail_one_in) == 0)
		return NULL;
	if (align < LWSBT_ALIGN)
		align = LWSBT_ALIGN;
	if (size > 1u << 24)
		return NULL;
	raw = malloc(size + align + 2 * sizeof(void *) + LWSBT_ALIGN);
	CHECK(raw);
	p = (uint8_t *)(((uintptr_t)raw + 2 * sizeof(void *) + LWSBT_ALIGN + align - 1) & ~(uintptr_t)(align - 1));
	memcpy(p - sizeof raw, &raw, sizeof raw);
	memcpy(p - 2 * sizeof raw, &size, sizeof size);
	memset(p, 0xa5, size);
	outstanding++;
	asked = size;
	last_start = p;
	return p;
}

static void *allocate(size_t size) { return aligned(0, size); }

static void release(void *p)
{
	uint8_t *raw;

	memcpy(&raw, (uint8_t *)p - sizeof raw, sizeof raw);
	free(raw);
	outstanding--;
}

static void *resize(void *p, size_t size)
{
	size_t old;
	uint8_t *q = aligned(0, size); /* always moves */

	if (!q)
		return NULL;
	memcpy(&old, (uint8_t *)p - 2 * sizeof(void *), sizeof old);
	memcpy(q, p, old < size ? old : size);
	release(p);
	return q;
}

static const struct lwsbt_allocator allocator = { allocate, resize, release, aligned };

/* ---- stacks: of random depth, remembered */

static struct lwsbt_stack now;

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	(void)skip;
	(void)ctx;
	CHECK(max == LWSBT_HEAP_DEPTH);
	now.depth = below(8) ? below(16) : below(LWSBT_HEAP_DEPTH + 1);
	for (unsigned n = 0; n < now.depth; n++) {
		now.pc[n] = ((uintptr_t)below(0x7fffffff) << 1 | below(2)) & ~(uintptr_t)1;
		if (sizeof(uintptr_t) > 4 && below(2))
			now.pc[n] |= (uintptr_t)((uint64_t)below(0x7fff) << 32);
		if (n && below(3))
			now.pc[n] = now.pc[below(n)] + below(4096) - 2048;
	}
	memcpy(pcs, now.pc, now.depth * sizeof *pcs);
	return now.depth;
}

/* ---- the platform */

static int in_interrupt;
static unsigned damages, last_damage;
static unsigned events[3];
static uint64_t ticks;
static struct lwsbt_heap heap;
static int locked;

static void lock(void *arg) { (void)arg; CHECK(!locked); locked = 1; }
static void unlock(void *arg) { (void)arg; CHECK(locked); locked = 0; }
static int interrupt(void *arg) { (void)arg; return in_interrupt; }
static uint64_t clock_now(void *arg) { (void)arg; return ticks += 1000003; }
static uintptr_t thread(void *arg) { (void)arg; return 7; }

static void damaged(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node)
{
	(void)arg;
	(void)node;
	CHECK(!locked);
	damages++;
	last_damage = (unsigned)what;
}

static void event(void *arg, const struct lwsbt_event *e, const struct lwsbt_stack *s)
{
	uint32_t reentered = heap.reentered, count = heap.count;
	void *p;

	(void)arg;
	(void)s;
	CHECK(!locked);
	events[e->kind]++;
	/* an allocation here has no metadata */
	p = lwsbt_heap_malloc(&heap, &allocator, 10, NULL);
	CHECK(!LWSBT_NESTED || (heap.reentered == reentered + 1 && heap.count == count));
	if (p)
		lwsbt_heap_free(&heap, &allocator, p);
}

static struct lwsbt_port port = { NULL, lock, unlock, NULL, interrupt, NULL, clock_now, thread, event, damaged, NULL };

#if LWSBT_QUARANTINE
static int in_arena(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)&arena && (uintptr_t)p < (uintptr_t)(&arena + 1);
}
#endif

/* flush releases what is in quarantine. */
static void flush(void)
{
#if LWSBT_QUARANTINE
	for (unsigned i = 0; i < LWSBT_QUARANTINE; i++)
		if (heap.freed[i].node && !in_arena(heap.freed[i].node)) {
			release(heap.freed[i].start);
			heap.freed[i].node = NULL;
		}
#endif
}

/* ---- the model */

#define BLOCKS 200

static struct block {
	uint8_t *p;
	size_t size;
	int tracked;
	struct lwsbt_stack stack;
	uint8_t fill;
	uint32_t sequence;
} blocks[BLOCKS];

static size_t total;
static uint32_t tracked;

static int same(const struct lwsbt_stack *a, const struct lwsbt_stack *b)
{
	return a->depth == b->depth && a->size == b->size &&
		memcmp(a->pc, b->pc, a->depth * sizeof *a->pc) == 0;
}

static void fill(struct block *b)
{
	b->fill = (uint8_t)below(256);
	memset(b->p, b->fill, b->size);
}

static void check_fill(const struct block *b, size_t size)
{
	for (size_t i = 0; i < size; i++)
		CHECK(b->p[i] == b->fill);
}

static void took(struct block *b, void *p, size_t size, uint32_t count_before)
{
	b->p = p;
	b->size = size;
	b->tracked = heap.count > count_before;
	b->stack = now;
	b->stack.size = size;
	b->sequence = heap.sequence - 1;
	if (b->tracked) {
		total += size;
		tracked++;
	}
	fill(b);
}

static void check_block(const struct block *b)
{
	struct lwsbt_stack s;
	enum lwsbt_result e = lwsbt_meta_parse(&heap, &s, b->p);

	if (!b->tracked) {
		CHECK(e == LWSBT_EMPTY);
		return;
	}
	CHECK(e == LWSBT_OK);
	CHECK(same(&s, &b->stack));
	/* and by the general decoder, from the end pointer */
	e = lwsbt_decode_at_end(&s, b->p - sizeof(struct lwsbt_node), LWSBT_LENGTH_MAX,
		LWSBT_WORD_BITS, NULL, NULL);
	CHECK(e == LWSBT_OK && same(&s, &b->stack));
}

static const struct block *find(const void *p)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i].p == p)
			return &blocks[i];
	return NULL;
}

/* check_walk walks the list, and holds each record to the model. */
static void check_walk(void)
{
	struct lwsbt_walk w;
	uint8_t buf[LWSBT_RECORD_MAX];
	uint32_t seen = 0;
	size_t len, bytes = 0;
	unsigned flags = below(2) ? LWSBT_KEEP_ADDRESS : 0;

	lwsbt_walk_begin(&heap, &w);
	while ((len = lwsbt_walk_next(&heap, &w, buf, sizeof buf, flags)) != 0) {
		const struct block *b = find(w.p);
		struct lwsbt_stack s;
		uint64_t v, fields[16] = { 0 };
		unsigned tag, n = 0;
		size_t pos;

		CHECK(b && b->tracked && w.size == b->size);
		CHECK(lwsbt_decode(&s, buf, len, LWSBT_WORD_BITS) == LWSBT_OK);
		CHECK(same(&s, &b->stack));
		pos = s.end;
		while (lwsbt_user(buf, len, &pos, &tag, &v) == LWSBT_OK && tag) {
			fields[tag] = v;
			n++;
		}
		CHECK(8 * (len - 2) - pos < 8); /* no more than a record needs */
		CHECK(LWSBT_FIELDS || n == 0);
		CHECK(!LWSBT_FIELDS || n == (flags ? 1u : 0u) + (heap.flags & LWSBT_KEEP_SEQUENCE ? 1u : 0u) +
			(heap.flags & LWSBT_KEEP_TIME ? 1u : 0u) + (heap.flags & LWSBT_KEEP_THREAD ? 1u : 0u));
		if (LWSBT_FIELDS && flags)
			CHECK(fields[LWSBT_TAG_ADDRESS] == (uintptr_t)b->p);
		if (LWSBT_FIELDS && (heap.flags & LWSBT_KEEP_SEQUENCE))
			CHECK(fields[LWSBT_TAG_SEQUENCE] == b->sequence);
		if (LWSBT_FIELDS && (heap.flags & LWSBT_KEEP_THREAD))
			CHECK(fields[LWSBT_TAG_THREAD] == 7);
		seen++;
		bytes += w.size;
	}
	lwsbt_walk_end(&heap, &w);
	CHECK(seen == heap.count && seen == tracked);
	CHECK(bytes == heap.bytes && bytes == total);
}

static size_t some_size(void) { return below(50) ? below(200) : below(70000); }

static void forget(struct block *b)
{
	if (b->tracked) {
		total -= b->size;
		tracked--;
	}
	b->p = NULL;
}

static void step(void)
{
	struct block *b = &blocks[below(BLOCKS)];
	size_t size = some_size(), align = 0;
	uint32_t before = heap.count;
	void *p;

	if (b->p) {
		check_block(b);
		check_fill(b, b->size);
		if (below(3) == 0 && size) { /* realloc */
			struct block old = *b;

			p = lwsbt_heap_realloc(&heap, &allocator, b->p, size, NULL);
			if (!p) {
				check_block(b);
				return;
			}
			CHECK((uintptr_t)p % LWSBT_ALIGN == 0);
			CHECK(heap.count == before);
			b->p = p;
			check_fill(b, old.size < size ? old.size : size);
			b->p = old.p;
			forget(b);
			took(b, p, size, old.tracked ? before - 1 : before);
			CHECK(b->tracked == old.tracked);
			return;
		}
		lwsbt_heap_free(&heap, &allocator, b->p);
		CHECK(heap.count == before - (b->tracked ? 1u : 0u));
		forget(b);
		return;
	}
	switch (below(4)) {
	case 0:
		p = lwsbt_heap_calloc(&heap, &allocator, size, 1, NULL);
		for (size_t i = 0; p && i < size; i++)
			CHECK(((uint8_t *)p)[i] == 0);
		break;
	case 1:
		align = (size_t)1 << below(14);
		p = lwsbt_heap_memalign(&heap, &allocator, align, size, NULL);
		break;
	default:
		p = lwsbt_heap_malloc(&heap, &allocator, size, NULL);
	}
	if (!p)
		return;
	CHECK((uintptr_t)p % (align > LWSBT_ALIGN ? align : LWSBT_ALIGN) == 0);
	took(b, p, size, before);
}

static void drain(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (blocks[i].p) {
			lwsbt_heap_free(&heap, &allocator, blocks[i].p);
			forget(&blocks[i]);
		}
	}
	CHECK(heap.count == 0 && heap.bytes == 0 && !heap.head && !heap.tail);
	flush();
	CHECK(outstanding == 0);
}

static void begin(unsigned flags)
{
	flush();
	memset(&heap, 0, sizeof heap);
	heap.capture = capture;
	heap.port = &port;
	heap.flags = (uint8_t)flags;
	total = 0;
	tracked = 0;
	damages = 0;
}

static void model(unsigned operations)
{
	for (unsigned flags = 0; flags < 32; flags = flags == 7 ? LWSBT_CHECK_UNTRACKED : flags == 16 ? 32 : flags + 1) {
		begin(flags);
		heap.how = (uint8_t)(flags & 1 ? LWSBT_SEARCH_LWS : LWSBT_SEARCH_BEST);
		fail_one_in = 0;
		for (unsigned i = 0; i < operations; i++) {
			if (i == operations / 2)
				fail_one_in = 6;
			step();
			if (i % 64 == 0)
				check_walk();
		}
		CHECK(damages == 0 && heap.damaged == 0);
		CHECK(heap.untracked > 0); /* some had no memory for metadata */
		CHECK(heap.peak >= heap.bytes && heap.peak_count > 0);
		drain();
	}
	fail_one_in = 0;
	CHECK(!LWSBT_FIELDS || events[0] > operations);
	CHECK(!LWSBT_FIELDS || (events[1] > operations / 2 && events[2] > operations / 8));
}

/* While one walks, others free and allocate. */
static void walks(void)
{
	for (unsigned round = 0; round < 200; round++) {
		struct lwsbt_walk w;
		uint8_t buf[LWSBT_RECORD_MAX], seen[BLOCKS] = { 0 }, freed[BLOCKS] = { 0 };
		unsigned n = 2 + below(BLOCKS - 2);

		begin(0);
		for (unsigned i = 0; i < n; i++)
			took(&blocks[i], lwsbt_heap_malloc(&heap, &allocator, i, NULL), i, heap.count);
		for (unsigned i = 0; i < n; i++)
			blocks[i].tracked = 1;
		tracked = n;
		total = heap.bytes;
		lwsbt_walk_begin(&heap, &w);
		for (;;) {
			for (unsigned k = below(4); k > 0; k--) {
				unsigned i = below(n);
				void *p;

				if (blocks[i].p) {
					lwsbt_heap_free(&heap, &allocator, blocks[i].p);
					forget(&blocks[i]);
					freed[i] = 1;
				}
				p = lwsbt_heap_malloc(&heap, &allocator, 100000, NULL); /* is left out */
				CHECK(p);
				if (below(2)) {
					lwsbt_heap_free(&heap, &allocator, p);
				} else {
					for (i = n; i < BLOCKS && blocks[i].p; i++)
						;
					if (i < BLOCKS)
						took(&blocks[i], p, 100000, 0);
					else
						lwsbt_heap_free(&heap, &allocator, p);
				}
			}
			if (!lwsbt_walk_next(&heap, &w, buf, sizeof buf, 0))
				break;
			CHECK(w.size < n && blocks[w.size].p == w.p && !seen[w.size]);
			seen[w.size] = 1;
		}
		lwsbt_walk_end(&heap, &w);
		CHECK(!heap.walks && damages == 0);
		for (unsigned i = 0; i < n; i++)
			CHECK(seen[i] || freed[i]);
		drain();
	}
}

/* Each kind of damage is noticed, once at each free and walk, and never followed. */
static void damage(void)
{
	enum { N = 20 };

	for (unsigned round = 0; round < 2000; round++) {
		struct lwsbt_node *node;
		struct lwsbt_walk w;
		uint8_t buf[LWSBT_RECORD_MAX], *p[N];
		unsigned victim = below(N), kind = below(7), records = 0;
		void *q;

		begin(LWSBT_CHECK_UNTRACKED);
		used = 64; /* what the first block overflows into */
		memset(&arena, (int)below(256), sizeof arena);
		for (unsigned i = 0; i < N; i++)
			CHECK((p[i] = lwsbt_heap_malloc(&heap, &arena_allocator, 40, NULL)) != NULL);
		node = (struct lwsbt_node *)(void *)(p[victim] - sizeof *node);
		switch (kind) {
		case 0: node->prev = (struct lwsbt_node *)(uintptr_t)(8 * (1 + below(1000))); break;
		case 1: node->next = (struct lwsbt_node *)(void *)(p[below(N)] + below(3)); break;
		case 2: node->owner = (struct lwsbt_heap *)(void *)p; break;
		case 3: memset(node, (int)below(256), sizeof *node); break;
		case 4: ((uint8_t *)node)[-1] ^= (uint8_t)(1 + below(255)); break; /* length */
		case 5: ((uint8_t *)node)[-2] = 0xff; break;
		case 6: /* an overflow from the block before */
			memset((uint8_t *)node - 12, 0xff, 12);
			break;
		}
		lwsbt_walk_begin(&heap, &w);
		while (lwsbt_walk_next(&heap, &w, buf, sizeof buf, 0))
			records++;
		lwsbt_walk_end(&heap, &w);
		if (kind >= 4 && damages == 0) {
			/* another length can be one that makes sense: nothing can tell */
			CHECK(kind == 4 && records == N);
		} else {
			CHECK(damages == 1 && heap.damaged == 1);
			CHECK(last_damage == (kind < 4 ? LWSBT_DAMAGED_LINK : LWSBT_DAMAGED_BLOB));
			CHECK(kind < 4 ? records <= victim : records == N - 1);
			damages = 0;
			q = lwsbt_meta_trim(&heap, p[victim]);
			CHECK(q == NULL && damages == 1);
			CHECK(last_damage == (kind < 4 ? LWSBT_DAMAGED_LINK : LWSBT_DAMAGED_BLOB));
		}
	}
}

/* Text that a string function writes past the end of a block, over the bits of the next
 * one: they may decode, but hardly to what the padding and the sum of sizes allow. */
static void text_overflow(void)
{
	enum { N = 4, SIZE = 16, ROUNDS = 2000 };
	unsigned missed = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint8_t *p[N], *end;
		unsigned len, n;
		void *start;

		begin(0);
		used = 64;
		for (unsigned i = 0; i < N; i++)
			CHECK((p[i] = lwsbt_heap_malloc(&heap, &arena_allocator, SIZE, NULL)) != NULL);
		end = p[2] - sizeof(struct lwsbt_node);
		len = (unsigned)end[-2] << 8 | end[-1];
		n = below(2) ? len - 2 : 1 + below(len - 2);
		for (unsigned i = 0; i < n; i++)
			end[-(int)len + (int)i] = (uint8_t)(round % 2 ? 'A' : 'A' + below(26));
		start = lwsbt_meta_trim(&heap, p[2]);
		/* bits that decode to a smaller size have no spare bytes behind it */
		CHECK(start ? damages == 0 || (damages == 1 && last_damage == LWSBT_DAMAGED_END) : damages == 1);
		CHECK(heap.damaged == damages);
		CHECK(!start || start == end - len);
		CHECK(heap.bytes <= N * SIZE); /* 48 but for the damaged one */
		missed += start != NULL;
	}
	CHECK(missed < ROUNDS / 50);
}

/* ---- the caller, among what a capture function found */

static uintptr_t walked[16];
static size_t walked_len;

static size_t walk(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	(void)skip;
	(void)ctx;
	CHECK(walked_len <= max);
	memcpy(pcs, walked, walked_len * sizeof *pcs);
	return walked_len;
}

/* The frames from 2 to 12 are the allocator's, as many as there are; 0x100 is the caller,
 * and beyond it comes the program. */
static void callers(void)
{
	static const struct {
		uintptr_t walked[12], caller, want[12]; /* up to the first 0 */
	} cases[] = {
		{ { 2, 4, 0x100, 0x200, 0x300 }, 0x100, { 0x100, 0x200, 0x300 } },
		{ { 0x100, 0x200 }, 0x100, { 0x100, 0x200 } },
		{ { 2, 4, 6, 8, 10, 12, 0x100, 0x200 }, 0x100, { 0x100, 0x200 } },
		/* the walk ended before the caller: the program has no unwind tables */
		{ { 2 }, 0x100, { 0x100 } },
		{ { 2, 4 }, 0x100, { 0x100 } },
		{ { 2, 4, 6, 8, 10, 12 }, 0x100, { 0x100 } },
		{ { 0 }, 0x100, { 0x100 } },
		/* it went on, and the caller's frame is the one that it missed */
		{ { 2, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700, 0x800 }, 0x100,
		  { 2, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700, 0x800 } },
		/* the caller is not known */
		{ { 2, 4, 0x100 }, 0, { 2, 4, 0x100 } },
	};

	begin(0);
	heap.capture = walk;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct lwsbt_meta m;
		unsigned n = 0;

		memcpy(walked, cases[i].walked, sizeof cases[i].walked);
		for (walked_len = 0; walked[walked_len] != 0; walked_len++)
			;
		CHECK(lwsbt_meta_gen(&heap, 10, 0, (void *)cases[i].caller, &m) > 0);
		while (cases[i].want[n] != 0)
			n++;
		CHECK(m.stack.depth == n);
		CHECK(!memcmp(m.stack.pc, cases[i].want, n * sizeof *cases[i].want));
	}
}

/* Sizes at which the sum of metadata and size would wrap. */
static void overflow(void)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 64, SIZE_MAX - 400,
		SIZE_MAX / 2, SIZE_MAX / 2 - 8, (size_t)1 << (8 * sizeof(size_t) - 1) };
	struct lwsbt_meta m;

	begin(0);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CHECK(lwsbt_meta_gen(&heap, sizes[i], 0, NULL, &m) == 0);
		CHECK(heap.untracked == i + 1);
		CHECK(!lwsbt_heap_malloc(&heap, &allocator, sizes[i], NULL));
		CHECK(!lwsbt_heap_calloc(&heap, &allocator, sizes[i], 3, NULL));
		heap.untracked = i + 1;
	}
	CHECK(!lwsbt_heap_calloc(&heap, &allocator, SIZE_MAX / 4, 5, NULL));
	CHECK(lwsbt_meta_gen(&heap, 1, 65536, NULL, &m) == 0); /* over the longest blob */
}

static void interrupts(void)
{
	void *p, *q;

	begin(0);
	if (!LWSBT_NESTED)
		return;
	p = lwsbt_heap_malloc(&heap, &allocator, 10, NULL);
	in_interrupt = 1;
	q = lwsbt_heap_malloc(&heap, &allocator, 10, NULL);
	CHECK(p && q && heap.count == 1 && heap.interrupts == 1);
	CHECK(lwsbt_meta_trim(&heap, p) == NULL && heap.interrupts == 2 && heap.count == 1);
	lwsbt_heap_free(&heap, &allocator, q); /* has no metadata, so this works */
	in_interrupt = 0;
	lwsbt_heap_free(&heap, &allocator, p);
	flush();
	CHECK(heap.count == 0 && outstanding == 0);
}

/* ---- sizes that a blob for stock lws cannot say */

static void large(void)
{
#if LWSBT_WORD_BITS == 64
	static const struct lwsbt_allocator libc = { malloc, realloc, free, NULL };
	const size_t size = ((size_t)1 << 31) + 1;
	uint32_t untracked;
	char *p = malloc(size), *q;

	if (!p)
		return;
	free(p);
	begin(0);
	heap.how = LWSBT_WRAP64;
	p = lwsbt_heap_malloc(&heap, &libc, 100, NULL);
	CHECK(p && heap.count == 1);
	memset(p, 0x5a, 100);
	untracked = heap.untracked;
	events[LWSBT_FREED] = 0;
	q = lwsbt_heap_realloc(&heap, &libc, p, size, NULL);
	CHECK(q && heap.count == 0 && heap.bytes == 0 && heap.untracked == untracked + 1);
	CHECK(!LWSBT_FIELDS || events[LWSBT_FREED] == 1);
	for (unsigned i = 0; q && i < 100; i++)
		CHECK(q[i] == 0x5a);
	lwsbt_heap_free(&heap, &libc, q);
	heap.how = 0;
#endif
}

/* ---- a dump, as text */

static char text[1 << 16];

static void dump(void)
{
	struct lwsbt_text t = { text, sizeof text - 1, 0 };
	struct lwsbt_out out = { lwsbt_line_text, &t };
	unsigned lines = 0;
	char *line;
	void *p[5];

	begin(LWSBT_KEEP_SEQUENCE);
	port.lock = port.unlock = NULL; /* one thread: the number of records is known in advance */
	for (unsigned i = 0; i < 5; i++)
		p[i] = lwsbt_heap_malloc(&heap, &allocator, 100 + i, NULL);
	ticks = 0;
	lwsbt_dump(&heap, &out, 3, "request", LWSBT_KEEP_ADDRESS);
	CHECK(t.len < sizeof text);
	text[t.len] = 0;
	line = text;
	if (LWSBT_FIELDS)
		CHECK(!strncmp(line, "~h#begin 3 t=1000003 n=5 b=510 u=1 why=request\n", 47));
	else
		CHECK(!strncmp(line, "~h#begin 3 why=request\n", 23));
	for (line = strchr(line, '\n') + 1; !strncmp(line, "~m#", 3); line = strchr(line, '\n') + 1) {
		uint8_t blob[LWSBT_RECORD_MAX];
		struct lwsbt_stack s;
		size_t n;

		CHECK(lwsbt_parse_line(blob, sizeof blob, &n, line, strcspn(line, "\n"), 0) == LWSBT_OK);
		CHECK(lwsbt_decode(&s, blob, n, LWSBT_WORD_BITS) == LWSBT_OK);
		CHECK(s.size == 100 + lines);
		lines++;
	}
	CHECK(lines == 5 && !strcmp(line, "~h#end 3 n=5 b=510\n"));
	for (unsigned i = 0; i < 5; i++)
		lwsbt_heap_free(&heap, &allocator, p[i]);
	port.lock = lock;
	port.unlock = unlock;
	flush();
	CHECK(outstanding == 0);
}

/* reserved returns how many bytes of size are reserved, spare ones among them, of a block that
 * begins at an aligned address. */
static size_t reserved(size_t size)
{
	while (size % LWSBT_ALIGN % sizeof(void *) != 0 ||
	       (LWSBT_WHOLE_CHUNKS && size % LWSBT_ALIGN != LWSBT_ALIGN - sizeof(void *)))
		size++;
	return size;
}

/* What is written past the end of a block is noticed as far as bytes are spare, in dumps and when
 * the block is freed or resized, and the block is freed all the same. Spare bytes cost nothing. */
static void ends(void)
{
	for (size_t size = 0; size < 70; size++) {
		size_t spare = reserved(size) - size;

		for (size_t at = 0; at <= spare; at++) {
			struct lwsbt_walk w;
			uint8_t buf[LWSBT_RECORD_MAX], *p, *q;
			unsigned expected = at < spare;

			begin(0);
			CHECK((p = lwsbt_heap_malloc(&heap, &allocator, size, NULL)) != NULL);
			CHECK(heap.mark == LWSBT_MARK);
			CHECK(asked % sizeof(void *) == 0);
			for (size_t i = 0; i < spare; i++)
				CHECK(p[size + i] == LWSBT_SPARE_BYTE);
			/* up to the end of what was asked for, and no byte more than a chunk has anyway */
			CHECK(p + size + spare == last_start + asked);
			CHECK(LWSBT_WHOLE_CHUNKS ? spare < LWSBT_ALIGN : spare < sizeof(void *));
			memset(p, 0, size);
			if (at < spare)
				p[size + at] ^= (uint8_t)(1 + below(255));
			lwsbt_walk_begin(&heap, &w);
			CHECK(lwsbt_walk_next(&heap, &w, buf, sizeof buf, 0) > 0);
			CHECK(damages == expected && (!expected || last_damage == LWSBT_DAMAGED_END));
			CHECK(lwsbt_walk_next(&heap, &w, buf, sizeof buf, 0) == 0);
			lwsbt_walk_end(&heap, &w);
			CHECK(damages == expected);
			if (below(2)) {
				CHECK((q = lwsbt_heap_realloc(&heap, &allocator, p, size + below(30) + 1, NULL)) != NULL);
				CHECK(damages == 2 * expected);
				damages = 2 * expected; /* the new block's are written anew */
				p = q;
				lwsbt_heap_free(&heap, &allocator, p);
			} else {
				lwsbt_heap_free(&heap, &allocator, p);
			}
			CHECK(damages == 2 * expected && heap.damaged == damages && heap.count == 0);
			CHECK(!expected || last_damage == LWSBT_DAMAGED_END);
			flush();
		}
	}
}

#if LWSBT_QUARANTINE

/* A block that was freed stays for LWSBT_QUARANTINE others; then it is released, and what was
 * written to it meanwhile is reported, once. */
static void quarantine(void)
{
	for (unsigned round = 0; round < 200; round++) {
		size_t size = 1 + below(100), at = below((unsigned)size);
		int write = (int)below(2);
		uint8_t *p;

		begin(0);
		CHECK((p = lwsbt_heap_malloc(&heap, &allocator, size, NULL)) != NULL);
		lwsbt_heap_free(&heap, &allocator, p);
		CHECK(outstanding == 1 && heap.count == 0);
		for (size_t i = 0; i < size; i++)
			CHECK(p[i] == LWSBT_FREED_BYTE);
		if (write)
			p[at] ^= (uint8_t)(1 + below(255));
		for (unsigned i = 0; i < LWSBT_QUARANTINE; i++) {
			CHECK(damages == 0 && outstanding == (long)i + 1);
			lwsbt_heap_free(&heap, &allocator, lwsbt_heap_malloc(&heap, &allocator, below(50), NULL));
		}
		CHECK(outstanding == LWSBT_QUARANTINE && damages == (unsigned)write);
		CHECK(!write || last_damage == LWSBT_DAMAGED_FREED);
		flush();
	}
}

#endif

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	unsigned operations = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 3000;

	state = 0x9e3779b97f4a7c15u * (seed + 1);
	model(operations);
	walks();
	overflow();
	callers();

	interrupts();
	large();
	dump();
	port.event = NULL;
	damage();
	text_overflow();
	ends();
#if LWSBT_QUARANTINE
	quarantine();
#endif
	printf("ok: %u operations by 9 sets of flags; walks, overflow, interrupts, dump, damage\n", operations);
	return 0;
}
