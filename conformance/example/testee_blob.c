/* Reads blobs: sections 2 to 6 of SPEC.md, and 12 to 15. */
#include <string.h>

#include "testee.h"

enum { LENGTH = 2, LEAST_OF_32 = 46 };	/* bytes: of the length; that 32 frames and a size take at least */

/* A field: width bits, most significant first, and a spill bit. (BT-FIELD-1, BT-FIELD-2, BT-FIELD-4) */
static uint64_t field(struct bits *b, int width)
{
	uint64_t v = 0;

	if (width + 1 > b->end - b->pos)
		reject("truncated", b->pos);
	if (fault.reason)
		return 0;
	for (int i = 0; i < width; i++, b->pos++)
		v = v << 1 | (b->at[b->pos / 8] >> (7 - b->pos % 8) & 1);
	b->pos++;
	return v;
}

/* A count, of which 0 means 64, and a value. (BT-COUNT-2, BT-COUNT-4) */
static uint64_t value(struct bits *b, int word, int *count)
{
	long at = b->pos;

	*count = (int)field(b, 6);
	if (*count == 0)
		*count = 64;
	if (*count > word)
		reject("count", at);
	return field(b, *count);
}

/* Reads frames; after a fault, s holds the frames before it. (section 5) */
static void read_frames(struct bits *b, int depth, int word, struct stack *s)
{
	for (s->depth = 0; s->depth < depth; s->depth++) {
		int n = s->depth, base = -1;
		long at = b->pos;
		uint64_t sign = 0, v;

		if (field(b, 1)) {
			if (n == 0)
				reject("delta-first", at);
			at = b->pos;
			base = n - 1 - (int)field(b, 3);
			if (base < 0)
				reject("back", at);
			sign = field(b, 1);
		}
		v = value(b, word, &s->counts[n]);
		if (fault.reason)
			return;
		s->values[n] = v;
		s->bases[n] = base;
		s->pcs[n] = base < 0 ? v : sign ? s->pcs[base] - v : s->pcs[base] + v;
		if (word == 32)
			s->pcs[n] &= 0xffffffff;	/* BT-DELTA-6 */
	}
}

static void read_stack(struct bits *b, int depth, int word, struct stack *s)
{
	read_frames(b, depth, word, s);
	s->size = value(b, word, &s->size_count);
}

/* The length in the last two bytes. */
static size_t length_of(struct bytes blob)
{
	return (size_t)blob.at[blob.len - 2] << 8 | blob.at[blob.len - 1];
}

/* Decodes a blob; rest begins at the bit after the size. (BT-BLOB-2, BT-DEPTH-2, BT-EVT-2) */
void decode(struct bytes blob, int word, int event, struct stack *s, struct bits *rest)
{
	struct bits behind_depth;
	struct fault of_32;
	size_t length;
	int depth;

	if (blob.len < LENGTH) {
		reject("short", 0);
		return;
	}
	rest->at = blob.at;
	rest->pos = 0;
	rest->end = 8 * (long)(blob.len - LENGTH);
	length = length_of(blob);
	if (length != blob.len) {
		reject(length ? "length" : "empty", rest->end);
		return;
	}
	depth = (int)field(rest, 5);
	if (fault.reason)
		return;
	behind_depth = *rest;
	if (depth || event) {
		read_stack(rest, depth, word, s);
		return;
	}
	read_stack(rest, 32, word, s);
	if (!fault.reason)
		return;
	of_32 = take_fault();
	*rest = behind_depth;
	read_stack(rest, 0, word, s);
	if (fault.reason && rest->end >= 8 * LEAST_OF_32)
		fault = of_32;
}

/* Finds the blob at the end of memory. (BT-BLOB-3) */
struct bytes at_end(struct bytes memory)
{
	size_t length;

	if (memory.len < LENGTH) {
		reject("short", -1);
		return memory;
	}
	length = length_of(memory);
	if (length == 0)
		reject("empty", -1);
	else if (length == 1 || length > memory.len)
		reject("length", -1);
	else
		memory = part(memory, memory.len - length, length);
	return memory;
}

/* Reads a bare stack: depth and frames. (BT-BARE-1, BT-BARE-2) */
long decode_bare(struct bytes data, int word, struct stack *s)
{
	struct bits b = { data.at, 0, 8 * (long)data.len }, behind_depth;
	int depth = (int)field(&b, 5);

	if (fault.reason)
		return 0;
	behind_depth = b;
	read_frames(&b, depth ? depth : 32, word, s);
	if (depth == 0 && fault.reason) {
		take_fault();
		s->depth = 0;
		b = behind_depth;
	}
	return b.pos;
}

/* Reads the trustworthy part of a blob whose end was cut off. (BT-SALV-1, BT-SALV-2) */
int salvage(struct bytes data, int word, struct stack *s, int *has_size)
{
	struct bits b = { data.at, 0, 8 * (long)data.len }, rest;
	int whole = data.len >= LENGTH && length_of(data) == data.len, depth;

	decode(data, word, 0, s, &rest);
	*has_size = !fault.reason;
	if (!fault.reason)
		return s->depth;
	if (whole || data.len == 0 || data.at[0] >> 3 == 0)
		return 0;
	take_fault();
	depth = (int)field(&b, 5);
	read_stack(&b, depth, word, s);
	*has_size = !fault.reason;
	if (fault.reason && !strcmp(fault.reason, "truncated"))	/* where the blob was cut */
		take_fault();
	return depth;
}

/* Reads user fields. (BT-UF-1, BT-UF-2, BT-UF-3) */
static void read_user(struct bits *b, struct stack *s)
{
	while (!fault.reason && b->end - b->pos >= 5) {
		long at = b->pos;
		uint64_t tag = field(b, 4), v;
		int count;

		if (tag == 0)
			return;
		v = value(b, 64, &count);
		if (fault.reason)
			fault.bit = at;
		else if (tag <= MOST_FIELDS && !s->has[tag]) {
			s->user[tag] = v;
			s->has[tag] = 1;
		}
	}
}

/* Reports whether an event has the fields that its number requires. (BT-EVT-3) */
int event_is_complete(const struct stack *s)
{
	return s->has[5] && (s->user[5] > 2 || s->has[1]) && (s->user[5] != 2 || s->has[6]);
}

/* Decodes a blob with user fields. The blob of an event must have some of them. */
void read_fields(struct bytes blob, int word, int event, struct stack *s)
{
	struct bits rest;

	decode(blob, word, event, s, &rest);
	if (!fault.reason)
		read_user(&rest, s);
	if (event && !event_is_complete(s))
		reject("event", -1);
}

/* The signatures of a value, as bits: 1 wide, 2 wrap, 4 zero. (BT-LOSS-2) */
static int signature(uint64_t v, int count)
{
	uint64_t high = v >> 32;
	int bit31 = (int)(v >> 31 & 1);

	if (count <= 32)
		return 0;
	return 1 | (bit31 && high == (v & (((uint64_t)1 << (count - 32)) - 1)) ? 2 : 0) | (bit31 && high == 0 ? 4 : 0);
}

/* Lists the frames whose entry in found has one of the bits. */
static void put_marked(const char *name, const int *found, int depth, int bits, int size)
{
	const char *before = "";

	put("%s=", name);
	for (int n = 0; n < depth; n++)
		if (found[n] & bits) {
			put("%s%d", before, n);
			before = ",";
		}
	if (size)
		put("%ssize", before);
	else if (!*before)
		put("-");
}

/* Lists the loss flags of the values. (BT-LOSS-2, BT-LOSS-3) */
void put_marks(const struct stack *s)
{
	int found[MOST_FRAMES];		/* signatures, and 8 if the frame is lossy */

	for (int n = 0; n < s->depth; n++) {
		found[n] = signature(s->values[n], s->counts[n]);
		if (found[n] & (2 | 4) || (s->bases[n] >= 0 && found[s->bases[n]] & 8))
			found[n] |= 8;
	}
	put_marked("wide", found, s->depth, 1, 0);
	put_marked(" wrap", found, s->depth, 2, 0);
	put_marked(" zero", found, s->depth, 4, 0);
	put_marked(" lossy", found, s->depth, 8, signature(s->size, s->size_count) & (2 | 4));
}
