/*
 * lwsbt/heap.h: call stacks in front of allocations, and dumps of them. See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_HEAP_H
#define LWSBT_INCLUDE_HEAP_H

#include "capture.h"
#include "device.h"

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
	LWSBT_CHECK_UNTRACKED = 16,
	LWSBT_KEEP_CHECK = 32	/* for lwsbt_dump: readers can tell a damaged line [BT-UF-4] */
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
 * size, and LWSBT_ALIGN if they extend to the end of a chunk. */
#define LWSBT_MARK (0x6c777300u + (LWSBT_WHOLE_CHUNKS ? (uint32_t)LWSBT_ALIGN : 1))

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
 * 11 and a word for each, and the user fields of what is kept, the address and the check. */
#define LWSBT_RECORD_MAX ((6 + LWSBT_HEAP_DEPTH * (11 + LWSBT_WORD_BITS) + 8 + LWSBT_WORD_BITS + 7) / 8 + 2 + \
	(77 + 3 * (13 + LWSBT_WORD_BITS) + 29 + 7) / 8)

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
 * fields, LWSBT_KEEP_CHECK, both or 0. A blob that is damaged, or longer than cap, is reported and left
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
