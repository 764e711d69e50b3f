/*
 * A complete BTP/1 testee in C: a decoder of blobs and a reader of ~p# lines,
 * written from SPEC.md, and the loop that answers the runner. Replace them by
 * yours.
 *
 *   cc -o testee testee.c && btconform -- ./testee
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char blob[70000];	/* as many bytes as a line of BTP/1 below has */
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

/*
 * Call paths: the fields of a ~p# line are digits of 6 bits (BT-DIGIT-1). A
 * reader of 240 characters meets less than 120 frames in a path; this one takes
 * lines of up to 4,095.
 */
static unsigned char digit[4096];	/* values of the digits, 0 to 63 */
static int at, digits;			/* digits: where we are, where the CRC begins */
static struct frame { int escaped; uint64_t x; } frames[2048];
static char answer[1 << 18];

static uint64_t fixed(int n)
{
	uint64_t v = 0;

	if (!fault && at + n > digits)
		fault = "truncated";
	for (int i = 0; !fault && i < n; i++)
		v |= (uint64_t)digit[at++] << 6 * i;
	return v;
}

/* Digits of 5 bits, up to one below 32 (BT-DIGIT-2). */
static uint64_t number(void)
{
	uint64_t v = 0, d = 32;

	for (int n = 0; d >= 32 && !fault; n++) {
		d = fixed(1);
		if (!fault && ((n == 12 && d > 15) || (n > 0 && d == 0)))
			fault = "number";
		v |= (d & 31) << 5 * (n < 13 ? n : 0);
	}
	return fault ? 0 : v;
}

static int64_t unfold(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A step from ref, or an escape (BT-DIGIT-3). */
static struct frame step(uint64_t ref)
{
	struct frame f = { 0, 0 };
	uint64_t first = fixed(1);
	int c = (int)(first & 3);
	uint64_t v = first >> 2 | fixed(c + 1) << 4;

	if (!fault && c && v >> (4 + 6 * c) == 0)
		fault = "number";
	if (v == (1 << 28) - 1) {
		f.escaped = 1;
		f.x = number();
		return f;
	}
	f.x = ref + (uint64_t)unfold(v);
	if (!fault && f.x >> 27)	/* below 0, too */
		fault = "frame";
	return f;
}

static uint64_t reference(struct frame f)
{
	return f.escaped ? 0 : f.x;
}

static unsigned crc16(const char *text, int len)
{
	unsigned crc = 0xffff;

	for (int i = 0; i < len; i++) {
		crc ^= (unsigned)(unsigned char)text[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
	}
	return crc;
}

/* The words of an entry's values (BT-ENTRY-4); unit and block are the line's. */
static char *values(char *out, unsigned flags, int unit, uint64_t *block)
{
	uint64_t v = number(), allocs;

	if (fault || v == 0)
		return out + sprintf(out, ";def");
	out += sprintf(out, ";live=%llu", (unsigned long long)v - 1);
	if (flags & 1) {
		out += sprintf(out, ";blocks=%s", v == 1 ? "-" : "");
		for (uint64_t i = 1; i < v && !fault; i++) {
			*block += (uint64_t)unfold(number());
			out += sprintf(out, "%s%llx+", i > 1 ? "," : "", (unsigned long long)(*block << unit));
			out += sprintf(out, "%llu", (unsigned long long)number());
		}
	} else
		out += sprintf(out, ";bytes=%llu", (unsigned long long)number());
	if (flags & 2) {
		allocs = number();
		out += sprintf(out, ";ever=%llu,%llu", (unsigned long long)allocs, (unsigned long long)number());
	}
	if (flags & 4)
		out += sprintf(out, ";peak=%llu", (unsigned long long)number());
	for (unsigned flag = 8; flag <= 16; flag *= 2)
		if (flags & flag)
			number();
	for (uint64_t k = flags & 32 ? number() : 0; k && !fault; k--)
		fixed(1);	/* later versions */
	return out;
}

/* The words of the entries of a line, behind its head (BT-ENTRY-1). */
static void entries(char *out, unsigned flags, int unit)
{
	uint64_t base = 0, name = 0, n, ref, block = 0;
	int depth = 0;			/* of the previous entry */

	for (int entry = 0; at < digits && !fault; entry++) {
		uint64_t k = number();

		ref = 0;
		if (k < 4) {
			base = k < 2 ? k : 2;
			name = k < 2 ? 0 : fixed(6);
			if (!fault && name >> 32)
				fault = "hash";
			depth = 0;
		} else if (!fault && (entry == 0 || k - 4 > (uint64_t)depth)) {
			fault = "drop";
		} else {
			depth -= (int)(k - 4);
			if (k > 4)
				ref = reference(frames[depth]);
			else if (depth)
				ref = reference(frames[depth - 1]);
		}
		n = k == 2 ? 0 : number();
		if (!fault && (n > 1024 || n + (uint64_t)depth > 1024))
			fault = "depth";
		for (; n && !fault; n--) {
			frames[depth] = step(ref);
			ref = reference(frames[depth++]);
		}
		if (out - answer > (int)sizeof answer - 65536)
			fault = "truncated";	/* entries that repeat many frames: more than there is room for */
		if (fault)
			return;
		out += sprintf(out, " %d:", (int)base);
		if (base == 2)
			out += sprintf(out, "%08llx%s", (unsigned long long)name, depth ? "/" : "");
		for (int i = 0; i < depth; i++)
			out += sprintf(out, "%s%s%llx", i ? "/" : "", frames[i].escaped ? "@" : "", (unsigned long long)frames[i].x);
		out = values(out, flags, unit, &block);
	}
}

/* Reads the ~p# line of len bytes; its words are in answer, unless there is a fault (BT-PLINE-1). */
static void pline(const char *text, int len)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int n = len - 3, unit = 0;
	unsigned flags, dump, sequence, crc;
	char *out = answer;

	fault = n < 0 || memcmp(text, "~p#", 3) ? "lead-in" : n > (int)sizeof digit ? "length" : NULL;
	for (int i = 0; !fault && i < n; i++) {
		const char *c = text[i + 3] ? strchr(alphabet, text[i + 3]) : NULL;

		if (!c)
			fault = "base64";
		else
			digit[i] = (unsigned char)(c - alphabet);
	}
	if (!fault && n < 7)
		fault = "short";
	if (fault)
		return;
	digits = n;
	at = n - 3;
	crc = (unsigned)fixed(3);
	if (crc != crc16(text + 3, n - 3))
		fault = "crc";
	digits = n - 3;
	at = 0;
	flags = (unsigned)fixed(1);
	dump = (unsigned)fixed(1);
	sequence = (unsigned)fixed(2);
	out += sprintf(out, "flags=%u dump=%u seq=%u", flags, dump, sequence);
	if (flags & 1) {
		unit = (int)fixed(1);
		if (!fault && unit > 12)
			fault = "unit";
		out += sprintf(out, " unit=%d", unit);
	}
	entries(out, flags, unit);
}

/* The bytes of hex in blob, how many there are; "-" is none. */
static int bytes(const char *hex)
{
	int len = 0;

	for (unsigned v; sscanf(hex + 2 * len, "%2x", &v) == 1; len++)
		blob[len] = (unsigned char)v;
	return len;
}

int main(void)
{
	static char line[140000], hex[sizeof line];
	char id[64];

	setvbuf(stdout, NULL, _IOLBF, 0);	/* each answer goes out at once */
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		if (!strncmp(line, "hello ", 6))
			puts("hello btp=1 name=example version=1 ops=decode,pline");
		else if (sscanf(line, "decode %63s %139999s word=%d", id, hex, &word) == 3) {
			int depth = decode(bytes(hex));

			if (depth < 0) {
				printf("reject %s %s\n", id, fault);
				continue;
			}
			printf("ok %s size=%llu pcs=%s", id, (unsigned long long)size, depth ? "" : "-");
			for (int n = 0; n < depth; n++)
				printf("%s%llx", n ? "," : "", (unsigned long long)pcs[n]);
			putchar('\n');
		} else if (sscanf(line, "pline %63s %139999s", id, hex) == 2) {
			pline((const char *)blob, bytes(hex));
			if (fault)
				printf("reject %s %s\n", id, fault);
			else
				printf("paths %s %s\n", id, answer);
		} else if (sscanf(line, "%*s %63s", id) == 1)
			printf("skip %s unsupported\n", id);
	}
	return 0;
}
