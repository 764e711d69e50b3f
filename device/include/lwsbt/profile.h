/*
 * lwsbt/profile.h: live memory counted by call path, in a table of fixed size, and dumps of it.
 * See lwsbt.h.
 */
#ifndef LWSBT_INCLUDE_PROFILE_H
#define LWSBT_INCLUDE_PROFILE_H

#include "heap.h"
#include "paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The table is a tree of frames, and an entry for each path that holds something. The number of an
 * entry stays the same while a block of it lives. Entry 0 is for what has no place: it counts "all
 * others", the path of no frames.
 *
 *   node, a word    | mark | offset of the frame, and 1 | number of the node outside it |
 *                     1 bit                               as many bits as the numbers take
 *
 * A node's number is its place and 2; 0 and 1 are where paths of LWSBT_PATH_WHOLE and
 * LWSBT_PATH_CUT begin. A frame outside the code takes three nodes.
 */
struct lwsbt_entry {
	uint16_t node;		/* innermost frame */
	uint8_t size_class;	/* with sample: 4 for each power of 2; else 0 */
	uint8_t bits;		/* the library's */
	uint32_t live;		/* blocks */
	size_t bytes;		/* that they asked for */
};

/*
 * A block has two words before the program's memory, and behind it the spare bytes of heap.h:
 *
 *   true start                         what the program gets
 *   | size          | check | number  | size bytes ... | spare |
 *     a word          the upper and the lower 16 bits
 *
 * The check is of address, size and number: a write past the end of the block before, or before
 * the beginning of this one, changes it.
 */
struct lwsbt_block {
	uintptr_t size, tag;
};

#define LWSBT_PROFILE_NODES_MAX 16382
#define LWSBT_PROFILE_ENTRIES_MAX 65534

/*
 * A profile. Set the first group before the first allocation; node and entry are
 * arrays of zeros. 3 or 4 nodes for each path, and a tenth more of both, are a beginning: see
 * docs/device.md. Read the second group whenever you like.
 */
struct lwsbt_profile {
	struct lwsbt_heap *heap;	/* capture, ctx, port, skip, post; its counters are used, its list is not */
	uintptr_t *node;
	struct lwsbt_entry *entry;
	uint16_t nodes;			/* 16 to LWSBT_PROFILE_NODES_MAX */
	uint16_t entries;		/* 17 to LWSBT_PROFILE_ENTRIES_MAX */
	struct lwsbt_code code;		/* frames elsewhere take three nodes */
	uint32_t sample;		/* mean bytes between sample points, below 2^27; 0: all blocks are counted */
	uint32_t random;		/* seed for sample, not 0; 0: always the same */

	uint32_t cut;			/* allocations so far that were counted under an outer frame of theirs */
	uint32_t failed;		/* allocations so far for which there was no memory */

	size_t left;			/* the library's */
	uint32_t seen;			/* the library's: of failed */
	uint8_t low;			/* the library's */
};

/*
 * lwsbt_profile_... are malloc, memalign, calloc, realloc and free as lwsbt_heap_... are.
 * Memory without the two words is freed and resized as it is. Damage to a block's words
 * makes it memory without; with LWSBT_CHECK_UNTRACKED in heap->flags, all such memory is damage
 * (LWSBT_DAMAGED_BLOB), and is not freed. Events of the port are not called. They take the lock once
 * for an allocation, while its frames are looked up, and not during capture.
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
 * For an allocator of your own: lwsbt_profile_count counts a block of size bytes under its
 * stack, innermost frame first, and returns the number of the entry; lwsbt_profile_uncount takes
 * it back. base is LWSBT_PATH_WHOLE, or LWSBT_PATH_CUT if
 * outer frames were not captured.
 */
unsigned lwsbt_profile_count(struct lwsbt_profile *p, const struct lwsbt_stack *s, unsigned base);
void lwsbt_profile_uncount(struct lwsbt_profile *p, unsigned number, size_t size);

/* lwsbt_profile_sampled reports whether a block of size bytes is to be counted: always, without
 * sample; else with a probability of 1 - exp(-size / sample). [BT-DUMP-5] */
int lwsbt_profile_sampled(struct lwsbt_profile *p, size_t size);

/* ------------------------------------------------------------------- dumps */

enum {
	LWSBT_DIFF = 1,		/* only what changed since the last dump, if that was ended */
	LWSBT_NAMES = 2,	/* names for paths that were written before; each is repeated every 16 dumps */
	LWSBT_SORT = 4		/* in the order of paths: a third shorter; takes time by the square of the entries */
};

/* A dump, for all of a boot: zeros at first, and then out and max of lines set. */
struct lwsbt_profile_dump {
	struct lwsbt_paths lines;

	struct lwsbt_profile *p;	/* the library's */
	uint32_t base, blocks, cut;
	size_t bytes;
	uint16_t at;
	uint8_t flags, ended;
};

/*
 * lwsbt_profile_begin begins a dump: it writes ~h#begin, and ~h#heap if the port has numbers.
 * Each call of lwsbt_profile_next writes at most one entry, and after the last one ~h#end, and
 * removes what holds nothing; it returns 0 then, else 1. Others may allocate and free meanwhile: each
 * entry is as it was when it was written. One dump at a time. flags are LWSBT_DIFF and the
 * like; why is the reason, or NULL.
 */
void lwsbt_profile_begin(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);
int lwsbt_profile_next(struct lwsbt_profile_dump *d);

/* lwsbt_profile_dump does all of it. */
void lwsbt_profile_dump(struct lwsbt_profile *p, struct lwsbt_profile_dump *d, uint32_t number,
	const char *why, unsigned flags);

/* lwsbt_low reports whether to dump because memory is low: allocations failed since the last
 * call, or free, in bytes, is below limit and was not at the last call. It is below limit until it is over
 * limit and a quarter. One thread calls it. */
int lwsbt_low(struct lwsbt_profile *p, size_t free, size_t limit);

/*
 * The same dump of a heap that keeps its stacks in front of the blocks (heap.h): the blocks are
 * added up in LWSBT_SUMS slots. Where these do not suffice, a path has several entries.
 */
#ifndef LWSBT_SUMS
#define LWSBT_SUMS 64
#endif

struct lwsbt_sum {
	uint32_t name, live;
	size_t bytes;
};

/* lwsbt_dump_paths writes a dump of h by call path. sums has LWSBT_SUMS slots, of any contents. flags
 * is LWSBT_NAMES, to write names alone, or 0. */
void lwsbt_dump_paths(struct lwsbt_heap *h, struct lwsbt_paths *w, struct lwsbt_sum *sums,
	uint32_t number, const char *why, unsigned flags);

/* ----------------------------------------------------------------- headers */

/* What the boot line says of the device. NULL and 0 leave a key out. [BT-HEAD-6] */
struct lwsbt_device {
	const char *prog;		/* of the program */
	const char *dev;		/* of the device: a serial number or the like */
	const char *fw;			/* version of the firmware */
	const void *build;		/* the ELF file's .note.gnu.build-id, 4-byte aligned */
	struct lwsbt_code code;
	struct lwsbt_range heap;
};

/* lwsbt_head_device writes the ~h#boot line; lwsbt_head_boot is the one for Linux. */
void lwsbt_head_device(const struct lwsbt_out *out, const struct lwsbt_device *d);

/* lwsbt_head_heap writes a ~h#heap line. time is in microseconds since boot, or LWSBT_NONE. */
void lwsbt_head_heap(const struct lwsbt_out *out, const struct lwsbt_numbers *n, uint64_t time);

/* lwsbt_head_thread writes a ~h#thread line: the name of a thread by the number that the port gives it. */
void lwsbt_head_thread(const struct lwsbt_out *out, uintptr_t thread, const char *name);

/*
 * LWSBT_NOTE_CODE(shift, start, end) and LWSBT_NOTE_HEAP(start, end), at file level, each once in a
 * program, tell a reader of the ELF file where code and heap are, by symbols of the linker script
 * (char arrays); LWSBT_NOTE_TEXT("1.2.3") the version. With --gc-sections, the linker script keeps the
 * section by KEEP(*(.note.lwsbt)); it need not be loaded. [BT-NOTE-1]
 */
#define LWSBT_NOTE_(name_, type_, ...) \
	__attribute__((section(".note.lwsbt"), used, aligned(4))) static const struct __attribute__((packed)) { \
		uint32_t namesz, descsz, type; char name[8]; __VA_ARGS__; \
	} name_
#define LWSBT_NOTE_CODE(shift_, start_, end_) \
	LWSBT_NOTE_(lwsbt_note_code, 1, uint32_t shift, count; const void *at[2]) = \
		{ 6, 8 + 2 * sizeof(void *), 1, "lwsbt", shift_, 1, { start_, end_ } }
#define LWSBT_NOTE_TEXT(text_) \
	LWSBT_NOTE_(lwsbt_note_text, 2, char text[(sizeof(text_) + 2) / 4 * 4]) = \
		{ 6, sizeof(text_) - 1, 2, "lwsbt", text_ }
#define LWSBT_NOTE_HEAP(start_, end_) \
	LWSBT_NOTE_(lwsbt_note_heap, 3, const void *at[2]) = { 6, 2 * sizeof(void *), 3, "lwsbt", { start_, end_ } }

#ifdef __cplusplus
}
#endif

#endif
