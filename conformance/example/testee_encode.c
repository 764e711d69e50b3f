/* Writes blobs: sections 8, 9, 14 and 15 of SPEC.md. */
#include <string.h>

#include "testee.h"

struct machine {
	char class;		/* 'e' exact, 'w' wrap, 'z' zero */
	int word;
};

static struct machine machine_of(const char *name)
{
	struct machine m = { name[0], strstr(name, "32") ? 32 : 64 };

	return m;
}

static void put_field(struct blob *b, uint64_t v, int width, int spill)
{
	for (int i = width; i >= 0; i--, b->pos++) {
		uint64_t bit = i ? v >> (i - 1) & 1 : (uint64_t)spill;

		b->at[b->pos / 8] |= (unsigned char)(bit << (7 - b->pos % 8));
	}
}

/* The number of significant bits, 1 for 0. (BT-COUNT-1) */
static int significant(uint64_t v)
{
	int count = 1;

	while (v >>= 1)
		count++;
	return count;
}

/* A count and a value, as the machine writes it. (BT-MACH-2, BT-MACH-3, BT-MACH-4) */
static void put_value(struct blob *b, uint64_t v, char class)
{
	int count = significant(v), spill = 0;

	if (class != 'e' && v >> 31) {
		v = (v & 0x7fffffff) | 0x80000000;
		if (class == 'w') {
			v |= v << 32;
			spill = 1;
		}
	}
	put_field(b, (uint64_t)(count % 64), 6, 0);
	put_field(b, v, count, spill);
}

struct delta {
	int base;		/* -1: a literal is written */
	uint64_t difference;
	int sign;
};

/* Chooses the form of frame n. (BT-SRCH-1, BT-SRCH-2) */
static struct delta choose(const struct stack *s, int n, struct machine m, int best)
{
	static const struct delta literal = { -1, 0, 0 };
	struct delta found = literal;
	int difference, address;

	for (int i = n > 8 ? n - 8 : 0; i < n; i++) {
		int sign = s->pcs[n] <= s->pcs[i];
		uint64_t d = sign ? s->pcs[i] - s->pcs[n] : s->pcs[n] - s->pcs[i];

		if (best && m.word == 64 && 0 - d < d) {	/* the wraparound distance is smaller */
			d = 0 - d;
			sign = !sign;
		}
		if (d == 0)
			sign = 1;
		if (found.base < 0 || d < found.difference) {
			found.base = i;
			found.difference = d;
			found.sign = sign;
		}
	}
	if (found.base < 0)
		return literal;
	difference = significant(found.difference);
	address = significant(s->pcs[n]);
	if (!best)
		return found.base != 0 && difference + 11 < address + 7 ? found : literal;
	if (16 + difference < 10 + address || (16 + difference == 10 + address && address == 64))
		return found;
	return literal;
}

/* Refuses values that the machine cannot write. (BT-REJ-2) */
static void check(const struct stack *s, struct machine m)
{
	if (s->depth > MOST_FRAMES) {
		reject("frames", -1);
		return;
	}
	for (int n = 0; n <= s->depth; n++)
		if (m.word == 32 && (n < s->depth ? s->pcs[n] : s->size) >> 32)
			reject("word", -1);
}

static void put_frames(struct blob *b, const struct stack *s, struct machine m, const char *search)
{
	memset(b, 0, sizeof *b);
	put_field(b, (uint64_t)(s->depth % 32), 5, 0);	/* BT-DEPTH-2 */
	for (int n = 0; n < s->depth; n++) {
		struct delta d = choose(s, n, m, !strcmp(search, "best"));

		put_field(b, d.base >= 0, 1, 0);
		if (d.base < 0) {
			put_value(b, s->pcs[n], m.class);
			continue;
		}
		put_field(b, (uint64_t)(n - 1 - d.base), 3, 0);
		put_field(b, (uint64_t)d.sign, 1, 0);
		put_value(b, d.difference, m.class);
	}
}

/* A bare stack: depth and frames. (BT-BARE-1) */
void encode_bare(const struct stack *s, const char *machine, const char *search, struct blob *b)
{
	check(s, machine_of(machine));
	if (!fault.reason)
		put_frames(b, s, machine_of(machine), search);
}

static void put_blob(const struct stack *s, struct machine m, const char *search, struct blob *b)
{
	put_frames(b, s, m, search);
	put_value(b, s->size, m.class);
	for (int tag = 1; tag <= MOST_FIELDS; tag++)
		if (s->has[tag]) {	/* BT-UF-1 */
			put_field(b, (uint64_t)tag, 4, 0);
			put_value(b, s->user[tag], 'e');
		}
	b->pos = (b->pos + 7) / 8 * 8;
	put_field(b, (uint64_t)(b->pos / 8 + 2), 16, 0);
	b->pos--;			/* the length has no spill bit (BT-BLOB-1) */
}

void encode(const struct stack *s, const char *machine, const char *search, struct blob *b)
{
	check(s, machine_of(machine));
	if (!fault.reason)
		put_blob(s, machine_of(machine), search, b);
}

/* The blob of an event. (BT-EVT-2, BT-EVT-4) */
void encode_event(const struct stack *s, const char *machine, const char *search, struct blob *b)
{
	struct stack shorter = *s;

	check(s, machine_of(machine));
	if (!event_is_complete(s) || s->user[5] > 2 || (s->has[6] && s->user[5] != 2))
		reject("event", -1);
	if (fault.reason)
		return;
	if (shorter.depth == MOST_FRAMES)
		shorter.depth--;
	put_blob(&shorter, machine_of(machine), search, b);
}
