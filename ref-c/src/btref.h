/*
 * btref: shows what the real libwebsockets does with compressed backtraces.
 *
 * Declarations shared by the program's files. naive.h is separate, because the
 * naive reader must compile without libwebsockets.
 */
#ifndef BTREF_H
#define BTREF_H

#include <libwebsockets.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "naive.h"

#if LWS_LIBRARY_VERSION_MAJOR < 4 || \
    (LWS_LIBRARY_VERSION_MAJOR == 4 && LWS_LIBRARY_VERSION_MINOR < 4)
#error "btref needs libwebsockets 4.4.0 or later"
#endif
#if !defined(LWS_WITH_COMPRESSED_BACKTRACES)
#error "this libwebsockets was built without LWS_WITH_COMPRESSED_BACKTRACES"
#endif

/* Exit codes, the same in all commands of this project. */
enum { EXIT_OK = 0, EXIT_SHORT = 1, EXIT_USAGE = 2, EXIT_SELF = 3 };

enum {
	WORD = (int)sizeof(uintptr_t) * 8,	/* bits */
	MAX_BLOB = 512	/* bytes; the longest that the library writes has 312 */
};

/* Description of the build; the Makefile sets both. */
#ifndef BTREF_PLATFORM
#define BTREF_PLATFORM "unnamed"
#endif
#ifndef BTREF_OPTIONS
#define BTREF_OPTIONS "unknown"
#endif

#if defined(__clang__)
#define BTREF_COMPILER __VERSION__
#define NOINLINE __attribute__((noinline))
#define ONE_CALL _Pragma("clang loop unroll(disable)")
#else
#define BTREF_COMPILER "gcc " __VERSION__
#define NOINLINE __attribute__((noipa))	/* not even cloned */
#define ONE_CALL _Pragma("GCC unroll 1")	/* so that a call in a loop has one address */
#endif

/* ---- stacks.c: the input, one stack per line ---- */

struct stack {
	char id[160];
	uint64_t size;		/* bytes allocated */
	uint64_t pcs[32];	/* innermost first */
	int depth;		/* 0..32 */
};

struct stacks {
	FILE *in;
	unsigned long line;	/* number of the last line read, from 1 */
	char *buf;
	size_t cap;
};

/* 1: *out is the next stack; 0: end of input; -1: bad line, already reported. */
int stacks_next(struct stacks *s, struct stack *out);
void stacks_free(struct stacks *s);

/*
 * Reads the number [p, end), digits of the given base only, at most 64 bits.
 * Returns 0, or -1 if there are no digits, other characters, or too many bits.
 */
int read_number(const char *p, const char *end, int base, uint64_t *out);
/* Reads "-" or up to 32 addresses in hex, separated by sep. Returns 0, or -1 with *why. */
int read_pcs(const char *p, const char *end, char sep, uint64_t *pcs, int *depth,
	     const char **why);

/* ---- lib.c: the library's encoder and decoder, with memory around them ---- */

enum shift { SHIFT_EXACT, SHIFT_WRAP, SHIFT_ZERO };

struct machine {
	enum shift shift;
	bool spill_any;	/* the spill bits of this build are unpredictable */
	char name[12];	/* wrap64 ... */
	bool best;	/* its search is best: frame 0 is a base, too */
};

/* Finds the machine class by probing the library's encoder. */
void machine_probe(struct machine *m);
/* Returns the spill bit that machine m writes after a field with this wire value. */
int machine_spill(const struct machine *m, uint64_t wire);

/*
 * Encodes s as lws_alloc_metadata_gen() would, but for a given stack. buf has
 * space for MAX_BLOB bytes. Returns the blob's length, 0 on failure.
 */
size_t lib_encode(uint8_t *buf, const struct stack *s);

/* The result of lws_alloc_metadata_parse(). */
struct parsed {
	int rc;		/* as returned: 0 is success */
	int ref_err;	/* it logged "ref err" */
	int depth;	/* si.sp: frames, up to 255 if it ran wild */
	uint64_t size;
	uint64_t pcs[32];
};

/*
 * Calls the library's decoder in this process. 64 KiB of zeros precede the blob
 * and 4 KiB follow it. The result struct ends at an unmapped page, so that
 * writing past it is a SIGSEGV.
 */
void lib_parse(struct parsed *out, const uint8_t *blob, size_t len);
extern int lib_logged_ref_err;	/* main.c's log function sets it */

/* `ok size=.. pcs=..` or `reject REASON` from what the library returned. */
void parsed_print(FILE *f, const struct parsed *p);
void pcs_print(FILE *f, const uint64_t *pcs, int depth);
void hex_print(FILE *f, const uint8_t *p, size_t n);
/* Writes `~m#` and the library's base64 to text, which has space for MAX_LINE bytes. */
enum { MAX_LINE = 3 + (MAX_BLOB + 2) / 3 * 4 + 4 };
int lib_line(char *text, const uint8_t *blob, size_t len);

/* ---- child.c: calls that may crash ---- */

struct outcome {
	enum { CHILD_DONE, CHILD_SIGNAL, CHILD_HANG } how;
	int code;	/* exit code, or the signal's number */
	size_t len;	/* bytes that it wrote to its descriptor */
	uint8_t data[8192];
};

/* Runs fn(arg, fd) in a forked child and collects what it writes to fd. */
void child_run(struct outcome *o, int (*fn)(void *arg, int fd), void *arg,
	       unsigned int seconds);
/* Returns the name of a signal, such as SIGSEGV. */
const char *signal_name(int sig, char buf[16]);
/* Writes all of p to fd, or exits: there is no other way to report an error. */
void write_all(int fd, const void *p, size_t n);

/* ---- modes ---- */

int mode_vectors(int argc, char **argv);
int mode_capture(int argc, char **argv);
int mode_serve(int argc, char **argv);
int mode_bench(int argc, char **argv);
int mode_errata(int argc, char **argv);

/* vectors.c: write the head of a .btv file, and one record, to stdout. */
void btv_head(const char *source, const struct machine *m);
struct btv_record {
	const char *id;
	const struct stack *in;	/* what was encoded */
	const uint8_t *blob;
	size_t len;
};
/* Returns 0, or EXIT_SELF after a message if the blob contradicts the harness. */
int btv_record(const struct btv_record *r, const struct machine *m);

/* errata: show prints what it saw and returns 1 if it reproduced the erratum, else 0 */
struct erratum {
	int number;
	const char *title;
	int (*show)(void);
};
extern const struct erratum errata_write[], errata_read[], errata_memory[],
			    errata_capture[], errata_tool[];	/* each ends with number 0 */
extern const char *errata_tool_path;	/* --tool PATH, or NULL */

#endif
