/* What heap_2.c, heap_4.c and heap_5.c of FreeRTOS need to be compiled alone. */
#ifndef FREERTOS_H
#define FREERTOS_H
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#ifndef ALIGNMENT
#define ALIGNMENT 8
#endif
#define portBYTE_ALIGNMENT ALIGNMENT
#define portBYTE_ALIGNMENT_MASK (ALIGNMENT - 1)
#define portPOINTER_SIZE_TYPE uintptr_t
#define configTOTAL_HEAP_SIZE ((size_t)40000)
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configAPPLICATION_ALLOCATED_HEAP 0
#define configUSE_MALLOC_FAILED_HOOK 0
#ifndef configENABLE_HEAP_PROTECTOR
#define configENABLE_HEAP_PROTECTOR 0
#endif
#define configASSERT(x) do { if (!(x)) __builtin_trap(); } while (0)
#define PRIVILEGED_DATA
#define PRIVILEGED_FUNCTION
#define mtCOVERAGE_TEST_MARKER()
#define traceMALLOC(p, n)
#define traceFREE(p, n)
#define taskENTER_CRITICAL()
#define taskEXIT_CRITICAL()
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
#define pdFALSE 0
#define pdTRUE 1

typedef struct HeapRegion { uint8_t *pucStartAddress; size_t xSizeInBytes; } HeapRegion_t;
typedef struct {
	size_t xAvailableHeapSpaceInBytes, xSizeOfLargestFreeBlockInBytes, xSizeOfSmallestFreeBlockInBytes, xNumberOfFreeBlocks,
		xMinimumEverFreeBytesRemaining, xNumberOfSuccessfulAllocations, xNumberOfSuccessfulFrees;
} HeapStats_t;
void *pvPortMalloc(size_t);
void vPortFree(void *);
void vPortDefineHeapRegions(const HeapRegion_t *);
static inline void vTaskSuspendAll(void) {}
static inline BaseType_t xTaskResumeAll(void) { return 0; }
#endif
