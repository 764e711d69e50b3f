/* Reads and writes ~v# lines: section 25 of SPEC.md. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "testee.h"

struct events {			/* what holds at a place of a line */
	struct digits digits;	/* of a line that is read; */
	struct line line;	/* of one that is written */
	unsigned flags, unit;
	uint64_t time, thread, next, address;
	uint32_t *names;	/* the table of paths (BT-VLINE-4) */
	size_t count;
};

static uint64_t add_name(struct events *e, uint64_t name)
{
	e->names = grow(e->names, e->count, sizeof *e->names);
	e->names[e->count++] = (uint32_t)name;
	return name;
}

/* The name of path a of the table; 0 is a new one. */
static uint64_t read_event_path(struct events *e, uint64_t a)
{
	if (a == 0)
		return add_name(e, read_name(&e->digits));
	if (a > e->count) {
		reject("index", -1);
		return 0;
	}
	return e->names[a - 1];
}

/* The number of the block of this age. */
static uint64_t block_of_age(const struct events *e, uint64_t age)
{
	if (age == 0 || age > e->next)
		reject("age", -1);
	return e->next - age;
}

static void put_when(const struct events *e)
{
	put(";t=%" PRIu64 ";thread=%" PRIu64, e->time, e->thread);
}

static void read_address(struct events *e)
{
	if (!(e->flags & 1))
		return;
	e->address += unfold(number(&e->digits));
	put(";addr=%" PRIx64, e->address << e->unit);
}

/* An item of kind 0 or 2. */
static void read_begun(struct events *e, int moved, uint64_t a)
{
	uint64_t name = read_event_path(e, a);

	put(" %s;n=%" PRIu64, moved ? "move" : "alloc", e->next);
	if (moved)
		put(";old=%" PRIu64, block_of_age(e, number(&e->digits)));
	put_when(e);
	put(";path=%08" PRIx64 ";size=%" PRIu64, name, number(&e->digits));
	read_address(e);
	e->next++;
}

/* An item of kind 3. */
static void read_other(struct events *e, uint64_t a)
{
	uint64_t n = a == 2 ? 0 : number(&e->digits);

	if (a == 0)
		e->time += n;
	else if (a == 1)
		e->thread = n;
	else if (a == 2) {
		put(" unknown");
		put_when(e);
		read_address(e);
	} else if (a == 3) {
		put(" lost");
		put_when(e);
		put(";count=%" PRIu64, n);
	} else if (n > e->digits.end - e->digits.pos)
		reject("truncated", -1);
	else
		e->digits.pos += (size_t)n;
}

/* Reads a ~v# line, and puts its words. (BT-VLINE-1, BT-VLINE-4) */
void put_events(struct bytes text)
{
	struct events e;
	unsigned sequence;

	memset(&e, 0, sizeof e);
	e.digits = open_line(text, "~v#", 13, 6);
	if (fault.reason)
		return;
	e.flags = (unsigned)fixed(&e.digits, 1);
	sequence = (unsigned)fixed(&e.digits, 3);
	e.unit = read_unit(&e.digits, e.flags);
	e.time = number(&e.digits);
	e.thread = number(&e.digits);
	e.next = number(&e.digits);
	put("flags=%u seq=%u", e.flags, sequence);
	if (e.flags & 1)
		put(" unit=%u", e.unit);
	put(" t=%" PRIu64 " thread=%" PRIu64 " next=%" PRIu64, e.time, e.thread, e.next);
	while (e.digits.pos < e.digits.end && !fault.reason) {
		uint64_t n = number(&e.digits), a = n >> 2;

		if (fault.reason)
			return;
		if ((n & 3) == 1) {
			put(" free;n=%" PRIu64, block_of_age(&e, a));
			put_when(&e);
		} else if ((n & 3) == 3)
			read_other(&e, a);
		else
			read_begun(&e, (n & 3) == 2, a);
	}
}

/* -- Writing */

static uint64_t value_of(char **words, const char *key, int base)
{
	const char *value = option(words, key);

	return value ? strtoull(value, NULL, base) : 0;
}

/* Items for the time and the thread of an event, if they changed. */
static void write_when(struct events *e, char **event)
{
	uint64_t time = value_of(event, "t", 10), thread = value_of(event, "thread", 10);

	if (time != e->time) {
		put_number(&e->line, 4 * 0 + 3);
		put_number(&e->line, time - e->time);
	}
	if (thread != e->thread) {
		put_number(&e->line, 4 * 1 + 3);
		put_number(&e->line, thread);
	}
	e->time = time;
	e->thread = thread;
}

/* The age of the block that ends. Refuses a block that did not begin. (BT-PREJ-2) */
static uint64_t age_of(const struct events *e, uint64_t block)
{
	if (block >= e->next)
		reject("age", -1);
	return e->next - block;
}

static void write_address(struct events *e, char **event)
{
	uint64_t address = value_of(event, "addr", 16);

	if (!(e->flags & 1))
		return;
	if (address & ((1U << e->unit) - 1))
		reject("unit", -1);
	put_number(&e->line, fold((address >> e->unit) - e->address));
	e->address = address >> e->unit;
}

/* An item of kind 0 or 2. */
static void write_begun(struct events *e, char **event, unsigned kind)
{
	uint64_t name = value_of(event, "path", 16);
	size_t a = 0;

	while (a < e->count && e->names[a] != name)
		a++;
	if (a < e->count)
		put_number(&e->line, 4 * ((uint64_t)a + 1) + kind);
	else {
		put_number(&e->line, kind);
		put_fixed(&e->line, add_name(e, name), 6);
	}
	if (kind == 2)
		put_number(&e->line, age_of(e, value_of(event, "old", 10)));
	put_number(&e->line, value_of(event, "size", 10));
	write_address(e, event);
	e->next++;
}

static void write_event(struct events *e, char **event)
{
	const char *verb = event[0];

	write_when(e, event);
	if (!strcmp(verb, "alloc"))
		write_begun(e, event, 0);
	else if (!strcmp(verb, "move"))
		write_begun(e, event, 2);
	else if (!strcmp(verb, "free"))
		put_number(&e->line, 4 * age_of(e, value_of(event, "n", 10)) + 1);
	else if (!strcmp(verb, "unknown")) {
		put_number(&e->line, 4 * 2 + 3);
		write_address(e, event);
	} else {
		put_number(&e->line, 4 * 3 + 3);
		put_number(&e->line, value_of(event, "count", 10));
	}
}

/* Writes events as a ~v# line. */
void write_events(char **words)
{
	struct events e;

	memset(&e, 0, sizeof e);
	e.flags = (unsigned)value_of(words, "flags", 10);
	e.unit = (unsigned)value_of(words, "unit", 10);
	e.time = value_of(words, "t", 10);
	e.thread = value_of(words, "thread", 10);
	e.next = value_of(words, "next", 10);
	if (e.unit > 12) {
		reject("unit", -1);
		return;
	}
	put_fixed(&e.line, e.flags, 1);
	put_fixed(&e.line, value_of(words, "seq", 10), 3);
	if (e.flags & 1)
		put_fixed(&e.line, e.unit, 1);
	put_number(&e.line, e.time);
	put_number(&e.line, e.thread);
	put_number(&e.line, e.next);
	for (; *words && !fault.reason; words++) {
		char *event[9] = { *words }, *semicolon = strchr(*words, ';');

		if (!semicolon)		/* flags= and others */
			continue;
		for (int i = 1; semicolon && i < 8; i++) {
			*semicolon++ = 0;
			event[i] = semicolon;
			semicolon = strchr(semicolon, ';');
		}
		write_event(&e, event);
	}
	put_fixed(&e.line, crc32(e.line.at, e.line.len), 6);
	put("~v#%.*s", (int)e.line.len, e.line.at);
}
