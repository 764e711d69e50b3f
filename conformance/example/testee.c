/*
 * A complete BTP/1 testee in C: a decoder written from SPEC.md, and the loop
 * that answers the runner. Replace the decoder by yours.
 *
 *   cc -o testee testee.c && btconform -- ./testee
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char blob[65536];
static uint64_t pcs[32], size;
static int pos, end, word;	/* bits: where we are, where the length begins, 32 or 64 */
static const char *fault;	/* reason to reject, NULL while all is well */

/* A field: width bits, most significant first, and a spill bit (BT-FIELD-1, -2, -4). */
static uint64_t field(int width)
{
	uint64_t v = 0;

	if (!fault && pos + width + 1 > end)
		fault = "truncated";
	for (int i = 0; !fault && i < width; i++, pos++)
		v = v << 1 | (blob[pos / 8] >> (7 - pos % 8) & 1);
	pos++;
	return v;
}

/* A count, of which 0 means 64, and a value (BT-COUNT-2, -4). */
static uint64_t value(void)
{
	int count = (int)field(6);

	if (!count)
		count = 64;
	if (!fault && count > word)
		fault = "count";
	return field(count);
}

/* Reads depth frames and the size; the bits left, or -1 with a fault. */
static int read_as(int depth)
{
	pos = 0;
	fault = NULL;
	field(5);
	for (int n = 0; n < depth && !fault; n++) {
		if (!field(1)) {	/* literal */
			pcs[n] = value();
			continue;
		}
		if (n == 0)
			fault = "delta-first";
		int back = (int)field(3) + 1;
		if (!fault && back > n)
			fault = "back";
		uint64_t sign = field(1), v = value();
		if (!fault)
			pcs[n] = pcs[n - back] + (sign ? 0 - v : v);
		if (word == 32)
			pcs[n] &= 0xffffffff;
	}
	size = value();
	return fault ? -1 : end - pos;
}

/* Decodes the len bytes of blob; the depth, or -1 with a fault. */
static int decode(int len)
{
	int says = len < 2 ? 0 : blob[len - 2] * 256 + blob[len - 1];

	fault = len < 2 ? "short" : says == 0 ? "empty" : says != len ? "length" : NULL;
	if (fault)
		return -1;
	end = 8 * (len - 2);
	int depth = blob[0] >> 3;
	if (depth == 0) {	/* empty, or 32 (BT-DEPTH-2) */
		int left = read_as(0);
		if ((left < 0 || left >= 8) && (read_as(32) >= 0 || (left < 0 && end >= 8 * 46)))
			depth = 32;
	}
	return read_as(depth) < 0 ? -1 : depth;
}

int main(void)
{
	static char line[140000], hex[sizeof line];
	char id[64];

	setvbuf(stdout, NULL, _IOLBF, 0);	/* each answer goes out at once */
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		if (!strncmp(line, "hello ", 6))
			puts("hello btp=1 name=example version=1 ops=decode");
		else if (sscanf(line, "decode %63s %139999s word=%d", id, hex, &word) == 3) {
			int len = 0, depth;
			for (unsigned v; sscanf(hex + 2 * len, "%2x", &v) == 1; len++)
				blob[len] = (unsigned char)v;	/* "-" is no bytes */
			if ((depth = decode(len)) < 0) {
				printf("reject %s %s\n", id, fault);
				continue;
			}
			printf("ok %s size=%llu pcs=%s", id, (unsigned long long)size, depth ? "" : "-");
			for (int n = 0; n < depth; n++)
				printf("%s%llx", n ? "," : "", (unsigned long long)pcs[n]);
			putchar('\n');
		} else if (sscanf(line, "%*s %63s", id) == 1)
			printf("skip %s unsupported\n", id);
	}
	return 0;
}
