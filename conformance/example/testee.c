/* A minimal testee: it decodes blobs (SPEC.md, sections 2 to 6), and answers "skip" to all else.
 *
 *     cc -std=c99 -o testee testee.c && btconform -- ./testee
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32
#define LEAST_32_FRAMES 46 /* bytes of 32 frames and a size, at least (BT-DEPTH-2) */

static char line[1 << 18]; /* longer than any request */
static uint8_t blob[sizeof line / 2];

struct reader {
	size_t pos, end; /* in bits; the length begins at end */
	int word;
	const char *reason; /* of the first fault, NULL if there is none */
};

struct stack {
	unsigned depth;
	uint64_t pc[MAX_DEPTH], size;
};

static uint64_t fault(struct reader *r, const char *reason)
{
	if (r->reason == NULL)
		r->reason = reason;
	return 0;
}

/* field reads a value of width bits, and passes over its spill bit. (BT-FIELD-1, BT-FIELD-4) */
static uint64_t field(struct reader *r, unsigned width)
{
	uint64_t v = 0;

	if (r->reason != NULL || r->end - r->pos < width + 1)
		return fault(r, "truncated");
	for (; width > 0; width--, r->pos++)
		v = v << 1 | (uint64_t)(blob[r->pos / 8] >> (7 - r->pos % 8) & 1);
	r->pos++;
	return v;
}

/* value reads a count and so many bits. (BT-COUNT-2, BT-COUNT-4) */
static uint64_t value(struct reader *r)
{
	unsigned count = (unsigned)field(r, 6);

	if (count == 0)
		count = 64;
	if (count > (unsigned)r->word)
		return fault(r, "count");
	return field(r, count);
}

/* frame reads frame n. (BT-ITEM-1, BT-DELTA-2, BT-DELTA-3, BT-DELTA-4, BT-DELTA-5, BT-DELTA-6) */
static uint64_t frame(struct reader *r, const struct stack *s, unsigned n)
{
	unsigned back;
	uint64_t sign, v;

	if (field(r, 1) == 0)
		return value(r);
	if (r->reason == NULL && n == 0)
		return fault(r, "delta-first");
	back = (unsigned)field(r, 3) + 1;
	if (r->reason == NULL && back > n)
		return fault(r, "back");
	sign = field(r, 1);
	v = value(r);
	if (r->reason != NULL)
		return 0;
	v = sign ? s->pc[n - back] - v : s->pc[n - back] + v;
	return r->word == 32 ? (uint32_t)v : v;
}

/* body reads frames and size of a stack of that depth. It returns the reason of a rejection, or NULL. */
static const char *body(struct reader r, struct stack *s, unsigned depth)
{
	for (s->depth = 0; s->depth < depth && r.reason == NULL; s->depth++)
		s->pc[s->depth] = frame(&r, s, s->depth);
	s->size = value(&r);
	return r.reason;
}

/* decode reads a blob of n bytes. (BT-BLOB-2, BT-BLOB-4, BT-DEPTH-2) */
static const char *decode(size_t n, int word, struct stack *s)
{
	struct reader r = {0, 0, word, NULL};
	size_t length;
	unsigned depth;
	const char *as_32, *as_0;

	if (n < 2)
		return "short";
	length = (size_t)blob[n - 2] << 8 | blob[n - 1];
	if (length != n)
		return length == 0 ? "empty" : "length";
	r.end = 8 * (n - 2);
	depth = (unsigned)field(&r, 5);
	if (depth > 0 || r.reason != NULL)
		return body(r, s, depth);
	if ((as_32 = body(r, s, MAX_DEPTH)) == NULL || (as_0 = body(r, s, 0)) == NULL)
		return NULL;
	return n - 2 >= LEAST_32_FRAMES ? as_32 : as_0;
}

/* bytes reads hexadecimal into blob and returns their number. */
static size_t bytes(const char *hex)
{
	size_t n = 0;

	for (; hex[0] != 0 && hex[1] != 0; hex += 2) {
		const char two[3] = { hex[0], hex[1], 0 };

		blob[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

int main(void)
{
	static char hex[sizeof line];
	char op[32], id[32];
	int word;
	unsigned i;
	struct stack s;
	const char *reason;

	while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "quit", 4) != 0) {
		if (strncmp(line, "hello", 5) == 0) {
			printf("hello btp=1 name=minimal version=1 ops=decode\n");
		} else if (sscanf(line, "decode %31s %262143s word=%d", id, hex, &word) == 3) {
			if ((reason = decode(bytes(hex), word, &s)) != NULL) {
				printf("reject %s %s\n", id, reason);
			} else {
				printf("ok %s size=%llu pcs=%s", id, (unsigned long long)s.size, s.depth == 0 ? "-" : "");
				for (i = 0; i < s.depth; i++)
					printf(i == 0 ? "%llx" : ",%llx", (unsigned long long)s.pc[i]);
				printf("\n");
			}
		} else if (sscanf(line, "%31s %31s", op, id) == 2) {
			printf("skip %s unsupported\n", id);
		}
		fflush(stdout); /* the runner waits for the answer */
	}
	return 0;
}
