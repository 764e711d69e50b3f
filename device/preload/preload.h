/*
 * The parts of the preloaded library, liblwsbt.so, which records the heap of a
 * Linux program. docs/btrecord.md says what it does.
 *
 *   hooks.c     malloc, free and the others, as the program calls them
 *   places.c    call stacks that the thread had before
 *   walk.c      others, by rules kept for each return address
 *   rules.c     these
 *   unwind.c    call stacks by others, where those do not reach
 *   cfi.c       such a rule, from the .eh_frame of a module
 *   stacks.c    each distinct call stack once, with its bits encoded
 *   blocks.c    the live allocations, by address
 *   pairs.c     stack and size of an allocation, as a number
 *   modules.c   what is loaded, and when that changes
 *   output.c    lines into the recording's file
 *   record.c    what is done at each allocation and free; events
 *   dump.c      dumps
 *   tail.h      size and user fields of a record, behind its stack's text
 *   base64.c    characters of these
 *   process.c   start, fork, exec, signals, exit
 *
 * Locks are taken in this order: stacks, modules, shards of blocks, pairs, output,
 * memory that is kept. None is held during a call into the C library that could lock:
 * dl_iterate_phdr or malloc (but see hooks.c on realloc).
 */
#ifndef LWSBT_PRELOAD_H
#define LWSBT_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lwsbt.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))

#define FRAMES 31 /* the most that an event has [BT-EVT-2] */

/* ---------------------------------------------------------------- locks */

typedef int lock_t;

void lock_slow(lock_t *l);

/* Whether there is one thread only: then no operation need be atomic. (A signal
 * handler that comes in between finds and leaves things as they were.) */
#if defined(__GLIBC__)
extern char __libc_single_threaded __attribute__((weak));
#define SINGLE (&__libc_single_threaded && __libc_single_threaded)
#else
#define SINGLE false
#endif

static inline bool lock_try(lock_t *l)
{
	if (LIKELY(SINGLE)) {
		bool free = !*(volatile lock_t *)l;
		*(volatile lock_t *)l = 1;
		return free;
	}
	return __atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void lock(lock_t *l)
{
	if (UNLIKELY(!lock_try(l)))
		lock_slow(l);
}

static inline void unlock(lock_t *l)
{
	__atomic_store_n(l, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- threads */

/* What is kept of a thread. In static TLS: no call, and no allocation. */
struct thread {
	bool busy;		/* inside the library: record nothing */
	uint8_t count;		/* of allocations, to look at modules now and then */
	uint32_t tid;
	uintptr_t lo, hi;	/* of its stack; 0: not yet known */
};

extern __thread struct thread self __attribute__((tls_model("initial-exec")));

/* ---------------------------------------------------------------- walk.c */

typedef uint32_t stack_id; /* 0: not known */

/* The registers of a function's caller, at its return from the call. */
struct regs {
	uintptr_t pc, sp, fp;
};

/* Whether this machine's stacks are walked here; others go by the unwinder. */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define WALKS 1
#endif

/* And by what where programs have no tables for it. */
#if defined(__riscv)
#define PROLOGUES lwsbt_capture_riscv
#elif defined(__mips__)
#define PROLOGUES lwsbt_capture_mips
#elif defined(__thumb__)
#define PROLOGUES lwsbt_capture_thumb
#elif defined(__arm__)
#define PROLOGUES lwsbt_capture_arm
#endif

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
#define MODE_BIT 1 /* Thumb, MIPS16: cleared, as the unwinder does */
#else
#define MODE_BIT 0
#endif
#define CALLER ((struct regs){ \
	(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) & ~(uintptr_t)MODE_BIT, \
	(uintptr_t)__builtin_dwarf_cfa(), SAVED_FP})

/* walk returns the call stack from there. */
stack_id walk(const struct regs *from);
void walk_init(void);
void walk_forget(void);		/* modules are gone: so are their rules */
void walk_report(void);		/* of LWSBT_CHECK, at the end */

extern unsigned walk_check;	/* every so many stacks, ask the unwinder as well */

/* ---------------------------------------------------------------- unwind.c */

/* musl-gcc takes the unwinder of glibc's gcc, which wants what only glibc has; where
 * stacks are walked here, it can be done without. */
#if defined(__GLIBC__) || !defined(WALKS)
#define UNWINDS 1
#endif

/* unwind asks the compiler's unwinder for the stack from the frame that returns
 * to pc, the outermost frame first. It returns the number of frames. */
unsigned unwind(uintptr_t pcs[FRAMES], uintptr_t pc);
/* longer replaces a stack of *n frames by that which prologues tell, if it has more:
 * where tables are missing, stacks end. */
void longer(uintptr_t pcs[FRAMES], unsigned *n, uintptr_t pc);
/* stack_limits finds those of the thread's stack. */
void stack_limits(void);
/* readable reports whether the page at an address is there: of stacks that the
 * program made itself no limit is known. */
bool readable(uintptr_t page);

/* ---------------------------------------------------------------- cfi.c */

/* How to leave a frame: where its CFA is, and from there what its caller had. */
enum rule_kind { RULE_NONE, RULE_END, RULE_SP, RULE_FP, RULE_AT_FP, RULE_SIGNAL, RULE_OTHER };

struct rule {
	enum rule_kind kind;
	int32_t cfa;	/* bytes, from the register or what it points to */
	int16_t ra, fp;	/* words, from the CFA; 0: still in the register */
};
#define FP_AT_FP INT16_MIN /* as fp: where the register points */

/* cfi_rule reads the rule at pc from the table of a module. */
struct rule cfi_rule(uintptr_t pc, uintptr_t eh_frame_hdr);

/* ---------------------------------------------------------------- stacks.c */

#define TEXT_STEP 16u

struct stack {
	uint64_t hash;
	uint32_t epoch;		/* of modules: see there */
	uint8_t depth;
	uint8_t rest;		/* 0 to 5 bits that fill no character, in restbits */
	uint8_t restbits;
	bool encoded;
	uint16_t chars;		/* of text */
	char *text;		/* base64 of depth and frames, as far as characters are
				 * whole; there is memory to a multiple of TEXT_STEP */
	uintptr_t pcs[];	/* the outermost first */
};

/* stack_hash returns the hash of the frames that h is of, and one more, inner one.
 * stack_hash_less returns that of the innermost FRAMES alone; outer is that of the
 * others. */
#define HASH_FACTOR ((uint64_t)0x9e3779b97f4a7c15)

static inline uint64_t stack_hash(uint64_t h, uintptr_t pc)
{
	return h * HASH_FACTOR + pc;
}

#define HASH_2 (HASH_FACTOR * HASH_FACTOR)
#define HASH_4 (HASH_2 * HASH_2)
#define HASH_8 (HASH_4 * HASH_4)

static inline uint64_t stack_hash_less(uint64_t h, uint64_t outer)
{
	_Static_assert(FRAMES == 31, "the power of the factor");
	return h - outer * (HASH_8 * HASH_8 * HASH_8 * HASH_4 * HASH_2 * HASH_FACTOR);
}

/* stack_intern returns the stack of these frames, the outermost first. */
stack_id stack_intern(const uintptr_t *pcs, size_t depth, uint64_t hash);

#define STACK_BITS 12
extern struct stack **stack_list[]; /* by the id's upper bits, then by the lowest */

static inline struct stack *stack_get(stack_id id)
{
	return id ? stack_list[id >> STACK_BITS][id & ((1u << STACK_BITS) - 1)] : NULL;
}

const struct stack *stack_encode(struct stack *s);

/* stack_encoded returns a stack with its text, NULL if there is none. Call it under
 * the output lock. */
static inline const struct stack *stack_encoded(stack_id id)
{
	struct stack *s = stack_get(id);

	return LIKELY(!s || s->encoded) ? s : stack_encode(s);
}

void stacks_lock(void);
void stacks_unlock(void);

/* memory that stays: never freed. NULL if there is none */
void *keep(size_t bytes);
void keep_take_lock(void);
void keep_leave_lock(void);
void *pages(size_t bytes); /* by mmap; NULL if there are none */
void pages_free(void *p, size_t bytes);

/* ---------------------------------------------------------------- pairs.c */

/* A pair is a stack, 24 bits, above a size, 40 bits. */
static inline uint64_t pair_of(stack_id stack, size_t size)
{
	uint64_t most = ((uint64_t)1 << 40) - 1;

	return (uint64_t)stack << 40 | (UNLIKELY(size > most) ? most : size);
}

static inline stack_id pair_stack(uint64_t pair) { return (stack_id)(pair >> 40); }
static inline uint64_t pair_size(uint64_t pair) { return pair & (((uint64_t)1 << 40) - 1); }

/* Their numbers, from 1 to PAIRS - 2. */
#define PAIR_BITS 23
#define PAIRS ((uint32_t)1 << PAIR_BITS)
#define PAIR_MASK (PAIRS - 1)
#define PAIR_LIST_BITS 12
extern uint64_t *pair_list[]; /* by the number's upper bits, then by the lowest */

static inline uint64_t *pair_at(uint32_t n)
{
	return &pair_list[n >> PAIR_LIST_BITS][n & ((1u << PAIR_LIST_BITS) - 1)];
}

bool pairs_init(void);
/* pair_number returns a pair's number, 0 if there is no memory for it. It wants the
 * lock of a shard of blocks. */
uint32_t pair_number(uint64_t pair);
extern bool pairs_crowded;	/* pairs_sweep is due */
/* The following want blocks_lock. pairs_marks returns a bit for each number, all 0, to
 * be set for those in use; NULL if there is no memory. */
uint32_t *pairs_marks(size_t *bytes);
void pairs_sweep(const uint32_t *marks);

/* ---------------------------------------------------------------- blocks.c */

struct block {
	uintptr_t addr;
	uint64_t size;
	stack_id stack;
};

struct totals {
	uint64_t allocations, frees, allocated; /* allocated: bytes, ever */
	uint64_t live, bytes;
};

bool blocks_init(void);
bool blocks_add(uintptr_t addr, size_t size, stack_id stack);
/* blocks_take removes the block at addr, and reports whether there was one. */
bool blocks_take(uintptr_t addr, struct block *b);
void blocks_back(const struct block *b); /* undoes blocks_take */
void blocks_lock(void);
bool blocks_try_lock(void);
void blocks_unlock(void);
/* The following want blocks_lock. */
void blocks_each(void (*f)(const struct block *, void *), void *arg);
void blocks_totals(struct totals *t);

/* Bytes; words, since not every machine has atomic operations on more. */
extern uintptr_t blocks_peak, blocks_live;

/* ---------------------------------------------------------------- modules.c */

extern bool modules_stale;	/* something may have changed: look */
extern uint32_t modules_epoch;	/* counts unloads: before and after one, an address
				 * may be of different modules */
extern uintptr_t loader_lo, loader_hi; /* the dynamic linker's code */

void modules_init(void);
void modules_check(void);
void modules_before_fork(bool threads);
void modules_after_fork(bool child);
bool modules_careful(void);	/* look where the loader was at work alone */
void modules_write(void);			/* the whole map; under the output lock */
/* modules_table finds the .eh_frame_hdr for pc, 0 if its module has none, and
 * reports whether it is of a module at all. */
bool modules_table(uintptr_t pc, uintptr_t *table);
/* modules_moved reports whether pc, of an epoch before, is not of the module that
 * is there now. */
bool modules_moved(uintptr_t pc, uint32_t epoch);
void modules_write_epoch(uint32_t epoch);	/* the map as it was then */
bool modules_try_lock(void);
void modules_lock(void);
void modules_unlock(void);

/* ---------------------------------------------------------------- output.c */

extern bool on;		/* recording */
extern lock_t out_lock;

bool out_open(const char *path, bool children);
void out_close(void);		/* writes what there is */
void out_drop(void);		/* in the child of a fork */
char *out_line(size_t max);	/* room for a line; NULL: not recording */
void out_commit(char *end);	/* the line ends here */
void out_flush(void);
void say(const char *text, const char *detail); /* to standard error */
uint64_t now(void);		/* microseconds since the recording began */
uint64_t now_coarse(void);
uint64_t clock_begin(void);	/* begins anew; returns Unix time in microseconds */

/* Characters without printf, which could allocate. */
char *put_text(char *p, const char *text);
char *put_dec(char *p, uint64_t v);
char *put_hex(char *p, uint64_t v);

/* ---------------------------------------------------------------- record.c */

extern bool with_events;
extern unsigned events_queued;	/* events not yet written; under the output lock */
void events_write(void);	/* has them in the buffer */

void record_alloc(void *p, size_t size, const struct regs *from);
/* record_free of a block that the program frees: call before it is free. */
void record_free(void *p);
/* record_move of a block that realloc has to move: real carries it out. */
void *record_move(void *p, size_t size, const struct regs *from, void *(*real)(void *, size_t));

/* ---------------------------------------------------------------- dump.c */

extern unsigned long dump_every; /* milliseconds, or 0 */
extern bool dump_at_peak;
extern int dump_wanted;		/* by a signal that came at the wrong moment */

void record_boot(void);
bool dump(const char *why, bool wait); /* reports whether it could, if not to wait */
void write_totals(void);	/* under both locks */
void dump_due(void);
void at_peak(void);

/* due writes the dumps that are. */
static inline void due(void)
{
	if (UNLIKELY(__atomic_load_n(&dump_wanted, __ATOMIC_RELAXED) || dump_every))
		dump_due();
}

/* ---------------------------------------------------------------- process.c */

void process_init(void);
void finish(const char *why);
extern pid_t owner;		/* the process that records */

/* ---------------------------------------------------------------- hooks.c */

void hooks_init(void);
bool hooks_mine(void); /* reports whether the program's malloc is ours */

#endif
