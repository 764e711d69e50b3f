/*
 * lwsbt.h: compressed backtraces for firmware
 *
 * Takes the call stack of each heap allocation, compresses it to some 20 to 60
 * bytes, keeps it in front of the allocated memory and writes all of them out
 * as lines of text, on request, in the format of libwebsockets (lws) that SPEC.md
 * specifies. Clauses in brackets, [BT-...], are SPEC.md's.
 *
 * C99. Nothing here allocates or recurses, and nothing is static but what the
 * program itself declares. Link what is needed: each part is a file of src/.
 *
 *   part            file of src/    calls
 *   encoder         encode.c        lwsbt_encode, lwsbt_put...; needs choose.c
 *   lines, written  line.c          lwsbt_line..., lwsbt_base64...
 *   decoder         decode.c        lwsbt_decode..., lwsbt_user
 *   lines, read     parse.c         lwsbt_parse...
 *   headers         head.c          lwsbt_head...
 *   heap            heap.c          lwsbt_meta_gen, _adjust, _trim
 *                   alloc.c         lwsbt_heap_malloc...
 *   dumps           dump.c          lwsbt_walk..., lwsbt_dump, lwsbt_meta_parse
 *   events          event.c         lwsbt_encode_event
 *   capture         capture_*.c     lwsbt_capture_...
 *
 * Unless it says otherwise, a function may be called from several threads at a
 * time, and from interrupts, as it touches nothing but its arguments.
 */
#ifndef LWSBT_H
#define LWSBT_H

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
 * heap and the capture functions need uintptr_t. Library and program must be
 * compiled with the same value.
 */
#ifdef LWSBT_WORD_BITS
#if LWSBT_WORD_BITS == 64
typedef uint64_t lwsbt_word;
#elif LWSBT_WORD_BITS == 32
typedef uint32_t lwsbt_word;
#else
#error "LWSBT_WORD_BITS is neither 32 nor 64"
#endif
#else
typedef uintptr_t lwsbt_word;
#if UINTPTR_MAX > 0xffffffff
#define LWSBT_WORD_BITS 64
#else
#define LWSBT_WORD_BITS 32
#endif
#endif

/* The most frames that a blob can hold. [BT-DEPTH-1] */
#define LWSBT_DEPTH_MAX 32

/*
 * The most frames that the heap keeps of a call stack, 1 to 31; fewer make struct
 * lwsbt_meta smaller. It cannot be 32, which a blob writes as it writes 0.
 */
#ifndef LWSBT_HEAP_DEPTH
#define LWSBT_HEAP_DEPTH 31
#endif

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
#define LWSBT_LENGTH_MAX 65535	/* the most a blob's length can say, in bytes */
#define LWSBT_USER_MAX 10	/* bytes, rounded up */

/* Characters of the ~m# line of a blob of n bytes, without a NUL. [BT-TEXT-1] */
#define LWSBT_LINE_LEN(n) (3 + ((n) + 2) / 3 * 4)

/* A call stack and the size of the allocation that it made. */
struct lwsbt_stack {
	lwsbt_word size;		/* bytes asked for */
	uint32_t end;			/* bits of a decoded blob: see lwsbt_decode */
	uint32_t depth;			/* frames in pc, 0 to 32 */
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
	LWSBT_EMPTY,		/* length 0: the writer had no room for metadata */
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
 * length in bytes. If that is over cap, the blob did not fit, and what is in buf
 * is of no use: nothing beyond buf[cap - 1] is ever written. So a first call with
 * cap 0 (and buf NULL) measures. No blob without user fields is longer than
 * LWSBT_BLOB_MAX.
 *
 * s->depth must be 0 to 32. [BT-BLOB-1, BT-SRCH-1, BT-SRCH-2, BT-MACH-4]
 */
size_t lwsbt_encode(void *buf, size_t cap, const struct lwsbt_stack *s, unsigned how);

/*
 * A writer puts bit fields into a buffer: for blobs with user fields, and for
 * stacks within a program's own data. Set it up by lwsbt_writer_init; the
 * members are the library's.
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

/* lwsbt_put_user writes a user field: tag (1 to 15), count and value. They stand
 * after the size; a 0 tag, which padding reads as, ends them. */
void lwsbt_put_user(struct lwsbt_writer *w, unsigned tag, uint64_t v);

/* lwsbt_bits returns how many bits were written so far. */
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
 * and a count over 32 is rejected. Where lwsbt_word has 32 bits, only that can
 * be read: word is then taken for 32. [BT-BLOB-2, BT-DEPTH-2, BT-DELTA-6, BT-COUNT-4]
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

/* lwsbt_salvage reads what is certain of a blob whose end was cut off: the frames
 * that are whole. word is as for lwsbt_decode. *announced is the depth that it once
 * had, *sized whether s->size is known. The result is LWSBT_OK if there was something
 * to salvage. [BT-SALV-1, BT-SALV-2] */
enum lwsbt_result lwsbt_salvage(struct lwsbt_stack *s, const void *p, size_t len,
	unsigned word, unsigned *announced, int *sized);

/* lwsbt_user reads the user field at bit *pos of a blob, s->end at first, and
 * moves *pos behind it. *tag is LWSBT_TAG_END after the last. */
enum lwsbt_result lwsbt_user(const void *blob, size_t len, size_t *pos, unsigned *tag,
	uint64_t *value);

/* ------------------------------------------------------------------- lines */

/* Where lines go: put is called with pieces of text, of 1 to some 24 characters,
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

/* ----------------------------------------------------------------- capture */

/*
 * A table of the program's functions, sorted by address, for backends that look
 * at code: made from the ELF file by a tool of tools/, and optional.
 */
struct lwsbt_functions {
	const uint32_t *start;	/* first address of each function, less base */
	size_t count;
	uintptr_t base;
	uintptr_t end;		/* past the last function */
};

/* lwsbt_function_table returns the table that tools/functable -patch has written into
 * the linked program, or NULL before that. It is in capture_functions.c. */
const struct lwsbt_functions *lwsbt_function_table(void);

/*
 * A cache of what prologue readers found out from code, by return address: with it,
 * a frame seen before takes some 100 instructions, not 500 and more. An array of these is the
 * program's, all zero at first, and may serve several threads. Where code is loaded or
 * replaced, zero it.
 */
struct lwsbt_rule {
	uintptr_t check, rule;	/* the library's */
};

/* What a capture function may read. */
struct lwsbt_capture_ctx {
	uintptr_t lo, hi;	/* the stack: lo <= address < hi; both 0 if unknown */
	uintptr_t code_lo, code_hi; /* the program's code; both 0 if unknown */
	const struct lwsbt_functions *functions; /* or NULL */
	struct lwsbt_rule *rules; /* the cache, or NULL */
	size_t rule_count;	/* of rules: a power of 2, at most 4096; or 0 */
	uintptr_t irq_lo, irq_hi; /* the stack of interrupts, where it is another: of a Cortex-M
				 * whose threads run on the process stack; both 0 if not */
};

/*
 * A capture function stores return addresses of the calling thread's stack to
 * pcs, the innermost first, at most max, leaving out the first skip. It returns
 * how many. With a skip of 0, pcs[0] is in the function that called the capture
 * function: the address to which it returns.
 *
 * It reads no stack outside ctx->lo to ctx->hi, and no code outside code_lo to
 * code_hi, where these are known; it ends where it cannot go on, and never
 * faults on a corrupted stack within these limits. Addresses have their mode
 * bits cleared (bit 0 of Thumb). It allocates nothing, unless its description
 * says so. ctx may be NULL: then nothing is known.
 */
typedef size_t (*lwsbt_capture_fn)(uintptr_t *pcs, size_t max, size_t skip,
	const struct lwsbt_capture_ctx *ctx);

/* By what, in one line each; docs/capture.md says which to take. */
size_t lwsbt_capture_unwind(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* the compiler's unwinder */
size_t lwsbt_capture_fp(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* frame pointers */
size_t lwsbt_capture_mips(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_thumb(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_arm(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_scan(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* addresses after a call */
size_t lwsbt_capture_riscv(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* prologues */
size_t lwsbt_capture_aarch64(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *); /* prologues */
size_t lwsbt_capture_ppc(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */
size_t lwsbt_capture_s390x(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);	/* back chain */

/* -------------------------------------------------------------------- heap */

/*
 * The metadata of an allocation stands before the memory that the program gets,
 * where lws has it [BT-MEM-1]:
 *
 *   true start                        what the program gets
 *   | bits and padding     | length | list node  | size bytes ...
 *                                   ^ struct lwsbt_node, 3 pointers
 *
 * So that the program's memory is aligned for any type, the bits end with an empty
 * list of user fields, and then ones up to the length.
 */
struct lwsbt_node {		/* as lws_dll2_t */
	struct lwsbt_node *prev, *next;
	struct lwsbt_heap *owner;
};

/* What allocations are aligned to, in bytes: to what malloc aligns. */
#ifndef LWSBT_ALIGN
#if defined(__i386__) || defined(__powerpc__)
#define LWSBT_ALIGN 16
#else
#define LWSBT_ALIGN (2 * sizeof(void *))
#endif
#endif

/* What is wrong. */
enum lwsbt_damage {
	LWSBT_DAMAGED_LINK = 1,	/* prev or next of a node, or its owner */
	LWSBT_DAMAGED_BLOB,	/* length or bits before a node */
	LWSBT_DAMAGED_END,	/* not the metadata, but bytes behind the program's memory */
	LWSBT_DAMAGED_FREED	/* memory that was freed, with LWSBT_QUARANTINE */
};

/*
 * The bytes between the end of an allocation and the end of what is reserved for it
 * have this value, so that a write past the end is noticed:
 *
 *   what the program gets             reserved up to here
 *   | size bytes              | spare |
 *                              0xe5 ...
 *
 * There are as many as cost nothing, and there may be none: up to a multiple of a
 * pointer's size; with LWSBT_WHOLE_CHUNKS, up to the end of the chunk that the
 * allocator below takes for it anyway. LWSBT_WHOLE_CHUNKS is 1 where that takes chunks
 * of multiples of LWSBT_ALIGN, one pointer of which is its own: that of glibc and of newlib
 * without nano.specs, for which it is the default. Define it as 0 above another one: else
 * a block takes up to LWSBT_ALIGN bytes more.
 */
#define LWSBT_SPARE_BYTE 0xe5

/* What freed memory is filled with, with LWSBT_QUARANTINE. */
#define LWSBT_FREED_BYTE 0xf5

/* How many freed blocks are kept back, at the most: 0, or a number of 3 words each in struct
 * lwsbt_heap. What is written to them meanwhile is noticed when they leave. All files of a
 * program must have the same. */
#ifndef LWSBT_QUARANTINE
#define LWSBT_QUARANTINE 0
#endif

/*
 * What the heap is told about its platform. Every member may be NULL. arg is
 * handed to all.
 */
struct lwsbt_port {
	void *arg;

	/* Mutual exclusion of threads; held for the time of some list operations, never
	 * during capture, callbacks or output. */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);

	/* Returns the byte of the calling thread, 0 at first, that says it is inside
	 * this library. NULL: there is one for all threads, and an allocation that
	 * finds another one inside capture has no metadata. */
	unsigned char *(*guard)(void *arg);

	/* Reports whether this is an interrupt. What it allocates has no metadata, and
	 * it cannot free what has. */
	int (*in_interrupt)(void *arg);

	/* Sets ctx->lo and ctx->hi to the limits of the calling thread's stack. */
	void (*stack)(void *arg, struct lwsbt_capture_ctx *ctx);

	uint64_t (*time)(void *arg);	/* microseconds since boot */
	uintptr_t (*thread)(void *arg);	/* id of the calling thread */

	/* After an allocation, free or realloc, outside the lock. s is its stack and
	 * size: of a free the size alone. Members of e that the heap does not keep are
	 * LWSBT_NONE. May allocate; what it allocates has no metadata. */
	void (*event)(void *arg, const struct lwsbt_event *e, const struct lwsbt_stack *s);

	/* Damage was found at node. If it is of the metadata, the node is not touched any
	 * more. Outside the lock. */
	void (*damaged)(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node);
};

/* Flags of a heap. The first three: what to keep with each allocation, as user
 * fields. */
enum {
	LWSBT_KEEP_SEQUENCE = 1,
	LWSBT_KEEP_THREAD = 2,
	LWSBT_KEEP_TIME = 4,
	LWSBT_KEEP_ADDRESS = 8,	/* of lwsbt_dump: it need not be kept, it is known */
	/* Look through the list before freed memory is taken for one without metadata:
	 * so that a node whose owner was overwritten is noticed. Slow where such frees
	 * are many. */
	LWSBT_CHECK_UNTRACKED = 16
};

/*
 * A heap. The first four members are those of lws_dll2_owner_t (of lws 4, three). Set up the next
 * group before the first allocation; read the one after whenever you like: it is
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
	lwsbt_capture_fn capture;	/* NULL: the caller alone */
	struct lwsbt_capture_ctx ctx;
	const struct lwsbt_port *port;	/* or NULL */

	size_t bytes, peak;		/* asked for by live allocations; the most so far */
	uint32_t peak_count;		/* live allocations when bytes was at its peak */
	uint32_t sequence;		/* allocations and reallocations with metadata so far */
	uint32_t untracked;		/* allocations without: too large, or no memory for it */
	uint32_t interrupts;		/* allocations without, and frees refused: in interrupts */
	uint32_t reentered;		/* allocations without: inside capture or a callback */
	uint32_t damaged;		/* damage found, each time */

	uintptr_t lo, hi;		/* all metadata so far was here: the library's */
	struct lwsbt_walk *walks;	/* the library's */
	unsigned char guard;		/* the library's */
#if LWSBT_QUARANTINE
	struct lwsbt_freed {
		void *start;
		struct lwsbt_node *node;
		size_t size;
	} freed[LWSBT_QUARANTINE];	/* the library's */
	unsigned freed_next;		/* the library's */
#endif
};

/* By the mark, readers of memory distinguish a struct lwsbt_heap whose blocks have
 * LWSBT_SPARE_BYTE behind them from a list of lws, which has none; and by its lowest byte, how
 * many: 1 for those up to a multiple of a pointer's size, LWSBT_ALIGN for those up to the end of a
 * chunk. */
#define LWSBT_MARK (0x6c777300u + (LWSBT_WHOLE_CHUNKS ? (uint32_t)LWSBT_ALIGN : 1))

/* The metadata of an allocation to be. */
struct lwsbt_meta {
	struct lwsbt_stack stack;
	uintptr_t thread;		/* these if kept */
	uint64_t time;
	uint32_t sequence;
	uint16_t len;			/* of the blob, bytes; the members are the library's */
	uint8_t form[LWSBT_HEAP_DEPTH];
};

/*
 * lwsbt_meta_gen captures the call stack into m, and returns how many bytes the
 * metadata of an allocation of size bytes takes: to be allocated in addition, at
 * an alignment of align (a power of 2, at most 32768; 0 is malloc's). It returns
 * 0, and counts why, when the allocation has to do without: then allocate size
 * bytes as if there were no such thing. caller is the address to which the
 * allocation function returns, or NULL: frames further in are left out.
 */
size_t lwsbt_meta_gen(struct lwsbt_heap *h, size_t size, size_t align, const void *caller,
	struct lwsbt_meta *m);

/* lwsbt_meta_adjust writes the metadata to true_start, where as many bytes as
 * lwsbt_meta_gen returned, and size, were allocated. It lists it, and returns the
 * program's pointer. */
void *lwsbt_meta_adjust(struct lwsbt_heap *h, void *true_start, const struct lwsbt_meta *m);

/* lwsbt_meta_trim takes the metadata of p, which the program frees, off the list,
 * and returns the true start. Of memory without metadata that is p. It returns
 * NULL where the metadata is damaged, which was reported, or this is an interrupt:
 * leave the memory alone. */
void *lwsbt_meta_trim(struct lwsbt_heap *h, void *p);

/* lwsbt_meta_parse reads the metadata of p, a live allocation. It returns
 * LWSBT_EMPTY if there is none, LWSBT_LENGTH if its links are damaged. */
enum lwsbt_result lwsbt_meta_parse(struct lwsbt_heap *h, struct lwsbt_stack *s, const void *p);

/* The allocator below a heap. */
struct lwsbt_allocator {
	void *(*allocate)(size_t size);		/* as malloc */
	void *(*resize)(void *p, size_t size);	/* as realloc */
	void (*release)(void *p);		/* as free */
	void *(*aligned)(size_t align, size_t size); /* as memalign; NULL if there is none */
};

/*
 * lwsbt_heap_... are malloc, memalign, calloc, realloc and free of a heap. Where
 * there is no memory for metadata, they allocate without. caller is as in
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

/* A walk through the live allocations, the oldest first. Others may allocate and
 * free meanwhile; what is allocated after the beginning is left out. */
struct lwsbt_walk {
	struct lwsbt_walk *more;	/* these are the library's */
	struct lwsbt_node *next, *last;
	void *p;			/* of a record: the program's pointer */
	lwsbt_word size;		/* and the bytes that it asked for */
};

void lwsbt_walk_begin(struct lwsbt_heap *h, struct lwsbt_walk *w);

/* lwsbt_walk_next writes the next record, a blob, to buf and returns its length; 0
 * after the last. flags is LWSBT_KEEP_ADDRESS, to add the address to its user
 * fields, or 0. A blob that is damaged, or longer than cap, is reported and left
 * out; a damaged link ends the walk. At a cap of LWSBT_RECORD_MAX all fit. */
size_t lwsbt_walk_next(struct lwsbt_heap *h, struct lwsbt_walk *w, void *buf, size_t cap,
	unsigned flags);

/* lwsbt_walk_end must follow, once, every lwsbt_walk_begin. */
void lwsbt_walk_end(struct lwsbt_heap *h, struct lwsbt_walk *w);

/* lwsbt_dump writes a dump: ~h#begin, a ~m# line for each live allocation, ~h#end.
 * flags as in lwsbt_walk_next. The records have user fields, as ~h#begin then
 * says, if addresses are asked for or the heap keeps anything. */
void lwsbt_dump(struct lwsbt_heap *h, const struct lwsbt_out *out, uint32_t number,
	const char *why, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
