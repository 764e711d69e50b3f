/*
 * lwsbt/crash.h: what a crash leaves behind, as lines of text. See lwsbt.h; adapters/crash.c has the lines.
 */
#ifndef LWSBT_INCLUDE_CRASH_H
#define LWSBT_INCLUDE_CRASH_H

#include <stdint.h>

#include "codec.h"
#include "paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The program defines lwsbt_crash_port. The handler runs on a stack of its own with interrupts off, and calls no
 * function but put and end: put waits for the port instead of an interrupt.
 */
struct lwsbt_crash_port {
	struct lwsbt_out out;
	const struct lwsbt_range *ram;	/* memory that may be read, in order of importance */
	uint8_t ram_count;
	uint8_t all;			/* 0: stacks; 1: after the stacks, all of ram */
	const void *stack_end;		/* of the stack of main and interrupts; NULL: by the vector table of a Cortex-M,
					 * else LWSBT_CRASH_MOST bytes are shown */
	void (*end)(void *arg);		/* resets the device; NULL: the handler does not return */
};
extern const struct lwsbt_crash_port lwsbt_crash_port;

/* Reasons, as in Zephyr. */
enum lwsbt_crash_reason {
	LWSBT_CRASH_EXCEPTION,
	LWSBT_CRASH_STACK = 2,		/* stack overflow */
	LWSBT_CRASH_PANIC = 4		/* failed assertion, abort */
};

/* lwsbt_crash ends the program as a crash in its caller: for assertions, and the kernel's hook for stack overflows. */
void lwsbt_crash(enum lwsbt_crash_reason reason);

/* lwsbt_crash_task notes a task, so that a crash shows its stack, which is from start to end: a kernel calls it
 * when it makes the task, and with end = NULL when it deletes it. The first word at task is the saved stack pointer. name
 * stays valid. Calls exclude each other. */
void lwsbt_crash_task(const void *task, const void *start, const void *end, const char *name);

/* The handler: in place of HardFault_Handler (and of the handlers of other faults, if they are enabled) in the vector
 * table of a Cortex-M; in mtvec of a RISC-V, where lwsbt_crash_begin writes it. */
void lwsbt_crash_handler(void);
#ifdef __riscv
void lwsbt_crash_begin(void);
#endif

#ifdef __cplusplus
}
#endif

#endif
