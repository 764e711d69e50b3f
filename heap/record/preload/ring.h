/*
 * The shared memory between a recorded program and its recorder: the one
 * description of it, from which "go test ./heap/record -run Layout -update" makes
 * layout.go. btrecord makes a file of this layout, and names it to the
 * program in the environment variable LWSBT_RING. The program writes records into
 * rings, a ring for each thread; btrecord reads them.
 *
 *   0              header, 4096 bytes
 *   slot_at        slots, RING_SLOT bytes each: who has a ring, and how full it is
 *   area_at        areas, area bytes each, that of slot i at area_at + i * area: the ring,
 *                  words of 8 bytes, and RING_SLACK more
 *   rules_at       rules for code without unwind tables, RING_RULES bytes
 *
 * The file is sparse; all bytes not described below are zero. Numbers have the byte
 * order of the machine; the layout is the same for programs of 32 and 64 bits.
 */
#ifndef LWSBT_RING_H
#define LWSBT_RING_H

#include <stdint.h>

#define RING_ENV "LWSBT_RING"		/* the file's absolute path */
#define RING_MAGIC "lwsbtrng"
#define RING_VERSION 8
#define RING_SLOT 256u			/* bytes */
#define RING_RULES (4u << 20)		/* bytes */
#define RING_TABLES 255u
#define RING_RECORD_MAX 1088u		/* words: the longest record */
#define RING_SLACK RING_RECORD_MAX
#define RING_DEPTH 1024u		/* frames of a stack, at most */
#define RING_PLACES 32u
#define RING_DIED 0x40000000u		/* in alive */

/* Both sides access these fields at the same time: only by atomic operations. */
#define RING_SHARED

/*
 * The header. btrecord fills it before the program starts. The comments of fields describe
 * later changes.
 */
struct ring_header {
	char magic[8];			/*   0 */
	uint32_t version;		/*   8 */
	uint32_t slots;			/*  12: 1 to 65536; 4096 is a good number */
	uint32_t words;			/*  16: of a ring, a power of two, 4096 to 2^24; 32768 is good */
	uint32_t slot_at;		/*  20: bytes, a multiple of 4096 */
	uint64_t area_at;		/*  24: bytes, a multiple of 65536 */
	uint64_t area;			/*  32: bytes, a multiple of 65536, at least
					 *      8 * (words + RING_SLACK) */
	uint32_t clock;			/*  40: RING_COUNT or RING_CYCLES */
	uint32_t children;		/*  44: 1: processes other than root are recorded, too */
	uint64_t sample;		/*  48: mean distance of samples in bytes; 0: everything */
	uint32_t recorder;		/*  56: its pid */
	RING_SHARED uint32_t alive;	/*  60: 0, or a word in the robust list of a thread of btrecord, not
					 *      0: the kernel sets RING_DIED as btrecord ends, however it does */

	RING_SHARED uint32_t mode;	/*  64: RING_ALLOCS | ...; changes at any time */
	RING_SHARED uint32_t root;	/*  68: 0; then pid of the first process that is recorded */
	RING_SHARED uint32_t slotless;	/*  72: tally of the events lost as no slot was free */
	RING_SHARED uint32_t top;	/*  76: tally of slots: no later one was ever taken. The program raises it
					 *      before the slot is TAKEN */
	uint64_t rules_at;		/*  80: bytes, a multiple of 65536 */
	uint32_t pad1[10];

	RING_SHARED uint32_t asleep;	/* 128: futex: btrecord sets 1 and waits while it is 1; the
					 *      program sets 0 and wakes it */
	RING_SHARED uint32_t beat;	/* 132: btrecord adds 1 each time it has looked at the rings,
					 *      at least once per second */
	uint32_t pad2[14];

	RING_SHARED uint32_t count;	/* 192: with RING_COUNT, the next stamp */
	uint32_t pad3[15];
};

/*
 * A tally is a number that the program counts up to at most RING_TALLY_MAX, with a check value:
 *
 *   31       20 19              0
 *  | check     | n              |  check = the upper 12 bits of n * RING_TALLY mod 2^32
 */
#define RING_TALLY_BITS 20
#define RING_TALLY_MAX 0xfffffu
#define RING_TALLY 0x9e3779b1u

/*
 * Stamps order the records of all rings. Bits 16 to 63 of a record's word 0.
 *
 * RING_CYCLES: the machine's cycle counter (x86: the TSC; AArch64: CNTVCT_EL0; on no
 * other machine), modulo 2^48: a day at 3 GHz. RING_COUNT: header.count, which each record adds
 * 1 to, modulo 2^32. Compare stamps by the sign of their difference, of 48 or 32 bits.
 *
 * btrecord reads the clock (count: a load) as t0, then a full fence, then top, then each
 * slot's state and head. It processes the records stamped before t0 in the order of their stamps; of equal
 * stamps, RING_FREED and RING_MOVE_BEGINS come first. Later records wait for the next round.
 * Within a ring, the order of records is the order of events: a stamp that is less than
 * the one before counts as equal to it.
 */
enum ring_clock { RING_COUNT, RING_CYCLES };
#define RING_STAMP_BITS 48

enum ring_mode {
	RING_ALLOCS = 1,	/* record allocations */
	RING_FREES = 2,		/* record frees and moves */
	RING_LOSSY = 4,		/* drop what a full ring does not take, and count it */
};

/* A slot: four lines of 64 bytes. */
struct ring_slot {
	RING_SHARED uint32_t state;	/*   0: enum ring_state */
	uint32_t pid, tid;		/*   4, 8 */
	uint32_t reserved;		/*  12 */
	uint64_t image;			/*  16: the stamp at the start of the process or of the program in
					 *      it: (pid, image) is what is recorded as one */
	uint32_t pad0[10];

	RING_SHARED uint32_t head;	/*  64: words published: store-release by the program */
	RING_SHARED uint32_t lost;	/*  68: tally of the events that this ring lost so far (RING_LOSSY). The
					 *      program adds before it publishes a later record */
	RING_SHARED uint32_t again;	/*  72: ~head, stored before it. If it is not once the thread has
					 *      ended, the program wrote over one of them */
	uint32_t pad1[13];

	RING_SHARED uint32_t tail;	/* 128: words read: store-release by btrecord */
	RING_SHARED uint32_t waiting;	/* 132: 1 while the thread waits as the ring is full */
	RING_SHARED uint32_t room;	/* 136: futex: after it stored tail, with a full fence, btrecord adds 1
					 *      here and wakes one if waiting is 1 */
	uint32_t pad2[13];

	uint32_t pad3[16];
};

/*
 * The program takes a free slot by a compare-and-swap to FILLING, fills pid to image,
 * and stores TAKEN with release. LEFT: the thread is through with it. btrecord reads the
 * rest, sets head, lost, again, tail, waiting and room to 0, then stores FREE with release. It
 * does the same with a slot that is not FREE and whose process or thread is gone, or
 * whose process has another image by now (an IMAGE record with its pid).
 */
enum ring_state { RING_FREE, RING_TAKEN, RING_LEFT, RING_FILLING };

/*
 * Records. head and tail count words modulo 2^32; word w is at w modulo words of the
 * ring. A record is contiguous: it begins before the ring's end and may end in the slack
 * behind it. If it reaches or passes the ring's end, the next record begins at the next
 * multiple of words.
 *
 *    63                        16 15         5 4       4 3        0
 *   | stamp                      | check      | flag    | kind     |  word 0
 *
 * check is over all words of the record, word 0 without check. It
 * begins with what the ring and the place of the record are, so that a record that the program
 * wrote over, or that is left from another round, does not pass for one. Modulo 2^64:
 *
 *   h = image ^ tid << 32 ^ the record's place (head as it was before the record) ^ each of its words
 *   check = the upper 11 bits of h * RING_CHECK
 *
 * ALLOCATED, MOVE_ENDS: word 1 address, word 2:
 *
 *    63     56 55     48 47                                 0
 *   | 0       | place   | size, bytes                        |
 *
 * With flag RING_FRAMES, word 3:
 *
 *    63     40 39     32 31            16 15                0
 *   | 0       | end     | kept           | more              |
 *
 * The stack is the outermost kept frames of the last stack that a record of this ring
 * with RING_FRAMES had, then `more` frames, which follow as return addresses (a word
 * each), the outermost first; kept + more is at most RING_DEPTH. It is now the stack of
 * this place, if that is less than RING_PLACES; else it has none. Without RING_FRAMES
 * the stack is that of the place. A slot begins without last stack and without places.
 * The frame of an interrupted function has the address of the interrupted instruction. The
 * next frame inwards, the kernel's trampoline, shows this: its address is in the C library
 * or vDSO.
 */
enum ring_kind {
	RING_ALLOCATED = 1,	/* 3 words and the stack's */
	RING_FREED = 2,		/* 2 words: the address */
	RING_MOVE_BEGINS = 3,	/* 2 words: the old address; the ring's next event is one of the following
				 * three, if it is not lost */
	RING_MOVE_ENDS = 4,	/* as ALLOCATED: the block is here now */
	RING_MOVE_FAILED = 5,	/* 1 word: the block stays as it was */
	RING_MOVE_FREED = 6,	/* 1 word: the block is freed, or not recorded any more */
	RING_MODULE = 7,	/* see below */
	RING_UNLOADED = 8,	/* 1 word: modules of this image may be gone. Each one that remains has another
				 * RING_MODULE before a stack has it */
	RING_IMAGE = 9,		/* see below: the first record of an image */
	RING_ELSEWHERE = 11,	/* 1 word: modules of a namespace of dlmopen, which have an allocator of
				 * their own, are not recorded */
	RING_EXEC = 12,		/* see below: a program is executed */
};

#define RING_FRAMES 1u		/* flag: frames follow. Of MODULE: most of its code has no unwind tables */
#define RING_CHECK_BITS 11
#define RING_CHECK 0x9e3779b97f4a7c15u

/* Which malloc is recorded. */
enum ring_hooks {
	RING_HOOKS_LIBRARY = 0,	/* that of a shared library */
	RING_HOOKS_PROGRAM = 1,	/* that of the program, whose functions are patched */
	RING_HOOKS_NONE = 2,	/* of a program with its own malloc, only what bypasses it */
};

/* How a stack ends: word 3, end. */
enum ring_end {
	RING_END_OUTERMOST = 0,	/* at the outermost frame */
	RING_END_DEPTH = 1,	/* there are more than RING_DEPTH */
	RING_END_UNKNOWN = 2,	/* no table, and no frame pointer that leads on */
	RING_END_UNREADABLE = 3,/* at memory that cannot be read */
};

/*
 * MODULE and IMAGE: word 2:
 *
 *    63     48 47     40 39     32 31      24 23          16 15           0
 *   | 0       | hooks   | word    | segments | build ID     | path         |
 *
 * word: bytes of a word, 4 or 8, of IMAGE. hooks: enum ring_hooks, of IMAGE. segments: their number, of MODULE. build ID, path:
 * bytes. These follow the other words, build ID first, each filled with zeroes up to a whole word.
 *
 * MODULE: word 1: the load base (address minus address in the file). From word 3 on, two words
 * for each segment: its address in the file, and its size in memory << 3 | its flags (PF_R,
 * PF_W, PF_X). The record comes before the first stack with an address of the module, in any
 * ring of the image. A module without a name has a path of no bytes. The path of the program is that of
 * /proc/PID/exe.
 *
 * IMAGE: word 1: pid (bits 0 to 31), parent's pid (32 to 63); word 3: the parent's image if
 * this process is a fork of one that is recorded, else 0; the path is the program's.
 *
 * EXEC: word 1: pid of the process that executes a program, this one or a child; word 2: bytes of the
 * path, as the process gave it; word 3: a stamp, after which an IMAGE with this pid shows that the
 * program is recorded. The path follows, filled with zeroes up to a whole word. With no path:
 * the process could not execute the one of the EXEC before.
 *
 * Records of other kinds are errors: the ring cannot be read on.
 */
#define RING_PLACE_NONE 255u

/*
 * Rules. The recorder reads the code of a module whose calls have no unwind tables, before the program
 * begins or once it reads the module's record, and adds a table here. Programs map the area for
 * reading only. It begins with struct ring_tables. Of each table, number and at are written before
 * count. A table has number entries of two words, at bytes from the beginning of the area: a return
 * address minus the module's load base, ascending, and the rule of the frame that has it:
 *
 *   63    61 60              33 32          17 16          1  0
 *  | kind   | cfa, signed 28   | ra, signed 16| fp, signed 16|c|
 *
 * kind: enum ring_rule. cfa: bytes, from the register to the CFA. ra, fp: words, from the CFA to where
 * the return address and the caller's frame pointer are; 0: still in the register. c: the rule
 * is from code, and may be wrong: a caller found by it is used only if a call is before it.
 */
enum ring_rule { RING_RULE_NONE, RING_RULE_END, RING_RULE_SP, RING_RULE_FP, RING_RULE_AT_FP, RING_RULE_SIGNAL, RING_RULE_OTHER };

struct ring_table {
	uint64_t key;			/* of the module: hash of the page that its file begins with. h = 0; for each
					 * of its 512 words w of 8 bytes: h = (h ^ w) * RING_CHECK, h ^= h >> 32 */
	uint32_t at, number;
};

struct ring_tables {
	RING_SHARED uint32_t count;	/* of tables: store-release by btrecord */
	uint32_t pad0[3];
};

#endif
