/*
 * lwsbt_freertos_trace.h: notes the tasks for crash lines. Include it at the end of FreeRTOSConfig.h, which has
 * configRECORD_STACK_HIGH_ADDRESS 1, and compile adapters/crash.c with -DLWSBT_CRASH_TASKS=8, for as many tasks.
 */
#ifndef LWSBT_FREERTOS_TRACE_H
#define LWSBT_FREERTOS_TRACE_H

#ifndef __ASSEMBLER__
void lwsbt_crash_task(const void *task, const void *start, const void *end, const char *name); /* lwsbt/crash.h */
#define traceTASK_CREATE(t) lwsbt_crash_task((t), (t)->pxStack, (t)->pxEndOfStack + 1, (t)->pcTaskName)
#define traceTASK_DELETE(t) lwsbt_crash_task((t), 0, 0, 0)
#endif

#endif
