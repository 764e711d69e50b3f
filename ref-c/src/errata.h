/* Declarations shared by the demonstrations of errata. */
#ifndef ERRATA_H
#define ERRATA_H

#include "btref.h"

/* Print the three parts of a report, wrapped. */
#if defined(__GNUC__)
#define PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#else
#define PRINTF_LIKE
#endif
void did(const char *fmt, ...) PRINTF_LIKE;
void expected(const char *fmt, ...) PRINTF_LIKE;
void saw(const char *fmt, ...) PRINTF_LIKE;
/* Sets the reason why this erratum cannot be reproduced here. Returns 0. */
int not_here(const char *fmt, ...) PRINTF_LIKE;

/* Format a decoded stack or its rejection, and the outcome of a child. */
const char *parsed_text(const struct parsed *p, char *buf, size_t cap);
const char *outcome_text(const struct outcome *o, char *buf, size_t cap);

/* A blob under construction. */
struct maker {
	uint8_t bytes[MAX_BLOB];
	size_t bits;
};
void make_bits(struct maker *m, uint64_t v, int width);		/* without a spill bit */
void make_field(struct maker *m, uint64_t v, int width);	/* with a spill bit of 0 */
void make_literal(struct maker *m, uint64_t v, int width);
/* Pads, adds the length, and returns the number of bytes. */
size_t make_end(struct maker *m);

/* Calls lib_parse() in a child. Returns false if it crashed or hung. */
bool parse_in_child(struct parsed *p, struct outcome *o, const uint8_t *blob, size_t len);

#endif
