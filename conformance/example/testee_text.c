/* Text: base64, ~b# lines, and the records in a text (section 7 of SPEC.md). */
#include <string.h>

#include "testee.h"

const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit_value(int c)
{
	const char *found = c ? strchr(alphabet, c) : NULL;

	return found ? (int)(found - alphabet) : -1;
}

/* The value of a decimal or hexadecimal digit, or -1. */
static int figure(int c, unsigned base)
{
	int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

	return v < (int)base ? v : -1;
}

int to_number(struct bytes digits, unsigned base, uint64_t *v)
{
	*v = 0;
	for (size_t i = 0; i < digits.len; i++) {
		int c = figure(digits.at[i], base);

		if (c < 0 || *v > (UINT64_MAX - (unsigned)c) / base)
			return 0;
		*v = *v * base + (unsigned)c;
	}
	return digits.len > 0;
}

int is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct bytes part(struct bytes text, size_t at, size_t len)
{
	struct bytes b = { text.at + at, len };

	return b;
}

int begins(struct bytes text, const char *with)
{
	return text.len >= strlen(with) && !memcmp(text.at, with, strlen(with));
}

int lead_in(struct bytes text, size_t at)
{
	const unsigned char *c = text.at + at;

	return text.len - at >= 3 && c[0] == '~' && c[1] && strchr("mbehpv", c[1]) && c[2] == '#' ? c[1] : 0;
}

/* -- base64 */

/* The value of a base64 character, or -1; lenient mode accepts both alphabets. (BT-B64-3) */
static int sextet(int c, int lenient)
{
	return digit_value(lenient && c == '-' ? '+' : lenient && c == '_' ? '/' : c);
}

/* The bytes of base64. (BT-B64-2, BT-B64-3) */
static struct bytes from_base64(struct bytes text, int lenient)
{
	unsigned char *out = need(text.len + 1);
	struct bytes data = { out, 0 };
	size_t chars = 0, pads = 0, missing;
	uint32_t left = 0;

	for (size_t i = 0; i < text.len; i++) {
		int v = sextet(text.at[i], lenient);

		if (lenient && is_space(text.at[i]))
			continue;
		if (text.at[i] == '=') {
			pads++;
			continue;
		}
		if (v < 0 || pads)
			reject("base64", -1);
		left = (left << 6 | (uint32_t)v) & 0xfff;	/* the last two characters */
		if (chars++ % 4)
			out[data.len++] = (unsigned char)(left >> (6 - 2 * ((chars - 1) % 4)));
	}
	missing = (4 - chars % 4) % 4;
	if (missing == 3 || pads > missing || (pads < missing && !lenient))
		reject("base64", -1);
	if (left & (missing == 2 ? 0xf : missing == 1 ? 3 : 0))	/* bits that no byte takes */
		reject("base64", -1);
	return data;
}

/* The bytes of a ~m# or ~e# line. (BT-TEXT-1, BT-EVT-1) */
struct bytes read_line(struct bytes text, const char *lead, int lenient)
{
	if (begins(text, lead))
		text = part(text, 3, text.len - 3);
	else if (!lenient)
		reject("lead-in", -1);
	return from_base64(text, lenient);
}

/* Standard alphabet, padded. (BT-B64-1) */
void put_base64(struct bytes data)
{
	for (size_t i = 0; i < data.len; i += 3) {
		size_t n = data.len - i < 3 ? data.len - i : 3;
		uint32_t group = 0;
		char out[5] = "====";

		for (size_t k = 0; k < n; k++)
			group |= (uint32_t)data.at[i + k] << (16 - 8 * k);
		for (size_t k = 0; k <= n; k++)
			out[k] = alphabet[group >> (18 - 6 * k) & 63];
		put("%s", out);
	}
}

/* -- ~b# lines */

/* The length of the run of figures at a place. */
static size_t run(struct bytes text, size_t at, unsigned base)
{
	size_t n = 0;

	while (at + n < text.len && figure(text.at[at + n], base) >= 0)
		n++;
	return n;
}

/*
 * Reads the beginning of text as far as it is a ~b# record, and returns the
 * length of that; 0 if there is none. (BT-TEXT-3)
 */
static size_t decoded_part(struct bytes text, struct stack *s)
{
	size_t at = strlen("~b#size: "), n;

	if (!begins(text, "~b#size: "))
		return 0;
	n = run(text, at, 10);
	if (!to_number(part(text, at, n), 10, &s->size) || at + n >= text.len || text.at[at + n] != ',')
		return 0;
	at += n + 1;
	for (s->depth = 0; s->depth < MOST_FRAMES; s->depth++) {
		if (!begins(part(text, at, text.len - at), " 0x"))
			break;
		n = run(text, at + 3, 16);
		if (!to_number(part(text, at + 3, n), 16, &s->pcs[s->depth]))
			break;
		at += 3 + n;
	}
	return at;
}

/* Reads a ~b# line. (BT-TEXT-2) */
void read_decoded(struct bytes text, struct stack *s)
{
	size_t n = decoded_part(text, s);

	if (!begins(text, "~b#"))
		reject("lead-in", -1);
	while (n && n < text.len && is_space(text.at[n]))
		n++;
	if (n == 0 || n < text.len)
		reject("decoded-line", -1);
}

/* -- Records in a text */

/* The length of a run of base64 and its padding. (BT-TEXT-3.1) */
static size_t base64_run(struct bytes text, size_t at)
{
	size_t n = 0, pads;

	while (at + n < text.len && sextet(text.at[at + n], 1) >= 0)
		n++;
	pads = n % 4 >= 2 ? 4 - n % 4 : 0;
	while (pads-- && at + n < text.len && text.at[at + n] == '=')
		n++;
	return n;
}

/* The length of a header behind its lead-in. (BT-HEAD-5) */
static size_t header_run(struct bytes text, size_t at)
{
	size_t n = 0;

	while (at + n < text.len && !strchr("\n\r\033", text.at[at + n] ? text.at[at + n] : 1) && !lead_in(text, at + n))
		n++;
	while (n && (text.at[at + n - 1] == ' ' || text.at[at + n - 1] == '\t'))
		n--;
	return n;
}

/* The length of a run of digits. (BT-PLINE-4) */
static size_t digit_run(struct bytes text, size_t at)
{
	size_t n = 0;

	while (at + n < text.len && digit_value(text.at[at + n]) >= 0)
		n++;
	return n;
}

/* Finds the next record, header or line of Part III. (BT-TEXT-3) */
struct place next_place(struct bytes text, size_t from)
{
	struct place p = { 0, 0, 0 };
	struct stack s;

	for (size_t at = from; at < text.len; at++) {
		int kind = lead_in(text, at);

		if (!kind)
			continue;
		p.at = at;
		if (kind == 'b')
			p.len = decoded_part(part(text, at, text.len - at), &s);
		else if (kind == 'h')
			p.len = 3 + header_run(text, at + 3);
		else if (kind == 'p' || kind == 'v')
			p.len = 3 + digit_run(text, at + 3);
		else
			p.len = 3 + base64_run(text, at + 3);
		if (p.len) {
			p.kind = (char)kind;
			return p;
		}
		at += 2;	/* skip the lead-in of a ~b# that is not a record */
	}
	return p;
}
