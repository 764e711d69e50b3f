/* What the demonstrations of errata share. */
#ifndef ERRATA_H
#define ERRATA_H

#include "btref.h"

/* The three parts of a report, wrapped for reading. */
#if defined(__GNUC__)
#define PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#else
#define PRINTF_LIKE
#endif
void did(const char *fmt, ...) PRINTF_LIKE;
void expected(const char *fmt, ...) PRINTF_LIKE;
void saw(const char *fmt, ...) PRINTF_LIKE;
/* Why this erratum can't be seen here; returns 0 for the caller to return. */
int not_here(const char *fmt, ...) PRINTF_LIKE;

/* A stack as `ok ...` or the rejection; what became of a child, in words. */
const char *parsed_text(const struct parsed *p, char *buf, size_t cap);
const char *outcome_text(const struct outcome *o, char *buf, size_t cap);

/* A blob of fields put together by hand. */
struct maker {
	uint8_t bytes[MAX_BLOB];
	size_t bits;
};
void make_bits(struct maker *m, uint64_t v, int width);		/* without a spill bit */
void make_field(struct maker *m, uint64_t v, int width);	/* with one, 0 */
void make_literal(struct maker *m, uint64_t v, int width);
/* Pads and adds the length; returns the blob's bytes. */
size_t make_end(struct maker *m);

/* lib_parse() in a child: false when it crashed or hung. */
bool parse_in_child(struct parsed *p, struct outcome *o, const uint8_t *blob, size_t len);

#endif
