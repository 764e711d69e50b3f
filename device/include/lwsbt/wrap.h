/*
 * lwsbt/wrap.h: records malloc and free of a whole program, which the linker wraps. See lwsbt.h, and
 * adapters/wrap.c for its options.
 */
#ifndef LWSBT_INCLUDE_WRAP_H
#define LWSBT_INCLUDE_WRAP_H

#include "profile.h"

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
