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
	LWSBT_TAG_OLD = 6,	/* old address of a moved block */
	LWSBT_TAG_CHECK = 7	/* CRC-16 of the bits before it [BT-UF-4] */
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

/* lwsbt_put_stack writes depth and frames, without size and length. */
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
