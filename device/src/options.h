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

#if LWSBT_PACKED
#if LWSBT_FIELDS || LWSBT_FOREIGN
#error "LWSBT_PACKED has neither LWSBT_FIELDS nor LWSBT_FOREIGN"
#endif
#undef LWSBT_FIELDS
#undef LWSBT_FOREIGN
#define LWSBT_FIELDS 0
#define LWSBT_FOREIGN 0
#endif

#ifndef LWSBT_FIELDS	/* user fields and events; times in ~h# lines, and %XX */
#define LWSBT_FIELDS LWSBT_UNSET
#endif
#ifndef LWSBT_SEARCHES	/* LWSBT_SEARCH_LWS */
#define LWSBT_SEARCHES LWSBT_UNSET
#endif
#ifndef LWSBT_NESTED	/* in_interrupt and guard of the port, and heap.reentered */
#define LWSBT_NESTED (LWSBT_FIELDS || LWSBT_UNSET)
#endif
#if LWSBT_FIELDS && !LWSBT_NESTED
#error "LWSBT_FIELDS needs LWSBT_NESTED: event functions may allocate"
#endif
#ifndef LWSBT_FOREIGN	/* blocks of lws in the list */
#define LWSBT_FOREIGN LWSBT_UNSET
#endif
#ifndef LWSBT_LISTED	/* LWSBT_CHECK_UNTRACKED */
#define LWSBT_LISTED LWSBT_UNSET
#endif
#ifndef LWSBT_CACHE	/* rules of struct lwsbt_capture_ctx */
#define LWSBT_CACHE LWSBT_UNSET
#endif
#ifndef LWSBT_EXCEPTIONS /* captures cross exceptions of a Cortex-M */
#define LWSBT_EXCEPTIONS LWSBT_UNSET
#endif
#ifndef LWSBT_SPEED	/* code that is larger, and faster */
#define LWSBT_SPEED LWSBT_UNSET
#endif
#ifndef LWSBT_EXTRAS	/* sampling, flags of dumps of profiles, ~h#heap; build, dev, fw and heap of devices */
#define LWSBT_EXTRAS LWSBT_UNSET
#endif

#endif
