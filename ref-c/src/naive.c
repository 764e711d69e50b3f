#include "naive.h"

#include <string.h>

struct bits {
	const uint8_t *p;
	size_t pos, end;	/* bits */
	int spill;		/* 1: a field has a bit after its value */
	struct naive *out;
};

static const uint8_t bit_in_byte[8] = { 128, 64, 32, 16, 8, 4, 2, 1 };

static int
take_bit(struct bits *b)
{
	int bit = (b->p[b->pos / 8] & bit_in_byte[b->pos % 8]) != 0;

	b->pos++;
	return bit;
}

/* Reads one field: value bits, most significant first, then the spill bit.
 * Returns -1 if it does not end before the length. BT-FIELD-1 BT-FIELD-4 */
static int
take_field(struct bits *b, enum naive_kind kind, int frame, int width, uint64_t *value)
{
	struct naive_field *f = &b->out->field[b->out->fields];
	uint64_t v = 0;
	int n;

	if (b->end - b->pos < (size_t)(width + b->spill)) {
		b->out->reason = "truncated";
		return -1;
	}
	for (n = 0; n < width; n++)
		v = v * 2 + (uint64_t)take_bit(b);

	f->kind = kind;
	f->frame = frame;
	f->width = width;
	f->value = v;
	f->spill = b->spill ? take_bit(b) : 0;
	b->out->fields++;
	*value = v;

	return 0;
}

/* Reads a count and a value of as many bits. BT-COUNT-2 BT-COUNT-4 */
static int
take_counted(struct bits *b, enum naive_kind count_kind, enum naive_kind kind, int frame,
	     int word, uint64_t *value)
{
	uint64_t count;

	if (take_field(b, count_kind, frame, 6, &count))
		return -1;
	if (count == 0)
		count = 64;
	if (count > (uint64_t)word) {
		b->out->reason = "count";
		return -1;
	}
	return take_field(b, kind, frame, (int)count, value);
}

static uint64_t
modulo(uint64_t v, int word)
{
	return word == 32 ? v % 4294967296u : v;
}

static int
take_frame(struct bits *b, int n, int word)
{
	struct naive *out = b->out;
	uint64_t item, back, sign, v;

	if (take_field(b, NAIVE_ITEM, n, 1, &item))
		return -1;
	if (item == 0) {
		if (take_counted(b, NAIVE_COUNT, NAIVE_LITERAL, n, word, &v))
			return -1;
		out->pcs[n] = modulo(v, word);
		return 0;
	}

	if (n == 0) {
		out->reason = "delta-first";
		return -1;
	}
	if (take_field(b, NAIVE_BACK, n, 3, &back))
		return -1;
	if (back + 1 > (uint64_t)n) {
		out->reason = "back";
		return -1;
	}
	if (take_field(b, NAIVE_SIGN, n, 1, &sign) ||
	    take_counted(b, NAIVE_COUNT, NAIVE_DELTA, n, word, &v))
		return -1;
	if (sign)
		out->pcs[n] = modulo(out->pcs[n - 1 - (int)back] - v, word);
	else
		out->pcs[n] = modulo(out->pcs[n - 1 - (int)back] + v, word);

	return 0;
}

/* If as32, a depth of 0 means 32. */
static int
read_as(struct naive *out, const uint8_t *blob, size_t len, int word, int spill, int as32)
{
	struct bits b = { blob, 0, 0, spill, out };
	uint64_t depth;
	int n, rc = -1;

	memset(out, 0, sizeof(*out));
	if (len < 2) {
		out->reason = "short";
		return -1;
	}
	if (blob[len - 2] == 0 && blob[len - 1] == 0) {
		out->reason = "empty";
		out->bit = (len - 2) * 8;
		return -1;
	}
	if ((size_t)blob[len - 2] * 256 + blob[len - 1] != len) {
		out->reason = "length";
		out->bit = (len - 2) * 8;
		return -1;
	}
	b.end = (len - 2) * 8;

	if (take_field(&b, NAIVE_DEPTH, -1, 5, &depth))
		goto done;
	out->depth = depth == 0 && as32 ? 32 : (int)depth;
	for (n = 0; n < out->depth; n++)
		if (take_frame(&b, n, word))
			goto done;
	rc = take_counted(&b, NAIVE_SIZE_COUNT, NAIVE_SIZE, -1, word, &out->size);
done:
	out->bit = b.pos;
	out->user_bits = rc ? 0 : (int)(b.end - b.pos);

	return rc;
}

/* A depth field of 0 is an empty stack or 32 frames. BT-DEPTH-2 */
static int
read_either(struct naive *out, const uint8_t *blob, size_t len, int word, int spill)
{
	struct naive full;
	int rc = read_as(out, blob, len, word, spill, 0);

	if (!out->fields || out->field[0].value != 0)
		return rc;	/* no depth field, or an unambiguous one */
	if (!rc && out->user_bits < 8)
		return 0;
	if (!read_as(&full, blob, len, word, spill, 1)) {
		*out = full;
		return 0;
	}
	if (!rc)
		return 0;	/* empty, with user bits */
	if (len >= 46 + 2)	/* 32 frames and a size do not fit less */
		*out = full;

	return -1;
}

int
naive_read(struct naive *out, const uint8_t *blob, size_t len, int word)
{
	return read_either(out, blob, len, word, 1);
}

int
naive_read_nominal(struct naive *out, const uint8_t *blob, size_t len, int word)
{
	return read_either(out, blob, len, word, 0);
}

int
naive_base64(uint8_t *out, size_t cap, const char *text)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t chars = strcspn(text, "="), n, done = 0;
	unsigned int held = 0, have = 0;	/* bits not yet written, and their number */

	for (n = 0; n < chars; n++) {
		const char *at = strchr(alphabet, text[n]);

		if (!at)
			return -1;
		held = held * 64 + (unsigned int)(at - alphabet);
		have += 6;
		if (have >= 8) {
			unsigned int below = have == 8 ? 1 : have == 10 ? 4 : 16;

			if (done == cap)
				return -1;
			out[done++] = (uint8_t)(held / below);
			held %= below;
			have -= 8;
		}
	}

	return (int)done;
}
