/*
 * What can be left out for size, each by a 0; docs/device.md has how large each is.
 * LWSBT_TINY leaves out all that is not set to 1. What is left out is ignored
 * where lwsbt.h has it: the header is the same.
 */
#ifndef LWSBT_OPTIONS_H
#define LWSBT_OPTIONS_H

#ifdef LWSBT_TINY
#define LWSBT_UNSET 0
#else
#define LWSBT_UNSET 1
#endif

#ifndef LWSBT_FIELDS	/* user fields and events; times in ~h# lines, and %XX */
#define LWSBT_FIELDS LWSBT_UNSET
#endif
#ifndef LWSBT_SPEED	/* the cache of capture functions; known frames of profiles are found faster */
#define LWSBT_SPEED LWSBT_UNSET
#endif
#ifndef LWSBT_EXCEPTIONS /* captures cross exceptions of a Cortex-M */
#define LWSBT_EXCEPTIONS LWSBT_UNSET
#endif
#ifndef LWSBT_EXTRAS	/* sampling, flags of dumps of profiles, ~h#heap; build, dev, fw and heap of devices; LWSBT_NESTED */
#define LWSBT_EXTRAS LWSBT_UNSET
#endif

/* in_interrupt and guard of the port, and heap.reentered. Event functions may allocate, so LWSBT_FIELDS needs them. */
#define LWSBT_NESTED (LWSBT_FIELDS || LWSBT_EXTRAS)

#endif
