/* Digits, CRCs and code offsets: sections 18 and 19 of SPEC.md. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "testee.h"

/* n digits, least significant first. (BT-DIGIT-1) */
uint64_t fixed(struct digits *d, int n)
{
	uint64_t v = 0;

	if ((size_t)n > d->end - d->pos)
		reject("truncated", -1);
	for (int i = 0; i < n && !fault.reason; i++)
		v |= (uint64_t)d->at[d->pos++] << 6 * i;
	return v;
}

/* Pieces of 5 bits; a digit below 32 is the last. (BT-DIGIT-2) */
uint64_t number(struct digits *d)
{
	uint64_t v = 0;

	for (int n = 0; !fault.reason; n++) {
		uint64_t c = fixed(d, 1);

		if ((n == 12 && c > 15) || (n > 0 && c == 0))
			reject("number", -1);
		if (fault.reason)
			break;
		v |= (c & 31) << 5 * n;
		if (c < 32)
			return v;
	}
	return 0;
}

uint64_t read_name(struct digits *d)
{
	uint64_t name = fixed(d, 6);

	if (name >> 32)
		reject("hash", -1);
	return name;
}

uint64_t unfold(uint64_t v)
{
	return v & 1 ? ~(v >> 1) : v >> 1;
}

uint64_t fold(uint64_t d)
{
	return d >> 63 ? ~(d << 1) : d << 1;
}

unsigned read_unit(struct digits *d, unsigned flags)
{
	unsigned unit = flags & 1 ? (unsigned)fixed(d, 1) : 0;

	if (unit > 12)
		reject("unit", -1);
	return unit;
}

/* CRC-16/IBM-3740. (BT-PLINE-2) */
uint32_t crc16(const char *text, size_t len)
{
	uint32_t crc = 0xffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= (uint32_t)(unsigned char)text[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
	}
	return crc;
}

/* CRC-32/ISO-HDLC. (BT-VLINE-2) */
uint32_t crc32(const char *text, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)text[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* The digits between lead-in and CRC. (BT-PREJ-1) */
struct digits open_line(struct bytes text, const char *lead, size_t least, int crc_digits)
{
	struct digits d = { NULL, 0, 0 };
	const char *fields = (const char *)text.at + 3;
	uint64_t crc;

	if (!begins(text, lead)) {
		reject("lead-in", -1);
		return d;
	}
	d.end = text.len - 3;
	d.at = need(d.end + 1);
	for (size_t i = 0; i < d.end; i++) {
		if (digit_value(fields[i]) < 0)
			reject("base64", -1);
		d.at[i] = (unsigned char)digit_value(fields[i]);
	}
	if (d.end < least)
		reject("short", -1);
	if (fault.reason)
		return d;
	d.pos = d.end - (size_t)crc_digits;
	crc = fixed(&d, crc_digits);
	d.end -= (size_t)crc_digits;
	d.pos = 0;
	if (crc != (crc_digits == 3 ? crc16 : crc32)(fields, d.end))
		reject("crc", -1);
	return d;
}

void put_fixed(struct line *l, uint64_t v, int n)
{
	for (int i = 0; i < n; i++, v >>= 6) {
		l->at = grow(l->at, l->len, 1);
		l->at[l->len++] = alphabet[v & 63];
	}
}

void put_number(struct line *l, uint64_t v)
{
	for (; v >= 32; v >>= 5)
		put_fixed(l, 32 | (v & 31), 1);
	put_fixed(l, v, 1);
}

/* -- Code offsets */

enum { MOST_OFFSETS = 1 << 27 };

struct code {
	unsigned shift;
	uint64_t (*ranges)[2];	/* START and LENGTH */
	size_t count;
};

static struct code parse_code(char **words)
{
	struct code c = { (unsigned)strtoul(must(words, "shift"), NULL, 10), NULL, 0 };
	const char *at = must(words, "code");

	if (c.shift > 4) {
		reject(MALFORMED, -1);
		c.shift = 0;
	}
	for (char *end; ; at = end + 1) {
		c.ranges = grow(c.ranges, c.count, sizeof *c.ranges);
		c.ranges[c.count][0] = strtoull(at, &end, 16);
		c.ranges[c.count++][1] = *end == '+' ? strtoull(end + 1, &end, 16) : 0;
		if (*end != ',')
			return c;
	}
}

/* The code offset of an address, or MOST_OFFSETS if it has none. (BT-CODE-1, BT-CODE-2) */
static uint64_t offset_of(const struct code *c, uint64_t address)
{
	uint64_t found = MOST_OFFSETS, before = 0;

	for (size_t i = 0; i < c->count; i++) {
		uint64_t d = address - c->ranges[i][0], units = c->ranges[i][1] >> c->shift;

		if (address >= c->ranges[i][0] && d < c->ranges[i][1]) {	/* of several the last */
			found = MOST_OFFSETS;
			if (d >> c->shift < units && (d >> c->shift) << c->shift == d && d >> c->shift < MOST_OFFSETS - before)
				found = before + (d >> c->shift);
		}
		before = units < MOST_OFFSETS - before ? before + units : MOST_OFFSETS;
	}
	return found;
}

void put_offsets(char **words)
{
	struct code c = parse_code(words);
	char *at = words[2];

	for (const char *before = ""; *before == 0 || *at++ == ','; before = ",") {
		uint64_t address = strtoull(at, &at, 16), x = offset_of(&c, address);

		put(x < MOST_OFFSETS ? "%s%" PRIx64 : "%s@%" PRIx64, before, x < MOST_OFFSETS ? x : address);
	}
}

/* The address of a code offset: 0 if no range has it. */
static int address_of(const struct code *c, uint64_t x, uint64_t *address)
{
	for (size_t i = 0; i < c->count; i++) {
		uint64_t units = c->ranges[i][1] >> c->shift;

		if (x < units) {
			*address = c->ranges[i][0] + (x << c->shift);
			return 1;
		}
		x -= units;
	}
	return 0;
}

void put_addresses(char **words)
{
	struct code c = parse_code(words);
	char *at = words[2];

	for (const char *before = ""; *before == 0 || *at++ == ','; before = ",") {
		int escaped = *at == '@';
		uint64_t x = strtoull(at + escaped, &at, 16);

		if (escaped || address_of(&c, x, &x))
			put("%s%" PRIx64, before, x);
		else
			put("%s?", before);
	}
}
