/*
 * Lines, read.
 */
#include <string.h>

#include "internal.h"

/* sextet returns the value of a base64 character, of the URL alphabet too if
 * lenient, or 64. */
static unsigned sextet(char c, int lenient)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 52;
	if (c == '+' || (lenient && c == '-'))
		return 62;
	if (c == '/' || (lenient && c == '_'))
		return 63;
	return 64;
}

enum lwsbt_result lwsbt_parse_line(void *buf, size_t cap, size_t *n, const char *line,
	size_t len, int lenient)
{
	uint8_t *out = buf;
	uint32_t acc = 0;
	size_t i = 3, chars = 0, pad = 0;

	*n = 0;
	if (len < 3 || memcmp(line, "~m#", 3) != 0) {
		if (!lenient)
			return LWSBT_LEAD_IN;
		i = 0;
	}
	for (; i < len; i++) {
		char c = line[i];
		unsigned v;

		if (lenient && (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
			continue;
		if (c == '=') {
			if (++pad > (4 - chars % 4) % 4 || chars % 4 == 1)
				return LWSBT_BASE64;
			continue;
		}
		v = sextet(c, lenient);
		if (v > 63 || pad > 0)
			return LWSBT_BASE64;
		acc = acc << 6 | v;
		/* each character but the first of a group completes a byte */
		if (chars++ % 4 != 0) {
			if (*n >= cap)
				return LWSBT_SPACE;
			out[(*n)++] = (uint8_t)(acc >> (6 - 2 * ((chars - 1) % 4)));
		}
	}
	if (chars % 4 == 1 || (!lenient && (chars + pad) % 4 != 0))
		return LWSBT_BASE64;
	/* of the last character, bits that no byte takes */
	if ((chars % 4 == 2 && (acc & 15)) || (chars % 4 == 3 && (acc & 3)))
		return LWSBT_BASE64;
	return LWSBT_OK;
}

/* number reads digits at *p, and moves it behind them. */
static enum lwsbt_result parse_number(const char **p, const char *end, unsigned base, lwsbt_word *v)
{
	const char *from = *p;

	*v = 0;
	for (; *p < end; ++*p) {
		char c = **p;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
			c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 :
			c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : base;

		if (digit >= base)
			break;
		if (*v > (lwsbt_word)((lwsbt_word)~(lwsbt_word)0 - digit) / base)
			return LWSBT_WORD_BITS == 64 ? LWSBT_DECODED_LINE : LWSBT_COUNT;
		*v = *v * base + digit;
	}
	return *p > from ? LWSBT_OK : LWSBT_DECODED_LINE;
}

/* literally moves *p behind text, if it is there. */
static int literally(const char **p, const char *end, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
		return 0;
	*p += n;
	return 1;
}

enum lwsbt_result lwsbt_parse_decoded(struct lwsbt_stack *s, const char *line, size_t len)
{
	const char *p = line, *end = line + len;
	lwsbt_word size;
	unsigned n = 0;
	enum lwsbt_result e;

	s->depth = 0;
	s->size = 0;
	s->end = 0;
	if (!literally(&p, end, "~b#"))
		return LWSBT_LEAD_IN;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n'))
		end--;
	if (!literally(&p, end, "size: "))
		return LWSBT_DECODED_LINE;
	if ((e = parse_number(&p, end, 10, &size)) != LWSBT_OK)
		return e;
	if (!literally(&p, end, ","))
		return LWSBT_DECODED_LINE;
	for (; p < end; n++) {
		if (n == LWSBT_DEPTH_MAX || !literally(&p, end, " 0x"))
			return LWSBT_DECODED_LINE;
		if ((e = parse_number(&p, end, 16, &s->pc[n])) != LWSBT_OK)
			return e;
	}
	s->size = size;
	s->depth = n;
	return LWSBT_OK;
}
