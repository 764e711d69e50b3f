/*
 * For libFuzzer (clang): calls of malloc and its kin by a program that the input describes, of a heap that
 * keeps stacks or of a profile, over an allocator that fails at times. What the program wrote into its
 * memory stays, and the counters are those of the blocks that it has.
 *
 *   make -C device fuzz_heap && device/build/fuzz_heap -max_len=400 -max_total_time=60
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(condition) ((condition) ? (void)0 : differs(__LINE__, #condition))

static void differs(int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	abort();
}

/* ---- the input; past its end, it is zeros */

static const uint8_t *input;
static size_t left;

static unsigned byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* ---- the allocator below, with memory of the exact size for AddressSanitizer */

static long outstanding;
static unsigned refuse;		/* the next allocations */

static void *aligned(size_t align, size_t size)
{
	void *p = NULL;

	if (refuse || size > 1u << 20) {
		refuse -= refuse > 0;
		return NULL;
	}
	if (posix_memalign(&p, align < LWSBT_ALIGN ? LWSBT_ALIGN : align, size ? size : 1))
		return NULL;
	outstanding++;
	memset(p, 0xa5, size);
	return p;
}

static void *allocate(size_t size) { return aligned(0, size); }

static void *resize(void *p, size_t size)
{
	if (refuse || size > 1u << 20) {
		refuse -= refuse > 0;
		return NULL;
	}
	return realloc(p, size ? size : 1);
}

static void release(void *p)
{
	outstanding--;
	free(p);
}

static const struct lwsbt_allocator below = { allocate, resize, release, aligned };

/* ---- the platform */

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	unsigned shape = byte();
	size_t n = shape % 40 < max ? shape % 40 : max;

	(void)skip;
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		pcs[i] = (shape & 64 && i % 5 == 4 ? 0x20000000 : 0x8000000) + 16 * (n - i) + 2 * (i == 0 ? byte() : 0);
	return n;
}

static unsigned damages;

static void damaged(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node)
{
	(void)arg;
	(void)what;
	(void)node;
	damages++;
}

static uint64_t ticks(void *arg) { (void)arg; return 1000; }
static const struct lwsbt_port port = { .damaged = damaged, .time = ticks };

static unsigned begun, ended;

static void put(void *arg, const char *text, size_t len)
{
	static char line[LWSBT_RECORD_MAX * 2 + 200];
	static size_t n;

	(void)arg;
	for (size_t i = 0; i < len; i++) {
		check(n < sizeof line && ((text[i] >= ' ' && text[i] <= '~') || text[i] == '\n'));
		line[n++] = text[i];
		if (text[i] != '\n')
			continue;
		begun += n > 9 && !memcmp(line, "~h#begin ", 9);
		ended += n > 7 && !memcmp(line, "~h#end ", 7);
		n = 0;
	}
}

static const struct lwsbt_out out = { .put = put };

/* ---- the program */

enum { SLOTS = 64, NODES = 200, ENTRIES = 60 };

static struct lwsbt_heap heap;
static struct lwsbt_profile profile;
static int by_profile;
static struct block {
	uint8_t *p;
	size_t size;
	uint8_t fill;
} blocks[SLOTS];

static void keep(struct block *b, void *p, size_t size)
{
	b->p = p;
	b->size = size;
	b->fill = (uint8_t)byte();
	if (size)
		memset(p, b->fill, size);
}

static void intact(const uint8_t *p, size_t size, uint8_t fill)
{
	for (size_t i = 0; i < size; i++)
		check(p[i] == fill);
}

static void drop(struct block *b)
{
	intact(b->p, b->size, b->fill);
	if (by_profile)
		lwsbt_profile_free(&profile, &below, b->p);
	else
		lwsbt_heap_free(&heap, &below, b->p);
	b->p = NULL;
}

static void grow(struct block *b, size_t size)
{
	uint8_t *old = b->p;
	size_t same = old && b->size < size ? b->size : old ? size : 0;
	void *p = by_profile ? lwsbt_profile_realloc(&profile, &below, old, size, NULL) :
		lwsbt_heap_realloc(&heap, &below, old, size, NULL);

	if (!p) {
		if (old && size == 0)
			b->p = NULL; /* freed */
		return;
	}
	intact(p, same, b->fill);
	keep(b, p, size);
}

static void make(struct block *b, unsigned kind, size_t size)
{
	size_t align = (size_t)1 << byte() % 9;
	void *p;

	if (b->p)
		drop(b);
	if (kind == 0)
		p = by_profile ? lwsbt_profile_calloc(&profile, &below, 3, size, NULL) : lwsbt_heap_calloc(&heap, &below, 3, size, NULL);
	else if (kind == 1)
		p = by_profile ? lwsbt_profile_memalign(&profile, &below, align, size, NULL) :
			lwsbt_heap_memalign(&heap, &below, align, size, NULL);
	else
		p = by_profile ? lwsbt_profile_malloc(&profile, &below, size, NULL) : lwsbt_heap_malloc(&heap, &below, size, NULL);
	if (!p)
		return;
	if (kind == 0)
		intact(p, 3 * size, 0);
	if (kind == 1)
		check((uintptr_t)p % align == 0);
	keep(b, p, kind == 0 ? 3 * size : size);
}

static void write_dump(void)
{
	static struct lwsbt_profile_dump d;
	static struct lwsbt_paths w;
	static struct lwsbt_sum sums[LWSBT_SUMS];
	unsigned how = byte();

	begun = ended = 0;
	d.lines.out = w.out = &out;
	d.lines.code = w.code = &profile.code;
	if (by_profile)
		lwsbt_profile_dump(&profile, &d, how, "fuzz", how & 7);
	else if (how & 1)
		lwsbt_dump_paths(&heap, &w, sums, how, NULL, 0);
	else
		lwsbt_dump(&heap, &out, how, "fuzz", how & 2 ? LWSBT_KEEP_ADDRESS : 0);
	check(begun == 1 && ended == 1);
}

/* counted compares the counters with the blocks. Blocks that are not sampled, or that have no space for
 * words or a stack, are not counted. */
static void counted(void)
{
	size_t bytes = 0, count = 0, all_bytes = 0, all = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		all_bytes += blocks[i].p ? blocks[i].size : 0;
		all += blocks[i].p ? 1 : 0;
	}
	for (unsigned i = 0; by_profile && i < ENTRIES; i++) {
		count += profile.entry[i].live;
		bytes += profile.entry[i].bytes;
	}
	if (!by_profile) {
		count = heap.count;
		bytes = heap.bytes;
	}
	check(count <= all && bytes <= all_bytes && damages == 0);
	if (heap.untracked == 0 && profile.sample == 0)
		check(count == all && bytes == all_bytes);
}

static void set_up(unsigned mode)
{
	static const struct lwsbt_range code = { 0x8000000, 0x8100000 };
	static uintptr_t node[NODES];
	static struct lwsbt_entry entry[ENTRIES];
	static struct lwsbt_history history[ENTRIES];

	memset(&heap, 0, sizeof heap);
	memset(&profile, 0, sizeof profile);
	memset(node, 0, sizeof node);
	memset(entry, 0, sizeof entry);
	memset(history, 0, sizeof history);
	by_profile = mode & 1;
	heap.capture = capture;
	heap.port = &port;
	heap.flags = by_profile ? 0 : mode >> 1 & (LWSBT_KEEP_SEQUENCE | LWSBT_KEEP_THREAD | LWSBT_KEEP_TIME);
	heap.how = mode & 16 ? LWSBT_SEARCH_BEST : LWSBT_SEARCH_LWS;
	heap.post = mode >> 5 & 3;
	profile.heap = &heap;
	profile.node = node;
	profile.entry = entry;
	profile.nodes = mode & 2 ? NODES : 16;
	profile.entries = mode & 4 ? ENTRIES : 17;
	profile.history = mode & 8 ? history : NULL;
	profile.sample = mode & 128 ? 100 : 0;
	profile.code = (struct lwsbt_code){ &code, 1, 1 };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	left = size;
	refuse = 0;
	set_up(byte());
	while (left > 0) {
		unsigned what = byte();
		struct block *b = &blocks[what % SLOTS];
		size_t bytes = byte() * (what & 64 ? 20u : 1u);

		switch (byte() % 10) {
		case 0:
			make(b, 0, bytes);
			break;
		case 1:
			make(b, 1, bytes);
			break;
		case 2: case 3: case 4:
			grow(b, bytes);
			break;
		case 5:
			write_dump();
			break;
		case 6:
			refuse = byte() % 3;
			break;
		case 7:
			if (b->p)
				drop(b);
			break;
		default:
			make(b, 2, bytes);
		}
		counted();
	}
	for (unsigned i = 0; i < SLOTS; i++)
		if (blocks[i].p)
			drop(&blocks[i]);
	counted();
	check(outstanding == 0);
	return 0;
}
