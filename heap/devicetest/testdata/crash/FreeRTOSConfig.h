/* That of the sample, with what crash.c needs. */
#include "../../../../device/freertos/sample/FreeRTOSConfig.h"

#undef configCHECK_FOR_STACK_OVERFLOW
#define configCHECK_FOR_STACK_OVERFLOW 2
#undef configUSE_TICK_HOOK
#define configUSE_TICK_HOOK 1
#undef configUSE_MALLOC_FAILED_HOOK
#define configUSE_MALLOC_FAILED_HOOK 0
#undef configMAX_PRIORITIES
#define configMAX_PRIORITIES 6
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskDelete 1
#undef configASSERT
#define configASSERT(x) do { if (!(x)) lwsbt_crash(LWSBT_CRASH_PANIC); } while (0)
#ifndef __ASSEMBLER__
#include "lwsbt/crash.h"
#endif
#include "lwsbt_freertos_trace.h"
