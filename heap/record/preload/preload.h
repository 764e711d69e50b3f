/*
 * The preloaded library, liblwsbt.so, which records the heap of a Linux program. What
 * it writes is described in ring.h; btrecord reads it. heap/docs/btrecord.md says what that
 * gives.
 *
 *   hooks.c     malloc, free and the others, as the program calls them
 *   record.c    records into the thread's ring
 *   sample.c    which blocks are recorded, where not all are
 *   slots.c     rings: taking one, waiting while it is full, leaving it
 *   file.c      the file that has them
 *   process.c   start, fork
 *   exec.c      programs that the process executes
 *   attach.c    start in a process that runs already
 *   program.c   functions of programs with their own malloc
 *   patch.c     patching such functions
 *   plain.c     memcpy and others, without vector registers
 *   places.c    call stacks that the thread had before
 *   walk.c      others, frame by frame
 *   walk_code.c stacks of machines without tables
 *   rules.c     how to leave a frame, for each return address
 *   cfi.c       such a rule, from the .eh_frame of its module
 *   modules.c   loaded modules
 *   memory.c    which memory can be read
 *
 * All runs inside calls of the program's, in any thread, in signal handlers, after
 * fork. So in a hook there is no lock and no allocation. The only system calls are those
 * that allocators make: mprotect, mremap and munmap where a ring is taken, and futex
 * where it is full, or where memory that was not read before has to be checked. The
 * program may have a filter that kills it for any other:
 *
 *   the start                  openat, read, fstat, mmap, madvise, fcntl, close, readlink and others
 *   a thread's first event     mprotect, mmap; for each eighth thread mremap and munmap
 *   half a ring is full        futex, to wake btrecord; all of it: futex, to wait
 *   other threads' stacks      futex for each page that was not read before
 *   dlopen                     mprotect
 *   exec, posix_spawn          getpid, access, fstat, fcntl
 *
 * A process in another mount namespace with its own /proc gets the memory through an abstract socket.
 */
#ifndef LWSBT_PRELOAD_H
#define LWSBT_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))
#define WORD sizeof(uintptr_t)
#define PAGE ((uintptr_t)4096) /* bytes; larger pages have several of these */

static inline uintptr_t page_end(uintptr_t at)
{
	return (at | (PAGE - 1)) + 1;
}

/* ---------------------------------------------------------------- threads */

#define LEVELS 4u

struct own;

/* What is kept of a thread in static TLS, where access needs no call. */
struct thread {
	struct own *own[LEVELS];	/* the ring of each level; NULL: none taken */
	uint8_t level;			/* > 0: in the recording of an event. What comes in then is a
					 * signal handler's, or of a function that the recording calls */
	uint8_t rounds;			/* of the thread's destructors */
	bool first;			/* the stack is that of the program's first thread */
	bool strict;			/* no system calls, and no clock: see prctl in process.c */
	uint32_t tid;
	uint32_t slotless;		/* events since a ring was last looked for */
	int64_t left;			/* bytes to the next sample */
	uint64_t random;		/* 0: not yet begun */
	uintptr_t lo, hi;		/* of its stack: memory that can be read; 0: not known */
	uintptr_t gap;			/* no part of its stack is below */
	uintptr_t outer;		/* the frame of a call of an allocator that may call its own functions
					 * by their names; 0: none */
	uintptr_t outer_block;		/* what that call frees or moves; 0: nothing */
};

extern __thread struct thread self __attribute__((tls_model("initial-exec")));

/* ---------------------------------------------------------------- process.c */

/* The page that reads as 0 in a forked child. ring is NULL where nothing is recorded. */
struct gate {
	struct ring_header *ring;
	pid_t child;		/* the process, if the C library forked it */
};
extern struct gate *gate;
/* What the header's fields that do not change were at the start: the program may write over the header. */
extern struct ring_header fixed;
/* The rules that btrecord made, for reading only. */
extern const struct ring_tables *tables;

/* begin starts recording, at the first event of a process, and reports whether it is
 * recorded. */
bool begin(void);
extern uint64_t image;
extern uint8_t program_hooks;	/* enum ring_hooks */
extern char **environ;

/* ---------------------------------------------------------------- hooks.c */

extern uintptr_t allocator_lo, allocator_size; /* calls from there are the allocator's own work */

/* inner reports whether a call comes from within another one. After a siglongjmp out of
 * that one, the next call from a frame further out ends it. */
static inline bool inner(uintptr_t frame)
{
	return self.outer && frame < self.outer;
}

/* enter_allocator begins a call of the allocator, and returns what self.outer is to be after it. */
static inline uintptr_t enter_allocator(void)
{
	uintptr_t before = self.outer;

	self.outer = (uintptr_t)__builtin_frame_address(0);
	return before;
}

bool own_work(uintptr_t caller);

/* passes reports whether an event is not the program's, but of the allocator's own work. */
static inline bool passes(uintptr_t caller)
{
	return UNLIKELY(caller - allocator_lo < allocator_size) || (UNLIKELY(self.outer) && own_work(caller));
}

/* ---------------------------------------------------------------- walk.c */

/* Whether stacks are walked by tables and frame pointers; elsewhere the code of
 * functions tells. */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define WALKS 1
#endif

/* The registers of a function's caller, at its return from the call. */
struct regs {
	uintptr_t pc, sp, fp;
};

/* CALLER fills a struct regs in the function that the program called. It wants
 * that function compiled with a frame pointer. */
#if defined(__riscv)
#define SAVED_FP (((uintptr_t *)__builtin_frame_address(0))[-2])
#elif defined(WALKS)
#define SAVED_FP (((uintptr_t *)__builtin_frame_address(0))[0])
#else
#define SAVED_FP 0
#endif
#if defined(__arm__) || defined(__mips__)
#define MODE_BIT 1 /* Thumb, MIPS16 */
#else
#define MODE_BIT 0
#endif
#define CALLER ((struct regs){ \
	(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) & ~(uintptr_t)MODE_BIT, \
	(uintptr_t)__builtin_dwarf_cfa(), SAVED_FP})

/* Frames, outermost first, and other words that were read for them: see walk.c. */
struct word {
	uintptr_t at, value;
};
#define OTHERS (2 * RING_DEPTH)

struct last {
	uint64_t salt;
	unsigned n;
	bool foreign;		/* not on the thread's stack */
	uint8_t end;		/* enum ring_end */
	uintptr_t top;		/* all words that were read are below */
	uintptr_t pc[RING_DEPTH], sp[RING_DEPTH], fp[RING_DEPTH];
	uintptr_t ra_at[RING_DEPTH];	/* where the pc of the next frame outwards was read */
	uint16_t others[RING_DEPTH];	/* where the frame's words end in other */
	bool by_fp[RING_DEPTH];	/* its caller depends on fp */
	struct word other[OTHERS];	/* other words that were read */
};

#define PLACE_WORDS 64

struct place {
	uintptr_t pc, sp, fp;
	uint32_t salt;
	uint16_t words, frames;	/* of at: all, and the first ones; no words: an empty place */
	uint16_t far;		/* the largest of at */
	uint8_t next;		/* the place of the allocation after it */
	bool by_fp;
	uint16_t at[PLACE_WORDS];
	uintptr_t pcs[PLACE_WORDS];
};

/* A frame of a walk, innermost first, and where its words were read; 0: they were not. */
struct step {
	uintptr_t pc, sp, fp, cfa_at, ra_at, fp_at;
	bool by_fp;
};

struct walked {
	unsigned n;		/* steps */
	unsigned joined;	/* then come so many frames of the last stack */
	bool again;		/* the next walk may join it */
	uint8_t end;
	uintptr_t top;
	struct step step[RING_DEPTH];
};

/* What cfi_rule would otherwise have on the stack, which may be small. */
struct cfi_work {
	uint64_t word[32];
};

/* What the program keeps of each ring, in memory that is not shared. */
struct own {
	uint64_t *words;		/* the ring */
	uint32_t head, limit, mask;	/* at limit, see make_room */
	uint64_t seed;			/* of checks */
	struct ring_slot *slot;
	uintptr_t entered;		/* the frame that records the last event */
	uint8_t before;			/* the place of the last stack */
	struct last last;
	struct place place[RING_PLACES];
	struct walked walked;
	struct cfi_work work;
};

/* A stack as it goes into a record. */
struct stack {
	unsigned place;		/* RING_PLACE_NONE: none */
	bool frames;		/* what follows is of use */
	unsigned kept, more;
	uint8_t end;
	const uintptr_t *pcs;	/* the others, outermost first; NULL: see steps */
	const struct step *steps; /* the others, innermost first */
};

/* walk finds the call stack from a function's caller. */
void walk(struct own *o, const struct regs *from, struct stack *s);
void walk_begin(struct own *o);	/* forgets all stacks */
bool walk_start(void);

/* ---------------------------------------------------------------- cfi.c */

/* A rule leads from a frame to its caller: to the CFA, and to the registers saved beside it. */
struct rule {
	enum ring_rule kind;
	int32_t cfa;	/* bytes, from the register or what it points to */
	int16_t ra, fp;	/* words, from the CFA; 0: still in the register */
};
#define FP_AT_FP INT16_MIN /* as fp: where the register points */

struct module {
	uintptr_t base, start, end;	/* load base; its memory */
	uintptr_t table;		/* .eh_frame_hdr; 0: none */
	const char *name;
};

/* cfi_rule reads the rule at pc from the table of its module. w is in use meanwhile. */
struct rule cfi_rule(uintptr_t pc, const struct module *m, struct cfi_work *w);
/* cfi_lacks reports whether most of a module's code has no entry in its table. */
bool cfi_lacks(const struct module *m);

/* ---------------------------------------------------------------- modules.c */

/* module_at finds the module of an address. It takes no lock. */
bool module_at(uintptr_t pc, struct module *m);
/* module_tell puts a record of a module into the ring, if there is none so far. */
bool module_tell(struct own *o, const struct module *m);
void modules_unloaded(struct own *o);
void modules_start(void);
void modules_child(void);	/* in a forked child */
extern uintptr_t loader_lo, loader_size; /* the dynamic linker's code */
extern uintptr_t walk_salt; /* changes as modules are unloaded; stacks and rules of another salt are forgotten */
extern char program_path[];

/* ---------------------------------------------------------------- memory.c */

void memory_start(void);
/* readable reports whether the page of an address can be read. */
bool readable(uintptr_t at);
/* on_stack reports whether sp is on the stack that the thread was started with: then
 * memory from sp to self.hi can be read. */
bool on_stack_slow(uintptr_t sp);

static inline bool on_stack(uintptr_t sp)
{
	return LIKELY(sp - self.lo < self.hi - self.lo) || on_stack_slow(sp);
}

/* pages returns new memory, all zeroes, NULL if there is none. */
void *pages(size_t bytes);

/* ---------------------------------------------------------------- slots.c */

/* own_take returns a ring for a level of the thread, NULL if there is none: the event is
 * counted as lost. */
struct own *own_take(unsigned level);
void own_leave(void);		/* all of the thread */
/* tally_add counts one more: see ring.h. */
void tally_add(uint32_t *t);

/* make_room reports whether another record fits, and waits until it does. */
bool make_room(struct own *o);

static inline struct own *own_at(unsigned level)
{
	return LIKELY(level < LEVELS && self.own[level]) ? self.own[level] : own_take(level);
}

/* reserve returns memory for a record, NULL if it is to be dropped. */
static inline uint64_t *reserve(struct own *o)
{
	if (UNLIKELY((int32_t)(o->head - o->limit) >= 0) && !make_room(o))
		return NULL;
	return o->words + (o->head & o->mask);
}

/* publish ends the record that was reserved, of n words. It fills word 0. */
static inline __attribute__((always_inline)) void publish(struct own *o, uint64_t *w, uint64_t stamp, unsigned flags, unsigned kind, uint32_t n)
{
	uint64_t first = stamp << (64 - RING_STAMP_BITS) | flags << 4 | kind;
	uint64_t h = o->seed ^ o->head ^ first;

	for (uint32_t i = 1; i < n; i++)
		h ^= w[i];
	w[0] = first | h * RING_CHECK >> (64 - RING_CHECK_BITS) << 5;
	if (UNLIKELY((o->head & o->mask) + n > o->mask))
		o->head = (o->head | o->mask) + 1;
	else
		o->head += n;
	__atomic_store_n(&o->slot->again, ~o->head, __ATOMIC_RELAXED);
	__atomic_store_n(&o->slot->head, o->head, __ATOMIC_RELEASE);
}

/* A stamp that is kept: none is 0. */
#define STAMP_MASK (((uint64_t)1 << RING_STAMP_BITS) - 1)

static inline uint64_t count_stamp(void)
{
	return __atomic_fetch_add(&gate->ring->count, 1, __ATOMIC_SEQ_CST);
}

/* The counter is read once all before it is done: else the processor may read it while it
 * still waits for the pointer that another thread allocated. */
static inline uint64_t stamp(void)
{
#if defined(__x86_64__) || defined(__i386__)
	if (LIKELY(fixed.clock == RING_CYCLES)) {
		unsigned cpu;
		if (UNLIKELY(self.strict))
			return image; /* no more than the stamp before: see ring.h */
		return __builtin_ia32_rdtscp(&cpu);
	}
#elif defined(__aarch64__)
	if (LIKELY(fixed.clock == RING_CYCLES)) {
		uint64_t v;
		__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v) :: "memory");
		return v;
	}
#endif
	return count_stamp();
}

/* ---------------------------------------------------------------- record.c */

void record_alloc(void *p, size_t size, const struct regs *from);
/* record_free of a block that the program frees: call before it is free. */
void record_free(void *p, uintptr_t caller);
/* record_end is record_free of a block that may be one that is not recorded. */
void record_end(void *p);
/* record_move of a block by realloc: real carries it out. */
void *record_move(void *p, size_t size, const struct regs *from, void *(*real)(void *, size_t));
void record_exec(pid_t pid, const char *path, uint64_t before);
void record_elsewhere(void);
void record_unloaded(void);

/* Sampling: sampled reports whether an allocation of n bytes is recorded; sample_has
 * whether the block at p was, and forgets it. */
bool sampled_slow(size_t n);
bool sample_has(uintptr_t p);
void sample_add(uintptr_t p);
bool sample_start(void);

static inline bool sampled(size_t n)
{
	if (LIKELY(!fixed.sample))
		return true;
	if (LIKELY((uint64_t)self.left > n)) {
		self.left -= (int64_t)n;
		return false;
	}
	return sampled_slow(n);
}

/* ---------------------------------------------------------------- check.c */

#ifdef LWSBT_CHECK
void check(const struct own *o, const struct stack *s, uintptr_t pc);
#endif

#endif
