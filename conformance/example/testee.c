/* A minimal testee: it decodes blobs (SPEC.md, sections 2 to 6), and answers "skip" to all else.
 *
 *     cc -std=c99 -o testee testee.c && btconform -- ./testee
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char line[1 << 18], hex[sizeof line]; /* longer than any request */
static uint8_t blob[sizeof line / 2];
static size_t pos, end;    /* in bits; the length begins at end */
static unsigned word;      /* 32 or 64 */
static const char *reason; /* of the first fault, NULL if there is none */
static uint64_t pc[32], size;

/* field reads a value of width bits, and passes over its spill bit. (BT-FIELD-1, BT-FIELD-4) */
static uint64_t field(unsigned width)
{
	uint64_t v = 0;

	if (reason == NULL && end - pos < width + 1)
		reason = "truncated";
	if (reason != NULL)
		return 0;
	for (; width > 0; width--, pos++)
		v = v << 1 | (uint64_t)(blob[pos / 8] >> (7 - pos % 8) & 1);
	pos++;
	return v;
}

/* value reads a count and so many bits. (BT-COUNT-2, BT-COUNT-4) */
static uint64_t value(void)
{
	unsigned count = (unsigned)field(6);

	if (count == 0)
		count = 64;
	if (reason == NULL && count > word)
		reason = "count";
	return field(count);
}

/* frame reads frame n. (BT-ITEM-1, BT-DELTA-2, BT-DELTA-3, BT-DELTA-4, BT-DELTA-5, BT-DELTA-6) */
static uint64_t frame(unsigned n)
{
	unsigned back;
	uint64_t sign, v;

	if (field(1) == 0)
		return value();
	if (n == 0)
		reason = "delta-first";
	back = (unsigned)field(3) + 1;
	if (reason == NULL && back > n)
		reason = "back";
	sign = field(1);
	v = value();
	if (reason != NULL)
		return 0;
	v = sign ? pc[n - back] - v : pc[n - back] + v;
	return word == 32 ? (uint32_t)v : v;
}

/* body reads the frames and the size behind the depth. It returns the reason of a rejection, or NULL. */
static const char *body(unsigned depth)
{
	unsigned n;

	pos = 6;
	reason = NULL;
	for (n = 0; n < depth; n++)
		pc[n] = frame(n);
	size = value();
	return reason;
}

/* decode reads a blob of n bytes, and its depth. It returns the reason of a rejection, or NULL.
 * (BT-BLOB-2, BT-BLOB-4, BT-DEPTH-2) */
static const char *decode(size_t n, unsigned *depth)
{
	size_t length = n < 2 ? 0 : (size_t)blob[n - 2] << 8 | blob[n - 1];
	const char *as_32;

	if (n < 2)
		return "short";
	if (length != n)
		return length == 0 ? "empty" : "length";
	end = 8 * (n - 2);
	pos = 0;
	reason = NULL;
	*depth = (unsigned)field(5);
	if (*depth > 0 || reason != NULL)
		return reason != NULL ? reason : body(*depth);
	*depth = 32;
	if ((as_32 = body(32)) == NULL)
		return NULL;
	*depth = 0;
	if (body(0) == NULL)
		return NULL;
	return n - 2 >= 46 ? as_32 : reason; /* 32 frames and a size take 46 bytes or more */
}

static unsigned digit(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

int main(void)
{
	char op[32], id[32];
	unsigned i, depth = 0;
	size_t n;
	const char *fault;

	while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "quit", 4) != 0) {
		if (strncmp(line, "hello", 5) == 0) {
			printf("hello btp=1 name=minimal version=1 ops=decode\n");
		} else if (sscanf(line, "decode %31s %262143s word=%u", id, hex, &word) == 3) {
			for (n = 0; hex[0] != '-' && hex[2 * n] != 0; n++)
				blob[n] = (uint8_t)(digit(hex[2 * n]) << 4 | digit(hex[2 * n + 1]));
			fault = decode(n, &depth);
			if (fault != NULL)
				printf("reject %s %s", id, fault);
			else
				printf("ok %s size=%llu pcs=%s", id, (unsigned long long)size, depth == 0 ? "-" : "");
			for (i = 0; fault == NULL && i < depth; i++)
				printf("%s%llx", i == 0 ? "" : ",", (unsigned long long)pc[i]);
			printf("\n");
		} else if (sscanf(line, "%31s %31s", op, id) == 2) {
			printf("skip %s unsupported\n", id);
		}
		fflush(stdout); /* the runner waits for the answer */
	}
	return 0;
}
