/*
 * lwsbt/heap.h: call stacks in front of allocations, and dumps of them. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_HEAP_H
#define LWSBT_INCLUDE_HEAP_H

#include "capture.h"
#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The most frames that the heap keeps of a call stack, 1 to 31; fewer make struct
 * lwsbt_meta smaller. It cannot be 32, which a blob writes as it writes 0.
 */
#ifndef LWSBT_HEAP_DEPTH
#define LWSBT_HEAP_DEPTH 31
#endif

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

/* What an allocator says of itself, in bytes. */
struct lwsbt_numbers {
	size_t size;		/* of the heap */
	size_t free, largest;	/* now: all, and the largest block */
	size_t least;		/* that was ever free */
};

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

	/* Sets what the allocator says of itself, for ~h#heap; returns 0 if it does not. */
	int (*numbers)(void *arg, struct lwsbt_numbers *n);
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
