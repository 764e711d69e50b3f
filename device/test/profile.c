/*
 * The profile, tested.
 *
 *   profile [history] table NODES ENTRIES SAMPLE START-END[,START-END...] SHIFT MAX
 *   profile overhead table 0 ...
 *       prints what stacks in front of the blocks take, in bytes, with their nodes, in place of the dumps
 *
 *       with history, dumps have what paths held since the boot; does what standard input asks for, a line each, and writes the dumps; with 0 nodes
 *       by a heap that keeps the stacks in front of the blocks:
 *         c BASE SIZE PC,PC...   counts block 0, 1, 2, ...; innermost frame first; - for none
 *         f BLOCK                takes it back
 *         d NUMBER FLAGS         dumps
 *   profile sample SEED RATE SIZE TIMES
 *       prints how many of TIMES blocks are sampled
 *   profile heap SEED OPERATIONS
 *       random calls of malloc and its kin, held to a model
 *   profile packets SIZE
 *       standard input in packets, each followed by a NUL
 *   profile headers
 *       the ~h# lines of a device
 *   profile threads ROUNDS
 *       8 threads allocate, resize, free and dump
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

#define CHECK(ok) ((ok) ? (void)0 : fail(__LINE__, #ok))

static void fail(int line, const char *what)
{
	printf("line %d: %s\n", line, what);
	exit(1);
}

static void *need(void *p)
{
	CHECK(p);
	return p;
}

static struct lwsbt_heap heap;
static struct lwsbt_profile profile = { .heap = &heap };
static struct lwsbt_profile_dump dump;

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	fwrite(text, 1, len, stdout);
}

static const struct lwsbt_out out = { put, NULL };

static int keep_history, print_overhead;

static void size_table(unsigned nodes, unsigned entries)
{
	CHECK(nodes <= LWSBT_PROFILE_NODES_MAX && entries <= LWSBT_PROFILE_ENTRIES_MAX);
	profile.nodes = (uint16_t)nodes;
	profile.entries = (uint16_t)entries;
	profile.node = need(calloc(nodes, sizeof *profile.node));
	profile.entry = need(calloc(entries, sizeof *profile.entry));
	if (keep_history)
		profile.history = need(calloc(entries, sizeof *profile.history));
}

/* ---------------------------------------------------------------------- table */

struct counted {
	unsigned number;
	size_t size;
	void *p;	/* with 0 nodes */
};

static void *plain(size_t size) { return malloc(size); }
static const struct lwsbt_allocator below = { plain, realloc, free, NULL };
static struct lwsbt_stack stack;

static size_t given(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	size_t n = stack.depth < max ? stack.depth : max;

	(void)skip;
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		pcs[i] = (uintptr_t)stack.pc[i];
	return n;
}

/* overhead returns what is in front of a block. */
static size_t overhead(const void *p)
{
	const uint8_t *node = (const uint8_t *)p - sizeof(struct lwsbt_node);

	return sizeof(struct lwsbt_node) + ((size_t)node[-2] << 8 | node[-1]);
}

static void table(char **argv)
{
	static char line[4096];
	static struct lwsbt_range ranges[8];
	static struct counted blocks[100000];
	static struct lwsbt_sum slots[LWSBT_SUMS];
	unsigned n = 0, count = 0;
	size_t bytes = 0;
	struct lwsbt_device device = { "table", NULL, NULL, NULL, { NULL, 0, 0 }, { 0, 0 }, 0 };

	int sums = atoi(argv[0]) == 0;

	if (!sums)
		size_table((unsigned)atoi(argv[0]), (unsigned)atoi(argv[1]));
	heap.capture = given;
	profile.sample = (uint32_t)strtoul(argv[2], NULL, 10);
	for (char *p = argv[3]; *p && count < 8; count++) {
		ranges[count].start = (uintptr_t)strtoull(p, &p, 16);
		ranges[count].end = (uintptr_t)strtoull(p + 1, &p, 16);
		p += *p == ',';
	}
	profile.code.range = ranges;
	profile.code.count = (uint8_t)count;
	profile.code.shift = (uint8_t)atoi(argv[4]);
	dump.lines.out = &out;
	dump.lines.max = (uint8_t)atoi(argv[5]);
	device.code = profile.code;
	dump.lines.code = &profile.code;
	if (!print_overhead)
		lwsbt_head_device(&out, &device);
	while (fgets(line, sizeof line, stdin)) {
		char *p = line + 2;
		struct lwsbt_stack s;
		unsigned base, at;

		switch (line[0]) {
		case 'c':
			CHECK(n < sizeof blocks / sizeof *blocks);
			base = (unsigned)strtoul(p, &p, 10);
			s.size = (lwsbt_word)strtoull(p, &p, 10);
			s.depth = 0;
			while (*p && *p != '\n' && p[1] != '-') {
				CHECK(s.depth < LWSBT_HEAP_DEPTH);
				s.pc[s.depth++] = (lwsbt_word)strtoull(p + 1, &p, 16);
			}
			blocks[n].size = s.size;
			stack = s;
			if (sums) {
				blocks[n].p = need(lwsbt_heap_malloc(&heap, &below, (size_t)s.size, NULL));
				bytes += overhead(blocks[n++].p);
			} else
				blocks[n++].number = lwsbt_profile_count(&profile, &s, base);
			break;
		case 'f':
			at = (unsigned)strtoul(p, NULL, 10);
			CHECK(at < n);
			if (sums)
				lwsbt_heap_free(&heap, &below, blocks[at].p);
			else
				lwsbt_profile_uncount(&profile, blocks[at].number, blocks[at].size);
			break;
		case 'd':
			if (print_overhead)
				break;
			at = (unsigned)strtoul(p, &p, 10);
			base = (unsigned)strtoul(p, NULL, 10);
			if (sums)
				lwsbt_dump_paths(&heap, &dump.lines, slots, at, "test", base);
			else
				lwsbt_profile_dump(&profile, &dump, at, "test", base);
			break;
		default:
			fail(__LINE__, line);
		}
	}
	if (print_overhead)
		printf("%lu\n", (unsigned long)bytes);
	free(profile.node);
	free(profile.entry);
	free(profile.history);
}

static void put_packet(void *arg, const char *text, size_t len)
{
	put(arg, text, len);
	putchar(0);
}

static void packets(size_t size)
{
	static char text[2000], piece[40];
	static const struct lwsbt_out to = { put_packet, NULL };
	struct lwsbt_packet p = { &to, text, size, 0, 0 };
	size_t n;

	CHECK(size <= sizeof text);
	for (size_t want = 1; (n = fread(piece, 1, want, stdin)) > 0; want = want % sizeof piece + 1)
		lwsbt_packet_put(&p, piece, n);
	lwsbt_packet_flush(&p);
}

static void headers(void)
{
	static const uint32_t build[] = { 4, 6, 3, 0x00554e47, 0x04030201, 0xeeff }; /* of a little-endian machine */
	static const struct lwsbt_range ranges[] = { { 0x8000000, 0x8060000 }, { 0x20000000, 0x20000800 } };
	static const struct lwsbt_device device = { "my app", "serial 7", "1.2.3%", build, { ranges, 2, 1 },
		{ 0x20001000, 0x20010000 }, 0xabcdef12 };
	struct lwsbt_numbers n = { 4000, 300, 20, 1, NULL };

	lwsbt_head_device(&out, &device);
	lwsbt_head_heap(&out, &n, 17);
	n.name = "dma 2";
	lwsbt_head_heap(&out, &n, LWSBT_NONE);
	lwsbt_head_thread(&out, 3, "net io");
}

static void sample(char **argv)
{
	unsigned times = (unsigned)atoi(argv[3]), n = 0;

	profile.random = (uint32_t)strtoul(argv[0], NULL, 10);
	profile.sample = (uint32_t)strtoul(argv[1], NULL, 10);
	for (unsigned i = 0; i < times; i++)
		n += lwsbt_profile_sampled(&profile, (size_t)strtoul(argv[2], NULL, 10)) ? 1u : 0u;
	printf("%u\n", n);
}

/* ----------------------------------------------------------------------- heap */

/* An allocator with a header, as most have: what stands before memory without words is read. */
enum { HEADER = 64 };

static unsigned refuse;	/* the next allocations */

static void *allocate(size_t size)
{
	char *p = refuse || size > PTRDIFF_MAX ? NULL : calloc(1, size + HEADER);

	if (refuse)
		refuse--;
	return p ? p + HEADER : NULL;
}

static void release(void *p) { free((char *)p - HEADER); }

static void *resize(void *p, size_t size)
{
	char *q = refuse ? NULL : realloc((char *)p - HEADER, size + HEADER);

	if (refuse)
		refuse--;
	return q ? q + HEADER : NULL;
}

/* aligned returns memory that release takes: of an alignment of at most HEADER. */
static void *aligned(size_t align, size_t size)
{
	char *p = align > HEADER ? NULL : aligned_alloc(HEADER, (size + 2 * HEADER) / HEADER * HEADER);

	return p ? (char *)memset(p, 0, HEADER) + HEADER : NULL;
}

static const struct lwsbt_allocator allocator = { allocate, resize, release, aligned };

static uint32_t seed;

static unsigned roll(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Stacks of up to 32 frames, of 30 paths; capture may allocate. */
static unsigned path_number;

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	unsigned which = path_number++ % 30;
	size_t n = which + 2 < max ? which + 2 : max;
	void *p = lwsbt_profile_malloc(&profile, &allocator, 8, NULL);

	(void)skip;
	(void)ctx;
	lwsbt_profile_free(&profile, &allocator, p);
	for (size_t i = 0; i < n; i++)
		pcs[i] = i % 7 == 6 ? 0x20000001 + i : 0x8000000 + 16 * (n - i) + 512 * (i == 0 ? which : 0);
	return n;
}

static unsigned found[5];
static int interrupt;

static void damaged(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node)
{
	(void)arg;
	CHECK(node);
	found[what]++;
}

static int in_interrupt(void *arg) { (void)arg; return interrupt; }

static int numbers(void *arg, struct lwsbt_numbers *n)
{
	(void)arg;
	n->size = 4;
	n->free = 3;
	n->largest = 2;
	n->least = 1;
	return 1;
}

static const struct lwsbt_port port = { .damaged = damaged, .in_interrupt = in_interrupt, .numbers = numbers };
static const struct lwsbt_range code_range = { 0x8000000, 0x8100000 };

static void set_up(unsigned nodes, unsigned entries)
{
	size_table(nodes, entries);
	profile.code.range = &code_range;
	profile.code.count = 1;
	profile.code.shift = 1;
	heap.capture = capture;
	dump.lines.out = &out;
}

enum { SLOTS = 200 };

struct slot {
	uint8_t *p;
	size_t size;
	uint8_t fill;
};

static void check_slot(const struct slot *s)
{
	for (size_t i = 0; i < s->size; i++)
		CHECK(s->p[i] == s->fill);
}

static void sum(uint32_t *live, size_t *bytes)
{
	*live = 0;
	*bytes = 0;
	for (unsigned i = 0; i < profile.entries; i++) {
		*live += profile.entry[i].live;
		*bytes += profile.entry[i].bytes;
	}
}

static void operation(struct slot *s)
{
	static const void *caller = "";
	size_t size = roll(300) * roll(4), align = (size_t)16 << roll(3);
	uint8_t *p = NULL;

	check_slot(s);
	switch (s->p ? 5 + roll(4) : roll(5)) {
	case 0:
		p = lwsbt_profile_malloc(&profile, &allocator, size, caller);
		break;
	case 1:
		p = lwsbt_profile_calloc(&profile, &allocator, size / 3, 3, caller);
		size = size / 3 * 3;
		for (size_t i = 0; p && i < size; i++)
			CHECK(p[i] == 0);
		break;
	case 2:
		p = lwsbt_profile_memalign(&profile, &allocator, align, size, caller);
		CHECK((uintptr_t)p % align == 0);
		break;
	case 3: /* memory of another origin */
		p = allocate(size);
		break;
	case 4:
		p = lwsbt_profile_realloc(&profile, &allocator, NULL, size, caller);
		break;
	case 5:
	case 6:
		p = lwsbt_profile_realloc(&profile, &allocator, s->p, size, caller);
		if (!p && size)
			return; /* the block is as it was */
		for (size_t i = 0; p && i < size && i < s->size; i++)
			CHECK(p[i] == s->fill);
		break;
	default:
		lwsbt_profile_free(&profile, &allocator, s->p);
		size = 0;
	}
	s->p = p;
	s->size = p ? size : 0;
	s->fill = (uint8_t)roll(256);
	if (p)
		memset(p, s->fill, size);
	CHECK((uintptr_t)p % LWSBT_ALIGN == 0);
}

static void random_heap(unsigned operations)
{
	static struct slot slots[SLOTS];
	uint32_t live;
	size_t bytes;

	for (unsigned i = 0; i < operations; i++) {
		if (roll(50) == 0)
			refuse = roll(3);
		if (roll(200) == 0)
			profile.sample = roll(2) ? 0 : 500;
		operation(&slots[roll(SLOTS)]);
		sum(&live, &bytes);
		CHECK(live == heap.count && bytes == heap.bytes);
		if (roll(300) == 0)
			lwsbt_profile_dump(&profile, &dump, i, NULL, roll(8));
	}
	refuse = 0;
	for (unsigned i = 0; i < SLOTS; i++)
		lwsbt_profile_free(&profile, &allocator, slots[i].p);
	CHECK(heap.count == 0 && heap.bytes == 0 && heap.damaged == 0);
	lwsbt_profile_dump(&profile, &dump, operations, NULL, 0);
	lwsbt_profile_dump(&profile, &dump, operations + 1, NULL, 0);
	for (unsigned i = 0; i < profile.entries; i++)
		CHECK(profile.entry[i].key == 0);
	for (unsigned i = 0; i < profile.nodes; i++)
		CHECK(profile.node[i] <= 1); /* empty, or removed */
	profile.sample = 0;
}

static void damages(void)
{
	uint8_t *p = need(lwsbt_profile_malloc(&profile, &allocator, 5, NULL)), *q;
	uint32_t live = heap.count;

	CHECK(live == 1);
	heap.port = &port;
	p[5] = 0; /* a spare byte */
	lwsbt_profile_free(&profile, &allocator, p);
	CHECK(found[LWSBT_DAMAGED_END] == 1 && heap.count == 0);

	/* each bit of the words */
	p = need(lwsbt_profile_malloc(&profile, &allocator, 100, NULL));
	heap.flags = LWSBT_CHECK_UNTRACKED;
	for (unsigned bit = 0; bit < 8 * sizeof(struct lwsbt_block); bit++) {
		q = p - sizeof(struct lwsbt_block) + bit / 8;
		*q ^= (uint8_t)(1u << bit % 8);
		found[LWSBT_DAMAGED_BLOB] = 0;
		lwsbt_profile_free(&profile, &allocator, p);
		CHECK(found[LWSBT_DAMAGED_BLOB] == 1);
		CHECK(!lwsbt_profile_realloc(&profile, &allocator, p, 10, NULL) && found[LWSBT_DAMAGED_BLOB] == 2);
		CHECK(heap.count == 1);
		*q ^= (uint8_t)(1u << bit % 8);
	}
	heap.flags = 0;
	interrupt = 1;
	lwsbt_profile_free(&profile, &allocator, p);
	CHECK(heap.count == 1 && heap.interrupts == 1);
	q = need(lwsbt_profile_malloc(&profile, &allocator, 100, NULL));
	CHECK(heap.count == 1 && heap.interrupts == 2);
	interrupt = 0;
	lwsbt_profile_free(&profile, &allocator, q);
	lwsbt_profile_free(&profile, &allocator, p);
	CHECK(heap.count == 0);
	CHECK(!lwsbt_profile_malloc(&profile, &allocator, SIZE_MAX - 4, NULL) && !lwsbt_profile_calloc(&profile, &allocator, SIZE_MAX / 2, 3, NULL));
	CHECK(heap.count == 0 && heap.bytes == 0);
}

static void low(void)
{
	profile.failed = profile.seen = 0;
	CHECK(!lwsbt_low(&profile, 100, 100));
	CHECK(lwsbt_low(&profile, 99, 100));
	CHECK(!lwsbt_low(&profile, 50, 100));
	CHECK(!lwsbt_low(&profile, 124, 100));	/* not over the limit and a quarter */
	CHECK(!lwsbt_low(&profile, 99, 100));
	CHECK(!lwsbt_low(&profile, 125, 100));
	CHECK(lwsbt_low(&profile, 0, 100));
	refuse = 2; /* of capture, too */
	CHECK(!lwsbt_profile_malloc(&profile, &allocator, 8, NULL));
	CHECK(lwsbt_low(&profile, 1000, 100));
	CHECK(!lwsbt_low(&profile, 1000, 100));
}

/* -------------------------------------------------------------------- threads */

extern const struct lwsbt_port lwsbt_posix_port;

enum { THREADS = 8, BLOCKS = 32 };

static unsigned rounds;

static void *work(void *arg)
{
	uint8_t *blocks[BLOCKS] = { NULL };
	unsigned random = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < rounds; i++) {
		unsigned at;

		random = random * 1103515245 + 12345;
		at = random >> 16 & (BLOCKS - 1);
		if (!blocks[at]) {
			blocks[at] = lwsbt_profile_malloc(&profile, &allocator, random >> 24, NULL);
		} else if (random & 0x800000) {
			blocks[at] = lwsbt_profile_realloc(&profile, &allocator, blocks[at], 1 + (random >> 24), NULL);
		} else {
			lwsbt_profile_free(&profile, &allocator, blocks[at]);
			blocks[at] = NULL;
		}
		if ((uintptr_t)arg == 0 && i % 64 == 0)
			lwsbt_profile_dump(&profile, &dump, i / 64, NULL, i / 64 % 8);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		lwsbt_profile_free(&profile, &allocator, blocks[i]);
	return NULL;
}

static size_t capture_thread(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	size_t n = (uintptr_t)&n / 64 % (max + 1);

	(void)skip;
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		pcs[i] = 0x8000000 + 40 * i;
	return n;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	heap.capture = capture_thread;
	heap.port = &lwsbt_posix_port;
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(heap.count == 0 && heap.bytes == 0 && heap.damaged == 0);
}

int main(int argc, char **argv)
{
	if (argc > 2 && (!strcmp(argv[1], "history") || !strcmp(argv[1], "overhead"))) {
		keep_history = argv[1][0] == 'h';
		print_overhead = argv[1][0] == 'o';
		argc--;
		argv++;
	}
	if (argc == 8 && !strcmp(argv[1], "table")) {
		table(argv + 2);
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "sample")) {
		sample(argv + 2);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "heap")) {
		seed = (uint32_t)strtoul(argv[2], NULL, 10);
		set_up(seed % 2 ? 600 : 40, seed % 2 ? 90 : 20); /* or one that is soon full */
		random_heap((unsigned)atoi(argv[3]));
		damages();
		low();
		puts("ok");
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "packets")) {
		packets((size_t)atoi(argv[2]));
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "headers")) {
		headers();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "threads")) {
		rounds = (unsigned)atoi(argv[2]);
		set_up(100, 20);
		threads();
		puts("ok");
		return 0;
	}
	fputs("usage: profile table|sample|packets|headers|heap|threads ...\n", stderr);
	return 2;
}
