/*
 * A reader of compressed backtraces, one bit at a time, written from the
 * format's description. It shares no code with libwebsockets or the Go codec,
 * and never shifts by a variable number: it doubles and adds.
 */
#ifndef BTREF_NAIVE_H
#define BTREF_NAIVE_H

#include <stddef.h>
#include <stdint.h>

enum naive_kind {
	NAIVE_DEPTH, NAIVE_ITEM, NAIVE_BACK, NAIVE_SIGN, NAIVE_COUNT,
	NAIVE_LITERAL, NAIVE_DELTA, NAIVE_SIZE_COUNT, NAIVE_SIZE
};

struct naive_field {
	enum naive_kind kind;
	int frame;	/* -1: depth and size */
	int width;	/* bits, the spill bit not counted */
	int spill;	/* the bit after the value: 0 or 1 */
	uint64_t value;
};

enum { NAIVE_FIELDS = 1 + 32 * 6 + 2 };

struct naive {
	int depth;
	uint64_t pcs[32];
	uint64_t size;
	const char *reason;	/* why it was rejected; NULL on success */
	size_t bit;		/* position where reading ended, in bits */
	int user_bits;		/* bits after the size, padding included */
	int fields;
	struct naive_field field[NAIVE_FIELDS];
};

/* Reads a blob of exactly len bytes, for words of 32 or 64 bits.
 * Returns 0, or -1 with out->reason set. */
int naive_read(struct naive *out, const uint8_t *blob, size_t len, int word);

/* As naive_read, but by the README of lws: fields have no spill bit. */
int naive_read_nominal(struct naive *out, const uint8_t *blob, size_t len, int word);

/* Decodes standard base64, padding optional. Returns the length, or -1. */
int naive_base64(uint8_t *out, size_t cap, const char *text);

#endif
