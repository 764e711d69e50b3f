/*
 * lwsbt/paths.h: writes ~p# lines, which have call paths with their live blocks and bytes. See
 * lwsbt.h, and SPEC.md, Part III.
 */
#ifndef LWSBT_INCLUDE_PATHS_H
#define LWSBT_INCLUDE_PATHS_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Executable addresses, start <= address < end; start and end are multiples of
 * 1 << shift. Frames in the lines are offsets into the ranges, laid end to end. The boot
 * line or the ELF file's note must have the same ranges. [BT-CODE-1]
 */
struct lwsbt_range {
	lwsbt_word start, end;
};

struct lwsbt_code {
	const struct lwsbt_range *range;
	uint8_t count;		/* of ranges */
	uint8_t shift;		/* 0 to 4; LWSBT_CODE_SHIFT for the machine */
};

/* Return addresses are multiples of 1 << LWSBT_CODE_SHIFT. */
#if defined(__thumb__) || defined(__riscv) || defined(__s390x__)
#define LWSBT_CODE_SHIFT 1
#elif defined(__arm__) || defined(__aarch64__) || defined(__mips__) || defined(__powerpc__)
#define LWSBT_CODE_SHIFT 2
#else
#define LWSBT_CODE_SHIFT 0
#endif

#define LWSBT_NO_OFFSET 0xffffffffu

/* lwsbt_offset returns the offset of an address in the code, below 2^27, or
 * LWSBT_NO_OFFSET. */
uint32_t lwsbt_offset(const struct lwsbt_code *c, lwsbt_word pc);

/* lwsbt_address returns the address of an offset that lwsbt_offset returned. */
lwsbt_word lwsbt_address(const struct lwsbt_code *c, uint32_t offset);

/* LWSBT_PATH_LINE is the length of the longest line in characters, without its end: 96 or more; at
 * most 120 for a serial line, 240 elsewhere. [BT-PLINE-3] LWSBT_PATH_DEPTH is the largest number of
 * frames of a path. All files of a program must have the same values. */
#ifndef LWSBT_PATH_LINE
#define LWSBT_PATH_LINE 120
#endif
#ifndef LWSBT_PATH_DEPTH
#define LWSBT_PATH_DEPTH 31
#endif

/* The beginning of a path, before its first frame in pc. */
enum lwsbt_base {
	LWSBT_PATH_WHOLE = 0,	/* nothing: the first frame is the outermost of the stack */
	LWSBT_PATH_CUT = 1,	/* frames that were not captured */
	LWSBT_PATH_NAMED = 2	/* the frames of the path, or of the outer part of a path, whose name is outer */
};

struct lwsbt_path {
	const lwsbt_word *pc;	/* addresses, the outermost first, without mode bits */
	unsigned depth;		/* of pc; at most LWSBT_PATH_DEPTH */
	unsigned base;		/* enum lwsbt_base */
	uint32_t outer;		/* name, with LWSBT_PATH_NAMED; else 0 */
};

/* lwsbt_name returns the name of a path. [BT-NAME-1] */
uint32_t lwsbt_name(const struct lwsbt_code *c, const struct lwsbt_path *p);

/* Flags of lines: the values that entries have in addition to live blocks and bytes. [BT-ENTRY-4] */
enum {
	LWSBT_PATH_EVER = 2,	/* allocations and bytes since the boot */
	LWSBT_PATH_PEAK = 4	/* the most bytes that were live */
};

/* A flag of dumps by call path: names for paths that were written before; frames are repeated every 16 dumps. */
enum { LWSBT_NAMES = 2 };

/*
 * A writer of ~p# lines, for a whole boot. Initialize it with zeros, and set the members of the
 * first group. Only one thread may use it at a time.
 */
struct lwsbt_paths {
	const struct lwsbt_out *out;
	const struct lwsbt_code *code;
	uint8_t flags;		/* LWSBT_PATH_EVER and LWSBT_PATH_PEAK; flush before a change */
	uint8_t max;		/* longest line, 96 to LWSBT_PATH_LINE; 0 means LWSBT_PATH_LINE */

	uint32_t dump;		/* number of the dump; flush before a change */
	uint32_t lines;		/* ~p# lines since the boot */

	unsigned len;		/* this and the following are internal: length of text; 0 between lines */
	unsigned depth;		/* of the previous entry */
	unsigned base;
	uint32_t outer;
	uint32_t ref;		/* offset from which the next step goes */
	lwsbt_word pc[LWSBT_PATH_DEPTH];
	char text[LWSBT_PATH_LINE + 1];
};

/*
 * lwsbt_paths_add writes an entry: the path, and n values, which are live blocks, bytes, and those
 * of w->flags, in this order. With an n of 0, it only defines the name of the path. It passes a
 * line to out when the line is full. A path that is too long for a line takes several lines.
 * [BT-ENTRY-1]
 */
void lwsbt_paths_add(struct lwsbt_paths *w, const struct lwsbt_path *p, const lwsbt_word *v, unsigned n);

/* lwsbt_paths_flush passes the current line to out, if it has entries. */
void lwsbt_paths_flush(struct lwsbt_paths *w);

/*
 * Packets for a transport such as UDP. lwsbt_packet_put is a put function that gathers whole
 * lines, of any kind, up to cap bytes, and passes them to out together. It splits a line that is
 * longer than cap. lwsbt_packet_flush passes the remaining lines.
 */
struct lwsbt_packet {
	const struct lwsbt_out *out;
	char *text;
	size_t cap;
	size_t len, end;	/* internal: length of text, and of the whole lines in it */
};
void lwsbt_packet_put(void *arg, const char *text, size_t len);
void lwsbt_packet_flush(struct lwsbt_packet *p);

#ifdef __cplusplus
}
#endif

#endif
