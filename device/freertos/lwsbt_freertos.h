/*
 * lwsbt_freertos.h: the library on FreeRTOS. See README.md.
 */
#ifndef LWSBT_FREERTOS_H
#define LWSBT_FREERTOS_H

#include "lwsbt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The heap of pvPortMalloc. Set its ctx to the limits of the code, and to those of the
 * stack that is used before the scheduler starts. */
extern struct lwsbt_heap lwsbt_freertos_heap;

/* lwsbt_freertos_begin writes the ~h#boot line to out, where dumps go, too. name is that of
 * the program. Call it before tasks are created. */
void lwsbt_freertos_begin(const struct lwsbt_out *out, const char *name);

/* lwsbt_freertos_dump writes a dump: the live blocks, the names of the tasks, and what the heap
 * has free. Not in an interrupt. It allocates nothing, so that
 * vApplicationMallocFailedHook may call it. why is the reason, such as "request". */
void lwsbt_freertos_dump(const char *why);

#ifdef __cplusplus
}
#endif

#endif
