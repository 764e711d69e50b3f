/* Made by `go run ./device/tools/amalgamate` from the files of device/. Do not edit. */
/*
 * lwsbt.h: compressed backtraces for firmware
 *
 * The library captures the call stack of each heap allocation, compresses it to
 * some 20 to 60 bytes, stores it in front of the allocated memory, and writes all
 * live stacks as lines of text on request, in the format of libwebsockets (lws)
 * that SPEC.md specifies. Or it counts allocations by call path in a table, and
 * writes the table. IDs in brackets, [BT-...], are clauses of SPEC.md.
 *
 * The library is C99. It allocates no memory, does not recurse, and has no static
 * data, but for the wrapped heap. Link only the parts that you need: each is a file of src/. Or compile
 * amalgamation/lwsbt.c, which has them all.
 *
 * This header includes all parts. Each can be included alone:
 *
 *   part            file of src/    calls
 *
 *   lwsbt/codec.h
 *   encoder         encode.c        lwsbt_encode, lwsbt_put...; needs choose.c
 *   lines, written  line.c          lwsbt_line..., lwsbt_base64...
 *   decoder         decode.c        lwsbt_decode..., lwsbt_user
 *   lines, read     parse.c         lwsbt_parse...
 *   headers         head.c          lwsbt_head...
 *   events          event.c         lwsbt_encode_event
 *
 *   lwsbt/capture.h
 *   capture         capture_*.c     lwsbt_capture_...
 *
 *   lwsbt/paths.h
 *   call paths      paths.c         lwsbt_paths_add, lwsbt_name, lwsbt_offset...
 *                   packet.c        lwsbt_packet_put
 *
 *   lwsbt/device.h
 *   a device        device.c        lwsbt_head_device...
 *
 *   lwsbt/heap.h
 *   heap            heap.c trim.c   lwsbt_meta_gen, _adjust, _trim
 *                   alloc.c         lwsbt_heap_malloc...
 *   dumps           dump.c          lwsbt_walk..., lwsbt_dump, lwsbt_meta_parse
 *                   sums.c          lwsbt_dump_paths; needs paths_head.c
 *
 *   lwsbt/profile.h
 *   profile         profile.c       lwsbt_profile_malloc...
 *                   profile_dump.c  lwsbt_profile_dump..., lwsbt_low; needs paths_head.c
 *
 *   lwsbt/wrap.h
 *   malloc and free adapters/       lwsbt_wrapped, lwsbt_wrap_begin, lwsbt_wrap_dump
 *   of a program    wrap.c begin.c
 *
 * Unless its comment says otherwise, a function uses only its arguments: it may be
 * called from several threads at a time, and from interrupts.
 */
#ifndef LWSBT_H
#define LWSBT_H


/* include/lwsbt/codec.h --------------------------------------------------------------------- */

/*
 * lwsbt/codec.h: writes and reads blobs and lines. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_CODEC_H
#define LWSBT_INCLUDE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LWSBT_VERSION "0.1"

/* ------------------------------------------------------------------ limits */

/*
 * lwsbt_word holds an address or a size: uintptr_t, unless the build sets
 * LWSBT_WORD_BITS to 32 or 64 to encode and decode for another machine. The
 * heap and the capture functions need words of the machine's own size: lwsbt.c
 * leaves them out if LWSBT_WORD_BITS is another one, or if addresses have 16
 * bits. Library and program must be compiled with the same value.
 */
#ifndef LWSBT_WORD_BITS
#if UINTPTR_MAX > 0xffffffff
#define LWSBT_WORD_BITS 64
#else
#define LWSBT_WORD_BITS 32
#endif
#elif LWSBT_WORD_BITS != 32 && LWSBT_WORD_BITS != 64
#error "LWSBT_WORD_BITS is neither 32 nor 64"
#endif
#if UINTPTR_MAX == (LWSBT_WORD_BITS == 64 ? UINT64_MAX : UINT32_MAX)
typedef uintptr_t lwsbt_word;
#elif LWSBT_WORD_BITS == 64
typedef uint64_t lwsbt_word;
#else
typedef uint32_t lwsbt_word;
#endif

/* The most frames that a blob can hold. [BT-DEPTH-1] */
#define LWSBT_DEPTH_MAX 32

/*
 * The longest blob, in bytes, by either search and without user fields
 * [BT-LIM-2], and what a user field adds to it at most.
 */
#if LWSBT_WORD_BITS == 64
#define LWSBT_BLOB_MAX 312
#else
#define LWSBT_BLOB_MAX 180
#endif
#define LWSBT_BLOB_MIN 4	/* [BT-LIM-1] */
#define LWSBT_LENGTH_MAX 65535	/* the largest length of a blob, in bytes */
#define LWSBT_USER_MAX 10	/* bytes, rounded up */

/* Characters of the ~m# line of a blob of n bytes, without a NUL. [BT-TEXT-1] */
#define LWSBT_LINE_LEN(n) (3 + ((n) + 2) / 3 * 4)

/* A call stack and the size of the allocation that it made. */
struct lwsbt_stack {
	lwsbt_word size;		/* requested bytes */
	uint32_t end;			/* bits of a decoded blob: see lwsbt_decode */
	unsigned depth;			/* frames in pc, 0 to 32 */
	lwsbt_word pc[LWSBT_DEPTH_MAX];	/* return addresses, the innermost first */
};

/* ----------------------------------------------------------------- results */

/* Why input is rejected. [BT-REJ-1] */
enum lwsbt_result {
	LWSBT_OK = 0,
	LWSBT_LEAD_IN,		/* a line without its lead-in */
	LWSBT_BASE64,		/* not base64, in the reading asked for */
	LWSBT_DECODED_LINE,	/* a ~b# line of another form */
	LWSBT_SHORT,		/* fewer than 2 bytes */
	LWSBT_LENGTH,		/* the length contradicts the bytes available */
	LWSBT_EMPTY,		/* length 0: the writer had no memory for metadata */
	LWSBT_TRUNCATED,	/* a field reaches into the length */
	LWSBT_DELTA_FIRST,	/* frame 0 is a delta */
	LWSBT_BACK,		/* the base of a delta lies before frame 0 */
	LWSBT_COUNT,		/* a value of more bits than the word has */
	LWSBT_EVENT,		/* a ~e# record that lacks a user field */
	LWSBT_SPACE		/* the caller's buffer is too small */
};

/* lwsbt_reason returns SPEC.md's name of a result, such as "delta-first"; "ok"
 * of LWSBT_OK. */
const char *lwsbt_reason(enum lwsbt_result result);

/* ----------------------------------------------------------------- encoder */

/* How to encode; or them together. */
enum {
	LWSBT_SEARCH_BEST = 0,	/* the shortest blob [BT-SRCH-2] */
	LWSBT_SEARCH_LWS = 1,	/* bit for bit what lws chooses [BT-SRCH-1] */
	LWSBT_WRAP64 = 2	/* write values of over 31 bits as lws does on x86-64,
				 * lossy: for readers that are stock lws. Of 32-bit
				 * words, nothing is lost and this is ignored
				 * [BT-MACH-2] */
};

/* Tags of the user fields that the recordings of this project use. [BT-UF-3] */
enum lwsbt_tag {
	LWSBT_TAG_END = 0,
	LWSBT_TAG_ADDRESS = 1,	/* of the block, as the program sees it */
	LWSBT_TAG_TIME = 2,	/* microseconds since boot */
	LWSBT_TAG_THREAD = 3,
	LWSBT_TAG_SEQUENCE = 4,	/* number of the allocation since boot */
	LWSBT_TAG_EVENT = 5,	/* enum lwsbt_event_kind */
	LWSBT_TAG_OLD = 6	/* old address of a moved block */
};

/*
 * lwsbt_encode writes the blob of s to buf, which has cap bytes, and returns its
 * length in bytes. If the length is over cap, the blob did not fit, and the contents
 * of buf are invalid. Nothing after buf[cap - 1] is ever written, so a call with
 * cap 0 (and buf NULL) returns the length. No blob without user fields is longer
 * than LWSBT_BLOB_MAX.
 *
 * s->depth must be 0 to 32. [BT-BLOB-1, BT-SRCH-1, BT-SRCH-2, BT-MACH-4]
 */
size_t lwsbt_encode(void *buf, size_t cap, const struct lwsbt_stack *s, unsigned how);

/*
 * A writer puts bit fields into a buffer: for blobs with user fields, and for
 * stacks within a program's own data. Initialize it with lwsbt_writer_init; the
 * members are internal.
 */
struct lwsbt_writer {
	uint8_t *buf;
	size_t cap;
	size_t len;	/* complete bytes, counted on beyond cap */
	uint32_t acc;	/* the n bits not yet in complete bytes, lowest */
	unsigned n;	/* 0 to 7 */
};

void lwsbt_writer_init(struct lwsbt_writer *w, void *buf, size_t cap);

/* lwsbt_put writes the lowest width bits (0 to 64) of v, and nothing else: no
 * spill bit. */
void lwsbt_put(struct lwsbt_writer *w, uint64_t v, unsigned width);

/* lwsbt_put_stack writes depth and frames, without size and length. [BT-BARE-1] */
void lwsbt_put_stack(struct lwsbt_writer *w, const struct lwsbt_stack *s, unsigned how);

/* lwsbt_put_value writes a count and a value, such as the size after a stack.
 * [BT-SIZE-1] */
void lwsbt_put_value(struct lwsbt_writer *w, lwsbt_word v, unsigned how);

/* lwsbt_put_user writes a user field: tag (1 to 15), count and value. User fields
 * follow the size. A tag of 0 ends them; padding reads as this tag. */
void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v);

/* lwsbt_bits returns the number of bits written so far. */
size_t lwsbt_bits(const struct lwsbt_writer *w);

/* lwsbt_finish pads to a byte, writes the length, and returns it, as lwsbt_encode
 * does. It returns 0 if the blob is longer than LWSBT_LENGTH_MAX. [BT-BLOB-1] */
size_t lwsbt_finish(struct lwsbt_writer *w);

/* ----------------------------------------------------------------- decoder */

/*
 * lwsbt_decode reads the len bytes of a blob, its length included, into s.
 * s->end is then the number of bits read: user fields begin there. On any other
 * result than LWSBT_OK, s->depth and s->size are 0, and s->end is the bit of the
 * field at fault.
 *
 * word is that of the encoder's machine, 32 or 64: at 32, sums are modulo 2^32
 * and a count over 32 is rejected. If lwsbt_word has 32 bits, word is always
 * treated as 32. [BT-BLOB-2, BT-DEPTH-2, BT-DELTA-6, BT-COUNT-4]
 */
enum lwsbt_result lwsbt_decode(struct lwsbt_stack *s, const void *blob, size_t len,
	unsigned word);

/* lwsbt_decode_at_end reads the blob that ends before past, of which no more than
 * max bytes may be read. *blob is set to its first byte and *len to its length in
 * bytes; either may be NULL. [BT-BLOB-3] */
enum lwsbt_result lwsbt_decode_at_end(struct lwsbt_stack *s, const void *past, size_t max,
	unsigned word, const uint8_t **blob, size_t *len);

/* lwsbt_decode_bare reads a stack without size from the len bytes at p. s->end is
 * the number of bits it takes. [BT-BARE-1, BT-BARE-2] */
enum lwsbt_result lwsbt_decode_bare(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word);

/* lwsbt_salvage reads the whole frames of a truncated blob. word is as for
 * lwsbt_decode. It sets *announced to the depth of the blob before it was truncated,
 * and *sized to whether s->size is known. It returns LWSBT_OK if there was something
 * to salvage. [BT-SALV-1, BT-SALV-2] */
enum lwsbt_result lwsbt_salvage(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word, unsigned *announced, int *sized);

/* lwsbt_user reads the user field at bit *pos of a blob, and moves *pos past it. Set
 * *pos to s->end for the first field. *tag is LWSBT_TAG_END after the last. */
enum lwsbt_result lwsbt_user(const void *blob, size_t len, size_t *pos, unsigned *tag,
	uint64_t *value);

/* ------------------------------------------------------------------- lines */

/* The output of lines. put is called with pieces of text of 1 to about 24 characters,
 * not NUL-terminated. A line ends with "\n". */
typedef void (*lwsbt_put_fn)(void *arg, const char *text, size_t len);

struct lwsbt_out {
	lwsbt_put_fn put;
	void *arg;
};

/* A base64 writer, for lines made of several pieces. The members are the
 * library's. [BT-B64-1] */
struct lwsbt_base64 {
	const struct lwsbt_out *out;
	uint8_t bytes[3];
	uint8_t n;	/* how many are pending, 0 to 2 */
};

void lwsbt_base64_begin(struct lwsbt_base64 *b, const struct lwsbt_out *out);
void lwsbt_base64_put(struct lwsbt_base64 *b, const void *p, size_t len);
void lwsbt_base64_end(struct lwsbt_base64 *b);	/* pads */

/* lwsbt_line writes the ~m# line of a blob. [BT-TEXT-1] */
void lwsbt_line(const struct lwsbt_out *out, const void *blob, size_t len);

/* lwsbt_line_decoded writes the ~b# line of a stack. [BT-TEXT-2] */
void lwsbt_line_decoded(const struct lwsbt_out *out, const struct lwsbt_stack *s);

/* lwsbt_line_text is the put function that fills a struct lwsbt_text: text[0] to
 * text[len - 1], cut at cap; len counts on. */
struct lwsbt_text {
	char *text;
	size_t cap, len;
};
void lwsbt_line_text(void *arg, const char *text, size_t len);

/*
 * The ~h# lines of a recording. A member that is unknown is written as
 * LWSBT_NONE, or NULL, and left out of the line.
 */
#define LWSBT_NONE UINT64_MAX

/* "~h#boot prog=NAME w=32": addresses, times and numbers begin anew. epoch is the
 * Unix time in microseconds at t=0. */
void lwsbt_head_boot(const struct lwsbt_out *out, const char *prog, uint64_t pid,
	uint64_t epoch);

struct lwsbt_head {
	uint32_t number;	/* of the dump, counting up within a boot */
	uint64_t time;		/* microseconds since boot, or LWSBT_NONE */
	uint64_t records;	/* ~m# records to expect, or written; or LWSBT_NONE */
	uint64_t bytes;		/* sum of their sizes, or LWSBT_NONE */
	int user;		/* the ~m# records have user fields */
	const char *why;	/* exit, signal, interval, peak, request, image; or NULL */
};
void lwsbt_head_begin(const struct lwsbt_out *out, const struct lwsbt_head *h);
void lwsbt_head_end(const struct lwsbt_out *out, const struct lwsbt_head *h);
void lwsbt_head_lost(const struct lwsbt_out *out, uint64_t events);

/* lwsbt_head_map writes "~h#map t=USEC": the module lines that follow are the
 * whole map as of then. */
void lwsbt_head_map(const struct lwsbt_out *out, uint64_t time);

/* ------------------------------------------------------------------ events */

enum lwsbt_event_kind {
	LWSBT_ALLOCATED = 0,
	LWSBT_FREED = 1,
	LWSBT_MOVED = 2		/* realloc; also where the address stayed */
};

struct lwsbt_event {
	enum lwsbt_event_kind kind;
	uint64_t address;	/* of the block, as the program sees it */
	uint64_t old;		/* of a moved block */
	uint64_t time;		/* or LWSBT_NONE, as are the next two */
	uint64_t thread;
	uint64_t sequence;
};

/* lwsbt_encode_event writes the blob of s with the user fields of e, as
 * lwsbt_encode does; the longest has LWSBT_EVENT_MAX bytes. Of 32 frames the 31
 * innermost are taken. [BT-EVT-2] */
#define LWSBT_EVENT_MAX (LWSBT_BLOB_MAX + 6 * LWSBT_USER_MAX)
size_t lwsbt_encode_event(void *buf, size_t cap, const struct lwsbt_stack *s,
	const struct lwsbt_event *e, unsigned how);

/* lwsbt_line_event writes the ~e# line of a blob that lwsbt_encode_event made. */
void lwsbt_line_event(const struct lwsbt_out *out, const void *blob, size_t len);

/* ------------------------------------------------------------- lines, read */

/* lwsbt_parse_line reads the len characters of a ~m# line, without a line end,
 * into buf: *n bytes. Reading strictly, the line is what lwsbt_line writes; if
 * lenient, what lws reads. [BT-B64-2, BT-B64-3] */
enum lwsbt_result lwsbt_parse_line(void *buf, size_t cap, size_t *n, const char *line,
	size_t len, int lenient);

/* lwsbt_parse_decoded reads a ~b# line; spaces and a line end may follow. On any
 * other result than LWSBT_OK, s is empty; LWSBT_COUNT says that a number does not
 * fit a word of 32 bits. [BT-TEXT-2] */
enum lwsbt_result lwsbt_parse_decoded(struct lwsbt_stack *s, const char *line, size_t len);

#ifdef __cplusplus
}
#endif

#endif

/* include/lwsbt/capture.h ------------------------------------------------------------------- */

/*
 * lwsbt/capture.h: call stacks. See lwsbt.h. docs/notes/capture.md describes which function to use.
 */
#ifndef LWSBT_INCLUDE_CAPTURE_H
#define LWSBT_INCLUDE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table of the program's functions, sorted by address, for capture functions that
 * read code. It is optional: `btcore functable` makes it from the ELF file.
 */
struct lwsbt_functions {
	const uint32_t *start;	/* first address of each function, less base */
	size_t count;
	uintptr_t base;
	uintptr_t end;		/* first address after the last function */
};

/* lwsbt_function_table returns the table that `btcore functable` has written into the linked
 * program, or NULL before that, and without -DLWSBT_FUNCTIONS_MAX. It is in capture_functions.c. */
const struct lwsbt_functions *lwsbt_function_table(void);

/*
 * An entry of the cache of prologue readers, by return address. With the cache, a frame seen
 * before takes about 60 instructions instead of 640 or more. The program provides an array of
 * entries, initialized with zeros; several threads may share it. Clear it when code is loaded
 * or replaced.
 */
struct lwsbt_rule {
	uintptr_t check, rule;	/* internal */
};

/* The memory that a capture function may read. */
struct lwsbt_capture_ctx {
	uintptr_t lo, hi;	/* the stack: lo <= address < hi; both 0 if unknown */
	uintptr_t code_lo, code_hi; /* code, and read-only data behind it; both 0 if unknown */
	const struct lwsbt_functions *functions; /* or NULL */
	struct lwsbt_rule *rules; /* the cache, or NULL */
	size_t rule_count;	/* of rules: a power of 2, at most 4096; or 0 */
	uintptr_t irq_lo, irq_hi; /* the stack of interrupts, where it is another: of a Cortex-M
				 * whose threads run on the process stack; both 0 if not */
};

/*
 * A capture function stores at most max return addresses of the calling thread's
 * stack to pcs, the innermost first, without the first skip addresses. It returns
 * their number. With a skip of 0, pcs[0] is the return address of the capture
 * function, which is in the function that called it.
 *
 * It reads no stack outside ctx->lo to ctx->hi, and no code outside code_lo to
 * code_hi, if these are known. It ends at the first frame that it cannot unwind,
 * and never faults on a corrupted stack within these limits. Addresses have their mode
 * bits cleared (bit 0 of Thumb). It allocates nothing, unless its description
 * says so. ctx may be NULL: then nothing is known.
 */
typedef size_t (*lwsbt_capture_fn)(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx);

/* Capture functions, with the method of each. docs/notes/capture.md describes which to use. */
size_t lwsbt_capture_unwind(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* the compiler's unwinder */
size_t lwsbt_capture_fp(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* frame pointers */
size_t lwsbt_capture_mips(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_thumb(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_arm(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_scan(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* addresses after a call */
size_t lwsbt_capture_riscv(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_aarch64(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* prologues */
size_t lwsbt_capture_ppc(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */
size_t lwsbt_capture_xtensa(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* register windows; not tested on hardware */
size_t lwsbt_capture_s390x(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */

/* LWSBT_CAPTURE is the capture function of the machine that needs no compiler options; on x86, that of frame
 * pointers. */
#if defined(__thumb__)
#define LWSBT_CAPTURE lwsbt_capture_thumb
#elif defined(__arm__)
#define LWSBT_CAPTURE lwsbt_capture_arm
#elif defined(__aarch64__)
#define LWSBT_CAPTURE lwsbt_capture_aarch64
#elif defined(__riscv)
#define LWSBT_CAPTURE lwsbt_capture_riscv
#elif defined(__mips__)
#define LWSBT_CAPTURE lwsbt_capture_mips
#elif defined(__powerpc__) && !defined(__powerpc64__)
#define LWSBT_CAPTURE lwsbt_capture_ppc
#elif defined(__s390x__)
#define LWSBT_CAPTURE lwsbt_capture_s390x
#elif defined(__XTENSA_WINDOWED_ABI__)
#define LWSBT_CAPTURE lwsbt_capture_xtensa
#elif defined(__x86_64__) || defined(__i386__)
#define LWSBT_CAPTURE lwsbt_capture_fp
#endif

#ifdef __cplusplus
}
#endif

#endif

/* include/lwsbt/paths.h --------------------------------------------------------------------- */

/*
 * lwsbt/paths.h: writes ~p# lines, which have call paths with their live blocks and bytes. See
 * lwsbt.h, and SPEC.md, Part III.
 */
#ifndef LWSBT_INCLUDE_PATHS_H
#define LWSBT_INCLUDE_PATHS_H


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

/* include/lwsbt/device.h -------------------------------------------------------------------- */

/*
 * lwsbt/device.h: writes the ~h# lines of a device, and the notes in its ELF file. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_DEVICE_H
#define LWSBT_INCLUDE_DEVICE_H


#ifdef __cplusplus
extern "C" {
#endif

/* The values of the boot line. NULL and 0 leave out a key. [BT-HEAD-6] */
struct lwsbt_device {
	const char *prog;		/* name of the program */
	const char *dev;		/* name of the device, such as a serial number */
	const char *fw;			/* version of the firmware */
	const void *build;		/* the ELF file's .note.gnu.build-id, 4-byte aligned */
	struct lwsbt_code code;
	struct lwsbt_range heap;
};

/* lwsbt_head_device writes the ~h#boot line of a device; lwsbt_head_boot writes that of a Linux program. */
void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d);

/* Numbers that an allocator reports, in bytes. */
struct lwsbt_numbers {
	size_t size;		/* size of the heap */
	size_t free, largest;	/* free now; the largest free block */
	size_t least;		/* the least that was ever free */
	const char *name;	/* of the heap, if the device has several; or NULL */
};

/* lwsbt_head_heap writes a ~h#heap line. time is in microseconds since boot, or LWSBT_NONE. */
void lwsbt_head_heap(const struct lwsbt_out *out, const struct lwsbt_numbers *n, uint64_t time);

/* lwsbt_head_thread writes a ~h#thread line: the name of a thread by the number that the port gives it. */
void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name);

/*
 * LWSBT_NOTE_CODE(shift, start, end) and LWSBT_NOTE_HEAP(start, end) store the address ranges of
 * code and heap in the ELF file, for readers. start and end are symbols of the linker script.
 * LWSBT_NOTE_TEXT("1.2.3") stores the version. Use each at file level, once in a program. The section
 * is not loaded, so it takes no flash and needs no line in the linker script. [BT-NOTE-1]
 *
 *   | 6 | size of desc | type | "lwsbt" | desc ... |
 */
#if UINTPTR_MAX > 0xffffffff
#define LWSBT_NOTE_ADDRESS ".8byte "
#else
#define LWSBT_NOTE_ADDRESS ".4byte "
#endif
#define LWSBT_NOTE_(type_, desc_) \
	__asm__(".pushsection .note.lwsbt,\"\",%note\n\t.balign 4\n" \
		"\t.4byte 6, 72f - 71f, " type_ "\n\t.ascii \"lwsbt\\0\\0\\0\"\n" \
		"71:\t" desc_ "\n72:\t.balign 4\n\t.popsection")
#define LWSBT_NOTE_RANGE_(start_, end_) LWSBT_NOTE_ADDRESS #start_ ", " #end_
#define LWSBT_NOTE_CODE_(shift_, start_, end_) \
	LWSBT_NOTE_("1", ".4byte " #shift_ ", 1\n\t" LWSBT_NOTE_RANGE_(start_, end_))
#define LWSBT_NOTE_CODE(shift_, start_, end_) LWSBT_NOTE_CODE_(shift_, start_, end_)
#define LWSBT_NOTE_TEXT_(text_) LWSBT_NOTE_("2", ".ascii " #text_)
#define LWSBT_NOTE_TEXT(text_) LWSBT_NOTE_TEXT_(text_)
#define LWSBT_NOTE_HEAP_(start_, end_) LWSBT_NOTE_("3", LWSBT_NOTE_RANGE_(start_, end_))
#define LWSBT_NOTE_HEAP(start_, end_) LWSBT_NOTE_HEAP_(start_, end_)

#ifdef __cplusplus
}
#endif

#endif

/* include/lwsbt/heap.h ---------------------------------------------------------------------- */

/*
 * lwsbt/heap.h: call stacks in front of allocations, and dumps of them. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_HEAP_H
#define LWSBT_INCLUDE_HEAP_H


#ifdef __cplusplus
extern "C" {
#endif

/*
 * The largest number of frames that the heap stores of a call stack, 1 to 31. A
 * smaller number makes struct lwsbt_meta smaller. It cannot be 32, since a blob
 * has the same bits for 32 and 0.
 */
#ifndef LWSBT_HEAP_DEPTH
#define LWSBT_HEAP_DEPTH 31
#endif

/*
 * The metadata of an allocation is in front of the memory that the program gets, as
 * in lws [BT-MEM-1]:
 *
 *   true start                        the program's pointer
 *   | bits and padding     | length | list node  | size bytes ...
 *                                   ^ struct lwsbt_node, 3 pointers
 *
 * The bits are padded with an empty list of user fields and ones up to the length, so
 * that the program's memory is aligned for any type.
 */
struct lwsbt_node {		/* as lws_dll2_t */
	struct lwsbt_node *prev, *next;
	struct lwsbt_heap *owner;
};

/* The alignment of allocations in bytes: that of malloc. */
#ifndef LWSBT_ALIGN
#if defined(__i386__) || defined(__powerpc__)
#define LWSBT_ALIGN 16
#else
#define LWSBT_ALIGN (2 * sizeof(void *))
#endif
#endif

/* Kinds of damage: the part that was overwritten. */
enum lwsbt_damage {
	LWSBT_DAMAGED_LINK = 1,	/* prev or next of a node, or its owner */
	LWSBT_DAMAGED_BLOB,	/* length or bits before a node */
	LWSBT_DAMAGED_END,	/* bytes after the program's memory; the metadata is intact */
	LWSBT_DAMAGED_FREED	/* memory that was freed, with LWSBT_QUARANTINE */
};

/*
 * The spare bytes between the end of an allocation and the end of the memory that is
 * reserved for it have this value, to detect a write past the end:
 *
 *   the program's pointer             reserved up to here
 *   | size bytes              | spare |
 *                              0xe5 ...
 *
 * Spare bytes take no additional memory, and a block may have none. They extend to a
 * multiple of the pointer size, or with LWSBT_WHOLE_CHUNKS to the end of the chunk of the
 * underlying allocator. LWSBT_WHOLE_CHUNKS is for allocators whose chunks are multiples of
 * LWSBT_ALIGN, with one pointer of their own. It is 1 by default for glibc, and for newlib
 * without nano.specs. Define it as 0 for another allocator; otherwise a block takes up to
 * LWSBT_ALIGN bytes more.
 */
#define LWSBT_SPARE_BYTE 0xe5

/* With LWSBT_QUARANTINE, freed memory is filled with this value. */
#define LWSBT_FREED_BYTE 0xf5

/* The largest number of freed blocks that are not released at once. Each takes 3 words in struct
 * lwsbt_heap. When a block is released, a write to it since it was freed is reported. All files
 * of a program must have the same value. */
#ifndef LWSBT_QUARANTINE
#define LWSBT_QUARANTINE 0
#endif

/*
 * With LWSBT_PACKED, the bits in front of blocks are no blob, which lws could read: frames are offsets in the code,
 * in fields as wide as its length, which take about two thirds of the memory. Lines are the same. Set code in struct
 * lwsbt_heap before the first allocation. It leaves out LWSBT_FIELDS of src/options.h, and cannot read
 * blocks of lws. All files of a program must have the same value.
 */
#ifndef LWSBT_PACKED
#define LWSBT_PACKED 0
#endif

/*
 * Functions of the platform. Every member may be NULL. All functions get arg.
 */
struct lwsbt_port {
	void *arg;

	/* Mutual exclusion of threads; held for the time of some list operations, never
	 * during capture, callbacks or output. */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);

	/* Returns a byte of the calling thread, 0 at first, in which the library stores
	 * whether the thread is inside the library. NULL: all threads share one byte, and
	 * an allocation during the capture of another thread has no metadata. */
	unsigned char *(*guard)(void *arg);

	/* Reports whether this is an interrupt. In an interrupt, allocations have no
	 * metadata, and memory with metadata is not freed. */
	int (*in_interrupt)(void *arg);

	/* Sets ctx->lo and ctx->hi to the limits of the calling thread's stack. */
	void (*stack)(void *arg, struct lwsbt_capture_ctx *ctx);

	uint64_t (*time)(void *arg);	/* microseconds since boot */
	uintptr_t (*thread)(void *arg);	/* id of the calling thread */

	/* Called after an allocation, free or realloc, outside the lock. s has the stack and
	 * the size; for a free, only the size. Members of e that the heap does not keep are
	 * LWSBT_NONE. event may allocate; such memory has no metadata. */
	void (*event)(void *arg, const struct lwsbt_event *e, const struct lwsbt_stack *s);

	/* Called outside the lock when damage was found at node. If the metadata is damaged,
	 * the library does not access the node again. */
	void (*damaged)(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node);

	/* Sets n to the numbers of the allocator, for ~h#heap. Returns 0 if there are none. */
	int (*numbers)(void *arg, struct lwsbt_numbers *n);
};

/* Flags of a heap. The first three select the user fields to store with each
 * allocation. */
enum {
	LWSBT_KEEP_SEQUENCE = 1,
	LWSBT_KEEP_THREAD = 2,
	LWSBT_KEEP_TIME = 4,
	LWSBT_KEEP_ADDRESS = 8,	/* for lwsbt_dump; the address takes no memory */
	/* Search the list before freed memory is treated as memory without metadata, to
	 * detect a node whose owner was overwritten. Slow if much memory without metadata
	 * is freed. */
	LWSBT_CHECK_UNTRACKED = 16
};

/*
 * A heap. The first four members are those of lws_dll2_owner_t (in lws 4, the first three). Set
 * the second group before the first allocation. The third group may be read at any time; it is
 * written under the lock.
 */
struct lwsbt_heap {
	struct lwsbt_node *tail, *head;
	uint32_t count;			/* allocations with metadata */
	uint32_t generation;		/* of lws 5: changes of the list */

	uint8_t how;			/* LWSBT_SEARCH_..., LWSBT_WRAP64 */
	uint8_t flags;			/* LWSBT_KEEP_..., LWSBT_CHECK_... */
	uint8_t skip;			/* innermost frames to leave out, beyond the allocator's own */
	uint8_t post;			/* outermost frames to leave out, if there are more */
	uint32_t mark;			/* LWSBT_MARK once anything was allocated */
#if LWSBT_PACKED
	const struct lwsbt_code *code;	/* NULL: frames are addresses. Do not change it later */
#endif
	lwsbt_capture_fn capture;	/* NULL: stacks have only the caller */
	struct lwsbt_capture_ctx ctx;
	const struct lwsbt_port *port;	/* or NULL */

	size_t bytes, peak;		/* size of the live allocations; its largest value so far */
	uint32_t peak_count;		/* live allocations when bytes was at its peak */
	uint32_t sequence;		/* allocations and reallocations with metadata so far */
	uint32_t untracked;		/* allocations without metadata: too large, or no memory for it */
	uint32_t interrupts;		/* in interrupts: allocations without metadata, and rejected frees */
	uint32_t reentered;		/* allocations without metadata: inside capture or a callback */
	uint32_t damaged;		/* number of times that damage was found */

	uintptr_t lo, hi;		/* internal: bounds of all metadata so far */
	struct lwsbt_walk *walks;	/* internal */
	unsigned char guard;		/* internal */
#if LWSBT_QUARANTINE
	struct lwsbt_freed {
		void *start;
		struct lwsbt_node *node;
		size_t size;
	} freed[LWSBT_QUARANTINE];	/* internal */
	unsigned freed_next;		/* internal */
#endif
};

/* The mark tells readers of memory images that blocks of a struct lwsbt_heap have spare bytes;
 * blocks of lws have none. Its lowest byte is 1 if spare bytes extend to a multiple of the pointer
 * size, and LWSBT_ALIGN if they extend to the end of a chunk. The byte above it is different for packed stacks. */
#define LWSBT_MARK (0x6c777300u + (LWSBT_PACKED ? 0x100 : 0) + (LWSBT_WHOLE_CHUNKS ? (uint32_t)LWSBT_ALIGN : 1))

/* The metadata of an allocation that is not yet made. The members are internal. */
struct lwsbt_meta {
	struct lwsbt_stack stack;
	uintptr_t thread;		/* thread, time and sequence: if kept */
	uint64_t time;
	uint32_t sequence;
	uint16_t len;			/* of the blob, in bytes */
	uint8_t form[LWSBT_HEAP_DEPTH];
};

/*
 * lwsbt_meta_gen captures the call stack into m, and returns the number of bytes to
 * allocate for metadata, in addition to size bytes. align is the alignment of the
 * allocation, a power of 2 up to 32768, or 0 for that of malloc. If the allocation
 * cannot have metadata, lwsbt_meta_gen counts the reason and returns 0: then
 * allocate size bytes, and do not call lwsbt_meta_adjust. caller is the return
 * address of the allocation function, or NULL: frames inside it are left out.
 */
size_t lwsbt_meta_gen(struct lwsbt_heap *h, size_t size, size_t align, const void *caller,
	struct lwsbt_meta *m);

/* lwsbt_meta_adjust writes the metadata to true_start, the beginning of the allocated
 * bytes (size, and the number that lwsbt_meta_gen returned). It adds the block to the
 * list, and returns the program's pointer. */
void *lwsbt_meta_adjust(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m);

/* lwsbt_meta_trim removes p, which the program frees, from the list, and returns the
 * true start. For memory without metadata, it returns p. It returns NULL if the
 * metadata is damaged, which it reports, or in an interrupt: then do not free the
 * memory. */
void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p);

/* lwsbt_meta_parse reads the metadata of p, a live allocation. It returns
 * LWSBT_EMPTY if there is none, LWSBT_LENGTH if its links are damaged. */
enum lwsbt_result lwsbt_meta_parse(struct lwsbt_heap *h, struct lwsbt_stack *s, const void *p);

/* The underlying allocator of a heap. */
struct lwsbt_allocator {
	void *(*allocate)(size_t size);		/* as malloc */
	void *(*resize)(void *p, size_t size);	/* as realloc */
	void (*release)(void *p);		/* as free */
	void *(*aligned)(size_t align, size_t size); /* as memalign; NULL if there is none */
};

/*
 * lwsbt_heap_... are malloc, memalign, calloc, realloc and free of a heap. If there
 * is no memory for metadata, they allocate memory without metadata. caller is as in
 * lwsbt_meta_gen: __builtin_return_address(0) in the function that the program
 * calls.
 */
void *lwsbt_heap_malloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t size,
	const void *caller);
void *lwsbt_heap_memalign(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller);
void *lwsbt_heap_calloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller);
void *lwsbt_heap_realloc(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p,
	size_t size, const void *caller);
void lwsbt_heap_free(struct lwsbt_heap *h, const struct lwsbt_allocator *a, void *p);

/* ------------------------------------------------------------------- dumps */

/* The longest record of a heap, in bytes: a blob of LWSBT_HEAP_DEPTH frames, in bits
 * 11 and a word for each, and the user fields of what is kept and the address. */
#define LWSBT_RECORD_MAX ((6 + LWSBT_HEAP_DEPTH * (11 + LWSBT_WORD_BITS) + 8 + LWSBT_WORD_BITS + 7) / 8 + 2 + \
	(77 + 3 * (13 + LWSBT_WORD_BITS) + 7) / 8)

/* A walk through the live allocations, the oldest first. Other threads may allocate
 * and free meanwhile; blocks allocated after the beginning of the walk are left out. */
struct lwsbt_walk {
	struct lwsbt_walk *more;	/* internal */
	struct lwsbt_node *next, *last;	/* internal */
	void *p;			/* the program's pointer of the last record */
	lwsbt_word size;		/* its size in bytes */
};

void lwsbt_walk_begin(struct lwsbt_heap *h, struct lwsbt_walk *w);

/* lwsbt_walk_next writes the next record, a blob, to buf and returns its length; 0
 * after the last. flags is LWSBT_KEEP_ADDRESS, to add the address to the user
 * fields, or 0. A blob that is damaged, or longer than cap, is reported and left
 * out; a damaged link ends the walk. No record is longer than LWSBT_RECORD_MAX. */
size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags);

/* lwsbt_walk_end ends a walk. Call it once for every lwsbt_walk_begin. */
void lwsbt_walk_end(struct lwsbt_heap *h, struct lwsbt_walk *w);

/* lwsbt_dump writes a dump: ~h#begin, a ~m# line for each live allocation, ~h#end.
 * flags is as in lwsbt_walk_next. If flags or the heap select user fields, the
 * records have them, and ~h#begin has the key for this. */
void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags);

/*
 * A dump by call path is much shorter. It adds up the blocks in LWSBT_SUMS slots. If there are more
 * paths, a path may have several entries.
 */
#ifndef LWSBT_SUMS
#define LWSBT_SUMS 64
#endif

struct lwsbt_sum {
	uint32_t name, live;
	size_t bytes;
};

/* lwsbt_dump_paths writes a dump of h by call path. sums has LWSBT_SUMS slots, which need not be
 * initialized. flags is LWSBT_NAMES, to write only names of paths that were written before, or 0. */
void lwsbt_dump_paths(struct lwsbt_heap *h, struct lwsbt_paths *w, struct lwsbt_sum *sums,
	uint32_t number, const char *why, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif

/* include/lwsbt/profile.h ------------------------------------------------------------------- */

/*
 * lwsbt/profile.h: live memory counted by call path, in a table of fixed size, and dumps of it.
 * See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_PROFILE_H
#define LWSBT_INCLUDE_PROFILE_H


#ifdef __cplusplus
extern "C" {
#endif

/*
 * The table has a tree of frames, and an entry for each path that holds blocks. The number of an
 * entry does not change while one of its blocks lives. Entry 0 is "all others", the path of no
 * frames: it counts blocks of paths for which the table has no space.
 *
 *   node, a word    | mark | offset of the frame, and 1 | number of the node outside it |
 *                     1 bit                               as many bits as the numbers take
 *
 * A node's number is its index plus 2. Numbers 0 and 1 are the roots of paths of LWSBT_PATH_WHOLE
 * and LWSBT_PATH_CUT. A frame outside the code takes two nodes.
 */
struct lwsbt_entry {
	uint32_t key;		/* internal: flags of 8 bits, size class of 8, innermost node of 16 */
	uint32_t live;		/* number of live blocks */
	size_t bytes;		/* requested for the live blocks */
};

/* What an entry held since the boot. The values stay at their largest number if they would exceed it. */
struct lwsbt_history {
	uint32_t allocations;
	size_t bytes;		/* requested for them */
	size_t peak;		/* the most bytes that were live */
};

/*
 * A block has two words before the program's memory, and the spare bytes of heap.h after it:
 *
 *   true start                         the program's pointer
 *   | size          | check | number  | size bytes ... | spare |
 *     a word          the upper and the lower 16 bits
 *
 * The check covers address, size and number. It fails after a write past the end of the previous
 * block, or before the beginning of this one.
 */
struct lwsbt_block {
	uintptr_t size, tag;
};

#define LWSBT_PROFILE_NODES_MAX 16382
#define LWSBT_PROFILE_ENTRIES_MAX 65534

/*
 * A profile. Set the members of the first group before the first allocation; node and entry are
 * arrays of zeros. Begin with 3 or 4 nodes for each path, and a tenth more of both: see
 * docs/notes/device-profiles.md. With history, a path keeps its entry when its last block is freed. The second
 * group may be read at any time.
 */
struct lwsbt_profile {
	struct lwsbt_heap *heap;	/* capture, ctx, port, skip, post; its counters are used, its list is not */
	uintptr_t *node;
	struct lwsbt_entry *entry;
	uint16_t nodes;			/* 16 to LWSBT_PROFILE_NODES_MAX */
	uint16_t entries;		/* 17 to LWSBT_PROFILE_ENTRIES_MAX */
	struct lwsbt_code code;		/* frames elsewhere take two nodes */
	uint32_t sample;		/* mean bytes between sample points, below 2^27; 0: all blocks are counted */
	uint32_t random;		/* seed for sample, not 0; 0: always the same */
	struct lwsbt_history *history;	/* one for each entry, zeros; dumps have the values then. Or NULL */

	uint32_t cut;			/* allocations so far that were counted for an outer part of their path */
	uint32_t failed;		/* allocations so far for which there was no memory */

	size_t left;			/* internal */
	uint32_t dumps;			/* internal: dumps that began */
	uint32_t seen;			/* internal: last value of failed */
	uint8_t low;			/* internal */
};

/*
 * lwsbt_profile_... are malloc, memalign, calloc, realloc and free, like lwsbt_heap_... .
 * Memory without the two words is passed to the allocator unchanged, also if the words were
 * damaged. With LWSBT_CHECK_UNTRACKED in heap->flags, all such memory is reported as damage
 * (LWSBT_DAMAGED_BLOB), and is not freed. The event callback of the port is not called. An
 * allocation takes the lock once, while it looks up its frames, and not during capture.
 */
void *lwsbt_profile_malloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t size,
	const void *caller);
void *lwsbt_profile_memalign(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t align,
	size_t size, const void *caller);
void *lwsbt_profile_calloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, size_t n,
	size_t size, const void *caller);
void *lwsbt_profile_realloc(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q,
	size_t size, const void *caller);
void lwsbt_profile_free(struct lwsbt_profile *p, const struct lwsbt_allocator *a, void *q);

/*
 * For your own allocator: lwsbt_profile_count counts a block of size bytes for its stack,
 * innermost frame first, and returns the number of the entry. lwsbt_profile_uncount undoes this.
 * base is LWSBT_PATH_WHOLE, or LWSBT_PATH_CUT if outer frames were not captured. Of more than
 * LWSBT_HEAP_DEPTH frames, the innermost are taken.
 */
unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base);
void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size);

/* lwsbt_profile_sampled reports whether to count a block of size bytes: always if p->sample is 0,
 * else with a probability of 1 - exp(-size / sample). [BT-DUMP-5] */
int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size);

/* ------------------------------------------------------------------- dumps */

enum {
	LWSBT_DIFF = 1,		/* only paths that changed since the last dump, if that is complete */
	/* LWSBT_NAMES = 2, of paths.h */
	LWSBT_SORT = 4		/* sorted by path: a third shorter; time grows with the square of the entries */
};

/* The state of dumps, for a whole boot. Initialize it with zeros, and set lines.out and lines.max. */
struct lwsbt_profile_dump {
	struct lwsbt_paths lines;

	struct lwsbt_profile *p;	/* this and the following: internal */
	uint32_t base, blocks, cut;
	size_t bytes;
	uint16_t at;
	uint8_t flags, ended;
};

/*
 * lwsbt_profile_begin begins a dump: it writes ~h#begin, and ~h#heap if the port has numbers.
 * Each call of lwsbt_profile_next writes at most one entry and returns 1. After the last entry it
 * writes ~h#end, removes the entries without blocks, and returns 0. Other threads may allocate and
 * free between the calls: an entry has its values at the time when it is written. Only one dump at
 * a time is possible. flags is a sum of LWSBT_DIFF, LWSBT_NAMES and LWSBT_SORT; why is the reason
 * for the dump, or NULL.
 */
void lwsbt_profile_begin(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);
int lwsbt_profile_next(struct lwsbt_profile_dump *d);

/* lwsbt_profile_dump writes a whole dump. */
void lwsbt_profile_dump(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);

/* lwsbt_low reports whether to dump because memory is low: an allocation failed since the last
 * call, or free, in bytes, has fallen below limit. It reports the latter once, until free was at
 * least 1.25 times limit. Only one thread may call it. */
int lwsbt_low(struct lwsbt_profile *p, size_t free, size_t limit);

#ifdef __cplusplus
}
#endif

#endif

/* include/lwsbt/wrap.h ---------------------------------------------------------------------- */

/*
 * lwsbt/wrap.h: records malloc and free of a whole program, which the linker wraps. See lwsbt.h, and
 * adapters/wrap.c for its options.
 */
#ifndef LWSBT_INCLUDE_WRAP_H
#define LWSBT_INCLUDE_WRAP_H


#ifdef __cplusplus
extern "C" {
#endif

/* The program defines lwsbt_wrap_out, which writes text, to a serial port for example. It may define
 * lwsbt_wrap_port: with time, dumps have times; with lock and unlock, several threads may allocate. */
extern const struct lwsbt_out lwsbt_wrap_out;
extern const struct lwsbt_port lwsbt_wrap_port;

/* lwsbt_wrap_begin sets the limits of stack and code in lwsbt_wrapped.ctx that are still 0, by symbols of
 * the linker script (adapters/begin.c lists them), and writes the boot line. prog is the name of the
 * program, fw its version or NULL. Call it first in main: until then, stacks have only the caller of
 * malloc. */
void lwsbt_wrap_begin(const char *prog, const char *fw);

/* lwsbt_wrap_dump writes a dump; why is the reason, which reports show, or NULL. Do not call it from an
 * interrupt, or from two threads at a time. */
void lwsbt_wrap_dump(const char *why);

extern struct lwsbt_heap lwsbt_wrapped;			/* the heap */
extern struct lwsbt_profile lwsbt_wrapped_profile;	/* with LWSBT_WRAP_NODES */

#ifdef __cplusplus
}
#endif

#endif

#endif
