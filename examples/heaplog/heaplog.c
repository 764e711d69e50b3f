/*
 * A program that logs its live allocations as libwebsockets does, in ~m# lines,
 * for btdecode to read. Nothing but a C compiler and glibc is needed:
 *
 *     cc -g -O2 -o heaplog heaplog.c
 *     ./heap/heaplog > heap.log
 *     btdecode -e heaplog heap.log
 *
 * With -b, each record is followed by the same in ~b# form, not encoded.
 *
 * The upper half is an encoder written from SPEC.md; the lower half is a small
 * program that keeps more memory than it should.
 */
#include <execinfo.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the encoder -------------------------------------------------------- */

enum { MAX_DEPTH = 31, MAX_BACK = 8, MAX_BLOB = 308 };

struct blob {
	uint8_t b[MAX_BLOB];
	size_t bits;
};

/* A field: width bits, most significant first, then a spill bit of 0 (BT-FIELD-1). */
static void put(struct blob *o, uint64_t v, int width)
{
	for (int i = width - 1; i >= -1; i--, o->bits++)
		if (i >= 0 && v >> i & 1)
			o->b[o->bits / 8] |= 0x80 >> o->bits % 8;
}

static int significant(uint64_t v)
{
	int n = 1;
	while (n < 64 && v >> n)
		n++;
	return n;
}

/* A count and as many bits; 64 is written as 0 (BT-COUNT-1, BT-COUNT-2). */
static void put_value(struct blob *o, uint64_t v)
{
	int n = significant(v);
	put(o, n & 63, 6);
	put(o, v, n);
}

/* Frame n: the delta to one of the 8 frames before it, if that is shorter. */
static void put_frame(struct blob *o, const uint64_t *pc, int n)
{
	uint64_t best = UINT64_MAX;
	int back = 0, sub = 0;
	for (int i = 1; i <= MAX_BACK && i <= n; i++) {
		uint64_t base = pc[n - i], d = pc[n] < base ? base - pc[n] : pc[n] - base;
		if (d < best)
			best = d, back = i, sub = pc[n] < base;
	}
	if (back && significant(best) + 6 < significant(pc[n])) {
		put(o, 1, 1); /* BT-DELTA-1 */
		put(o, back - 1, 3);
		put(o, sub, 1);
		put_value(o, best);
	} else {
		put(o, 0, 1); /* BT-LIT-1 */
		put_value(o, pc[n]);
	}
}

/* Depth, frames, size, padding, length (BT-BLOB-1). Returns the length in bytes. */
static size_t encode(struct blob *o, const uint64_t *pc, int depth, uint64_t size)
{
	memset(o, 0, sizeof *o);
	put(o, depth, 5);
	for (int n = 0; n < depth; n++)
		put_frame(o, pc, n);
	put_value(o, size);
	size_t len = (o->bits + 7) / 8 + 2;
	o->b[len - 2] = len >> 8;
	o->b[len - 1] = len;
	return len;
}

static void print_line(const struct blob *o, size_t len) /* BT-TEXT-1 */
{
	static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	printf("~m#");
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = o->b[i] << 16 | (i + 1 < len ? o->b[i + 1] << 8 : 0) | (i + 2 < len ? o->b[i + 2] : 0);
		putchar(abc[v >> 18]);
		putchar(abc[v >> 12 & 63]);
		putchar(i + 1 < len ? abc[v >> 6 & 63] : '=');
		putchar(i + 2 < len ? abc[v & 63] : '=');
	}
	putchar('\n');
}

/* ---- the allocations ---------------------------------------------------- */

struct alloc {
	struct alloc *next;
	size_t size;
	int depth;
	uint64_t pc[MAX_DEPTH];
	max_align_t data[];
};

static struct alloc *live;

__attribute__((noinline)) static void *heap_alloc(size_t size)
{
	void *pc[MAX_DEPTH];
	struct alloc *a = malloc(sizeof *a + size);
	if (!a)
		abort();
	a->depth = backtrace(pc, MAX_DEPTH);
	for (int i = 0; i < a->depth; i++)
		a->pc[i] = (uintptr_t)pc[i];
	a->size = size;
	a->next = live;
	live = a;
	return a->data;
}

static void heap_free(void *p)
{
	for (struct alloc **at = &live; *at; at = &(*at)->next)
		if ((*at)->data == p) {
			struct alloc *a = *at;
			*at = a->next;
			free(a);
			return;
		}
}

static void heap_dump(int decoded)
{
	int n = 0;
	for (struct alloc *a = live; a; a = a->next) {
		struct blob o;
		printf("[%6d] heap: ", n++);
		print_line(&o, encode(&o, a->pc, a->depth, a->size));
		if (!decoded)
			continue;
		printf("~b#size: %zu,", a->size);
		for (int i = 0; i < a->depth; i++)
			printf(" 0x%llx", (unsigned long long)a->pc[i]);
		putchar('\n');
	}
}

/* ---- a program ---------------------------------------------------------- */

struct entry {
	struct entry *next;
	char *name, *value;
};

static char *copy(const char *s)
{
	return strcpy(heap_alloc(strlen(s) + 1), s);
}

__attribute__((noinline)) static struct entry *parse_line(char *line, struct entry *list)
{
	char *eq = strchr(line, '=');
	if (!eq)
		return list;
	*eq = 0;
	struct entry *e = heap_alloc(sizeof *e);
	e->name = copy(line);
	e->value = copy(eq + 1);
	e->next = list;
	return e;
}

__attribute__((noinline)) static struct entry *read_config(void)
{
	struct entry *list = NULL;
	char line[64];
	for (int i = 0; i < 12; i++) {
		snprintf(line, sizeof line, "option%d=value %d", i, i * i);
		list = parse_line(line, list);
	}
	return list;
}

__attribute__((noinline)) static void *connection(int n)
{
	char *rx = heap_alloc(4096), *tx = heap_alloc(1024 << n % 3);
	rx[0] = tx[0] = 0;
	heap_free(tx);
	return n % 4 ? rx : (heap_free(rx), NULL); /* three of four are never freed */
}

__attribute__((noinline)) static int serve(int requests)
{
	int open = 0;
	for (int n = 0; n < requests; n++)
		open += connection(n) != NULL;
	return open;
}

/* heaplog [-b] [ROUNDS]: -b also decodes what it writes; a dump after each round. */
int main(int argc, char **argv)
{
	int decoded = argc > 1 && !strcmp(argv[1], "-b");
	int rounds = argc > 1 + decoded ? atoi(argv[1 + decoded]) : 1;
	struct entry *config = read_config();
	int open = 0;
	for (int round = 0; round < rounds; round++) {
		open += serve(40);
		printf("[     -] started: %s, %d connections open\n", config->name, open);
		heap_dump(decoded);
	}
	return 0;
}
