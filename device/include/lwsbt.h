/*
 * lwsbt.h: compressed backtraces for firmware
 *
 * The library captures the call stack of each heap allocation, compresses it to
 * some 20 to 60 bytes, stores it in front of the allocated memory, and writes all
 * live stacks as lines of text on request, in the format of libwebsockets (lws)
 * that SPEC.md specifies. Or it counts allocations by call path in a table, and
 * writes the table. IDs in brackets, [BT-...], are clauses of SPEC.md.
 *
 * The library is C99. It allocates no memory, does not recurse, and has no static
 * data, but for the wrapped heap. Link only the parts that you need: each is a file of src/. Or compile
 * amalgamation/lwsbt.c, which has them all.
 *
 * This header includes all parts. Each can be included alone:
 *
 *   part            file of src/    calls
 *
 *   lwsbt/codec.h
 *   encoder         encode.c        lwsbt_encode, lwsbt_put...; needs choose.c
 *   lines, written  line.c          lwsbt_line..., lwsbt_base64...
 *   decoder         decode.c        lwsbt_decode..., lwsbt_user
 *   lines, read     parse.c         lwsbt_parse...
 *   headers         head.c          lwsbt_head...
 *   events          event.c         lwsbt_encode_event
 *
 *   lwsbt/capture.h
 *   capture         capture_*.c     lwsbt_capture_...
 *
 *   lwsbt/paths.h
 *   call paths      paths.c         lwsbt_paths_add, lwsbt_name, lwsbt_offset...
 *                   packet.c        lwsbt_packet_put
 *
 *   lwsbt/device.h
 *   a device        device.c        lwsbt_head_device...
 *
 *   lwsbt/heap.h
 *   heap            heap.c trim.c   lwsbt_meta_gen, _adjust, _trim
 *                   alloc.c         lwsbt_heap_malloc...
 *   dumps           dump.c          lwsbt_walk..., lwsbt_dump, lwsbt_meta_parse
 *                   sums.c          lwsbt_dump_paths; needs paths_head.c
 *
 *   lwsbt/profile.h
 *   profile         profile.c       lwsbt_profile_malloc...
 *                   profile_dump.c  lwsbt_profile_dump..., lwsbt_low; needs paths_head.c
 *
 *   lwsbt/wrap.h
 *   malloc and free adapters/       lwsbt_wrapped, lwsbt_wrap_begin, lwsbt_wrap_dump
 *   of a program    wrap.c begin.c
 *
 *   lwsbt/crash.h
 *   a crash         adapters/       lwsbt_crash_handler, lwsbt_crash, lwsbt_crash_task
 *                   crash.c
 *
 * Unless its comment says otherwise, a function uses only its arguments: it may be
 * called from several threads at a time, and from interrupts.
 */
#ifndef LWSBT_H
#define LWSBT_H

#include "lwsbt/codec.h"
#include "lwsbt/capture.h"
#include "lwsbt/paths.h"
#include "lwsbt/device.h"
#include "lwsbt/heap.h"
#include "lwsbt/profile.h"
#include "lwsbt/wrap.h"
#include "lwsbt/crash.h"

#endif
